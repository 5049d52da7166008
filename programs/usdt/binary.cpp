// Opens files with probes. A process's files are those that it has mapped for execution, opened through /proc/PID/root, since
// a container has libraries of its own (runtime/symbols/mapped_file.h).
#include "programs/usdt/binary.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/link/names.h"
#include "runtime/symbols/mapped_file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::usdt {
namespace {

constexpr std::string_view kWhereSomeAre =
    "Debian's postgresql-15, libpython3.11, libruby3.1, php8.2-cli, libvirt0, openjdk-17-jre-headless (libjvm.so) and libstdc++6 "
    "have some; <sys/sdt.h> (systemtap-sdt-dev) makes them";

constexpr size_t kMostNamed = 8;

// What somebody probably has who names a file that isn't a program.
std::string advice_on(Bytes bytes) {
    if (bytes.size() > 4 && std::memcmp(bytes.data(), "\177ELF", 4) == 0) return "the file is damaged, or only a part of one";
    if (bytes.size() > 2 && std::memcmp(bytes.data(), "#!", 2) == 0) {
        std::string_view line(reinterpret_cast<const char *>(bytes.data()) + 2, std::min<size_t>(bytes.size() - 2, 256));
        line = line.substr(0, line.find_first_of("\n\r"));
        while (line.starts_with(' ')) line.remove_prefix(1);
        return format("it is a script; probes would be in its interpreter: {}", line);
    }
    if (bytes.size() > 8 && std::memcmp(bytes.data(), "!<arch>\n", 8) == 0)
        return "it is an archive; probes get their places when a program is linked with it";
    return "name a program or a shared library";
}

Unexpected no_such_probe(const std::string &file, const Target &target, const Notes &notes) {
    NearestNames near(target.name.empty() ? target.provider : target.probe());
    // Those of the provider, where it is right; else the providers.
    std::vector<std::string_view> providers, names;
    const auto add = [](std::vector<std::string_view> &to, std::string_view one) {
        if (to.size() < kMostNamed && std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
    };
    for (const Site &site : notes.sites) {
        near.see(target.name.empty() ? std::string(site.provider) : format("{}:{}", site.provider, site.name));
        add(providers, site.provider);
        if (!target.name.empty() && Target{{}, target.provider, {}}.wants(site.provider, {})) add(names, site.name);
    }
    std::string hint = near.hint();
    if (hint.empty()) {
        hint = names.empty() ? "its providers: " : format("of {} it has ", target.provider.empty() ? "all" : target.provider);
        const std::vector<std::string_view> &list = names.empty() ? providers : names;
        for (std::string_view one : list) append(hint, "{}{}", one == list[0] ? "" : ", ", one);
        if (list.size() == kMostNamed) hint += " ...";
    }
    return Unexpected(make_error(Errc::not_found, format("{}: no USDT probe {}", file, target.probe()), std::move(hint)));
}

} // namespace

Result<Binary> Binary::parse(sys::Mapping image, const std::string &shown) {
    Binary out;
    out.image_ = std::move(image);
    Result<elf::Elf> elf = elf::Elf::parse(out.bytes(), shown);
    if (!elf) {
        Error error = std::move(elf).error();
        error.hint = advice_on(out.bytes());
        return Unexpected(std::move(error));
    }
    out.elf_ = std::move(*elf);
    return out;
}

Result<Binary> Binary::open(const std::string &path, const std::string &shown) {
    const struct stat st = TRY(sys::stat_file(path));
    if (!S_ISREG(st.st_mode)) return fail(Errc::invalid_argument, "{}: not a regular file", shown);
    return parse(TRY(sys::map_file(path)), shown);
}
Result<Binary> Binary::open(const Fd &file, const std::string &shown) { return parse(TRY(sys::map_file(file, shown)), shown); }

Result<std::vector<Probe>> Binary::probes(const Target &target, std::vector<Error> &problems) const {
    Result<Notes> read = read_notes(elf_);
    if (!read) {
        Error error = std::move(read).error();
        if (error.kind == Errc::not_found)
            error.hint = elf_.sections().empty() ? "it has lost its section headers, by which notes are found" : kWhereSomeAre;
        return Unexpected(std::move(error));
    }
    Notes &notes = *read;
    std::vector<Probe> out;
    for (const Site &site : notes.sites)
        if (target.wants(site.provider, site.name)) out.push_back({site, {}, {}});
    const bool damaged = !notes.problems.empty();
    for (Error &problem : notes.problems) problems.push_back(std::move(problem));
    if (out.empty() && !notes.sites.empty()) return no_such_probe(name(), target, notes);
    if (out.empty() && !damaged)
        return Unexpected(make_error(Errc::not_found, format("{}: has no USDT probes (section .note.stapsdt is empty)", name()),
                                     std::string(kWhereSomeAre)));
    std::vector<AtSite> all;
    for (Probe &probe : out) {
        probe.file_offset = elf_.file_offset(probe.site.address);
        probe.arguments = parse_arguments(probe.site.arguments, elf_.machine());
        for (Argument &argument : probe.arguments)
            if (!argument.location.symbol.empty()) all.push_back({&argument, probe.site.address});
    }
    resolve(elf_, std::move(all));
    return out;
}

bool is_memory_file(const symbols::Region &region) { return region.path.starts_with("/memfd:"); }

std::vector<symbols::Region> mapped_files(const symbols::ProcessMaps &maps) {
    std::vector<symbols::Region> out;
    for (const symbols::Region &region : maps.regions) {
        const auto same = [&](const symbols::Region &one) {
            return one.device == region.device && one.inode == region.inode && one.path == region.path;
        };
        if ((!region.file().empty() || is_memory_file(region)) && std::find_if(out.begin(), out.end(), same) == out.end())
            out.push_back(region);
    }
    return out;
}

Result<MappedBinary> open_mapped(int pid, const symbols::Region &region) {
    sys::Because why("a file that the process has mapped, as it sees it");
    const uint32_t pids[] = {static_cast<uint32_t>(pid)};
    symbols::MappedFile mapped = TRY(symbols::open_mapped(region, pids));
    return MappedBinary{TRY(Binary::open(mapped.file, region.path)), std::move(mapped.path)};
}

} // namespace rawbpf::inline v0::usdt
