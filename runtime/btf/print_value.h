// SPDX-License-Identifier: MIT
// Bytes with their type, as C or as JSON: what a map holds, for people and for scripts.
#pragma once

#include <string>

#include "runtime/base/bytes.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

/// How a value is written.
enum class ValueStyle : uint8_t {
    c,    ///< {.pid = 12, .comm = "bash", .hits = {[3] = 7}}: an initialiser; arrays that are mostly zero show what isn't
    json, ///< {"pid":12,"comm":"bash","hits":[0,0,0,7]}: integers beyond 2^53 and pointers are strings
};

/// The value of type `id` in `bytes`, which are a program's (host byte order). Integers, enumerators by name, bool, float,
/// pointers, characters as text, bitfields, structs, unions (every member), arrays; anonymous members belong to what they are in.
/// In a map's type, void and functions print as bytes. Errors: bad_input when the type is broken or larger than the bytes, or the
/// text would pass 4 MB.
[[nodiscard]] Result<std::string> print_value(const Btf &btf, TypeId id, Bytes bytes, ValueStyle style = ValueStyle::c);

/// The same, behind what `out` holds: for many values. An error leaves `out` as it was.
[[nodiscard]] Result<void> append_value(std::string &out, const Btf &btf, TypeId id, Bytes bytes, ValueStyle style);

/// The same without a type: a number where there are 1, 2, 4 or 8 bytes, else the bytes in hex.
[[nodiscard]] std::string print_untyped(Bytes bytes, ValueStyle style = ValueStyle::c);
/// The same, behind what `out` holds.
void append_untyped(std::string &out, Bytes bytes, ValueStyle style);

} // namespace rawbpf::inline v0::btf
