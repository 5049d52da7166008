// The code of Java virtual machines among the processes: what its functions are called, and how its frames are left.
//
//      mappings of a process: libjvm.so --recognise--> its tables --> the heaps of code         (programs/languages/hotspot)
//      an address in a heap --> the list of all code, read again where it isn't in it --> a rule for the walk, a name
//      a word of an interpreted frame --> a method --> its name
//
// Reading changes nothing in the process, and needs none of its flags. What it says is checked and bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "programs/languages/hotspot/code.h"
#include "programs/languages/runtime.h"
#include "programs/processes/inlined_frames.h"
#include "programs/processes/of_files.h"
#include "programs/processes/process_table.h"
#include "programs/unwind/walk.h"
#include "runtime/symbols/compiled_code.h"

namespace rawbpf::inline v0::processes {

class JavaCode {
  public:
    JavaCode(ProcessTable &table, FileReader &reader) : table_(table), files_(reader) {}

    /// From here on look() does. Once.
    void start();

    /// Looks whether a process is a Java virtual machine that has code by now; what was found out before isn't looked for again.
    /// True: it is. When it becomes one, the process table is told to tell of it again.
    bool look(uint32_t pid, const ProcessTable::Image &image, uint64_t now_ns);
    /// The same, of what the table has.
    bool look(uint32_t pid, uint64_t now_ns);
    /// It has ended: nothing more is read of it, and what is known stays for its last samples.
    void ended(uint32_t pid);

    /// Whether a mapping holds such code, whose frames only rule() leaves.
    [[nodiscard]] bool in_heap(uint32_t pid, uint64_t address) const;
    /// How a frame there is left.
    [[nodiscard]] std::optional<unwind::ListedRule> rule(uint32_t pid, uint64_t pc) const;
    /// Reads what is there now, where nothing was. True: there is something.
    bool read_at(uint32_t pid, uint64_t pc, uint64_t now_ns);

    /// By time; nullptr: it is no Java virtual machine. Where the address isn't known, or the list is old, it is read again.
    [[nodiscard]] const symbols::CompiledCode *code(uint32_t pid, uint64_t address, uint64_t now_ns);
    /// As it is; nullptr likewise.
    [[nodiscard]] const symbols::CompiledCode *code(uint32_t pid) const;

    /// Says of a stack's places in such code which methods run there, at which lines: their file_offset becomes a number of
    /// frames()'s, where more is known than whose code it is. `functions` are of the interpreter's frames, as the walk found
    /// them. What was sampled at `t_ns` should be told soon after: what has been freed meanwhile has no lines.
    void expand(uint32_t pid, std::span<const unwind::FrameFunction> functions, uint64_t t_ns, std::span<FrameLocation> places);
    /// Of a stack that expand() was given: whether it is a virtual thread's whose callers lie in Java's heap.
    [[nodiscard]] bool lacks_callers(std::span<const FrameLocation> places) const;
    [[nodiscard]] const InlinedFrames &frames() const { return frames_; }

    /// What was read: one sentence a process.
    [[nodiscard]] std::vector<std::string> learnt() const;
    /// And what couldn't be, likewise.
    [[nodiscard]] std::vector<std::string> warnings() const;

  private:
    struct Machine {
        uint32_t module = kNone; ///< libjvm.so's
        uint64_t bias = 0;
        bool ended = false;
        bool keeps_frames = false; ///< frame pointers, by -XX:+PreserveFramePointer: programs walk it by them
        std::optional<languages::hotspot::Offsets> layout;
        std::vector<languages::hotspot::Heap> heaps;
        std::vector<languages::hotspot::Code> list;
        symbols::CompiledCode code;
        std::unordered_map<uint64_t, languages::hotspot::Method> methods; ///< by address, since the list was read
        struct Place {
            uint64_t layer;
            uint64_t number; ///< 0: nothing more is known of it
        };
        std::unordered_map<uint64_t, Place> places; ///< of compiled code, by address
        std::unordered_set<uint64_t> vain;          ///< addresses without code, since the list was read
        uint64_t wait_ns = 20'000'000;              ///< between two tries, while it has no code or layout
        uint64_t tried_ns = 0, read_ns = 0, took_ns = 0;
        std::string why;
    };
    bool find(uint32_t pid, Machine &machine, uint64_t now_ns);
    void read(uint32_t pid, Machine &machine, uint64_t now_ns);
    void read_again(uint32_t pid, Machine &machine, uint64_t now_ns);
    static void name(languages::Memory &memory, Machine &machine, const languages::hotspot::Code &code, uint64_t since_ns);
    /// A process's memory, opened when something is read.
    class Reading;
    [[nodiscard]] const languages::hotspot::Method &method(Machine &machine, languages::Memory &memory, uint64_t address);
    [[nodiscard]] uint64_t interpreted(Machine &machine, Reading &reading, const unwind::FrameFunction &function);
    [[nodiscard]] InlinedFrames::Frame frame_of(languages::Memory &memory, const languages::hotspot::Method &method,
                                                std::optional<uint32_t> bytecode);
    [[nodiscard]] static bool holds(const Machine &machine, uint64_t address);
    [[nodiscard]] const Machine *known(uint32_t pid) const;
    [[nodiscard]] Machine *living(uint32_t pid);

    ProcessTable &table_;
    OfFiles<languages::Interpreter> files_;          ///< HotSpot's
    std::unordered_map<uint32_t, Machine> machines_; ///< by pid
    InlinedFrames frames_{1ull << 40};               ///< numbers of CompiledCode's layers are below
    uint64_t frozen_ = 0; ///< frames_' number of what stands for callers in Java's heap; 0: there were none yet
};

} // namespace rawbpf::inline v0::processes
