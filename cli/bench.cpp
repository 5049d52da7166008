// `rawbpf bench`: variants of a program side by side, in the kernel and in the emulator.
#include "programs/exec/bench.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/guests.h"
#include "cli/object_file.h"
#include "cli/program_input.h"
#include "programs/exec/input.h"
#include "programs/render/columns.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf bench";

constexpr Option kOptions[] = {
    {.name = "input",
     .kind = OptionKind::text,
     .argument = "HEX",
     .help = "the memory that r1 points to, for all variants; a packet for programs that take one",
     .section = "Input"},
    {.name = "input-file", .kind = OptionKind::file, .argument = "FILE", .help = "the same memory, read from a file"},
    kProgramOption,
    kBtfOption,
    {.name = "repeat",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "runs of each variant in each engine; otherwise as many as take a fifth of a second",
     .section = "How",
     .least = 6,
     .most = 1'000'000'000},
    {.name = "kernel",
     .kind = OptionKind::text,
     .argument = "NAME[,NAME...]",
     .help = "measure on these kernels instead of this one, each in a guest (rawbpf vm --list lists the names); rawbpf compare "
             "shows what differs in their JSON"},
    {.name = "emulate", .help = "only in the emulator, without privileges"},
    {.name = "limit",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "emulator: stop a run after about N instructions",
     .fallback = "1000000000",
     .least = 1},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf bench before.asm after.asm", "does the change pay, and what does the verifier say of it?"},
    {"sudo rawbpf bench a.bpf.o b.bpf.o --prog parse --input-file packet.bin --json", "a parser on a packet, for scripts"},
    {"rawbpf bench --emulate a.asm b.asm", "without privileges"},
    {"rawbpf bench --kernel 5.10,6.12 --json -o all.json a.bpf.o", "on two kernels; rawbpf compare all.json says what differs"},
};

using exec::Benched;
using exec::EngineFigures;
using measure::Interval;

void append_interval(std::string &out, const Interval &interval) {
    append(out, R"({{"low":{:.3f},"median":{:.3f},"high":{:.3f}}})", interval.low, interval.value, interval.high);
}

void append_rounds(std::string &out, const std::vector<double> &rounds) {
    out += '[';
    for (const double round : rounds) append(out, "{}{:.3f}", out.ends_with('[') ? "" : ",", round);
    out += ']';
}

void append_engine(render::JsonObject &line, std::string_view name, const EngineFigures &figures, bool asked) {
    if (!asked) {
        line.null(name);
        return;
    }
    render::JsonObject out(line.raw(name));
    out.text_or_null("reason", figures.failed ? figures.failed->message() : std::string());
    if (figures.failed) {
        out.null("runs").null("r0").null("ns").null("own_ns").null("instructions").null("rounds_ns").null("empty_rounds_ns");
        return;
    }
    out.number("runs", figures.runs).hex("r0", figures.r0);
    append_interval(out.raw("ns"), figures.run);
    if (figures.own)
        append_interval(out.raw("own_ns"), *figures.own);
    else
        out.null("own_ns");
    figures.instructions == 0 ? out.null("instructions") : out.number("instructions", figures.instructions);
    append_rounds(out.raw("rounds_ns"), figures.rounds);
    append_rounds(out.raw("empty_rounds_ns"), figures.empty);
}

void append_variant(std::string &out, const exec::Variant &variant, const Benched &row, bool kernel) {
    render::JsonLine line(out, "variant");
    line.text("file", variant.name).text("program", variant.spec.programs[variant.program].name);
    line.number("insns", variant.spec.programs[variant.program].insns.size());
    if (row.loaded) {
        line.number("bytes_xlated", row.loaded->bytes_translated).number("bytes_jited", row.loaded->bytes_jited);
    } else {
        line.null("bytes_xlated").null("bytes_jited");
    }
    load_tool::append_verifier_json(line, row.loaded ? row.loaded->verifier : std::nullopt);
    line.text_or_null("not_loaded", row.not_loaded ? row.not_loaded->message() : std::string());
    append_engine(line, "kernel", row.kernel, kernel);
    append_engine(line, "emulator", row.emulator, true);
}

void append_difference(std::string &out, const exec::Variant &a, const exec::Variant &b, std::string_view engine,
                       const std::optional<Interval> &difference) {
    if (!difference) return;
    render::JsonLine line(out, "difference");
    line.text("from", a.name).text("to", b.name).text("engine", engine);
    append_interval(line.raw("ns"), *difference);
    line.truth("beyond_noise", difference->beyond_zero());
}

std::string cell(const EngineFigures &figures) {
    if (figures.failed) return "-";
    const Interval &shown = figures.own ? *figures.own : figures.run;
    return format("{:.2f} ({:.2f} to {:.2f})", shown.value, shown.low, shown.high);
}

std::string as_text(const std::vector<exec::Variant> &variants, const std::vector<Benched> &rows, bool kernel) {
    std::string out;
    render::Columns table{
        {"VARIANT"},          {"NS IN THE KERNEL", true}, {"NS EMULATED", true}, {"EXECUTED", true}, {"INSNS", true},
        {"TRANSLATED", true}, {"MACHINE CODE", true},     {"VERIFIED", true},    {"STATES", true},   {"STACK", true},
        {"VERIFIER", true}};
    for (size_t i = 0; i < rows.size(); ++i) {
        const Benched &row = rows[i];
        std::vector<std::string> cells = {variants[i].name, kernel ? cell(row.kernel) : "-", cell(row.emulator),
                                          row.emulator.failed ? "-" : format("{}", row.emulator.instructions),
                                          format("{}", variants[i].spec.programs[variants[i].program].insns.size())};
        if (row.loaded) {
            cells.push_back(format("{} B", row.loaded->bytes_translated));
            cells.push_back(format("{} B", row.loaded->bytes_jited));
            if (const auto &verifier = row.loaded->verifier) {
                cells.push_back(format("{}", verifier->instructions));
                cells.push_back(format("{}", verifier->states));
                cells.push_back(verifier->stack.empty() ? "-" : format("{} B", verifier->stack));
                cells.push_back(verifier->time_us ? format("{} us", *verifier->time_us) : "-");
            }
        }
        while (cells.size() < 11) cells.emplace_back("-");
        table.row(std::move(cells));
    }
    table.append_to(out);
    for (size_t i = 1; i < rows.size(); ++i)
        for (int engine = kernel ? 0 : 1; engine < 2; ++engine) {
            const std::optional<Interval> difference = engine == 0 ? exec::more_than(rows[0].kernel, rows[i].kernel)
                                                                   : exec::more_than(rows[0].emulator, rows[i].emulator);
            if (!difference) continue;
            const std::string_view where = engine == 0 ? "in the kernel" : "emulated";
            append(out, "{} {}: {}", variants[i].name, where,
                   difference->beyond_zero()
                       ? format("{:.2f} ns {} than {} ({:.2f} to {:.2f})\n", std::abs(difference->value),
                                difference->value > 0 ? "slower" : "faster", variants[0].name, difference->low, difference->high)
                       : format("no difference to {} beyond noise ({:.2f} to {:.2f} ns)\n", variants[0].name, difference->low,
                                difference->high));
        }
    return printable_lines(out);
}

/// What couldn't be measured, and why.
void tell_failures(const std::vector<exec::Variant> &variants, const std::vector<Benched> &rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto tell = [&](std::string_view where, const std::optional<Error> &error) {
            if (error) say(format("{}: {}: {}: {}\n", kWho, variants[i].name, where, error->message()));
        };
        tell("in the kernel", rows[i].kernel.failed);
        tell("in the emulator", rows[i].emulator.failed);
        if (!rows[i].kernel.failed) tell("what the kernel makes of it isn't known", rows[i].not_loaded);
    }
}

/// Errors name the file, once.
Result<ProgramInput> open_variant(std::string_view file, const Arguments &a) {
    Result<ProgramInput> input = open_program(file, a.text(option("prog")), a.text(option("btf")));
    if (input || input.error().context.find(file) != std::string::npos) return input;
    return Unexpected(in_context(std::move(input).error(), file));
}

Result<std::vector<exec::Variant>> open_variants(const Arguments &a) {
    std::vector<std::byte> memory = TRY(exec::parse_hex(a.text(option("input")), "--input"));
    if (a.has(option("input-file"))) {
        if (a.has(option("input"))) return fail(Errc::invalid_argument, "--input and --input-file are the same memory");
        const InputFile bytes = TRY(InputFile::open(a.text(option("input-file"))));
        memory.assign(bytes.bytes().begin(), bytes.bytes().end());
    }
    std::vector<exec::Variant> out;
    for (std::string_view file : a.operands()) {
        ProgramInput input = TRY(open_variant(file, a));
        out.push_back({std::string(file), std::move(input.spec), input.program, memory, input.packet});
    }
    return out;
}

// Each guest gets the files at the paths that they have here.
int bench_elsewhere(const Arguments &a) {
    Result<std::vector<std::string>> kernels = kernel_names(a.text(option("kernel")));
    if (!kernels) return complain(kWho, kernels.error(), 2);
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    GuestRun run;
    run.options = {format("--directory={}", working_directory()), "--instruction-ns=0", "--timeout=3600"};
    run.command = {"rawbpf", "bench"};
    const auto bring = [&](std::string_view file) -> Result<std::string> {
        const std::string path = TRY(whole_path(file));
        run.options.push_back(format("--file={}", path));
        return path;
    };
    for (size_t i = 0; i < std::size(kOptions); ++i) {
        const std::string_view name = kOptions[i].name;
        if (!a.has({i}) || name == "kernel" || name == "output" || !kOptions[i].stands_for.empty()) continue;
        if (kOptions[i].kind == OptionKind::flag) {
            run.command.push_back(format("--{}{}{}", name, a.text({i}).empty() ? "" : "=", a.text({i})));
            continue;
        }
        std::string value(a.text({i}));
        if (kOptions[i].kind == OptionKind::file) {
            Result<std::string> path = bring(value);
            if (!path) return complain(kWho, path.error());
            value = std::move(*path);
        }
        run.command.push_back(format("--{}={}", name, value));
    }
    for (const std::string_view file : a.operands()) {
        Result<std::string> path = bring(file);
        if (!path) return complain(kWho, path.error());
        run.command.push_back(std::move(*path));
    }
    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();
    const bool json = a.text(option("format")) == "json";
    return run_in_guests(kWho, *kernels, run, [&](const std::string &kernel, std::string &&out) -> Result<void> {
        if (out.empty()) return {}; // why was said
        output->writer().write(json ? out : format("== {}\n{}", kernel, out));
        return output->writer().flush();
    });
}

int run_bench(const Arguments &a) {
    if (a.has(option("kernel"))) return bench_elsewhere(a);
    Result<std::vector<exec::Variant>> variants = open_variants(a);
    if (!variants) return complain(kWho, variants.error(), variants.error().kind == Errc::invalid_argument ? 2 : 1);
    exec::BenchOptions options;
    options.repeat = a.count(option("repeat"));
    options.emulator_only = a.has(option("emulate"));
    options.limit = a.count(option("limit"));
    const bool kernel = !options.emulator_only;
    const std::vector<Benched> rows = exec::bench(*variants, options);
    std::string text;
    if (a.text(option("format")) == "json") {
        append_json_header(text, a);
        for (size_t i = 0; i < rows.size(); ++i) append_variant(text, (*variants)[i], rows[i], kernel);
        for (size_t i = 1; i < rows.size(); ++i) {
            if (kernel)
                append_difference(text, (*variants)[0], (*variants)[i], "kernel",
                                  exec::more_than(rows[0].kernel, rows[i].kernel));
            append_difference(text, (*variants)[0], (*variants)[i], "emulator",
                              exec::more_than(rows[0].emulator, rows[i].emulator));
        }
    } else {
        text = as_text(*variants, rows, kernel);
    }
    tell_failures(*variants, rows);
    const int written = write_result(kWho, a.text(option("output")), text);
    if (written != 0) return written;
    // One engine that could is a result; a variant that none could run is none.
    for (const Benched &row : rows)
        if (row.emulator.failed && (!kernel || row.kernel.failed)) return status_of(*row.emulator.failed);
    return 0;
}

} // namespace

const Command kBench{
    .name = "bench",
    .summary = "measure variants of a program side by side",
    .description =
        "Measures how long a run of each program takes, in the kernel and in the emulator, and also shows how many instructions "
        "it has and executes, how many bytes of machine code the kernel compiles it to, and what verifying it took: instructions "
        "that the verifier processed, states, stack depth, time. A program is an object file, instructions in hex, or source "
        "text for the assembler.\n\n"
        "Variants take turns, so that other work of the machine affects all of them alike. Time is CPU time, minus the time of "
        "an empty program of the same type. The table shows the median and its 95 % confidence interval; the lines below it say "
        "which variants differ from the first by more than that.\n\n"
        "If the kernel or the emulator can't run a program, a message on standard error says so, and only the other one is "
        "measured. In the kernel, rawbpf wraps the program in a few instructions that give it its memory and keep r0, as rawbpf "
        "exec --in-kernel does; the empty program has them, too. Bytes and the verifier's figures are those of the program "
        "alone.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE",
    .least_operands = 1,
    .most_operands = 64,
    .operand_is_file = true,
    .run = run_bench,
};

} // namespace rawbpf::inline v0::cli
