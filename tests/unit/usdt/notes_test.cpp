// Notes of every class and byte order, moved ones, damaged ones; and the nops that they point at.
#include "runtime/usdt/notes.h"

#include <elf.h>

#include "runtime/usdt/nop.h"
#include "tests/support/test.h"
#include "tests/unit/usdt/notes_elf.h"

using namespace rawbpf;
using test::NotesElf;

TEST_CASE("usdt notes: any machine, class and byte order, padded or not") {
    struct Kind {
        uint16_t machine;
        bool is_64, big_endian;
    };
    for (const Kind &kind : {Kind{EM_X86_64, true, false},
                             {EM_AARCH64, true, false},
                             {EM_RISCV, true, false},
                             {EM_S390, true, true},
                             {EM_386, false, false},
                             {EM_PPC, false, true}}) {
        NotesElf program;
        program.target = {kind.machine, ET_DYN, kind.is_64, kind.big_endian, 0};
        CAPTURE(kind.machine);
        const std::vector<std::byte> image = program.file({{0x1010, 0x1100, 0x3002, "app", "first", "8@x0"},
                                                           {0x1020, 0x1100, 0, "app", "second", "", true},
                                                           {0x0f30, 0x1080, 0x2f84, "app", "moved", ":", true}});
        const elf::Elf elf = elf::Elf::parse(image, "app").value();
        Result<usdt::Notes> notes = usdt::read_notes(elf);
        REQUIRE_MESSAGE(notes, notes.error().message());
        CHECK(notes->problems.empty());
        REQUIRE(notes->sites.size() == 3);
        CHECK(notes->sites[0].name == "first");
        CHECK(notes->sites[0].arguments == "8@x0");
        CHECK(notes->sites[0].semaphore == 0x3002);
        CHECK(notes->sites[1].address == 0x1020);
        CHECK(notes->sites[1].semaphore == 0);
        CHECK(notes->sites[2].address == 0x0fb0); // prelink has moved it by 0x80
        CHECK(notes->sites[2].semaphore == 0x3004);
        CHECK(notes->sites[2].arguments.empty());
        CHECK(usdt::segment_at(elf, 0x1010, 1)->flags == (PF_R | PF_X));
        CHECK(usdt::segment_at(elf, 0x3002, 2)->flags == (PF_R | PF_W));
        CHECK(usdt::segment_at(elf, 0x301f, 2) == nullptr);
        CHECK(usdt::segment_at(elf, 0x9000, 1) == nullptr);
    }
}

TEST_CASE("usdt notes: a damaged note costs itself, a wrong size what follows") {
    NotesElf program;
    auto read = [](Bytes image) { return usdt::read_notes(elf::Elf::parse(image, "app").value()).value(); };
    // The first one's provider has no end: its name and what follows are other bytes than zero.
    std::vector<std::byte> image =
        program.file({{0x1010, 0x1100, 0, "provider", "first", ""}, {0x1020, 0, 0, "app", "second", ""}});
    const elf::Elf elf = elf::Elf::parse(image, "app").value();
    const size_t at = elf.find_section(".note.stapsdt")->offset;
    for (size_t i = at + 44; image[i] != std::byte{8}; ++i) image[i] = std::byte{'x'};
    usdt::Notes notes = read(image);
    REQUIRE(notes.sites.size() == 1);
    CHECK(notes.sites[0].name == "second");
    REQUIRE(notes.problems.size() == 1);
    CHECK(notes.problems[0].message().find("app: .note.stapsdt: offset 0x2c: string has no end") != std::string::npos);
    // An absurd size: nothing behind it can be found.
    for (size_t field : {0, 4}) {
        image = program.file({{0x1010, 0, 0, "app", "first", ""}, {0x1020, 0, 0, "app", "second", ""}});
        for (size_t i = 0; i < 4; ++i) image[at + field + i] = std::byte{0xff};
        notes = read(image);
        CHECK(notes.sites.empty());
        REQUIRE(notes.problems.size() == 1);
        CHECK(notes.problems[0].message().find("needs 4294967295 bytes") != std::string::npos);
    }
    program.junk = "abc";
    notes = read(program.file({{}}));
    CHECK(notes.sites.size() == 1);
    CHECK(notes.problems.size() == 1);

    program = {};
    program.target.type = ET_REL;
    image = program.file({{}});
    CHECK(usdt::read_notes(elf::Elf::parse(image, "app.o").value()).error().kind == Errc::unsupported);
    elf::Writer bare;
    image = bare.finish();
    CHECK(usdt::read_notes(elf::Elf::parse(image, "app").value()).error().kind == Errc::not_found);
}

TEST_CASE("usdt notes: files cut and flipped at every byte") {
    NotesElf program;
    program.symbols = {{"counter", 0x4010}};
    const std::vector<std::byte> image =
        program.file({{0x1010, 0x1100, 0x3002, "app", "first", "4@counter(%rip)"}, {0x1020, 0, 0, "app", "second", ""}});
    auto look = [](Bytes bytes) {
        Result<elf::Elf> elf = elf::Elf::parse(bytes, "app");
        if (!elf) return;
        if (Result<usdt::Notes> notes = usdt::read_notes(*elf)) CHECK(notes->sites.size() <= 2);
    };
    for (size_t size = 0; size < image.size(); ++size) look(Bytes(image).first(size));
    std::vector<std::byte> flipped = image;
    for (size_t at = 0; at < image.size(); ++at)
        for (unsigned char bits : {0x01, 0x80, 0xff}) {
            flipped[at] ^= std::byte{bits};
            look(flipped);
            flipped[at] = image[at];
        }
}

TEST_CASE("usdt notes: the nop at a site") {
    auto kind = [](std::vector<uint8_t> code, uint16_t machine, bool big_endian = false) {
        return usdt::nop_at(std::as_bytes(std::span(code)), machine, big_endian).kind;
    };
    CHECK(kind({0x90, 0xc3}, EM_X86_64) == "nop");
    CHECK(kind({0x90}, EM_386) == "nop");
    CHECK(kind({0x0f, 0x1f, 0x44, 0, 0}, EM_X86_64) == "nop5");
    CHECK(kind({0x90, 0x0f, 0x1f, 0x44, 0, 0}, EM_X86_64) == "nop,nop5");
    CHECK(kind({0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, EM_X86_64) == "nop,nop10");
    CHECK(kind({0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0}, EM_X86_64) == "nop"); // cut
    CHECK(kind({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, EM_X86_64) == "nop10");
    CHECK(kind({0x55}, EM_X86_64).empty());
    CHECK(kind({0xf3, 0x90}, EM_X86_64).empty()); // pause
    CHECK(kind({}, EM_X86_64).empty());
    CHECK(kind({0x1f, 0x20, 0x03, 0xd5}, EM_AARCH64) == "nop");
    CHECK(kind({0x1f, 0x20, 0x03, 0xd5}, EM_AARCH64, true) == "nop"); // code stays little-endian
    CHECK(kind({0x90, 0x90, 0x90, 0x90}, EM_AARCH64).empty());
    CHECK(kind({0x01, 0x00}, EM_RISCV) == "c.nop");
    CHECK(kind({0x47, 0, 0, 0}, EM_S390, true) == "nop");
    CHECK(kind({0x07, 0x00}, EM_S390, true) == "nopr");
    CHECK(kind({0x60, 0, 0, 0}, EM_PPC64, true) == "nop");
    CHECK(kind({0, 0, 0, 0x60}, EM_PPC64, false) == "nop");
}
