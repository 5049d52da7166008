// A file's unwind table as text, for tests/unwind/files, which compares it with what others read from the same file; and how long
// it takes, for tests/bench/unwind.bench.
//
//      unwind-rows FILE                   rows 23511 pages 27 rules 60 bytes 94552 functions 3713 framed .. pointed .. odd 12 bad 0 WHY
//                                         26dd0 SP cfa=8 fp=0 ra=-8 flags=0
//      unwind-rows --time COUNT FILE      nanoseconds to build it, one a line
//      unwind-rows --instructions FILE    instructions 512345 same 509871 unknown 2470 different 4
//                                         26dd0 SP cfa=16 fp=-16 ra=-8 flags=0 instructions SP cfa=0 fp=0 ra=0 flags=17
//      unwind-rows --words FILE           a9bf7bfd goes on
//
// --words: for each four bytes of a file, as the first instruction of a function of arm64's, whether it "goes on" as it was,
// "changes" something, or "ends" what is known. --instructions: what the instructions say of a function
// (runtime/unwind/arm64_code.h), beside what its entry says.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <elf.h>

#include "runtime/sys/file.h"
#include "runtime/unwind/arm64_code.h"
#include "runtime/unwind/functions.h"
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

void show(const UnwindRule &rule) {
    std::printf(" %s cfa=%d fp=%d ra=%d flags=%d", kKinds[rule.kind], rule.cfa * 8, rule.fp * 8, rule.ra * 8, rule.flags);
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
            std::printf("%" PRIx64, address);
            show(rule);
            std::printf("\n");
        }
}

// What an entry says is in the register again may still be where it was saved.
bool same_places(const UnwindRule &entry, const UnwindRule &ours) {
    const bool in_register = entry.flags & UNWIND_RA_IN_LR;
    return (in_register || (entry.ra == ours.ra && !(ours.flags & UNWIND_RA_IN_LR))) && (entry.fp == 0 || entry.fp == ours.fp);
}

void compare_instructions(const elf::Elf &file, const unwind::Table &table) {
    std::vector<unwind::Arm64Code> code;
    std::vector<uint64_t> entries;
    for (const elf::Section &section : file.sections())
        if (section.flags & SHF_EXECINSTR && section.name == ".text") code.push_back({section.address, file.contents(section)});
    for (const unwind::FunctionRange &function : unwind::function_ranges(file)) entries.push_back(function.start);
    const std::vector<unwind::Change> changes = unwind::arm64_rules(code, entries);
    uint64_t instructions = 0, same = 0, unknown = 0, different = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
        const auto &[address, rule] = changes[i];
        const uint64_t end = i + 1 < changes.size() ? changes[i + 1].address : code.back().end();
        for (uint64_t at = address; at < end; at += 4) {
            const UnwindRule entry = table.find(at);
            // Those with the return address above the CFA aren't called: stubs of the PLT jump there.
            if ((entry.kind != UNWIND_SP && entry.kind != UNWIND_FP) || entry.flags & UNWIND_ADDED || entry.ra > 0) continue;
            ++instructions;
            if (rule.kind == UNWIND_NONE) {
                ++unknown;
            } else if (unwind::same_cfa(entry, rule) && same_places(entry, rule)) {
                ++same;
            } else {
                ++different;
                std::printf("%" PRIx64, at);
                show(entry);
                std::printf(" instructions");
                show(rule);
                std::printf("\n");
            }
        }
    }
    std::printf("instructions %" PRIu64 " same %" PRIu64 " unknown %" PRIu64 " different %" PRIu64 "\n", instructions, same,
                unknown, different);
}

void show_words(Bytes bytes) {
    constexpr uint32_t kNop = 0xd503201f;
    for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
        const uint32_t words[] = {load<uint32_t>(bytes.data() + at), kNop};
        const unwind::Arm64Code code{0x1000, std::as_bytes(std::span(words))};
        const uint64_t entry = code.address;
        const auto changes = unwind::arm64_rules(std::span(&code, 1), std::span(&entry, 1));
        std::printf("%08x %s\n", words[0],
                    changes.size() == 1                       ? "goes on"
                    : changes.back().rule.kind == UNWIND_NONE ? "ends"
                                                              : "changes");
    }
}

} // namespace

int main(int argc, char **argv) {
    const bool timed = argc == 4 && std::strcmp(argv[1], "--time") == 0;
    const bool instructions = argc == 3 && std::strcmp(argv[1], "--instructions") == 0;
    const bool words = argc == 3 && std::strcmp(argv[1], "--words") == 0;
    if (argc != 2 && !timed && !instructions && !words) return 2;
    Result<sys::Mapping> mapping = sys::map_file(argv[argc - 1]);
    if (!mapping) return complain(mapping.error());
    if (words) {
        show_words(mapping->bytes());
        return 0;
    }
    for (int turns = timed ? std::atoi(argv[2]) : 1; turns-- > 0;) {
        const long long before = now();
        Result<elf::Elf> file = elf::Elf::parse(mapping->bytes(), argv[argc - 1]);
        if (!file) return complain(file.error());
        Result<unwind::Table> table = unwind::build_table(*file);
        if (!table) return complain(table.error());
        if (timed)
            std::printf("%lld %zu\n", now() - before, table->bytes());
        else if (instructions)
            compare_instructions(*file, *table);
        else
            show(*table);
    }
    return 0;
}
