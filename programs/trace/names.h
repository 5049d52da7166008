// Addresses to functions, with the profiler's symbolizers: stacks, and arguments that point at functions.
//
//      event --locate--> places       at once: its process may be gone a moment later
//            --prepare, name--> frames    later: a pass over the kernel's symbols is long, and one does for many events
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/early_ends.h"
#include "programs/processes/following.h"
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

class Names : public AddressNames {
  public:
    /// `debug_info`: where lines and inlined functions come from, which `detail` asks for; nullptr: nowhere.
    explicit Names(processes::DebugInfo *debug_info = nullptr, processes::SourceDetail detail = {})
        : debug_info_(debug_info), detail_(detail), tables_(std::make_unique<Tables>(*this)),
          most_frames_(session::most_frames(kMostFrames)) {}

    /// The processes whose stacks these are: to be watched, so that the stacks of one that lives for a millisecond have names,
    /// too; and ticked.
    [[nodiscard]] processes::Following &following() { return tables_->following; }
    /// Of an event whose stack hasn't been located before: where its stacks are; its origin is the event's place.
    [[nodiscard]] processes::InternedSample locate(const Event &event);
    /// Why user stacks ended that were walked by tables.
    [[nodiscard]] const processes::StackEnds &ends() const { return ends_; }
    /// When its kernel stacks can be named; name() of one that isn't known costs a pass over the kernel's symbols.
    [[nodiscard]] session::KernelNames &kernel_names() { return tables_->kernel_names; }
    /// Of `count` events: where their user stack ended is counted.
    [[nodiscard]] NamedStack name(const processes::InternedSample &sample, uint64_t count = 1);
    /// So many events more had that stack, and it wasn't located again.
    void seen_again(const processes::InternedSample &sample, uint64_t more);
    /// Names all that was interned, file by file.
    void name_all() { tables_->namer.name_all(); }
    /// What would make more of the named user stacks whole, where many end early.
    [[nodiscard]] std::vector<render::StackAdvice> advice(UnwindBy chosen) const {
        return tables_->early.advice(tables_->following.table().modules(), processes::remedy_of(chosen));
    }
    /// What was interned has grown too large: it should be named, and forgotten.
    [[nodiscard]] bool full() const;
    void forget();
    /// Forgets; numbers that locate() gave before mean nothing any more. To be called now and then: what is kept grows.
    void trim();

    [[nodiscard]] std::string_view symbol(uint32_t pid, uint64_t address, uint64_t t_ns) override;
    /// What could not be named, and why.
    [[nodiscard]] std::vector<std::string> warnings() const { return tables_->following.warnings(); }

  private:
    std::string_view kernel_symbol(uint64_t address);
    std::string user_symbol(uint32_t pid, uint64_t address, uint64_t t_ns, bool &lasts);
    /// What was found out for an address of a process: arguments are the same ones again and again.
    struct Known {
        uint64_t address = 0, changes = 0, t_ns = 0;
        uint32_t pid = 0;
        std::string name;
    };

    struct Tables {
        explicit Tables(const Names &names)
            : locator(following.table(), following.unwinding(), tree),
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
    std::unique_ptr<Tables> tables_;
    processes::StackEnds ends_;
    std::unordered_map<uint64_t, std::string> kernel_; ///< of addresses in arguments
    std::vector<Known> user_;                          ///< of addresses in arguments; each has one place, by its hash
    std::string last_;                                 ///< a name that isn't kept
    uint32_t most_frames_;                             ///< of a stack that isn't walked by tables
};

/// "leaf", "leaf+0x1c", "[libc.so.6]", "[unknown]".
[[nodiscard]] std::string frame_name(const Frame &frame);

} // namespace rawbpf::inline v0::trace
