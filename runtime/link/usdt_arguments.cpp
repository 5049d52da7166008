// A USDT probe's arguments in the form of libbpf's usdt.bpf.h: constants, registers, memory at a register or at the sum of
// two.
//
// runtime/usdt understands more arguments than this form can express. For the others a program gets -EINVAL, and the link has
// a note.
#include "runtime/base/format.h"
#include "runtime/link/usdt.h"

#include <algorithm>

namespace rawbpf::inline v0 {
namespace {

// False: there are no words for it.
bool tell(const usdt::Argument &argument, UsdtSpec::Argument &out) {
    const usdt::Location &l = argument.location;
    if (!argument.problem.empty() || argument.is_float || l.base.shift != 0) return false;
    const bool has_base = l.base.kind == usdt::RegisterKind::general;
    const unsigned bits = argument.size * 8U;
    out.is_signed = argument.is_signed;
    out.shift =
        static_cast<int8_t>(64 - (l.kind == usdt::OperandKind::in_register ? std::min<unsigned>(bits, l.base.bits) : bits));
    out.value = static_cast<uint64_t>(l.displacement);
    out.register_offset = l.base.offset;
    switch (l.kind) {
    case usdt::OperandKind::constant: out.where = UsdtSpec::constant; return true;
    case usdt::OperandKind::in_register:
        out.where = UsdtSpec::in_register;
        out.value = 0;
        return true;
    case usdt::OperandKind::in_memory:
        if (!has_base || l.base.bits != 64) return false;
        out.where = UsdtSpec::in_memory;
        if (l.index.kind == usdt::RegisterKind::none) return true;
        out.where = UsdtSpec::indexed | static_cast<uint32_t>(l.index.offset) << 8 | static_cast<uint32_t>(l.scale) << 20;
        return l.index.bits == 64;
    default: return false;
    }
}

} // namespace

UsdtSpec usdt_spec(const std::vector<usdt::Argument> &arguments, std::vector<std::string> &notes) {
    UsdtSpec out;
    for (const usdt::Argument &argument : arguments) {
        if (static_cast<uint32_t>(out.count) == UsdtSpec::kMostArguments) {
            notes.push_back(
                format("the probe has more than {} arguments, and a BPF program can't read the rest", UsdtSpec::kMostArguments));
            break;
        }
        UsdtSpec::Argument &to = out.arguments[out.count];
        if (!tell(argument, to)) {
            to = {0, UsdtSpec::unreadable, 0, false, 0};
            notes.push_back(format("a BPF program can't read argument {}: its location is \"{}\"", out.count, argument.spec));
        }
        ++out.count;
    }
    return out;
}

UsdtSpec read_usdt_arguments(std::string_view text, uint16_t machine, std::vector<std::string> &notes, const elf::Elf *elf,
                             uint64_t site) {
    std::vector<usdt::Argument> arguments = usdt::parse_arguments(text, machine);
    if (elf) {
        std::vector<usdt::AtSite> here;
        for (usdt::Argument &argument : arguments) here.push_back({&argument, site});
        usdt::resolve(*elf, std::move(here));
    }
    return usdt_spec(arguments, notes);
}

} // namespace rawbpf::inline v0
