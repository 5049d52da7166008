// A recording: what a tool has seen on one machine, on its way to another machine or another day.
//
//      tool --> Writer: its own chunks, and the stack tree as it grows --> file --> Reader --> Visitor: the tool's report
//
// It is the stack tree of programs/processes/stacks.h written as it grows, and everything that only the recording machine knows:
// build-ids, the names of kernel functions, of JIT code and of the vdso, the ledger. Symbols of files are looked up by the
// reader, where the binaries are. The bytes are in chunks.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "programs/processes/label_sets.h"
#include "programs/processes/stacks.h"
#include "programs/recording/chunks.h"
#include "programs/render/frame.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::recording {

/// Who has recorded. Older files don't say: they are the profiler's.
enum class Tool : uint8_t { profile, trace, custom };
/// "profile", "trace", "custom": the command's name.
[[nodiscard]] std::string_view tool_name(Tool tool);

/// What precedes all else.
struct Header {
    RunInfo run;
    uint64_t start_ns = 0; ///< CLOCK_MONOTONIC at RunInfo::start_wall_ns
    Tool tool = Tool::profile;
};

/// What the recording's end knows. Of a file that ends early only what can be told from the rest.
struct End {
    Ledger ledger; ///< fired, shown, filtered, sampled_out, lost, degraded
    uint64_t bpf_runs = 0, bpf_ns = 0;
    uint64_t cpu_ns = 0; ///< of rawbpf itself
    uint64_t rss_anon_bytes = 0, ring_bytes = 0;
    uint64_t armed_ns = 0, elapsed_ns = 0; ///< until everything was attached; from then to the end
    std::vector<std::string> warnings;
};

/// Writes a recording. The bytes gather in memory until take() or flush().
class Writer {
  public:
    /// `fd` is borrowed; -1: the bytes stay here until taken (tests).
    explicit Writer(int fd) : fd_(fd) {}

    void begin(const Header &header);
    /// A chunk of the tool's own.
    void chunk(uint8_t type, std::string_view payload);
    /// Writes whatever of the tree and of the modules that it refers to isn't in the file yet.
    void grow(const processes::StackTree &tree, const processes::ModuleTable &modules);
    /// A thread's name by its number in the file, which it is written with when it is met first.
    [[nodiscard]] uint32_t comm(const char (&comm)[16]);
    /// A time as the distance from the one before it.
    void put_time(std::string &payload, uint64_t t_ns);
    /// The name of a place that the reader can't look up; of one that was never written: nothing. Functions inlined there come
    /// first, the innermost of all.
    void name(uint32_t place, const Frame &frame);
    /// What comes from here on has the labels of that number in `sets`. It is written where it isn't in the file yet.
    void labels(uint32_t number, const processes::LabelSets &sets);
    /// The tree and the labels were cleared: numbers start at zero again.
    void reset();
    /// So was the table of modules: the same numbers mean others from here on.
    void forget_modules() { module_ids_.clear(); }
    void end(const End &end);

    /// Bytes waiting.
    [[nodiscard]] size_t waiting() const { return out_.size(); }
    /// Errors: those of write(2), "writing the recording".
    [[nodiscard]] Result<void> flush();
    /// The same once there is enough of it, or a second is over. To be called often.
    [[nodiscard]] Result<void> flush_when_due(uint64_t now_ns);
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    uint32_t module(uint32_t id, const processes::ModuleTable &modules);

    int fd_;
    std::string out_;
    uint32_t places_ = 0, nodes_ = 0; // written since the last reset
    uint32_t modules_written_ = 0;
    std::vector<uint32_t> module_ids_; // in the table -> in the file, kNone: not written
    std::unordered_map<std::string, uint32_t> comms_;
    std::vector<uint32_t> label_ids_;                                     // of sets, in the file; 0: not written
    uint32_t labels_ = processes::LabelSets::kEmpty, labels_written_ = 0; // of what is being written
    uint64_t last_ns_ = 0, written_ns_ = 0;
};

/// Reads a recording that may be anything. The bytes must outlive it.
//
// The reader trusts nothing: numbers must refer to what came before, so a stack can't run in a circle; stacks deeper than any
// kernel gives are refused, so that a small file can't cost unbounded time; what a length promises must be there.
class Reader {
  public:
    /// Receives what is in the file, in its order. An Error ends the reading.
    class Visitor {
      public:
        virtual ~Visitor() = default;
        /// A chunk of the tool's own. False: it has no such type.
        virtual Result<bool> chunk(uint8_t /*type*/, Cursor &) { return false; }
        /// A place's name; symbol, symbol_offset, module, file, line and inlined are set. Inlined functions come first.
        virtual void name(uint32_t /*place*/, Frame &&) {}
        /// The tree is about to be cleared, or the end has come: names of this part are complete.
        virtual Result<void> part_ends() { return {}; }
    };
    /// `name` is for messages.
    Reader(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

    /// The header alone.
    [[nodiscard]] static Result<Header> header_of(Bytes bytes, const std::string &name);
    /// Reads it all from the beginning; tree() and modules() grow along. Errors: bad_input, with the offset; another tool's
    /// recording. A file that ends early (a full disk, a tool that was killed) is read as far as its chunks are whole: see cut().
    [[nodiscard]] Result<void> read(Tool tool, Visitor &visitor);
    /// Where the file ends early, and what is missing: a sentence. Then end() has only what is here. Empty: it is whole.
    [[nodiscard]] const std::string &cut() const { return cut_; }

    // For visitors, while the file is read:
    /// A time that Writer::put_time() wrote.
    [[nodiscard]] Result<uint64_t> time(Cursor &in);
    /// Something was shown that the ledger counts: a sample, an event, a trace.
    void count(uint64_t more = 1) { shown_ += more; }
    [[nodiscard]] uint64_t shown() const { return shown_; }
    /// The name of a thread, by its number.
    [[nodiscard]] Result<std::string_view> comm(Cursor &in);
    /// A node of the tree, or none.
    [[nodiscard]] Result<uint32_t> node(Cursor &in, std::string_view what) const;
    /// The labels of what is read, by their number in label_sets().
    [[nodiscard]] uint32_t labels() const { return labels_; }
    /// Those since the tree was cleared.
    [[nodiscard]] const processes::LabelSets &label_sets() const { return label_sets_; }

    [[nodiscard]] const std::string &name() const { return name_; }
    [[nodiscard]] const Header &header() const { return header_; }
    /// As it was recorded; after read().
    [[nodiscard]] const End &end() const { return end_; }
    [[nodiscard]] processes::StackTree &tree() { return tree_; }
    [[nodiscard]] processes::ModuleTable &modules() { return modules_; }

  private:
    Result<void> read_chunk(uint8_t type, Cursor &in, Visitor &visitor);
    Result<void> read_module(Cursor &in);
    Result<void> read_place(Cursor &in);
    Result<void> read_node(Cursor &in);
    Result<void> read_name(Cursor &in, Visitor &visitor);
    Result<void> read_labels(Cursor &in);
    void forget_labels();
    Result<void> read_end(Cursor &in);
    void end_early(size_t chunk_at, uint64_t chunk_bytes);

    Bytes bytes_;
    std::string name_, cut_;
    Header header_;
    End end_;
    processes::StackTree tree_;
    processes::ModuleTable modules_;
    std::vector<uint32_t> module_ids_; // in the file -> in modules_
    std::vector<uint16_t> depths_;     // of the nodes
    std::vector<std::string> comms_;
    processes::LabelSets label_sets_;
    std::vector<uint32_t> label_numbers_{processes::LabelSets::kEmpty}; // in the file -> in label_sets_
    uint32_t labels_ = processes::LabelSets::kEmpty;
    uint64_t last_ns_ = 0, shown_ = 0;
};

} // namespace rawbpf::inline v0::recording
