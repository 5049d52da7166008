// Addresses to functions, with the profiler's symbolizers: stacks, and arguments that point at functions.
//
//      event --locate--> places       at once: its process may be gone a moment later
//            --prepare, name--> frames    later: a pass over the kernel's symbols is long, and one does for many events
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/early_ends.h"
#include "programs/processes/following.h"
#include "programs/processes/label_sets.h"
#include "programs/processes/namer.h"
#include "programs/processes/stack_ends.h"
#include "programs/processes/stacks.h"
#include "programs/render/frame.h"
#include "programs/session/kernel_names.h"
#include "programs/session/locator.h"
#include "programs/trace/decode.h"

namespace rawbpf::inline v0::trace {

/// Both stacks of an event, innermost frame first.
struct NamedStack {
    std::vector<FramePtr> kernel, user;
    int32_t user_error = 0;         ///< negative errno: it couldn't be walked
    std::string_view user_end = {}; ///< of a walk by tables: why it ended, as the ledger's stack_ends has it
};

/// What views ask of whoever knows names: those of this machine (Names), or of a recording (RecordedNames, report.cpp).
class EventNames : public AddressNames {
  public:
    /// Of an event whose stack hasn't been located before: where its stacks are; its origin is the event's place.
    [[nodiscard]] virtual processes::InternedSample locate(const Event &event) = 0;
    /// The number of an event's labels in label_sets(); asked once for each event.
    [[nodiscard]] virtual uint32_t labels_of(const Event &event) = 0;
    [[nodiscard]] virtual const processes::LabelSets &label_sets() const = 0;
    /// Whether all of a kernel stack's frames have names; whether those of stacks that have waited since `oldest_ns` can be had;
    /// names them, which may cost a pass over the kernel's symbols.
    ///@{
    [[nodiscard]] virtual bool kernel_known(uint32_t node) const = 0;
    [[nodiscard]] virtual bool kernel_ready(std::span<const uint32_t> nodes, uint64_t now_ns, uint64_t oldest_ns) const = 0;
    virtual void name_kernel(std::span<const uint32_t> nodes) = 0;
    ///@}
    /// Of `count` events: where their user stack ended is counted.
    [[nodiscard]] NamedStack name(const processes::InternedSample &sample, uint64_t count = 1);
    /// Names all that was interned, file by file.
    void name_all() { parts().namer.name_all(); }
    /// Why user stacks ended that were walked by tables.
    [[nodiscard]] const processes::StackEnds &ends() const { return ends_; }
    /// What would make more of the named user stacks whole, where many end early.
    [[nodiscard]] std::vector<render::StackAdvice> advice(UnwindBy chosen, Arch arch) const;
    /// What was interned has grown too large: it should be named, and forgotten.
    [[nodiscard]] virtual bool full() const = 0;
    virtual void forget() = 0;
    /// Forgets; numbers that locate() gave before mean nothing any more. To be called now and then: what is kept grows.
    virtual void trim() = 0;
    /// What could not be named, and why.
    [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;

  protected:
    explicit EventNames(uint32_t most_frames) : most_frames_(most_frames) {}
    struct Parts {
        processes::StackTree &tree;
        processes::Namer &namer;
        const processes::ModuleTable &modules;
        processes::EarlyEnds &early;
    };
    [[nodiscard]] virtual Parts parts() const = 0;
    processes::StackEnds ends_;
    uint32_t most_frames_; ///< of a stack that isn't walked by tables
};

class Names : public EventNames {
  public:
    /// `debug_info`: where lines and inlined functions come from, which `detail` asks for; nullptr: nowhere. `build_ids`: see
    /// Following.
    explicit Names(processes::DebugInfo *debug_info = nullptr, processes::SourceDetail detail = {}, bool build_ids = false)
        : EventNames(session::most_frames(kMostFrames)), debug_info_(debug_info), detail_(detail), build_ids_(build_ids),
          tables_(std::make_unique<Tables>(*this)) {}

    /// The processes whose stacks these are: to be watched, so that the stacks of one that lives for a millisecond have names,
    /// too; and ticked.
    [[nodiscard]] processes::Following &following() { return tables_->following; }
    [[nodiscard]] processes::InternedSample locate(const Event &event) override;
    [[nodiscard]] uint32_t labels_of(const Event &event) override;
    [[nodiscard]] const processes::LabelSets &label_sets() const override { return tables_->following.labels().sets(); }
    [[nodiscard]] bool kernel_known(uint32_t node) const override { return tables_->kernel_names.known(node); }
    [[nodiscard]] bool kernel_ready(std::span<const uint32_t> nodes, uint64_t now_ns, uint64_t oldest_ns) const override {
        return tables_->kernel_names.ready(nodes, now_ns, oldest_ns);
    }
    void name_kernel(std::span<const uint32_t> nodes) override { tables_->kernel_names.name(nodes); }
    /// So many events more had that stack, and it wasn't located again.
    void seen_again(const processes::InternedSample &sample, uint64_t more);
    [[nodiscard]] bool full() const override;
    void forget() override;
    void trim() override;

    [[nodiscard]] std::string_view symbol(uint32_t pid, uint64_t address, uint64_t t_ns) override;
    /// The place of a function that an argument may point at, by its number in tree(); kNone: no code can be there.
    [[nodiscard]] uint32_t locate_function(uint32_t pid, uint64_t address, uint64_t t_ns);
    [[nodiscard]] std::vector<std::string> warnings() const override { return tables_->following.warnings(); }

    // For a recording, which takes numbers along in place of names:
    [[nodiscard]] const processes::StackTree &tree() const { return tables_->tree; }
    [[nodiscard]] processes::Namer &namer() { return tables_->namer; }
    /// Whether trim() would forget something; whether also the numbers of modules.
    [[nodiscard]] bool wants_trim() const;
    [[nodiscard]] bool outgrown() const;
    [[nodiscard]] uint32_t most_frames() const { return most_frames_; }

  private:
    [[nodiscard]] Parts parts() const override {
        return {tables_->tree, tables_->namer, tables_->following.table().modules(), tables_->early};
    }
    std::string_view kernel_symbol(uint64_t address);
    std::string user_symbol(uint32_t pid, uint64_t address, uint64_t t_ns, bool &lasts);
    [[nodiscard]] processes::FrameLocation user_place(uint32_t pid, uint64_t address, uint64_t t_ns);
    /// What was found out for an address of a process: arguments are the same ones again and again.
    struct Known {
        uint64_t address = 0, changes = 0, t_ns = 0;
        uint32_t pid = 0;
        std::string name;
    };

    struct Tables {
        explicit Tables(const Names &names)
            : following(names.build_ids_), locator(following.table(), following.unwinding(), tree),
              namer(tree, following.table().modules(), following.symbols(), names.detail_), kernel_names(tree, namer) {
            following.symbols().set_debug_info(names.debug_info_);
        }
        processes::Following following;
        processes::StackTree tree;
        session::Locator locator;
        processes::Namer namer;
        session::KernelNames kernel_names;
        processes::EarlyEnds early;
    };
    processes::DebugInfo *debug_info_;
    processes::SourceDetail detail_;
    bool build_ids_;
    std::unique_ptr<Tables> tables_;
    std::unordered_map<uint64_t, std::string> kernel_; ///< of addresses in arguments
    std::vector<Known> user_;                          ///< of addresses in arguments; each has one place, by its hash
    std::string last_;                                 ///< a name that isn't kept
};

/// Whether arguments of programs' functions may be addresses, whose names processes have that may be gone soon.
[[nodiscard]] bool shows_functions(const std::vector<ProbeSite> &places);

/// Of a frame that an argument points at: what it is called, where it can be one. A symbol may be far away, as kallsyms doesn't
/// say where one ends.
[[nodiscard]] std::string function_name(const Frame &frame);

/// "leaf", "leaf+0x1c", "[libc.so.6]", "[unknown]".
[[nodiscard]] std::string frame_name(const Frame &frame);

} // namespace rawbpf::inline v0::trace
