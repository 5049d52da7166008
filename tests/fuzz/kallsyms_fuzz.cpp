// kallsyms: any text, in any pieces, gives the same names as in one piece.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/symbols/kallsyms.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    size_t piece = 1 + data[0];
    std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
    const std::vector<uint64_t> asked = {0, 1, 0x1000, 0xffffffff81000000, 0xffffffffc0000010, UINT64_MAX, 0x1000};
    symbols::KernelNamer whole(asked), pieces(asked);
    whole.feed(text);
    for (size_t at = 0; at < text.size(); at += piece) pieces.feed(text.substr(at, piece));
    auto a = whole.finish(), b = pieces.finish();
    if (a.size() != 6 || b.size() != 6) std::abort();
    // Lines beyond the limit are cut at different places in the two; names that short can't come from them.
    for (size_t i = 0; i < a.size(); ++i)
        if (text.size() < 4096 && (a[i].symbol != b[i].symbol || a[i].offset != b[i].offset || a[i].module != b[i].module))
            std::abort();
    return 0;
}
