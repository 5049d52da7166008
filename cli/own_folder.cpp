// Asks /proc; where a root has none, the kernel's note of the name that execve(2) was given.
#include "cli/own_folder.h"

#include <sys/auxv.h>

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {

std::string own_folder() {
    const auto *given = reinterpret_cast<const char *>(getauxval(AT_EXECFN));
    const std::string path = sys::read_link("/proc/self/exe").value_or(given ? given : "");
    return path.substr(0, path.rfind('/'));
}

std::vector<std::string> lesson_folders() {
    const std::string own = own_folder();
    return {own + "/../share/rawbpf/lessons/", own + "/../programs/labs/lessons/"};
}

} // namespace rawbpf::inline v0::cli
