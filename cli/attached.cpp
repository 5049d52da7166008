// Attaches, waits, shows. Ctrl-C ends the waiting, not the command: the command still shows what the maps hold.
#include "cli/attached.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/waiting.h"
#include "programs/load/contents.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/stats.h"
#include "runtime/link/iterator.h"
#include "runtime/object/sections.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/net.h"

namespace rawbpf::inline v0::cli {
namespace {

// What says where such programs go as those of the object: an option, or the name of the section.
std::string what_says_where(const LoadedObject &object) {
    std::vector<std::string> ways;
    for (const Program &program : object.programs) {
        const SectionKind *kind = find_section_kind(program.section);
        std::string way;
        if (!kind) continue;
        switch (kind->attachment) {
        case Attachment::xdp:
        case Attachment::tcx:
        case Attachment::tc:
        case Attachment::netkit: way = "--interface says where it goes"; break;
        case Attachment::cgroup: way = "--cgroup says where it goes"; break;
        case Attachment::network_namespace: way = "--netns says where it goes"; break;
        case Attachment::perf_event: way = "--freq says how often it runs"; break;
        default: break;
        }
        if (way.empty() && kind->target == SectionTarget::none) continue;
        if (way.empty())
            way = format("the section names the target: SEC(\"{}/{}\")", kind->name,
                         kind->target == SectionTarget::user_function ? "FILE:FUNCTION" : "TARGET");
        way = format("{}: {}", program.section, way);
        if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(std::move(way));
    }
    std::string out;
    for (const std::string &way : ways) append(out, "{}{}", out.empty() ? "" : "\n", way);
    return out;
}

void link_line(std::string &out, const Link &link) {
    std::string notes = "[";
    for (const std::string &note : link.notes()) {
        if (notes.size() > 1) notes += ',';
        render::append_json(notes, note);
    }
    render::JsonLine line(out, "link");
    line.text("what", link.what()).number("places", link.places()).raw("notes") += notes + "]";
}

/// What each program did meanwhile.
void append_runs(std::string_view who, std::string &out, const LoadedObject &object, const std::vector<RunCost> &before,
                 bool json) {
    for (size_t i = 0; i < object.programs.size(); ++i) {
        const Program &program = object.programs[i];
        Result<RunCost> cost = run_cost(program.fd.get());
        if (!cost) {
            say(format("{}: how often {} ran isn't known: {}\n", who, program.name, cost.error().message()));
            continue;
        }
        cost->runs -= before[i].runs, cost->ns -= before[i].ns, cost->recursion_misses -= before[i].recursion_misses;
        const double mean = cost->runs == 0 ? 0 : static_cast<double>(cost->ns) / static_cast<double>(cost->runs);
        if (!json) {
            render::append_line(out, cost->runs == 0 ? format("{} didn't run", program.name)
                                                     : format("{} ran {} time{}, {:.0f} ns each", program.name,
                                                              render::grouped(cost->runs), cost->runs == 1 ? "" : "s", mean));
            continue;
        }
        render::JsonLine line(out, "runs");
        line.text("program", program.name).number("run_cnt", cost->runs).number("run_time_ns", cost->ns);
        line.number("recursion_misses", cost->recursion_misses);
        if (cost->runs == 0)
            line.null("mean_ns");
        else
            append(line.raw("mean_ns"), "{:.1f}", mean);
    }
}

Result<void> pin_links(Attached &attached, const std::string &directory, Pins &pins) {
    TRY(pins.directory(directory));
    for (size_t i = 0; i < attached.links.size(); ++i) {
        std::string name = attached.names[i];
        std::replace(name.begin(), name.end(), '.', '_'); // bpffs takes no dots
        const std::string path = format("{}/{}", directory, name);
        TRY(attached.links[i].pin(path));
        pins.add(path);
    }
    return {};
}

} // namespace

Result<AttachRequest> attach_request(const Arguments &a, const AttachIds &ids) {
    AttachRequest request;
    request.wanted = a.has(ids.attach);
    if (!request.wanted) {
        for (auto [id, name] : {std::pair(ids.duration, "--duration"),
                                {ids.interface, "--interface"},
                                {ids.egress, "--egress"},
                                {ids.cgroup, "--cgroup"},
                                {ids.netns, "--netns"},
                                {ids.pid, "--pid"},
                                {ids.freq, "--freq"}})
            if (a.has(id))
                return Unexpected(make_error(Errc::invalid_argument, format("{} is about attaching", name), "add --attach"));
        return request;
    }
    TRY(read_places(a, ids, request));
    return request;
}

Result<void> read_places(const Arguments &a, const AttachIds &ids, AttachRequest &request) {
    request.wanted = true;
    request.seconds = a.seconds(ids.duration);
    if (a.has(ids.interface)) request.places.interface = TRY(sys::interface_index(std::string(a.text(ids.interface))));
    request.places.egress = a.has(ids.egress);
    if (request.places.egress && request.places.interface == 0)
        return Unexpected(make_error(Errc::invalid_argument, "--egress is about an interface", "name it with --interface"));
    if (a.has(ids.cgroup)) {
        request.cgroup = TRY(sys::open(std::string(a.text(ids.cgroup)), O_RDONLY | O_DIRECTORY));
        request.places.cgroup_fd = request.cgroup.get();
    }
    if (a.has(ids.netns)) {
        request.network_namespace = TRY(sys::open(std::string(a.text(ids.netns)), O_RDONLY));
        request.places.network_namespace_fd = request.network_namespace.get();
    }
    if (a.has(ids.pid)) request.places.pid = a.pid(ids.pid);
    if (a.has(ids.freq)) request.places.frequency = a.count(ids.freq);
    return {};
}

Result<void> run_attached(std::string_view who, const ObjectSpec &spec, LoadedObject &object, const AttachRequest &request,
                          Pins &pins, render::Writer &out, bool json, bool constants) {
    // Signals first: one that comes while attaching ends the waiting, and everything is taken away as it should be.
    const Waiting waiting = TRY(Waiting::open());
    const Result<RunStats> counting = RunStats::enable();
    if (!counting) say(format("{}: how often the programs run isn't counted: {}\n", who, counting.error().message()));
    std::vector<RunCost> before; // others may have loaded them, and run them
    for (const Program &program : object.programs) before.push_back(run_cost(program.fd.get()).value_or(RunCost{}));
    Attached attached = TRY(attach_object(spec, object, request.places));
    for (const std::string &note : attached.notes) say(format("{}: {}\n", who, render::printable(note)));
    if (attached.links.empty()) {
        if (object.programs.empty() && object.struct_ops.empty())
            return fail(Errc::not_found, "{}: has nothing to attach", spec.name);
        return Unexpected(
            make_error(Errc::invalid_argument, format("{}: nothing was attached", spec.name), what_says_where(object)));
    }
    std::string text;
    for (const Link &link : attached.links) {
        if (json) link_line(text, link);
        say(format("{}: attached: {}{}\n", who, render::printable(link.what()),
                   link.places() == 1 ? "" : format(", {} places", render::grouped(link.places()))));
        for (const std::string &note : link.notes()) say(format("{}:   {}\n", who, render::printable(note)));
    }
    out.write(text);
    TRY(out.flush());
    const bool stays = !request.pin_directory.empty() || !request.pin.empty();
    if (!request.pin_directory.empty()) TRY(pin_links(attached, request.pin_directory + "/links", pins));
    if (!request.pin.empty()) {
        if (attached.links.size() != 1 || attached.links[0].fd() < 0)
            return Unexpected(make_error(Errc::unsupported,
                                         format("{} can't be pinned: it isn't one link", attached.links[0].what()),
                                         "without --pin it is attached until rawbpf ends"));
        TRY(attached.links[0].pin(request.pin));
        pins.add(request.pin);
    }
    const uint64_t end = request.seconds > 0 ? sys::monotonic_ns() + static_cast<uint64_t>(request.seconds * 1e9) : UINT64_MAX;
    if (!stays || request.seconds > 0) TRY(waiting.stopped_before(end));

    // What iterators print depends on when they are read: now, while everything else is still attached.
    for (const Link &link : attached.links) {
        Result<LinkInfo> info = link.info();
        if (!info || info->type != LinkType::ITER) continue;
        if (json) {
            std::string line, printed = TRY(read_iterator(link));
            render::JsonLine(line, "iterator").text("what", link.what()).text("text", printed);
            out.write(line);
        } else {
            TRY(run_iterator(link, [&](std::string_view piece) -> Result<void> {
                out.write(piece);
                return {};
            }));
        }
    }
    if (!stays)
        for (Link &link : attached.links) TRY(link.detach());
    text.clear();
    Result<void> shown;
    if (request.contents) shown = load_tool::append_contents(text, spec, object, {.json = json, .constants = constants});
    if (counting && (!stays || request.seconds > 0)) append_runs(who, text, object, before, json);
    out.write(text);
    return shown;
}

} // namespace rawbpf::inline v0::cli
