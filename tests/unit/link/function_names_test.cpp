// The names that people have for functions: symbols, readable, without parameters.
#include "runtime/link/function_names.h"

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
