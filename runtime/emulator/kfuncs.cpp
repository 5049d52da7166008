// Kernel functions that programs call by name and that make sense without a kernel: pages of arenas, number iterators, and
// locks, which do nothing here as there is one thread.
//
//      struct bpf_iter_num   [ current | end ]     8 bytes on the stack, where the kernel has the same two numbers
//
// To add one, write its function and add a row in the table. Arguments, faults and results are like those of helpers.
#include <cerrno>

#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"

namespace rawbpf::inline v0::emulator {

namespace {

using R = const uint64_t *;

EmulatedMap *arena_in(Machine &m, int reg) {
    EmulatedMap *map = m.map_in(reg);
    if (!map || map->kind() == MapEngine::arena) return map;
    m.fault(format("map {} isn't an arena", map->name()));
    return nullptr;
}

uint64_t arena_alloc_pages(Machine &m, R r) {
    EmulatedMap *map = arena_in(m, 1);
    if (!map || r[5] != 0) return 0; // flags: none so far
    return map->allocate(r[2], static_cast<uint32_t>(r[3]));
}
uint64_t arena_free_pages(Machine &m, R r) {
    if (EmulatedMap *map = arena_in(m, 1)) map->release_pages(r[2], static_cast<uint32_t>(r[3]));
    return 0;
}

constexpr int64_t kMostRounds = 8 << 20; // BPF_MAX_LOOPS

struct Numbers {
    int32_t current, end;
};
uint64_t iter_num_new(Machine &m, R r) {
    uint8_t *at = m.buffer(1, sizeof(Numbers), true, "the iterator");
    if (!at) return 0;
    const auto start = static_cast<int32_t>(r[2]), end = static_cast<int32_t>(r[3]);
    Numbers numbers{0, 0};
    int64_t result = 0;
    if (start > end)
        result = -EINVAL;
    else if (int64_t{end} - start > kMostRounds)
        result = -E2BIG;
    else
        numbers = {static_cast<int32_t>(static_cast<uint32_t>(start) - 1), end};
    std::memcpy(at, &numbers, sizeof numbers);
    return static_cast<uint64_t>(result);
}
uint64_t iter_num_next(Machine &m, R r) {
    uint8_t *at = m.buffer(1, sizeof(Numbers), true, "the iterator");
    if (!at) return 0;
    Numbers numbers;
    std::memcpy(&numbers, at, sizeof numbers);
    numbers.current = static_cast<int32_t>(static_cast<uint32_t>(numbers.current) + 1);
    const bool over = numbers.current >= numbers.end;
    if (over) numbers = {0, 0};
    std::memcpy(at, &numbers, sizeof numbers);
    return over ? 0 : r[1];
}
uint64_t iter_num_destroy(Machine &m, R) {
    if (uint8_t *at = m.buffer(1, sizeof(Numbers), true, "the iterator")) std::memset(at, 0, sizeof(Numbers));
    return 0;
}
uint64_t nothing(Machine &, R) { return 0; }

struct Row {
    std::string_view name;
    Helper function;
};
constexpr Row kRows[] = {
    {"bpf_arena_alloc_pages", arena_alloc_pages},
    {"bpf_arena_free_pages", arena_free_pages},
    {"bpf_iter_num_new", iter_num_new},
    {"bpf_iter_num_next", iter_num_next},
    {"bpf_iter_num_destroy", iter_num_destroy},
    {"bpf_rcu_read_lock", nothing},
    {"bpf_rcu_read_unlock", nothing},
    {"bpf_preempt_disable", nothing},
    {"bpf_preempt_enable", nothing},
};

} // namespace

Helper find_emulated_kfunc(std::string_view name) {
    for (const Row &row : kRows)
        if (row.name == name) return row.function;
    return nullptr;
}

} // namespace rawbpf::inline v0::emulator
