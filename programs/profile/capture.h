// The capture file: samples with numbered stacks, on their way to another machine or another day.
//
// It is the stack tree of stacks.h written as it grows, and everything that only the capturing machine knows: build-ids, the
// names of kernel functions, of JIT code and of the vdso, the ledger. Symbols of files are looked up by the reader, where the
// binaries are.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/namer.h"
#include "programs/processes/stacks.h"
#include "programs/profile/profiler.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::profile {

/// What precedes the samples.
struct CaptureHeader {
    RunInfo run;
    uint64_t start_ns = 0; ///< CLOCK_MONOTONIC at RunInfo::start_wall_ns
};

/// Writes a capture. The bytes gather in memory until take() or flush().
class CaptureWriter {
  public:
    /// `fd` is borrowed; -1: the bytes stay here until taken (tests).
    explicit CaptureWriter(int fd) : fd_(fd) {}

    void begin(const CaptureHeader &header);
    /// Writes the sample and whatever of its stacks and modules isn't in the file yet.
    void sample(const processes::InternedSample &sample, const processes::StackTree &tree, const processes::ModuleTable &modules);
    /// The name of a place that the reader can't look up.
    void name(uint32_t place, const Frame &frame);
    /// The tree was cleared: numbers start at zero again.
    void reset();
    void end(const Outcome &outcome);

    /// Bytes waiting.
    [[nodiscard]] size_t waiting() const { return out_.size(); }
    Result<void> flush();
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    void record(uint8_t type, const std::string &payload);
    uint32_t module(uint32_t id, const processes::ModuleTable &modules);

    int fd_;
    std::string out_;
    uint32_t places_ = 0, nodes_ = 0; // written since the last reset
    uint32_t modules_written_ = 0;
    std::vector<uint32_t> module_ids_; // in the table -> in the file, kNone: not written
    std::unordered_map<std::string, uint32_t> comms_;
    uint64_t last_ns_ = 0;
    uint64_t weight_ = 1; // of the samples being written
};

/// Reads a capture that may be anything. The bytes must outlive it.
class CaptureReader {
  public:
    /// Receives what is in the file, in its order. An Error ends the reading.
    class Visitor {
      public:
        virtual ~Visitor() = default;
        virtual Result<void> sample(const processes::InternedSample &) { return {}; }
        /// A place's name; symbol, symbol_offset and module are set.
        virtual void name(uint32_t /*place*/, Frame &&) {}
        /// The tree is about to be cleared, or the end has come: names of this part are complete.
        virtual Result<void> part_ends() { return {}; }
    };
    CaptureReader(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

    /// Reads it all from the beginning; tree() and modules() grow along. Errors: bad_input, with the offset. A file that ends
    /// early (a full disk, a profiler that was killed) is read as far as its records are whole: see cut().
    Result<void> read(Visitor &visitor);
    /// Where the file ends early, and what is missing: a sentence. Then the ledger has only what is here. Empty: it is whole.
    [[nodiscard]] const std::string &cut() const { return cut_; }

    [[nodiscard]] const CaptureHeader &header() const { return header_; }
    /// Ledger, cost and warnings as they were recorded; after read().
    [[nodiscard]] const Outcome &outcome() const { return outcome_; }
    [[nodiscard]] processes::StackTree &tree() { return tree_; }
    [[nodiscard]] processes::ModuleTable &modules() { return modules_; }

  private:
    struct Cursor;
    Result<void> read_header(Cursor &in);
    Result<void> read_place(Cursor &in);
    Result<void> read_node(Cursor &in);
    Result<processes::InternedSample> read_sample(Cursor &in);
    Result<void> read_end(Cursor &in);
    void end_early(size_t record_at, uint64_t record_bytes);

    Bytes bytes_;
    std::string name_, cut_;
    CaptureHeader header_;
    Outcome outcome_;
    processes::StackTree tree_;
    processes::ModuleTable modules_;
    std::vector<uint32_t> module_ids_; // in the file -> in modules_
    std::vector<uint16_t> depths_;     // of the nodes
    std::vector<std::string> comms_;
    uint64_t last_ns_ = 0, samples_ = 0;
    uint32_t weight_ = 1; // of the samples being read
};

} // namespace rawbpf::inline v0::profile
