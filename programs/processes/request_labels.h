// The running request of a sample: what its process and its thread published for observers, or its goroutine's labels
// (programs/labels), as labels.
//
//      a sample of a process --looked at now and then--> has it an OpenTelemetry context? --> attributes, keys of threads
//                                                        which of its files has the variable? --> label_processes[pid]
//                                            --else--> is one of its files Go's?   where is g?  --> label_processes[pid]
//      its next samples: the thread's record --keys--> labels --> a number (label_sets.h)
//
// A process may publish, change or end its context at any moment, and a program that it executes has none of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/labels/go_runtime.h"
#include "programs/labels/process_context.h"
#include "programs/labels/thread_context.h"
#include "programs/labels/variable.h"
#include "programs/processes/label_sets.h"
#include "programs/processes/of_files.h"
#include "programs/processes/process_table.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0::processes {

class RequestLabels {
  public:
    RequestLabels(ProcessTable &table, FileReader &reader) : table_(table), variables_(reader), go_runtimes_(reader) {}

    /// Labels are the values of these keys, in this order. From here on the object's program reads the threads of what is put
    /// into its map label_processes, and looks for goroutines' labels by its map label_keys, if it has one. The object must
    /// outlive this. Errors: it has no map label_processes; those of the other one.
    [[nodiscard]] Result<void> start(LoadedObject &object, const std::vector<std::string> &keys);
    [[nodiscard]] bool on() const { return processes_map_ != nullptr; }
    /// A process that runs already: it is looked at by the next tick(), not after its first sample.
    void want(uint32_t pid) {
        if (on()) processes_.try_emplace(pid);
    }

    /// The number of a sample's labels. What happened before it must have been told to the table. `record`: the thread's context,
    /// as it was sent; may be empty.
    [[nodiscard]] uint32_t of(uint32_t pid, Bytes record);
    /// Looks at the processes that were sampled. To be called often. `read_ns`: all that happened before was given to of().
    /// Errors: those of the map.
    [[nodiscard]] Result<void> tick(uint64_t now_ns, uint64_t read_ns);

    [[nodiscard]] LabelSets &sets() { return sets_; }
    /// How often a process's own part of labels has changed.
    [[nodiscard]] uint64_t changes() const { return changes_; }
    /// Why labels are missing: sentences.
    [[nodiscard]] std::vector<std::string> warnings() const;
    /// What was found: one sentence a process.
    [[nodiscard]] const std::vector<std::string> &found() const { return found_; }

  private:
    struct Process {
        std::optional<labels::FoundContext> context;
        bool sampled = true;                  ///< since it was last looked at
        bool placed = false;                  ///< in the map
        bool of_go = false;                   ///< and there with its goroutines
        uint64_t samples = 0, goroutines = 0; ///< since then; those that had one
        uint64_t since_ns = 0;                ///< of the context, or of its goroutines
        uint64_t looked_ns = 0;               ///< at the context
        uint64_t gone_ns = 0;                 ///< when it was found that the context is there no more
        uint64_t next_ns = 0;                 ///< to look again
        uint64_t wait_ns = 0;                 ///< between two looks, while there is nothing
        [[nodiscard]] bool is_known() const { return context || of_go; }
        std::string why = {}; ///< labels are missing: its context, or its threads' contexts, can't be read
    };
    void look(uint32_t pid, Process &process, uint64_t now_ns);
    void look_again(uint32_t pid, Process &process, uint64_t now_ns);
    void take(uint32_t pid, Process &process, labels::FoundContext context, uint64_t now_ns);
    Result<void> place(uint32_t pid, Process &process, uint64_t now_ns);
    Result<void> place_goroutines(uint32_t pid, Process &process, uint64_t now_ns);
    Result<void> put_goroutines(uint32_t pid, Process &process, const labels::GoRuntime &runtime, uint64_t bias, uint64_t now_ns);
    Result<void> forget(uint32_t pid, Process &process);
    [[nodiscard]] static std::string missing(uint32_t pid, const Process &process);
    std::optional<std::string> value_of(size_t key, const Process &process,
                                        const std::optional<labels::ThreadContext> &thread) const;

    ProcessTable &table_;
    Map *processes_map_ = nullptr;
    std::vector<std::string> keys_;
    bool goroutines_wanted_ = false, their_labels_wanted_ = false;
    LabelSets sets_;
    std::unordered_map<uint32_t, Process> processes_;
    OfFiles<labels::ThreadVariable> variables_;
    OfFiles<labels::GoRuntime> go_runtimes_;
    uint64_t changes_ = 0, read_ns_ = 0;
    size_t contexts_ = 0, go_programs_ = 0; // that were ever found
    std::vector<std::string> found_, unread_;
};

} // namespace rawbpf::inline v0::processes
