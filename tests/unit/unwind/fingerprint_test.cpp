// Which files' unwind information is the same.
#include "programs/unwind/fingerprint.h"

#include <set>

#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

CfiElf usual() {
    CfiElf file;
    file.eh.fde(file.eh.cie(), 0x10100, 64);
    return file;
}

uint64_t fingerprint_of(const CfiElf &file, uint64_t key = 7) {
    const std::vector<std::byte> image = file.file();
    return unwind::fingerprint(elf::Elf::parse(image, "app").value(), key);
}

} // namespace

TEST_CASE("unwind fingerprints: equal files have the same, whatever else is in them") {
    CHECK(fingerprint_of(usual()) == fingerprint_of(usual()));
    CHECK(fingerprint_of(usual()) != fingerprint_of(usual(), 8));
    CfiElf other_code = usual();
    other_code.code[100] = 0x90;
    CHECK(fingerprint_of(other_code) == fingerprint_of(usual()));
}

TEST_CASE("unwind fingerprints: every byte of .eh_frame and .debug_frame counts, and where code lies") {
    std::set<uint64_t> seen{fingerprint_of(usual())};
    size_t files = 1;
    const auto is_new = [&](const CfiElf &file) {
        ++files;
        seen.insert(fingerprint_of(file));
    };
    for (size_t i = 0; i < usual().eh.bytes.size(); ++i) {
        CfiElf file = usual();
        file.eh.bytes[i] ^= std::byte{1};
        is_new(file);
    }
    CfiElf file = usual();
    file.debug.fde_absolute(file.debug.cie({.augmentation = "", .data = {}}), 0x10200, 64);
    is_new(file);
    file.debug.bytes.back() ^= std::byte{1};
    is_new(file);
    file = usual();
    file.code.resize(0x20000);
    is_new(file);
    file = usual();
    file.eh.address += 0x1000;
    is_new(file);
    CHECK(seen.size() == files);
}
