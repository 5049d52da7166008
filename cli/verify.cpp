// `rawbpf verify`: would a kernel take this program? Without a kernel, and without privileges.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/verify_input.h"
#include "runtime/base/fail.h"

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
    {"rawbpf verify count.asm", "would the kernel's verifier accept it"},
    {"rawbpf verify reads.exp", "all programs of an experiment"},
    {"rawbpf verify prog.bpf.o --kernel 5.10 --btf 5.10.btf", "would that of 5.10"},
};

int run_verify(const Arguments &a) {
    Result<VerifyInput> input = verify_input(a.operands().empty() ? "-" : a.operands()[0], a, verify_ids(kOptions));
    if (!input) return complain(kWho, input.error(), input.error().kind == Errc::invalid_argument ? 2 : 0);
    const bool json = a.text(option("format")) == "json";
    std::string text;
    if (json) append_json_header(text, a);
    const int status = show_verdicts(*input, {.who = kWho, .json = json, .verbose = a.has(option("verbose"))}, text);
    const int written = write_result(kWho, a.text(option("output")), text);
    return written ? written : status;
}

} // namespace

const Command kVerify{
    .name = "verify",
    .summary = "tell whether the kernel's verifier would accept a program",
    .description = "Verifies programs with a model of the kernel's verifier (runtime/verifier). It needs no kernel and no "
                   "privileges. A file is an object, source text for the assembler, an experiment (FILE.exp), or instructions in "
                   "hex. The messages are the same as those of rawbpf load: the place, the registers, and what would help.\n\n"
                   "The model assumes a loader with all privileges and a kernel with a JIT compiler. If a program uses something "
                   "that isn't modelled, the verdict is \"not decided: WHAT\"; programs of type EXT are an example. "
                   "runtime/verifier/README.md lists the others.\n\n"
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
