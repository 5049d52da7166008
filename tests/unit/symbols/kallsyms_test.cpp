// Naming kernel addresses from kallsyms' text, given in every possible cut.
#include "runtime/symbols/kallsyms.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::symbols;

static constexpr std::string_view kText = "0000000000001000 A fixed_percpu_data\n"
                                          "ffffffff81000000 T _stext\n"
                                          "ffffffff81000000 T _text\n"
                                          "ffffffff81000000 t first_local\n"
                                          "ffffffff81000000 T first_global\n"
                                          "ffffffff81000000 T second_global\n"
                                          "ffffffff81000100 t small\n"
                                          "ffffffff81000200 W weak_one\n"
                                          "ffffffff81000200 T too_late\n"
                                          "ffffffff81000300 T __sched_text_start\n"
                                          "ffffffff81000400 T _etext\n"
                                          "ffffffff81000500 D some_data\n"
                                          "ffffffffc0200100 t mod_b\t[nf_tables]\n"
                                          "ffffffffc0200000 t mod_a\t[nf_tables]\n"
                                          "ffffffffc0200040 t $x\t[nf_tables]\n"
                                          "ffffffffa0000000 t bpf_prog_6deef7357e7b4530_on_sample\t[bpf]\n"
                                          "ffffffffc0300000 t _RNvCs1_3abc3run\t[rusty]\n";

static std::vector<KernelName> name(std::string_view text, std::vector<uint64_t> addresses, size_t piece = 1 << 20) {
    KernelNamer namer(std::move(addresses));
    for (size_t at = 0; at < text.size(); at += piece) namer.feed(text.substr(at, piece));
    return namer.finish();
}

TEST_CASE("kallsyms: the nearest symbol at or below, its offset and its module") {
    auto names = name(kText, {0xffffffff81000123, 0xffffffffc0200050, 0xffffffffa0000010, 0xffffffffc0200100});
    REQUIRE(names.size() == 4);
    CHECK(names[0].symbol == "small");
    CHECK(names[0].offset == 0x23);
    CHECK(names[0].module == "vmlinux");
    CHECK(names[1].symbol == "bpf_prog_6deef7357e7b4530_on_sample");
    CHECK(names[1].module == "bpf");
    CHECK(names[2].symbol == "mod_a");
    CHECK(names[2].offset == 0x50);
    CHECK(names[2].module == "nf_tables");
    CHECK(names[3].symbol == "mod_b");
    CHECK(names[3].offset == 0);
}

TEST_CASE("kallsyms: among aliases a function beats a marker, a global one a local one, and then the first stays") {
    auto names = name(kText, {0xffffffff81000000, 0xffffffff81000200, 0xffffffff81000300});
    CHECK(names[0].symbol == "first_global");
    CHECK(names[1].symbol == "weak_one");
    CHECK(names[2].symbol == "__sched_text_start");
}

TEST_CASE("kallsyms: a data symbol ends the function before it, and nothing is named from far away") {
    auto names = name(kText, {0x10, 0x1010, 0xffffffff81000600, 0xffffffffc0400000, UINT64_MAX});
    REQUIRE(names.size() == 5);
    for (const KernelName &n : names) {
        CHECK(n.symbol.empty());
        CHECK(n.module.empty());
    }
}

TEST_CASE("kallsyms: Rust names are demangled") { CHECK(name(kText, {0xffffffffc0300004})[0].symbol == "abc::run"); }

TEST_CASE("kallsyms: duplicates are answered once, in order") {
    auto names = name(kText, {0xffffffff81000200, 0xffffffff81000100, 0xffffffff81000200});
    REQUIRE(names.size() == 2);
    CHECK(names[0].address == 0xffffffff81000100);
    CHECK(names[1].address == 0xffffffff81000200);
    CHECK(name(kText, {}).empty());
}

TEST_CASE("kallsyms: in pieces of any size the answer is the same") {
    std::vector<uint64_t> asked = {0xffffffff81000000, 0xffffffff81000123, 0xffffffff81000250, 0xffffffffc0200050,
                                   0xffffffffa0000010};
    auto whole = name(kText, asked);
    for (size_t piece = 1; piece < 100; ++piece) {
        auto names = name(kText, asked, piece);
        REQUIRE(names.size() == whole.size());
        for (size_t i = 0; i < names.size(); ++i) {
            CHECK(names[i].symbol == whole[i].symbol);
            CHECK(names[i].module == whole[i].module);
            CHECK(names[i].offset == whole[i].offset);
        }
    }
}

TEST_CASE("kallsyms: cut at every byte, it gives names that are in the text or none") {
    for (size_t cut = 0; cut <= kText.size(); ++cut)
        for (const KernelName &n : name(kText.substr(0, cut), {0xffffffff81000123, 0xffffffffc0200150}))
            CHECK((n.symbol.empty() || kText.find(n.symbol) != std::string_view::npos));
}

TEST_CASE("kallsyms: hidden addresses are noticed") {
    KernelNamer namer({5});
    namer.feed("0000000000000000 T _stext\n0000000000000000 T _text\n");
    CHECK(namer.hidden());
    KernelNamer empty({5});
    CHECK(!empty.hidden());
    KernelNamer seen({5});
    seen.feed(kText);
    CHECK(!seen.hidden());
}

TEST_CASE("kallsyms: lines of other forms and without end are passed over") {
    std::string text = "ffffffff81000000 T good\nnonsense\n\n \nffffffff81000010\nffffffff81000010 T\nffffffff8100001g T bad\n";
    text += "ffffffff81000010 T " + std::string(10000, 'x');
    auto names = name(text, {0xffffffff81000020}, 100);
    REQUIRE(names.size() == 1);
    CHECK((names[0].symbol == "good" || names[0].symbol.size() < 4096));
    CHECK(name(text.substr(0, text.find("ffffffff81000010 T x")), {0xffffffff81000020})[0].symbol == "good");
}
