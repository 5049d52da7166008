// A refused program, explained. The verifier knows the instruction; the object knows which source line, which function and
// which CO-RE relocation that was; the numbers and the path say what is wrong. All of it is put together here, once as a value
// (refusal.h) and once as a sentence:
//
//      profile.bpf.o: program profile (perf_event): the verifier refused instruction 12, profile.bpf.c:34 `return p->pid;`:
//      R1 invalid mem access 'scalar'
#include "runtime/kernel/program_error.h"

#include <cerrno>
#include <linux/bpf.h>

#include "asm/helpers.h"
#include "asm/kinds.h"
#include "runtime/base/format.h"
#include "runtime/kernel/near_names.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/refusal_advice.h"
#include "runtime/kernel/refused_helper.h"
#include "runtime/kernel/system_state.h"
#include "runtime/kernel/verifier_log.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0 {
namespace {

std::string_view trimmed(std::string_view text) {
    const size_t start = text.find_first_not_of(" \t");
    return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

// The object says more of a place than the log, which has no column, and before 6.8 no file and line.
ProgramPlace place_of(const ProgramPlaces &places, const VerifierReport &report) {
    ProgramPlace out;
    if (report.insn >= 0) out = places.at(static_cast<uint32_t>(report.insn), report.instruction);
    if (report.line != 0 && (out.line == 0 || (report.structured && report.line != out.line))) {
        out.file = report.file;
        out.line = report.line;
        out.column = 0;
        out.source = report.source;
    } else if (out.source.empty()) {
        out.source = report.source;
    }
    return out;
}

std::string place_text(const Refusal &refusal, bool instruction) {
    const ProgramPlace &at = refusal.at;
    if (at.insn < 0) return "it";
    std::string out = format("instruction {}", at.insn);
    if (instruction && !at.instruction.empty()) append(out, " ({})", at.instruction);
    if (!refusal.function.empty() && refusal.function != refusal.program) append(out, " in function {}", refusal.function);
    return out;
}

std::string with_source(std::string place, const ProgramPlace &at) {
    if (!at.file.empty() && at.line != 0) append(place, ", {}:{}", at.file, at.line);
    if (!at.source.empty()) append(place, " `{}`", trimmed(at.source));
    return place;
}

// What it means that a call of a helper was refused; empty: it was something else.
std::string refused_helper(const ProgramSpec &program, const VerifierReport &report) {
    if (report.insn < 0 || static_cast<size_t>(report.insn) >= program.insns.size()) return {};
    const Insn &insn = program.insns[static_cast<size_t>(report.insn)];
    if (insn.code != (BPF_JMP | BPF_CALL) || insn.src != 0) return {};
    if (report.poisoned() || helper_refusal(report.reason) == HelperRefusal::none) return {};
    const HelperInfo *helper = find_helper(insn.imm);
    return helper ? explain_helper(report.reason, *helper, program.type) : no_helper_words(insn.imm);
}

// What helps, and the last steps that led there, where the kernel tells them (7.3).
std::string hint_with_path(const VerifierReport &report) {
    constexpr size_t kShown = 3;
    std::string out = report.hint;
    for (size_t i = report.path.size() < kShown ? 0 : report.path.size() - kShown; i < report.path.size(); ++i)
        append(out, "{}{}",
               out.empty()                                  ? ""
               : i + kShown == report.path.size() || i == 0 ? " On the way there: "
                                                            : "; ",
               report.path[i]);
    return out;
}

// Only a refused helper may be lockdown's doing.
std::string lockdown_for(const VerifierReport &report) {
    constexpr size_t kSmall = 4096;
    if (report.reason.find("cannot use helper") == std::string::npos && report.reason.find("unknown func") == std::string::npos)
        return {};
    Result<std::string> text = sys::read_file("/sys/kernel/security/lockdown", kSmall);
    return text ? parse_chosen(*text) : std::string();
}

// The last word of "struct task_struct has no field pidd", the name in "kernel function NAME: ...".
std::string_view missing_name(std::string_view why) {
    for (std::string_view words : {" has no field ", " has no value "})
        if (size_t at = why.find(words); at != std::string_view::npos) return why.substr(at + words.size());
    constexpr std::string_view kFunction = "kernel function ";
    if (!why.starts_with(kFunction)) return {};
    why.remove_prefix(kFunction.size());
    return why.substr(0, why.find(':'));
}

constexpr std::string_view kGuard = "guard the access with bpf_core_field_exists() or bpf_core_enum_value_exists()";

// What the verifier stumbled over is ours: the call that stands for what this kernel doesn't have.
void name_poison(const ProgramSpec::Poison &poison, const ProgramPlaces &places, const btf::Btf *kernel, Refusal &refusal) {
    const bool function = poison.why.starts_with("kernel function");
    const std::string_view name = missing_name(poison.why);
    refusal.kind = function ? "kfunc" : "core";
    refusal.reason = function ? poison.why : "CO-RE: " + poison.why;
    refusal.registers.clear();
    refusal.notes.clear();
    if (!name.empty()) refusal.at = places.mentioning(poison.insn, name);
    refusal.at.instruction.clear();
    const Result<sys::SystemName> here = sys::system_name();
    if (std::string other = registers_of_another_machine(poison.why, here ? std::string_view(here->machine) : std::string_view());
        !other.empty()) {
        refusal.hint = std::move(other);
        return;
    }
    std::string near;
    if (kernel) near = function ? near_kernel_function(*kernel, name) : near_member(*kernel, poison.why);
    refusal.hint = format(
        "{}{}{}", near, near.empty() ? "" : "\n",
        function ? "if the program should also run on kernels without it, check first: `if (bpf_ksym_exists(NAME))`"
                 : format("this kernel's types don't have it; if the program should also run on such kernels, {}", kGuard));
}

// The error's message is for people: the headline, and below it all of it in lines.
std::string message_of(const Refusal &refusal) {
    std::string out = refusal.headline + "\n" + print_refusal(refusal);
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

} // namespace

bool complains_of_btf(std::string_view log) {
    VerifierReport report = read_verifier_log(log);
    if (!report.instruction.empty()) return false;
    for (std::string_view word : {"func_info", "line_info", "btf", "BTF"})
        if (report.reason.find(word) != std::string::npos) return true;
    return false;
}

Error explain_refusal(const ObjectSpec &spec, const ProgramSpec &program, const btf::Btf *kernel, Error refusal,
                      std::string log) {
    const std::string who = name_of(program);
    VerifierReport report = read_verifier_log(log);
    if (report.reason.empty()) return explain_unverified(program, std::move(refusal), std::move(log));
    const ProgramPlaces places(spec, program);
    Refusal r;
    r.program = program.name;
    r.section = program.section;
    r.kind = verifier_kind(report.reason);
    r.at = place_of(places, report);
    if (report.insn >= 0) r.function = places.function(static_cast<uint32_t>(report.insn));
    r.reason = report.reason;
    const std::string registers = report.insn < 0 ? std::string() : report.named_registers();
    r.registers = registers;
    r.hint = hint_with_path(report);
    const std::string lockdown = lockdown_for(report);
    const bool cut = log.size() + 1 >= sys::kLogLimit;
    if (!report.structured) advise(program, places, log, {spec.license, lockdown, report.registers, cut}, r);
    if (r.kind != "policy")
        if (std::string words = refused_helper(program, report); !words.empty()) r.hint = std::move(words);
    const bool named = r.at.insn >= 0 && report.insn < 0; // by the path, not by the verifier
    std::string where = r.loop.empty() ? with_source(place_text(r, true), r.at) : r.loop;
    for (const ProgramSpec::Poison &poison : program.poisoned)
        if (report.poisoned() && static_cast<int>(poison.insn) == report.insn) {
            name_poison(poison, places, kernel, r);
            where = with_source(place_text(r, false), r.at);
            break;
        }
    const bool ours = r.kind == "core" || r.kind == "kfunc";
    r.headline = ours ? format("{}: {} needs something that this kernel doesn't have", who, place_text(r, false))
                      : format("{}: the verifier refused {}", who,
                               !r.loop.empty() ? r.loop
                               : named         ? "it"
                                               : place_text(r, true));
    r.sentence = ours ? format("{}: {}: {}", who, where, r.reason)
                      : format("{}: the verifier refused {}: {}{}", who, where, r.reason,
                               registers.empty() ? "" : format(" [{}]", registers));
    Error error = make_error(Errc::rejected, message_of(r), r.hint);
    if (report.insn < 0) name_missing_attach_type(program, refusal, error);
    r.hint = error.hint;
    error.os = refusal.os;
    // No capability, but the verifier had a word: it is the privileges that are short.
    if (refusal.os == EPERM) {
        error.kind = Errc::permission;
        if (error.hint.empty()) r.hint = error.hint = refusal.hint;
    }
    KeepRefusal::put(std::move(r));
    error.log = std::move(log);
    return error;
}

Error explain_missing(const ObjectSpec &spec, const ProgramSpec &program, uint32_t insn, std::string_view name, Error error) {
    const ProgramPlaces places(spec, program);
    Refusal r;
    r.program = program.name;
    r.section = program.section;
    r.kind = "kfunc";
    r.at = places.mentioning(insn, name);
    r.function = places.function(insn);
    r.reason = error.message();
    r.hint = error.hint;
    r.headline = format("{} needs something that this kernel doesn't have", name_of(program));
    r.sentence = r.reason;
    error.context = message_of(r);
    error.os = 0; // its words are in the reason
    KeepRefusal::put(std::move(r));
    return error;
}

} // namespace rawbpf::inline v0
