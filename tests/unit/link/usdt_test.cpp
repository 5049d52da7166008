// USDT probes as binaries describe them: arguments in the compiler's words, notes in ELF.
#include "runtime/link/usdt.h"

#include <elf.h>

#include "runtime/base/fail.h"
#include "runtime/elf/writer.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Expected {
    uint32_t where;
    int64_t value;
    int register_offset;
    bool is_signed;
    int shift;
};
void check(std::string_view text, uint16_t machine, const Expected &expected) {
    std::vector<std::string> notes;
    const UsdtSpec spec = read_usdt_arguments(text, machine, notes);
    CAPTURE(text);
    REQUIRE(spec.count == 1);
    const UsdtSpec::Argument &a = spec.arguments[0];
    CHECK(a.where == expected.where);
    CHECK(static_cast<int64_t>(a.value) == expected.value);
    CHECK(a.register_offset == expected.register_offset);
    CHECK(a.is_signed == expected.is_signed);
    CHECK(a.shift == expected.shift);
    CHECK(notes.size() == (expected.where == UsdtSpec::unreadable ? 1 : 0));
}

constexpr uint32_t indexed(uint32_t by, uint32_t scale) { return UsdtSpec::indexed | by << 8 | scale << 20; }

struct Note {
    uint64_t pc, base, semaphore;
    std::string_view provider, name, arguments;
};
void put(std::vector<std::byte> &out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }
void align(std::vector<std::byte> &out) { out.resize((out.size() + 3) / 4 * 4); }

std::vector<std::byte> binary(const std::vector<Note> &notes, uint64_t base_address = 0x1100) {
    std::vector<std::byte> section;
    for (const Note &note : notes) {
        std::vector<std::byte> body;
        for (uint64_t number : {note.pc, note.base, note.semaphore}) put(body, bytes_of_object(number));
        for (std::string_view text : {note.provider, note.name, note.arguments}) {
            put(body, bytes_of(text));
            body.push_back({});
        }
        const uint32_t head[] = {8, static_cast<uint32_t>(body.size()), 3};
        put(section, std::as_bytes(std::span(head)));
        put(section, bytes_of(std::string_view("stapsdt\0", 8)));
        put(section, body);
        align(section);
    }
    elf::Writer writer({EM_X86_64, ET_DYN, true, false, 0});
    auto add = [&](std::string_view name, uint32_t type, uint64_t flags, uint64_t address, Bytes contents) {
        elf::Section like;
        like.type = type;
        like.flags = flags;
        like.address = address;
        like.alignment = 4;
        return writer.add_section(name, like, contents);
    };
    const std::vector<std::byte> zeros(0x200);
    writer.add_segment(PT_LOAD, PF_R | PF_X, add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, zeros));
    writer.add_segment(PT_LOAD, PF_R | PF_W, add(".probes", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x3000, Bytes(zeros).first(8)));
    add(".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, base_address, Bytes(zeros).first(1));
    add(".note.stapsdt", SHT_NOTE, 0, 0, section);
    return writer.finish();
}
Result<std::vector<UsdtSite>> sites(Bytes image, std::string_view provider = "app", std::string_view name = "probe") {
    return find_usdt_sites(TRY(elf::Elf::parse(image, "app")), provider, name);
}

} // namespace

TEST_CASE("usdt: arguments of x86_64") {
    check("-4@%eax", EM_X86_64, {UsdtSpec::in_register, 0, 80, true, 32});
    check("8@%rsp", EM_X86_64, {UsdtSpec::in_register, 0, 152, false, 0});
    check("2@%r11w", EM_X86_64, {UsdtSpec::in_register, 0, 48, false, 48});
    check("1@%sil", EM_X86_64, {UsdtSpec::in_register, 0, 104, false, 56});
    check("4@$71", EM_X86_64, {UsdtSpec::constant, 71, 0, false, 32});
    check("-4@$-9", EM_X86_64, {UsdtSpec::constant, -9, 0, true, 32});
    check("8@$18446744073709551615", EM_X86_64, {UsdtSpec::constant, -1, 0, false, 0});
    check("-4@-20(%rbp)", EM_X86_64, {UsdtSpec::in_memory, -20, 32, true, 32});
    check("8@(%rdi)", EM_X86_64, {UsdtSpec::in_memory, 0, 112, false, 0});
    check("1@-96(%rbp,%rax,8)", EM_X86_64, {indexed(80, 3), -96, 32, false, 56});
    check("1@(%rbp,%r15)", EM_X86_64, {indexed(0, 0), 0, 32, false, 56});
    for (std::string_view text :
         {"8@%xmm0", "8f@%rax", "8@counter(%rip)", "3@%eax", "8@", "@%rax", "8", "8@%", "8@$", "8@$x", "8@5", "8@(%rax",
          "8@(%rax,%rbx,3)", "8@(%rax,%nothing)", "8@%rax!", "-9223372036854775808@%rax", "8@%fs:0"})
        check(text, EM_X86_64, {UsdtSpec::unreadable, 0, 0, false, 0});
}

TEST_CASE("usdt: arguments of arm64") {
    check("-8@x4", EM_AARCH64, {UsdtSpec::in_register, 0, 32, true, 0});
    check("4@w30", EM_AARCH64, {UsdtSpec::in_register, 0, 240, false, 32});
    check("8@sp", EM_AARCH64, {UsdtSpec::in_register, 0, 248, false, 0});
    check("4@5", EM_AARCH64, {UsdtSpec::constant, 5, 0, false, 32});
    check("-4@-1", EM_AARCH64, {UsdtSpec::constant, -1, 0, true, 32});
    check("8@xzr", EM_AARCH64, {UsdtSpec::constant, 0, 0, false, 0});
    check("-4@[sp, 96]", EM_AARCH64, {UsdtSpec::in_memory, 96, 248, true, 32});
    check("-4@[x29,-8]", EM_AARCH64, {UsdtSpec::in_memory, -8, 232, true, 32});
    check("8@[x0]", EM_AARCH64, {UsdtSpec::in_memory, 0, 0, false, 0});
    check("8@[x0, x1, lsl 3]", EM_AARCH64, {indexed(8, 3), 0, 0, false, 0});
    check("1@[x2, x3]", EM_AARCH64, {indexed(24, 0), 0, 16, false, 56});
    for (std::string_view text :
         {"8@x31", "8@x", "8@x1x", "8@d0", "8@[x0", "8@[x0, w1, sxtw 2]", "8@[x0, 8]!", "8@[x0, x1, lsl 16]", "8@[q0]"})
        check(text, EM_AARCH64, {UsdtSpec::unreadable, 0, 0, false, 0});
}

TEST_CASE("usdt: several arguments, too many, none, and a machine that isn't known") {
    std::vector<std::string> notes;
    UsdtSpec spec = read_usdt_arguments("-4@%eax 8@-96(%rbp,%rax,8) 4@$5", EM_X86_64, notes);
    CHECK(spec.count == 3);
    CHECK(notes.empty());
    spec = read_usdt_arguments("8@x1 4@[sp, 96] 4@7", EM_AARCH64, notes);
    CHECK(spec.count == 3);
    CHECK(spec.arguments[1].value == 96);
    CHECK(notes.empty());
    std::string many;
    for (int i = 0; i < 20; ++i) many += "8@%rax ";
    CHECK(read_usdt_arguments(many, EM_X86_64, notes).count == 12);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find("more than 12 arguments") != std::string::npos);
    CHECK(read_usdt_arguments("   ", EM_X86_64, notes).count == 0);
    notes.clear();
    CHECK(read_usdt_arguments("8@%rax 8@%rbx", EM_RISCV, notes).arguments[1].where == UsdtSpec::unreadable);
    CHECK(notes.size() == 2);
}

TEST_CASE("usdt: a site moves to the 10-byte nop behind its nop, and only to that one") {
    auto moved = [](std::vector<uint8_t> code, uint64_t at, uint16_t machine = EM_X86_64) {
        std::vector<UsdtSite> sites(1);
        sites[0].offset = at;
        sites[0].address = 0x1000 + at;
        take_long_nops(std::as_bytes(std::span(code)), machine, sites);
        CHECK(sites[0].address == 0x1000 + sites[0].offset);
        return sites[0].offset - at;
    };
    const std::vector<uint8_t> both = {0xcc, 0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00};
    CHECK(moved(both, 1) == 1);
    CHECK(moved(both, 1, EM_AARCH64) == 0);
    CHECK(moved(both, 2) == 0);                                       // it stands there already
    CHECK(moved({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}, 0) == 0); // 5 bytes: not safe where the kernel takes it
    CHECK(moved(std::vector<uint8_t>(11, 0x90), 0) == 0);             // ten more nops
    CHECK(moved({both.begin() + 1, both.end() - 1}, 0) == 0);         // cut off
    CHECK(moved({both.begin() + 1, both.end()}, 0) == 1);
    CHECK(moved(both, 12) == 0);
    CHECK(moved(both, ~uint64_t{0}) == 0);
}

TEST_CASE("usdt: sites of a probe in notes") {
    std::vector<std::byte> image = binary({{0x1010, 0x1100, 0x3002, "app", "probe", "8@%rax"},
                                           {0x1008, 0x1100, 0, "app", "probe", ":"},
                                           {0x1010, 0x1100, 0x3002, "app", "probe", "8@%rax"},
                                           {0x1020, 0x1100, 0, "app", "prove", ""}});
    Result<std::vector<UsdtSite>> found = sites(image);
    REQUIRE_MESSAGE(found, found.error().message());
    REQUIRE(found->size() == 2);
    const elf::Elf elf = elf::Elf::parse(image, "app").value();
    CHECK((*found)[0].offset == elf.file_offset(0x1008));
    CHECK((*found)[0].arguments.empty());
    CHECK((*found)[0].semaphore == 0);
    CHECK((*found)[1].address == 0x1010);
    CHECK((*found)[1].arguments == "8@%rax");
    CHECK((*found)[1].semaphore == elf.file_offset(0x3002));
    // Prelink has moved it all by 0x80; a note without a base is as it is.
    image = binary({{0x0f90, 0x1080, 0x2f82, "app", "probe", ""}, {0x1018, 0, 0, "app", "probe", ""}});
    found = sites(image);
    REQUIRE(found);
    CHECK((*found)[0].address == 0x1010);
    CHECK((*found)[0].semaphore == elf.file_offset(0x3002));
    CHECK((*found)[1].address == 0x1018);

    Error error = sites(image, "app", "prob").error();
    CHECK(error.kind == Errc::not_found);
    CHECK(error.hint == "did you mean app:probe?");
    CHECK(sites(binary({{0x9000, 0x1100, 0, "app", "probe", ""}})).error().message().find("at 0x9000, which is in no segment") !=
          std::string::npos);
    CHECK(sites(binary({{0x1010, 0x1100, 0x9000, "app", "probe", ""}})).error().message().find("semaphore") != std::string::npos);
}

TEST_CASE("usdt: notes that are cut or flipped") {
    const std::vector<std::byte> image =
        binary({{0x1010, 0x1100, 0x3002, "app", "probe", "8@%rax"}, {0x1020, 0x1100, 0, "app", "probe", ""}});
    for (size_t size = 0; size < image.size(); ++size) (void)sites(Bytes(image).first(size));
    for (size_t at = 0; at < image.size(); ++at)
        for (unsigned char bits : {0x01, 0x80, 0xff}) {
            std::vector<std::byte> flipped = image;
            flipped[at] ^= std::byte{bits};
            if (Result<std::vector<UsdtSite>> found = sites(flipped)) CHECK(found->size() <= 2);
        }
}
