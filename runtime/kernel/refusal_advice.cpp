// From "R7 invalid mem access 'map_value_or_null'" to "the lookup in line 9 wasn't compared with NULL".
//
// The verifier reports what it saw at one instruction. What a programmer has to change is often elsewhere: the call whose
// result may be NULL, the reservation that is never released, the comparison that proves one byte too few, the loop. All of
// that can be found in the log (the path, verifier_path.h), in the numbers of the message, and in the program. There is one
// function per sort of message, in a table by its words (kernel/bpf/verifier.c, 5.10 to 7.x). A message that can't be parsed
// keeps the general hint of verifier_hints.cpp.
#include "runtime/kernel/refusal_advice.h"

#include <algorithm>
#include <cstdlib>
#include <linux/bpf.h>

#include "asm/helpers.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0 {

using refusal::Case;

ProgramPlaces::ProgramPlaces(const ObjectSpec &spec, const ProgramSpec &program) : program_(program) {
    if (spec.btf.empty() || program.line_info.empty()) return;
    if (Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name)) types_ = std::move(*types);
}

ProgramPlace ProgramPlaces::at(const LineInfo &line) const {
    ProgramPlace out;
    const std::string_view file = types_->string(line.file).value_or(std::string_view());
    out.file = file.substr(file.rfind('/') + 1); // as the verifier prints it since 6.8
    out.line = line.number_column >> 10;
    out.column = line.number_column & 1023;
    out.source = types_->string(line.line).value_or(std::string_view());
    // The assembler's lines come without the blanks in front of the statement, compilers' with them.
    if (refusal::is_assembly(out.file) && out.column > 1 && !out.source.starts_with(' ') && !out.source.starts_with('\t'))
        out.source.insert(0, out.column - 1, ' ');
    while (!out.source.empty() && (out.source.back() == '\n' || out.source.back() == '\r')) out.source.pop_back();
    return out;
}

ProgramPlace ProgramPlaces::at(uint32_t insn, std::string_view instruction) const {
    ProgramPlace out;
    const LineInfo *best = nullptr, *real = nullptr; // real: not the compiler's own line 0
    for (const LineInfo &line : program_.line_info) {
        if (line.insn > insn) continue;
        if (!best || line.insn >= best->insn) best = &line;
        if (line.number_column >> 10 != 0 && (!real || line.insn >= real->insn)) real = &line;
    }
    if (best && real && best != real && function(best->insn) == function(real->insn)) best = real;
    if (types_ && best) out = at(*best);
    out.insn = static_cast<int>(insn);
    out.instruction = instruction;
    return out;
}

ProgramPlace ProgramPlaces::mentioning(uint32_t insn, std::string_view word) const {
    ProgramPlace here = at(insn);
    const auto has = [&](const ProgramPlace &place) {
        for (size_t i = place.source.find(word); i != std::string::npos; i = place.source.find(word, i + 1)) {
            const auto letter = [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
            };
            const size_t end = i + word.size();
            if ((i == 0 || !letter(place.source[i - 1])) && (end >= place.source.size() || !letter(place.source[end])))
                return true;
        }
        return false;
    };
    if (!types_ || has(here)) return here;
    const LineInfo *best = nullptr;
    for (const LineInfo &line : program_.line_info)
        if (line.insn >= insn && function(line.insn) == function(insn) && (!best || line.insn < best->insn) && has(at(line)))
            best = &line;
    if (!best) return here;
    ProgramPlace found = at(*best);
    found.insn = here.insn;
    return found;
}

std::string_view ProgramPlaces::function(uint32_t insn) const {
    const ProgramSpec::Subprogram *best = nullptr;
    for (const ProgramSpec::Subprogram &sub : program_.subprograms)
        if (sub.insn <= insn && (!best || sub.insn >= best->insn)) best = &sub;
    return best ? std::string_view(best->name) : std::string_view(program_.name);
}

namespace refusal {

std::string register_value(const Case &c, int reg) { return std::string(value_in(c.all_registers, reg)); }

std::string_view value_in(std::string_view registers, int reg) {
    const std::string name = format("R{}", reg);
    for (size_t at = registers.find(name); at != std::string_view::npos; at = registers.find(name, at + 1)) {
        if (at != 0 && registers[at - 1] != ' ') continue;
        std::string_view rest = registers.substr(at + name.size());
        if (rest.starts_with('_')) rest.remove_prefix(std::min(rest.find_first_of("= "), rest.size())); // R1_w=
        if (!rest.starts_with('=')) continue;
        rest.remove_prefix(1);
        size_t end = 0, depth = 0;
        while (end < rest.size() && (depth > 0 || rest[end] != ' ')) {
            if (rest[end] == '(') ++depth;
            if (rest[end] == ')' && depth > 0) --depth;
            ++end;
        }
        return rest.substr(0, end);
    }
    return {};
}

std::optional<int64_t> number_after(std::string_view text, std::string_view word) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        if (at > 0 && word[0] != ' ' && word[0] != '(' && word[0] != '_' &&
            ((text[at - 1] >= 'a' && text[at - 1] <= 'z') || text[at - 1] == '_'))
            continue;
        const std::string digits(text.substr(at + word.size(), 24));
        char *end = nullptr;
        const long long value = digits.starts_with("0x") ? static_cast<long long>(std::strtoull(digits.c_str(), &end, 16))
                                                         : std::strtoll(digits.c_str(), &end, 10);
        constexpr long long kMost = 1LL << 48; // sums of a few don't overflow
        if (end != digits.c_str()) return value > kMost || value < -kMost ? std::nullopt : std::optional<int64_t>(value);
    }
    return {};
}

int register_named(std::string_view reason) {
    for (size_t i = 0; i + 1 < reason.size(); ++i)
        if (reason[i] == 'R' && reason[i + 1] >= '0' && reason[i + 1] <= '9' && (i == 0 || reason[i - 1] == ' ')) {
            const int first = reason[i + 1] - '0';
            if (i + 2 < reason.size() && first == 1 && reason[i + 2] == '0') return 10;
            return first;
        }
    return -1;
}

void forget_register(Case &c, int reg) {
    const std::string gone = format("R{}={}", reg, value_in(c.refusal.registers, reg));
    const size_t at = c.refusal.registers.find(gone);
    if (at == std::string::npos) return;
    c.refusal.registers.erase(at, gone.size() + 1);
    while (c.refusal.registers.ends_with(' ')) c.refusal.registers.pop_back();
}

const Insn *Case::insn() const { return insn_at(refusal.at.insn); }

const Insn *Case::insn_at(int64_t at) const {
    return at >= 0 && static_cast<size_t>(at) < program.insns.size() ? &program.insns[static_cast<size_t>(at)] : nullptr;
}

std::string Case::called(uint32_t at) const {
    const Insn *call = insn_at(at);
    if (!call || call->code != (BPF_JMP | BPF_CALL)) return {};
    if (call->src == 0) {
        const HelperInfo *helper = find_helper(call->imm);
        return helper ? format("bpf_{}", helper->name) : std::string();
    }
    for (const Fixup &fixup : program.fixups)
        if (fixup.insn == at && fixup.kind == Fixup::Kind::kfunc) return fixup.symbol;
    return {};
}

void Case::note(std::string text) { refusal.notes.push_back({std::move(text), {}}); }

void Case::note_at(uint32_t insn, std::string text) {
    std::string_view instruction;
    for (const PathStep &step : path)
        if (step.insn == insn) instruction = step.text;
    refusal.notes.push_back({std::move(text), places.at(insn, instruction)});
}

Origin Case::origin(int reg) const { return origin_of(path, path.empty() ? 0 : path.size() - 1, program.insns, reg); }

bool Case::ends_here() const { return !path.empty() && static_cast<int>(path.back().insn) == refusal.at.insn; }

} // namespace refusal

void advise(const ProgramSpec &program, const ProgramPlaces &places, std::string_view log, const RefusalContext &context,
            Refusal &refusal) {
    Case c{program, places, context, refusal, verifier_path(log), context.registers};
    for (const refusal::Adviser &adviser : refusal::advisers())
        if (refusal.reason.find(adviser.words) != std::string::npos && adviser.advise(c)) break;
}

} // namespace rawbpf::inline v0
