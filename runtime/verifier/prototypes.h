// What the verifier knows about helpers, from prototypes.def. PURE.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "asm/opcodes.h"

namespace rawbpf::inline v0::verifier {

/// What an argument has to be; prototypes.def says what each word means.
enum class Argument : uint8_t {
    none,
    any,
    number,
    context,
    context_or_null,
    map,
    key,
    value,
    value_or_null,
    space,
    bytes,
    bytes0,
    bytes0_or_null,
    room,
    room0,
    filled,
    filled0,
    filled0_or_null,
    size,
    fixed,
    record,
    long_out,
    int_out,
    int_in_out,
    header20,
    header40,
    string,
    lock,
    timer,
    callback,
    stack_or_null,
    sock,
    socket_or_null,
    sock_object,
    sock_object_or_null,
    sock_released,
    per_cpu,
    pointer_place,
    pointer_owned,
    dynptr,
    dynptr_of_memory,
    dynptr_of_ring,
    dynptr_released,
    // Objects of the kernel, whose structs are in kObjects of prototypes.cpp.
    task,
    task_or_null,
    cgroup_or_null,
    inode,
    inode_or_null,
    file,
    path,
    seq_file,
    linux_binprm,
    skb,
    xdp_buff,
    tcp_sock,
    sock_common_or_null,
};
/// What r0 is afterwards.
enum class Answer : uint8_t {
    number,
    nothing,
    value,
    local,
    record,
    error,
    processor,
    slice,
    of_cpu,
    of_cpu_or_null,
    kernel_pointer,
    socket,
    sock_common,
    same_socket,
    same_tcp_sock,
    // Objects of the kernel.
    task,
    pt_regs,
    socket_of_file,
    tcp_sock,
    tcp6_sock,
    tcp_timewait_sock,
    tcp_request_sock,
    udp6_sock,
    unix_sock,
    mptcp_sock,
};
/// What else a call does.
enum class Trait : uint8_t { plain, moves, packet, sleeps, releases };

/// One row.
struct Prototype {
    std::string_view name; ///< without "bpf_"
    std::string_view sets; ///< "all", or letters
    Answer answer;
    Trait trait;
    std::array<Argument, 5> arguments;
};

/// How a helper is called by programs of a set (helper_set()); nullptr: there is no row for its name and that letter.
[[nodiscard]] const Prototype *find_prototype(std::string_view name, char set);
/// Whether programs of a set could call it in that kernel already; unknown between two kernels that answer differently.
enum class Access : uint8_t { yes, no, unknown };
[[nodiscard]] Access access_to(std::string_view name, char set, KernelVersion kernel);
/// The struct of the kernel that an argument or an answer points to; empty: none. `or_null`: 0 is good, too.
struct ObjectWord {
    std::string_view type;
    bool or_null = false;
    bool trusted = false; ///< an answer: surely there
};
[[nodiscard]] ObjectWord object_of_argument(Argument argument);
[[nodiscard]] ObjectWord object_of_answer(Answer answer);
/// Whether 0 is as good as a pointer.
[[nodiscard]] bool may_be_null(Argument argument);
/// Whether there is a row for the name at all.
[[nodiscard]] bool has_prototype(std::string_view name);

} // namespace rawbpf::inline v0::verifier
