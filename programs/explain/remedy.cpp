// Remedies that can be written down without knowing what the program is for.
//
//      null              compare the pointer with 0 behind the call that gave it
//      uninitialized     a value at the function's beginning, or in front of the exit
//      bounds            compare the offset with the greatest that fits, in front of the addition
//      packet            the constant that is added to the pointer which is compared with the end
//      alignment         the offset's next lower multiple of the size
//      stack             the address that a call is given, lower
//      license           the line that declares one
//      control-flow      an end
//
// In assembly the new branch leaves at once, by `r0 = 0` and `exit`, so that it needs no label. What was acquired on the way
// would leak by that; then nothing is proposed. For C, the variable's name is read from the line.
#include "programs/explain/remedy.h"

#include <optional>

#include "asm/print.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::explain {

namespace {

bool is_c(const ProgramPlace &at) { return at.file.ends_with(".c") || at.file.ends_with(".h"); }

// "__u64 *m = bpf_map_lookup_elem(...)" -> "m"
std::string assigned_name(std::string_view source) {
    const size_t equals = source.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 >= source.size() || source[equals + 1] == '=') return {};
    if (std::string_view("!<>+-*/|&^%").find(source[equals - 1]) != std::string_view::npos) return {};
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); };
    size_t end = equals;
    while (end > 0 && source[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && letter(source[begin - 1])) --begin;
    if (begin == end || source.substr(0, begin).find('(') != std::string_view::npos) return {};
    return std::string(source.substr(begin, end - begin));
}

std::string line_text(const ProgramPlace &at) {
    return at.line && !at.file.empty() ? format("{}:{}", at.file, at.line) : format("instruction {}", at.insn);
}

// Whatever is held on the path would leak where the program is left at once.
bool holds_something(const Trace &trace, const ProgramSpec &program, const std::vector<uint32_t> &path, size_t end) {
    for (size_t i = 0; i < end && i < path.size(); ++i) {
        const Insn &insn = program.insns[trace.steps[path[i]].insn];
        constexpr int kReserve = 131, kLock = 93; // bpf_ringbuf_reserve(), bpf_spin_lock()
        if (insn.code == 0x85 && (insn.src == 2 || (insn.src == 0 && (insn.imm == kReserve || insn.imm == kLock)))) return true;
    }
    return false;
}

uint32_t function_begin(const ProgramSpec &program, uint32_t insn) {
    uint32_t out = 0;
    for (const ProgramSpec::Subprogram &sub : program.subprograms)
        if (sub.insn <= insn && sub.insn > out) out = sub.insn;
    return out;
}

struct Writer {
    const Trace &trace;
    const ObjectSpec &spec;
    const ProgramSpec &program;
    const ProgramPlaces &places;
    const Refusal &refusal;
    const Chain &chain;
    const std::vector<uint32_t> &path;

    [[nodiscard]] Remedy insert(uint32_t before, std::vector<std::string> lines, std::string_view why) const {
        Remedy out;
        out.how = Remedy::How::insert;
        out.at = places.at(before);
        out.assembly = true;
        std::string all;
        for (const std::string &line : lines) append(all, "{}{}", all.empty() ? "" : "; ", line);
        out.text = format("in front of {}, {}: {}", line_text(out.at), why, all);
        out.lines = std::move(lines);
        return out;
    }
    [[nodiscard]] Remedy insert_c(const ProgramPlace &at, std::string line, std::string_view why) const {
        Remedy out;
        out.how = Remedy::How::append;
        out.at = at;
        out.text = format("behind {}, {}: `{}`", line_text(at), why, line);
        out.lines = {std::move(line)};
        return out;
    }

    Remedy null() const {
        if (chain.causes.empty() || chain.causes.front().kind != Cause::Kind::origin) return {};
        const Cause &origin = chain.causes.front();
        const Insn &at = program.insns[origin.insn];
        if (at.code != 0x85 || origin.insn + 1 >= program.insns.size()) return {};
        const ProgramPlace place = places.at(origin.insn);
        if (is_c(place)) {
            const std::string name = assigned_name(place.source);
            if (name.empty()) return {};
            return insert_c(place, format("if (!{}) return 0;", name), "leave where there is nothing");
        }
        if (holds_something(trace, program, path, origin.at)) return {};
        return insert(origin.insn + 1, {"if r0 != 0 goto +2", "r0 = 0", "exit"}, "leave where there is nothing");
    }

    Remedy uninitialized() const {
        const int reg = refusal::register_named(refusal.reason);
        if (reg < 0 || path.empty() || is_c(refusal.at)) return {};
        const uint32_t insn = trace.steps[path.back()].insn;
        if (program.insns[insn].code == 0x95) return insert(insn, {"r0 = 0"}, "give an answer");
        if (!chain.causes.empty() && chain.causes.front().text.find("clears") != std::string::npos) {
            // A call cleared it: what has to be kept goes to r6 to r9.
            return {};
        }
        const uint32_t begin = function_begin(program, insn);
        if (begin != 0 || reg == 1 || !zero_helps(static_cast<unsigned>(reg), insn)) return {};
        return insert(begin, {format("r{} = 0", reg)}, "give it a value");
    }

    // Whether a 0 in it, from the beginning on, gets the program past its refusal: it doesn't where an address is wanted.
    [[nodiscard]] bool zero_helps(unsigned reg, uint32_t insn) const {
        constexpr uint32_t kMostSteps = 100'000;
        verifier::VerifyOptions options;
        options.zeroed = static_cast<uint16_t>(1u << reg);
        options.most_steps = kMostSteps;
        size_t number = 0;
        while (number < spec.programs.size() && spec.programs[number].name != program.name) ++number;
        if (number == spec.programs.size()) return false;
        const verifier::Verdict verdict = verifier::verify(spec, number, options);
        if (verdict.outcome == verifier::Outcome::accepted) return true;
        return verdict.outcome == verifier::Outcome::refused && verdict.insn != insn &&
               !verdict.reason.starts_with(format("R{} ", reg));
    }

    // An address in the stack that reaches above r10: so much lower, in front of the call that is given it.
    Remedy stack() const {
        const int64_t reg = refusal::number_after(refusal.reason, "stack R").value_or(-1);
        const std::optional<int64_t> off = refusal::number_after(refusal.reason, "off="),
                                     size = refusal::number_after(refusal.reason, "size=");
        if (reg < 1 || !off || !size || *size <= 0 || *off + *size <= 0 || *off + *size > 256 || path.empty()) return {};
        const uint32_t insn = trace.steps[path.back()].insn;
        if (program.insns[insn].code != 0x85 || is_c(refusal.at)) return {};
        const int64_t lower = (*off + *size + 7) / 8 * 8;
        return insert(insn, {format("r{} += -{}", reg, lower)}, "point below r10");
    }

    // A function that goes on behind its last instruction.
    Remedy end() const {
        if (refusal.reason.find("last insn is not an exit or jmp") == std::string::npos || program.insns.empty()) return {};
        auto last = static_cast<uint32_t>(program.insns.size() - 1);
        if (trace.insn >= 0 && trace.insn < last) last = static_cast<uint32_t>(trace.insn); // of a function
        if (last > 0 && is_wide(program.insns[last - 1])) --last;
        Remedy out;
        out.at = places.at(last);
        if (is_c(out.at)) return {};
        out.how = Remedy::How::append;
        out.assembly = true;
        out.lines = {"r0 = 0", "exit"};
        out.text = format("behind {}, end there: r0 = 0; exit", line_text(out.at));
        return out;
    }

    // The greatest offset that fits, in front of the addition of the register that is too large.
    Remedy bounds() const {
        const std::optional<int64_t> room = refusal::number_after(refusal.reason, "value_size="),
                                     off = refusal::number_after(refusal.reason, "off="),
                                     size = refusal::number_after(refusal.reason, "size=");
        const Insn &access = program.insns[chain.causes.back().insn];
        std::optional<size_t> added;
        for (size_t n = 0; n < chain.causes.size(); ++n)
            if (chain.causes[n].kind == Cause::Kind::carried && chain.causes[n].text.find("the offset is r") != std::string::npos)
                added = n;
        if (!added || chain.reg < 0) return {};
        const Cause &addition = chain.causes[*added];
        const Insn &add = program.insns[addition.insn];
        const std::string_view value = trace.value_before(path, path.size() - 1, chain.reg, trace.steps[path.back()].frame);
        int64_t most = -1;
        const std::optional<int64_t> whole = refusal::number_after(value, "vs="), fixed = refusal::number_after(value, "off=");
        const int64_t bytes = refusal::base_of(access) >= 0 ? refusal::size_of(access) : size.value_or(1);
        if (whole)
            most = *whole - fixed.value_or(0) - (refusal::base_of(access) >= 0 ? access.off : 0) - bytes;
        else if (room && off && size)
            most = *room - *size;
        if (most < 0) return {};
        const ProgramPlace place = places.at(addition.insn);
        if (is_c(place)) return {}; // which variable that is, the hint says
        if (holds_something(trace, program, path, addition.at)) return {};
        return insert(addition.insn, {format("if r{} <= {} goto +2", unsigned(add.src), most), "r0 = 0", "exit"},
                      "leave where it is too large");
    }

    Remedy packet() const {
        const std::optional<int64_t> off = refusal::number_after(refusal.reason, "off="),
                                     size = refusal::number_after(refusal.reason, "size=");
        if (!off || !size || is_c(refusal.at)) return {};
        const std::optional<int64_t> proved = refusal::number_after(refusal.reason, ",r=");
        if (!proved || *proved <= 0) return {};
        // The constant that was added to what is compared with the end.
        for (size_t i = path.size(); i-- > 0;) {
            const uint32_t at = trace.steps[path[i]].insn;
            const Insn &insn = program.insns[at];
            if (insn.code != 0x07 || insn.imm != *proved) continue;
            Remedy out;
            out.how = Remedy::How::replace;
            out.at = places.at(at);
            out.assembly = true;
            out.lines = {format("r{} += {}", unsigned(insn.dst), *off + *size)};
            out.text =
                format("{}: `{}` instead of `{}`", line_text(out.at), out.lines[0], print(std::span(program.insns).subspan(at)));
            return out;
        }
        return {};
    }

    Remedy alignment() const {
        if (path.empty() || is_c(refusal.at)) return {};
        const uint32_t at = trace.steps[path.back()].insn;
        Insn insn = program.insns[at];
        if (refusal::base_of(insn) != 10) return {};
        const auto size = static_cast<int>(refusal::size_of(insn));
        insn.off = static_cast<int16_t>((insn.off - (size - 1)) / size * size);
        Remedy out;
        out.how = Remedy::How::replace;
        out.at = places.at(at);
        out.assembly = true;
        out.lines = {print(std::span(&insn, 1))};
        out.text =
            format("{}: `{}` instead of `{}`", line_text(out.at), out.lines[0], print(std::span(program.insns).subspan(at)));
        return out;
    }

    Remedy license() const {
        Remedy out;
        out.how = Remedy::How::declare;
        out.assembly = !is_c(refusal.at);
        out.lines = {out.assembly ? ".license \"GPL\"" : "char LICENSE[] SEC(\"license\") = \"GPL\";"};
        out.text = format("declare a license that is compatible with the GPL: `{}`{}", out.lines[0],
                          spec.license.empty() ? "" : format(" (instead of \"{}\")", spec.license));
        return out;
    }
};

} // namespace

Remedy remedy_of(const Trace &trace, const ObjectSpec &spec, const ProgramSpec &program, const ProgramPlaces &places,
                 const Refusal &refusal, const Chain &chain, const std::vector<uint32_t> &path) {
    const Writer writer{trace, spec, program, places, refusal, chain, path};
    if (refusal.kind == "license") return writer.license();
    if (refusal.kind == "control-flow") return writer.end();
    if (chain.causes.empty()) return {};
    if (refusal.kind == "stack") return writer.stack();
    if (refusal.kind == "null") return writer.null();
    if (refusal.kind == "uninitialized") return writer.uninitialized();
    if (refusal.kind == "bounds") return writer.bounds();
    if (refusal.kind == "packet") return writer.packet();
    if (refusal.kind == "alignment") return writer.alignment();
    return {};
}

} // namespace rawbpf::inline v0::explain
