// Keeps the unwind tables of the processes that are profiled up to date: what the process table knows, for programs/unwind.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/frame_search.h"
#include "programs/processes/js_functions.h"
#include "programs/processes/live_symbols.h"
#include "programs/processes/process_table.h"
#include "programs/processes/scripts.h"
#include "programs/unwind/live_tables.h"

namespace rawbpf::inline v0::processes {

/// A user stack as a program has sent it.
struct UserStack {
    uint32_t pid;
    uint64_t t_ns;
    uint32_t ending;                  ///< UNWIND_ENDED_..., UNWIND_TABLES, UNWIND_COPIED
    std::span<const uint64_t> frames; ///< leaf first
    std::optional<unwind::StackCopy> copy;
    std::span<const uint64_t> language = {};               ///< an interpreter's frames, as programs/languages/layout.h has them
    uint64_t taken_ns = 0;                                 ///< of a wait, which has its end as t_ns: its beginning; 0: t_ns
    bool made_here = false;                                ///< its frames, of a copy: perhaps nobody looked for an interpreter's
    std::span<const unwind::FrameFunction> functions = {}; ///< of such frames: which function each is of
};

/// Whether a frame's address is where it will be returned to; not so a leaf's, and what a signal interrupted.
[[nodiscard]] inline bool is_caller(std::span<const uint64_t> frames, size_t number) {
    return number > 0 && (frames[number] & UNWIND_EXACT_PC) == 0;
}

class Unwinding final : private unwind::ModuleFiles {
  public:
    explicit Unwinding(ProcessTable &table) : table_(table) {}

    /// From here on the object's program unwinds by what is put into its maps. The object must outlive this. `program`: what it
    /// was made with, for walk().
    [[nodiscard]] Result<void> start(LoadedObject &object, uint64_t memory, const UnwindProgramOptions &program);
    /// The same, with tables of the caller's: for tests.
    void start(std::unique_ptr<unwind::LiveTables> tables);
    [[nodiscard]] bool on() const { return tables_ != nullptr; }
    /// Is told of processes before the program may walk them. It must outlive this.
    void tell(Scripts &scripts) { scripts_ = &scripts; }
    [[nodiscard]] Scripts *scripts() const { return scripts_; }
    /// The same, of who knows Java's code.
    void tell(JavaCode &java) { java_ = &java; }
    [[nodiscard]] JavaCode *java() const { return java_; }
    /// And of who knows JavaScript's functions.
    void tell(JsFunctions &js) { js_ = &js; }
    [[nodiscard]] JsFunctions *js() const { return js_; }
    /// And of who reads what processes tell of the code that they make.
    void tell(LiveSymbols &symbols) { symbols_ = &symbols; }
    /// Makes the tables of what a command will run, before it does: then its first samples are walked by them.
    void prepare(const std::vector<std::string> &command);
    /// A process that is wanted from the start: when this returns, its stacks are walked by tables.
    [[nodiscard]] Result<void> want(uint32_t pid, uint64_t now_ns);
    /// Whether the next stack of that process is walked by tables, or by those that are there: others may still be made.
    [[nodiscard]] bool published(uint32_t pid) const { return on() && tables_->published(pid); }
    /// A sample of the process came; whoever is sampled is wanted from then on.
    void sampled(uint32_t pid, uint64_t now_ns) {
        if (on() && !tables_->published(pid)) table_.follow(pid, now_ns);
    }
    /// One of its frames.
    void used(uint32_t pid, uint32_t module, uint64_t now_ns) {
        if (on() && module != kNone) tables_->used(pid, module, now_ns);
    }
    /// A stack of the process that was located before came again. What it told of modules in use, and of code made at run time
    /// whose names were to be looked for, is said again.
    void seen_again(const StackTree &tree, uint32_t node, uint32_t pid, uint64_t now_ns);
    /// Makes the frames of a stack that came with a copy of it, by what its process had mapped: the news up to its time must be
    /// in the process table, and no later. They are good until the next call. False: other stacks stay as they are, and those of
    /// which no more can be made. To be called with each stack: it also notices what programs don't know though it was told.
    bool walk(UserStack &stack);
    /// Whether frames may be missing in a stack that reaches its root: it comes through code that an interpreter has made, and
    /// whether that is left by frame pointers isn't known yet.
    [[nodiscard]] bool may_skip(uint32_t pid, std::span<const uint64_t> frames) const {
        return alike(pid) && !has_looked_for_form(pid) && in_made_code(pid, frames);
    }
    /// Tells the program what has changed. To be called after samples and events were read. False: it took some time, and there
    /// may be news of the processes that it was done for: read on, and call again.
    [[nodiscard]] Result<bool> update(uint64_t now_ns);
    /// A process is in the middle of an exec, or is ahead of the news: it should be told of with an update() soon.
    [[nodiscard]] bool waiting() const { return waiting_; }

    [[nodiscard]] unwind::LiveTables::Stats stats() const { return on() ? tables_->stats() : unwind::LiveTables::Stats{}; }
    [[nodiscard]] std::vector<std::string> warnings() const { return on() ? tables_->warnings() : std::vector<std::string>{}; }

  private:
    struct Made {                        ///< a process whose stacks end in code that it has made
        uint64_t exec_ns = 0;            ///< which program's that was
        uint64_t stacks = 0, ended = 0;  ///< of it, since the first; in such code
        bool told = false;               ///< what it tells of its frames is used
        std::optional<FrameSearch> form; ///< it tells nothing: their form is looked for, or was
        uint64_t next_look = 0;          ///< where none was found it is looked for once more: after so many
    };
    void judge_made_code(const UserStack &stack);
    [[nodiscard]] Made &made(uint32_t pid);
    [[nodiscard]] const Made *made_known(uint32_t pid) const;
    [[nodiscard]] unwind::CodeMapping::Kind kind_of_made_code(uint32_t pid, const ProcessTable::Mapping &mapping) const;
    [[nodiscard]] bool in_made_code(uint32_t pid, std::span<const uint64_t> frames) const;
    [[nodiscard]] bool alike(uint32_t pid) const { return scripts_ && scripts_->makes_alike(pid); }
    [[nodiscard]] std::optional<UniformFrame> form_of(uint32_t pid) const;
    [[nodiscard]] bool looks_for_form(uint32_t pid) const;
    [[nodiscard]] bool has_looked_for_form(uint32_t pid) const;
    [[nodiscard]] std::optional<bool> agrees(const UserStack &stack, std::span<const uint64_t> frames);
    [[nodiscard]] bool ask_for_form(const UserStack &stack, const unwind::Walked &walked);
    [[nodiscard]] bool uses_told(uint32_t pid) const;
    bool list_mappings(uint32_t pid, const ProcessTable::Image *image);
    bool keep(UserStack &stack, const unwind::Walked &walked);
    [[nodiscard]] bool executes(uint32_t pid, uint64_t as_of_ns, uint64_t now_ns) const;
    Result<Fd> open(uint32_t pid, const unwind::CodeMapping &mapping) override;
    [[nodiscard]] std::optional<unwind::ListedRule> listed(uint32_t pid, uint64_t pc) const override;
    [[nodiscard]] std::optional<symbols::JitDump::Unwinding> told(uint32_t pid, uint64_t pc) const override;
    [[nodiscard]] std::string name(uint32_t module) const override { return table_.modules()[module].path; }

    ProcessTable &table_;
    Scripts *scripts_ = nullptr;
    JavaCode *java_ = nullptr;
    JsFunctions *js_ = nullptr;
    LiveSymbols *symbols_ = nullptr;
    std::unordered_map<uint32_t, Made> made_; ///< by pid
    bool copies_ = true;                      ///< programs copy stacks
    UniformFrame tried_;                      ///< while a stack is asked for the form of its frames
    std::unique_ptr<unwind::LiveTables> tables_;
    bool waiting_ = false;
    std::vector<unwind::CodeMapping> mappings_;    // of one process, while they are handed on
    unwind::Walked walked_;                        // the sample's that walk() was last called for
    std::vector<unwind::FrameFunction> functions_; // likewise, where JavaScript has any
};

} // namespace rawbpf::inline v0::processes
