// What the symbols room says of addresses of a file: FILE on the command line, hexadecimal virtual addresses on standard input, a
// line for each on standard output. With --lines a line for each function there, innermost first, with its place in the source.
// For tests/names, which compares it with other people's tools.
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "programs/xz.h"
#include "runtime/symbols/symbols.h"
#include "runtime/sys/file.h"
#ifdef RAWBPF_DWARF
#include "programs/dwarf/debug_info.h"
#endif

using namespace rawbpf;

namespace {

int say(const Error &error) { return std::fprintf(stderr, "%s\n", error.message().c_str()), 1; }

int show_functions(const char *path) {
    Result<symbols::ElfSymbols> file = symbols::ElfSymbols::load(path, {}, unpack_xz);
    if (!file) return say(file.error());
    std::printf("source\t%s\t%zu\n", file->source().c_str(), file->size());
    for (uint64_t address = 0; std::scanf("%" SCNx64, &address) == 1;) {
        const auto name = file->find_address(address);
        std::printf("%" PRIx64 "\t%s\t%" PRIu64 "\n", address, name ? name->symbol.c_str() : "-", name ? name->offset : 0);
    }
    return 0;
}

#ifdef RAWBPF_DWARF
int show_lines(const char *path) {
    const auto debug_info = dwarf::make_debug_info();
    Result<Fd> file = sys::open(path, O_RDONLY);
    if (!file) return say(file.error());
    auto lines = debug_info->open(std::move(*file), path, "");
    if (!lines) return say(lines.error());
    for (uint64_t address = 0; std::scanf("%" SCNx64, &address) == 1;) {
        std::printf("%" PRIx64 "\n", address);
        for (const processes::SourceFrame &frame : (*lines)->find(address))
            std::printf("\t%s\t%s\t%u\t%u\n", frame.function.c_str(), frame.file.c_str(), frame.line, frame.column);
    }
    for (const std::string &warning : debug_info->warnings()) std::fprintf(stderr, "%s\n", warning.c_str());
    return 0;
}
#endif

} // namespace

int main(int argc, char **argv) {
    if (argc == 2) return show_functions(argv[1]);
#ifdef RAWBPF_DWARF
    if (argc == 3 && std::strcmp(argv[1], "--lines") == 0) return show_lines(argv[2]);
#endif
    return std::fputs("usage: symbolize [--lines] FILE < ADDRESSES\n", stderr), 2;
}
