// The module lies beside the executable, in a build folder and where somebody has copied both; or in the folder that it was
// installed in. It is as trusted as the executable is: whoever can write beside that one needs no module.
#include <dlfcn.h>

#include "programs/export/outlets.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {

Result<const Outlets *> load_outlets(const std::string &folder, std::string_view version) {
    std::string why;
    for (const std::string &place : {folder, std::string(RAWBPF_MODULES)}) {
        const std::string path = place + "/rawbpf-otlp.so";
        void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!module) {
            const char *error = dlerror();
            append(why, "{}{}", why.empty() ? "" : "; ", error ? error : path.c_str());
            continue;
        }
        const auto entry = reinterpret_cast<const Outlets *(*)()>(dlsym(module, "rawbpf_outlets"));
        const Outlets *outlets = entry ? entry() : nullptr;
        if (!outlets || version != outlets->version)
            return fail(Errc::unsupported, "{} belongs to another version of rawbpf", path);
        return outlets; // and stays: its classes are in use
    }
    return Unexpected(make_error(Errc::unsupported, format("rawbpf-otlp.so, which does this, can't be loaded: {}", why),
                                 "put it beside rawbpf-lab, or where the build was installed"));
}

} // namespace rawbpf::inline v0::telemetry
