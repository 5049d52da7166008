// SPDX-License-Identifier: MIT
// Limits of what an emulated program may use of the machine, beside the limit of instructions in MachineOptions::limit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rawbpf::inline v0::emulator {

inline constexpr uint64_t kMostMapBytes = uint64_t{1} << 30;  ///< of all maps of a program together
inline constexpr size_t kMostPrinted = size_t{16} << 20;      ///< text that is kept; what comes later is counted and dropped
inline constexpr uint64_t kMostRecorded = uint64_t{64} << 20; ///< of bpf_perf_event_output(); then it says -ENOSPC
inline constexpr uint32_t kRecordCost = 64;                   ///< bytes that each of them takes beside its own
inline constexpr uint32_t kMostOpenRecords = 1024;            ///< of one ring buffer, reserved and not yet submitted
inline constexpr uint32_t kMostTimers = 1U << 20;             ///< then bpf_timer_init() has no memory, -ENOMEM

/// What helpers do is counted in the same coin as instructions, against the same limit: so many bytes that are copied, compared
/// or searched are one, and so is each step along a chain.
inline constexpr uint64_t kBytesPerWork = 8;
inline constexpr uint64_t kPrintWork = 64; ///< of a format, beside a unit for each byte of its text

} // namespace rawbpf::inline v0::emulator
