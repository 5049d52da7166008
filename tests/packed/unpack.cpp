// Unpacks for tests/packed/run, from standard input to standard output. Each stream and each place has memory of its own, so that
// a sanitizer sees each byte beside them.
//
//      unpack          streams, each as lc, lp, pb, bytes unpacked, bytes packed (32-bit numbers), and the bytes
//                      -> each a byte, 1 if it is whole and 0 if it is damaged, and the place of the unpacked bytes
//      unpack calls    programs whose calls are told by their places, each as ELF's machine, bytes (32-bit numbers), and the bytes
//                      -> each with distances
#include <cstdint>
#include <cstdio>
#include <memory>

#include <elf.h>

#include "cli/packed/calls.h"
#include "cli/packed/lzma.h"

using namespace rawbpf::packed;

namespace {

int calls() {
    uint32_t head[2];
    while (std::fread(head, sizeof head, 1, stdin) == 1) {
        const auto [machine, bytes] = head;
        const auto program = std::make_unique<uint8_t[]>(bytes);
        if (std::fread(program.get(), 1, bytes, stdin) != bytes) return 1;
        switch (machine) {
        case EM_X86_64: distances_from_places<CallsOfX86>(program.get(), bytes); break;
        case EM_AARCH64: distances_from_places<CallsOfArm64>(program.get(), bytes); break;
        case EM_RISCV: distances_from_places<CallsOfRiscv>(program.get(), bytes); break;
        case EM_ARM: distances_from_places<CallsOfThumb>(program.get(), bytes); break;
        default: return 1;
        }
        std::fwrite(program.get(), 1, bytes, stdout);
    }
    return 0;
}

int streams() {
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
    return 0;
}

} // namespace

int main(int count, char **) { return count > 1 ? calls() : streams(); }
