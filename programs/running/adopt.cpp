// The kernel keeps a program's type, but not the finer kind that it was loaded as: "kprobe" or "kretprobe", "fentry" or "fexit"
// (which it looks up in the program itself). So the place that the user names has the kind, and its type is compared with the
// program's here, for a good message.
//
//      id 47, BPF_PROG_TYPE_KPROBE  +  "kprobe:vfs_read"   ->   Program in section kprobe/vfs_read   ->   attach_object()
#include "programs/running/adopt.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "asm/kinds.h"
#include "asm/section_names.h"
#include "programs/running/rows.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/object/sections.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::running {
namespace {

/// libbpf's and rawbpf's table of what the arguments of USDT probes are, as the kernel abbreviates its name.
constexpr std::string_view kUsdtTable = "__bpf_usdt_spec";

/// Those whose target was decided when they were loaded.
bool decided_at_loading(SectionTarget target) {
    constexpr std::array kDecided{SectionTarget::none,      SectionTarget::btf_function, SectionTarget::btf_tracepoint,
                                  SectionTarget::lsm_hook,  SectionTarget::iterator,     SectionTarget::program,
                                  SectionTarget::struct_ops};
    return std::find(kDecided.begin(), kDecided.end(), target) != kDecided.end();
}

std::string sections_of(uint32_t type) {
    std::string out;
    for (const SectionKind &kind : section_kinds())
        if (static_cast<uint32_t>(kind.type) == type) append(out, "{}{}", out.empty() ? "" : ", ", kind.name);
    return out;
}

} // namespace

std::string section_of_place(std::string_view place) {
    std::string out(place);
    const size_t colon = place.find(':');
    if (colon == std::string_view::npos || place.find('/') < colon) return out;
    const SectionKind *kind = find_section_kind(place.substr(0, colon));
    if (!kind) return out;
    out[colon] = '/';
    if (kind->target != SectionTarget::tracepoint) return out;
    if (const size_t second = out.find(':', colon); second != std::string::npos) out[second] = '/';
    return out;
}

Result<LoadedObject> adopt_program(Fd program, std::string_view place) {
    Names names;
    const ProgramRow row = TRY(program_row(program.get(), names, false));
    const std::string section = section_of_place(place);
    const SectionKind *kind = find_section_kind(section);
    if (!kind) return fail(Errc::invalid_argument, "{}", explain_unknown_section(section));
    const std::string who = format("program {}", labelled(row.info.id, row.name));
    if (static_cast<uint32_t>(kind->type) != row.info.type)
        return Unexpected(
            make_error(Errc::invalid_argument,
                       format("{} is of type {}, and {} takes programs of type {}", who, program_type_word(row.info.type), place,
                              program_type_word(static_cast<uint32_t>(kind->type))),
                       format("places for it: {}", sections_of(row.info.type))));
    if (!decided_at_loading(kind->target) && section_target(*kind, section).empty())
        return Unexpected(make_error(Errc::invalid_argument, format("{} doesn't say where to attach {}", place, who),
                                     format("give a target: {}/TARGET", kind->name)));
    LoadedObject object;
    object.name = who;
    for (const uint32_t id : row.maps) {
        object.maps.push_back(TRY(Map::from_fd(TRY_IN(sys::fd_by_id(sys::ObjectKind::map, id), "map {} of {}", id, who))));
        if (kind->attachment == Attachment::usdt && object.maps.back().name() == kUsdtTable)
            return Unexpected(make_error(
                Errc::unsupported, format("{} reads the arguments of USDT probes from a map that its own loader fills", who),
                "load and attach it with one command: rawbpf load --attach"));
    }
    Program one;
    one.name = row.name.empty() ? format("program_{}", row.info.id) : row.name;
    one.section = section;
    one.type = row.info.type;
    one.expected_attach_type = static_cast<uint32_t>(kind->attach_type);
    one.attach_target = section_target(*kind, section);
    one.fd = std::move(program);
    object.programs.push_back(std::move(one));
    return object;
}

} // namespace rawbpf::inline v0::running
