// A USDT probe: a uprobe on each of its nops, the semaphore that the program checks before it prepares the arguments, and the
// places of those arguments.
//
//      __bpf_usdt_specs          [ n ] -> UsdtSpec: arguments 0 to 11, the user's cookie       one for each set of places
//                                  ^
//      the uprobe's cookie  -------+                                    5.15
//      __bpf_usdt_ip_to_spec_id  [ address of the nop ] -> n            before that
//
// The maps come with the program (usdt.bpf.h), which finds its entry by bpf_get_attach_cookie(). The object numbers the
// entries: several probes may be attached through the same maps, and an entry is free again when its link is dropped. Without
// cookies the entry is found by the address in the running process, so for libraries and position-independent programs a pid
// must be given.
//
// With uprobe.multi all sites are one link, which can be pinned. Programs without these maps are attached too: then the cookie
// is the caller's own.
#include <algorithm>
#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/link/attaching.h"
#include "runtime/link/event.h"
#include "runtime/link/instruction_set.h"
#include "runtime/link/probe_event.h"
#include "runtime/link/usdt.h"
#include "runtime/link/user_functions.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/uapi.h"

#include <elf.h>

namespace rawbpf::inline v0 {
namespace {

constexpr std::string_view kSpecs = "__bpf_usdt_specs", kAddresses = "__bpf_usdt_ip_to_spec_id";

struct Wanted {
    std::string binary, provider, name;
};
Result<Wanted> parse_target(const std::string &target) {
    size_t first = target.find(':'), second = first == std::string::npos ? first : target.find(':', first + 1);
    if (second == std::string::npos || first == 0 || second == first + 1 || second + 1 == target.size())
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" is not of the form FILE:PROVIDER:NAME", target),
                                     "for example /usr/bin/python3:python:function__entry"));
    return Wanted{target.substr(0, first), target.substr(first + 1, second - first - 1), target.substr(second + 1)};
}

struct Probe {
    std::string path;
    std::vector<UsdtSite> sites;
    std::vector<UsdtSpec> specs; ///< of each site
    std::vector<std::vector<std::string>> notes;
    bool moves = false; ///< loaded at an address that isn't known before
};
Result<Probe> find_probe(const std::string &path, const Wanted &wanted) {
    Probe out;
    out.path = path;
    sys::Mapping image = TRY(sys::map_file(path));
    elf::Elf elf = TRY(elf::Elf::parse(image.bytes(), path));
    out.sites = TRY(find_usdt_sites(elf, wanted.provider, wanted.name));
    out.moves = elf.type() == ET_DYN;
    if (has_feature(Feature::uprobe_call)) take_long_nops(image.bytes(), elf.machine(), out.sites);
    for (const UsdtSite &site : out.sites)
        out.specs.push_back(read_usdt_arguments(site.arguments, elf.machine(), out.notes.emplace_back(), &elf, site.address));
    return out;
}

// The entries that one link uses; its end frees them.
struct Claims final : Link::Held {
    std::shared_ptr<std::vector<bool>> taken;
    std::vector<uint32_t> entries;
    Map addresses;
    std::vector<uint64_t> keys;

    ~Claims() override {
        if (stays) return;
        for (uint32_t entry : entries) (*taken)[entry] = false;
        for (uint64_t key : keys) (void)addresses.erase(&key);
    }
};

Result<Map> another_handle(const Map &map) { return Map::from_fd(TRY(sys::duplicate(map.fd()))); }

// libbpf 1.7's usdt.bpf.h as it was released: its index register is a bit field that may not lie across two bytes' border, so an
// argument is eight bytes longer than before. Told by the size of the map's values.
//
//      0 value u64 | 8 kind u8 | 10 index register:12, scale:4 | 14 register s16 | 16 signed | 17 shift | .. 24
struct WideSpec {
    struct Argument {
        uint64_t value = 0;
        uint32_t where = 0;
        uint16_t reserved = 0;
        int16_t register_offset = 0;
        bool is_signed = false;
        int8_t shift = 0;
        uint8_t padding[6] = {};
    };
    Argument arguments[UsdtSpec::kMostArguments];
    uint64_t cookie = 0;
    int16_t count = 0;
    uint8_t padding[6] = {};
};
static_assert(sizeof(WideSpec::Argument) == 24 && sizeof(WideSpec) == 304);

WideSpec widened(const UsdtSpec &spec) {
    WideSpec out;
    out.cookie = spec.cookie;
    out.count = spec.count;
    for (size_t i = 0; i < UsdtSpec::kMostArguments; ++i) {
        const UsdtSpec::Argument &from = spec.arguments[i];
        const uint32_t kind = from.where & 0xff, index = from.where >> 8 & 0xfff, scale = from.where >> 20 & 0xf;
        out.arguments[i].value = from.value;
        out.arguments[i].where = kind | index << 16 | scale << 28;
        out.arguments[i].register_offset = from.register_offset;
        out.arguments[i].is_signed = from.is_signed;
        out.arguments[i].shift = from.shift;
    }
    return out;
}

Result<uint32_t> write_spec(Claims &claims, const Map &specs, const UsdtSpec &spec) {
    if (!claims.taken) return fail(Errc::internal, "no list of entries");
    const auto at = std::find(claims.taken->begin(), claims.taken->end(), false);
    if (at == claims.taken->end())
        return Unexpected(make_error(Errc::unsupported, format("map {} is full: {} entries", kSpecs, specs.max_entries()),
                                     "define a larger BPF_USDT_MAX_SPEC_CNT before you include usdt.bpf.h"));
    const uint32_t entry = static_cast<uint32_t>(at - claims.taken->begin());
    const WideSpec wide = widened(spec);
    TRY_IN(specs.update(&entry, specs.value_size() == sizeof wide ? static_cast<const void *>(&wide) : &spec), "{}", kSpecs);
    *at = true;
    claims.entries.push_back(entry);
    return entry;
}

// Where the nops are in a process that has mapped the file.
Result<std::vector<uint64_t>> running_addresses(const Attaching &a, const Probe &probe) {
    std::vector<uint64_t> out;
    if (!probe.moves) {
        for (const UsdtSite &site : probe.sites) out.push_back(site.address);
        return out;
    }
    if (a.options.pid <= 0)
        return Unexpected(make_error(Errc::unsupported,
                                     format("{}: without {} a program can't tell the probes of {} apart in every process",
                                            a.what(), feature_name(Feature::cookie), probe.path),
                                     "choose one process by its pid"));
    const symbols::ProcessMaps maps = TRY(symbols::read_maps(a.options.pid));
    const struct stat file = TRY(sys::stat_file(probe.path));
    for (const UsdtSite &site : probe.sites) {
        const auto region = std::find_if(maps.regions.begin(), maps.regions.end(), [&](const symbols::Region &r) {
            return r.inode == file.st_ino && site.offset >= r.file_offset && site.offset - r.file_offset < r.end - r.start;
        });
        if (region == maps.regions.end())
            return fail(Errc::not_found, "{}: process {} has not mapped the code of {}", a.what(), a.options.pid, probe.path);
        out.push_back(region->start + (site.offset - region->file_offset));
    }
    return out;
}

// Fills the program's maps; a cookie for each site.
Result<std::vector<uint64_t>> tell_arguments(Link &link, const Attaching &a, const Probe &probe, const Map &specs) {
    if (specs.key_size() != sizeof(uint32_t) ||
        (specs.value_size() != sizeof(UsdtSpec) && specs.value_size() != sizeof(WideSpec)))
        return fail(Errc::bad_input, "map {}: values of {} bytes, where usdt.bpf.h has {} or {}", kSpecs, specs.value_size(),
                    sizeof(UsdtSpec), sizeof(WideSpec));
    if (!a.object.usdt_specs) a.object.usdt_specs = std::make_shared<std::vector<bool>>(specs.max_entries());
    auto held = std::make_unique<Claims>();
    Claims &claims = *held;
    claims.taken = a.object.usdt_specs;
    link.hold(std::move(held));

    std::vector<uint64_t> cookies;
    for (size_t i = 0; i < probe.sites.size(); ++i) {
        UsdtSpec spec = probe.specs[i];
        spec.cookie = a.options.cookie;
        // Many sites have their arguments in the same places. (Told from the program counter, the places differ though the text
        // is the same.)
        size_t same = 0;
        while (same < i && std::memcmp(&probe.specs[same], &probe.specs[i], sizeof spec) != 0) ++same;
        if (same < i) {
            cookies.push_back(cookies[same]);
            continue;
        }
        cookies.push_back(TRY(write_spec(claims, specs, spec)));
        for (const std::string &note : probe.notes[i]) link.note(format("{}: {}", a.what(), note));
    }
    if (has_feature(Feature::cookie)) return cookies;
    const Map *addresses = a.object.find_map(kAddresses);
    if (!addresses) return fail(Errc::bad_input, "{}: the program has no map {}", a.what(), kAddresses);
    if (addresses->key_size() != sizeof(uint64_t) || addresses->value_size() != sizeof(uint32_t))
        return fail(Errc::bad_input, "map {}: not as usdt.bpf.h has it", kAddresses);
    claims.addresses = TRY(another_handle(*addresses));
    const std::vector<uint64_t> keys = TRY(running_addresses(a, probe));
    for (size_t i = 0; i < keys.size(); ++i) {
        const uint32_t entry = static_cast<uint32_t>(cookies[i]);
        TRY_IN(addresses->update(&keys[i], &entry, BPF_NOEXIST), "{}: the site at {:#x}", a.what(), keys[i]);
        claims.keys.push_back(keys[i]);
    }
    return std::vector<uint64_t>(keys.size(), 0);
}

Result<void> attach_as_one(Link &link, const Attaching &a, const Probe &probe, const std::vector<uint64_t> &cookies) {
    std::vector<unsigned long> offsets, semaphores; // the kernel's own words
    for (const UsdtSite &site : probe.sites) {
        offsets.push_back(static_cast<unsigned long>(site.offset));
        semaphores.push_back(static_cast<unsigned long>(site.semaphore));
    }
    TRY(check_instruction_set(probe.path, offsets));
    sys::LinkCreateAttr attr = link_attr(a);
    attr.uprobe_multi.path = sys::reg(probe.path.c_str());
    attr.uprobe_multi.offsets = sys::reg(offsets.data());
    attr.uprobe_multi.cookies = sys::reg(cookies.data());
    attr.uprobe_multi.ref_ctr_offsets = sys::reg(semaphores.data());
    attr.uprobe_multi.cnt = static_cast<uint32_t>(offsets.size());
    attr.uprobe_multi.pid = a.options.pid > 0 ? static_cast<uint32_t>(a.options.pid) : 0;
    sys::Because why("run this program at every site of the probe, and raise its semaphore: one link for all");
    link.add(TRY_IN(sys::link_create(attr), "{}", a.what()));
    return {};
}

Result<void> attach_one_by_one(Link &link, const Attaching &a, const Probe &probe, const std::vector<uint64_t> &cookies) {
    for (size_t i = 0; i < probe.sites.size(); ++i) {
        ProbePlace place;
        place.user = true;
        place.name = probe.path;
        place.offset = probe.sites[i].offset;
        place.semaphore = probe.sites[i].semaphore;
        place.pid = a.options.pid;
        Fd event = TRY_IN(open_probe(place), "{} at {:#x}", a.what(), place.offset);
        Fd on = TRY_IN(run_on_event(event.get(), a.program_fd(), cookies[i]), "{}", a.what());
        TRY(sys::perf_event_enable(event.get()));
        link.add(std::move(on), std::move(event));
    }
    return {};
}

} // namespace

Result<Link> attach_usdt(const Attaching &a) {
    const Wanted wanted = TRY(parse_target(a.target));
    const Probe probe = TRY(find_probe(TRY(find_binary(wanted.binary, a.options.pid)), wanted));
    Link link;
    std::vector<uint64_t> cookies(probe.sites.size(), a.options.cookie);
    if (const Map *specs = a.object.find_map(kSpecs)) cookies = TRY(tell_arguments(link, a, probe, *specs));
    const bool one = a.program.expected_attach_type == uapi::BPF_TRACE_UPROBE_MULTI; // the loader has decided
    TRY(one ? attach_as_one(link, a, probe, cookies) : attach_one_by_one(link, a, probe, cookies));
    link.name(a.what(), probe.sites.size());
    return link;
}

} // namespace rawbpf::inline v0
