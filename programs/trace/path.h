// A struct path as text, worked out in BPF from any probe. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "asm/builder.h"
#include "programs/trace/kernel_offsets.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::trace {

inline constexpr uint16_t kPathBytes = 256;      ///< of names, before the last one that fits
inline constexpr uint16_t kComponentBytes = 128; ///< of each name
inline constexpr uint16_t kPathCapacity = kPathBytes + kComponentBytes;

/// The function walk(where to write, dentry, vfsmount or 0): r0 = bytes written, with kDetached where the walk ended at something
/// that no path leads to (a pipe, a socket), kLonger where there was more, kRoot for "/"; as an int negative where memory
/// couldn't be read. `where` must have 4 bytes, which are the caller's to fill with r0, and kPathCapacity behind them. The names
/// stand leaf first, each with its zero. `by_helper`: the kernel has bpf_loop (5.17), which makes the verifier's work a
/// hundredth.
[[nodiscard]] Code &path_walk(Builder &builder, const PathOffsets &offsets, bool by_helper);

inline constexpr int32_t kDetached = 1 << 29, kLonger = 1 << 28, kRoot = 1 << 27;
/// Bytes of names that walk() wrote, by its result.
[[nodiscard]] constexpr size_t path_bytes(int32_t length) { return static_cast<size_t>(length & (kRoot - 1)); }
/// What walk() wrote as a path: "/etc/passwd", "pipefs:", ".../lib/x". `length` is its result.
[[nodiscard]] std::string path_text(Bytes names, int32_t length);

} // namespace rawbpf::inline v0::trace
