// Probes to programs: a place of a probe is a program of its own, since what its arguments are, and where, differs from place to
// place. Of alternatives (`kprobe:folio_mark_accessed | kprobe:mark_page_accessed`) the first is taken that this kernel has.
#include "programs/experiment/compile.h"

#include <algorithm>

#include "asm/nearest.h"
#include "programs/experiment/compiling.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostPlaces = 512;
constexpr uint32_t kRingBytes = 1 << 20;

// "profile:99"
std::optional<uint64_t> clock_of(std::string_view text) {
    if (!text.starts_with("profile:")) return {};
    text.remove_prefix(8);
    uint64_t frequency = 0;
    if (!parse_whole(text, frequency) || frequency > 100'000) return 0;
    return frequency;
}

std::string section_of(const trace::ProbeSite &site) {
    using K = trace::ProbeKind;
    switch (site.kind) {
    case K::tracepoint: return format("tracepoint/{}/{}", site.category, site.function);
    case K::syscall: return format("tracepoint/syscalls/sys_enter_{}", site.function);
    case K::uprobe:
    case K::uretprobe: {
        if (site.function.starts_with("0x"))
            return format("{}/{}:{}", trace::probe_kind_name(site.kind), site.file, site.function);
        return format("{}/{}:{:#x}", trace::probe_kind_name(site.kind), site.file, site.address);
    }
    case K::usdt: return "uprobe";
    default: return format("{}/{}", trace::probe_kind_name(site.kind), site.function);
    }
}

} // namespace

Compiler::Compiler(const Experiment &experiment, Unit assembly, const Surroundings &surroundings, Mistakes &mistakes)
    : experiment_(experiment), assembly_(std::move(assembly)), surroundings_(surroundings), mistakes_(mistakes),
      builder_(experiment.name, experiment.license) {}

const std::string &Compiler::source_line(TextPlace at) const {
    static const std::string kNothing;
    return at.line != 0 && at.line <= experiment_.lines.size() ? experiment_.lines[at.line - 1] : kNothing;
}

UsedMap &Compiler::map_named(const std::string &name) {
    UsedMap &map = maps_[name];
    map.name = name;
    for (const MapDef &def : assembly_.maps)
        if (def.name == name) map.declared = true;
    return map;
}

MapRef Compiler::declared(const MapDef &def) { return builder_.map(def); }

MapRef Compiler::lost() {
    if (!lost_) {
        MapDef def;
        def.name = kLostMap;
        def.type = 2;
        def.key_size = 4;
        def.value_size = 8;
        def.max_entries = 2;
        def.key_type = "u32";
        def.value_type = "u64";
        lost_ = builder_.map(std::move(def));
    }
    return *lost_;
}

MapRef Compiler::ring() {
    if (!ring_) ring_ = builder_.ringbuf(std::string(kEventRing), kRingBytes);
    return *ring_;
}

// A program's name is a word of letters, and says where it stands.
std::string Compiler::program_name(std::string_view site) {
    std::string name;
    for (const char c : site) name += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "on_");
    const int number = names_[name]++;
    return number == 0 ? name : format("{}_{}", name, number + 1);
}

bool Compiler::place(const Probe &probe, const Probe::Name &name, const trace::ProbeSite &site, std::string section,
                     Placed placed) {
    if (program_places_.size() >= kMostPlaces)
        return fail(name.at, format("an experiment has at most {} places of probes", kMostPlaces));
    placed.program = program_name(site.label().empty() ? name.text : site.label());
    program_places_[placed.program] = name.at;
    Code &code = builder_.program(std::move(section), placed.program);
    ProbeCode body(*this, code, site, site.label());
    const bool good = body.run(probe);
    if (good && (placed.frequency != 0 || !placed.target.empty())) out_.places.push_back(std::move(placed));
    return good;
}

bool Compiler::clock(const Probe &probe, const Probe::Name &name) {
    const uint64_t frequency = clock_of(name.text).value_or(0);
    if (frequency == 0) return fail(name.at, "a clock is named with its frequency: profile:99", "1 to 100000 Hz");
    trace::ProbeSite site;
    site.kind = trace::ProbeKind::raw_tp;
    site.function = "clock";
    site.signature.known = true;
    return place(probe, name, site, "perf_event", {.program = {}, .frequency = frequency, .target = {}, .semaphore = 0});
}

bool Compiler::choose(const std::vector<Probe::Name> &alternatives, const Probe &probe) {
    std::vector<std::string> reasons;
    Error last;
    for (const Probe::Name &name : alternatives) {
        const bool only = alternatives.size() == 1;
        if (clock_of(name.text)) return clock(probe, name);
        Result<trace::ProbeSpec> spec = trace::parse_probe(name.text);
        if (!spec) return fail(name.at, spec.error().context, spec.error().hint);
        std::string lacking = surroundings_.lacks ? surroundings_.lacks(spec->kind) : std::string();
        if (!lacking.empty() && !only) {
            reasons.push_back(format("{}: {}", name.text, lacking));
            last = make_error(Errc::unsupported, lacking);
            continue;
        }
        Result<trace::Matched> matched = surroundings_.match(*spec);
        if (!matched) {
            reasons.push_back(matched.error().message());
            last = std::move(matched).error();
            continue;
        }
        for (const std::string &note : matched->notes) out_.notes.push_back(note);
        for (const std::string &reason : reasons) out_.notes.push_back(format("{}; {} instead", reason, name.text));
        for (const trace::ProbeSite &site : matched->places) {
            Placed placed;
            if (site.kind == trace::ProbeKind::usdt) {
                placed.target = format("{}:{:#x}", site.file, site.address);
                placed.semaphore = site.semaphore;
            }
            if (!place(probe, name, site, section_of(site), std::move(placed))) return false;
        }
        return true;
    }
    std::string message = reasons.empty() ? std::string("no such probe") : reasons.back();
    if (reasons.size() > 1) {
        message = "this kernel has none of them:";
        for (const std::string &reason : reasons) append(message, "{} {}", message.ends_with(':') ? "" : ";", reason);
    }
    fail(alternatives.front().at, std::move(message), last.hint);
    if (last.kind == Errc::permission || last.kind == Errc::unsupported) mistakes_.last_is(last.kind);
    return false;
}

bool Compiler::probe(const Probe &probe) {
    for (const std::vector<Probe::Name> &alternatives : probe.names)
        if (!choose(alternatives, probe)) return false;
    return true;
}

Compiled Compiler::run() {
    for (const Probe &each : experiment_.probes) (void)probe(each);
    for (const auto &[name, map] : maps_) {
        if (map.written || map.declared || mistakes_.any()) continue;
        Nearest near(name);
        for (const auto &[other, used] : maps_)
            if (used.written) near.offer(other);
        (void)fail(map.first, format("@{} is read here, and nothing writes to it", name), near.hint());
    }
    if (mistakes_.any()) return std::move(out_);
    out_.unit = std::move(assembly_);
    out_.unit.name = experiment_.name;
    if (experiment_.probes.empty()) return std::move(out_);
    add_followers();
    Built built = builder_.finish();
    if (!built) {
        for (const Diagnostic &problem : built.problems) {
            // "on_exec: the stack has 512 bytes ...": the program's name leads to its line.
            const std::string program = problem.message.substr(0, problem.message.find(':'));
            const auto at = program_places_.find(program);
            (void)fail(at == program_places_.end() ? TextPlace{} : at->second, problem.message);
        }
        return std::move(out_);
    }
    Unit &unit = out_.unit;
    for (MapDef &def : built->maps)
        if (std::none_of(unit.maps.begin(), unit.maps.end(), [&](const MapDef &other) { return other.name == def.name; }))
            unit.maps.push_back(std::move(def));
    for (Function &function : built->functions) {
        if (std::any_of(unit.functions.begin(), unit.functions.end(),
                        [&](const Function &other) { return other.name == function.name; })) {
            (void)fail({}, format("the program {} is there twice: a probe's, and one of the assembly", function.name));
            return std::move(out_);
        }
        function.lines.clear(); // of our sources, which say nothing to who reads the experiment
        unit.functions.push_back(std::move(function));
    }
    for (StructDef &type : types_) unit.types.push_back(std::move(type));
    unit.license = experiment_.license;
    for (auto &[name, map] : maps_)
        if (!map.declared && map.ref) out_.maps.push_back(std::move(map.view));
    for (auto &[name, event] : events_) out_.events.push_back(std::move(event.view));
    return std::move(out_);
}

Compiled compile(const Experiment &experiment, Unit assembly, const Surroundings &surroundings, Mistakes &mistakes) {
    return Compiler(experiment, std::move(assembly), surroundings, mistakes).run();
}

} // namespace rawbpf::inline v0::experiment
