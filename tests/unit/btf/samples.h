// BTF for the tests: one small file with every kind, and files with many types.
#pragma once

#include <vector>

#include "runtime/btf/btf.h"

namespace rawbpf::test {

/// The ids in sample_btf().
namespace id {
enum : btf::TypeId {
    int_ = 1,
    bool_,
    pid,         // typedef int pid_t
    const_pid,   // const pid_t
    task_ptr,    // struct task_struct *
    task,        // struct task_struct
    task_old,    // struct task_struct___old
    flags,       // struct with bitfields
    state,       // enum state { DEAD = -1, BUSY = 7 }
    state_union, // union state
    big,         // enum64
    numbers,     // int[10]
    matrix,      // int[3][10]
    proto,       // int (struct task_struct *task, ...)
    func,
    var,
    data, // datasec
    real, // double
    tag,  // decl tag on func
    user, // type tag on volatile int
    volatile_int,
    restrict_ptr,
    other, // fwd
    count
};
}

std::vector<std::byte> sample_btf();
/// The same bytes in the other byte order: but for the magic number and two bytes after it, all fields have 32 bits.
void swap_btf(std::vector<std::byte> &bytes);
/// Adds the layout section of Linux 7.2, in which `kind` has these sizes.
std::vector<std::byte> with_layout(const std::vector<std::byte> &bytes, uint8_t kind, uint8_t fixed, uint8_t each);
/// `count` types of several kinds and lengths, each with its own name; in the names' order or not.
std::vector<std::byte> many_types(size_t count, bool sorted);

} // namespace rawbpf::test
