// A uprobe is an instruction that traps. On 32-bit ARM the kernel has only ARM's (arch/arm/probes/uprobes/core.c, "Thumb not yet
// support"): it refuses places that can't be ARM code, those at no multiple of four, and writes ARM's breakpoint to all others.
// Thumb reads it as a shift and a jump backwards, and the program goes on with that. So a place has to be known to be ARM code.
#include "runtime/link/instruction_set.h"

#include <optional>
#include <utility>

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/elf/arm_code.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

Result<void> check_instruction_set(const std::string &path, std::span<const unsigned long> offsets) {
    if (kHostArch != Arch::arm) return {};
    const sys::Mapping image = TRY(sys::map_file(path));
    const elf::Elf file = TRY(elf::Elf::parse(image.bytes(), path));
    for (const unsigned long offset : offsets) {
        const std::optional<uint64_t> address = file.address_of(offset);
        if (!address) continue; // the kernel says so
        const std::optional<bool> thumb = elf::is_thumb(file, *address);
        if (thumb == false) continue;
        std::string what =
            thumb ? format("{} at {:#x} is Thumb code, which Linux can't put a uprobe into", path, offset)
                  : format("{} at {:#x}: no symbol says whether this is ARM or Thumb code, and a uprobe in Thumb code "
                           "breaks the program",
                           path, offset);
        return Unexpected(make_error(Errc::unsupported, std::move(what), "compile it with -marm, and don't strip it"));
    }
    return {};
}

} // namespace rawbpf::inline v0
