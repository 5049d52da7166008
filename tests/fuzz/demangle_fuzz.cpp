// Mangled names: whatever comes in, the time, the stack and the output stay bounded.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/symbols/demangle.h"
#include "runtime/symbols/punycode.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::string_view name(reinterpret_cast<const char *>(data), size);
    std::string readable = symbols::demangle(name);
    if (readable.size() > (70 << 10) + size) std::abort();
    for (std::string_view prefix : {"_R", "_Z", "_ZN"}) (void)symbols::demangle(std::string(prefix) += name);
    (void)symbols::decode_punycode(name);
    return 0;
}
