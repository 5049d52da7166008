// What a command will run: files made here, and this machine's shell.
#include "programs/unwind/closure.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "asm/machines.h"
#include "runtime/elf/writer.h"
#include "runtime/sys/file.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::unwind;

namespace {

constexpr uint16_t kMachine = kHost.elf;

using Words = std::vector<std::string>;

/// A folder with programs, libraries and scripts in it.
struct Tree {
    Tree() {
        environment.path = at;
        environment.cache.clear();
    }
    void directory(const std::string &name) { mkdir((at + "/" + name).c_str(), 0755); }
    void file(const std::string &name, Bytes contents) {
        const Fd fd = sys::open(at + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, 0755).value();
        REQUIRE(sys::write_all(fd.get(), contents.data(), contents.size()));
    }
    void script(const std::string &name, const std::string &text) { file(name, std::as_bytes(std::span(text))); }

    struct Program {
        std::string interpreter = {}, rpath = {}, runpath = {};
        Words needed = {};
        uint16_t machine = kMachine;
    };
    void program(const std::string &name, const Program &like) {
        elf::Writer writer({like.machine, ET_DYN, true, false, 0});
        std::string strings(1, '\0');
        std::vector<Elf64_Dyn> entries;
        const auto entry = [&](int64_t tag, const std::string &text) {
            Elf64_Dyn next{};
            next.d_tag = tag;
            next.d_un.d_val = strings.size();
            strings += text + '\0';
            entries.push_back(next);
        };
        for (const std::string &needed : like.needed) entry(DT_NEEDED, needed);
        if (!like.rpath.empty()) entry(DT_RPATH, like.rpath);
        if (!like.runpath.empty()) entry(DT_RUNPATH, like.runpath);
        Elf64_Dyn table{};
        table.d_tag = DT_STRTAB;
        table.d_un.d_ptr = 0x1000;
        entries.push_back(table);
        entries.push_back(Elf64_Dyn{});
        const auto add = [&](std::string_view section, uint32_t segment, uint64_t address, Bytes contents) {
            elf::Section place;
            place.type = SHT_PROGBITS;
            place.flags = SHF_ALLOC;
            place.address = address;
            place.alignment = 8;
            writer.add_segment(segment, PF_R, writer.add_section(section, place, contents));
        };
        add(".dynstr", PT_LOAD, 0x1000, std::as_bytes(std::span(strings)));
        add(".dynamic", PT_DYNAMIC, 0x2000, std::as_bytes(std::span(entries)));
        const std::string interpreter = like.interpreter + '\0';
        if (!like.interpreter.empty()) add(".interp", PT_INTERP, 0x3000, std::as_bytes(std::span(interpreter)));
        file(name, writer.finish());
    }
    /// Their paths, those in here without the directory.
    [[nodiscard]] Words files(const Words &argv) const {
        Words out;
        files_of_command(argv, environment, [&](const std::string &path, const Fd &fd) {
            CHECK(fd.get() >= 0);
            out.push_back(path.starts_with(at + "/") ? path.substr(at.size() + 1) : path);
            return true;
        });
        return out;
    }

    test::Folder folder;
    const std::string &at = folder.path;
    CommandEnvironment environment;
};

std::string commands(const Words &argv) {
    std::string out;
    for (const Words &command : commands_of(argv)) {
        if (!out.empty()) out += " | ";
        for (size_t i = 0; i < command.size(); ++i) out += (i ? " " : "") + command[i];
    }
    return out;
}

} // namespace

TEST_CASE("unwind closure: what runners run") {
    CHECK(commands({"make", "-j2"}) == "make -j2");
    CHECK(commands({}).empty());
    CHECK(commands({"/usr/bin/env", "-u", "X", "A=1", "B=2", "make", "C=3"}) == "/usr/bin/env -u X A=1 B=2 make C=3 | make C=3");
    CHECK(commands({"timeout", "-k", "1", "--foreground", "5", "sleep", "9"}) == "timeout -k 1 --foreground 5 sleep 9 | sleep 9");
    CHECK(commands({"nice", "-n5", "nice", "-n", "5", "gcc"}) == "nice -n5 nice -n 5 gcc | nice -n 5 gcc | gcc");
    CHECK(commands({"taskset", "-c", "0", "nohup", "--", "xz"}) == "taskset -c 0 nohup -- xz | nohup -- xz | xz");
    CHECK(commands({"env"}) == "env");
    CHECK(commands({"timeout", "5"}) == "timeout 5");
    CHECK(commands({"sudo", "-u", "me", "-E", "A=1", "id"}) == "sudo -u me -E A=1 id | id");
    CHECK(commands({"chroot", "/srv", "id"}) == "chroot /srv id"); // its files lie elsewhere
}

TEST_CASE("unwind closure: what a shell is told to run") {
    const auto told = [](const std::string &text) {
        const std::string all = commands({"sh", "-c", text});
        const std::string own = "sh -c " + text;
        REQUIRE(all.starts_with(own));
        return all == own ? std::string() : all.substr(own.size() + 3);
    };
    CHECK(told("make -j2 2>&1 | tee log; gzip log && rm x") == "make -j2 2> | 1 | tee log | gzip log | rm x");
    CHECK(told("A=1 time ls -l # list") == "ls -l");
    CHECK(told("if true; then (cd x && make); fi") == "true | cd x | make | fi");
    CHECK(told("'my tool' \"a b\" c\\ d") == "my tool a b c d");
    CHECK(told("timeout 5 xz -9") == "timeout 5 xz -9 | xz -9");
    CHECK(told("$CC x.c; \"$LD\" y; `which z`; ls").ends_with("ls"));
    CHECK(told("$CC x.c").empty());
    CHECK(told("").empty());
    CHECK(told("'never closed").starts_with("never"));
    CHECK(commands({"bash", "-o", "pipefail", "-ec", "ls", "x"}) == "bash -o pipefail -ec ls x | ls");
    CHECK(commands({"bash", "script", "-c", "ls"}) == "bash script -c ls");
    std::string many;
    for (int i = 0; i < 1000; ++i) many += "a;";
    CHECK(commands_of({"sh", "-c", many}).size() <= 16);
}

TEST_CASE("unwind closure: a program, its interpreter, and what they need") {
    Tree tree;
    tree.directory("lib");
    tree.directory("own");
    tree.environment.library_path = tree.at + "/none:" + tree.at + "/lib";
    tree.program("lib/libc.so.9", {});
    tree.program("lib/liba.so", {.needed = {"libb.so", "libc.so.9"}});
    tree.program("lib/libb.so", {.needed = {"liba.so", "libc.so.9"}}); // a circle
    tree.program("lib/libown.so", {});
    tree.program("own/libown.so", {});
    tree.program("lib/ld.so", {});
    tree.program(
        "app",
        {.interpreter = tree.at + "/lib/ld.so", .runpath = "$ORIGIN/own", .needed = {"liba.so", "libown.so", "libgone.so.9"}});
    CHECK(tree.files({"app"}) == Words{"app", "lib/ld.so", "lib/liba.so", "lib/libown.so", "lib/libb.so", "lib/libc.so.9"});
    // DT_RPATH goes first, also for what is needed by what is needed.
    tree.program("old", {.rpath = "${ORIGIN}/own:$ORIGIN/lib", .needed = {"libown.so", "liba.so"}});
    tree.environment.library_path.clear();
    CHECK(tree.files({tree.at + "/old"}) == Words{"old", "own/libown.so", "lib/liba.so", "lib/libb.so", "lib/libc.so.9"});
    // A library of another machine isn't it.
    tree.program("own/libc.so.9", {.machine = EM_S390});
    CHECK(tree.files({tree.at + "/old"}) == Words{"old", "own/libown.so", "lib/liba.so", "lib/libb.so", "lib/libc.so.9"});
    CHECK(tree.files({"nothing"}).empty());
    CHECK(tree.files({tree.at}).empty());
    tree.environment.most = 2;
    CHECK(tree.files({tree.at + "/old"}).size() == 2);
}

TEST_CASE("unwind closure: scripts and runners") {
    Tree tree;
    tree.program("interpreter", {});
    tree.program("env", {});
    tree.program("tool", {});
    tree.script("one", "#! " + tree.at + "/interpreter -x\nrest");
    tree.script("two", "#!" + tree.at + "/env interpreter\n");
    tree.script("three", "#!" + tree.at + "/two\n");
    tree.script("itself", "#!" + tree.at + "/itself\n");
    tree.script("no", "#!");
    CHECK(tree.files({"one"}) == Words{"interpreter"});
    CHECK(tree.files({"two"}) == Words{"env", "interpreter"});
    CHECK(tree.files({"three"}) == Words{"env", "interpreter"});
    CHECK(tree.files({"itself"}).empty());
    CHECK(tree.files({"no"}).empty());
    CHECK(tree.files({"env", "A=1", "tool"}) == Words{"env", "tool"});
    CHECK(tree.files({"sh", "-c", "tool | one"}) == Words{"tool", "interpreter"}); // whose shell isn't in this PATH
}

TEST_CASE("unwind closure: the dynamic linker's cache") {
    Tree tree;
    tree.directory("lib");
    tree.program("lib/libx.so", {});
    tree.program("app", {.needed = {"libx.so"}});
    CHECK(tree.files({"app"}) == Words{"app"});
    const std::string path = tree.at + "/lib/libx.so";
    std::string strings = std::string("libx.so") + '\0' + path + '\0', cache = "glibc-ld.so.cache1.1";
    const auto put = [&](uint32_t word) { cache.append(reinterpret_cast<const char *>(&word), 4); };
    put(2);
    put(static_cast<uint32_t>(strings.size()));
    for (int i = 0; i < 5; ++i) put(0);
    const uint32_t texts = 48 + 2 * 24;
    for (const uint32_t flags : {0x0003u, kMachine == EM_AARCH64 ? 0x0a03u : kMachine == EM_RISCV ? 0x1003u : 0x0303u})
        for (const uint32_t word : {flags, texts, texts + 8, 0u, 0u, 0u}) put(word);
    cache += strings;
    tree.script("cache", cache);
    tree.environment.cache = tree.at + "/cache";
    CHECK(tree.files({"app"}) == Words{"app", "lib/libx.so"});
    for (size_t size = 0; size < cache.size(); size += 7) { // cut short
        tree.script("cache", cache.substr(0, size));
        CHECK(tree.files({"app"}).size() <= 2);
    }
}

TEST_CASE("unwind closure: this machine's shell and C library") {
    auto image = sys::map_file("/bin/sh");
    if (!image) SKIP("there is no /bin/sh");
    auto shell = elf::Elf::parse(image->bytes(), "/bin/sh");
    if (!shell || shell->machine() != kMachine) SKIP("/bin/sh isn't of this machine (an emulator runs the test)");
    const auto &segments = shell->segments();
    const bool is_static =
        std::none_of(segments.begin(), segments.end(), [](const elf::Segment &s) { return s.type == PT_INTERP; });
    CommandEnvironment environment = CommandEnvironment::own();
    environment.path = "/usr/local/bin:/usr/bin:/bin";
    Words files;
    files_of_command({"sh"}, environment, [&](const std::string &path, const Fd &) {
        files.push_back(path);
        return true;
    });
    std::string text;
    for (const std::string &path : files) text += path + " ";
    INFO(text);
    REQUIRE(!files.empty());
    CHECK(files[0].ends_with("/sh"));
    if (!is_static) CHECK(text.find("libc") + 1 + text.find("musl") + 1 > 0);
    if (!is_static) CHECK(files.size() >= 2);
}
