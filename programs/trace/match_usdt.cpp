// USDT probes: each site is a place of its own, since each has its arguments elsewhere; sites of one probe have one name.
//
// What an argument means comes from a table, where the probe is in it; else the note's own sizes and signs are all that is known.
#include "programs/trace/match.h"

#include <elf.h>

#include "programs/usdt/binary.h"
#include "runtime/base/fail.h"
#include "runtime/link/user_functions.h"

namespace rawbpf::inline v0::trace {
namespace {

Type plain_type(const usdt::Argument &argument) {
    Type out;
    out.name = usdt::type_name(argument);
    out.size = argument.size ? argument.size : 8;
    out.is_signed = argument.is_signed;
    out.show = !argument.problem.empty() ? Show::unavailable : argument.is_float ? Show::real : Show::integer;
    return out;
}

// The table's names and types over what the site has. An argument that can't be fetched stays what it is, and so does a floating
// point number: signatures have no word for it, because functions pass it where no BPF program looks.
Signature signature_of_site(const usdt::Probe &probe, const Signature *known) {
    Signature out;
    out.known = true;
    out.returns = {"void", Show::nothing, 8, false};
    for (size_t i = 0; i < probe.arguments.size(); ++i) {
        const usdt::Argument &argument = probe.arguments[i];
        Parameter one{"", plain_type(argument)};
        if (known && i < known->parameters.size()) {
            one.name = known->parameters[i].name;
            const Type &type = known->parameters[i].type;
            const bool reads = type.show == Show::text || type.show == Show::counted;
            const bool takes_type = one.type.show != Show::unavailable && one.type.show != Show::real;
            if (takes_type && (!reads || argument.size == 8 || argument.size == 4)) one.type = type;
            one.is_length = known->parameters[i].is_length;
        }
        out.parameters.push_back(std::move(one));
    }
    // Without its length a counted text is an address, and a length without its text a number.
    for (size_t i = 0; i < out.parameters.size(); ++i) {
        Parameter &p = out.parameters[i];
        const bool has_length = i + 1 < out.parameters.size() && out.parameters[i + 1].is_length;
        if (p.type.show == Show::counted && !has_length) p.type.show = Show::address;
        if (p.is_length && (i == 0 || out.parameters[i - 1].type.show != Show::counted)) p.is_length = false;
    }
    return out;
}

// The arguments with their text in a string of their own: the file must not stay mapped, since the kernel would put its
// breakpoints into that mapping too, and raise our semaphores.
std::vector<usdt::Argument> keep_arguments(const usdt::Binary &binary, const usdt::Probe &probe,
                                           std::shared_ptr<const void> &owner) {
    const auto text = std::make_shared<const std::string>(probe.site.arguments);
    std::vector<usdt::Argument> out = usdt::parse_arguments(*text, binary.elf().machine());
    for (size_t i = 0; i < out.size(); ++i) { // what resolve() found
        out[i].location.displacement = probe.arguments[i].location.displacement;
        out[i].location.has_displacement = probe.arguments[i].location.has_displacement;
        const std::string_view name = out[i].location.base.name;
        out[i].location.base = probe.arguments[i].location.base;
        out[i].location.base.name = name;
        out[i].location.kind = probe.arguments[i].location.kind;
        out[i].problem = probe.arguments[i].problem;
    }
    owner = text;
    return out;
}

// What Go's linker made. (That .stapsdt.base is missing says nothing: other linkers drop it, too.)
bool is_go(const elf::Elf &file) { return file.find_section(".gopclntab") || file.find_section(".note.go.buildid"); }

Result<void> add_file(Matched &out, const usdt::Binary &binary, const std::string &path, const usdt::Target &target,
                      const KnownProbes &known) {
    std::vector<Error> problems;
    const bool go = is_go(binary.elf());
    for (const usdt::Probe &probe : TRY(binary.probes(target, problems))) {
        const std::string name = format("{}:{}", probe.site.provider, probe.site.name);
        if (!probe.file_offset) {
            out.notes.push_back(format("skipped {} at {:#x}: this address is in no loaded segment", name, probe.site.address));
            continue;
        }
        ProbeSite place;
        place.kind = ProbeKind::usdt;
        place.go = go;
        place.file = path;
        place.category = probe.site.provider;
        place.function = probe.site.name;
        place.address = *probe.file_offset;
        if (probe.site.semaphore) {
            const std::optional<uint64_t> semaphore = binary.elf().file_offset(probe.site.semaphore);
            if (!semaphore) {
                out.notes.push_back(format("skipped {} at {:#x}: its semaphore is at {:#x}, which is in no segment", name,
                                           probe.site.address, probe.site.semaphore));
                continue;
            }
            const elf::Segment *segment = usdt::segment_at(binary.elf(), probe.site.semaphore, 2);
            if (segment && segment->flags & PF_W)
                place.semaphore = *semaphore;
            else
                out.notes.push_back(
                    format("{} at {:#x}: its semaphore can't be written, and so can't be raised; it may not be reached", name,
                           probe.site.address));
        }
        place.signature = signature_of_site(probe, known.find(probe.site.provider, probe.site.name));
        place.arguments = keep_arguments(binary, probe, place.owner);
        out.places.push_back(std::move(place));
    }
    for (const Error &problem : problems) out.notes.push_back(problem.message());
    return {};
}

// All that the process has mapped; files without such probes are the usual thing.
Result<Matched> match_process(const usdt::Target &target, int pid, const KnownProbes &known) {
    Matched out;
    const symbols::ProcessMaps maps = TRY_IN(symbols::read_maps(pid), "process {}", pid);
    std::optional<Error> nearest;
    for (const symbols::Region &region : usdt::mapped_files(maps)) {
        const std::string file = region.file();
        if (!target.file.empty() && file != target.file && file.substr(file.rfind('/') + 1) != target.file) continue;
        Result<usdt::MappedBinary> opened = usdt::open_mapped(pid, region);
        if (!opened) {
            if (!nearest && opened.error().kind == Errc::permission) nearest = std::move(opened).error();
            continue;
        }
        if (!opened->binary.elf().find_section(".note.stapsdt")) continue;
        Result<void> added = add_file(out, opened->binary, opened->path, target, known);
        if (!added && !nearest) nearest = std::move(added).error();
    }
    if (!out.places.empty()) return out;
    if (nearest) return Unexpected(std::move(*nearest));
    return fail(Errc::not_found, "process {} has mapped no file{}{} with USDT probes", pid, target.file.empty() ? "" : " ",
                target.file);
}

} // namespace

Result<Matched> match_usdt(const ProbeSpec &spec, const MatchOptions &options) {
    const usdt::Target target = usdt::parse_target(spec.pattern);
    const KnownProbes &known = options.known ? *options.known : KnownProbes::built_in();
    if (options.pid > 0 && (target.file.empty() || target.file.find('/') == std::string::npos))
        return match_process(target, options.pid, known);
    if (target.file.empty())
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" names no file", spec.pattern),
                                     "write FILE, FILE:PROVIDER or FILE:PROVIDER:NAME; with -p PID, the file may be left out"));
    std::string path = target.file;
    if (path.find('/') == std::string::npos && !sys::exists(path)) path = TRY(find_binary(path, options.pid));
    Matched out;
    TRY(add_file(out, TRY(usdt::Binary::open(path, path)), path, target, known));
    if (out.places.empty()) return fail(Errc::not_found, "{}: no probe of it can be traced", spec.text);
    return out;
}

} // namespace rawbpf::inline v0::trace
