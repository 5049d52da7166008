// The way from a section's name to an attachment: one switch (ways.cpp).
//
//      SEC("kprobe/vfs_read")  ->  SectionKind{attachment kprobe}, "vfs_read"  ->  attach_kprobe()
//
// What the name doesn't say, the options must; where neither does, the error says what is needed. struct_ops programs aren't
// attached one by one: the map that names them is.
#include "runtime/link/attach.h"

#include <optional>

#include "runtime/base/fail.h"
#include "runtime/link/attaching.h"
#include "runtime/link/event.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {
namespace {

Unexpected not_alone(const Attaching &a, std::string_view how) {
    return Unexpected(make_error(
        Errc::invalid_argument,
        format("section {}: rawbpf can't attach it without {}", a.program.section, attachment_needs(a.kind.attachment)),
        std::string(how)));
}

// Those that no call of the kernel's attaches by itself.
Result<Link> dispatch(const Attaching &a) {
    switch (a.kind.attachment) {
    case Attachment::run:
        return not_alone(a, "programs of this type aren't attached: BPF_PROG_TEST_RUN runs them once (rawbpf prog run)");
    case Attachment::route:
        return not_alone(a, "pin the program and name the pin in a route: ip route add NET encap bpf in pinned PATH dev DEV");
    case Attachment::action:
        return not_alone(a, "pin the program and name the pin in a filter: tc ... action bpf object-pinned PATH");
    case Attachment::map_entry:
        return not_alone(a, "write the program's descriptor into the map's entry (struct bpf_devmap_val, bpf_cpumap_val)");
    case Attachment::struct_ops:
        return Unexpected(make_error(Errc::invalid_argument,
                                     format("section {}: attach its struct_ops map, not the program", a.program.section)));
    default: return attach_by_kind(a);
    }
}

// Kinds whose section may stand without a target: "kprobe" alone, for programs that are given one later.
bool wants_target(const SectionKind &kind) {
    switch (kind.target) {
    case SectionTarget::none:
    case SectionTarget::struct_ops:
    case SectionTarget::btf_function:
    case SectionTarget::btf_tracepoint:
    case SectionTarget::lsm_hook:
    case SectionTarget::iterator:
    case SectionTarget::program: return false; // the last six were decided at loading
    default: return true;
    }
}

} // namespace

bool attaches_by_itself(const Program &program) {
    const SectionKind *kind = find_section_kind(program.section);
    if (!kind || !attachment_needs(kind->attachment).empty() || kind->attachment == Attachment::struct_ops) return false;
    return !wants_target(*kind) || !section_target(*kind, program.section).empty();
}

Result<Link> attach_program(const ObjectSpec &spec, LoadedObject &object, const Program &program, const AttachOptions &options) {
    const SectionKind *kind = find_section_kind(program.section);
    if (!kind) return fail(Errc::invalid_argument, "program {}: {}", program.name, explain_unknown_section(program.section));
    Attaching a{spec, object, program, options, *kind, options.target};
    if (a.target.empty()) a.target = section_target(*kind, program.section);
    if (a.target.empty() && options.functions.empty() && wants_target(*kind))
        return Unexpected(
            make_error(Errc::invalid_argument,
                       format("program {}: section {} doesn't say where to attach it", program.name, program.section),
                       format("name the section {}/TARGET, or give a target when you attach the program", kind->name)));
    Link link = TRY_IN(dispatch(a), "program {}", program.name);
    if (link.what().empty()) link.name(a.what(), link.places());
    return link;
}

Result<Link> attach_clock(const Program &program, uint64_t frequency) {
    Link link;
    std::vector<int> cpus = TRY(online_cpus());
    for (int cpu : cpus) {
        sys::PerfEventAttr attr;
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_CPU_CLOCK;
        attr.sample_period = frequency;
        attr.bits = sys::kPerfFreq | sys::kPerfDisabled;
        Fd event =
            TRY_IN(sys::perf_event_open(attr, -1, cpu), "program {}: a clock of {} Hz on CPU {}", program.name, frequency, cpu);
        Fd on = TRY_IN(run_on_event(event.get(), program.fd.get()), "program {}", program.name);
        TRY(sys::perf_event_enable(event.get()));
        link.add(std::move(on), std::move(event));
    }
    link.name(format("{} at {} Hz on {} CPUs", program.section, frequency, cpus.size()), cpus.size());
    return link;
}

namespace {

// nullopt: nothing says where.
Result<std::optional<Link>> attach_somewhere(const ObjectSpec &spec, LoadedObject &object, const Program &program,
                                             const SectionKind &kind, const AttachPlaces &places) {
    AttachOptions options;
    options.pid = places.pid;
    bool told = attaches_by_itself(program);
    switch (kind.attachment) {
    case Attachment::xdp:
    case Attachment::tcx:
    case Attachment::tc:
    case Attachment::netkit:
        options.interface = places.interface;
        options.egress = places.egress;
        told = places.interface != 0;
        break;
    case Attachment::cgroup: options.target_fd = places.cgroup_fd, told = places.cgroup_fd >= 0; break;
    case Attachment::network_namespace:
        options.target_fd = places.network_namespace_fd, told = places.network_namespace_fd >= 0;
        break;
    case Attachment::socket_map: {
        size_t maps = 0;
        for (const Map &map : object.maps) maps += map.type() == BPF_MAP_TYPE_SOCKMAP || map.type() == BPF_MAP_TYPE_SOCKHASH;
        told = maps == 1;
        break;
    }
    case Attachment::perf_event:
        if (places.frequency == 0) return std::optional<Link>();
        return std::optional<Link>(TRY(attach_clock(program, places.frequency)));
    default: break;
    }
    if (!told) return std::optional<Link>();
    return std::optional<Link>(TRY(attach_program(spec, object, program, options)));
}

} // namespace

Result<Attached> attach_object(const ObjectSpec &spec, LoadedObject &object, const AttachPlaces &places) {
    Attached out;
    for (const Program &program : object.programs) {
        const SectionKind *kind = find_section_kind(program.section);
        if (kind && kind->attachment == Attachment::struct_ops) continue;
        std::optional<Link> link;
        if (kind) link = TRY(attach_somewhere(spec, object, program, *kind, places));
        if (link) {
            out.links.push_back(std::move(*link));
            out.names.push_back(program.name);
            continue;
        }
        std::string_view needs = kind ? attachment_needs(kind->attachment) : "a section name that says where to attach it";
        out.notes.push_back(format("program {} (section {}): not attached, needs {}", program.name, program.section,
                                   needs.empty() ? "a target" : needs));
    }
    for (const LoadedObject::StructOps &ops : object.struct_ops) {
        out.links.push_back(TRY(attach_struct_ops(spec, object, ops.map)));
        out.names.push_back(ops.map);
    }
    return out;
}

} // namespace rawbpf::inline v0
