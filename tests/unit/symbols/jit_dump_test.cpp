// Code by time, and jit-PID.dump: what compilers write, what they get wrong, and what they can't make us do.
#include "runtime/symbols/jit_dump.h"

#include <algorithm>
#include <random>

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/symbols/long_names.h"
#include "runtime/symbols/perf_map.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::symbols;

namespace {

template <class T> void put(std::string &to, T value) { to.append(reinterpret_cast<const char *>(&value), sizeof value); }

struct DumpedLine {
    uint64_t address;
    uint32_t line;
    std::string file;
};

/// A jitdump, written as its specification says.
struct Dump {
    std::string text;
    explicit Dump(uint64_t flags = 0) {
        for (uint32_t value : {0x4a695444u, 1u, 40u, 62u, 0u, 4711u}) put(text, value);
        put(text, uint64_t{1});
        put(text, flags);
    }
    void record(uint32_t type, uint64_t time, const std::string &rest) {
        put(text, type);
        put(text, static_cast<uint32_t>(16 + rest.size()));
        put(text, time);
        text += rest;
    }
    void load(uint64_t time, uint64_t address, uint64_t size, std::string_view name, size_t code = 8) {
        std::string rest;
        put(rest, uint32_t{1});
        put(rest, uint32_t{1});
        for (uint64_t value : {address, address, size, uint64_t{0}}) put(rest, value);
        rest.append(name).push_back('\0');
        rest.append(code, '\xcc');
        record(0, time, rest);
    }
    void lines(uint64_t time, uint64_t address, const std::vector<DumpedLine> &lines) {
        std::string rest;
        put(rest, address);
        put(rest, uint64_t{lines.size()});
        for (const DumpedLine &line : lines) {
            put(rest, line.address);
            put(rest, line.line);
            put(rest, uint32_t{0});
            rest.append(line.file).push_back('\0');
        }
        record(2, time, rest);
    }
    void move(uint64_t time, uint64_t from, uint64_t to, uint64_t size) {
        std::string rest;
        put(rest, uint64_t{1});
        for (uint64_t value : {to, from, to, size, uint64_t{0}}) put(rest, value);
        record(1, time, rest);
    }
    void unwinding(uint64_t time, std::string_view eh_frame, std::string_view header = "header") {
        std::string rest;
        for (uint64_t value : {uint64_t{eh_frame.size() + header.size()}, uint64_t{header.size()}, uint64_t{0}}) put(rest, value);
        rest.append(eh_frame).append(header).append(7, '\0'); // V8 fills up to a word
        record(4, time, rest);
    }
};

/// Whose .eh_frame there is for an address, and how far behind the address it lies.
std::string left_by(const JitDump &dump, uint64_t address) {
    const auto found = dump.unwinding(address);
    if (!found) return "nothing";
    const std::string_view text(reinterpret_cast<const char *>(found->eh_frame.data()), found->eh_frame.size());
    return format("{}+{}", text, found->address - address);
}

/// "name+offset file:line", of an address at a time.
std::string at(const CompiledCode &code, uint64_t address, uint64_t t_ns = UINT64_MAX) {
    const auto found = code.find(address, code.layer_at(address, t_ns));
    if (!found) return "nothing";
    std::string out = format("{}+{}", found->name.symbol, found->name.offset);
    if (!found->file.empty()) append(out, " {}:{}", found->file, found->line);
    return out;
}

Result<CompiledCode> taken(std::string_view text) {
    JitDump dump;
    TRY(dump.take(bytes_of(text), 0));
    CompiledCode code = dump.code();
    code.settle();
    return code;
}

} // namespace

TEST_CASE("compiled code: what lay at an address at what time") {
    CompiledCode code;
    code.add(0x1000, 0x100, "fib", 0);
    code.add(0x1000, 0x40, "draw", 5);
    code.settle();
    code.add(0x1020, 0x20, "late", 9);
    code.settle();
    CHECK(at(code, 0x1010, 0) == "fib+16");
    CHECK(at(code, 0x1010, 4) == "fib+16");
    CHECK(at(code, 0x1010, 5) == "draw+16");
    CHECK(at(code, 0x1025, 8) == "draw+37");
    CHECK(at(code, 0x1025, 9) == "late+5");
    CHECK(at(code, 0x1080) == "fib+128");
    CHECK(at(code, 0x1100) == "nothing");
    // Where nothing is hidden, the time makes no difference: a place is one place.
    CHECK(code.layer_at(0x1080, 0) == code.layer_at(0x1080, 100));
    CHECK(code.layer_at(0x1010, 0) != code.layer_at(0x1010, 100));
    // What was told too late is the first that was ever there.
    code.add(0x9000, 0x10, "fresh", 100);
    code.settle();
    CHECK(at(code, 0x9000, 1) == "fresh+0");
    CHECK(at(code, 0x9000, 101) == "fresh+0");
}

TEST_CASE("compiled code: agrees with the list of all that was told") {
    std::mt19937 random(42);
    CompiledCode code;
    struct Told {
        uint64_t start, size, since;
    };
    std::vector<Told> told;
    for (uint64_t t = 0; t < 40; ++t) {
        const Told one{random() % 64, 1 + random() % 16, t};
        told.push_back(one);
        code.add(one.start, one.size, format("f{}", t), one.since);
        if (random() % 3 == 0) code.settle();
    }
    code.settle();
    for (uint64_t address = 0; address < 90; ++address)
        for (uint64_t t = 0; t < 41; ++t) {
            std::string expected = "nothing";
            bool any = false;
            for (uint64_t i = 0; i < told.size(); ++i) {
                if (address < told[i].start || address >= told[i].start + told[i].size || (any && told[i].since > t)) continue;
                expected = format("f{}+{}", i, address - told[i].start);
                any = true;
            }
            CHECK(at(code, address, t) == expected);
        }
}

TEST_CASE("compiled names: the file and the line that are in them") {
    const auto read = [](std::string_view text) {
        const CompiledName name = read_compiled_name(text);
        return format("{} | {}:{}", name.name.symbol, name.file, name.line);
    };
    CHECK(read("JS:*fib /app/a.js:3:10") == "JS:*fib /app/a.js:3:10 | /app/a.js:3");
    CHECK(read("LazyCompile:*fib /app/a.js:3") == "LazyCompile:*fib /app/a.js:3 | /app/a.js:3");
    CHECK(read("JS:~get x file:///a b/c.mjs:7:1") == "JS:~get x file:///a b/c.mjs:7:1 | file:///a b/c.mjs:7");
    CHECK(read("JS:^ node:internal/util:12:9") == "JS:^ node:internal/util:12:9 | node:internal/util:12");
    CHECK(read("py::Tree.walk:/srv/a.py") == "py::Tree.walk:/srv/a.py | /srv/a.py:0");
    CHECK(read("Builtin:ArrayMap") == "Builtin:ArrayMap | :0");
    CHECK(read("void Busy.rec(int)") == "void Busy.rec(int) | :0");
    CHECK(read("JS:*f") == "JS:*f | :0");
    CHECK(read("JS:*f :") == "JS:*f : | :0");
    CHECK(read("JS:*f /a:99999999999:1").ends_with("| /a:99999999999:1"));
}

TEST_CASE("jitdump: loads, lines, moves, the file's own clock") {
    Dump dump;
    dump.lines(10, 0x1000, {{0x1000, 3, "/src/a.x"}, {0x1010, 4, "\xff"}, {0x1020, 9, "/src/b.x"}});
    dump.load(10, 0x1000, 0x40, "fib");
    dump.load(20, 0x1000, 0x40, "draw");
    dump.record(4, 21, std::string(24, '\1')); // unwinding information
    dump.record(77, 21, "of a later version");
    dump.move(30, 0x1000, 0x5000, 0x40);
    const auto code = taken(dump.text);
    REQUIRE(code);
    CHECK(at(*code, 0x1004, 15) == "fib+4 /src/a.x:3");
    CHECK(at(*code, 0x1018, 15) == "fib+24 /src/a.x:4");
    CHECK(at(*code, 0x103f, 15) == "fib+63 /src/b.x:9");
    CHECK(at(*code, 0x1018, 25) == "draw+24");
    CHECK(at(*code, 0x5008, 35) == "draw+8");

    Dump other(1);
    other.load(0xffffffffffff, 0x1000, 0x40, "a");
    JitDump timed;
    REQUIRE(timed.take(bytes_of(other.text), 7));
    CompiledCode its = timed.code();
    its.add(0x1000, 1, "later", 8);
    its.settle();
    CHECK(at(its, 0x1000, 7) == "a+0");
}

TEST_CASE("jitdump: lines as V8 writes them") {
    // 64 too far; names from freed memory, which have zeros in them; the outer function's file for those that were inlined.
    const std::string freed("\x95\x1b\x18\0\0\0\0\0red/a.js", 16);
    Dump dump;
    dump.lines(1, 0x1000, {{0x1040, 2, freed}, {0x1050, 3, freed}, {0x1060, 5, freed}});
    dump.load(1, 0x1000, 0x100, "JS:^fib /shared/a.js:2:13");
    dump.lines(1, 0x2000, {{0x2040, 140, "/shared/a.js"}});
    dump.load(1, 0x2000, 0x100, "JS:*fib /shared/a.js:2:13");
    const auto code = taken(dump.text);
    REQUIRE(code);
    CHECK(at(*code, 0x1000).ends_with("/shared/a.js:2"));
    CHECK(at(*code, 0x1012).ends_with("/shared/a.js:3"));
    CHECK(at(*code, 0x10ff).ends_with("/shared/a.js:5"));
    CHECK(at(*code, 0x2010).ends_with("/shared/a.js:2"));
}

TEST_CASE("jitdump: how frames are left, of the function that is there now") {
    Dump dump;
    dump.load(1, 0x1000, 0x21, "untold");
    dump.unwinding(2, "one");
    dump.load(3, 0x2000, 0x21, "one");
    dump.load(4, 0x3000, 0x10, "behind it");
    dump.unwinding(5, "twice");
    dump.unwinding(5, "two");
    dump.load(6, 0x4000, 0x10, "two");
    JitDump read;
    REQUIRE(read.take(bytes_of(dump.text), 0));
    CHECK(left_by(read, 0x1000) == "nothing");
    CHECK(left_by(read, 0x2000) == "one+40"); // 0x21 bytes are five words
    CHECK(left_by(read, 0x2020) == "one+8");
    CHECK(left_by(read, 0x2021) == "nothing");
    CHECK(left_by(read, 0x1fff) == "nothing");
    CHECK(left_by(read, 0x3000) == "nothing");
    CHECK(left_by(read, 0x4000) == "two+16");
    CHECK(read.has_unwinding(0x2000, 0x3000));
    CHECK(!read.has_unwinding(0x2001, 0x4000));
    CHECK(!read.has_unwinding(0x4001, UINT64_MAX));

    const auto more = [&](auto add) {
        Dump again;
        again.text.clear();
        add(again);
        REQUIRE(read.take(bytes_of(again.text), 0));
    };
    more([](Dump &d) { d.move(7, 0x2000, 0x5000, 0x21); });
    CHECK(left_by(read, 0x5008) == "one+32");
    more([](Dump &d) { d.load(8, 0x2010, 0x100, "in its place"); });
    CHECK(left_by(read, 0x2000) == "nothing"); // as part of it is other code now
    CHECK(left_by(read, 0x2018) == "nothing");
    more([](Dump &d) {
        d.unwinding(9, "large");
        d.load(9, 0x0, 0x5000, "over all");
    });
    CHECK(left_by(read, 0x4000) == "large+4096");
    CHECK(left_by(read, 0x5000) == "one+40");
}

TEST_CASE("jitdump: sizes of unwinding information that don't hold, and more of it than is kept") {
    const auto with = [](uint64_t both, uint64_t header) {
        Dump dump;
        std::string rest;
        for (uint64_t value : {both, header, uint64_t{0}}) put(rest, value);
        dump.record(4, 1, rest + "bytes");
        dump.load(2, 0x1000, 0x10, "it");
        JitDump read;
        REQUIRE(read.take(bytes_of(dump.text), 0));
        return left_by(read, 0x1000);
    };
    CHECK(with(5, 0) == "bytes+16");
    CHECK(with(5, 2) == "byt+16");
    CHECK(with(5, 5) == "nothing"); // as V8 says of what it has none for
    CHECK(with(6, 0) == "nothing");
    CHECK(with(5, 6) == "nothing");
    CHECK(with(UINT64_MAX, UINT64_MAX - 3) == "nothing");
    Dump dump;
    dump.unwinding(1, std::string(20'000, 'x'));
    dump.load(1, 0x1000, 0x10, "long");
    dump.record(4, 1, std::string(300'000, 'y')); // longer than what is read at once
    dump.load(1, 0x2000, 0x10, "longer");
    for (uint64_t i = 0; i < 2'000; ++i) {
        dump.unwinding(1, std::string(16'000, 'z'));
        dump.load(1, 0x10'0000 + i * 16, 0x10, "one of many");
    }
    JitDump read;
    for (Bytes left = bytes_of(dump.text); !left.empty();) {
        const uint64_t before = read.offset();
        REQUIRE(read.take(left.first(std::min(left.size(), JitDump::kPiece)), 0));
        REQUIRE(read.offset() > before);
        left = read.offset() < dump.text.size() ? bytes_of(dump.text).subspan(read.offset()) : Bytes();
    }
    CHECK(left_by(read, 0x1000) == "nothing");
    CHECK(left_by(read, 0x2000) == "nothing");
    CHECK(left_by(read, 0x10'0000).ends_with("z+16"));
    CHECK(left_by(read, 0x10'0000 + 1'999 * 16) == "nothing"); // 16 MiB of it are kept
}

TEST_CASE("jitdump: read in pieces of any size it says the same") {
    Dump dump;
    for (uint64_t i = 0; i < 30; ++i) {
        dump.lines(i, 0x1000 + i * 64, {{0x1000 + i * 64, static_cast<uint32_t>(i), "/src/a.x"}});
        dump.load(i, 0x1000 + i * 64, 64, format("function {}", i), i * 100);
    }
    const auto whole = taken(dump.text);
    REQUIRE(whole);
    for (const size_t step : {size_t{1}, size_t{7}, size_t{100}, size_t{1000}}) {
        JitDump grown;
        for (size_t end = 0; end < dump.text.size() + step; end += step) { // as the file grows
            const std::string_view there = std::string_view(dump.text).substr(0, end);
            if (grown.offset() <= there.size()) REQUIRE(grown.take(bytes_of(there.substr(grown.offset())), 0));
        }
        CompiledCode code = grown.code();
        code.settle();
        CHECK(code.size() == 30);
        for (uint64_t i = 0; i < 30; ++i) CHECK(at(code, 0x1000 + i * 64) == at(*whole, 0x1000 + i * 64));
    }
}

TEST_CASE("jitdump: a file that grows, code and lines of any size") {
    Fd file(memfd_create("jitdump", MFD_CLOEXEC));
    REQUIRE(file);
    Dump dump;
    dump.load(1, 0x1000, 64, "huge code", 3 << 20);
    dump.lines(2, 0x2000, std::vector<DumpedLine>(20000, {0x2000, 7, "/src/a.x"})); // more than a piece: passed over
    dump.load(2, 0x2000, 64, "many lines");
    const size_t first = dump.text.size();
    dump.load(3, 0x3000, 64, "later");
    REQUIRE(write(file.get(), dump.text.data(), first + 20) == static_cast<ssize_t>(first + 20));
    JitDump read;
    REQUIRE(read.read_more(file, 0));
    CHECK(at(read.code(), 0x1000) == "huge code+0");
    CHECK(at(read.code(), 0x2000) == "many lines+0");
    CHECK(read.code().size() == 2);
    REQUIRE(write(file.get(), dump.text.data() + first + 20, dump.text.size() - first - 20) > 0);
    const auto more = read.read_more(file, 0);
    REQUIRE(more);
    CHECK(*more);
    CHECK(at(read.code(), 0x3000) == "later+0");
    CHECK(!*read.read_more(file, 0));
}

TEST_CASE("jitdump: what isn't one is refused, and says why") {
    const auto problem = [](std::string_view text) {
        const auto code = taken(text);
        return code ? std::string("fine") : code.error().message();
    };
    CHECK(problem(std::string(40, 'x')).find("no jitdump") != std::string::npos);
    std::string swapped = Dump().text;
    std::reverse(swapped.begin(), swapped.begin() + 4);
    CHECK(problem(swapped).find("other byte order") != std::string::npos);
    Dump damaged;
    damaged.load(1, 0x1000, 64, "a");
    put(damaged.text, uint32_t{0});
    put(damaged.text, uint32_t{4});
    put(damaged.text, uint64_t{0});
    CHECK(problem(damaged.text).find("damaged at byte 106: a record of 4 bytes") != std::string::npos);
    Dump huge;
    for (int i = 0; i < 30000; ++i) huge.load(1, 0x1000 + static_cast<uint64_t>(i), 64, std::string(kLongestName + 100, 'a'));
    CHECK(problem(huge.text).find("take more than") != std::string::npos);
    for (size_t cut = 0; cut < damaged.text.size(); ++cut) (void)taken(std::string_view(damaged.text).substr(0, cut));
    Dump endless; // a name without its end
    endless.load(1, 0x1000, 64, "a", 0);
    endless.text.back() = 'b';
    const auto without_end = taken(endless.text);
    REQUIRE(without_end);
    CHECK(at(*without_end, 0x1000) == "ab+0");
    CHECK(is_jit_dump_name("/tmp/jit-4711.dump"));
    CHECK(is_jit_dump_name("/root/.debug/jit/x/jit-1.dump (deleted)"));
    for (const char *no : {"/tmp/jit-.dump", "/tmp/jit-a.dump", "/tmp/my-jit-1.dump", "/tmp/jit-1.dump.so", "jit-1"})
        CHECK_FALSE(is_jit_dump_name(no));
}

TEST_CASE("perf map: only what is new is read, and code has its time") {
    Fd file(memfd_create("perf map", MFD_CLOEXEC));
    REQUIRE(file);
    const auto append_text = [&](std::string_view text) {
        REQUIRE(write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    };
    PerfMap map;
    append_text("1000 100 first\n2000 10 hal");
    REQUIRE(map.read_more(file, 0));
    CHECK(map.size() == 1);
    CHECK(!*map.read_more(file, 50));
    append_text("f\n1000 100 second\n");
    CHECK(*map.read_more(file, 50));
    CHECK(at(map.code(), 0x1000, 49) == "first+0");
    CHECK(at(map.code(), 0x1000, 50) == "second+0");
    CHECK(at(map.code(), 0x2000, 1) == "half+0");
    // Written anew, as a JVM does when it is asked again.
    REQUIRE(ftruncate(file.get(), 0) == 0);
    REQUIRE(lseek(file.get(), 0, SEEK_SET) == 0);
    append_text("1000 100 third\n");
    CHECK(*map.read_more(file, 90));
    CHECK(at(map.code(), 0x1000, 90) == "third+0");
    CHECK(at(map.code(), 0x1000, 60) == "second+0");
    CHECK(at(map.code(), 0x2000, 90) == "half+0"); // it may be gone: nobody says so
}
