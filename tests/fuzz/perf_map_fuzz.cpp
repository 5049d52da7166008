// perf-PID.map: anybody may write one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/symbols/perf_map.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string_view text(reinterpret_cast<const char *>(data), size);
    symbols::PerfMap map = symbols::PerfMap::parse(text);
    for (uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x10ff}, uint64_t{0x7f0000000000}, UINT64_MAX})
        if (auto name = map.find(address); name && name->offset > address) std::abort();
    return 0;
}
