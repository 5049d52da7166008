// `rawbpf attach`: attaches a program that is already loaded to a place that the user names.
#include "cli/attached.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/running/adopt.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/find_object.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf attach";

constexpr Option kOptions[] = {
    {.name = "duration",
     .letter = 'd',
     .kind = OptionKind::seconds,
     .argument = "SECONDS",
     .help = "how long: 3, 0.5, 200ms, 2m; by default until Ctrl-C",
     .section = "How long",
     .excludes = "how long"},
    {.name = "pin",
     .kind = OptionKind::text,
     .argument = "PATH",
     .help = "pin the link at this path on a bpf file system, and end: it stays attached until the path is removed",
     .excludes = "how long"},
    {.name = "interface",
     .letter = 'i',
     .kind = OptionKind::interface,
     .argument = "NAME",
     .help = "the network interface for xdp, tc, tcx and netkit",
     .section = "Where"},
    {.name = "egress", .help = "with --interface: tc and classifier see what goes out, not what comes in"},
    {.name = "cgroup", .kind = OptionKind::directory, .argument = "DIR", .help = "the cgroup (v2) for cgroup/... and sockops"},
    {.name = "netns",
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "the network namespace for sk_lookup and flow_dissector; /proc/self/ns/net is rawbpf's own"},
    {.name = "pid", .letter = 'p', .kind = OptionKind::pid, .argument = "PID", .help = "uprobes in this process only"},
    {.name = "freq",
     .letter = 'F',
     .kind = OptionKind::count,
     .argument = "HZ",
     .help = "how many times per second a perf_event program runs on each CPU",
     .least = 1},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }
constexpr AttachIds kIds{{},
                         option("duration"),
                         option("interface"),
                         option("egress"),
                         option("cgroup"),
                         option("netns"),
                         option("pid"),
                         option("freq")};

constexpr Example kExamples[] = {
    {"sudo rawbpf attach on_exec raw_tp:sched_process_exec", "until Ctrl-C; then how often it ran"},
    {"sudo rawbpf attach 42 kprobe:vfs_read -d 5", "the same program at one more function"},
    {"sudo rawbpf attach filter xdp -i eth0 --pin /sys/fs/bpf/filter", "at an interface, to stay"},
};

Result<void> attach(const Arguments &a, const AttachRequest &request, Output &output) {
    Fd program = TRY(find_object(sys::ObjectKind::program, std::string(a.operands()[0])));
    LoadedObject object = TRY(running::adopt_program(std::move(program), a.operands()[1]));
    ObjectSpec spec;
    spec.name = object.name;
    const bool json = a.text(option("format")) == "json";
    if (json) append_json_header(output.writer().text(), a);
    Pins pins;
    TRY(run_attached(kWho, spec, object, request, pins, output.writer(), json, false));
    TRY(output.writer().flush());
    pins.keep();
    return {};
}

int run_attach(const Arguments &a) {
    AttachRequest request;
    if (const Result<void> read = read_places(a, kIds, request); !read)
        return complain(kWho, read.error(), read.error().kind == Errc::invalid_argument ? 2 : 1);
    request.contents = false;
    request.pin = a.text(option("pin"));
    return write_output(kWho, a.text(option("output")), [&](Output &output) { return attach(a, request, output); });
}

} // namespace

const Command kAttach{
    .name = "attach",
    .summary = "attach a program that is loaded already",
    .description = "Attaches a program that is already loaded: until Ctrl-C, for --duration, or, with --pin, until the pin is "
                   "removed. The program is given by its id, its name or the path of a pin. PLACE is written as the name of an "
                   "ELF section: kprobe/vfs_read, kprobe:vfs_read, tracepoint:sched:sched_switch, raw_tp:sched_switch, "
                   "uprobe:/usr/bin/x:main, xdp, cgroup/skb, perf_event. It must fit the program's type; if it doesn't, the "
                   "error lists the places that do. A program for fentry, fexit, LSM, tp_btf or an iterator was verified for one "
                   "place, so PLACE needs no target: fentry is enough.\n\n"
                   "At the end, rawbpf prints how often the program ran in that time, and how long a run took. rawbpf map dump "
                   "and map watch show its maps.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "ID|NAME|PIN PLACE",
    .least_operands = 2,
    .most_operands = 2,
    .operand_kind = "programs",
    .run = run_attach,
};

} // namespace rawbpf::inline v0::cli
