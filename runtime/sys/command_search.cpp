#include "runtime/sys/command_search.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/invoke.h"
#include "runtime/sys/narrow_call.h"

#ifndef __NR_faccessat2
#define __NR_faccessat2 439 // 5.8
#endif

namespace rawbpf::inline v0::sys {
namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(AT_FDCWD);

// As shells tell it: no NUL in its first line.
bool is_text(const char *path) {
    const long fd = direct(__NR_openat, kHere, reg(path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char start[256];
    const long n = direct(__NR_read, static_cast<uint64_t>(fd), reg(start), sizeof start);
    direct(__NR_close, static_cast<uint64_t>(fd));
    if (n < 0) return false;
    const std::string_view read(start, static_cast<size_t>(n));
    return read.substr(0, read.find('\n')).find('\0') == std::string_view::npos;
}

Candidate::Is look_at(const char *path) {
    using enum Candidate::Is;
    struct stat st {};
    long r = direct(__NR_newfstatat, kHere, reg(path), reg(&st), 0);
    if (r == -ENOENT || r == -ENOTDIR) return missing;
    if (r == -EACCES || (r == 0 && !S_ISREG(st.st_mode))) return denied;
    if (r != 0) return program;
    // By the effective user, as exec does it.
    r = direct(__NR_faccessat2, kHere, reg(path), X_OK, AT_EACCESS);
    if (r == -ENOSYS) r = direct(__NR_faccessat, kHere, reg(path), X_OK);
    if (r == -EACCES) return denied;
    return is_text(path) ? text : program;
}

} // namespace

std::vector<Candidate> candidates(std::string_view name, std::string_view path) {
    std::vector<Candidate> out;
    if (name.find('/') != std::string_view::npos) {
        out.push_back({std::string(name)});
        return out;
    }
    for (size_t at = 0; at <= path.size();) {
        const size_t end = std::min(path.find(':', at), path.size());
        std::string file(path.substr(at, end - at));
        file += file.empty() ? "./" : "/";
        file += name;
        out.push_back({std::move(file)});
        at = end + 1;
    }
    return out;
}

void look_at(std::span<Candidate> candidates) {
    for (Candidate &one : candidates) one.is = look_at(one.path.c_str());
    if (std::any_of(candidates.begin(), candidates.end(), [](const Candidate &one) { return one.runs(); })) return;
    for (Candidate &one : candidates) one.is = Candidate::Is::program;
}

} // namespace rawbpf::inline v0::sys
