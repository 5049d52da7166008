// The module is in the folder of the executable (in a build folder, or where somebody copied both), or in the folder where it
// was installed. It is as trusted as the executable: whoever can write to that folder needs no module.
#include <dlfcn.h>

#include "programs/export/outlets.h"
#include "runtime/base/fail.h"
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
                                 "put it beside rawbpf, or where the build was installed"));
}

} // namespace rawbpf::inline v0::telemetry
