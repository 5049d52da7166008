// A module of rawbpf's, loaded when a run needs it: from the folder of the executable (a build folder, or where somebody copied
// both), or from where it was installed. It is as trusted as the executable: whoever can write to that folder needs no module.
#pragma once

#include <dlfcn.h>
#include <string>
#include <string_view>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

/// What `entry` of the module `name` returns; it stays, since its classes are in use. `does`: what rawbpf can't do without it.
template <class Table> Result<const Table *> load_module(const std::string &folder, std::string_view version,
                                                         std::string_view name, const char *entry, std::string_view does,
                                                         const char *hint) {
    std::string why;
    for (const std::string &place : {folder, std::string(RAWBPF_MODULES)}) {
        const std::string path = format("{}/{}", place, name);
        void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!module) {
            const char *error = dlerror();
            append(why, "{}{}", why.empty() ? "" : "; ", error ? error : path.c_str());
            continue;
        }
        const auto function = reinterpret_cast<const Table *(*)()>(dlsym(module, entry));
        const Table *table = function ? function() : nullptr;
        if (!table || version != table->version) return fail(Errc::unsupported, "{} belongs to another version of rawbpf", path);
        return table;
    }
    return Unexpected(make_error(Errc::unsupported, format("rawbpf couldn't load {}, which {}: {}", name, does, why), hint));
}

} // namespace rawbpf::inline v0
