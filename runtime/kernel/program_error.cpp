// A refused program, explained. The verifier knows the instruction; the object knows which source line, which function and
// which CO-RE relocation that was. Both are put together here:
//
//      profile.bpf.o: program profile (perf_event): the verifier refused instruction 12, profile.bpf.c:34 `return p->pid;`:
//      R1 invalid mem access 'scalar'
#include "runtime/kernel/program_error.h"

#include <cerrno>
#include <linux/bpf.h>

#include "asm/helpers.h"
#include "runtime/btf/btf.h"
#include "runtime/kernel/permission_error.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/verifier_log.h"
#include "runtime/object/kinds.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0 {
namespace {

// Kernels before 6.8 don't say where a source line stands; the object does.
void place_from_line_info(const ObjectSpec &spec, const ProgramSpec &program, VerifierReport &report) {
    if (report.insn < 0 || report.line != 0 || spec.btf.empty()) return;
    const LineInfo *best = nullptr;
    for (const LineInfo &line : program.line_info)
        if (line.insn <= static_cast<uint32_t>(report.insn) && (!best || line.insn >= best->insn)) best = &line;
    if (!best) return;
    Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name);
    if (!types) return;
    const std::string_view file = types->string(best->file).value_or(std::string_view());
    report.file = file.substr(file.rfind('/') + 1); // as the newer ones print it
    report.line = best->number_column >> 10;
    if (report.source.empty()) {
        std::string_view text = types->string(best->line).value_or(std::string_view());
        size_t start = text.find_first_not_of(" \t");
        if (start != std::string_view::npos) report.source = text.substr(start);
    }
}

std::string place_of(const ProgramSpec &program, const VerifierReport &report) {
    if (report.insn < 0) return "it";
    std::string out = format("instruction {}", report.insn);
    if (!report.instruction.empty()) append(out, " ({})", report.instruction);
    const ProgramSpec::Subprogram *function = nullptr;
    for (const ProgramSpec::Subprogram &sub : program.subprograms)
        if (sub.insn <= static_cast<uint32_t>(report.insn) && (!function || sub.insn >= function->insn)) function = &sub;
    if (function && function->name != program.name) append(out, " in function {}", function->name);
    if (!report.file.empty() && report.line != 0) append(out, ", {}:{}", report.file, report.line);
    if (!report.source.empty()) append(out, " `{}`", report.source);
    return out;
}

// The helper that the kernel has never heard of by its name, and since when there is one: the log only has its number.
std::string missing_helper(const ProgramSpec &program, const VerifierReport &report) {
    const bool unknown = report.reason.find("unknown func") != std::string::npos;
    if (!unknown && report.reason.find("invalid func") == std::string::npos) return {};
    if (report.insn < 0 || static_cast<size_t>(report.insn) >= program.insns.size()) return {};
    const Insn &insn = program.insns[static_cast<size_t>(report.insn)];
    if (insn.code != (BPF_JMP | BPF_CALL) || insn.src != 0) return {};
    const HelperInfo *helper = find_helper(insn.imm);
    if (!helper) return {};
    return format("this kernel has no bpf_{}(), which came with Linux {}.{}{}", helper->name, helper->since.major,
                  helper->since.minor, unknown ? ", or not for this type of program" : "");
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

// A tracing program for a way of attaching that this kernel hasn't is refused for whatever it stumbles over first.
void name_missing_attach_type(const ProgramSpec &program, const Error &refusal, Error &error) {
    if (program.type != BPF_PROG_TYPE_TRACING || refusal.os != EINVAL ||
        probe_attach_type(program.expected_attach_type).support != Support::no)
        return;
    const std::string_view since = attach_type_since(program.expected_attach_type);
    error.kind = Errc::unsupported;
    error.hint = format("this kernel has no programs of attach type {}{}", attach_type_name(program.expected_attach_type),
                        since.empty() ? "" : format(", which came with Linux {}", since));
}

} // namespace

bool complains_of_btf(std::string_view log) {
    VerifierReport report = read_verifier_log(log);
    if (!report.instruction.empty()) return false;
    for (std::string_view word : {"func_info", "line_info", "btf", "BTF"})
        if (report.reason.find(word) != std::string::npos) return true;
    return false;
}

Error explain_refusal(const ObjectSpec &spec, const ProgramSpec &program, Error refusal, std::string log) {
    const std::string who = program.section.empty() || program.section == program.name
                                ? format("program {}", program.name)
                                : format("program {} ({})", program.name, program.section);
    VerifierReport report = read_verifier_log(log);
    if (report.reason.empty()) { // it never came to the verifier
        Error error = in_context(std::move(refusal), format("loading {}", who));
        if (error.os == EINVAL && !has_program_type(program.type)) {
            error.kind = Errc::unsupported;
            error.hint = format("this kernel has no programs of type {}", sys::prog_type_name(program.type));
        }
        name_missing_attach_type(program, error, error);
        if (error.os == EPERM) {
            const uint32_t types[] = {program.type};
            error.hint = missing_privileges(types);
            if (error.hint.empty())
                error.hint =
                    "it isn't the capabilities, which are all here: this kernel's policy refuses such programs (a security "
                    "module, lockdown, or how it was built); rawbpf doctor lists what it takes";
        }
        error.log = std::move(log);
        return error;
    }
    place_from_line_info(spec, program, report);
    const std::string registers = report.insn < 0 ? std::string() : report.named_registers();
    Error error = make_error(Errc::rejected,
                             format("{}: the verifier refused {}: {}{}", who, place_of(program, report), report.reason,
                                    registers.empty() ? "" : format(" [{}]", registers)),
                             hint_with_path(report));
    if (std::string words = missing_helper(program, report); !words.empty()) error.hint = std::move(words);
    if (report.insn < 0) name_missing_attach_type(program, refusal, error);
    for (const ProgramSpec::Poison &poison : program.poisoned)
        if (report.poisoned() && static_cast<int>(poison.insn) == report.insn) {
            error.context = format("{}: {}: CO-RE: {}", who, place_of(program, report), poison.why);
            break;
        }
    error.os = refusal.os;
    // No capability, but the verifier had a word: it is the privileges that are short.
    if (refusal.os == EPERM) error.kind = Errc::permission;
    if (refusal.os == EPERM && error.hint.empty()) error.hint = refusal.hint;
    error.log = std::move(log);
    return error;
}

} // namespace rawbpf::inline v0
