// Which descriptors are open in this process: tests compare before and after to see that nothing is left behind.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/sys/file.h"

namespace rawbpf::test {

/// What each open descriptor of this process refers to ("anon_inode:bpf-map" ...), sorted.
inline std::vector<std::string> open_descriptors() {
    std::vector<std::string> out;
    for (const std::string &fd : sys::list_directory("/proc/self/fd").value_or(std::vector<std::string>{})) {
        Result<std::string> target = sys::read_link("/proc/self/fd/" + fd);
        // The directory that is being listed is one of them, and gone by now.
        if (target) out.push_back(fd + " -> " + *target);
    }
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace rawbpf::test
