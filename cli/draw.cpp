// `rawbpf draw`: an object as one picture.
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/verify_input.h"
#include "programs/draw/picture.h"
#include "programs/explain/explanation.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf draw";

constexpr Option kOptions[] = {
    kVerifiedProgramOption, kVerifiedBtfOption, kVerifiedKernelOption, kOutputOption, syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf draw count.asm -o count.svg", "a picture for a browser: maps, control flow, the stack"},
    {"rawbpf draw prog.bpf.o --prog parse -o parse.svg", "one program of an object"},
};

// What a picture shows of values are the first visits; the kernel's million steps would show no more.
constexpr uint32_t kMostSteps = 100'000;

int run_draw(const Arguments &a) {
    Result<VerifyInput> input = verify_input(a.operands().empty() ? "-" : a.operands()[0], a, verify_ids(kOptions));
    if (!input) return complain(kWho, input.error(), input.error().kind == Errc::invalid_argument ? 2 : 0);
    input->options.most_steps = kMostSteps;
    if (input->specs.size() != 1)
        return complain(kWho,
                        make_error(Errc::invalid_argument,
                                   format("{} has {} objects, and draw takes one", a.operands()[0], input->specs.size()),
                                   "each asm block of an experiment is an object of its own"),
                        2);
    const ObjectSpec &spec = input->specs[0];
    std::vector<explain::Explanation> programs;
    for (const VerifyInput::Which which : input->programs)
        programs.push_back(explain::explain(
            spec, spec.programs[which.program],
            explain::trace_of(spec, spec.programs[which.program], verifier::verify(spec, which.program, input->options)),
            input->options.kernel_types));
    return write_result(kWho, a.text(option("output")), draw::picture(spec, programs));
}

} // namespace

const Command kDraw{
    .name = "draw",
    .summary = "draw an object: its maps, control flow and stack, as one picture",
    .description = "Writes an SVG document, which every browser shows. It has the programs, the maps, and which program uses "
                   "which map. For each program it has the basic blocks, with the lines of C, and the jumps between them. For "
                   "each slot of the stack it says what the slot is for (the key of a map, with its type if the object has BTF; "
                   "memory of a helper function) and which instructions write and read it.\n\n"
                   "rawbpf's model of the verifier (rawbpf verify), which needs neither a kernel nor privileges, finds what each "
                   "pointer points to. If the model refuses a program, rawbpf draws the program, too: the refused instruction is "
                   "red, and code that no path reached is pale.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE|-",
    .least_operands = 0,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_draw,
};

} // namespace rawbpf::inline v0::cli
