// `rawbpf map watch`: what changes in a loaded map, while it changes.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/running.h"
#include "cli/waiting.h"
#include "programs/render/text.h"
#include "programs/running/watch.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/find_object.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf map watch";

constexpr Option kOptions[] = {
    every_option("the interval at which the map is read: 1, 200ms, 1m"),
    kLooksDurationOption,
    {.name = "changes", .help = "show only changes, not the entries that the map has at the start", .section = "What"},
    {.name = "max-memory",
     .kind = OptionKind::text,
     .argument = "SIZE",
     .help = "the most memory for one of the two copies of the map: 64M, 2G; at least 1M",
     .fallback = "256M",
     .was = "memory"},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    kQuietOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf map watch counts", "each key that is new, gone or has another value, every second; Ctrl-C ends it"},
    {"sudo rawbpf map watch flows --every 100ms -d 10 --changes --json", "ten seconds of changes, for scripts"},
};

struct Settings {
    LooksAsked looks;
    uint64_t most;
};
Result<Settings> settings(const Arguments &a) {
    return Settings{TRY(looks_asked(a, option("every"), option("duration"), 1)),
                    TRY(parse_size(a.text(option("max-memory")), "--max-memory", uint64_t{1} << 20, uint64_t{1} << 40))};
}

Result<void> watch(const Arguments &a, const Settings &wanted, Output &output) {
    const Map map = TRY(Map::from_fd(TRY(find_object(sys::ObjectKind::map, std::string(a.operands()[0])))));
    running::Names names;
    const bool json = a.text(option("format")) == "json";
    running::MapWatch changes = TRY(running::MapWatch::open(map, names, json, wanted.most));
    if (json) append_json_header(output.writer().text(), a);
    Looks looks = TRY(Looks::begin(wanted.looks));
    if (a.has(option("changes")))
        TRY(changes.remember(output.writer()));
    else
        TRY(changes.look(0, output.writer()));
    const running::MapWatch::Counts first = changes.counts();
    while (TRY(looks.next())) TRY(changes.look(looks.elapsed_ns(), output.writer()));
    const running::MapWatch::Counts &all = changes.counts();
    if (!a.has(option("quiet")))
        say(format("{}: {} looks: {} added, {} changed, {} removed since the first\n", kWho, render::grouped(all.looks),
                   render::grouped(all.added - first.added), render::grouped(all.changed), render::grouped(all.removed)));
    return {};
}

int run_watch(const Arguments &a) {
    const Result<Settings> wanted = settings(a);
    if (!wanted) return complain(kWho, wanted.error(), 2);
    return write_output(kWho, a.text(option("output")), [&](Output &output) { return watch(a, *wanted, output); });
}

} // namespace

const Command kMapWatch{
    .name = "map watch",
    .summary = "show what changes in a map",
    .description =
        "Shows the entries of a loaded map. Then it reads the map again at an interval, and shows each key that is new (+), was "
        "removed (-) or has another value (~, the old value and the new one), with the seconds since the start. Of an object's "
        "global variables, it shows those that changed. The map is given by its name, its id or the path of a pin. Keys and "
        "values are shown as rawbpf map dump does; elements of arrays that are zero aren't shown until they change. In JSON, a "
        "change is a line with before and after, each with bpftool's fields.\n\n"
        "The kernel doesn't report changes of a map, so rawbpf reads the whole map each time. It misses a key that is added and "
        "removed between two reads. rawbpf keeps two copies of the map, each at most as large as --max-memory says.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "ID|NAME|PIN",
    .least_operands = 1,
    .most_operands = 1,
    .operand_kind = "maps",
    .run = run_watch,
};

} // namespace rawbpf::inline v0::cli
