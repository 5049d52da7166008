// Attaches, waits, shows. Ctrl-C ends the waiting, not the command: the command still shows what the maps hold.
#include "cli/attached.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/load/contents.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/stats.h"
#include "runtime/link/iterator.h"
#include "runtime/object/sections.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/file.h"
#include "runtime/sys/net.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {
namespace {

Result<void> wait_for_end(const sys::SignalFd &signals, double seconds) {
    Fd epoll = TRY(sys::epoll_create());
    TRY(sys::epoll_add(epoll.get(), signals.fd(), EPOLLIN, 0));
    const uint64_t end = sys::monotonic_ns() + static_cast<uint64_t>(seconds * 1e9);
    for (;;) {
        int timeout = -1;
        if (seconds > 0) {
            const uint64_t now = sys::monotonic_ns();
            if (now >= end) return {};
            timeout = static_cast<int>(std::min<uint64_t>((end - now + 999'999) / 1'000'000, 1'000'000));
        }
        std::array<epoll_event, 1> event;
        if (TRY(sys::epoll_wait(epoll.get(), event, timeout)) > 0) return {};
    }
}

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
void append_runs(std::string_view who, std::string &out, const LoadedObject &object, bool json) {
    for (const Program &program : object.programs) {
        const Result<RunCost> cost = run_cost(program.fd.get());
        if (!cost) {
            say(format("{}: how often {} ran isn't known: {}\n", who, program.name, cost.error().message()));
            continue;
        }
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
    return request;
}

Result<void> run_attached(std::string_view who, const ObjectSpec &spec, LoadedObject &object, const AttachRequest &request,
                          Pins &pins, render::Writer &out, bool json, bool constants) {
    // Signals first: one that comes while attaching ends the waiting, and everything is taken away as it should be.
    sys::SignalFd signals = TRY(sys::SignalFd::open(sys::kEndingSignals));
    const Result<RunStats> counting = RunStats::enable();
    if (!counting) say(format("{}: how often the programs run isn't counted: {}\n", who, counting.error().message()));
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
    const bool stays = !request.pin_directory.empty();
    if (stays) TRY(pin_links(attached, request.pin_directory + "/links", pins));
    if (!stays || request.seconds > 0) TRY(wait_for_end(signals, request.seconds));

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
    Result<void> shown = load_tool::append_contents(text, spec, object, {.json = json, .constants = constants});
    if (counting && (!stays || request.seconds > 0)) append_runs(who, text, object, json);
    out.write(text);
    return shown;
}

} // namespace rawbpf::inline v0::cli
