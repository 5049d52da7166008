// Located traces with names: many at a time, and later.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "programs/custom/located.h"
#include "programs/processes/early_ends.h"
#include "programs/processes/namer.h"
#include "programs/processes/stacks.h"
#include "programs/render/frame.h"
#include "programs/session/kernel_names.h"

namespace rawbpf::inline v0::custom {

/// 128 bits over each frame, leaf first: its file (build-id, or else path) and the offset in it; of the kernel, symbol and
/// offset, of a script function and line. So the same stack has the same hash in every run, wherever things are mapped. Of the
/// user's frames those up to main(), where it is there: further out is the C library, which a walk by tables goes through and one
/// by frame pointers doesn't. Inlined functions change nothing. 32 hexadecimal digits.
[[nodiscard]] std::string stack_hash(const std::vector<FramePtr> &kernel, const std::vector<FramePtr> &user);

/// Both stacks of a trace, leaf first.
struct Named {
    std::vector<FramePtr> kernel, user;
};

/// What the view asks of whoever knows names: those of this machine (Names), or of a recording (report.cpp).
class TraceNames {
  public:
    virtual ~TraceNames() = default;
    [[nodiscard]] Named name(const LocatedTrace &trace);
    /// The labels of that number (LocatedTrace::labels); nullptr: none.
    [[nodiscard]] LabelsPtr labels(uint32_t number) { return parts().labels[number]; }
    /// `count` traces had that user stack, which wasn't cut at its most frames; before clear().
    void count_end(uint32_t user, uint8_t ending, uint64_t count);
    /// What would make more of those stacks whole, where many end early.
    [[nodiscard]] std::vector<render::StackAdvice> advice(UnwindBy chosen);
    /// Whether kernel stacks that have waited since `oldest_ns` can be named; names them, which may cost a pass over the kernel's
    /// symbols.
    ///@{
    [[nodiscard]] virtual bool kernel_ready(std::span<const uint32_t> nodes, uint64_t now_ns, uint64_t oldest_ns) const = 0;
    virtual void name_kernel(std::span<const uint32_t> nodes) = 0;
    ///@}
    /// Whether so much is kept that clear() is due.
    [[nodiscard]] virtual bool full() = 0;
    /// Forgets; what was located before means nothing any more.
    virtual void clear() = 0;

  protected:
    struct Parts {
        const processes::StackTree &tree;
        processes::Namer &namer;
        const processes::ModuleTable &modules;
        const processes::LabelSets &labels;
    };
    [[nodiscard]] virtual Parts parts() = 0;
    /// Whether a function begins at that place.
    [[nodiscard]] bool begins_at(uint32_t place);

  private:
    processes::EarlyEnds early_;
};

class Names : public TraceNames {
  public:
    /// `detail`, from `debug_info`: lines, and inlined functions as frames of their own. `depth`: see Places.
    explicit Names(processes::SourceDetail detail = {}, processes::DebugInfo *debug_info = nullptr, uint32_t depth = kDeepest)
        : places_(depth), namer_(places_.tree(), places_.modules(), following().symbols(), detail) {
        following().symbols().set_debug_info(debug_info);
    }
    /// See Places.
    ///@{
    [[nodiscard]] processes::Following &following() { return places_.following(); }
    [[nodiscard]] bool wanted(const Record &head) { return places_.wanted(head); }
    [[nodiscard]] LocatedTrace locate(const CustomTrace &trace);
    [[nodiscard]] bool full() override { return places_.full(); }
    void clear() override;
    ///@}
    [[nodiscard]] bool kernel_ready(std::span<const uint32_t> nodes, uint64_t now_ns, uint64_t oldest_ns) const override {
        return kernel_names_.ready(nodes, now_ns, oldest_ns);
    }
    void name_kernel(std::span<const uint32_t> nodes) override { kernel_names_.name(nodes); }

  private:
    [[nodiscard]] Parts parts() override { return {places_.tree(), namer_, places_.modules(), places_.label_sets()}; }

    Places places_;
    processes::Namer namer_;
    session::KernelNames kernel_names_{places_.tree(), namer_};
};

} // namespace rawbpf::inline v0::custom
