"""Functions of C++ programs by the names that people know."""
import re
import subprocess

from harness import *

SOURCE = r"""
#include <cstdio>
#include <cstdlib>
template <class K> struct Cache { K k{}; __attribute__((noinline)) int lookup(const K &key, int n); };
template <class K> int Cache<K>::lookup(const K &key, int n) { std::printf("%d", n); return key + n; }
namespace ns { __attribute__((noinline)) int over(int a) { std::printf("%d", a); return a; }
               __attribute__((noinline)) int over(long a) { std::printf("%ld", a); return 2; } }
extern "C" __attribute__((noinline)) int plain(int a) { std::printf("%d", a); return a + 1; }
int main(int argc, char **) { Cache<int> c; int s = 0; for (int i = 0; i < 5; ++i) s += c.lookup(argc, i);
  for (int i = 0; i < 3; ++i) s += ns::over(i); s += ns::over(7l); return plain(s) == 12345; }
"""


@test
def functions_of_programs_go_by_readable_names():
    program = compile_program("names", SOURCE, "-no-pie")
    symbol = "_ZN5CacheIiE6lookupERKii"
    for wanted in ("Cache*", "Cache<int>::lookup", "Cache<int>::lookup(int const&, int)", symbol, "_ZN5Cache*", "*lookup"):
        listed = good("trace", "--list", f"uprobe:{program}:{wanted}").out
        assert "Cache<int>::lookup(int const&, int)" in listed, (wanted, listed)
        r = good("trace", f"uprobe:{program}:{wanted}", "--count", "--", program)
        assert re.search(r"Cache<int>::lookup\(int const&, int\) *: 5 calls", r.out), (wanted, r.out)
    bad(1, r"several functions are called ns::over.*\n.*_ZN2ns4over", "trace", f"uprobe:{program}:ns::over", "--count", "--", program)
    r = good("trace", f"uprobe:{program}:ns::over(long)", "--count", "--", program)
    assert re.search(r"ns::over\(long\) *: 1 call\b", r.out), r.out
    bad(1, r"no function .*\n.*did you mean Cache<int>::lookup", "trace", f"uprobe:{program}:Cache<int>::lokup", "--count", "--", program)
    bad(1, "did you mean plain", "trace", f"uprobe:{program}:plainn", "--count", "--", program)


@test
def copies_that_the_compiler_made_are_told():
    source = r"""
extern "C" int puts(const char *);
__attribute__((noinline)) static int work(int *unused, int n) { __asm__ volatile("" : "+r"(n)); return n * 3; }
int main(int argc, char **) { int x = 0, s = 0; for (int i = 0; i < 4; ++i) s += work(&x, argc); return s == 77; }
"""
    program = compile_program("copies", source, "-O2")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True).stdout
    if not re.search(r"work\S*\.(isra|constprop)", symbols):
        raise Skip("this compiler makes no copy of it")
    r = good("trace", f"uprobe:{program}:work", "--count", "--", program)
    assert re.search(r"\[clone \.(isra|constprop)\.0\].*: 4 calls", r.out), r.out
    assert "the compiler made" in r.err, r.err
