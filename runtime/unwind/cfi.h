// Call frame information as compilers write it: entries, and the programs in them. Inside of this room; table.h is for others.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"
#include "runtime/unwind/layout.h"
#include "runtime/unwind/machines.h"

namespace rawbpf::inline v0::unwind {

/// A section with entries, and what its pointers may be relative to.
struct Frames {
    Bytes bytes;
    uint64_t address = 0, text = 0, data = 0;
    bool eh = true; ///< .eh_frame; else .debug_frame
    const Machine *machine = &kMachines[0];
};

/// Sections with more are refused: twenty times libLLVM's.
inline constexpr uint64_t kMostFrameBytes = 128 << 20;

/// Of a file of one of kMachines. `eh`: it is .eh_frame.
[[nodiscard]] Frames frames_of(const elf::Elf &file, const elf::Section &section, bool eh);

/// Where one of the registers is in the caller's frame.
struct Saved {
    enum How : uint8_t { same, undefined, at_cfa, at_fp, in_di, odd } how = same;
    int64_t offset = 0; ///< bytes, of at_cfa and at_fp
};

/// What a program has set up at some instruction.
struct State {
    uint8_t cfa = UNWIND_ODD; ///< UNWIND_SP, _FP, _R10, _FP_DEREF, _SP_DEREF, _PLT or _ODD
    bool expression = false;  ///< cfa came from one
    bool is_signed = false;   ///< arm64's return address
    int64_t cfa_offset = 0;   ///< bytes
    enum Slot : uint8_t { fp, ra, sp, other, slots };
    Saved saved[slots];
};

/// What an FDE shares with others.
struct Cie {
    uint64_t at = UINT64_MAX; ///< offset in the section
    uint64_t code_align = 0, return_column = 0;
    int64_t data_align = 0;
    uint8_t encoding = 0; ///< DW_EH_PE_* of addresses
    bool sized = false;   ///< 'z': an FDE has a field for what augments it
    bool signal = false;  ///< 'S'
    State initial;
};

/// An FDE.
struct Function {
    uint64_t start = 0, end = 0;
    Bytes program;
    uint32_t cie = 0, frames = 0; ///< offset in the section, and which section
};

/// From `address` on.
struct Change {
    uint64_t address;
    UnwindRule rule;
};

/// What stands at an offset of the section.
struct Entry {
    enum Kind : uint8_t { end, nothing, cie, fde, bad } kind = end; ///< nothing: a terminator
    uint64_t next = 0, cie_at = 0;                                  ///< offsets in the section
    Bytes rest;                                                     ///< what follows the id
};
[[nodiscard]] Entry read_entry(const Frames &frames, uint64_t at);

/// These return what is wrong, or nullptr.
[[nodiscard]] const char *read_cie(const Frames &frames, uint64_t at, Cie &out);
[[nodiscard]] const char *read_fde(const Frames &frames, const Cie &cie, Bytes rest, Function &out);
/// Appends to `out` in ascending order; the first is at function.start, the last before function.end.
[[nodiscard]] const char *run_program(const Frames &frames, const Cie &cie, const Function &function, std::vector<Change> &out);

} // namespace rawbpf::inline v0::unwind
