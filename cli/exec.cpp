// `rawbpf exec`: runs one program once, in the emulator or in the kernel, and prints r0.
//
// The command line is that of the conformance suites' plugins: the program as hex on standard input, memory as an operand, r0
// as hex on standard output, errors on standard error.
#include "cli/built.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/program_input.h"
#include "cli/verify_input.h"
#include "programs/exec/run.h"
#include "programs/exec/timing.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/object/harness.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf exec";

constexpr Option kOptions[] = {
    {.name = "emulate", .help = "run in user space; this is the default", .section = "Where", .excludes = "engine"},
    {.name = "in-kernel", .help = "run in the kernel, with BPF_PROG_TEST_RUN (4.12)", .excludes = "engine", .was = "kernel"},
    {.name = "both",
     .help = "run in both; the first difference in r0, memory and maps is an error (status 4)",
     .excludes = "engine",
     .was = "diff"},
    {.name = "repeat",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "run it N times; memory and maps keep their values between runs. Prints how long a run took, measured in 20 parts: "
             "the median, the least and the most, and the same minus the time of an empty program, also per instruction",
     .least = 1,
     .most = 1'000'000'000},
    {.name = "limit",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "emulator: stop after about N instructions; 8 bytes that helpers copy, search or print count as one",
     .fallback = "1000000000",
     .least = 1},
    kMemoryOption,
    kMemoryFileOption,
    kPacketOption,
    kProgramOption,
    kBtfOption,
    format_option("text", "text json"),
    kJsonOption,
    verbose_option("print memory afterwards and the cost, on standard error; --json always has them"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"echo b7 00 00 00 2a 00 00 00 95 00 00 00 00 00 00 00 | rawbpf exec -", "prints 2a"},
    {"rawbpf exec sum.bpf.o 01020304", "r1 points to these four bytes, r2 is 4"},
    {"sudo rawbpf exec --in-kernel --repeat 1000000 sum.bpf.o 01020304",
     "the same after the verifier and the JIT, and how long it takes"},
    {"sudo rawbpf exec --both --prog count counter.bpf.o", "do emulator and kernel agree, maps included"},
    {"rawbpf exec xdp.bpf.o --mem-file packet.bin", "an XDP program gets a packet"},
};

void report(std::string_view engine, const exec::RunResult &result, bool verbose, bool timed) {
    if (!result.printed.empty()) say(result.printed);
    if (timed || verbose) say(format("{}: {}: {}\n", kWho, engine, timing_text(timing_of(result))));
    if (!verbose || result.memory.empty()) return;
    say(format("{}: {}: memory: {}\n", kWho, engine, hex_text(result.memory, " ")));
}

void append_run(std::string &out, std::string_view engine, const exec::RunResult &result, uint32_t runs) {
    render::JsonLine line(out, "run");
    line.text("engine", engine).hex("r0", result.r0).number("runs", runs);
    append_timing_json(line, timing_of(result));
    line.text("memory", hex_text(result.memory));
}

// The emulator runs what a kernel wouldn't: that is said, and the program is run. Without memory, r1 may be meant as the context
// that the emulator doesn't give, or as the 0 that it is.
void warn(const ProgramInput &input) {
    if constexpr (has(Part::verifier)) {
        if (reads_packet(input.spec.programs[input.program])) return; // as it is run, it finds its context in r6
        verifier::VerifyOptions options = input.verify_options();
        const std::string why = refusal_in_short(input.spec, input.program, options);
        if (why.empty()) return;
        if (!options.memory && !input.packet) {
            options.memory = 0;
            if (refusal_in_short(input.spec, input.program, options).empty()) return;
        }
        say(format("{}: warning: a kernel would refuse this program {}\n", kWho, why));
    }
}

int run_exec(const Arguments &a) {
    Result<ProgramInput> input = program_input(a, program_input_ids(kOptions));
    if (!input) return complain(kWho, input.error(), input.error().kind == Errc::invalid_argument ? 2 : 1);
    const bool diff = a.has(option("both")), kernel = a.has(option("in-kernel")) || diff, verbose = a.has(option("verbose"));
    exec::RunOptions options;
    if (!kernel) warn(*input);
    options.memory = std::move(input->memory);
    options.packet = input->packet;
    options.repeat = a.has(option("repeat")) ? static_cast<uint32_t>(a.count(option("repeat"))) : 1;
    options.compare = options.repeat > 1;
    options.limit = a.count(option("limit"));
    options.contents = diff;
    options.btf_path = a.text(option("btf"));

    const bool json = a.text(option("format")) == "json";
    std::string text;
    if (json) append_json_header(text, a);
    exec::RunResult results[2]; // kernel, emulator
    for (int engine = 0; engine < 2; ++engine) {
        if (engine == 0 ? !kernel : kernel && !diff) continue;
        Result<exec::RunResult> result = engine == 0 ? exec::run_in_kernel(input->spec, input->program, options)
                                                     : exec::run_emulated(input->spec, input->program, options);
        const std::string_view name = engine == 0 ? "kernel" : "emulator";
        if (!result) {
            if (!verbose) result.error().log.clear();
            if (engine == 1 && result.error().kind == Errc::busy) // the limit, which is the only one that an option raises
                result.error().hint = format("--limit N allows more; it is {} now", options.limit);
            return complain(format("{}: {}", kWho, name), result.error());
        }
        report(name, *result, verbose && !json, a.has(option("repeat")) && !json);
        if (json) append_run(text, name, *result, options.repeat);
        results[engine] = std::move(*result);
    }
    if (!json) text = format("{:x}\n", results[kernel ? 0 : 1].r0);
    if (diff)
        if (const std::string difference = first_difference(results[0], results[1]); !difference.empty()) {
            if (json) (void)print(text);
            return complain(kWho, make_error(Errc::invalid_argument, difference), 4);
        }
    return print(text);
}

} // namespace

const Command kExec{
    .name = "exec",
    .summary = "run one program once and print r0",
    .description =
        "Runs a program and prints r0, all 64 bits, in hex. A program is an object file, instructions in hex, or source text for "
        "the assembler, in a file or on standard input (-); memory is given in hex. At the start, r1 is the address of the "
        "memory (0 if there is none) and r2 its length.\n\n"
        "The emulator needs no privileges. A program that a kernel's verifier would refuse (rawbpf verify) is run with a "
        "warning, "
        "until it ends, faults, or has run too many instructions. A fault names the instruction, the register and the memory "
        "that it missed. The emulator has the "
        "instructions of RFC 9669 and the kernel's newer ones, arrays, hashes, queues, program arrays and ring buffers, and the "
        "common helpers; when a program needs something else, the emulator stops there and names it.\n\n"
        "The kernel verifies the program first. rawbpf wraps the program in a few instructions, so that all 64 bits of r0 come "
        "back and r1 points to memory. The kernel doesn't run kprobe, tracepoint and perf_event programs on request; rawbpf runs "
        "these as raw tracepoint programs. bpf_trace_printk() goes to standard error from the emulator, to the trace pipe from "
        "the kernel.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "[FILE|-] [HEX]",
    .least_operands = 0,
    .most_operands = 2,
    .operand_is_file = true,
    .run = run_exec,
};

} // namespace rawbpf::inline v0::cli
