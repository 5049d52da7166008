// Interpreters among the processes: what the programs walk of their functions' frames, and what these are called.
//
//      mappings of a process --recognise--> an interpreter's file?  --> language_processes[pid]: learn
//      a sample of it: the thread's pointer --learn--> the build's layout --> language_processes[pid], of all that run this file
//      a sample of it: frames --merge with the native ones--> places {module of kind script, number of function and line}
//      LanguageCode records --> functions: name, file, lines
//
// Whoever says that something is there is the process itself, so all of it is checked, and what is too much isn't kept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/languages/evaluation.h"
#include "programs/languages/layout.h"
#include "programs/languages/memory.h"
#include "programs/languages/merge.h"
#include "programs/languages/runtime.h"
#include "programs/processes/of_files.h"
#include "programs/processes/process_table.h"
#include "programs/processes/script_frame.h"
#include "runtime/kernel/loader.h"
#include "runtime/sys/ticker.h"

namespace rawbpf::inline v0::processes {

/// Which frames of a stack are shown where a language has its own.
enum class ScriptView : uint8_t {
    both,     ///< the language's in the place of the interpreter's, between the native ones
    native,   ///< as if there were no language
    language, ///< only the language's, of stacks that have any
};

class Scripts {
  public:
    Scripts(ProcessTable &table, FileReader &reader) : table_(table), builds_(reader) {}

    /// From here on the object's programs walk what is put into their map language_processes. The object must outlive this.
    /// False: they don't.
    bool start(LoadedObject &object);
    [[nodiscard]] bool on() const { return processes_map_ != nullptr; }
    void show(ScriptView view) { view_ = view; }

    /// A process's mappings, as they are from now on. To be called before its unwind tables are published.
    void changed(uint32_t pid, const ProcessTable::Image &image);
    void ended(uint32_t pid);

    /// Learns from processes whose layout isn't known yet, without a stack of theirs: what is traced may be seldom. To be called
    /// often; it looks now and then.
    void look(uint64_t now_ns);

    /// Whether a stack came a moment ago that something could be learnt from. Its process shows its frames as long as it runs:
    /// who looks at once sees what a tenth of a second later is gone, as of a service that has answered and waits.
    [[nodiscard]] bool learning(uint64_t now_ns) const { return now_ns < learning_until_ns_; }

    /// Whether a record is a code's (LanguageCode), and then takes it.
    bool take_code(Bytes record);

    /// The same, of one that was lost on its way: it will be sent again. From any thread.
    void lost_code(Bytes record);
    /// A stack with frames of a language (`words`, as layout.h has them; may be empty). `native`: leaf first. In their place:
    /// both, merged.
    void merge(uint32_t pid, std::span<const uint64_t> words, bool rooted, uint64_t now_ns, std::vector<FrameLocation> &native);

    /// Whether a stack that reaches its root has a function that evaluates for each group of the interpreter's list (`words`),
    /// but for one that has just been called; nullopt: nothing is known of its process, or the list was cut.
    [[nodiscard]] std::optional<bool> agrees(uint32_t pid, std::span<const uint64_t> words,
                                             const std::vector<FrameLocation> &native);

    /// Whether the code that the process makes of its functions has frames that are alike, and no frame pointers.
    [[nodiscard]] bool makes_alike(uint32_t pid) const;
    /// What a place with a module of kind script is.
    [[nodiscard]] ScriptFrame frame(uint64_t offset) const;

    /// Stacks, by how well both sides agree, for the ledger; empty without any.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> counts() const;
    /// What was learnt: one sentence a build.
    [[nodiscard]] std::vector<std::string> learnt() const;
    /// And what wasn't, likewise.
    [[nodiscard]] std::vector<std::string> warnings() const;

  private:
    struct Build { // an interpreter's file
        languages::Interpreter file;
        std::optional<languages::Layout> layout; ///< its addresses as in the file
        uint32_t script = kNone;                 ///< the module that its functions' places have
        std::optional<LanguageProcess> seen;     ///< what the last try found: twice the same is believed
        std::vector<LanguageProcess> refuted;    ///< ways to the frames that didn't agree with native stacks
        languages::EvaluationSearch search;      ///< for the function that evaluates, if the file doesn't say it
        uint32_t judged = 0, astray = 0;         ///< stacks since it was learnt
        int tries = 0, failed = 0;               ///< in a row, since the last way was refuted
        int looks = 0;                           ///< at its processes' memory, for whatever reason
        uint64_t look_ns = 0, look_every_ns = 0; ///< look(): not before, and how long after that
        uint64_t learning_ns = 0;                ///< of CPU, that the tries took
        std::string why;                         ///< it isn't learnt
    };
    struct Process {
        uint32_t module = kNone; ///< the interpreter's
        uint64_t bias = 0;       ///< its addresses less those in the file
        bool walked = false;     ///< the program knows how
        uint64_t walked_ns = 0;  ///< since then
        uint64_t tried_ns = 0;
        bool several = false; ///< its threads may have several lists of frames, which are walked
        int searches = 0;     ///< for these
        uint64_t searched_ns = 0;
    };
    void ask_again(uint64_t now_ns);
    struct List { ///< of a thread's frames, of which it has several
        uint64_t ends;
        std::vector<languages::ListFrame> frames;
    };
    struct Position {
        uint64_t id;
        uint32_t line;
        uint32_t build;
    };
    void publish(uint32_t pid, Process &process);
    void put(uint32_t pid, const Process &process);
    void prove(uint32_t module);
    [[nodiscard]] static bool unproven(const Build &build);
    [[nodiscard]] bool judge(uint32_t module, Build &build, languages::Merged how);
    void learn(uint32_t pid, Process &process, uint64_t thread_pointer, uint64_t now_ns);
    /// `once`: it has to be found twice, since the process runs on.
    enum class Learnt : uint8_t { nothing, once, known };
    Learnt learn_from(languages::ProcessPages &pages, Process &process, uint64_t thread_pointer);
    /// `none`: it walks them already, or there are none. `gone`: the process has ended, so nobody knows.
    enum class Others : uint8_t { none, found, gone };
    [[nodiscard]] Others find_others(uint32_t pid, Process &process, uint64_t now_ns);
    void take_list(const Build &build, uint32_t module, std::span<const uint64_t> words);
    uint32_t place(const Build &build, uint32_t module, uint64_t id, uint64_t word);
    void find_resumed(const Build &build, const std::vector<FrameLocation> &native);
    void find_evaluating(const Build &build, const std::vector<FrameLocation> &native);
    void search(Build &build, uint32_t module, const std::vector<FrameLocation> &native);
    /// `calls_evaluating`: the frame that it called evaluates.
    [[nodiscard]] bool evaluates(const Build &build, const FrameLocation &place, bool calls_evaluating) const;
    [[nodiscard]] bool may_evaluate(const Build &build, bool rooted, const std::vector<FrameLocation> &native) const;

    ProcessTable &table_;
    Map *processes_map_ = nullptr, *codes_map_ = nullptr;
    sys::Lock lost_lock_;
    std::vector<uint64_t> lost_codes_; // numbers of codes
    uint64_t learning_until_ns_ = 0;
    uint32_t again_ = 0; // how often they were asked for
    uint64_t asked_ns_ = 0;
    uint64_t look_ns_ = 0; // the next time
    ScriptView view_ = ScriptView::both;
    OfFiles<Build> builds_;                                       // interpreters'
    std::unordered_map<uint32_t, Process> processes_;             // by pid
    std::unordered_map<uint64_t, languages::Function> functions_; // by id
    std::vector<Position> positions_;                             // a place's file_offset
    std::map<std::pair<uint64_t, uint32_t>, uint32_t> position_index_;
    uint64_t equal_ = 0, one_more_ = 0, one_less_ = 0, astray_ = 0, cut_ = 0;
    uint64_t unnamed_ = 0, unplaced_ = 0; // functions and stacks for which there was no room
    // of one stack
    std::vector<bool> evaluates_, resumed_;
    std::vector<languages::ListFrame> list_;
    std::vector<List> lists_;
    std::vector<uint64_t> offsets_;
    std::vector<FrameLocation> merged_;
};

} // namespace rawbpf::inline v0::processes
