// SPDX-License-Identifier: MIT
// The kernel's records about processes that start, change and end. A profiler needs these records of a perf event's ring to
// know which code was at which address at which time.
//
//      +---------+------+------+--------------------------+------------------------------------------+
//      | type u32| misc | size | body, different for each | pid u32, tid u32, time u64, cpu u32, res |
//      +---------+------+------+--------------------------+------------------------------------------+
//      0         4      6      8                          size - 24: sample_id, the same for all
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// A process mapped code (PERF_RECORD_MMAP2): by mmap(2), mprotect(2) to executable, exec or dlopen. Either `inode` or
/// `build_id` says which file it is, never both: the kernel has room for one (build-ids since 5.12, when asked for, and when
/// the file has one whose page is in memory).
struct MapRecord {
    /// The process and the thread that did it; ids as in SidebandRecord.
    ///@{
    uint32_t pid = 0, tid = 0;
    ///@}
    uint64_t address = 0,      ///< of the first byte
        length = 0;            ///< in bytes; address + length doesn't overflow
    uint64_t offset = 0;       ///< in the file, in bytes
    uint32_t device_major = 0, ///< of the file system, as in /proc/PID/maps; 0 with a build-id
        device_minor = 0;      ///< the same
    uint64_t inode = 0,        ///< 0 with a build-id, and for what is no file
        generation = 0;        ///< of the inode, whose number a file system may use again; 0 with a build-id
    Bytes build_id;            ///< 1 to 20 bytes, or empty
    uint32_t protection = 0,   ///< PROT_...
        flags = 0;             ///< MAP_...
    std::string_view file;     ///< as in /proc/PID/maps; "//anon", "[vdso]", "//toolong", "//enomem" too
};

/// A thread got a name (PERF_RECORD_COMM): by exec, prctl(PR_SET_NAME), or from outside.
struct CommRecord {
    /// The process, and which of its threads got the name.
    ///@{
    uint32_t pid = 0, tid = 0;
    ///@}
    bool exec = false;     ///< the process is now another program: all its mappings are gone, new ones follow
    std::string_view comm; ///< at most 15 bytes, any bytes but NUL
};

/// A thread was born (PERF_RECORD_FORK; pid != parent_pid for a process, whose mappings are copies of its parent's), or ended
/// (PERF_RECORD_EXIT).
struct TaskRecord {
    bool exit = false; ///< true: it ended; false: it was born
    /// The thread with its process, and the thread with its process that made it.
    ///@{
    uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
    ///@}
};

/// The ring was full (PERF_RECORD_LOST): this many records are missing before this one.
struct LostRecord {
    uint64_t count = 0; ///< records
};

/// A record that nobody here asked for.
struct OtherRecord {
    uint32_t type = 0; ///< PERF_RECORD_...
};

/// One record. The views in it point into the bytes that were parsed.
struct SidebandRecord {
    /// Who was running when it was written. Ids are those of the pid namespace that the event was opened in; 0 or UINT32_MAX for
    /// a task that it can't see.
    ///@{
    uint32_t pid = 0, tid = 0;
    ///@}
    uint32_t cpu = 0;  ///< on which it was written
    uint64_t t_ns = 0; ///< CLOCK_MONOTONIC, as bpf_ktime_get_ns()
    /// The body, by the record's type.
    std::variant<OtherRecord, MapRecord, CommRecord, TaskRecord, LostRecord> what;
};

/// Parses one whole record, header included, of an event with sample_id_all and PERF_SAMPLE_TID|TIME|CPU. PURE; trusts nothing.
/// Errors: bad_input with the offset in the record.
[[nodiscard]] Result<SidebandRecord> parse_record(Bytes record);

} // namespace rawbpf::inline v0
