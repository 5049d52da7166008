// A file's unwind table as text, for tests/unwind/files, which compares it with what others read from the same file; and how long
// it takes, for tests/bench/unwind.bench.
//
//      unwind-rows FILE                   rows 23511 pages 27 rules 60 bytes 94552 functions 3713 framed .. pointed .. odd 12 bad 0 WHY
//                                         26dd0 SP cfa=8 fp=0 ra=-8 flags=0
//      unwind-rows --time COUNT FILE      nanoseconds to build it, one a line
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "runtime/sys/file.h"
#include "runtime/unwind/table.h"

using namespace rawbpf;

namespace {

constexpr const char *kKinds[] = {"NONE", "SP", "FP", "FP_DEREF", "PLT", "SIGNAL", "END", "ODD", "SP_DEREF", "R10"};

int complain(const Error &error) {
    std::fprintf(stderr, "unwind-rows: %s\n", error.message().c_str());
    return 1;
}

long long now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void show(const unwind::Table &table) {
    std::printf("rows %zu pages %zu rules %zu bytes %zu functions %u framed %u pointed %u odd %u bad %u %s\n", table.rows.size(),
                table.pages.size(), table.rules.size(), table.bytes(), table.stats.functions, table.stats.framed,
                table.stats.frame_pointers, table.stats.odd_rows, table.stats.bad_entries, table.stats.first_bad.c_str());
    for (size_t page = 0; page < table.pages.size(); ++page)
        for (uint32_t i = 0; i < table.pages[page].rows; ++i) {
            const uint32_t row = table.rows[table.pages[page].first + i];
            const UnwindRule &rule = table.rules[UNWIND_ROW_RULE(row)];
            const uint64_t address = table.base + (page << UNWIND_PAGE_BITS) + UNWIND_ROW_LOW(row);
            std::printf("%" PRIx64 " %s cfa=%d fp=%d ra=%d flags=%d\n", address, kKinds[rule.kind], rule.cfa * 8, rule.fp * 8,
                        rule.ra * 8, rule.flags);
        }
}

} // namespace

int main(int argc, char **argv) {
    const bool timed = argc == 4 && std::strcmp(argv[1], "--time") == 0;
    if (argc != 2 && !timed) return 2;
    Result<sys::Mapping> mapping = sys::map_file(argv[argc - 1]);
    if (!mapping) return complain(mapping.error());
    for (int turns = timed ? std::atoi(argv[2]) : 1; turns-- > 0;) {
        const long long before = now();
        Result<elf::Elf> file = elf::Elf::parse(mapping->bytes(), argv[argc - 1]);
        if (!file) return complain(file.error());
        Result<unwind::Table> table = unwind::build_table(*file);
        if (!table) return complain(table.error());
        if (timed)
            std::printf("%lld %zu\n", now() - before, table->bytes());
        else
            show(*table);
    }
    return 0;
}
