// /proc/self/mounts has a line a mount: what is mounted, where, the type, options. A space in a path is written \\040, other
// special characters likewise.
//
//      bpf /sys/fs/bpf bpf rw,nosuid,nodev,noexec,relatime,mode=700 0 0
#include "runtime/sys/mounts.h"

#include <algorithm>

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::sys {
namespace {

std::string unescaped(std::string_view text) {
    std::string out;
    const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

} // namespace

std::vector<std::string> mount_points(std::string_view type, std::string_view mounts) {
    std::vector<std::string> out;
    while (!mounts.empty()) {
        const size_t end = std::min(mounts.find('\n'), mounts.size());
        const std::string_view line = mounts.substr(0, end);
        mounts.remove_prefix(std::min(end + 1, mounts.size()));
        const size_t place = line.find(' ');
        if (place == line.npos) continue;
        const size_t kind = line.find(' ', place + 1);
        if (kind == line.npos) continue;
        const std::string_view rest = line.substr(kind + 1);
        if (rest.substr(0, rest.find(' ')) != type) continue;
        std::string path = unescaped(line.substr(place + 1, kind - place - 1));
        if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
    }
    return out;
}

std::vector<std::string> mount_points(std::string_view type) {
    return mount_points(type, read_file("/proc/self/mounts", 4 << 20).value_or(std::string()));
}

} // namespace rawbpf::inline v0::sys
