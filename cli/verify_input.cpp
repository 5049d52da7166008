// Opens what is to be verified. An object with CO-RE relocations is relocated as for loading it, since a verdict depends on the
// offsets; types come from a file, or from the running kernel, which shows them to everybody.
#include "cli/verify_input.h"

#include <span>
#include <utility>

#include "asm/print.h"
#include "cli/asm_file.h"
#include "cli/built.h"
#include "cli/console.h"
#include "cli/experiment_input.h"
#include "programs/exec/input.h"
#include "programs/explain/verified.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/refusal_advice.h"
#include "runtime/object/core.h"

namespace rawbpf::inline v0::cli {

namespace {

using verifier::Outcome;

Result<KernelVersion> version_of(std::string_view text) {
    unsigned part[2] = {0, 0};
    size_t at = 0;
    bool good = !text.empty();
    for (int n = 0; n < 2 && good; ++n) {
        const size_t from = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9' && part[n] < 100)
            part[n] = part[n] * 10 + static_cast<unsigned>(text[at++] - '0');
        good = at > from && (n == 0 ? at < text.size() && text[at++] == '.' : at == text.size() || text[at] == '.');
    }
    if (!good || part[0] > 99 || part[1] > 99)
        return fail(Errc::invalid_argument, "--kernel {}: that is no version, such as 6.1", text);
    const KernelVersion version{static_cast<uint8_t>(part[0]), static_cast<uint8_t>(part[1])};
    if (version.major < 5 || (version.major == 5 && version.minor < 10) || version.major > 7)
        return fail(Errc::invalid_argument, "--kernel {}: the model is of 5.10 to 7.9", text);
    return version;
}

std::string program_name(const ProgramSpec &program) {
    return program.section.empty() ? program.name : format("{} ({})", program.name, program.section);
}

// The objects of an operand.
Result<std::vector<ObjectSpec>> open_specs(std::string_view path) {
    std::vector<ObjectSpec> out;
    if constexpr (has(Part::experiments) && has(Part::assembler) && has(Part::trace)) // what `run` of any needs
        if (path.ends_with(".exp")) {
            PreparedExperiment prepared = TRY(prepare_experiment(TRY(open_experiment(path))));
            return std::move(prepared.plan.specs);
        }
    const InputFile file = TRY(InputFile::open(path));
    out.push_back(kind_of(file.bytes()) == InputKind::text ? TRY(open_assembly(file))
                                                           : TRY(exec::read_program(file.bytes(), file.name())));
    return out;
}

} // namespace

Result<VerifyInput> verify_input(std::string_view path, const Arguments &a, const VerifyIds &ids) {
    const KernelVersion kernel = TRY(version_of(a.text(ids.kernel)));
    return ready_to_verify(TRY(open_specs(path)), a.text(ids.program), a.text(ids.btf), kernel);
}

Result<VerifyInput> ready_to_verify(std::vector<ObjectSpec> specs, std::string_view program, std::string_view btf,
                                    KernelVersion kernel) {
    VerifyInput out;
    out.options.kernel = kernel;
    out.specs = std::move(specs);
    bool core = false;
    for (size_t n = 0; n < out.specs.size(); ++n) {
        for (size_t i = 0; i < out.specs[n].programs.size(); ++i) {
            if (!program.empty() && out.specs[n].programs[i].name != program) continue;
            out.specs[n].programs[i].autoload = true; // of a section that begins with "?", too: else it wouldn't be relocated
            out.programs.push_back({n, i});
        }
        core |= needs_core(out.specs[n]);
    }
    const std::string name = out.specs.empty() ? std::string() : out.specs[0].name;
    if (out.programs.empty()) {
        if (!program.empty() && !out.specs.empty())
            TRY(exec::choose_program(out.specs[0], program)); // lists those that there are
        return fail(Errc::bad_input, "{}: there is no program in it", name);
    }
    if (!btf.empty() || core) {
        out.types = TRY(KernelTypes::open(std::string(btf)));
        for (ObjectSpec &spec : out.specs) TRY(relocate_core(spec, out.types->targets()));
    } else if (Result<KernelTypes> types = KernelTypes::open({})) {
        out.types = std::move(*types); // for names of kernel functions; without it, they are not decided
    }
    if (out.types) out.options.kernel_types = out.types->targets().kernel;
    return out;
}

int show_verdict(const VerifyInput &input, VerifyInput::Which which, const VerdictStyle &style, std::string &text) {
    const ObjectSpec &spec = input.specs[which.spec];
    const ProgramSpec &program = spec.programs[which.program];
    explain::Verified said = explain::verified(spec, which.program, input.options);
    const verifier::Verdict &verdict = said.verdict;
    if (verdict.outcome == Outcome::refused && !style.json) {
        if (!style.verbose) said.error.log.clear();
        (void)complain(style.who, in_context(std::move(said.error), spec.name), 1);
    }
    if (style.json) {
        render::JsonLine line(text, "verdict");
        explain::append_verdict(line, program, said);
    } else if (verdict.outcome == Outcome::accepted) {
        append(text, "{}: accepted: {} instructions, {} looked at, {} states kept\n", program_name(program), program.insns.size(),
               verdict.processed, verdict.states);
    } else if (verdict.outcome == Outcome::undecided) {
        append(text, "{}: not decided{}: {}\n", program_name(program),
               verdict.placed ? format(" at instruction {}", verdict.insn) : std::string(), verdict.reason);
    }
    return verdict.outcome == Outcome::accepted ? 0 : verdict.outcome == Outcome::refused ? 1 : 3;
}

int show_verdicts(const VerifyInput &input, const VerdictStyle &style, std::string &text) {
    bool refused = false, undecided = false;
    for (const VerifyInput::Which &which : input.programs) {
        const int status = show_verdict(input, which, style, text);
        refused |= status == 1;
        undecided |= status == 3;
    }
    return refused ? 1 : undecided ? 3 : 0;
}

std::string refusal_in_short(const ObjectSpec &spec, size_t number, const verifier::VerifyOptions &options) {
    const ProgramSpec &program = spec.programs[number];
    const verifier::Verdict verdict = verifier::verify(spec, number, options);
    if (verdict.outcome != Outcome::refused) return {};
    if (!verdict.placed) return verdict.reason;
    const ProgramPlace at = ProgramPlaces(spec, program).at(verdict.insn);
    std::string out = format("at instruction {} ({})", verdict.insn, print(std::span(program.insns).subspan(verdict.insn)));
    if (at.line && !at.file.empty()) append(out, ", {}:{}", at.file, at.line);
    return format("{}: {}", out, verdict.reason);
}

} // namespace rawbpf::inline v0::cli
