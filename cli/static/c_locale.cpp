// The C locale and nothing else: what static executables use of <ctype.h>, strtol and its kin, and snprintf.
//
// The C library's versions work in every locale, so each of them brings the tables of locales along, the conversion between
// character sets, translated messages, and the loader of shared objects that converters come in. rawbpf formats with fmt, reads
// numbers itself and prints with write(2); a library beside it (nlohmann-json's escapes, a message of libstdc++'s) wants a few
// calls. They are public functions, and a program may define its own: the archive's members are then never taken.
//
// snprintf has d i u x X c s p % with 0, -, width, precision and the usual lengths. Anything else stops the program, so
// that a format which isn't here can't print something wrong.
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "runtime/bare/stop.h"

namespace {

// bits of <ctype.h>'s table on a little-endian machine: _ISbit(n) is 1 << (n + 8) below 8, 1 << (n - 8) above
constexpr unsigned short kUpper = 1 << 8, kLower = 1 << 9, kAlpha = 1 << 10, kDigit = 1 << 11, kHex = 1 << 12, kSpace = 1 << 13,
                         kPrint = 1 << 14, kGraph = 1 << 15, kBlank = 1, kControl = 2, kPunct = 4, kAlnum = 8;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr bool between(int c, int low, int high) { return c >= low && c <= high; }
constexpr unsigned short classify(int c) {
    unsigned bits = 0;
    if (between(c, 'A', 'Z')) bits |= kUpper | kAlpha | kAlnum;
    if (between(c, 'a', 'z')) bits |= kLower | kAlpha | kAlnum;
    if (between(c, '0', '9')) bits |= kDigit | kAlnum;
    if (between(c, '0', '9') || between(c, 'a', 'f') || between(c, 'A', 'F')) bits |= kHex;
    if (c == ' ' || between(c, '\t', '\r')) bits |= kSpace;
    if (c == ' ' || c == '\t') bits |= kBlank;
    if (between(c, 0, 31) || c == 127) bits |= kControl;
    if (between(c, 33, 126)) bits |= kGraph | ((bits & kAlnum) ? 0 : kPunct);
    if (between(c, 32, 126)) bits |= kPrint;
    return static_cast<unsigned short>(bits);
}
constexpr int lower(int c) { return between(c, 'A', 'Z') ? c + 32 : c; }
constexpr int upper(int c) { return between(c, 'a', 'z') ? c - 32 : c; }

// The tables that <ctype.h>'s macros index, from -128 (a signed char) to 255.
struct Tables {
    unsigned short kinds[384];
    int lowers[384], uppers[384];
};
constexpr Tables make_tables() {
    Tables t{};
    for (int c = -128; c < 256; ++c) {
        t.kinds[c + 128] = c < 0 ? 0 : classify(c);
        t.lowers[c + 128] = lower(c);
        t.uppers[c + 128] = upper(c);
    }
    return t;
}
constexpr Tables kTables = make_tables();
const unsigned short *const g_kinds = kTables.kinds + 128;
const int *const g_lowers = kTables.lowers + 128;
const int *const g_uppers = kTables.uppers + 128;

int kind(int c, unsigned short bits) { return c >= -128 && c < 256 ? g_kinds[c] & bits : 0; }

// strtol(3): blanks, a sign, 0x or 0, digits; the magnitude, and whether it fits 64 bits.
uint64_t digits(const char *text, char **end, int base, bool &negative, bool &overflow) {
    const char *at = text;
    while (kind(static_cast<unsigned char>(*at), kSpace)) ++at;
    negative = *at == '-';
    if (*at == '-' || *at == '+') ++at;
    if ((base == 0 || base == 16) && at[0] == '0' && lower(at[1]) == 'x' && kind(static_cast<unsigned char>(at[2]), kHex))
        at += 2, base = 16;
    else if (base == 0)
        base = *at == '0' ? 8 : 10;
    const char *first = at;
    uint64_t value = 0;
    for (;; ++at) {
        const int c = lower(static_cast<unsigned char>(*at));
        const int digit = between(c, '0', '9') ? c - '0' : between(c, 'a', 'z') ? c - 'a' + 10 : 99;
        if (digit >= base) break;
        if (__builtin_mul_overflow(value, static_cast<uint64_t>(base), &value) ||
            __builtin_add_overflow(value, static_cast<uint64_t>(digit), &value))
            overflow = true;
    }
    if (end) *end = const_cast<char *>(at == first ? text : at);
    return value;
}
template <class T> T read_unsigned(const char *text, char **end, int base) {
    constexpr T kMost = std::numeric_limits<T>::max();
    bool negative = false, overflow = false;
    uint64_t value = digits(text, end, base, negative, overflow);
    if (overflow || value > kMost) return errno = ERANGE, kMost;
    return static_cast<T>(negative ? -value : value);
}
template <class T> T read_signed(const char *text, char **end, int base) {
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    bool negative = false, overflow = false;
    uint64_t value = digits(text, end, base, negative, overflow);
    if (overflow || value > static_cast<uint64_t>(kMost) + negative) return errno = ERANGE, negative ? kLeast : kMost;
    return static_cast<T>(negative ? -value : value);
}

struct Out {
    char *at;
    size_t room, length = 0;
    void put(char c) {
        if (length + 1 < room) at[length] = c;
        ++length;
    }
    void put(const char *text, size_t n) {
        for (size_t i = 0; i < n; ++i) put(text[i]);
    }
    void pad(char c, int64_t n) {
        for (; n > 0; --n) put(c);
    }
};

void conversion(Out &out, const char *&format, va_list *values) {
    bool left = false, zero = false;
    for (;; ++format)
        if (*format == '-')
            left = true;
        else if (*format == '0')
            zero = true;
        else
            break;
    auto number = [&]() -> int {
        if (*format == '*') return ++format, va_arg(*values, int);
        int n = 0;
        while (between(*format, '0', '9') && n < 100'000) n = n * 10 + (*format++ - '0');
        return n;
    };
    const int width = number();
    int precision = -1;
    if (*format == '.') ++format, precision = number();
    int length = 0; // -2 hh, -1 h, 0, 1 l, 2 ll j; z and t are as long as l
    for (; std::strchr("hlzjt", *format) && *format; ++format) length += *format == 'h' ? -1 : *format == 'j' ? 2 : 1;
    const bool wide = length >= 2 || (length == 1 && sizeof(long) == 8);
    char digits[24];
    const char *text = digits;
    size_t size = 0;
    char sign = 0;
    const char what = *format++;
    switch (what) {
    case '%': out.put('%'); return;
    case 'c': digits[0] = static_cast<char>(va_arg(*values, int)), size = 1, zero = false; break;
    case 's':
        text = va_arg(*values, const char *);
        if (!text) text = "(null)";
        size = precision >= 0 ? strnlen(text, static_cast<size_t>(precision)) : std::strlen(text);
        zero = false;
        break;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'p': {
        uint64_t value;
        if (what == 'p') {
            value = reinterpret_cast<uintptr_t>(va_arg(*values, void *));
            out.put("0x", 2);
        } else if (what == 'd' || what == 'i') {
            int64_t given = wide ? va_arg(*values, long long) : va_arg(*values, int);
            if (length == -1) given = static_cast<short>(given);
            if (length <= -2) given = static_cast<signed char>(given); // which is %hhd: NOLINT(bugprone-signed-char-misuse)
            if (given < 0) sign = '-';
            value = given < 0 ? -static_cast<uint64_t>(given) : static_cast<uint64_t>(given);
        } else {
            value = wide ? va_arg(*values, unsigned long long) : va_arg(*values, unsigned);
            if (length == -1) value = static_cast<unsigned short>(value);
            if (length <= -2) value = static_cast<unsigned char>(value);
        }
        const unsigned base = what == 'x' || what == 'X' || what == 'p' ? 16 : 10;
        const char *names = what == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
        char *at = digits + sizeof digits;
        for (; value; value /= base) *--at = names[value % base];
        while (at > digits && digits + sizeof digits - at < (precision < 0 ? 1 : precision)) *--at = '0';
        text = at;
        size = static_cast<size_t>(digits + sizeof digits - at);
        if (precision >= 0) zero = false;
        break;
    }
    default: rawbpf::stop("a conversion that this snprintf doesn't have");
    }
    const int64_t pad = width - static_cast<int64_t>(size) - (sign != 0);
    if (!left && !zero) out.pad(' ', pad);
    if (sign) out.put(sign);
    if (!left && zero) out.pad('0', pad);
    out.put(text, size);
    if (left) out.pad(' ', pad);
}

lconv g_conventions;

} // namespace

// NOLINTBEGIN: the C library's names
extern "C" {

// The C library's start-up fills per-thread pointers to the locale's tables with this. Nothing is left to fill.
void __ctype_init(void) {}
const unsigned short **__ctype_b_loc() { return const_cast<const unsigned short **>(&g_kinds); }
const int **__ctype_tolower_loc() { return const_cast<const int **>(&g_lowers); }
const int **__ctype_toupper_loc() { return const_cast<const int **>(&g_uppers); }
int isalnum(int c) { return kind(c, kAlnum); }
int isalpha(int c) { return kind(c, kAlpha); }
int isblank(int c) { return kind(c, kBlank); }
int iscntrl(int c) { return kind(c, kControl); }
int isdigit(int c) { return kind(c, kDigit); }
int isgraph(int c) { return kind(c, kGraph); }
int islower(int c) { return kind(c, kLower); }
int isprint(int c) { return kind(c, kPrint); }
int ispunct(int c) { return kind(c, kPunct); }
int isspace(int c) { return kind(c, kSpace); }
int isupper(int c) { return kind(c, kUpper); }
int isxdigit(int c) { return kind(c, kHex); }
int tolower(int c) { return lower(c); }
int toupper(int c) { return upper(c); }

long strtol(const char *text, char **end, int base) { return read_signed<long>(text, end, base); }
long long strtoll(const char *text, char **end, int base) { return read_signed<long long>(text, end, base); }
unsigned long strtoul(const char *text, char **end, int base) { return read_unsigned<unsigned long>(text, end, base); }
unsigned long long strtoull(const char *text, char **end, int base) { return read_unsigned<unsigned long long>(text, end, base); }
long __isoc23_strtol(const char *text, char **end, int base) { return read_signed<long>(text, end, base); }
long long __isoc23_strtoll(const char *text, char **end, int base) { return read_signed<long long>(text, end, base); }
unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return read_unsigned<unsigned long>(text, end, base); }
unsigned long long __isoc23_strtoull(const char *text, char **end, int base) {
    return read_unsigned<unsigned long long>(text, end, base);
}
int atoi(const char *text) { return static_cast<int>(read_signed<long>(text, nullptr, 10)); }
long atol(const char *text) { return read_signed<long>(text, nullptr, 10); }

int vsnprintf(char *to, size_t room, const char *format, va_list given) {
    Out out{to, room};
    va_list values;
    va_copy(values, given);
    while (*format) {
        if (*format != '%')
            out.put(*format++);
        else
            conversion(out, ++format, &values);
    }
    va_end(values);
    if (room) to[out.length < room ? out.length : room - 1] = 0;
    return static_cast<int>(out.length);
}
int snprintf(char *to, size_t room, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(to, room, format, values);
    va_end(values);
    return n;
}
int __snprintf(char *to, size_t room, const char *format, ...) { // glibc's own name for it
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(to, room, format, values);
    va_end(values);
    return n;
}

lconv *localeconv() {
    static char point[] = ".", empty[] = "";
    g_conventions.decimal_point = point;
    g_conventions.thousands_sep = g_conventions.grouping = empty;
    return &g_conventions;
}

// The C library's messages stay in English.
char *dcgettext(const char *, const char *text, int) { return const_cast<char *>(text); }
char *__dcgettext(const char *, const char *text, int) { return const_cast<char *>(text); }

// Its assertions print through stdio's wide streams.
void __assert_fail(const char *what, const char *, unsigned, const char *) { rawbpf::stop(what); }
void __assert_perror_fail(int, const char *, unsigned, const char *) { rawbpf::stop("an assertion of the C library"); }
void __assert(const char *what, const char *, int) { rawbpf::stop(what); }
}
// NOLINTEND
