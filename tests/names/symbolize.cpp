// What the symbols room says of addresses of a file: FILE on the command line, hexadecimal virtual addresses on standard input, a
// line for each on standard output. For tests/names/run, which compares it with other people's tools.
#include <cinttypes>
#include <cstdio>

#include "programs/xz.h"
#include "runtime/symbols/symbols.h"

using namespace rawbpf;

int main(int argc, char **argv) {
    if (argc != 2) return std::fputs("usage: symbolize FILE < ADDRESSES\n", stderr), 2;
    Result<symbols::ElfSymbols> file = symbols::ElfSymbols::load(argv[1], {}, unpack_xz);
    if (!file) return std::fprintf(stderr, "%s\n", file.error().message().c_str()), 1;
    std::printf("source\t%s\t%zu\n", file->source().c_str(), file->size());
    for (uint64_t address = 0; std::scanf("%" SCNx64, &address) == 1;) {
        const auto name = file->find_address(address);
        std::printf("%" PRIx64 "\t%s\t%" PRIu64 "\n", address, name ? name->symbol.c_str() : "-", name ? name->offset : 0);
    }
    return 0;
}
