// Finds the kernel function that a program is attached to, and whose arguments are its context. PURE.
#pragma once

#include <string>

#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::verifier {

/// The function, tracepoint, iterator or member of a struct of functions.
struct Attached {
    bool known = false;   ///< it was found in the kernel's types
    std::string name;     ///< "vfs_read", "sched_switch", "task", "tcp_congestion_ops.init"
    btf::Type prototype;  ///< a FUNC_PROTO
    uint32_t skipped = 0; ///< parameters in front that aren't the program's: a tracepoint's data
    bool trusted = false; ///< objects that it is given are surely there
    std::string stub;     ///< struct_ops: a function whose parameters' names say what may be NULL; empty: none
};
/// Of programs that have one; others: not known.
[[nodiscard]] Attached attached_to(const ObjectSpec &spec, const ProgramSpec &program, const btf::Btf *kernel);

/// What a parameter of an iterator or a tracepoint is beside its type.
enum class ParameterNote : uint8_t { none, or_null, or_null_trusted, or_null_rcu, read_buffer, write_buffer, error };
/// `number`: of the program's own parameters, from 0.
[[nodiscard]] ParameterNote iterator_parameter(std::string_view iterator, uint32_t number);
[[nodiscard]] ParameterNote tracepoint_parameter(std::string_view tracepoint, uint32_t number);

} // namespace rawbpf::inline v0::verifier
