// The names that people have for functions: symbols, readable, without parameters.
#include "runtime/link/function_names.h"

#include <cctype>
#include <string>

#include "runtime/base/format.h"
#include "runtime/elf/elf.h"
#include "runtime/sys/file.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("function names: without parameters and what is returned") {
    CHECK(without_parameters("Cache<int>::lookup(int const&, int)") == "Cache<int>::lookup");
    CHECK(without_parameters("int ns::f<int>(void (*)(int)) const") == "ns::f<int>");
    CHECK(without_parameters("(anonymous namespace)::helper(int)") == "(anonymous namespace)::helper");
    CHECK(without_parameters("A::operator()(int) const") == "A::operator()");
    CHECK(without_parameters("operator new(unsigned long)") == "operator new");
    CHECK(without_parameters("bool operator< <int>(A<int> const&, A<int> const&)") == "operator< <int>");
    CHECK(without_parameters("core::fmt::write") == "core::fmt::write");
    CHECK(without_parameters("f") == "f");
    CHECK(without_parameters("") == "");
    for (const std::string_view odd : {")", "()", "(", "a)(", "::)", "f())", "<)>(", "operator"}) (void)without_parameters(odd);
}

TEST_CASE("function names: what the compiler appended is told") {
    const FunctionNames clone("_ZN5CacheIiE6lookupERKii.isra.0");
    CHECK(clone.readable == "Cache<int>::lookup(int const&, int)");
    CHECK(clone.bare == "Cache<int>::lookup");
    CHECK(clone.suffix == ".isra.0");
    CHECK(clone.shown() == "Cache<int>::lookup(int const&, int) [clone .isra.0]");
    CHECK(FunctionNames("work.constprop.0").shown() == "work [clone .constprop.0]");
    CHECK(FunctionNames("work.part.1.cold").suffix == ".part.1.cold");
    CHECK(FunctionNames("main.(*srv).Handle").shown() == "main.(*srv).Handle"); // Go's own
    CHECK(FunctionNames("main.(*srv).Handle").bare == "main.(*srv).Handle");
}

// By the names of this program itself: each word of what a symbol reads as is a pattern that finds it.
TEST_CASE("function names: what can't match is told without demangling, and nothing else") {
    CHECK(could_match("*lookup*", "_ZN5CacheIiE6lookupERKii"));
    CHECK_FALSE(could_match("*insert*", "_ZN5CacheIiE6lookupERKii"));
    CHECK_FALSE(could_match("*insert*", "lookup"));
    CHECK(could_match("*operator*", "_ZN1AclEi"));
    CHECK(could_match("*unsigned*", "_Z1fj"));
    CHECK(could_match("*string*", "_Z1fSs"));
    CHECK(could_match("*abc*", "_RINvC1a1fKe616263_E")); // a::f::<{*"abc"}>
    CHECK(could_match("*abcde*", "_RINvC1a1fKe6162636465_E"));
    CHECK(could_match("*punycode*", "_RNvC1au5abc_1")); // a::punycode{abc_1}

    const Result<sys::Mapping> image = sys::map_file("/proc/self/exe");
    REQUIRE(image);
    const Result<elf::Elf> file = elf::Elf::parse(image->bytes(), "/proc/self/exe");
    REQUIRE(file);
    const elf::Section *section = file->find_section(".symtab");
    REQUIRE(section); // this program isn't stripped
    const Result<elf::SymbolTable> symbols = file->symbol_table(*section);
    REQUIRE(symbols);
    size_t mangled = 0;
    std::string missed;
    for (size_t i = 0; i < symbols->size() && missed.size() < 1000; i += 7) {
        const std::string_view symbol = symbols->name(i).value_or("");
        if (!symbol.starts_with("_Z")) continue;
        ++mangled;
        const std::string readable = FunctionNames(symbol).readable;
        const auto in_word = [&](size_t n) {
            return n < readable.size() && (std::isalpha(static_cast<unsigned char>(readable[n])) || readable[n] == '_');
        };
        for (size_t at = 0, end = 0; at < readable.size(); at = end + 1) {
            for (end = at; in_word(end);) ++end;
            const std::string pattern = "*" + readable.substr(at, end - at) + "*";
            if (!could_match(pattern, symbol)) append(missed, "{} {}\n", symbol, pattern);
        }
    }
    CHECK(mangled > 100);
    CHECK(missed == "");
}

TEST_CASE("function names: each form is found") {
    const FunctionNames names("_ZN5CacheIiE6lookupERKii");
    for (const std::string_view wanted :
         {"_ZN5CacheIiE6lookupERKii", "Cache<int>::lookup", "Cache<int>::lookup(int const&, int)"}) {
        CHECK(names.is(wanted));
        CHECK(names.match(wanted));
    }
    CHECK_FALSE(names.is("lookup"));
    for (const std::string_view pattern : {"Cache*", "*lookup", "*lookup(*", "_ZN5Cache*", "Cache<?nt>::*"})
        CHECK(names.match(pattern));
    CHECK_FALSE(names.match("Cach"));
}
