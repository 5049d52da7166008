// The values in a record as text: names for enumerators, paths, addresses, errors. PURE.
#pragma once

#include <string>

#include "programs/trace/tracer.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

/// One value as people read it. `json`: as a JSON value (numbers up to 2^53 bare, others and texts in quotes). Sets `unreadable`
/// where the memory behind it couldn't be read: "<fault>", null.
void append_value(std::string &out, const Type &type, uint64_t raw, const Blob *blob, Bytes record, const btf::Btf *kernel,
                  bool json, bool &unreadable);

/// The path of the file that a descriptor leads to; empty where none is known.
[[nodiscard]] std::string descriptor_target(const Blob *blob, Bytes record);

/// What a call returned: the kernel's errors by name ("-2 (ENOENT)"). `errors`: it returns them so, as the kernel's functions do.
void append_result(std::string &out, const Type &type, uint64_t raw, const btf::Btf *kernel, bool json, bool errors);

/// The parameter's name, or "argN".
[[nodiscard]] std::string parameter_name(const Signature &signature, uint32_t index);

/// The type of argument `index`: of the signature, else a raw register.
[[nodiscard]] Type parameter_type(const Signature &signature, uint32_t index);

/// The value's error, 1 to 4095, if it is one as the kernel returns them; else 0.
[[nodiscard]] int error_of(const Type &type, uint64_t raw);

} // namespace rawbpf::inline v0::trace
