// Fedora's "mini debug info" (binutils and gdb know it, too): a stripped file carries the symbol table of its static functions as
// an ELF file in an xz stream, https://sourceware.org/gdb/current/onlinedocs/gdb.html/MiniDebugInfo.html. The runtime takes a
// decoder as a function, so that the library doesn't depend on liblzma; this is that function.
//
// The bytes may be hostile: what comes out is bounded, and so is the memory of the decoder (a dictionary can be 1.5 GB on paper).
#include "programs/xz.h"

#include <algorithm>

#include <lzma.h>

#include "programs/library.h"

namespace rawbpf::inline v0 {
namespace {

[[maybe_unused]] constexpr const char *kLibrary = "liblzma.so.5";

struct Functions {
    decltype(&lzma_stream_decoder) decoder = RAWBPF_FUNCTION_OF(kLibrary, lzma_stream_decoder);
    decltype(&lzma_code) code = RAWBPF_FUNCTION_OF(kLibrary, lzma_code);
    decltype(&lzma_end) end = RAWBPF_FUNCTION_OF(kLibrary, lzma_end);
};
const Functions &functions() {
    static const Functions all;
    return all;
}

} // namespace

std::optional<std::vector<std::byte>> unpack_xz(Bytes packed) {
    constexpr uint64_t kMostMemory = 128 << 20;
    constexpr size_t kMostBytes = 256 << 20;
    if (!knows_xz()) return std::nullopt;
    lzma_stream stream = LZMA_STREAM_INIT;
    if (functions().decoder(&stream, kMostMemory, 0) != LZMA_OK) return std::nullopt;
    stream.next_in = reinterpret_cast<const uint8_t *>(packed.data());
    stream.avail_in = packed.size();
    std::vector<std::byte> out;
    size_t size = 0;
    lzma_ret state = LZMA_OK;
    while (state == LZMA_OK && size < kMostBytes) {
        out.resize(std::max<size_t>(packed.size() * 4, out.size() * 2));
        stream.next_out = reinterpret_cast<uint8_t *>(out.data() + size);
        stream.avail_out = out.size() - size;
        state = functions().code(&stream, LZMA_FINISH);
        size = out.size() - stream.avail_out;
    }
    functions().end(&stream);
    if (state != LZMA_STREAM_END) return std::nullopt;
    out.resize(size);
    return out;
}
bool knows_xz() { return functions().decoder && functions().code && functions().end; }

} // namespace rawbpf::inline v0
