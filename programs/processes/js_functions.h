// JavaScript's functions in the stacks of processes that have V8 in them: node, and what is built like it.
//
//      mappings of a process: a file with v8dbg_ symbols --recognise--> where everything lies in V8's objects  (programs/languages/v8)
//      a copied stack --walk--> frames that were left by their frame pointers --> a word of each: a JSFunction? --> its name
//
// All stacks of such a process are copied, as each of its functions' frames says whose it is, wherever the code lies: made at run
// time, or the interpreter's, in the file. The heap is read when the stack is: garbage is collected meanwhile, and what was moved
// isn't where the stack says. So nothing is known by its address alone, and what makes no sense is counted, not guessed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "programs/languages/v8/heap.h"
#include "programs/languages/v8/layout.h"
#include "programs/processes/of_files.h"
#include "programs/processes/process_table.h"
#include "programs/processes/script_frame.h"
#include "programs/processes/scripts.h"
#include "programs/unwind/walk.h"

namespace rawbpf::inline v0::processes {

class JsFunctions {
  public:
    explicit JsFunctions(ProcessTable &table) : table_(table) {}

    void show(ScriptView view) { view_ = view; }
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
    /// What a place with such a file_offset is; nullopt: it is none of these.
    [[nodiscard]] std::optional<ScriptFrame> frame(uint64_t number) const;

    /// What was read: one sentence a file, and one of how many frames had a function.
    [[nodiscard]] std::vector<std::string> learnt() const;
    /// And what couldn't be, likewise.
    [[nodiscard]] std::vector<std::string> warnings() const;

  private:
    static constexpr uint64_t kFirst = 1ull << 41; ///< numbers of Scripts' positions and of JavaCode's methods are below
    struct Known {
        languages::v8::Shared shared;
        uint64_t number;
        bool whole;    ///< it has all that there is to know: a function of a script its file and line
        int tries = 1; ///< where it hasn't: so often it was tried
    };
    struct Lines {
        uint64_t source;
        std::optional<std::vector<uint32_t>> ends;
        std::string file;
    };
    struct Process {
        uint32_t module = kNone;
        std::optional<languages::ProcessPages> pages; ///< once it was asked whether they may be read
        std::unordered_map<uint64_t, Known> known;    ///< by a SharedFunctionInfo's address
        std::unordered_map<uint64_t, Lines> scripts;  ///< by a Script's address
        size_t lines = 0;                             ///< in all of them
    };
    [[nodiscard]] const languages::v8::File *file_of(uint32_t pid, const ProcessTable::Mapping &mapping);
    [[nodiscard]] std::optional<uint64_t> number(Process &process, languages::v8::Heap &heap, uint64_t word);
    [[nodiscard]] const Lines &script(Process &process, languages::v8::Heap &heap, const languages::v8::Function &function);

    ProcessTable &table_;
    ScriptView view_ = ScriptView::both;
    OfFiles<languages::v8::File> files_;              ///< with V8
    std::unordered_map<uint32_t, Process> processes_; ///< by pid
    uint32_t script_ = kNone;                         ///< the module that functions' places have
    std::vector<ScriptFrame> frames_;                 ///< by number, from kFirst
    std::map<std::pair<std::string, std::pair<std::string, uint32_t>>, uint64_t> numbers_;
    uint64_t named_ = 0, unnamed_ = 0; ///< frames that are functions' by the rest of them
};

} // namespace rawbpf::inline v0::processes
