// A container is a cgroup, and whoever made it named the directory. No engine is asked: none need run, and the names are public.
//
//      docker           system.slice/docker-ID.scope                        or docker/ID, without systemd
//      podman           machine.slice/libpod-ID.scope/container             or libpod_parent/libpod-ID
//      kubernetes       kubepods.slice/.../cri-containerd-ID.scope          or kubepods/burstable/podUID/ID; crio-ID.scope
//      systemd-nspawn   machine.slice/systemd-nspawn@NAME.service           machine-NAME.scope, with - as \x2d
//      lxc              lxc.payload.NAME                                    lxc/NAME
//
// ID is 64 hex digits; its first few do, as everywhere with containers. conmon, which looks after a container from outside, has a
// cgroup named alike (libpod-conmon-ID.scope), and isn't it. Names that only an engine knows (`docker run --name`) stand in no
// cgroup. A process's own cgroup is in /proc/PID/cgroup; where it lies within a container's, the whole container is meant.
#include "programs/processes/container.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <sys/stat.h>

#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/base/stable_sort.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mounts.h"

namespace rawbpf::inline v0::processes {
namespace {

constexpr size_t kIdDigits = 64, kShownDigits = 12, kShown = 8;
constexpr size_t kPidDigits = 7; // pid_max is 4194304 at most
constexpr int kDeepest = 32;

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }
bool is_id(std::string_view text) { return text.size() == kIdDigits && is_hex(text); }

bool take_prefix(std::string_view &text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}
bool take_suffix(std::string_view &text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    return true;
}

/// systemd's \xNN in names of units.
std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        unsigned byte = 0;
        const char *at = text.data() + i + 2, *end = text.data() + std::min(i + 4, text.size());
        if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] == 'x' && std::from_chars(at, end, byte, 16).ptr == end) {
            out += static_cast<char>(byte);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

struct Engine {
    std::string_view prefix, name;
};
constexpr Engine kEngines[] = {{"docker-", "docker"},
                               {"libpod-", "podman"},
                               {"cri-containerd-", "containerd"},
                               {"nerdctl-", "containerd"},
                               {"crio-", "cri-o"}};

/// Files that every cgroup has: not worth a stat(2) each.
bool is_controller_file(std::string_view name) {
    for (std::string_view prefix :
         {"cgroup.", "cpu.", "cpuset.", "memory.", "io.", "pids.", "hugetlb.", "rdma.", "misc.", "irq."})
        if (name.starts_with(prefix)) return true;
    return false;
}

struct Found {
    Container container;
    std::string path;
};

std::string text_of(const Found &found) {
    const Container &c = found.container;
    std::string out = c.engine.empty() ? "" : c.engine + " ";
    return out + (c.is_id ? c.name.substr(0, kShownDigits) : c.name);
}

std::string list_of(const std::vector<Found> &all) {
    std::string out;
    for (size_t i = 0; i < std::min(all.size(), kShown); ++i) append(out, "{}{}", i ? ", " : "", text_of(all[i]));
    if (all.size() > kShown) append(out, " and {} more", all.size() - kShown);
    return out;
}

void collect(const std::string &directory, std::string_view own_name, int depth, std::vector<Found> &out) {
    if (depth > kDeepest) return;
    for (const std::string &name : sys::list_directory(directory).value_or(std::vector<std::string>{})) {
        if (name == "." || name == ".." || is_controller_file(name)) continue;
        const std::string path = directory + "/" + name;
        const Result<struct stat> st = sys::stat_file(path);
        if (!st || !S_ISDIR(st->st_mode)) continue;
        Found found;
        if (container_named(name, own_name, found.container)) {
            found.path = path;
            out.push_back(std::move(found));
        }
        collect(path, name, depth + 1, out);
    }
}

std::vector<Found> containers(const std::string &root) {
    std::vector<Found> out;
    collect(root, "", 0, out);
    stable_sort(out, [](const Found &a, const Found &b) { return a.path < b.path; });
    // One container may have several directories, one in the other: the outermost is all of it.
    std::vector<Found> distinct;
    for (Found &found : out) {
        const bool inner = std::any_of(distinct.begin(), distinct.end(), [&](const Found &other) {
            return other.container.name == found.container.name && found.path.starts_with(other.path + "/");
        });
        if (!inner) distinct.push_back(std::move(found));
    }
    return distinct;
}

std::string base(std::string_view path) { return std::string(path.substr(path.find_last_of('/') + 1)); }

Result<std::string> of_process(const std::string &root, std::string_view pid, const std::string &proc) {
    const Result<std::string> text = sys::read_file(format("{}/{}/cgroup", proc, pid), 64 << 10);
    if (!text) return fail(Errc::not_found, "there is no process {}", pid);
    std::string path;
    for (size_t at = 0; at < text->size();) {
        const size_t end = std::min(text->find('\n', at), text->size());
        std::string_view line = std::string_view(*text).substr(at, end - at);
        if (take_prefix(line, "0::")) path = line;
        at = end + 1;
    }
    if (path.empty()) return fail(Errc::unsupported, "process {} has no cgroup v2", pid);
    if (path == "/") return fail(Errc::not_found, "process {} is in no container: its cgroup is the root of all", pid);
    if (path.find("..") != std::string::npos)
        return fail(Errc::not_found, "process {}: its cgroup lies outside of those that can be seen here", pid);
    for (std::string at = path; at.size() > 1; at.resize(at.find_last_of('/'))) {
        const size_t slash = at.find_last_of('/');
        Container unused;
        if (container_named(base(at), base(std::string_view(at).substr(0, slash)), unused)) {
            path = at;
            break;
        }
        if (slash == 0) break;
    }
    return root + path;
}

} // namespace

bool container_named(std::string_view directory, std::string_view parent, Container &out) {
    std::string_view name = directory;
    const bool scope = take_suffix(name, ".scope");
    for (const Engine &engine : kEngines) {
        std::string_view id = name;
        if (!take_prefix(id, engine.prefix) || !is_id(id)) continue;
        out = {std::string(engine.name), std::string(id), true};
        return true;
    }
    if (is_id(name)) {
        out = {parent == "docker" ? "docker" : "", std::string(name), true};
        return true;
    }
    if (scope && take_prefix(name, "machine-") && !name.empty()) {
        out = {"machine", unescaped(name), false};
        return true;
    }
    if (take_prefix(name, "systemd-nspawn@") && take_suffix(name, ".service") && !name.empty()) {
        out = {"machine", unescaped(name), false};
        return true;
    }
    if (!scope && ((take_prefix(name, "lxc.payload.") && !name.empty()) || parent == "lxc" || parent == "lxc.payload")) {
        out = {"lxc", std::string(name), false};
        return true;
    }
    return false;
}

std::string cgroup_root() {
    const std::vector<std::string> places = sys::mount_points("cgroup2");
    return places.empty() ? "/sys/fs/cgroup" : places.front();
}

Result<std::string> find_container(const std::string &root, std::string_view wanted, const std::string &proc) {
    if (wanted.empty()) return fail(Errc::invalid_argument, "a container without a name");
    if (is_number(wanted) && wanted.size() <= kPidDigits) return of_process(root, wanted, proc);
    const std::vector<Found> all = containers(root);
    std::vector<Found> fitting;
    for (const Found &found : all)
        if (found.container.is_id ? found.container.name.starts_with(wanted) : found.container.name == wanted)
            fitting.push_back(found);
    if (fitting.size() == 1) return fitting[0].path;
    if (!fitting.empty())
        return Unexpected(make_error(Errc::invalid_argument,
                                     format("container {}: there are {} of them: {}", wanted, fitting.size(), list_of(fitting)),
                                     "more of its id, or --cgroup PATH"));
    if (all.empty())
        return Unexpected(make_error(Errc::not_found, format("container {}: no container has a cgroup under {}", wanted, root),
                                     "--cgroup PATH takes any cgroup"));
    return Unexpected(
        make_error(Errc::not_found, format("container {}: there isn't one; there are: {}", wanted, list_of(all)),
                   "names that only an engine knows aren't cgroups': docker inspect -f '{{.Id}}' NAME tells the id"));
}

} // namespace rawbpf::inline v0::processes
