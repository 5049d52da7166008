// USDT: probes that programs bring along, as notes that tell where a nop stands.
//
//      .note.stapsdt   [ namesz 8 | descsz | type 3 | "stapsdt\0" | pc, base, semaphore | "provider\0" "name\0" "arguments\0" ]*
//
//      pc and semaphore were written for .stapsdt.base at `base`; where prelink has moved that section they move with it
//
// Each site becomes a uprobe on the nop, and its semaphore, a counter that the program looks at before it prepares the arguments,
// is raised while it is attached. The program runs; where its arguments are is a matter for whoever reads the third string:
// programs that are built for libbpf's way of telling them (maps called __bpf_usdt_...) are refused here, since they would read
// zeros.
#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/elf/elf.h"
#include "runtime/link/attaching.h"
#include "runtime/link/event.h"
#include "runtime/link/names.h"
#include "runtime/link/probe_event.h"
#include "runtime/link/user_functions.h"
#include "runtime/sys/file.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {
namespace {

struct Site {
    uint64_t offset = 0, semaphore = 0; ///< in the file
};

struct Wanted {
    std::string binary, provider, name;
};
Result<Wanted> parse_target(const std::string &target) {
    size_t first = target.find(':'), second = first == std::string::npos ? first : target.find(':', first + 1);
    if (second == std::string::npos || first == 0 || second == first + 1 || second + 1 == target.size())
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" is not of the form FILE:PROVIDER:NAME", target),
                                     "as in /usr/bin/python3:python:function__entry"));
    return Wanted{target.substr(0, first), target.substr(first + 1, second - first - 1), target.substr(second + 1)};
}

Result<std::vector<Site>> find_sites(const std::string &path, const Wanted &wanted) {
    constexpr uint32_t kType = 3;
    sys::Mapping image = TRY(sys::map_file(path));
    elf::Elf elf = TRY(elf::Elf::parse(image.bytes(), path));
    const elf::Section *notes = elf.find_section(".note.stapsdt");
    if (!notes) return fail(Errc::not_found, "{}: has no USDT probes (no section .note.stapsdt)", path);
    if (!elf.is_64() || elf.big_endian())
        return fail(Errc::unsupported, "{}: USDT probes of 32-bit or big-endian programs aren't read", path);
    const elf::Section *base = elf.find_section(".stapsdt.base");
    std::vector<Site> out;
    const std::string full = wanted.provider + ":" + wanted.name;
    NearestNames near(full);
    ByteReader reader = elf.reader(*notes);
    while (reader.left() > 0) {
        const auto name_size = TRY(reader.read<uint32_t>()), size = TRY(reader.read<uint32_t>()),
                   type = TRY(reader.read<uint32_t>());
        Bytes owner = TRY(reader.take(name_size));
        reader.align(4);
        Bytes body = TRY(reader.take(size));
        reader.align(4);
        if (type != kType || owner.size() != 8 || std::memcmp(owner.data(), "stapsdt", 8) != 0) continue;
        ByteReader note(body, format("{}: a note in .note.stapsdt", path));
        uint64_t pc = TRY(note.read<uint64_t>()), written_for = TRY(note.read<uint64_t>()),
                 semaphore = TRY(note.read<uint64_t>());
        std::string_view provider = TRY(note.c_string()), name = TRY(note.c_string());
        if (provider != wanted.provider || name != wanted.name) {
            near.see(format("{}:{}", provider, name));
            continue;
        }
        const uint64_t moved = base ? base->address - written_for : 0;
        std::optional<uint64_t> offset = elf.file_offset(pc + moved);
        if (!offset) return fail(Errc::bad_input, "{}: probe {} is at {:#x}, where no segment is", path, full, pc + moved);
        Site site{*offset, 0};
        if (semaphore != 0) {
            std::optional<uint64_t> place = elf.file_offset(semaphore + moved);
            if (!place)
                return fail(Errc::bad_input, "{}: the semaphore of {} is at {:#x}, where no segment is", path, full,
                            semaphore + moved);
            site.semaphore = *place;
        }
        out.push_back(site);
    }
    if (out.empty()) return Unexpected(make_error(Errc::not_found, format("{}: no USDT probe {}", path, full), near.hint()));
    // Code that was inlined may be described twice; the program should run once.
    std::sort(out.begin(), out.end(), [](const Site &x, const Site &y) { return x.offset < y.offset; });
    out.erase(std::unique(out.begin(), out.end(), [](const Site &x, const Site &y) { return x.offset == y.offset; }), out.end());
    return out;
}

} // namespace

Result<Link> attach_usdt(const Attaching &a) {
    for (const MapSpec &map : a.spec.maps)
        if (map.name.starts_with("__bpf_usdt_"))
            return Unexpected(make_error(
                Errc::unsupported,
                format("{}: the program asks for its arguments by way of map {}, which isn't filled yet", a.what(), map.name),
                "programs that don't look at the arguments can be attached"));
    Wanted wanted = TRY(parse_target(a.target));
    const std::string path = TRY(find_binary(wanted.binary, a.options.pid));
    std::vector<Site> sites = TRY(find_sites(path, wanted));
    Link link;
    for (const Site &site : sites) {
        ProbePlace place;
        place.user = true;
        place.name = path;
        place.offset = site.offset;
        place.semaphore = site.semaphore;
        place.pid = a.options.pid;
        Fd event = TRY_IN(open_probe(place), "{} at {:#x}", a.what(), site.offset);
        Fd on = TRY_IN(run_on_event(event.get(), a.program_fd(), a.options.cookie), "{}", a.what());
        TRY(sys::perf_event_enable(event.get()));
        link.add(std::move(on), std::move(event));
    }
    link.name(a.what(), sites.size());
    return link;
}

} // namespace rawbpf::inline v0
