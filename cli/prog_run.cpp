// `rawbpf prog run`: a loaded program, once or more often, on data of one's own.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/exec/input.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/running/run.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/kernel/find_object.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf prog run";

constexpr Option kOptions[] = {
    {.name = "input", .kind = OptionKind::text, .argument = "HEX", .help = "the packet; otherwise 64 zeros", .section = "Input"},
    {.name = "input-file", .kind = OptionKind::file, .argument = "FILE", .help = "the same, read from a file"},
    {.name = "context",
     .kind = OptionKind::text,
     .argument = "HEX",
     .help = "struct __sk_buff or xdp_md; a raw tracepoint's arguments, 8 bytes each; a syscall program's own"},
    {.name = "repeat",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "run it N times",
     .section = "How",
     .fallback = "1",
     .least = 1,
     .most = 1'000'000'000},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    {.name = "packet-file",
     .kind = OptionKind::text,
     .written = true,
     .argument = "FILE",
     .help = "write the packet to this file after the run"},
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf prog run filter --input-file packet.bin", "what does it do with this packet?"},
    {"sudo rawbpf prog run 42 --repeat 1000000", "how long does a run take?"},
    {"sudo rawbpf prog run /sys/fs/bpf/tool/on_exec --context 2a00000000000000", "a raw tracepoint with one argument"},
};

Result<running::LoadedRunOptions> run_options(const Arguments &a) {
    running::LoadedRunOptions out;
    if (a.has(option("input")) && a.has(option("input-file")))
        return fail(Errc::invalid_argument, "--input and --input-file are the same packet");
    out.packet = TRY(exec::parse_hex(a.text(option("input")), "--input"));
    if (a.has(option("input-file"))) {
        const InputFile bytes = TRY(InputFile::open(a.text(option("input-file"))));
        out.packet.assign(bytes.bytes().begin(), bytes.bytes().end());
    }
    out.context = TRY(exec::parse_hex(a.text(option("context")), "--context"));
    out.repeat = static_cast<uint32_t>(a.count(option("repeat")));
    return out;
}

std::string shown(const Arguments &a, const running::LoadedRun &run) {
    std::string text;
    if (a.text(option("format")) == "json") {
        append_json_header(text, a);
        render::JsonLine line(text, "run");
        line.number("retval", run.result).number("repeat", a.count(option("repeat")));
        run.ns ? line.number("duration", run.ns) : line.null("duration");
        line.text_or_null("data_out", hex_text(run.packet)).text_or_null("ctx_out", hex_text(run.context));
        return text;
    }
    append(text, "{} ({:#x})", run.result, run.result);
    if (run.ns != 0) append(text, ", {} ns{}", render::grouped(run.ns), a.count(option("repeat")) > 1 ? " a run" : "");
    text += '\n';
    return text;
}

int run_prog(const Arguments &a) {
    Result<running::LoadedRunOptions> options = run_options(a);
    if (!options) return complain(kWho, options.error(), options.error().kind == Errc::not_found ? 1 : 2);
    const auto run = [&]() -> Result<running::LoadedRun> {
        const Fd program = TRY(find_object(sys::ObjectKind::program, std::string(a.operands()[0])));
        return running::run_loaded(program.get(), *options);
    };
    const Result<running::LoadedRun> done = run();
    if (!done) return complain(kWho, done.error());
    if (a.has(option("packet-file"))) {
        const std::string_view bytes(reinterpret_cast<const char *>(done->packet.data()), done->packet.size());
        if (const int status = write_result(kWho, a.text(option("packet-file")), bytes); status != 0) return status;
    }
    return write_result(kWho, a.text(option("output")), shown(a, *done));
}

} // namespace

const Command kProgRun{
    .name = "prog run",
    .summary = "run a loaded program on data of your own",
    .description = "Runs a loaded program with BPF_PROG_TEST_RUN (4.12), and prints what it returned and how long a run took. "
                   "The program is given by its id, its name or a pin. It uses its real maps: what it writes to them stays.\n\n"
                   "The kernel runs socket, XDP, tc, cgroup and other programs that take packets, raw tracepoints (5.10; "
                   "--context has their arguments) and syscall programs (5.14); others are unsupported (status 3). rawbpf exec "
                   "runs programs that aren't loaded.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "ID|NAME|PIN",
    .least_operands = 1,
    .most_operands = 1,
    .operand_kind = "programs",
    .run = run_prog,
};

} // namespace rawbpf::inline v0::cli
