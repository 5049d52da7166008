// The module lies beside the executable, or in the folder that it was installed in: as rawbpf-otlp.so does
// (programs/export/load.cpp).
#include <dlfcn.h>

#include "programs/dwarf/debug_info.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::dwarf {

Result<const Lines *> load_lines(const std::string &folder, std::string_view version) {
    std::string why;
    for (const std::string &place : {folder, std::string(RAWBPF_MODULES)}) {
        const std::string path = place + "/rawbpf-lines.so";
        void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!module) {
            const char *error = dlerror();
            append(why, "{}{}", why.empty() ? "" : "; ", error ? error : path.c_str());
            continue;
        }
        const auto entry = reinterpret_cast<const Lines *(*)()>(dlsym(module, "rawbpf_lines"));
        const Lines *lines = entry ? entry() : nullptr;
        if (!lines || version != lines->version) return fail(Errc::unsupported, "{} belongs to another version of rawbpf", path);
        return lines; // and stays: its classes are in use
    }
    return Unexpected(make_error(Errc::unsupported, format("rawbpf-lines.so, which reads debug info, can't be loaded: {}", why),
                                 "put it beside rawbpf; it needs elfutils' libdw (libdw1 on Debian)"));
}

} // namespace rawbpf::inline v0::dwarf
