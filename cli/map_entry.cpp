// `rawbpf map get|set|delete|pin`: single entries of loaded maps, and a name for a map.
#include <array>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/running/dump.h"
#include "programs/running/entry.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Option kGetOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
constexpr Option kSetOptions[] = {
    {.name = "new", .help = "only a key that isn't there yet (BPF_NOEXIST)", .section = "What", .excludes = "presence"},
    {.name = "existing", .help = "only a key that is there (BPF_EXIST)", .excludes = "presence"},
    syscalls_option(false),
};
constexpr Option kDoOptions[] = {syscalls_option(false)};

#define RAWBPF_WRITTEN                                                                                                           \
    "The map is given by its name, its id or the path of a pin. Keys and values are written by the types that the map was "      \
    "loaded with "                                                                                                               \
    "(BTF): numbers, enumerators, text, {1, 2}, {.member = value}. Without types they are numbers of 1, 2, 4 or 8 bytes in the " \
    "order of this machine, or bytes in hexadecimal; hex:... is bytes in any case. "

constexpr Example kGetExamples[] = {
    {"sudo rawbpf map get counts 0", "the value of key 0"},
    {"sudo rawbpf map get flows '{.port=80}' --json", "a key with members"},
    {"sudo rawbpf map get 42 hex:0a000001", "bytes"},
};
constexpr Example kSetExamples[] = {
    {"sudo rawbpf map set limits 0 100", "change a number that a program reads"},
    {"sudo rawbpf map set jumps 3 next", "element 3 of a program array: the program called next"},
};
constexpr Example kDeleteExamples[] = {{"sudo rawbpf map delete flows '{.port=80}'", "remove an entry"}};
constexpr Example kPinExamples[] = {{"sudo rawbpf map pin counts /sys/fs/bpf/counts", "keep it when its program ends"}};

Result<Map> named_map(std::string_view which) { return Map::from_fd(TRY(find_object(sys::ObjectKind::map, std::string(which)))); }

Result<void> get(const Arguments &a, Output &output) {
    const Map map = TRY(named_map(a.operands()[0]));
    running::Names names;
    const std::vector<std::byte> key = TRY(running::parse_key(map, names, a.operands()[1]));
    std::vector<std::byte> value(map.lookup_size());
    TRY_IN(map.lookup(key.data(), value.data()), "key {}", a.operands()[1]);
    const bool json = a.text(find(kGetOptions, "format")) == "json";
    if (json) append_json_header(output.writer().text(), a);
    return running::dump_entry(map, names, {.json = json, .all = true}, key, value, output.writer());
}

int run_get(const Arguments &a) {
    return write_output("rawbpf map get", a.text(find(kGetOptions, "output")), [&](Output &output) { return get(a, output); });
}

Result<void> set(const Arguments &a) {
    const Map map = TRY(named_map(a.operands()[0]));
    running::Names names;
    const bool keyless = map.key_size() == 0; // queues, stacks, bloom filters
    if (a.operands().size() != (keyless ? 2 : 3))
        return fail(Errc::invalid_argument, "map {} has {} keys: {}", a.operands()[0], keyless ? "no" : "",
                    keyless ? "its name and a value are all" : "its name, a key and a value are needed");
    std::vector<std::byte> key;
    if (!keyless) key = TRY(running::parse_key(map, names, a.operands()[1]));
    const running::EntryValue value = TRY(running::EntryValue::parse(map, names, a.operands().back()));
    const uint64_t flags = a.has(find(kSetOptions, "new"))        ? BPF_NOEXIST
                           : a.has(find(kSetOptions, "existing")) ? BPF_EXIST
                                                                  : BPF_ANY;
    TRY_IN(map.update(keyless ? nullptr : key.data(), value.data(), flags), "{}",
           keyless ? "the value" : format("key {}", a.operands()[1]));
    return {};
}

Result<void> erase(const Arguments &a) {
    const Map map = TRY(named_map(a.operands()[0]));
    running::Names names;
    const std::vector<std::byte> key = TRY(running::parse_key(map, names, a.operands()[1]));
    TRY_IN(map.erase(key.data()), "key {}", a.operands()[1]);
    return {};
}

Result<void> pin(const Arguments &a) {
    const Map map = TRY(named_map(a.operands()[0]));
    TRY(map.pin(std::string(a.operands()[1])));
    return {};
}

/// What only does something, and prints nothing.
template <Result<void> (*act)(const Arguments &)> int run_silent(const Arguments &a) {
    const Result<void> done = act(a);
    return done ? 0 : complain(format("rawbpf {}", a.command().name), done.error());
}

} // namespace

const Command kMapGet{
    .name = "map get",
    .summary = "show the value of a key",
    .description = "Looks up one key of a loaded map and shows the entry as rawbpf map dump does. " RAWBPF_WRITTEN
                   "Status 1 where the key isn't there.",
    .options = kGetOptions,
    .examples = kGetExamples,
    .operand = "MAP KEY",
    .least_operands = 2,
    .most_operands = 2,
    .operand_kind = "maps",
    .run = run_get,
};

const Command kMapSet{
    .name = "map set",
    .summary = "write the value of a key",
    .description = "Writes one entry of a loaded map. " RAWBPF_WRITTEN
                   "In a per-CPU map, the values of all CPUs are set. For a map that holds programs or maps, VALUE is an id, a "
                   "name or a pin. Queues, stacks and bloom filters have no keys: MAP VALUE adds one.",
    .options = kSetOptions,
    .examples = kSetExamples,
    .operand = "MAP KEY VALUE",
    .least_operands = 2,
    .most_operands = 3,
    .operand_kind = "maps",
    .run = run_silent<set>,
};

const Command kMapDelete{
    .name = "map delete",
    .summary = "remove a key",
    .description = "Removes one entry of a loaded map. " RAWBPF_WRITTEN "Status 1 where the key isn't there, and for arrays, "
                   "whose elements stay.",
    .options = kDoOptions,
    .examples = kDeleteExamples,
    .operand = "MAP KEY",
    .least_operands = 2,
    .most_operands = 2,
    .operand_kind = "maps",
    .run = run_silent<erase>,
};

const Command kMapPin{
    .name = "map pin",
    .summary = "give a map a path, which keeps it",
    .description = "Pins a loaded map at a path on a bpf file system: it stays until the path is removed, even if no process "
                   "holds it. The map is given by its name, its id or the path of another pin.",
    .options = kDoOptions,
    .examples = kPinExamples,
    .operand = "MAP PATH",
    .least_operands = 2,
    .most_operands = 2,
    .operand_kind = "maps",
    .run = run_silent<pin>,
};

} // namespace rawbpf::inline v0::cli
