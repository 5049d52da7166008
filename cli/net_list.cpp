// `rawbpf net list`: programs that work on packets, by where they are attached.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/running/network.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf net list";

constexpr Option kOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf net list", "what sees packets on this machine"},
    {"sudo rawbpf net list --json | jq -r 'select(.kind == \"xdp\") | .devname'", "interfaces with XDP programs"},
    {"sudo nsenter -t 1234 -n rawbpf net list", "in the network namespace of process 1234"},
};

int run_net(const Arguments &a) {
    running::Names names;
    const Result<running::NetworkRows> found = running::network_rows(names);
    if (!found) return complain(kWho, found.error());
    std::string text;
    if (a.text(option("format")) == "json") {
        append_json_header(text, a);
        for (const running::NetworkRow &row : found->rows) running::append_json(text, row);
    } else {
        text = running::as_list(found->rows);
    }
    for (const std::string &note : found->notes) say(format("{}: {}\n", kWho, note));
    return write_result(kWho, a.text(option("output")), text);
}

} // namespace

const Command kNetList{
    .name = "net list",
    .summary = "list the programs that see packets, by attach point",
    .description = "Lists the programs at the interfaces of this network namespace, however they were attached: XDP, filters of "
                   "tc (at clsact and ingress), "
                   "tcx (6.6), netkit (6.7); and those of the namespace: flow dissectors, sk_lookup and netfilter (6.4). A "
                   "program that was attached "
                   "through a link has the link's id. Other namespaces are listed from within: ip netns exec, nsenter -n.\n\n"
                   "Reading links and the names of programs needs CAP_SYS_ADMIN; without it, the list leaves them out.",
    .options = kOptions,
    .examples = kExamples,
    .run = run_net,
};

} // namespace rawbpf::inline v0::cli
