// Unpacks streams for tests/packed/run: from standard input, each as lc, lp, pb, bytes unpacked, bytes packed (32-bit numbers),
// and the bytes. Writes for each stream a byte, 1 if it is whole and 0 if it is damaged, and the place of the unpacked bytes.
// Each stream and each place has memory of its own, so that a sanitizer sees each byte beside them.
#include <cstdint>
#include <cstdio>
#include <memory>

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
        std::putchar(decoder.decode() ? 1 : 0);
        std::fwrite(out.get(), 1, head.bytes, stdout);
    }
}
