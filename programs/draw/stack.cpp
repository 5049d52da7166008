// Two sources:
//
//      *(u32 *)(r10 - 4) = 0       an instruction that names r10: offset and size are in it
//      call bpf_map_lookup_elem    r2 was fp-4 then, by the verifier's walk: what is there is the key of the map in r1
//
// What an argument means is in the helper's prototype (asm/helpers.def): `const void *key` beside `void *map` is a key of that
// map, which the map's BTF may describe; an address beside a number is memory of that size.
#include "programs/draw/stack.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "asm/helpers.h"
#include "asm/kinds.h"
#include "runtime/base/format.h"
#include "runtime/btf/btf.h"
#include "runtime/btf/print_c.h"

namespace rawbpf::inline v0::draw {

namespace {

constexpr uint8_t kFrameRegister = 10;
constexpr unsigned kAtomic = 0xc0;

// Where a pointer to a stack points.
struct StackPlace {
    uint32_t frame = 0; // 0: the program's own, 1: of a function that it called, ...
    int32_t offset = 0;
};

// "fp-24" -> -24 of frame 0; "fp[1]-4" -> -4 of frame 1; "fp0" -> 0.
std::optional<StackPlace> place_of(std::string_view value) {
    StackPlace out;
    const auto read = [&](auto &into) {
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
        value.remove_prefix(static_cast<size_t>(end - value.data()));
        return error == std::errc();
    };
    if (!value.starts_with("fp")) return std::nullopt;
    value.remove_prefix(2);
    if (value.starts_with("[")) {
        value.remove_prefix(1);
        if (!read(out.frame) || !value.starts_with("]")) return std::nullopt;
        value.remove_prefix(1);
    }
    if (!read(out.offset) || !value.empty()) return std::nullopt;
    return out;
}

std::optional<uint32_t> number(std::string_view value) {
    uint32_t out = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size()) return std::nullopt;
    return out;
}

// What the verifier knew of a register before a step.
std::string_view value_before(const explain::Trace &trace, uint32_t step, int reg) {
    const unsigned frame = trace.steps[step].frame;
    for (uint32_t at = trace.steps[step].parent; at != 0; at = trace.steps[at].parent) {
        const explain::TraceStep &one = trace.steps[at];
        for (uint32_t n = 0; n < one.known_count; ++n)
            if (trace.known[one.known + n].place == reg && trace.known[one.known + n].frame == frame)
                return trace.known[one.known + n].text;
    }
    return reg == kFrameRegister ? std::string_view("fp0") : std::string_view();
}

uint32_t access_size(const Insn &insn) {
    switch (insn.code & 0x18u) {
    case 0x00: return 4;
    case 0x08: return 2;
    case 0x10: return 1;
    default: return 8;
    }
}

struct Stacks {
    const explain::Explanation &e;
    std::vector<ProgramSpec::Subprogram> functions;
    std::vector<std::vector<Slot>> slots;
    std::optional<btf::Btf> types;

    // The slot of the function that the instruction is in; nullptr: it is no part of the stack, which the verifier refuses.
    Slot *slot(uint32_t insn, int32_t offset, uint32_t size) {
        if (offset >= 0 || offset < -512) return nullptr;
        size_t which = functions.size() - 1;
        while (which > 0 && functions[which].insn > insn) --which;
        std::vector<Slot> &of = slots[which];
        const auto at =
            std::find_if(of.begin(), of.end(), [&](const Slot &one) { return one.offset == offset && one.size == size; });
        return at != of.end() ? &*at : &of.emplace_back(Slot{offset, size, {}, {}, {}});
    }
    // An instruction of the function whose frame that is, seen from a step.
    uint32_t owner(uint32_t step, uint32_t frame) const {
        uint32_t at = step;
        while (e.trace.steps[at].frame != frame && e.trace.steps[at].parent) at = e.trace.steps[at].parent;
        return e.trace.steps[at].insn;
    }
    void mean(uint32_t insn, int32_t offset, uint32_t size, std::string text) {
        Slot *at = slot(insn, offset, size);
        if (at && std::find(at->meanings.begin(), at->meanings.end(), text) == at->meanings.end())
            at->meanings.push_back(std::move(text));
    }

    std::string type_text(btf::TypeId id, uint32_t size) const {
        if (!types || id == 0) return format("{} bytes", size);
        return btf::describe(*types, id);
    }

    // "counts", of the map in an argument.
    const MapSpec *map_in(std::string_view value) const {
        const size_t at = value.find("map=");
        if (at == std::string_view::npos) return nullptr;
        const std::string_view rest = value.substr(at + 4), name = rest.substr(0, rest.find_first_of(",)"));
        for (const MapSpec &map : e.spec.maps)
            if (map.name == name) return &map;
        return nullptr;
    }

    void memory(uint32_t insn, const Insn &at, uint32_t step) {
        const unsigned kind = at.code & 7u, mode = at.code & 0xe0u;
        const bool load = kind == 1, store = kind == 2 || kind == 3;
        if ((!load && !store) || (mode != 0x60 && mode != 0x80 && mode != kAtomic)) return; // MEM, MEMSX, ATOMIC
        const uint8_t base = load ? at.src : at.dst;
        std::optional<StackPlace> from = base == kFrameRegister ? std::optional<StackPlace>(StackPlace{}) : std::nullopt;
        uint32_t whose = insn;
        if (!from && step) {
            from = place_of(value_before(e.trace, step, base));
            if (from) whose = owner(step, from->frame);
        }
        if (!from) return;
        Slot *one = slot(whose, from->offset + at.off, access_size(at));
        if (!one) return;
        if (load || mode == kAtomic) one->readers.push_back(insn);
        if (!load) one->writers.push_back(insn);
    }

    void call(uint32_t insn, const Insn &at, uint32_t step) {
        const HelperInfo *helper = at.code == 0x85 && at.src == 0 ? find_helper(at.imm) : nullptr;
        if (!helper || !step) return;
        const MapSpec *map = nullptr;
        for (int reg = 1; reg <= 5; ++reg) {
            std::string_view argument = helper->argument(reg);
            if (argument.empty()) break;
            argument.remove_prefix(std::min(argument.find_last_of(" *") + 1, argument.size()));
            const std::string_view value = value_before(e.trace, step, reg);
            if (argument == "map") map = map_in(value);
            const std::optional<StackPlace> to = place_of(value);
            if (!to || to->offset >= 0) continue;
            const uint32_t whose = owner(step, to->frame);
            if (map && argument == "key")
                mean(whose, to->offset, map->key_size,
                     format("key of {}: {}", map->name, type_text(map->key_type, map->key_size)));
            else if (map && argument == "value")
                mean(whose, to->offset, map->value_size,
                     format("value of {}: {}", map->name, type_text(map->value_type, map->value_size)));
            else
                mean(whose, to->offset, size_beside(step, reg), format("bpf_{}({}) by {}", helper->name, argument, insn));
        }
    }

    // The size of the memory in an argument is in one beside it.
    uint32_t size_beside(uint32_t step, int reg) const {
        for (const int other : {reg + 1, reg - 1})
            if (other >= 1 && other <= 5)
                if (const std::optional<uint32_t> size = number(value_before(e.trace, step, other)); size && *size <= 512)
                    return *size;
        return 0;
    }
};

} // namespace

std::vector<ProgramSpec::Subprogram> functions_of(const ProgramSpec &program) {
    std::vector<ProgramSpec::Subprogram> out = program.subprograms;
    if (out.empty() || out.front().insn != 0) out.insert(out.begin(), {0, program.name});
    return out;
}

std::vector<std::vector<Slot>> stack_of(const explain::Explanation &e) {
    Stacks stacks{e, functions_of(e.program), {}, {}};
    stacks.slots.resize(stacks.functions.size());
    if (!e.spec.btf.empty())
        if (Result<btf::Btf> parsed = btf::Btf::parse(e.spec.btf, e.spec.name)) stacks.types = std::move(*parsed);
    std::vector<uint32_t> first(e.program.insns.size()); // the step that looked at an instruction first
    for (uint32_t n = static_cast<uint32_t>(e.trace.steps.size()); n-- > 1;)
        if (e.trace.steps[n].insn < first.size()) first[e.trace.steps[n].insn] = n;
    for (uint32_t i = 0; i < e.program.insns.size(); i += is_wide(e.program.insns[i]) ? 2 : 1) {
        stacks.memory(i, e.program.insns[i], first[i]);
        stacks.call(i, e.program.insns[i], first[i]);
    }
    for (std::vector<Slot> &of : stacks.slots)
        std::sort(of.begin(), of.end(),
                  [](const Slot &a, const Slot &b) { return a.offset != b.offset ? a.offset > b.offset : a.size < b.size; });
    return std::move(stacks.slots);
}

} // namespace rawbpf::inline v0::draw
