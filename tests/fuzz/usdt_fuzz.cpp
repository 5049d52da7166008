// USDT: hostile files with notes, and hostile argument specs for every machine; all that is made of them, instructions included.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <elf.h>

#include "programs/usdt/fetch.h"
#include "runtime/usdt/nop.h"
#include "runtime/usdt/notes.h"

using namespace rawbpf;

namespace {

void look_at(const usdt::Argument &argument, std::string_view all) {
    if (argument.spec.data() < all.data() || argument.spec.data() + argument.spec.size() > all.data() + all.size()) std::abort();
    const bool can = argument.problem.empty();
    if (can &&
        (argument.size == 0 || argument.location.kind == usdt::OperandKind::unknown || !argument.location.has_displacement))
        std::abort();
    if (can && usdt::location_text(argument).empty()) std::abort();
    const std::vector<std::string> instructions = usdt::explain_argument(argument);
    if (can == instructions.empty()) std::abort();
    for (const std::string &line : instructions)
        if (line.find("fetch.cpp") != std::string::npos) std::abort(); // a complaint of the builder's
}

void specs(std::string_view text, uint16_t machine, size_t most) {
    size_t count = 0;
    for (const usdt::Argument &argument : usdt::parse_arguments(text, machine))
        if (count++ < most) look_at(argument, text);
    if (count > text.size()) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes image{reinterpret_cast<const std::byte *>(data), size};
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    if (!text.starts_with("\177ELF"))
        for (uint16_t machine : {EM_X86_64, EM_386, EM_AARCH64, EM_RISCV, EM_S390, EM_MIPS}) specs(text, machine, 8);
    Result<elf::Elf> elf = elf::Elf::parse(image, "fuzz");
    if (!elf) return 0;
    Result<usdt::Notes> notes = usdt::read_notes(*elf);
    if (!notes) return 0;
    if (notes->sites.size() + notes->problems.size() > size) std::abort();
    std::vector<std::vector<usdt::Argument>> arguments;
    std::vector<usdt::AtSite> all;
    for (const usdt::Site &site : notes->sites) {
        arguments.push_back(usdt::parse_arguments(site.arguments, elf->machine()));
        if (arguments.size() == 8) break;
    }
    for (size_t i = 0; i < arguments.size(); ++i)
        for (usdt::Argument &argument : arguments[i]) all.push_back({&argument, notes->sites[i].address});
    usdt::resolve(*elf, all);
    for (size_t i = 0; i < std::min<size_t>(all.size(), 8); ++i) look_at(*all[i].argument, text);
    for (const usdt::Site &site : notes->sites)
        if (const elf::Segment *segment = usdt::segment_at(*elf, site.address, 2)) {
            const uint64_t offset = segment->offset + (site.address - segment->address);
            if (offset < size) (void)usdt::nop_at(image.subspan(offset), elf->machine(), elf->big_endian());
        }
    return 0;
}
