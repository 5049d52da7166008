// SPDX-License-Identifier: MIT
// A perf event that counts nothing and tells everything: the "sideband", which reports each mapping of code, exec, name, fork
// and exit of the processes it watches, in a ring of its own (see perf_record.h for what comes out).
//
//      page 0                                      pages 1..2^n
//      [ ... data_head (kernel) data_tail (ours) ] [ records, 8-byte aligned, oldest overwritten never ]
//
// How to keep the maps of processes with it, so that an address can still be named after its process is gone:
//   1. open the rings FIRST, then read /proc/PID/maps of the processes that exist: then nothing falls in between (what is seen
//      twice is the same mapping twice);
//   2. one ring a CPU; records of one ring are in order, those of different rings are not: sort by t_ns across rings before
//      applying, or apply late;
//   3. exec (CommRecord::exec) drops all mappings of the pid, FORK with pid != parent_pid copies the parent's, EXIT of the last
//      thread ends it (keep what samples may still need), MMAP2 replaces what it overlaps. munmap is not reported;
//   4. a LostRecord means that maps may be incomplete from there on: read /proc again, and count it.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/events/perf_record.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

/// Which tasks a SidebandRing watches, and how large it is.
struct SidebandOptions {
    int pid = -1;                ///< a thread (for a whole process: one a thread, with inherit for those to come), or -1: all
    int cpu = -1;                ///< a CPU; -1, any, only with a pid and without inherit (the kernel's rule)
    bool inherit = false;        ///< also what the thread creates from now on: threads and processes
    bool enable_on_exec = false; ///< silent until the thread's next exec, which is then the first thing reported
    bool build_ids = true;       ///< ask for build-ids (5.12) instead of inodes where there are some
    size_t bytes = 128 << 10;    ///< ring size; rounded up to a power of two of pages
    size_t wakeup_bytes = 0;     ///< poll_fd() becomes readable at this fill; 0: half of the ring
};

/// One such ring. Thread-compatible; dropped, the kernel frees it.
class SidebandRing {
  public:
    /// perf_event_open(2) with PERF_COUNT_SW_DUMMY (3.12), and the mapping of its ring. Errors: invalid_argument (inherit without
    /// a CPU), not_found for a thread or CPU that isn't there, permission (CAP_PERFMON, or perf_event_paranoid; watching all
    /// tasks of a CPU needs paranoid <= 0), no_memory (EPERM from the mapping above perf_event_mlock_kb is permission too).
    [[nodiscard]] static Result<SidebandRing> open(const SidebandOptions &options);
    /// A ring that is mapped already: page 0 and then the data, a power of two. For tests.
    [[nodiscard]] static Result<SidebandRing> over(sys::Mapping ring);

    /// Calls `handle(Bytes)` for each record as it stands there, header included, of 8 bytes or more: for events of other kinds
    /// than this one's. The bytes are valid during the call only.
    template <class Handler> void consume_bytes(Handler &&handle) {
        const uint64_t end = head();
        for (uint64_t at = tail_; at != end;) {
            const Bytes bytes = record_at(at, end);
            if (bytes.empty()) break;
            at += bytes.size();
            handle(bytes);
        }
        give_back(end);
    }
    /// Calls `handle(const SidebandRecord &)` for each record; returns how many. Views in it are valid during the call only.
    /// Records that can't be parsed are counted in malformed().
    template <class Handler> size_t consume(Handler &&handle) {
        size_t count = 0;
        consume_bytes([&](Bytes bytes) {
            if (auto record = parse_record(bytes)) {
                if (auto *lost = std::get_if<LostRecord>(&record->what)) lost_ += lost->count;
                handle(static_cast<const SidebandRecord &>(*record));
                ++count;
            } else {
                ++malformed_;
            }
        });
        return count;
    }

    /// Starts or stops reporting (it starts enabled unless enable_on_exec).
    ///@{
    [[nodiscard]] Result<void> enable() const;
    [[nodiscard]] Result<void> disable() const;
    ///@}
    /// For an epoll set: EPOLLIN at wakeup_bytes, EPOLLHUP when the watched thread and all that it created have ended.
    [[nodiscard]] int poll_fd() const { return event_.get(); }
    /// Bytes not yet consumed.
    [[nodiscard]] size_t available() const { return head() - tail_; }
    /// Memory of the ring, in bytes.
    [[nodiscard]] size_t bytes() const { return ring_.size(); }
    /// Whether the kernel was found to know build-ids in maps (5.12).
    [[nodiscard]] bool build_ids() const { return build_ids_; }
    /// Records that the kernel said it had no room for.
    [[nodiscard]] uint64_t lost() const { return lost_; }
    /// Records that made no sense. 0, unless something else writes into the ring.
    [[nodiscard]] uint64_t malformed() const { return malformed_; }

  private:
    [[nodiscard]] uint64_t head() const;
    [[nodiscard]] Bytes record_at(uint64_t at, uint64_t end);
    void give_back(uint64_t position);

    Fd event_;
    sys::Mapping ring_;
    std::unique_ptr<std::byte[]> wrapped_; ///< where a record that wraps is put together; 64 KiB, made when first needed
    size_t mask_ = 0;
    uint64_t tail_ = 0, lost_ = 0, malformed_ = 0;
    bool build_ids_ = false;
};

} // namespace rawbpf::inline v0
