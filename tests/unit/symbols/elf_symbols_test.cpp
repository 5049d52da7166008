// Symbols of whole files: where they are looked for, in which order, and how an offset becomes a name.
#include "asm/machines.h"
#include "runtime/symbols/elf_symbols.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "runtime/symbols/debug_files.h"
#include "runtime/sys/file.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::symbols;
using test::offset_in;
using test::SmallElf;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kText = SmallElf::kText;
constexpr std::string_view kId = "\xab\xcd\xef\x01";

// A folder that stands for a file system.
struct Root : test::Folder {
    void write(const std::string &name, Bytes bytes) const {
        fs::create_directories(fs::path(path + name).parent_path());
        std::ofstream(path + name, std::ios::binary).write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    }
};

std::vector<std::byte> debug_file(std::string_view id = kId, std::string_view name = "from_debug_file") {
    SmallElf small;
    small.build_id(id);
    small.symbols({{name, kText + 0x10, 0x20}});
    return small.finish();
}

std::string name_of(const ElfSymbols &symbols, Bytes image, uint64_t address) {
    std::optional<Name> name = symbols.find(offset_in(image, address));
    return name ? format("{}+{}", name->symbol, name->offset) : "-";
}

// Files are opened below a root by openat2(2). qemu-user, which runs these tests for other machines, doesn't have it.
bool has_openat2() {
    Result<Fd> root = sys::open_under("/tmp", "/", O_RDONLY | O_DIRECTORY);
    return root || root.error().os != ENOSYS;
}
#define NEEDS_OPENAT2()                                                                                                          \
    if (!has_openat2()) SKIP("needs openat2(2), 5.6")

} // namespace

TEST_CASE("elf symbols: an image in memory") {
    SmallElf small;
    small.build_id(kId);
    small.symbols({{"plain", kText, 0x10}, {"_ZN3foo3barEi@@V_1", kText + 0x10, 0x10}, {"@odd", kText + 0x20, 4}});
    auto image = small.finish();
    Result<ElfSymbols> symbols = ElfSymbols::parse(image, "image");
    REQUIRE(symbols);
    CHECK(symbols->build_id() == "abcdef01");
    CHECK(symbols->source() == ".symtab");
    CHECK(symbols->size() == 3);
    CHECK(symbols->memory() >= 36);
    CHECK(name_of(*symbols, image, kText + 5) == "plain+5");
    CHECK(name_of(*symbols, image, kText + 0x12) == "foo::bar(int)+2");
    CHECK(name_of(*symbols, image, kText + 0x20) == "@odd+0");
    CHECK(name_of(*symbols, image, kText + 0x30) == "-");
    CHECK(!symbols->find(UINT64_MAX));
    CHECK(!ElfSymbols().find(0));
    CHECK(ElfSymbols().size() == 0);
}

TEST_CASE("elf symbols: .dynsym where there is no .symtab") {
    SmallElf small;
    small.symbols({{"exported", kText, 0x10}}, SHT_DYNSYM);
    auto image = small.finish();
    Result<ElfSymbols> symbols = ElfSymbols::parse(image, "image");
    REQUIRE(symbols);
    CHECK(symbols->source() == ".dynsym");
    CHECK(name_of(*symbols, image, kText) == "exported+0");
}

TEST_CASE("elf symbols: a file without symbols is no error") {
    auto image = SmallElf().finish();
    Result<ElfSymbols> symbols = ElfSymbols::parse(image, "image");
    REQUIRE(symbols);
    CHECK(symbols->size() == 0);
    CHECK(symbols->source().empty());
    CHECK(name_of(*symbols, image, kText) == "-");
}

TEST_CASE("elf symbols: from a file, a debug file by build-id, and by debug link with its checksum") {
    NEEDS_OPENAT2();
    Root root;
    auto debug = debug_file();
    SmallElf small;
    small.build_id(kId);
    small.symbols({{"exported", kText + 0x10, 0x20}}, SHT_DYNSYM);
    auto image = small.finish();
    root.write("/usr/lib/a.so", image);

    Result<ElfSymbols> alone = ElfSymbols::load("/usr/lib/a.so", root.path);
    REQUIRE(alone);
    CHECK(alone->source() == ".dynsym");
    CHECK(name_of(*alone, image, kText + 0x11) == "exported+1");

    root.write("/usr/lib/debug/.build-id/ab/cdef01.debug", debug_file("\x01\x02"));
    CHECK(ElfSymbols::load("/usr/lib/a.so", root.path)->source() == ".dynsym"); // another build's

    root.write("/usr/lib/debug/.build-id/ab/cdef01.debug", debug);
    Result<ElfSymbols> both = ElfSymbols::load("/usr/lib/a.so", root.path);
    REQUIRE(both);
    CHECK(both->source() == "/usr/lib/debug/.build-id/ab/cdef01.debug");
    CHECK(both->build_id() == "abcdef01");
    CHECK(name_of(*both, image, kText + 0x11) == "from_debug_file+1");

    SmallElf linked;
    linked.debug_link("b.debug", crc32(0, debug));
    auto linked_image = linked.finish();
    root.write("/opt/b.so", linked_image);
    for (std::string place : {"/usr/lib/debug/opt/b.debug", "/opt/.debug/b.debug", "/opt/b.debug"}) {
        root.write(place, debug);
        Result<ElfSymbols> by_link = ElfSymbols::load("/opt/b.so", root.path);
        REQUIRE(by_link);
        CHECK(by_link->source() == place);
        CHECK(name_of(*by_link, linked_image, kText + 0x11) == "from_debug_file+1");
    }
    for (std::string place : {"/usr/lib/debug/opt/b.debug", "/opt/.debug/b.debug", "/opt/b.debug"})
        root.write(place, debug_file("", "other"));
    CHECK(ElfSymbols::load("/opt/b.so", root.path)->source().empty()); // the checksum is another
}

TEST_CASE("elf symbols: a debug file by itself answers for the file that it was made from") {
    // Headers at 0x400000, text at 0x401000: in the stripped file at offsets 0 and 0x1000.
    for (uint64_t kept_offset : {0, 0x1000}) { // GNU objcopy often sets it to 0, others keep it
        SmallElf small;
        elf::Section like;
        like.type = SHT_PROGBITS;
        like.flags = SHF_ALLOC;
        like.address = 0x400000;
        like.alignment = 16;
        small.writer().add_segment(PT_LOAD, PF_R, small.writer().add_section(".rodata", like, bytes_of("constants")));
        small.symbols({{"f", kText + 0x10, 0x20}});
        auto image = small.finish();
        auto header = load<Elf64_Ehdr>(image.data());
        for (size_t i = 0; i < header.e_phnum; ++i) {
            std::byte *at = image.data() + header.e_phoff + i * sizeof(Elf64_Phdr);
            auto segment = load<Elf64_Phdr>(at);
            if (segment.p_flags & PF_X) {
                segment.p_offset = kept_offset;
                segment.p_filesz = 0;
            }
            std::memcpy(at, &segment, sizeof segment);
        }
        Result<ElfSymbols> symbols = ElfSymbols::parse(image, "only debug");
        REQUIRE(symbols);
        REQUIRE(symbols->find(0x1011));
        CHECK(symbols->find(0x1011)->symbol == "f");
        CHECK(symbols->find(0x1011)->offset == 1);
        CHECK(!symbols->find(0x11));
        CHECK(symbols->find_address(kText + 0x12)->offset == 2);
    }
}

TEST_CASE("elf symbols: links are followed inside the root and never out of it") {
    NEEDS_OPENAT2();
    Root root;
    SmallElf small;
    small.symbols({{"inside", kText, 8}});
    auto image = small.finish();
    root.write("/usr/lib/real.so", image);
    fs::create_directory_symlink("/usr/lib", root.path + "/lib"); // absolute, as seen from inside
    CHECK(ElfSymbols::load("/lib/real.so", root.path));
    fs::create_symlink("../../../../../../../../bin/sh", root.path + "/escape");
    Result<ElfSymbols> escaped = ElfSymbols::load("/escape", root.path);
    REQUIRE(!escaped);
    CHECK(escaped.error().kind == Errc::not_found);
}

TEST_CASE("elf symbols: .gnu_debugdata through the decoder it is given") {
    NEEDS_OPENAT2();
    static std::vector<std::byte> inner;
    SmallElf mini;
    mini.symbols({{"hidden", kText + 0x40, 0x10}});
    inner = mini.finish();
    SmallElf small;
    small.symbols({{"exported", kText, 0x10}}, SHT_DYNSYM);
    small.section(".gnu_debugdata", bytes_of("packed"));
    auto image = small.finish();
    Root root;
    root.write("/a.so", image);
    auto unpack = [](Bytes xz) -> std::optional<std::vector<std::byte>> {
        CHECK(xz.size() == 6);
        return inner;
    };
    Result<ElfSymbols> symbols = ElfSymbols::load("/a.so", root.path, unpack);
    REQUIRE(symbols);
    CHECK(symbols->source() == ".gnu_debugdata");
    CHECK(symbols->size() == 2);
    CHECK(name_of(*symbols, image, kText + 0x41) == "hidden+1");
    CHECK(name_of(*symbols, image, kText + 1) == "exported+1");

    Result<ElfSymbols> broken =
        ElfSymbols::load("/a.so", root.path, [](Bytes) { return std::optional<std::vector<std::byte>>(); });
    REQUIRE(broken);
    CHECK(broken->size() == 1);
    CHECK(ElfSymbols::load("/a.so", root.path)->size() == 1);
}

TEST_CASE("elf symbols: a region's file is the inode that was mapped") {
    NEEDS_OPENAT2();
    Root root;
    SmallElf small;
    small.symbols({{"f", kText, 8}});
    root.write("/x.so", small.finish());
    struct stat st {};
    REQUIRE(stat((root.path + "/x.so").c_str(), &st) == 0);
    Region region{0x1000, 0x2000, 0, "/x.so", st.st_dev, st.st_ino};
    int nobody = 0x7ffffffe;
    CHECK(ElfSymbols::load(nobody, region, root.path));
    region.inode += 1;
    CHECK(!ElfSymbols::load(nobody, region, root.path)); // what is there now is another file
    region.path += " (deleted)";
    CHECK(!ElfSymbols::load(nobody, region, root.path));
    region.inode -= 1;
    CHECK(ElfSymbols::load(nobody, region, root.path));
    Region jit{0x1000, 0x2000, 0, "", 0, 0};
    CHECK(ElfSymbols::load(nobody, jit, root.path).error().kind == Errc::not_found);
}

TEST_CASE("elf symbols: this very test names its own function") {
    Result<ProcessMaps> maps = read_maps(getpid());
    REQUIRE(maps);
    // The lowest bit of 32-bit ARM's says that it is Thumb code.
    const uintptr_t address = reinterpret_cast<uintptr_t>(&crc32) & ~uintptr_t{kHostArch == Arch::arm};
    const Region *region = maps->find(address);
    REQUIRE(region);
    Result<ElfSymbols> symbols = ElfSymbols::load(getpid(), *region);
    REQUIRE(symbols);
    if (symbols->source() != ".symtab") SKIP("the test is stripped");
    std::optional<Name> name = symbols->find(region->offset_of(address));
    REQUIRE(name);
    CHECK(name->symbol.find("symbols::crc32(unsigned int") != std::string::npos);
    CHECK(name->offset == 0);
    CHECK(read_build_id("/proc/self/exe").value() == symbols->build_id());
}

TEST_CASE("elf symbols: errors name the file, and things that are not files are refused") {
    NEEDS_OPENAT2();
    Result<ElfSymbols> missing = ElfSymbols::load("/nonexistent/lib.so");
    REQUIRE(!missing);
    CHECK(missing.error().kind == Errc::not_found);
    CHECK(missing.error().message().find("/nonexistent/lib.so") != std::string::npos);
    Root root;
    root.write("/text", bytes_of("not an ELF file"));
    CHECK(ElfSymbols::load("/text", root.path).error().kind == Errc::bad_input);
    root.write("/empty", {});
    CHECK(!ElfSymbols::load("/empty", root.path));
    REQUIRE(mkfifo((root.path + "/fifo").c_str(), 0600) == 0);
    CHECK(!ElfSymbols::load("/fifo", root.path)); // and doesn't wait for a writer
    CHECK(!ElfSymbols::load("/", root.path));
}

TEST_CASE("elf symbols: cut at every byte, a file gives names or an error") {
    SmallElf small(EM_X86_64, 0x40);
    small.build_id(kId);
    small.symbols({{"one", kText, 0x10}, {"two", kText + 0x10, 0}});
    small.symbols({{"dynamic", kText, 0x10}}, SHT_DYNSYM);
    small.debug_link("x.debug", 1);
    auto image = small.finish();
    size_t good = 0;
    for (size_t cut = 0; cut <= image.size(); ++cut) {
        Result<ElfSymbols> symbols = ElfSymbols::parse(Bytes(image).first(cut), "cut");
        if (!symbols) continue;
        ++good;
        for (uint64_t offset = 0; offset < image.size(); offset += 8) (void)symbols->find(offset);
    }
    CHECK(good >= 1);
}

TEST_CASE("debug files: the checksum is zlib's, the link is read and checked") {
    CHECK(crc32(0, bytes_of("123456789")) == 0xcbf43926);
    CHECK(crc32(crc32(0, bytes_of("1234")), bytes_of("56789")) == 0xcbf43926);
    SmallElf small;
    small.debug_link("ls.debug", 0x12345678);
    auto image = small.finish();
    std::optional<DebugLink> link = debug_link(*elf::Elf::parse(image, "a"));
    REQUIRE(link);
    CHECK(link->name == "ls.debug");
    CHECK(link->crc == 0x12345678);
    for (std::string_view bad : {"../../etc/passwd", "/abs", ""}) {
        SmallElf hostile;
        hostile.debug_link(bad, 1);
        auto bytes = hostile.finish();
        CHECK(!debug_link(*elf::Elf::parse(bytes, "a")));
    }
    SmallElf cut;
    cut.section(".gnu_debuglink", bytes_of("no end, no checksum"));
    auto bytes = cut.finish();
    CHECK(!debug_link(*elf::Elf::parse(bytes, "a")));
}

TEST_CASE("debug files: the places, in order") {
    auto paths = debug_file_paths("/usr/bin/ls", "abcdef", DebugLink{"ls.debug", 0});
    REQUIRE(paths.size() == 5);
    CHECK(paths[0] == "/usr/lib/debug/.build-id/ab/cdef.debug");
    CHECK(paths[1] == "/usr/bin/ls.debug");
    CHECK(paths[2] == "/usr/bin/.debug/ls.debug");
    CHECK(paths[3] == "/usr/lib/debug/usr/bin/ls.debug");
    CHECK(paths[4] == "/usr/lib/debug/bin/ls.debug");
    CHECK(debug_file_paths("/usr/bin/ls", "", std::nullopt).empty());
    CHECK(debug_file_paths("/bin/ls.debug", "", DebugLink{"ls.debug", 0}).size() == 2); // not itself
}
