// Probes without a compiler: the file, read back by what reads everybody's; and a provider of this process.
#include "runtime/usdt/image.h"

#include <elf.h>

#include "programs/include/rawbpf/usdt.h"
#include "runtime/elf/elf.h"
#include "runtime/provider/provider.h"
#include "runtime/sys/file.h"
#include "runtime/usdt/arguments.h"
#include "runtime/usdt/nop.h"
#include "runtime/usdt/notes.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

enum class Small : uint8_t { one = 1 };

usdt::NewProbe with_arguments(std::string name, size_t count, usdt::ArgumentKind kind = {8, true, false}) {
    return {std::move(name), std::vector<usdt::ArgumentKind>(count, kind)};
}

} // namespace

TEST_CASE("usdt image: notes, code and semaphores, for both machines") {
    const std::vector<usdt::NewProbe> probes = {
        with_arguments("none", 0),
        {"mixed", {{1, false, false}, {2, true, false}, {4, false, true}, {8, false, true}}},
        with_arguments("twelve", 12)};
    struct Expected {
        uint16_t machine;
        std::string_view mixed, last_of_twelve, in_register, on_stack;
    };
    for (const Expected &e : {Expected{EM_X86_64, "1@%rdi -2@%rsi 4f@%rdx 8f@%rcx", "-8@48(%rsp)", "-8@%r9", "-8@8(%rsp)"},
                              Expected{EM_AARCH64, "1@x0 -2@x1 4f@x2 8f@x3", "-8@[sp, 24]", "-8@x7", "-8@[sp]"}}) {
        CAPTURE(e.machine);
        const Result<usdt::Image> image = usdt::make_image("shop", probes, e.machine);
        REQUIRE_MESSAGE(image, image.error().message());
        const elf::Elf elf = elf::Elf::parse(image->bytes, "image").value();
        CHECK(elf.machine() == e.machine);
        const usdt::Notes notes = usdt::read_notes(elf).value();
        CHECK(notes.problems.empty());
        REQUIRE(notes.sites.size() == 3);
        uint64_t last = 0;
        for (size_t i = 0; i < 3; ++i) {
            const usdt::Site &site = notes.sites[i];
            CHECK(site.provider == "shop");
            CHECK(site.name == probes[i].name);
            CHECK(site.address == image->probes[i].code);
            CHECK(elf.file_offset(site.address) == site.address);
            CHECK(site.address < image->code_size);
            CHECK(site.address > last);
            last = site.address;
            const elf::Segment *code = usdt::segment_at(elf, site.address, 8), *data = usdt::segment_at(elf, site.semaphore, 2);
            REQUIRE(code);
            REQUIRE(data);
            CHECK(code->flags == (PF_R | PF_X));
            CHECK(data->flags == (PF_R | PF_W));
            CHECK(site.semaphore == image->data_offset + 2 * i);
            CHECK(usdt::nop_at(Bytes(image->bytes).subspan(site.address), e.machine, false).kind == "nop");
            for (const usdt::Argument &argument : usdt::parse_arguments(site.arguments, e.machine))
                CHECK(argument.problem.empty());
        }
        CHECK(notes.sites[0].arguments.empty());
        CHECK(notes.sites[1].arguments == e.mixed);
        const std::vector<usdt::Argument> twelve = usdt::parse_arguments(notes.sites[2].arguments, e.machine);
        REQUIRE(twelve.size() == 12);
        const size_t registers = e.machine == EM_X86_64 ? 6 : 8;
        CHECK(twelve[registers - 1].spec == e.in_register);
        CHECK(twelve[registers].spec == e.on_stack);
        CHECK(twelve[11].spec == e.last_of_twelve);
        bool named = false;
        for (const elf::Section &section : elf.sections()) {
            if (section.type != SHT_SYMTAB) continue;
            const elf::SymbolTable table = elf.symbol_table(section).value();
            for (size_t i = 0; i < table.size(); ++i)
                named |= table.name(i).value() == "shop_twelve" && table.at(i).value == image->probes[2].code;
        }
        CHECK(named);
    }
}

TEST_CASE("usdt image: what can't be made is refused with words") {
    const auto refused = [](std::string_view provider, std::vector<usdt::NewProbe> probes, uint16_t machine = EM_X86_64) {
        const Result<usdt::Image> image = usdt::make_image(provider, probes, machine);
        return image ? std::string() : image.error().message();
    };
    CHECK(refused("shop", {}).empty());
    CHECK(refused("shop", {with_arguments("a", 12)}).empty());
    CHECK(refused("shop", {with_arguments("a", 13)}).find("13 arguments") != std::string::npos);
    for (std::string_view name : {"", "1st", "a b", "a:b", "\xc3\xa9", "a\n"}) {
        CHECK(refused(name, {}).find("can't be the name") != std::string::npos);
        CHECK(refused("shop", {with_arguments(std::string(name), 0)}).find("can't be the name") != std::string::npos);
    }
    CHECK(refused(std::string(256, 'a'), {}).find("can't be the name") != std::string::npos);
    CHECK(refused("shop", {with_arguments("a", 0), with_arguments("b", 0), with_arguments("a", 1)})
              .find("shop:a is defined twice") != std::string::npos);
    CHECK(refused("shop", {with_arguments("a", 1, {3, false, false})}).find("3 bytes") != std::string::npos);
    CHECK(refused("shop", {with_arguments("a", 1, {16, false, false})}).find("16 bytes") != std::string::npos);
    CHECK(refused("shop", {with_arguments("a", 1, {2, false, true})}).find("2 bytes as a float") != std::string::npos);
    CHECK(refused("shop", {}, EM_S390).find("x86_64, arm64 and riscv64") != std::string::npos);
}

#ifdef __arm__
TEST_CASE("usdt provider: no probes are made on this machine, which an error says; nothing is left behind") {
    const std::vector<std::string> before = test::open_descriptors();
    {
        usdt::Provider shop("shop");
        const auto order = shop.add<int, const char *>("order");
        const Result<void> loaded = shop.load();
        REQUIRE(!loaded);
        CHECK(loaded.error().message().find("only on x86_64, arm64 and riscv64") != std::string::npos);
        CHECK(!shop.loaded());
        CHECK(!order.enabled());
        order(1, "nobody can look");
        order.fire(1, "nor here");
    }
    CHECK(test::open_descriptors() == before);
}
#else
TEST_CASE("usdt provider: loaded, fired, loaded again, unloaded; nothing is left behind") {
    const std::vector<std::string> before = test::open_descriptors();
    {
        usdt::Provider shop("shop");
        const auto order = shop.add<int, const char *, double, Small, bool>("order");
        const auto wide = shop.add<long, long, long, long, long, long, long, long, long, long, long, long>("wide");
        CHECK(!order.enabled());
        order(1, "before it is loaded", 2.5, Small::one, true);
        order.fire(1, "and called all the same", 2.5, Small::one, true);
        CHECK(shop.path().empty());
        Result<void> loaded = shop.load();
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        order(1, "nobody looks", 2.5, Small::one, true);
        order.fire(1, "called all the same", 2.5, Small::one, true);
        wide.fire(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        const sys::Mapping file = sys::map_file(shop.path()).value();
        const elf::Elf elf = elf::Elf::parse(file.bytes(), shop.path()).value();
        usdt::Notes notes = usdt::read_notes(elf).value();
        REQUIRE(notes.sites.size() == 2);
#if defined(__x86_64__)
        CHECK(notes.sites[0].arguments == "-4@%rdi 8@%rsi 8f@%rdx 1@%rcx 1@%r8");
#elif defined(__aarch64__)
        CHECK(notes.sites[0].arguments == "-4@x0 8@x1 8f@x2 1@x3 1@x4");
#endif
        const auto late = shop.add<>("late");
        late(); // not there yet
        REQUIRE(shop.load());
        late.fire();
        order.fire(1, "", 0, Small::one, false);
        usdt::Provider moved = std::move(shop);
        order.fire(1, "", 0, Small::one, false);
        const auto bad = moved.add<>("not a name");
        CHECK(!moved.load());
        CHECK(moved.loaded());
        order.fire(1, "an error changes nothing", 0, Small::one, false);
        CHECK(!bad.enabled());
        moved.unload();
        CHECK(!moved.loaded());
        CHECK(!order.enabled());
        order(1, "", 0, Small::one, false);
    }
    CHECK(test::open_descriptors() == before);
}
#endif

TEST_CASE("usdt header: this program's own probes, as its file tells of them") {
    volatile int number = 7;
    for (int i = 0; i < 2; ++i) RAWBPF_USDT(unit_tests, plain, number, "text", 2.5, Small::one, nullptr);
    CHECK(!RAWBPF_USDT_ENABLED(unit_tests, lazy));
    int evaluated = 0;
    RAWBPF_USDT_LAZY(unit_tests, lazy, ++evaluated);
    CHECK(evaluated == 0);
    const sys::Mapping file = sys::map_file("/proc/self/exe").value();
    const elf::Elf elf = elf::Elf::parse(file.bytes(), "this program").value();
    const usdt::Notes notes = usdt::read_notes(elf).value();
    const std::string_view plain_types = sizeof(void *) == 8 ? "s32 u64 f64 u8 u64 " : "s32 u32 f64 u8 u32 ";
    int plain = 0, lazy = 0;
    for (const usdt::Site &site : notes.sites) {
        if (site.provider != "unit_tests") continue;
        const std::vector<usdt::Argument> arguments = usdt::parse_arguments(site.arguments, elf.machine());
        std::string types;
        for (const usdt::Argument &argument : arguments) {
            CHECK(argument.problem.empty());
            types.append(usdt::type_name(argument)).append(" ");
        }
        plain += site.name == "plain" && site.semaphore == 0 && types == plain_types;
        lazy += site.name == "lazy" && site.semaphore != 0 && types == "s32 ";
        const std::optional<uint64_t> at = elf.file_offset(site.address);
        REQUIRE(at);
#ifndef __thumb__ // which 32-bit ARM's kernel doesn't probe
        CHECK(usdt::nop_at(file.bytes().subspan(*at), elf.machine(), false)
                  .kind.ends_with("nop")); // riscv64's may have two bytes: c.nop
#endif
    }
    CHECK(plain >= 1);
    CHECK(lazy >= 1);
}
