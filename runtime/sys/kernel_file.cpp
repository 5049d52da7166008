// statfs(2) says to which file system the nearest existing folder belongs:
//
//      /sys/kernel/btf/vmlinux    ENOENT
//      /sys/kernel/btf            ENOENT
//      /sys/kernel                SYSFS_MAGIC: there is no such file        TMPFS_MAGIC: nothing is known
//
// A /proc with "subset=pid" has the right file system, but hides everything except processes. It has no /proc/version, which
// every other /proc has.
#include "runtime/sys/kernel_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0::sys {
namespace {

struct Mount {
    std::string_view path, name;
    uint64_t magic;
    std::string_view how = {}; // of what everything else is below
};
constexpr Mount kMounts[] = {
    // the most special first
    {"/sys/kernel/security", "securityfs", 0x73636673},
    {"/sys", "sysfs", 0x62656572, "mount -t sysfs sysfs /sys"},
    {"/proc", "procfs", 0x9fa0, "mount -t proc proc /proc"},
};

bool lies_below(std::string_view path, std::string_view folder) {
    return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

Error explained(Error error, const std::string &path) {
    if (error.os != ENOENT) return error;
    if (const std::string hidden = hidden_below(path); !hidden.empty()) {
        error.kind = Errc::unsupported;
        if (const std::string said = format(" ({})", hidden); !error.context.ends_with(said)) error.context += said;
    }
    return error;
}

} // namespace

Error unmounted(Error error, const std::string &path) {
    for (const Mount &mount : kMounts) {
        if (mount.how.empty() || !lies_below(path, mount.path)) continue;
        const Result<uint64_t> found = file_system_magic(std::string(mount.path));
        if (found ? *found == mount.magic : found.error().os != ENOENT) break;
        error.kind = Errc::unsupported;
        append(error.context, " (no {} at {})", mount.name, mount.path);
        error.hint = mount.how;
        break;
    }
    return error;
}

std::string hidden_below(const std::string &path) {
    for (const Mount &mount : kMounts) {
        if (!lies_below(path, mount.path)) continue;
        std::string folder = path;
        Result<uint64_t> found = file_system_magic(folder);
        while (!found && found.error().os == ENOENT && folder.size() > mount.path.size()) {
            folder.resize(folder.rfind('/'));
            found = file_system_magic(folder);
        }
        if (!found && found.error().os != ENOENT) return std::move(found).error().message();
        if (!found || *found != mount.magic) return format("no {} at {}", mount.name, folder);
        if (mount.path == "/proc" && !exists("/proc/version")) return "/proc shows processes only";
        return {};
    }
    return {};
}

Result<std::string> read_kernel_file(const std::string &path, size_t limit) {
    Result<std::string> text = read_file(path, limit);
    if (!text) return Unexpected(explained(std::move(text).error(), path));
    if (text->empty()) return fail(Errc::bad_input, "{} is empty", path);
    return text;
}

Result<std::string> kernel_line(const std::string &path) {
    std::string text = TRY(read_kernel_file(path));
    text.resize(std::min(text.find('\n'), text.size()));
    return text;
}

Result<std::vector<std::string>> list_kernel_directory(const std::string &path) {
    Result<std::vector<std::string>> names = list_directory(path);
    if (!names) return Unexpected(explained(std::move(names).error(), path));
    return names;
}

bool is_absent(const Error &error) { return error.os == ENOENT && error.kind == Errc::not_found; }

std::string absent_hint(const std::string &path, std::string_view absent) {
    const std::string hidden = hidden_below(path);
    if (hidden.empty()) return std::string(absent);
    return format("{}, so it can't be seen whether this kernel has it{}", hidden,
                  hidden == "no sysfs at /sys" ? ": mount -t sysfs sysfs /sys" : "");
}

} // namespace rawbpf::inline v0::sys
