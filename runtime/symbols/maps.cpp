// /proc/PID/maps, one line a mapping (fs/proc/task_mmu.c, show_map_vma):
//
//     7f54b8c26000-7f54b8d7c000 r-xp 00026000 fe:00 1442          /usr/lib/x86_64-linux-gnu/libc.so.6
//     start        end          perm offset   maj:min inode  (padded to column 73) path
//
// The numbers are hexadecimal but for the inode. The path is the rest of the line: it may hold spaces, and a newline in it
// shows as "\012" (a backslash is not escaped, so a file really named `a\012b` can't be told from one with a newline: the
// kernel leaves that open). " (deleted)" is appended when the file's last name is gone.
//
// The owner of the process chooses the paths, so the text is hostile. Nothing here trusts it further than "these bytes stood
// between two newlines"; a line that doesn't parse is passed over, and the address then has no module, which a profile counts.
//
// The kernel hands the text out a page at a time, and the process may map and unmap in between: two lines can overlap or
// come twice. The regions are sorted, and of two that overlap the one that starts later wins inside its own range.
#include "runtime/symbols/maps.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <sys/sysmacros.h>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/kernel_file.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

enum class Lines { code, all };

std::optional<Region> parse_line(std::string_view line, Lines which) {
    Region r;
    TextCursor at(line);
    std::string_view permissions;
    uint64_t major = 0, minor = 0;
    if (!at.hex(r.start) || !at.skip('-') || !at.hex(r.end) || !at.skip(' ')) return std::nullopt;
    if (!at.take(4, permissions) || !at.skip(' ') || (which == Lines::code && permissions[2] != 'x')) return std::nullopt;
    if (!at.hex(r.file_offset) || !at.skip(' ')) return std::nullopt;
    if (!at.hex(major) || !at.skip(':') || !at.hex(minor) || !at.skip(' ') || !at.decimal(r.inode)) return std::nullopt;
    if (r.start >= r.end) return std::nullopt;
    r.device = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
    at.skip_spaces();
    r.path = at.rest();
    return r;
}

} // namespace

RegionKind Region::kind() const {
    std::string_view name = path;
    if (name == "[vdso]") return RegionKind::vdso;
    if (name == "[vsyscall]") return RegionKind::vsyscall;
    if (!name.starts_with('/') || name.starts_with("//anon")) return RegionKind::anonymous;
    if (name.starts_with("/memfd:") || name.starts_with("/SYSV") || name.starts_with("/dev/zero") ||
        name.starts_with("/anon_hugepage"))
        return RegionKind::memfd;
    return name.ends_with(kDeleted) ? RegionKind::deleted : RegionKind::file;
}

std::string Region::file() const {
    RegionKind k = kind();
    if (k != RegionKind::file && k != RegionKind::deleted) return {};
    std::string_view name = path;
    if (k == RegionKind::deleted) name.remove_suffix(kDeleted.size());
    std::string out;
    for (size_t at = 0; at < name.size();) {
        bool newline = name.substr(at).starts_with("\\012");
        out += newline ? '\n' : name[at];
        at += newline ? 4 : 1;
    }
    return out;
}

const Region *ProcessMaps::find(uint64_t address) const {
    auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                  [](uint64_t a, const Region &region) { return a < region.start; });
    if (after == regions.begin()) return nullptr;
    const Region &region = *std::prev(after);
    return address < region.end ? &region : nullptr;
}

ProcessMaps parse_maps(int pid, std::string_view text) {
    ProcessMaps maps;
    maps.pid = pid;
    while (!text.empty()) {
        if (std::optional<Region> region = parse_line(take_line(text), Lines::code)) maps.regions.push_back(std::move(*region));
    }
    stable_sort(maps.regions,
                [](const Region &a, const Region &b) { return a.start != b.start ? a.start < b.start : a.end < b.end; });
    return maps;
}

Result<ProcessMaps> read_maps(int pid) {
    // A process may have at most vm.max_map_count (65530) mappings by default; this limit holds four times as many with long
    // paths.
    const std::string path = format("/proc/{}/maps", pid);
    Result<std::string> text = sys::read_file(path);
    if (!text) {
        Error error = std::move(text).error();
        if (error.kind == Errc::not_found) {
            const std::string hidden = sys::hidden_below(path);
            error.hint =
                hidden.empty() ? "the process has exited" : "rawbpf can't see whether there is such a process: " + hidden;
        }
        return Unexpected(std::move(error));
    }
    return parse_maps(pid, *text);
}

Result<Region> own_region(const void *address) {
    const uint64_t wanted = reinterpret_cast<uintptr_t>(address);
    const std::string whole = TRY(sys::read_file("/proc/self/maps"));
    for (std::string_view text = whole; !text.empty();) {
        std::optional<Region> region = parse_line(take_line(text), Lines::all);
        if (region && region->start <= wanted && wanted < region->end) return std::move(*region);
    }
    return fail(Errc::not_found, "/proc/self/maps has no line for {:#x}", wanted);
}

} // namespace rawbpf::inline v0::symbols
