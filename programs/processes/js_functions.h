// JavaScript's functions in the stacks of processes that have V8 in them: node, and what is built like it.
//
//      mappings of a process: a file with v8dbg_ symbols --recognise--> where everything lies in V8's objects  (programs/languages/v8)
//      a copied stack --walk--> frames that were left by their frame pointers --> a word of each: a JSFunction? --> its name
//                                         their addresses, more words of them --> where in its source it runs, what was inlined there
//
// All stacks of such a process are copied, as each of its functions' frames says whose it is, wherever the code lies: made at run
// time, or the interpreter's, in the file. The heap is read when the stack is: garbage is collected meanwhile, and what was moved
// isn't where the stack says. So nothing is known by its address alone, and what makes no sense is counted, not guessed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "programs/languages/v8/code.h"
#include "programs/languages/v8/heap.h"
#include "programs/languages/v8/layout.h"
#include "programs/processes/inlined_frames.h"
#include "programs/processes/of_files.h"
#include "programs/processes/process_table.h"
#include "programs/processes/scripts.h"
#include "programs/unwind/walk.h"

namespace rawbpf::inline v0::processes {

class JsFunctions {
  public:
    JsFunctions(ProcessTable &table, FileReader &reader) : table_(table), files_(reader) {}

    /// From here on look() does. Once.
    void start(ScriptView view);
    [[nodiscard]] ScriptView view() const { return view_; }

    /// Looks whether a process has V8 in it, by its mappings; what was found out before isn't looked for again. True: it has, and
    /// its stacks are to be copied.
    bool look(uint32_t pid, const ProcessTable::Image &image);
    /// As it was found.
    [[nodiscard]] bool knows(uint32_t pid) const { return processes_.count(pid) != 0; }
    /// Whether any has.
    [[nodiscard]] bool any() const { return !processes_.empty(); }
    void ended(uint32_t pid) { processes_.erase(pid); }

    /// The functions of a stack's frames, ascending, by their numbers. To be called as soon as the stack is there.
    [[nodiscard]] std::vector<unwind::FrameFunction> functions(uint32_t pid, const unwind::Walked &walked,
                                                               const unwind::StackCopy &copy);
    /// A frame of it.
    [[nodiscard]] FrameLocation place(uint64_t number) const;
    [[nodiscard]] bool is_place(const FrameLocation &place) const { return place.module == script_ && script_ != kNone; }
    /// What places with such a file_offset are.
    [[nodiscard]] const InlinedFrames &frames() const { return frames_; }

    /// What was read: one sentence a file, and one of how many frames had a function.
    [[nodiscard]] std::vector<std::string> learnt() const;
    /// And what couldn't be, likewise.
    [[nodiscard]] std::vector<std::string> warnings() const;

  private:
    struct Known {
        languages::v8::Shared shared;
        uint32_t name, file;     ///< frames_.text() of them
        uint32_t line;           ///< where it begins; 0: unknown
        uint64_t script, source; ///< 0: it has none
        uint32_t length;         ///< of the source, characters
        uint32_t id;             ///< never given twice
        bool whole;              ///< it has all that there is to know: a function of a script its file and line
        unsigned tries = 0;      ///< where it hasn't: so often it was tried
    };
    struct Lines {
        uint64_t source;
        std::optional<std::vector<uint32_t>> ends;
        std::string file;
    };
    /// A place in a function: an offset in its bytecodes, or an address in machine code.
    struct Kept {
        uint64_t number = 0;                     ///< of frames_
        languages::v8::Code code{};              ///< whose address it is
        std::optional<languages::v8::Tier> tier; ///< nullopt: it is where the function begins, as nothing else could be read
        unsigned tries = 0;
    };
    struct PlaceKey {
        uint32_t function; ///< Known::id
        bool machine_code;
        uint64_t at;
        [[nodiscard]] bool operator==(const PlaceKey &other) const = default;
    };
    struct PlaceHash {
        size_t operator()(const PlaceKey &key) const;
    };
    using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
    struct Process {
        uint32_t module = kNone;
        Ranges file, made;                            ///< addresses of that module; of code in no file
        std::optional<languages::ProcessPages> pages; ///< once it was asked whether they may be read
        std::unordered_map<uint64_t, Known> known;    ///< by a SharedFunctionInfo's address
        std::unordered_map<uint64_t, Lines> scripts;  ///< by a Script's address
        std::unordered_map<PlaceKey, Kept, PlaceHash> places;
        size_t lines = 0; ///< in all scripts
    };
    /// What one stack is read with.
    struct Reading {
        Process &process;
        languages::v8::Heap &heap;
        languages::v8::CodeReader *code; ///< nullptr: the file doesn't tell of lines
    };
    /// A frame: its address (of a caller in the instruction that calls), and its stack.
    struct Where {
        uint64_t pc, fp;
        bool leaf;
        const unwind::StackCopy &copy;
    };
    void place_code(Process &process, const ProcessTable::Image &image) const;
    [[nodiscard]] std::optional<Known> function(Reading &reading, uint64_t word);
    [[nodiscard]] std::optional<Known> known(Reading &reading, const languages::v8::Shared &shared);
    [[nodiscard]] uint64_t place_of(Reading &reading, const Known &function, const Where &where);
    [[nodiscard]] Kept kept_place(Reading &reading, const Known &function, const PlaceKey &key, uint64_t bytecodes);
    [[nodiscard]] Kept read_place(Reading &reading, const Known &function, const PlaceKey &key, uint64_t bytecodes);
    [[nodiscard]] uint64_t number(Reading &reading, const Known &function, std::span<const languages::v8::Spot> spots);
    [[nodiscard]] const Lines &script(Reading &reading, uint64_t script, uint64_t source);

    ProcessTable &table_;
    ScriptView view_ = ScriptView::both;
    OfFiles<languages::v8::File> files_;              ///< with V8
    std::unordered_map<uint32_t, Process> processes_; ///< by pid
    uint32_t script_ = kNone;                         ///< the module that functions' places have
    InlinedFrames frames_{1ull << 41};                ///< numbers of Scripts' positions and of JavaCode's methods are below
    uint32_t ids_ = 0, functions_ = 0;                ///< Known::id; how many there were
    uint64_t named_ = 0, unnamed_ = 0;                ///< frames that are functions' by the rest of them
    std::array<uint64_t, 3> placed_{};                ///< of these, with the line that ran: by Tier
    uint64_t unplaced_ = 0;                           ///< of a script, but only with the line where it begins
};

} // namespace rawbpf::inline v0::processes
