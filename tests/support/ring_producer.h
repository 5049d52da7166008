// The writing end of a real ring buffer: a socket filter of a few instructions, run by BPF_PROG_TEST_RUN. One run reserves,
// writes and submits (or discards) a number of records of 8 bytes, and returns how many found room.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include <linux/bpf.h>

#include "asm/insn.h"
#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::test {

inline Result<Fd> make_ring(uint32_t size) {
    sys::MapCreateAttr attr;
    attr.map_type = BPF_MAP_TYPE_RINGBUF;
    attr.max_entries = size;
    return sys::map_create(attr);
}

/// Each record's payload counts down from `records` to 1. `flags`: BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP or 0. Up to 100 records
/// are written one after the other: of a loop in which every record may find no room the verifier of 5.10 takes each way through.
inline Result<Fd> make_producer(int ring, int32_t records, int32_t flags, bool discard = false) {
    const bool loop = records > 100;
    const Insn once[] = {
        {0x18, 1, BPF_PSEUDO_MAP_FD, 0, ring},
        {},                                        // again: r1 = ring
        {0xb7, 2, 0, 0, 8},                        //        r2 = 8
        {0xb7, 3, 0, 0, 0},                        //        r3 = 0
        {0x85, 0, 0, 0, BPF_FUNC_ringbuf_reserve}, //        r0 = bpf_ringbuf_reserve(r1, r2, r3)
        {0x15, 0, 0, 5, 0},                        //        if r0 == 0 goto next
        {0x7b, 0, 6, 0, 0},                        //        *(u64 *)(r0 + 0) = r6
        {0x07, 7, 0, 0, 1},                        //        r7 += 1
        {0xbf, 1, 0, 0, 0},                        //        r1 = r0
        {0xb7, 2, 0, 0, flags},                    //        r2 = flags
        {0x85, 0, 0, 0, discard ? BPF_FUNC_ringbuf_discard : BPF_FUNC_ringbuf_submit},
        {0x07, 6, 0, 0, -1}, // next:  r6 -= 1
    };
    std::vector<Insn> insns = {{0xb7, 6, 0, 0, records}, {0xb7, 7, 0, 0, 0}}; // r6 = records, r7 = 0
    for (int32_t i = 0; i < (loop ? 1 : records); ++i) insns.insert(insns.end(), std::begin(once), std::end(once));
    if (loop) insns.push_back({0x55, 6, 0, -13, 0}); // if r6 != 0 goto again
    insns.push_back({0xbf, 0, 7, 0, 0});             // r0 = r7
    insns.push_back({0x95, 0, 0, 0, 0});             // exit
    sys::ProgLoadAttr attr;
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insns = reinterpret_cast<uintptr_t>(insns.data());
    attr.insn_cnt = static_cast<uint32_t>(insns.size());
    attr.license = reinterpret_cast<uintptr_t>("GPL");
    return sys::prog_load(attr);
}

/// Runs it once: how many records found room.
inline Result<uint32_t> produce(int program) {
    static const char packet[64] = {};
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program);
    attr.data_in = reinterpret_cast<uintptr_t>(packet);
    attr.data_size_in = sizeof packet;
    attr.repeat = 1;
    TRY(sys::prog_test_run(attr));
    return attr.retval;
}

} // namespace rawbpf::test
