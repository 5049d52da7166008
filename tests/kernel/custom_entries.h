// Functions whose first instructions differ, compiled apart with flags of their own (meson.build): with a frame, without one,
// with a landing pad; as C and as C++. And those that call them, which always have frames.
#pragma once

#include <stdint.h>

// A function that calls nothing gets a frame only when it asks where that is.
#ifdef WITH_FRAME
#define RAWBPF_ENTRY_BODY __asm__ volatile("" : : "r"(id), "r"(__builtin_frame_address(0)) : "memory")
#else
#define RAWBPF_ENTRY_BODY __asm__ volatile("" : : "r"(id) : "memory")
#endif

#ifdef __cplusplus
extern "C" {
#endif
void rawbpf_entry_c_frame(uint64_t id);
void rawbpf_entry_c_frameless(uint64_t id);
void rawbpf_entry_c_landing(uint64_t id);
/// Calls `entry` by way of rawbpf_entry_middle().
void rawbpf_entry_outer(void (*entry)(uint64_t), uint64_t id);
void rawbpf_entry_middle(void (*entry)(uint64_t), uint64_t id);
#ifdef __cplusplus
}
namespace rawbpf_entry_cpp {
void frame(uint64_t id);
void frameless(uint64_t id);
void landing(uint64_t id);
} // namespace rawbpf_entry_cpp
#endif
