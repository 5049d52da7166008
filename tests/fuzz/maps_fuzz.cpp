// /proc/PID/maps: a process chooses the paths in it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/symbols/maps.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    symbols::ProcessMaps maps = symbols::parse_maps(1, {reinterpret_cast<const char *>(data), size});
    for (const symbols::Region &region : maps.regions) {
        if (region.start >= region.end) std::abort();
        if (region.file().size() > region.path.size()) std::abort();
        const symbols::Region *found = maps.find(region.start);
        if (found && (region.start < found->start || region.start >= found->end)) std::abort();
        (void)region.offset_of(region.end - 1);
    }
    return 0;
}
