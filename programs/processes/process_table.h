// Which code each process had mapped, as time went on.
//
//      address in process 4711  -->  mapping [7f10..7f35) of libm.so.6 at 0xe000  -->  FrameLocation {module, file offset}
//
// What is known of a process comes from two sides. Processes that ran before us: /proc/PID/maps, read when one is first seen.
// Everything that changes afterwards: the kernel's own events (fork, exec, mmap, exit), which are also all that is left of a
// process that lived for a millisecond. Both arrive here in the order of time; samples are located in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "programs/processes/stacks.h"
#include "runtime/base/fd.h"
#include "runtime/symbols/symbols.h"

namespace rawbpf::inline v0::processes {

/// Where a first look at a process comes from: /proc, or a fake.
class MapsSource {
  public:
    virtual ~MapsSource() = default;
    /// The process's executable regions now. Error: it is gone.
    virtual Result<symbols::ProcessMaps> maps(uint32_t pid) = 0;
    /// Its parent now; 0 when that can't be told.
    virtual uint32_t parent(uint32_t pid) = 0;
    /// A module that a sample lies in, met for the first time, while the process (or the ones it was forked from, nearest first)
    /// may still be alive: the chance to get hold of its file. [start, end) is where the first of `pids` has it mapped.
    virtual void met(uint32_t module_id, Module &module, const std::vector<uint32_t> &pids, uint64_t start, uint64_t end) = 0;
    /// Somebody else opened a module's file, below `root` (empty: ours), before a sample lay in it. Its process may have ended
    /// when one does, so this is the chance to keep the file.
    virtual void opened(uint32_t /*module_id*/, const Fd & /*file*/, const std::string & /*root*/) {}
    /// Whether a file in memory (memfd_create) that the process has mapped there is a program or a library, which one can be
    /// started from; else it is code that was made at run time. nullopt: it is gone.
    virtual std::optional<bool> is_program(uint32_t /*pid*/, const symbols::Region & /*region*/) { return false; }
    /// A process was sampled in code made at run time: the chance to get hold of its names. `pids`: it, then those it was forked
    /// from, nearest first, whose code it still has. `dump`: a jitdump that it has mapped; nullptr: none. False: there are no
    /// names yet.
    virtual bool met_jit(const std::vector<uint32_t> &pids, const symbols::Region *dump) = 0;
    /// Which function lay at an address made at run time then: a number that in_memory() (namer.h) is asked with.
    virtual uint64_t code_layer(uint32_t /*pid*/, uint64_t /*address*/, uint64_t /*t_ns*/) { return 0; }
    /// Whether a process that was met so tells itself, by a map or a dump, what its code at an address is.
    virtual bool tells(uint32_t /*pid*/, uint64_t /*address*/) { return false; }
};

class ProcessTable {
  public:
    explicit ProcessTable(MapsSource &source) : source_(source) {}

    /// From now on every change is told by the calls below, so an address in no mapping is no reason to look again.
    void all_changes_are_told() { told_ = true; }
    /// A new executable mapping; what lay there before is cut.
    void map(uint32_t pid, const symbols::Region &region);
    /// The child starts with what its parent has.
    void fork(uint32_t parent, uint32_t child);
    /// It has one more thread.
    void thread(uint32_t pid);
    /// Everything that was mapped is gone, and so are all threads but one.
    void exec(uint32_t pid, uint64_t t_ns);
    /// A thread ended; `first` for the one that the process began with. The process ends with its last thread; where we don't
    /// know how many there are, with the first. It isn't forgotten at once: samples of its last moments may be on their way.
    void exit(uint32_t pid, bool first, uint64_t t_ns);
    /// From its next exec on, this process and all that it starts are wanted.
    void want(uint32_t pid) { root_ = pid; }
    /// This process, which runs already, is wanted, and with `children` all that it starts from now on.
    void want_now(uint32_t pid, bool children, uint64_t now_ns);
    /// Whether a process was one of those at that time.
    [[nodiscard]] bool wanted(uint32_t pid, uint64_t t_ns) const;
    /// The same, for a process that was sampled; where events were lost, /proc is asked about its ancestors.
    [[nodiscard]] bool find_wanted(uint32_t pid, uint64_t t_ns);
    /// Events were lost: what is known may be old, so every process is looked at again when it is next sampled, if it still is.
    void doubt();
    /// Reads the maps of a process at once (those that are profiled from the start).
    void look_at(uint32_t pid, uint64_t now_ns);
    /// The same, unless they are known already: of a process that was there before, or when news were lost.
    void look_unless_known(uint32_t pid, uint64_t now_ns) { (void)known(pid, now_ns); }
    /// To be called now and then, after the samples that had been taken at the time of an exit(): forgets for good.
    void sweep();

    /// Everything that happened up to then has been told by the calls above.
    void told_until(uint64_t t_ns) { told_ns_ = std::max(told_ns_, t_ns); }
    /// A time at which the process had what image() says.
    [[nodiscard]] uint64_t as_of_ns(uint32_t pid) const;
    /// When we were told of its last exec; 0: of none.
    [[nodiscard]] uint64_t exec_ns(uint32_t pid) const {
        auto found = processes_.find(pid);
        return found == processes_.end() ? 0 : found->second.exec_ns;
    }

    /// The user frame at `address`. A place with module kNone: in no mapping known of.
    [[nodiscard]] FrameLocation locate(uint32_t pid, uint64_t address, bool caller, uint64_t now_ns);
    /// Whether what lies at a place is told by the process itself, which has made it at run time.
    [[nodiscard]] bool tells(uint32_t pid, const FrameLocation &place) {
        return place.module != kNone && modules_[place.module].kind == ModuleKind::anonymous &&
               source_.tells(pid, place.address - (place.caller ? 1 : 0));
    }
    /// A module's file was opened, below `root` (empty: ours): whoever reads the maps may keep it.
    void opened(uint32_t module, const Fd &file, const std::string &root) { source_.opened(module, file, root); }
    /// True when the process has no user memory at all, so that no user stack of it can be missing.
    [[nodiscard]] bool kernel_thread(uint32_t pid, uint64_t now_ns);
    /// Processes that samples were located in.
    [[nodiscard]] size_t sampled() const { return sampled_; }
    /// How often addresses of a process that was sampled have come to mean something else, but for an exec: code was mapped in
    /// the place of other code, or events were lost.
    [[nodiscard]] uint64_t remaps() const { return remaps_; }
    [[nodiscard]] const ModuleTable &modules() const { return modules_; }
    [[nodiscard]] ModuleTable &modules() { return modules_; }

    struct Mapping {
        uint64_t start, end, file_offset;
        uint32_t module;
    };
    using Image = std::vector<Mapping>; // ascending, not overlapping
    /// From now on, take_changed() tells of processes that are wanted or followed.
    void note_changes() { noting_ = true; }
    /// Whoever asks wants to know this process's mappings, now and whenever they change, until it ends.
    void follow(uint32_t pid, uint64_t now_ns);
    /// The same, of one that may have executed another program: where changes aren't told, it is looked at again now and then.
    void follow_anew(uint32_t pid, uint64_t now_ns);
    /// Processes whose mappings have changed since the last call, or that have ended; each once.
    [[nodiscard]] std::vector<uint32_t> take_changed();
    /// The next take_changed() tells of this process once more.
    void tell_again(uint32_t pid) {
        if (auto found = processes_.find(pid); found != processes_.end()) mark(pid, found->second);
    }
    /// Whose child it is; 0 when that isn't known.
    [[nodiscard]] uint32_t parent(uint32_t pid) const {
        auto found = processes_.find(pid);
        return found == processes_.end() ? 0 : found->second.parent;
    }
    /// What a process has mapped; nullptr: it has ended, or nothing is known of it.
    [[nodiscard]] const Image *image(uint32_t pid) const;
    /// The same, but of one that has ended a moment ago what it had last: its last samples come later than its end.
    [[nodiscard]] const Image *last_image(uint32_t pid) const;

  private:
    static constexpr int kUncounted = -1; // it was there before us
    struct Process {
        std::shared_ptr<Image> image; // shared with forked children until one of them changes it
        uint32_t parent = 0;
        bool looked = false; // its maps were read, or its exec was seen, so the image is complete
        bool sampled = false;
        bool no_user_memory = false; // its maps could be read and were empty: a kernel thread
        uint8_t vain_looks = 0;      // how often reading the maps again explained nothing
        uint8_t jit_looks = 0;       // how often its code's names were looked for; kJitFound: no more
        uint64_t jit_looked_ns = 0;
        uint64_t looked_ns = 0;
        uint8_t exits = 0;        // sweeps since its exit; 0: alive
        bool wanted = false;      // or a child of one that is
        bool childless = false;   // as far as being wanted goes
        bool followed = false;    // see follow()
        bool changed = false;     // and in changed_
        int threads = kUncounted; // alive
        uint64_t ended_ns = 0;
        uint64_t exec_ns = 0;
    };
    [[nodiscard]] const Mapping *find(const Process &process, uint64_t address) const;
    Process &known(uint32_t pid, uint64_t now_ns);
    Image &own_image(Process &process);
    /// True: some address means something else now.
    bool insert(uint32_t pid, Image &image, const symbols::Region &region);
    [[nodiscard]] ModuleKind kind_of(uint32_t pid, const symbols::Region &region);
    void look(uint32_t pid, Process &process, uint64_t now_ns);
    void mark(uint32_t pid, Process &process);
    /// The process, then those it was forked from, nearest first; up to its last exec where only `of_its_program`.
    [[nodiscard]] std::vector<uint32_t> lineage(uint32_t pid, const Process &process, bool of_its_program) const;
    void meet(const Mapping &mapping, uint32_t pid, const Process &process);
    void meet_compiled_code(uint32_t pid, Process &process, uint64_t now_ns);

    MapsSource &source_;
    ModuleTable modules_;
    std::map<std::pair<uint64_t, uint64_t>, bool> memory_files_; // by device and inode: MapsSource::is_program()
    std::vector<bool> met_;                                      // by module
    std::unordered_map<uint32_t, Process> processes_;
    size_t sampled_ = 0;
    uint64_t remaps_ = 0;
    uint64_t told_ns_ = 0;
    uint32_t root_ = 0; // see want()
    bool told_ = false, doubted_ = false, noting_ = false;
    std::vector<uint32_t> changed_;
};

/// What a mapping's path says about where its code comes from. A file in memory may be a program, which the path doesn't tell.
[[nodiscard]] ModuleKind kind_of_path(std::string_view path);

} // namespace rawbpf::inline v0::processes
