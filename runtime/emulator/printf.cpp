// bpf_trace_printk()'s format: a part of printf's, and the kernel's own %p letters.
//
//      %[-0+ ][width][l|ll](d i u x X)  %[-0+ ][width](c s)     %pks %pus: strings; %pi4 %pI4 %pi6: addresses; %px %pB %ps: an address
//
// bpf_bprintf_prepare() in kernel/bpf/helpers.c refuses the same with -EINVAL: other letters, more of them than arguments, no
// zero at the end, control characters (until 6.16 also non-ASCII characters). The kernel prints a hash for %p; the emulator
// prints the address.
#include <algorithm>
#include <cstring>

#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"

namespace rawbpf::inline v0::emulator {

namespace {

constexpr uint64_t kLongestString = 512; // what the kernel has room for

/// A string in memory; nothing where it can't be read to its end, as in the kernel.
std::string string_at(const Machine &machine, uint64_t address) {
    std::string out;
    for (uint64_t n = 0; n < kLongestString; ++n) {
        const uint8_t *at = machine.memory().find(address + n, 1, false);
        if (!at) return {};
        if (!*at) break;
        out += static_cast<char>(*at);
    }
    return out;
}

/// %pI4 %pi4 %pI6 %pi6; zeros where it can't be read.
std::string ip_at(const Machine &machine, uint64_t address, bool dense, bool six) {
    uint8_t ip[16] = {};
    if (const uint8_t *at = machine.memory().find(address, six ? 16 : 4, false)) std::memcpy(ip, at, six ? 16 : 4);
    std::string out;
    for (int n = 0; n < (six ? 8 : 4); ++n) {
        if (n && !(six && dense)) out += six ? ':' : '.';
        if (six)
            append(out, "{:02x}{:02x}", ip[2 * n], ip[2 * n + 1]);
        else
            out += dense ? format("{:03}", ip[n]) : format("{}", ip[n]);
    }
    return out;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_printed(char c) { return c >= ' ' && c <= '~'; }
bool is_punctuation(char c) {
    return is_printed(c) && c != ' ' && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}
/// Behind %s and %p: no letter that could belong to them.
bool ends_here(char c) { return c == 0 || is_space(c) || is_punctuation(c); }

constexpr size_t kWidest = (1 << 23) - 1; // FIELD_WIDTH_MAX of lib/vsprintf.c

// What stands between % and the letter, and what it does to a value's text.
struct Field {
    bool left = false, zeros = false;
    std::string_view plus; // before numbers from 0
    size_t width = 0;

    void flag(char c) {
        if (c == '-') left = true;
        if (c == '0') zeros = true;
        if (c == '+') plus = "+";
        if (c == ' ' && plus.empty()) plus = " ";
    }
    void put(std::string &out, std::string_view sign, std::string_view digits) const {
        const size_t size = sign.size() + digits.size(), fill = width > size ? width - size : 0;
        if (!left && !zeros) out.append(fill, ' ');
        out += sign;
        if (!left && zeros) out.append(fill, '0');
        out += digits;
        if (left) out.append(fill, ' ');
    }
    void put_signed(std::string &out, int64_t value) const {
        const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
        put(out, value < 0 ? "-" : plus, format("{}", magnitude));
    }
    void put_text(std::string &out, std::string_view text) const {
        Field spaces = *this;
        spaces.zeros = false;
        spaces.put(out, "", text);
    }
};

} // namespace

bool bpf_printf(Machine &machine, std::string_view text, std::span<const uint64_t> arguments, std::string &out) {
    if (text.empty() || text.back() != 0) return false;
    size_t next = 0;
    for (size_t at = 0; text[at];) {
        if (static_cast<signed char>(text[at]) > 0 && !is_printed(text[at]) && !is_space(text[at]))
            return false; // UTF-8 may be there
        if (text[at] != '%') {
            out += text[at++];
            continue;
        }
        if (text[++at] == '%') {
            out += text[at++];
            continue;
        }
        if (next >= arguments.size()) return false;
        const uint64_t value = arguments[next++];
        Field field;
        for (; text[at] && std::string_view("-0+ ").find(text[at]) != std::string_view::npos; ++at) field.flag(text[at]);
        for (; text[at] >= '0' && text[at] <= '9'; ++at)
            field.width = std::min<size_t>(10 * field.width + static_cast<size_t>(text[at] - '0'), kWidest);
        if (text[at] == 'p') {
            const char kind = text[++at];
            if (kind == '%') return false;
            if (ends_here(kind)) {
                append(out, "{:016x}", value);
                continue;
            }
            ++at;
            if ((kind == 'k' || kind == 'u') && text[at] == 's') {
                if (!ends_here(text[++at])) return false;
                field.put_text(out, string_at(machine, value));
            } else if (kind == 'K' || kind == 'x') {
                append(out, "{:016x}", value);
            } else if (kind == 's' || kind == 'S' || kind == 'B') {
                append(out, "{:#x}", value);
            } else if ((kind == 'i' || kind == 'I') && (text[at] == '4' || text[at] == '6')) {
                out += ip_at(machine, value, kind == 'i', text[at++] == '6');
            } else {
                return false;
            }
            continue;
        }
        int longs = 0;
        while (longs < 2 && text[at] == 'l') ++at, ++longs;
        const char kind = text[at] ? text[at++] : '\0';
        if (kind == 'd' || kind == 'i') {
            field.put_signed(out, longs ? static_cast<int64_t>(value) : int64_t{static_cast<int32_t>(value)});
        } else if (kind == 'u' || kind == 'x' || kind == 'X') {
            const uint64_t number = longs ? value : static_cast<uint32_t>(value);
            field.put(out, "",
                      kind == 'u'   ? format("{}", number)
                      : kind == 'x' ? format("{:x}", number)
                                    : format("{:X}", number));
        } else if (kind == 'c' && !longs) {
            field.put_text(out, std::string(1, static_cast<char>(value)));
        } else if (kind == 's' && !longs && ends_here(text[at])) {
            field.put_text(out, string_at(machine, value));
        } else {
            return false;
        }
    }
    return true;
}

} // namespace rawbpf::inline v0::emulator
