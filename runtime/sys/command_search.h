// Which file a command's name stands for: execvp(3)'s rules, without an exec, so that it is known before the command begins.
//
//      candidates("ls", "/a:/usr/bin")  -->  /a/ls  /usr/bin/ls
//      look_at(...)                     -->  missing  program           as the user that this process is now
//
// The kernel decides at the exec: the search only says which files aren't worth one. Of a name with a slash that file is the only
// candidate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0::sys {

/// A file that a command's name may stand for.
struct Candidate {
    enum class Is : uint8_t {
        missing,
        denied,  ///< its folder may not be searched, the file may not be executed, or it is no regular file (EACCES)
        program, ///< worth an exec, whose error, if any, says more
        text     ///< the same, and sh runs it if the kernel doesn't (ENOEXEC): no line `#!`
    };
    std::string path;
    Is is = Is::program;
    [[nodiscard]] bool runs() const { return is == Is::program || is == Is::text; }
};

/// PURE. What `name` may stand for, in the order of `path` (as the variable PATH has it: an empty element is the current folder).
[[nodiscard]] std::vector<Candidate> candidates(std::string_view name, std::string_view path);
/// Looks at all of them. Where none runs, all are said to be programs: then the kernel tells why. Makes raw system calls only and
/// takes no memory: for a copy of a process.
void look_at(std::span<Candidate> candidates);

} // namespace rawbpf::inline v0::sys
