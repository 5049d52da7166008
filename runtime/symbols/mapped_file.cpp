// A mapping is told as a path, a device and an inode. The path is no proof. It is the process's own: in a container or after a
// chroot another file has it here. And by the time we look, an upgrade may have replaced the file. Names and unwind tables of the
// wrong file are worse than none, so each way that may lead to the file is checked:
//
//      /proc/PID/root + path            while the process, or the one it was forked from, lives
//      path                             what ended a moment ago; a process in a chroot, whose maps show its paths as we see them
//      /proc/PID/map_files/START-END    the mapping itself (needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN); deleted files, too
//      /proc/PID/exe                    for who may not look into map_files
//
// Most file systems show the same inode in maps and by stat(2). Overlayfs and btrfs don't. What they show in maps is asked there:
// the file that was found is mapped into our own memory, and /proc/self/maps shows its numbers as it shows those of others.
// One doubt is left, between the events of perf and the maps on overlayfs (Linux 6.7 to 6.16): there the path is believed.
#include "runtime/symbols/mapped_file.h"

#include <optional>
#include <string_view>
#include <vector>

#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/sys/file.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::symbols {
namespace {

struct Way {
    std::string root, path;
    std::string home; // the root for its debug file
};

std::vector<Way> ways_to(const Region &region, std::span<const uint32_t> pids, const std::string &root) {
    const std::string path = region.file();
    const auto root_of = [](uint32_t pid) { return format("/proc/{}/root", pid); };
    std::vector<Way> out;
    for (uint32_t pid : pids)
        if (pid != 0 && !path.empty()) out.push_back({root_of(pid), path, root_of(pid)});
    if (!path.empty()) out.push_back({root, path, root});
    if (!pids.empty() && pids.front() != 0)
        out.push_back(
            {"", format("/proc/{}/map_files/{:x}-{:x}", pids.front(), region.start, region.end), root_of(pids.front())});
    if (region.kind() == RegionKind::file) return out;
    for (uint32_t pid : pids)
        if (pid != 0) out.push_back({"", format("/proc/{}/exe", pid), root_of(pid)});
    return out;
}

/// True when a process's root directory is ours: then its path works as well after its end.
bool same_root(const std::string &root) {
    if (root.empty()) return true;
    auto its = sys::stat_file(root + "/"), ours = sys::stat_file("/");
    return its && ours && its->st_ino == ours->st_ino && its->st_dev == ours->st_dev;
}

enum class Answer { yes, no, unknown };

/// Whether maps would show this file as the region is shown, where stat(2) shows another inode.
Answer shown_alike(const Fd &file, const struct stat &st, const Region &region) {
    auto image = sys::map_file(file, region.path);
    if (!image) return Answer::no;
    auto shown = own_region(image->data());
    if (!shown) return Answer::no;
    if (shown->inode == region.inode && shown->device == region.device) return Answer::yes;
    const bool honest = shown->inode == st.st_ino;
    return honest || shown->device == region.device ? Answer::no : Answer::unknown;
}

} // namespace

Result<MappedFile> open_mapped(const Region &region, std::span<const uint32_t> pids, const std::string &root) {
    const std::vector<Way> ways = ways_to(region, pids, root);
    const std::string path = region.file();
    std::optional<Error> failed;
    const auto found = [](Fd file, const Way &way) {
        return MappedFile{std::move(file), way.root + way.path, same_root(way.home) ? std::string() : way.home};
    };
    struct Other {
        Fd file;
        struct stat st;
        const Way *way;
    };
    std::vector<Other> others; // with another inode
    for (const Way &way : ways) {
        auto file = sys::open_under(way.root, way.path, O_RDONLY | O_NONBLOCK);
        if (!file) {
            const bool hidden = file.error().kind == Errc::permission && way.path == path;
            if (!failed && (hidden || sys::is_unread(file.error()))) failed = std::move(file).error();
            continue;
        }
        auto st = sys::stat_fd(file->get());
        if (!st || !S_ISREG(st->st_mode)) continue;
        if (st->st_ino == region.inode) return found(std::move(*file), way);
        others.push_back({std::move(*file), *st, &way});
    }
    for (Other &other : others) {
        const Answer answer = shown_alike(other.file, other.st, region);
        if (answer == Answer::yes || (answer == Answer::unknown && region.kind() == RegionKind::file))
            return found(std::move(other.file), *other.way);
    }
    if (failed) return Unexpected(std::move(*failed));
    return fail(Errc::not_found, "{}: the file is gone, and the process that had it mapped has exited", region.path);
}

} // namespace rawbpf::inline v0::symbols
