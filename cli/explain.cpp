// `rawbpf explain`: what a verifier knew at each instruction, and why it refused a program. The walk is that of our own verifier,
// or the kernel's, read from its log.
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/verify_input.h"
#include "programs/explain/explanation.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kExplainer = "rawbpf explain";

constexpr Option kExplainOptions[] = {
    kVerifiedProgramOption,
    kVerifiedBtfOption,
    kVerifiedKernelOption,
    {.name = "log",
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "explain this log of the kernel's verifier (levels 1 and 2, of 5.10 to 7.x) instead of verifying the program; - is "
             "standard "
             "input"},
    {.name = "short", .help = "three lines of each refusal: the cause, the path, the remedy"},
    format_option("text", "text json html"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id explain_option(const char *name) { return find(kExplainOptions, name); }

constexpr Example kExplainExamples[] = {
    {"rawbpf explain count.asm", "where the bad value came from, the way there, and what to change"},
    {"rawbpf explain prog.bpf.o --prog parse --log verifier.log", "the same from the kernel's log"},
    {"rawbpf explain prog.bpf.o -f html -o prog.html", "a page to step through"},
};

// The walk of one program.
Result<explain::Trace> walk_of(const VerifyInput &input, VerifyInput::Which which, const Arguments &a) {
    const ObjectSpec &spec = input.specs[which.spec];
    const ProgramSpec &program = spec.programs[which.program];
    if (!a.has(explain_option("log")))
        return explain::trace_of(spec, program, verifier::verify(spec, which.program, input.options));
    const InputFile log = TRY(InputFile::open(std::string(a.text(explain_option("log")))));
    const std::span<const std::byte> bytes = log.bytes();
    return explain::trace_of_log({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, program);
}

int run_explain(const Arguments &a) {
    Result<VerifyInput> input = verify_input(a.operands().empty() ? "-" : a.operands()[0], a, verify_ids(kExplainOptions));
    if (!input) return complain(kExplainer, input.error(), input.error().kind == Errc::invalid_argument ? 2 : 0);
    const std::string_view form = a.text(explain_option("format"));
    if (input->programs.size() > 1 && (a.has(explain_option("log")) || form == "html"))
        return complain(kExplainer,
                        make_error(Errc::invalid_argument,
                                   format("{} has {} programs, and {} is about one", input->specs[0].name, input->programs.size(),
                                          form == "html" ? "a page" : "a log"),
                                   "--prog NAME chooses one"),
                        2);
    std::string text;
    if (form == "json") append_json_header(text, a);
    bool refused = false, undecided = false;
    for (size_t n = 0; n < input->programs.size(); ++n) {
        const VerifyInput::Which which = input->programs[n];
        const ObjectSpec &spec = input->specs[which.spec];
        Result<explain::Trace> trace = walk_of(*input, which, a);
        if (!trace) return complain(kExplainer, trace.error());
        const explain::Explanation explanation =
            explain::explain(spec, spec.programs[which.program], std::move(*trace), input->options.kernel_types);
        refused |= explanation.trace.outcome == verifier::Outcome::refused;
        undecided |= explanation.trace.outcome == verifier::Outcome::undecided;
        if (n && form == "text") text += "\n";
        if (form == "json")
            explain::append_json_lines(text, explanation);
        else if (form == "html")
            explain::append_page(text, explanation);
        else if (a.has(explain_option("short")))
            text += explain::short_text(explanation);
        else
            explain::append_text(text, explanation);
    }
    const int written = write_result(kExplainer, a.text(explain_option("output")), text);
    return written ? written : refused ? 1 : undecided ? 3 : 0;
}

} // namespace

const Command kExplain{
    .name = "explain",
    .summary = "explain why a verifier refuses a program, and what it knew at each instruction",
    .description = "Shows how a verifier walks through a program. Without --log, it is rawbpf's own verifier (rawbpf verify), "
                   "which needs neither a kernel nor privileges; with --log, it is the kernel's.\n\n"
                   "For a refusal, explain shows the cause: where the bad value came from, where it was used, and which check is "
                   "missing. It also shows the shortest path to the refused instruction and, if one is known, a change that "
                   "makes the verifier accept the program. Then it lists each instruction with its source, how often the "
                   "verifier visited it, what it changed (\"a | b\": at different visits), and where paths split and end.\n\n"
                   "The page (-f html) shows all of this side by side: j and k step through the path, a click on a register "
                   "shows where its value came from. JSON has lines of types verdict, cause, path and instruction.\n\n"
                   "The exit status is that of rawbpf verify: 0 if all programs are accepted, 1 if one is refused, else 3 if one "
                   "is not decided.",
    .options = kExplainOptions,
    .examples = kExplainExamples,
    .operand = "FILE|-",
    .least_operands = 0,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_explain,
};

} // namespace rawbpf::inline v0::cli
