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
        : debug_info_(debug_info), detail_(detail), tables_(std::make_unique<Tables>(*this)) {}

    /// A stack whose frames are numbers of places.
    struct Located {
        std::vector<uint32_t> kernel, user;
        int32_t user_error = 0;
        uint8_t ending = processes::kNoEnding; ///< UNWIND_ENDED_...
    };

    /// The processes whose stacks these are: to be watched, so that the stacks of one that lives for a millisecond have names,
    /// too; and ticked.
    [[nodiscard]] processes::Following &following() { return tables_->following; }
    /// Of an event whose stack hasn't been located before.
    [[nodiscard]] Located locate(const Event &event);
    /// Why user stacks ended that were walked by tables.
    [[nodiscard]] const processes::StackEnds &ends() const { return ends_; }
    /// Whether all frames have names already, so that name() costs no pass over the kernel's symbols.
    [[nodiscard]] bool known(const Located &stack) const;
    /// Names the kernel's frames of all of them in one pass.
    void prepare(const std::vector<const Located *> &stacks);
    /// Of one event: where its user stack ended is counted.
    [[nodiscard]] NamedStack name(const Located &stack);
    /// What is the same of a stack, as numbers: of places, and why it is incomplete.
    [[nodiscard]] processes::InternedSample intern(const Located &stack);
    /// Of `count` events.
    [[nodiscard]] NamedStack name(const processes::InternedSample &sample, uint64_t count);
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
    /// How long the last pass over the kernel's symbols took.
    [[nodiscard]] uint64_t pass_ns() const { return pass_ns_; }
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
        explicit Tables(const Names &names) : namer(tree, following.table().modules(), following.symbols(), names.detail_) {
            following.symbols().set_debug_info(names.debug_info_);
        }
        processes::Following following;
        processes::StackTree tree;
        processes::Namer namer;
        processes::EarlyEnds early;
    };
    processes::DebugInfo *debug_info_;
    processes::SourceDetail detail_;
    std::unique_ptr<Tables> tables_;
    processes::StackEnds ends_;
    std::unordered_map<uint64_t, std::string> kernel_; ///< of addresses in arguments
    std::vector<Known> user_;                          ///< of addresses in arguments; each has one place, by its hash
    std::string last_;                                 ///< a name that isn't kept
    uint64_t pass_ns_ = 0, passed_at_ = 0;
};

/// "leaf", "leaf+0x1c", "[libc.so.6]", "[unknown]".
[[nodiscard]] std::string frame_name(const Frame &frame);

} // namespace rawbpf::inline v0::trace
