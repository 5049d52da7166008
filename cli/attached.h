// `rawbpf load --attach`: what happens between loading and letting go.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/options.h"
#include "runtime/kernel/pins.h"
#include "runtime/link/attach.h"

namespace rawbpf::inline v0::cli {

// Rows for the table of a command that attaches.
inline constexpr Option kAttachOption{
    .name = "attach",
    .help =
        "attach every program whose section says where, and every struct_ops map, for the duration; then show what the maps hold",
    .section = "Attaching"};
inline constexpr Option kAttachDurationOption{.name = "duration",
                                              .letter = 'd',
                                              .kind = OptionKind::seconds,
                                              .argument = "SECONDS",
                                              .help = "with --attach: how long: 3, 0.5, 200ms, 2m; by default until Ctrl-C"};
inline constexpr Option kAttachInterfaceOption{.name = "interface",
                                               .letter = 'i',
                                               .kind = OptionKind::interface,
                                               .argument = "NAME",
                                               .help =
                                                   "with --attach: the network interface for xdp, tc, tcx and netkit programs"};
inline constexpr Option kAttachEgressOption{
    .name = "egress", .help = "with --interface: tc and classifier programs see what goes out, not what comes in"};
inline constexpr Option kAttachCgroupOption{.name = "cgroup",
                                            .kind = OptionKind::directory,
                                            .argument = "DIR",
                                            .help =
                                                "with --attach: the cgroup (v2) for cgroup/..., sockops and lsm_cgroup programs"};
inline constexpr Option kAttachNetnsOption{
    .name = "netns",
    .kind = OptionKind::file,
    .argument = "FILE",
    .help = "with --attach: the network namespace for sk_lookup and flow_dissector programs; /proc/self/ns/net is rawbpf's own"};
inline constexpr Option kAttachPidOption{.name = "pid",
                                         .letter = 'p',
                                         .kind = OptionKind::pid,
                                         .argument = "PID",
                                         .help = "with --attach: uprobes in this process only"};
inline constexpr Option kAttachFreqOption{.name = "freq",
                                          .letter = 'F',
                                          .kind = OptionKind::count,
                                          .argument = "HZ",
                                          .help = "with --attach: how many times per second perf_event programs run on each CPU",
                                          .least = 1};

struct AttachIds {
    Id attach, duration, interface, egress, cgroup, netns, pid, freq;
};
template <size_t N> consteval AttachIds attach_ids(const Option (&table)[N]) {
    return {find(table, "attach"), find(table, "duration"), find(table, "interface"), find(table, "egress"),
            find(table, "cgroup"), find(table, "netns"),    find(table, "pid"),       find(table, "freq")};
}

/// What the options ask for, with what they name opened.
struct AttachRequest {
    bool wanted = false;
    double seconds = 0; ///< 0: until Ctrl-C
    AttachPlaces places;
    Fd cgroup, network_namespace; ///< what `places` refers to
    std::string pin_directory;    ///< links are pinned as DIRECTORY/links/NAME and stay; empty: they end with the command
    std::string pin;              ///< the only link is pinned there, and stays
    bool contents = true;         ///< what the object's maps hold is shown in the end
};
/// Errors: invalid_argument (an option without --attach), not_found (no such interface, directory, file).
[[nodiscard]] Result<AttachRequest> attach_request(const Arguments &a, const AttachIds &ids);
/// The same for a command that always attaches: `ids.attach` isn't looked at.
[[nodiscard]] Result<void> read_places(const Arguments &a, const AttachIds &ids, AttachRequest &request);

/// Attaches, says so on standard error, waits, detaches, and writes what iterators print, what the maps hold, and how often each
/// program ran and for how long (as far as the kernel counts it: 5.1). In JSON there is a line
/// {"type":"link","what","places","notes"} for each link too. What it pins is added to `pins`. Errors: those of attach_object();
/// not_found when nothing could be attached.
[[nodiscard]] Result<void> run_attached(std::string_view who, const ObjectSpec &spec, LoadedObject &object,
                                        const AttachRequest &request, Pins &pins, render::Writer &out, bool json, bool constants);

} // namespace rawbpf::inline v0::cli
