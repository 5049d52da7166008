// Fedora's "mini debug info" (binutils and gdb know it, too): a stripped file carries the symbol table of its static functions as
// an ELF file in an xz stream, https://sourceware.org/gdb/current/onlinedocs/gdb.html/MiniDebugInfo.html. The runtime takes a
// decoder as a function, so that the library doesn't depend on liblzma; this is that function.
//
// The bytes may be hostile: what comes out is bounded, and so is the memory of the decoder (a dictionary can be 1.5 GB on paper).
#include "programs/xz.h"

#include <algorithm>

#include <lzma.h>

namespace rawbpf::inline v0 {

std::optional<std::vector<std::byte>> unpack_xz(Bytes packed) {
    constexpr uint64_t kMostMemory = 128 << 20;
    constexpr size_t kMostBytes = 256 << 20;
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, kMostMemory, 0) != LZMA_OK) return std::nullopt;
    stream.next_in = reinterpret_cast<const uint8_t *>(packed.data());
    stream.avail_in = packed.size();
    std::vector<std::byte> out;
    size_t size = 0;
    lzma_ret state = LZMA_OK;
    while (state == LZMA_OK && size < kMostBytes) {
        out.resize(std::max<size_t>(packed.size() * 4, out.size() * 2));
        stream.next_out = reinterpret_cast<uint8_t *>(out.data() + size);
        stream.avail_out = out.size() - size;
        state = lzma_code(&stream, LZMA_FINISH);
        size = out.size() - stream.avail_out;
    }
    lzma_end(&stream);
    if (state != LZMA_STREAM_END) return std::nullopt;
    out.resize(size);
    return out;
}
bool knows_xz() { return true; }

} // namespace rawbpf::inline v0
