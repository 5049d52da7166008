/* What record_bare.cpp writes and bare_profile.c reads: steps of 8-byte aligned { kind, size, body }. */
#ifndef BARE_PLAN_H
#define BARE_PLAN_H

#include <stdint.h>

enum { kBareMap = 1, kBareUpdate, kBareFreeze, kBareBtf, kBareProgram };

/* `inner`: the map that a map of maps is made after, its place in the plan plus one. `key_type`, `value_type`: in the plan's BTF,
 * where the map needs it (storage of tasks). */
struct BareMap {
    uint32_t type, key_size, value_size, max_entries, flags, inner, key_type, value_type;
};

/* Followed by the key and the value. */
struct BareUpdate {
    uint32_t map, key_size;
    uint64_t flags;
};

/* Followed by the instructions, func_info and line_info. */
struct BareProgram {
    uint32_t type, insns, func_info_rec_size, func_info_cnt, line_info_rec_size, line_info_cnt;
};

#endif
