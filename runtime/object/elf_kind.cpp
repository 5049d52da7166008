// e_machine tells whose code it is (include/uapi/linux/elf-em.h). The assembler of GNU binutils for BPF wrote 0 once.
#include "runtime/object/elf_kind.h"

#include <elf.h>

#include <string>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {
namespace {

struct Machine {
    uint16_t number;
    std::string_view name;
};
constexpr Machine kMachines[] = {{EM_386, "32-bit x86"},   {EM_X86_64, "x86_64"}, {EM_ARM, "32-bit ARM"},
                                 {EM_AARCH64, "arm64"},    {EM_RISCV, "RISC-V"},  {EM_MIPS, "MIPS"},
                                 {EM_PPC64, "PowerPC 64"}, {EM_S390, "s390"},     {258, "LoongArch"}};

std::string whose(uint16_t machine) {
    for (const Machine &row : kMachines)
        if (row.number == machine) return format("has {} code", row.name);
    return format("has code of machine {}, and BPF is {}", machine, EM_BPF);
}

} // namespace

Result<void> check_elf_kind(const elf::Elf &elf, std::string_view name) {
    if (elf.machine() != EM_BPF && elf.machine() != EM_NONE)
        return Unexpected(make_error(Errc::bad_input, format("{}: it isn't a BPF object: it {}", name, whose(elf.machine())),
                                     "compile it for BPF: clang --target=bpf -O2 -g -c FILE.bpf.c"));
    if (!elf.is_64() || elf.big_endian())
        return Unexpected(make_error(Errc::unsupported,
                                     format("{}: a {}-bit {}-endian object; rawbpf reads only 64-bit little-endian ones", name,
                                            elf.is_64() ? 64 : 32, elf.big_endian() ? "big" : "little"),
                                     "clang --target=bpfel makes little-endian ones on every machine"));
    return {};
}

} // namespace rawbpf::inline v0
