// uprobes on functions of this very test.
#include <algorithm>
#include <elf.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "runtime/elf/elf.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/uprobe_head_start.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/links/linking.h"
#include "tests/support/fds.h"

using namespace rawbpf;
using test::Loaded;

// Not static, so that .symtab has them under these names; asm, so that no call is optimised away.
extern "C" {
__attribute__((noinline)) int linktest_one(int x) {
    asm volatile("");
    return x + 1;
}
__attribute__((noinline)) int linktest_two(int x) {
    asm volatile("");
    return x + 2;
}
// A USDT probe with a semaphore, as <sys/sdt.h> writes them: two sites of one name.
#define PROBE_SITE                                                                                                               \
    asm volatile("990: nop\n"                                                                                                    \
                 ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                                   \
                 ".balign 4\n"                                                                                                   \
                 ".4byte 992f-991f, 994f-993f, 3\n"                                                                              \
                 "991: .asciz \"stapsdt\"\n"                                                                                     \
                 "992: .balign 4\n"                                                                                              \
                 "993: .8byte 990b, _.stapsdt.base, linktest_semaphore\n"                                                        \
                 ".asciz \"rawbpf\"\n.asciz \"linktest\"\n.asciz \"\"\n"                                                         \
                 "994: .balign 4\n"                                                                                              \
                 ".popsection\n"                                                                                                 \
                 ".ifndef _.stapsdt.base\n"                                                                                      \
                 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                                         \
                 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                                                \
                 "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                                                           \
                 ".popsection\n.endif\n")
__attribute__((noinline)) void probe_sites_of_linktest() {
    PROBE_SITE;
    PROBE_SITE;
}
__attribute__((section(".probes"))) volatile unsigned short linktest_semaphore = 0; // in the file, not in .bss
}

static uint64_t file_offset_of(std::string_view symbol) {
    sys::Mapping image = sys::map_file("/proc/self/exe").value();
    elf::Elf elf = elf::Elf::parse(image.bytes(), "self").value();
    for (const elf::Section &section : elf.sections()) {
        if (section.type != SHT_SYMTAB) continue;
        elf::SymbolTable symbols = elf.symbol_table(section).value();
        for (size_t i = 0; i < symbols.size(); ++i)
            if (symbols.name(i).value() == symbol) return elf.file_offset(symbols.at(i).value).value_or(0);
    }
    return 0;
}

#define NEEDS_UPROBES()                                                                                                          \
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");                                          \
    if (!sys::exists("/sys/bus/event_source/devices/uprobe/type")) SKIP("needs uprobes (CONFIG_UPROBE_EVENTS)");                 \
    if (file_offset_of("linktest_one") == 0) SKIP("needs the symbols of this test, which was stripped")
#define NEEDS_ATTACH(type, words)                                                                                                \
    if (probe_attach_type(type).support != Support::yes) SKIP("needs " words)

TEST_CASE("link: a uprobe by function, with a cookie; by offset; at the return") {
    NEEDS_UPROBES();
    Loaded entry = test::load_one("run_10").value(), back = test::load_one("run_11").value();
    AttachOptions options;
    options.cookie = has_feature(Feature::cookie) ? 77 : 0;
    Link link = entry.attach(options).value();
    Link at_return = back.attach().value();
    CHECK(linktest_one(1) == 2);
    CHECK(linktest_two(1) == 3);
    CHECK(entry.run(10).count == 1);
    CHECK(entry.run(10).cookie == options.cookie);
    CHECK(back.run(11).count == 1);
    CHECK(link.what() == "uprobe /proc/self/exe:linktest_one");

    AttachOptions by_offset;
    by_offset.target = format("/proc/self/exe:{:#x}", file_offset_of("linktest_two"));
    Link second = entry.attach(by_offset).value();
    (void)linktest_two(1);
    CHECK(entry.run(10).count == 2);
    CHECK(link.detach());
    CHECK(at_return.detach());
    (void)linktest_one(1);
    CHECK(entry.run(10).count == 2);
    CHECK(back.run(11).count == 1);
}

TEST_CASE("link: a uprobe raises its semaphore while it is there") {
    NEEDS_UPROBES();
    Loaded loaded = test::load_one("run_10").value();
    AttachOptions options;
    options.semaphore = file_offset_of("linktest_semaphore");
    REQUIRE(options.semaphore != 0);
    CHECK(linktest_semaphore == 0);
    {
        Result<Link> link = loaded.attach(options);
        REQUIRE_MESSAGE(link, link.error().message());
        CHECK(linktest_semaphore == 1);
    }
    CHECK(linktest_semaphore == 0);
}

TEST_CASE("link: a uprobe on a library by its name, and only in one process") {
    NEEDS_UPROBES();
    if (Result<std::string> maps = sys::read_file("/proc/self/maps"); maps && maps->find("/libc.so.6") == std::string::npos)
        SKIP("needs the C library as a file of its own: this test is linked statically");
    Loaded loaded = test::load_one("run_10").value();
    AttachOptions options;
    options.target = "libc:getppid";
    {
        Link link = loaded.attach(options).value();
        (void)getppid();
        CHECK(loaded.run(10).count == 1);
    }
    options.pid = getpid();
    {
        Link link = loaded.attach(options).value(); // by what this process has mapped
        (void)getppid();
        CHECK(loaded.run(10).count == 2);
    }
}

TEST_CASE("link: a uprobe in somebody else's process doesn't run here") {
    NEEDS_UPROBES();
    Loaded loaded = test::load_one("run_10").value();
    AttachOptions options;
    options.pid = 1; // it uses the same file at most, and doesn't call this
    options.target = "/proc/self/exe:linktest_one";
    {
        Link link = loaded.attach(options).value();
        (void)linktest_one(1);
        CHECK(loaded.run(10).count == 0);
    }
}

TEST_CASE("link: uprobes that can't be, and why") {
    NEEDS_UPROBES();
    Loaded loaded = test::load_one("run_10").value();
    auto attach = [&](const char *target) {
        AttachOptions options;
        options.target = target;
        Result<Link> link = loaded.attach(options);
        return link ? Error() : std::move(link).error();
    };
    CHECK(attach("/proc/self/exe:linktest_won").hint.find("linktest_one") != std::string::npos);
    CHECK(attach("/proc/self/exe:linktest_won").kind == Errc::not_found);
    CHECK(attach("/no/such/file:main").kind == Errc::not_found);
    CHECK(attach("libnosuchthing:main").hint.find("/usr/lib") != std::string::npos);
    CHECK(attach("no-such-program:main").kind == Errc::not_found);
    CHECK(attach("/proc/self/exe").kind == Errc::invalid_argument);
    CHECK(attach("/proc/self/exe:linktest_one+x").kind == Errc::invalid_argument);
    CHECK(attach("/proc/self/exe:").kind == Errc::invalid_argument);
    CHECK(attach("/etc/passwd:main").kind == Errc::bad_input);
    CHECK(attach("x.apk!/lib/y.so:main").kind == Errc::unsupported);
    Error indirect = attach("libc:memcpy");
    if (indirect.context.find("library libc: not found") == std::string::npos) // a guest may have none
        CHECK_MESSAGE(indirect.context.find("IFUNC") != std::string::npos, indirect.message());
    Loaded back = test::load_one("run_11").value();
    AttachOptions options;
    options.target = "/proc/self/exe:linktest_one+0x4";
    CHECK(back.attach(options).error().kind == Errc::invalid_argument);
}

TEST_CASE("link: uprobe.multi by pattern, by list with cookies; places that can't be are passed over") {
    NEEDS_UPROBES();
    if (!has_feature(Feature::cookie)) SKIP("needs cookies, 5.15");
    const bool real = probe_attach_type(uapi::BPF_TRACE_UPROBE_MULTI).support == Support::yes; // else single uprobes do it
    Loaded loaded = test::load_one("run_12").value(), back = test::load_one("run_13").value();
    {
        Link link = loaded.attach().value();
        Link at_return = back.attach().value();
        CHECK(link.places() == 2);
        CHECK(link.notes().empty() == real);
        (void)linktest_one(1);
        (void)linktest_two(1);
        CHECK(loaded.run(12).count == 2);
        CHECK(back.run(13).count == 2);
        CHECK(link.info().value().type == (real ? LinkType::UPROBE_MULTI : LinkType::PERF_EVENT));
    }
    AttachOptions options;
    options.target = "/proc/self/exe";
    options.functions = {"linktest_two", "linktest_one"};
    options.cookies = {22, 11};
    {
        Link link = loaded.attach(options).value();
        (void)linktest_one(1);
        CHECK(loaded.run(12).cookie == 11);
        (void)linktest_two(1);
        CHECK(loaded.run(12).cookie == 22);
    }
    options.cookies = {1};
    CHECK(loaded.attach(options).error().kind == Errc::invalid_argument);
    options.cookies.clear();
    options.functions = {"linktest_two", "linktest_three"};
    CHECK(loaded.attach(options).error().hint.find("linktest_two") == std::string::npos); // it was named already, and is two off
    CHECK(loaded.attach(options).error().kind == Errc::not_found);
}

TEST_CASE("link: a uprobe session runs at both ends") {
    NEEDS_UPROBES();
    NEEDS_ATTACH(uapi::BPF_TRACE_UPROBE_SESSION, "uprobe sessions, 6.13");
    Loaded loaded = test::load_one("run_14").value();
    Link link = loaded.attach().value();
    (void)linktest_one(1);
    CHECK(loaded.run(14).count == 2);
}

TEST_CASE("link: a sleepable uprobe") {
    NEEDS_UPROBES();
    Result<Loaded> loaded = test::load_one("run_23");
    if (!loaded) SKIP("needs sleepable uprobes, 6.0");
    Link link = loaded->attach().value();
    (void)linktest_one(1);
    CHECK(loaded->run(23).count == 1);
}

TEST_CASE("link: a USDT probe at all of its sites, with its semaphore") {
    NEEDS_UPROBES();
    Loaded loaded = test::load_one("run_26").value();
    {
        Result<Link> link = loaded.attach();
        REQUIRE_MESSAGE(link, link.error().message());
        CHECK(link->places() == 2);
        CHECK(linktest_semaphore == 2); // one for each site, as a program that counts expects
        probe_sites_of_linktest();
        CHECK(loaded.run(26).count == 2);
    }
    CHECK(linktest_semaphore == 0);
    probe_sites_of_linktest();
    CHECK(loaded.run(26).count == 2);
    AttachOptions options;
    for (const std::pair<const char *, Errc> &wrong : {std::pair("/proc/self/exe:rawbpf", Errc::invalid_argument),
                                                       {"/proc/self/exe::x", Errc::invalid_argument},
                                                       {"/proc/self/exe:rawbpf:linktets", Errc::not_found},
                                                       {"/bin/true:a:b", Errc::not_found}}) {
        options.target = wrong.first;
        CHECK_MESSAGE(loaded.attach(options).error().kind == wrong.second, wrong.first);
    }
    options.target = "/proc/self/exe:rawbpf:linktets";
    CHECK(loaded.attach(options).error().hint == "did you mean rawbpf:linktest?");
}

namespace {

// What the descriptors of our children lead to; those of ended ones to nothing.
std::vector<std::string> files_of_children() {
    const std::string pids = sys::read_file(format("/proc/self/task/{}/children", sys::own_pid())).value_or(std::string());
    std::vector<std::string> out;
    for (size_t at = 0; at < pids.size(); at = pids.find(' ', at) + 1) { // "12 34 "
        const std::string pid = pids.substr(at, pids.find(' ', at) - at);
        for (int fd = 0; fd < 1024; ++fd)
            if (Result<std::string> file = sys::read_link(format("/proc/{}/fd/{}", pid, fd))) out.push_back(*file);
    }
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace

TEST_CASE("link: a head start for uprobes holds a probe on a file of its own, and lets go of it") {
    NEEDS_UPROBES();
    if (!sys::exists(format("/proc/self/task/{}/children", sys::own_pid())))
        SKIP("/proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)");
    using Files = std::vector<std::string>;
    const Files both{"/memfd:rawbpf-nothing (deleted)", "anon_inode:[perf_event]"};
    const auto within_seconds = [](const Files &wanted) {
        Files files;
        for (int i = 0; i < 1000; ++i) {
            files = files_of_children();
            if (files == wanted) break;
            usleep(10000);
        }
        return files;
    };
    const Files before = test::open_descriptors();
    {
        UprobeHeadStart head_start = UprobeHeadStart::begin();
        CHECK(within_seconds(both) == both);
        const UprobeHeadStart moved = std::move(head_start);
        CHECK(files_of_children() == both);
    }
    CHECK(within_seconds({}).empty());
    CHECK(test::open_descriptors() == before);
}
