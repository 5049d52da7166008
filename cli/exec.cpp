// `rawbpf exec`: runs one program once, in the emulator or in the kernel, and prints r0.
//
// The words of the command line are those of the conformance suites' plugins: the program as hex on standard input, memory as an
// operand, r0 as hex on standard output, errors on standard error.
#include <algorithm>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/narrator.h"
#include "cli/program_input.h"
#include "programs/exec/run.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf exec";

constexpr Option kOptions[] = {
    {.name = "emulate", .help = "in user space; this is the default", .section = "Where", .excludes = "engine"},
    {.name = "kernel", .help = "in the kernel, with BPF_PROG_TEST_RUN (4.12)", .excludes = "engine"},
    {.name = "diff", .help = "in both; the first difference in r0, memory and maps is an error (status 4)", .excludes = "engine"},
    {.name = "repeat",
     .kind = Kind::count,
     .argument = "N",
     .help =
         "that many times, memory and maps staying as they are; says how long a run took, in 20 parts: their median, least and "
         "most, and how much of it an empty program takes too",
     .least = 1,
     .most = 1'000'000'000},
    {.name = "limit",
     .kind = Kind::count,
     .argument = "N",
     .help =
         "emulator: stop after about that many instructions, or when helpers copied, searched and printed as much: 8 bytes are "
         "one",
     .fallback = "1000000000",
     .least = 1},
    kMemoryOption,
    kMemoryFileOption,
    kPacketOption,
    kProgramOption,
    kBtfOption,
    {.name = "verbose", .letter = 'v', .help = "memory afterwards and what it cost, on standard error", .section = "Output"},
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"echo b7 00 00 00 2a 00 00 00 95 00 00 00 00 00 00 00 | rawbpf exec -", "prints 2a"},
    {"rawbpf exec sum.bpf.o 01020304", "r1 points to these four bytes, r2 is 4"},
    {"sudo rawbpf exec --kernel --repeat 1000000 sum.bpf.o 01020304",
     "the same after the verifier and the JIT, and how long it takes"},
    {"sudo rawbpf exec --diff --prog count counter.bpf.o", "do the two agree, maps included"},
    {"rawbpf exec xdp.bpf.o --mem-file packet.bin", "an XDP program gets a packet"},
};

struct Spread {
    double least = 0, median = 0, most = 0;
};
Spread spread_of(std::vector<double> batches) {
    std::sort(batches.begin(), batches.end());
    const size_t n = batches.size();
    return {batches.front(), n % 2 ? batches[n / 2] : (batches[n / 2 - 1] + batches[n / 2]) / 2, batches.back()};
}

// "12.3 ns a run, 3 instructions, 4.10 ns each (median of 20 parts, 12.0 to 15.1, mean 12.4; an empty program 8.0, so 4.3 of its
// own)"
std::string timing(const exec::RunResult &result) {
    const bool repeated = result.batches.size() >= 2;
    const Spread own = repeated ? spread_of(result.batches) : Spread{result.ns, result.ns, result.ns};
    std::string out = format("{:.1f} ns a run", own.median);
    if (result.instructions)
        append(out, ", {} instructions, {:.2f} ns each", result.instructions,
               own.median / static_cast<double>(result.instructions));
    if (!repeated) return out;
    append(out, " (median of {} parts, {:.1f} to {:.1f}, mean {:.1f}", result.batches.size(), own.least, own.most, result.ns);
    if (!result.empty.empty()) {
        const double empty = spread_of(result.empty).median;
        append(out, "; an empty program {:.1f}, so {:.1f} of its own", empty, std::max(own.median - empty, 0.0));
    }
    return out + ")";
}

void report(std::string_view engine, const exec::RunResult &result, bool verbose, bool timed) {
    if (!result.printed.empty()) say(result.printed);
    if (timed || verbose) say(format("{}: {}: {}\n", kWho, engine, timing(result)));
    if (!verbose || result.memory.empty()) return;
    std::string text = format("{}: {}: memory:", kWho, engine);
    for (std::byte b : result.memory) append(text, " {:02x}", static_cast<unsigned>(b));
    say(text + "\n");
}

int run_exec(const Arguments &a) {
    Result<ProgramInput> input = program_input(a, program_input_ids(kOptions));
    if (!input) return complain(kWho, input.error(), input.error().kind == Errc::invalid_argument ? 2 : 1);
    std::optional<Narrator> narrator;
    if (a.has(option("syscalls"))) narrator.emplace(color_wanted("auto", 2), a.has(option("verbose")));
    const bool diff = a.has(option("diff")), kernel = a.has(option("kernel")) || diff, verbose = a.has(option("verbose"));
    exec::RunOptions options;
    options.memory = std::move(input->memory);
    options.packet = input->packet;
    options.repeat = a.has(option("repeat")) ? static_cast<uint32_t>(a.count(option("repeat"))) : 1;
    options.compare = options.repeat > 1;
    options.limit = a.count(option("limit"));
    options.contents = diff;
    options.btf_path = a.text(option("btf"));

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
        report(name, *result, verbose, a.has(option("repeat")));
        results[engine] = std::move(*result);
    }
    if (diff)
        if (const std::string difference = first_difference(results[0], results[1]); !difference.empty())
            return complain(kWho, make_error(Errc::invalid_argument, difference), 4);
    return print(format("{:x}\n", results[kernel ? 0 : 1].r0));
}

} // namespace

const Command kExec{
    .name = "exec",
    .summary = "run one program once and print r0",
    .description =
        "Runs a program and prints r0, all 64 bits, in hex. Programs are object files, instructions in hex, or source text for "
        "the assembler, in a file or "
        "on standard input (-); memory is given in hex. At entry r1 is the memory's address (0 when there is none) and r2 its "
        "length."
        "\n\n"
        "The emulator needs no privileges. It doesn't verify: a program runs until it ends, faults or has run too many "
        "instructions; a fault names the instruction, the register and what it missed. It has the instructions of RFC 9669 and "
        "the "
        "kernel's newer ones, arrays, hashes, queues, program arrays and ring buffers, and the common helpers; what it lacks it "
        "names when it gets there."
        "\n\n"
        "The kernel verifies first. So that r0 comes back whole and r1 is memory, the program runs in a harness of a few "
        "instructions; kprobe, tracepoint and perf_event programs, which the kernel doesn't run on request, run as raw "
        "tracepoint "
        "programs. bpf_trace_printk() goes to standard error from the emulator, to the trace pipe from the kernel.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "[FILE|-] [HEX]",
    .least_operands = 0,
    .most_operands = 2,
    .operand_is_file = true,
    .run = run_exec,
};

} // namespace rawbpf::inline v0::cli
