// Unpacks streams for tests/packed/run: from standard input, each as lc, lp, pb, bytes unpacked, bytes packed (32-bit numbers),
// and the bytes. Prints a line a stream: whole or damaged, and the unpacked bytes' Adler-32. Each stream and text has memory of
// its own, so that a sanitizer sees each byte beside them.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "cli/packed/lzma.h"

int main() {
    using namespace rawbpf::packed;
    struct {
        uint32_t context_bits, literal_bits, position_bits, bytes, packed_bytes;
    } head;
    const auto model = std::make_unique<Model>();
    while (std::fread(&head, sizeof head, 1, stdin) == 1) {
        const auto in = std::make_unique<uint8_t[]>(head.packed_bytes), out = std::make_unique<uint8_t[]>(head.bytes);
        if (std::fread(in.get(), 1, head.packed_bytes, stdin) != head.packed_bytes) return 1;
        Decoder decoder(in.get(), head.packed_bytes, out.get(), head.bytes,
                        {head.context_bits, head.literal_bits, head.position_bits}, *model);
        const bool whole = decoder.decode();
        uint32_t low = 1, high = 0;
        for (uint32_t i = 0; i < head.bytes; ++i) {
            low = (low + out[i]) % 65521;
            high = (high + low) % 65521;
        }
        std::printf("%s %u\n", whole ? "whole" : "damaged", high << 16 | low);
    }
}
