// Which cgroup is a container's.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::processes {

/// A container, as the name of its directory says: "docker-3f2a....scope" and so on.
struct Container {
    std::string engine; ///< "docker", "podman", "containerd", "cri-o", "machine", "lxc"; empty: unknown, as of a bare id
    std::string name;   ///< an id of 64 hex digits, or a name
    bool is_id = false;
};
/// What a directory's name, and that of the one it lies in, say; false: no container.
[[nodiscard]] bool container_named(std::string_view directory, std::string_view parent, Container &out);

/// Where the hierarchy of cgroups v2 is mounted, by /proc/self/mounts; "/sys/fs/cgroup" where that can't be read.
[[nodiscard]] std::string cgroup_root();

/// The directory, below `root`, of the container that `wanted` says: its id or the beginning of it, its name, or the number of a
/// process in it. `proc` is /proc. Errors: not_found with the containers that there are, invalid_argument where several begin so.
[[nodiscard]] Result<std::string> find_container(const std::string &root, std::string_view wanted,
                                                 const std::string &proc = "/proc");

} // namespace rawbpf::inline v0::processes
