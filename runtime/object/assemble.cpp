// Programs out of functions.
//
// The kernel takes one program at a time, as one run of instructions, so every function that a program calls is copied behind
// it and the calls are aimed anew:
//
//      .text:              walk  helper            each called from several programs
//      section "xdp":      prog
//
//      program "prog":   [ prog ... | walk ... | helper ... ]
//                            call ------^   call---^            imm = target - (own position + 1)
//
// The order is libbpf's: a function is appended when the first call to it is met, and its own calls are followed before the
// caller goes on. With the same order the final instructions can be compared with libbpf's one to one. What belongs to a
// function (relocations, func_info, line_info) moves along. The kernel wants func_info and line_info for all functions of a
// program or for none, so one function without them makes the whole program go without.
//
// A switch by jump table reads where to go on from an instruction array, which the loader makes. The file has a table's places
// in bytes of the function's section; a program has them as its own instructions, so that a function that is copied into two
// programs has a table in each.
//
// Hostile input: call chains are followed with a stack of our own, and the copies are counted against a budget, since a small
// file can ask for many copies of much code.
#include <linux/bpf.h>

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/object/code.h"
#include "runtime/object/sections.h"

namespace rawbpf::inline v0::object {

namespace {

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr uint64_t kBudget = 24 << 20; // bytes of program data an object may come to; large real ones stay under 8 MiB
constexpr uint8_t kCall = BPF_JMP | BPF_CALL;
constexpr uint32_t kSleepable = 1u << 4; // BPF_F_SLEEPABLE, 5.10
constexpr uint32_t kXdpFrags = 1u << 5;  // BPF_F_XDP_HAS_FRAGS, 5.18

bool is_code_ref(CodeRef::Kind kind) { return kind == CodeRef::Kind::call || kind == CodeRef::Kind::function; }
bool wants_call(CodeRef::Kind kind) { return kind == CodeRef::Kind::call || kind == CodeRef::Kind::kfunc; }

// Most programs are one function: their lists get no more memory than that needs.
template <class T> void append_shifted(std::vector<T> &to, std::span<const T> from, int64_t shift) {
    if (to.empty()) to.reserve(from.size());
    for (const T &item : from) {
        to.push_back(item);
        to.back().insn = static_cast<uint32_t>(item.insn + shift);
    }
}

} // namespace

const Code *find_code(std::span<const Code> functions, uint32_t section, uint64_t insn) {
    auto after =
        std::upper_bound(functions.begin(), functions.end(), std::pair(section, insn), [](const auto &place, const Code &code) {
            return place.first != code.section ? place.first < code.section : place.second < code.start;
        });
    if (after == functions.begin()) return nullptr;
    const Code &code = *(after - 1);
    return code.section == section && insn - code.start < code.count() ? &code : nullptr;
}

void classify(ProgramSpec &program, std::string_view section) {
    program.autoload = !section.starts_with('?');
    if (!program.autoload) section.remove_prefix(1);
    program.section = section;
    const SectionKind *kind = find_section_kind(section);
    if (!kind) return;
    program.type = static_cast<uint32_t>(kind->type);
    program.expected_attach_type = static_cast<uint32_t>(kind->attach_type);
    program.attach_target = section_target(*kind, section);
    program.needs_attach_btf = needs_attach_btf(*kind);
    program.sleepable = kind->sleepable;
    program.flags = (kind->sleepable ? kSleepable : 0) | (kind->xdp_frags ? kXdpFrags : 0);
}

std::string data_map_name(std::string_view object, std::string_view section) {
    constexpr size_t kMost = 15;
    const std::string_view stem = object.substr(object.rfind('/') + 1).substr(0, kMost);
    const size_t suffix = std::min(std::max<size_t>(7, section.size()), kMost);
    const bool custom = section.find('.', 1) != std::string_view::npos;
    std::string name(custom ? std::string_view() : stem.substr(0, stem.find('.')).substr(0, kMost - suffix));
    name += section.substr(0, suffix);
    for (char &c : name)
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.')) c = '_';
    return name;
}

Assembler::Assembler(std::string_view what, std::span<const Code> functions, std::span<const ExternSpec> externs)
    : what_(what), functions_(functions), externs_(externs), placed_(functions.size(), kNowhere),
      tables_(functions.empty() ? 0 : functions[0].tables.size(), kNowhere) {}

Unexpected Assembler::too_large(const Code &code) const {
    return fail(Errc::bad_input, "{}: function {}: the programs of this object have more than {} MiB in all", what_, code.name,
                kBudget >> 20);
}

/// The program's own copy of a jump table, made when the function first refers to it.
Result<uint32_t> Assembler::add_table(const Code &code, const CodeRef &ref, uint32_t base, ProgramSpec &program) {
    uint32_t &known = tables_[ref.index];
    if (known != kNowhere) return known;
    const Bytes table = code.tables[ref.index];
    total_ += table.size();
    if (total_ > kBudget) return too_large(code);
    std::vector<uint32_t> places;
    places.reserve(table.size() / sizeof(uint64_t));
    for (size_t at = 0; at < table.size(); at += sizeof(uint64_t)) {
        const uint64_t place = load<uint64_t>(table.data() + at), insn = place / sizeof(Insn);
        if (place % sizeof(Insn) || insn < code.start || insn - code.start >= code.count())
            return fail(Errc::bad_input,
                        "{}: function {}: instruction {}: entry {} of its jump table leads to byte {:#x} of the section, which "
                        "isn't an instruction of the function",
                        what_, code.name, ref.insn - code.start, at / sizeof(uint64_t), place);
        places.push_back(base + static_cast<uint32_t>(insn) - code.start);
    }
    known = static_cast<uint32_t>(program.jump_tables.size());
    program.jump_tables.push_back(std::move(places));
    return known;
}

/// Copies one function to the end of the program, with everything that needs no other function's place.
Result<void> Assembler::append(uint32_t function, ProgramSpec &program) {
    const Code &code = functions_[function];
    const uint32_t base = static_cast<uint32_t>(program.insns.size());
    const int64_t shift = int64_t(base) - code.start;

    total_ += sizeof(ProgramSpec::Subprogram) + code.name.size() + code.insns.size() + code.refs.size() * sizeof(Fixup) +
              code.core.size() * sizeof(CoreRelocation) + code.fields.size() * sizeof(FieldReference) +
              code.line_info.size() * sizeof(LineInfo);
    for (const CoreRelocation &relocation : code.core) total_ += relocation.access.size();
    if (total_ > kBudget) return too_large(code);

    placed_[function] = base;
    order_.push_back(function);
    program.subprograms.push_back({base, std::string(code.name)});
    program.insns.resize(base + code.count());
    std::memcpy(program.insns.data() + base, code.insns.data(), code.insns.size());
    append_shifted(program.core_relocations, code.core, shift);
    append_shifted(program.field_references, code.fields, shift);

    func_info_ = func_info_ && !code.func_info.empty() && code.func_info[0].insn == code.start;
    line_info_ = line_info_ && !code.line_info.empty() && code.line_info[0].insn == code.start;
    if (func_info_) append_shifted(program.func_info, code.func_info, shift);
    if (line_info_) append_shifted(program.line_info, code.line_info, shift);

    if (program.fixups.empty()) program.fixups.reserve(code.refs.size());
    for (const CodeRef &ref : code.refs) {
        const uint32_t local = ref.insn - code.start;
        Insn &insn = program.insns[base + local];
        if (wants_call(ref.kind) ? insn.code != kCall : !is_wide(insn) || local + 1 >= code.count())
            return fail(Errc::bad_input, "{}: function {}: instruction {}: it has a relocation, which opcode {:#x} can't hold",
                        what_, code.name, local, insn.code);
        if (is_code_ref(ref.kind)) continue;

        Fixup fixup;
        fixup.insn = base + local;
        switch (ref.kind) {
        case CodeRef::Kind::map:
            fixup.kind = Fixup::Kind::map_fd;
            fixup.map = ref.index;
            insn.src = BPF_PSEUDO_MAP_FD;
            insn.imm = 0;
            break;
        case CodeRef::Kind::map_value:
            fixup.kind = Fixup::Kind::map_value;
            fixup.map = ref.index;
            fixup.offset = ref.offset;
            insn.src = BPF_PSEUDO_MAP_VALUE;
            insn.imm = 0;
            (&insn)[1].imm = static_cast<int32_t>(ref.offset);
            break;
        case CodeRef::Kind::table:
            fixup.kind = Fixup::Kind::jump_table;
            fixup.map = TRY(add_table(code, ref, base, program));
            fixup.offset = ref.offset;
            insn.src = BPF_PSEUDO_MAP_VALUE;
            insn.imm = 0;
            (&insn)[1].imm = static_cast<int32_t>(ref.offset);
            break;
        default: {
            const ExternSpec &external = externs_[ref.index];
            fixup.kind = ref.kind == CodeRef::Kind::kfunc ? Fixup::Kind::kfunc : Fixup::Kind::ksym;
            fixup.symbol = external.name;
            fixup.weak = external.weak;
            fixup.external = ref.index;
            fixup.function = external.is_function;
            fixup.type = external.type;
            if (ref.kind == CodeRef::Kind::kfunc) insn.src = BPF_PSEUDO_KFUNC_CALL;
        }
        }
        program.fixups.push_back(std::move(fixup));
    }
    for (const CodeRef &ref : code.refs)
        if (ref.kind == CodeRef::Kind::table) tables_[ref.index] = kNowhere;
    return {};
}

/// Static functions of the same section are called without a relocation: imm counts from the next instruction of the section.
Result<uint32_t> Assembler::callee_of(const Code &caller, uint32_t insn, int32_t imm) const {
    const int64_t target = int64_t(insn) + imm + 1;
    const Code *callee = target < 0 ? nullptr : find_code(functions_, caller.section, static_cast<uint64_t>(target));
    if (!callee || callee->start != target)
        return fail(Errc::bad_input,
                    "{}: function {}: instruction {}: calls instruction {} of its section, where no function starts", what_,
                    caller.name, insn - caller.start, target);
    return static_cast<uint32_t>(callee - functions_.data());
}

/// Follows the calls of a function that was appended just now, and those of what it calls.
Result<void> Assembler::append_callees(uint32_t function, ProgramSpec &program) {
    std::vector<Step> stack = {{function, functions_[function].start, 0}};
    while (!stack.empty()) {
        Step &step = stack.back();
        const Code &code = functions_[step.function];
        const uint32_t end = code.start + code.count();
        uint32_t called = kNowhere; // a function appended just now: it goes first
        while (step.next_insn < end && called == kNowhere) {
            const uint32_t number = step.next_insn;
            const uint32_t here = placed_[step.function] + number - code.start;
            const Insn insn = program.insns[here];
            step.next_insn += is_wide(insn) ? 2 : 1;
            if (insn.code != kCall && !is_wide(insn)) continue;
            while (step.next_ref < code.refs.size() && code.refs[step.next_ref].insn < number) ++step.next_ref;
            const CodeRef *ref =
                step.next_ref < code.refs.size() && code.refs[step.next_ref].insn == number ? &code.refs[step.next_ref] : nullptr;

            uint32_t target;
            if (ref && is_code_ref(ref->kind))
                target = ref->index;
            else if (!ref && insn.code == kCall && insn.src == BPF_PSEUDO_CALL)
                target = TRY(callee_of(code, number, insn.imm));
            else if (!ref && is_wide(insn) && insn.src == BPF_PSEUDO_FUNC)
                return fail(Errc::bad_input,
                            "{}: function {}: instruction {}: it takes the address of a function without a relocation", what_,
                            code.name, number - code.start);
            else
                continue;

            if (placed_[target] == kNowhere) {
                TRY(append(target, program));
                called = target;
            }
            Insn &patched = program.insns[here];
            patched.src = is_wide(patched) ? BPF_PSEUDO_FUNC : BPF_PSEUDO_CALL;
            patched.imm = static_cast<int32_t>(int64_t(placed_[target]) - here - 1);
        }
        if (called != kNowhere)
            stack.push_back({called, functions_[called].start, 0});
        else
            stack.pop_back();
    }
    return {};
}

Result<void> Assembler::assemble(uint32_t entry, ProgramSpec &program, uint32_t exception_callback) {
    for (uint32_t function : order_) placed_[function] = kNowhere;
    order_.clear();
    func_info_ = line_info_ = true;

    TRY(append(entry, program));
    TRY(append_callees(entry, program));
    if (exception_callback != kNone && placed_[exception_callback] == kNowhere) {
        TRY(append(exception_callback, program));
        TRY(append_callees(exception_callback, program));
    }
    if (!func_info_) program.func_info.clear();
    if (!line_info_) program.line_info.clear();
    return {};
}

} // namespace rawbpf::inline v0::object
