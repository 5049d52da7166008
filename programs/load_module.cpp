#include "programs/load_module.h"

#include <dlfcn.h>
#include <utility>

namespace rawbpf::inline v0 {

Result<ModuleEntry> find_module_entry(const std::vector<std::string> &folders, std::string_view name, const char *entry,
                                      std::string_view does, const char *hint) {
    std::string why;
    for (const std::string &folder : folders) {
        std::string path = format("{}/{}", folder, name);
        if (void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return ModuleEntry{std::move(path), dlsym(module, entry)};
        const char *error = dlerror();
        append(why, "{}{}", why.empty() ? "" : "; ", error ? error : path.c_str());
    }
    return Unexpected(make_error(Errc::unsupported, format("rawbpf couldn't load {}, which {}: {}", name, does, why), hint));
}

} // namespace rawbpf::inline v0
