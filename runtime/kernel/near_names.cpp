// Near names from the kernel's own types. A mistyped member is compared with those of the struct, including members of
// anonymous structs and unions in it; a mistyped kernel function with all FUNCs, of which a kernel has some 60,000. A name
// whose length alone is too different isn't compared (asm/nearest.h), so that this takes milliseconds, and it happens only
// when a load has failed.
#include "runtime/kernel/near_names.h"

#include "asm/nearest.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {
namespace {

using btf::Kind;

constexpr int kDeepest = 8;

void offer_members(Nearest &near, const btf::Btf &kernel, btf::TypeId id, int depth) {
    const Result<btf::Type> type = kernel.resolve(id);
    if (!type || depth > kDeepest) return;
    const bool aggregate = type->kind == Kind::struct_ || type->kind == Kind::union_;
    const bool enumeration = type->kind == Kind::enum_ || type->kind == Kind::enum64;
    for (uint32_t i = 0; i < type->vlen && (aggregate || enumeration); ++i) {
        if (enumeration) {
            if (const auto value = kernel.enum_value(*type, i)) near.offer(value->name);
            continue;
        }
        const auto member = kernel.member(*type, i);
        if (!member) return;
        if (member->name.empty())
            offer_members(near, kernel, member->type, depth + 1);
        else
            near.offer(member->name);
    }
}

// Names of that kind that begin with the prefix, from their character `from` on.
void offer_types(Nearest &near, const btf::Btf &kernel, Kind kind, std::string_view prefix, size_t from) {
    for (btf::TypeId id = kernel.first_id(); id < kernel.end_id(); ++id) {
        const auto type = kernel.type(id);
        if (!type) break;
        if (type->kind == kind && type->name.starts_with(prefix)) near.offer(type->name.substr(from));
    }
}

} // namespace

std::string near_kernel_function(const btf::Btf &kernel, std::string_view name) {
    const std::string_view prefix = name.starts_with("bpf_") ? "bpf_" : "";
    Nearest near(name);
    offer_types(near, kernel, Kind::func, prefix, 0);
    return near.hint();
}

std::string near_target(const btf::Btf &kernel, btf::Kind kind, std::string_view prefix, std::string_view name) {
    Nearest near(name);
    offer_types(near, kernel, kind, prefix, prefix.size());
    return near.hint();
}

std::string near_member(const btf::Btf &kernel, std::string_view why) {
    constexpr std::string_view kWords[] = {" has no field ", " has no value "};
    for (std::string_view words : kWords) {
        const size_t at = why.find(words);
        if (at == std::string_view::npos) continue;
        const std::string_view owner = why.substr(0, at), name = why.substr(at + words.size());
        const size_t blank = owner.find(' ');
        if (blank == std::string_view::npos) return {};
        const std::string_view kind = owner.substr(0, blank), of = owner.substr(blank + 1);
        Nearest near(name);
        for (const Kind which : {Kind::struct_, Kind::union_, Kind::enum_, Kind::enum64})
            if (btf::kind_name(which) == kind || (which == Kind::enum64 && kind == "enum"))
                if (const std::optional<btf::TypeId> id = kernel.find(of, which)) offer_members(near, kernel, *id, 0);
        return near.hint();
    }
    return {};
}

namespace {

struct Registers {
    std::string_view type, member; ///< no member: the type itself is enough
    std::string_view machine, define;
};
// What marks one machine's registers among all; of user_pt_regs those who have it are told apart by nothing.
constexpr Registers kRegisters[] = {
    {"user_pt_regs", "", "aarch64", "arm64"},
    {"user_pt_regs", "", "s390x", "s390"},
    {"user_pt_regs", "", "loongarch64", "loongarch"},
    {"pt_regs", "di", "x86_64", "x86"},
    {"pt_regs", "si", "x86_64", "x86"},
    {"pt_regs", "dx", "x86_64", "x86"},
    {"pt_regs", "cx", "x86_64", "x86"},
    {"pt_regs", "ax", "x86_64", "x86"},
    {"pt_regs", "ip", "x86_64", "x86"},
    {"pt_regs", "r8", "x86_64", "x86"},
    {"pt_regs", "r9", "x86_64", "x86"},
    {"pt_regs", "r10", "x86_64", "x86"},
    {"pt_regs", "bp", "x86_64", "x86"},
    {"pt_regs", "regs", "aarch64", "arm64"},
    {"pt_regs", "gpr", "ppc64le", "powerpc"},
    {"pt_regs", "uregs", "arm", "arm"},
    {"pt_regs", "gprs", "s390x", "s390"},
    {"pt_regs", "a0", "riscv64", "riscv"},
    {"user_regs_struct", "a0", "riscv64", "riscv"},
};
constexpr std::string_view define_of(std::string_view machine) {
    for (const Registers &row : kRegisters)
        if (row.machine == machine) return row.define;
    return {};
}

} // namespace

std::string registers_of_another_machine(std::string_view why, std::string_view here) {
    constexpr std::string_view kStruct = "struct ", kField = " has no field ";
    if (!why.starts_with(kStruct)) return {};
    why.remove_prefix(kStruct.size());
    const std::string_view type = why.substr(0, why.find(' '));
    std::string_view member;
    if (const size_t at = why.find(kField); at != std::string_view::npos) {
        member = why.substr(at + kField.size());
        member = member.substr(0, member.find_first_of(".["));
    }
    std::string machines;
    for (const Registers &row : kRegisters) {
        if (row.type != type || (!row.member.empty() && row.member != member)) continue;
        if (row.machine == here) return {}; // it is this machine's: something else is wrong
        append(machines, "{}{}", machines.empty() ? "" : ", ", row.machine);
    }
    if (machines.empty()) return {};
    const std::string_view define = define_of(here);
    return format("{} holds registers of {}, and this machine is {}: compile the object for it{}",
                  member.empty() ? format("struct {}", type) : format("{} of struct {}", member, type), machines, here,
                  define.empty() ? std::string() : format(", with -D__TARGET_ARCH_{}", define));
}

} // namespace rawbpf::inline v0
