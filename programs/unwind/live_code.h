// The bytes of code around a frame of a copied stack, for what no table describes (code_patterns.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "programs/unwind/live_tables.h"
#include "runtime/base/fd.h"

namespace rawbpf::inline v0::unwind {

class LiveCode {
  public:
    static constexpr size_t kHeld = 32; ///< files at most

    explicit LiveCode(ModuleFiles &files) : files_(files) {}

    /// Whose stack is walked next, and what was mapped in that moment (ascending, without overlap), which must stay as long.
    void begin(uint32_t pid, std::span<const CodeMapping> mappings);
    /// False: the bytes can't be read (any more). Errors of opening end there, too.
    [[nodiscard]] bool read(uint64_t address, std::span<std::byte> into);
    /// A file that may be needed when whoever had it mapped is gone. What is returned lasts until the next call.
    const Fd &hold(uint32_t module, Fd file);

  private:
    struct Held {
        bool taken = false;
        uint32_t module = 0;
        Fd file; ///< none: it couldn't be opened
        uint64_t used = 0;
    };
    [[nodiscard]] const CodeMapping *find(uint64_t address) const;
    [[nodiscard]] Held *held(uint32_t module);
    Held &place(uint32_t module);
    [[nodiscard]] bool from_file(const CodeMapping &mapping, uint64_t address, std::span<std::byte> into);
    [[nodiscard]] bool from_memory(uint64_t address, std::span<std::byte> into);

    ModuleFiles &files_;
    std::array<Held, kHeld> held_;
    uint64_t uses_ = 0;
    uint32_t pid_ = 0;
    bool asked_ = false; // for its memory
    Fd memory_;
    std::span<const CodeMapping> mappings_;
};

} // namespace rawbpf::inline v0::unwind
