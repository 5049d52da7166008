// strcmp and its kin, one version each.
//
// For x86_64 the C library has up to nine versions of each, written in assembly for SSE2, SSE4.2, AVX2, AVX-512, with and without
// transactions, and chooses at start-up: strcmp and strncmp alone are 29 KB. Here they compare option names, file names of the
// loader and a demangler's operators, a few bytes at a time. What symbol tables and BTF go through (memcpy, memchr, memcmp,
// strlen, strnlen) stays the C library's.
#include <cstddef>

// NOLINTBEGIN: the C library's names
extern "C" {

int strncmp(const char *a, const char *b, size_t most) {
    for (; most > 0; ++a, ++b, --most)
        if (*a != *b || !*a) return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
    return 0;
}
int strcmp(const char *a, const char *b) { return strncmp(a, b, static_cast<size_t>(-1)); }

char *strchrnul(const char *text, int wanted) {
    while (*text && *text != static_cast<char>(wanted)) ++text;
    return const_cast<char *>(text);
}
char *__strchrnul(const char *text, int wanted) { return strchrnul(text, wanted); }
char *strchr(const char *text, int wanted) {
    char *found = strchrnul(text, wanted);
    return *found == static_cast<char>(wanted) ? found : nullptr;
}
char *index(const char *text, int wanted) { return strchr(text, wanted); }
char *strrchr(const char *text, int wanted) {
    char *last = nullptr;
    for (;; ++text) {
        if (*text == static_cast<char>(wanted)) last = const_cast<char *>(text);
        if (!*text) return last;
    }
}
char *rindex(const char *text, int wanted) { return strrchr(text, wanted); }

char *stpcpy(char *to, const char *from) {
    while ((*to = *from++)) ++to;
    return to;
}
char *__stpcpy(char *to, const char *from) { return stpcpy(to, from); }
}
// NOLINTEND
