// USDT probes in the form that programs made for libbpf expect. Private to this folder. PURE: bytes in, values out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/elf/elf.h"
#include "runtime/usdt/arguments.h"

namespace rawbpf::inline v0 {

/// One place where a probe stands.
struct UsdtSite {
    uint64_t offset = 0;    ///< of the nop, in the file
    uint64_t address = 0;   ///< of the nop, as linked
    uint64_t semaphore = 0; ///< file offset of the counter, 0: none
    std::string arguments;  ///< "-4@%eax 8@-96(%rbp)"
};

/// The sites of provider:name, by offset, each place once. Errors: not_found (with the nearest names), unsupported (32-bit,
/// big-endian), bad_input.
[[nodiscard]] Result<std::vector<UsdtSite>> find_usdt_sites(const elf::Elf &elf, std::string_view provider,
                                                            std::string_view name);

/// Sites whose nop has one of 10 bytes behind it (libbpf's usdt.h since May 2026) move to that one, on x86_64. A program that
/// stands on it sees the same registers, and the kernel (7.2) puts a call there instead of a trap. Those with a 5-byte nop stay:
/// 6.18 would put a call there too, which writes over what a function without a frame keeps below its stack pointer. `image`: the
/// file that `sites` are of.
void take_long_nops(Bytes image, uint16_t machine, std::vector<UsdtSite> &sites);

/// struct __bpf_usdt_spec of libbpf's usdt.bpf.h: what bpf_usdt_arg() goes by. Programs carry its layout in them, so it can't
/// change any more; SIB came with libbpf 1.7, in bits that older headers take for a kind that they don't know.
struct UsdtSpec {
    static constexpr uint32_t kMostArguments = 12;
    enum Kind : uint32_t {
        constant = 0,    ///< value
        in_register = 1, ///< the register
        in_memory = 2,   ///< *(register + value)
        indexed = 3,     ///< *(register + (index register << scale) + value)
        unreadable = 255 ///< no header knows it: bpf_usdt_arg() gives -EINVAL
    };
    struct Argument {
        uint64_t value = 0;
        uint32_t where = constant;   ///< Kind, index register's offset << 8, scale << 20
        int16_t register_offset = 0; ///< in struct pt_regs
        bool is_signed = false;
        int8_t shift = 0; ///< 64 - bits
    };
    Argument arguments[kMostArguments];
    uint64_t cookie = 0;
    int16_t count = 0;
    uint8_t padding[6] = {};
};
static_assert(sizeof(UsdtSpec::Argument) == 16 && sizeof(UsdtSpec) == 208);

/// A site's arguments in that layout. What it has no words for (floating point, an index of 32 bits), what nobody can fetch and
/// more than twelve are marked unreadable, with a sentence in `notes`. Never fails: a program that doesn't ask for such an
/// argument runs.
[[nodiscard]] UsdtSpec usdt_spec(const std::vector<usdt::Argument> &arguments, std::vector<std::string> &notes);
/// The same from the text, for a machine (EM_X86_64, EM_AARCH64); with `elf` also for what lies at a symbol's address, of a probe
/// that is attached at `site`.
[[nodiscard]] UsdtSpec read_usdt_arguments(std::string_view arguments, uint16_t machine, std::vector<std::string> &notes,
                                           const elf::Elf *elf = nullptr, uint64_t site = 0);

} // namespace rawbpf::inline v0
