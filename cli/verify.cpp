// `rawbpf verify`: would a kernel take this program? Without a kernel, and without privileges.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/verify_input.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/program_error.h"
#include "runtime/verifier/print.h"

#include <cerrno>

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf verify";

constexpr Option kOptions[] = {
    kVerifiedProgramOption,
    kVerifiedBtfOption,
    kVerifiedKernelOption,
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    verbose_option("print the path to a refusal, in the form of the kernel's log, on standard error"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf verify count.asm", "would this kernel's verifier take it"},
    {"rawbpf verify prog.bpf.o --kernel 5.10 --btf 5.10.btf", "would that of 5.10"},
};

using verifier::Outcome;

std::string program_name(const ProgramSpec &program) {
    return program.section.empty() ? program.name : format("{} ({})", program.name, program.section);
}

// The status of one program; what there is to say of a refusal is said.
int show(const VerifyInput &input, size_t number, bool json, bool verbose, std::string &text) {
    const ProgramSpec &program = input.spec.programs[number];
    const verifier::Verdict verdict = verifier::verify(input.spec, number, input.options);
    Refusal refusal;
    std::string log;
    if (verdict.outcome == Outcome::refused) {
        log = verifier::log_text(input.spec, program, verdict);
        const KeepRefusal keep(refusal);
        Error error =
            explain_refusal(input.spec, program, input.options.kernel_types, Error(Errc::rejected, EACCES, std::string()), log);
        if (!verbose) error.log.clear();
        if (!json) (void)complain(kWho, in_context(std::move(error), input.spec.name), 1);
    }
    const std::string_view word = verdict.outcome == Outcome::accepted  ? "accepted"
                                  : verdict.outcome == Outcome::refused ? "refused"
                                                                        : "not decided";
    if (json) {
        render::JsonLine line(text, "verdict");
        line.text("program", program.name).text("section", program.section).text("verdict", word);
        verdict.placed ? line.number("insn", verdict.insn) : line.null("insn");
        line.text_or_null("reason", verdict.reason);
        line.text_or_null("class", verdict.outcome == Outcome::refused ? refusal.kind : std::string_view());
        line.text_or_null("message", refusal.sentence).text_or_null("hint", refusal.hint);
        line.number("instructions", program.insns.size()).number("processed", verdict.processed).number("states", verdict.states);
    } else if (verdict.outcome == Outcome::accepted) {
        append(text, "{}: accepted: {} instructions, {} looked at, {} states kept\n", program_name(program), program.insns.size(),
               verdict.processed, verdict.states);
    } else if (verdict.outcome == Outcome::undecided) {
        append(text, "{}: not decided{}: {}\n", program_name(program),
               verdict.placed ? format(" at instruction {}", verdict.insn) : std::string(), verdict.reason);
    }
    return verdict.outcome == Outcome::accepted ? 0 : verdict.outcome == Outcome::refused ? 1 : 3;
}

int run_verify(const Arguments &a) {
    Result<VerifyInput> input = verify_input(a.operands().empty() ? "-" : a.operands()[0], a, verify_ids(kOptions));
    if (!input) return complain(kWho, input.error(), input.error().kind == Errc::invalid_argument ? 2 : 0);
    const bool json = a.text(option("format")) == "json";
    std::string text;
    if (json) append_json_header(text, a);
    bool refused = false, undecided = false;
    for (size_t number : input->programs) {
        const int status = show(*input, number, json, a.has(option("verbose")), text);
        refused |= status == 1;
        undecided |= status == 3;
    }
    const int written = write_result(kWho, a.text(option("output")), text);
    return written ? written : refused ? 1 : undecided ? 3 : 0;
}

} // namespace

const Command kVerify{
    .name = "verify",
    .summary = "tell whether the kernel's verifier would take a program",
    .description =
        "Verifies programs by a model of the kernel's verifier (runtime/verifier), without a kernel and without privileges. A "
        "file "
        "is an object, source text for the assembler, or instructions in hex. The messages are those of rawbpf load: the place, "
        "the registers, what helps.\n\n"
        "The model is of a kernel that gives all privileges and compiles programs. What it doesn't model it says: \"not decided: "
        "WHAT\". That are other types of programs than socket filters, kprobes, tracepoints, raw tracepoints, perf events, XDP, "
        "tc "
        "and cgroup_skb; calls of kernel functions; callbacks, dynptrs, iterators, timers, sockets, pointers to kernel objects, "
        "maps of maps, arenas.\n\n"
        "The exit status is 0 if all programs are accepted, 1 if one is refused, else 3 if one is not decided.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE|-",
    .least_operands = 0,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_verify,
};

} // namespace rawbpf::inline v0::cli
