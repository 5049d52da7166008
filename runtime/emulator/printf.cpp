// bpf_trace_printk()'s format: a part of printf's, and the kernel's own %p letters.
//
//      %[-0+ ][width][l|ll](d i u x X c p s)     %pks %pus: strings; %pi4 %pI4 %pi6: addresses; %px %pB %ps: an address
//
// The kernel refuses formats that it doesn't know (kernel/trace/bpf_trace.c, bpf_bprintf_prepare()); here such a part is printed
// as it stands.
#include <algorithm>

#include "runtime/emulator/machine.h"

namespace rawbpf::inline v0::emulator {

namespace {

std::string string_at(const Machine &machine, uint64_t address) {
    std::string out;
    for (uint64_t n = 0; n < 512; ++n) {
        const uint8_t *at = machine.memory().find(address + n, 1, false);
        if (!at) return n ? out : "(unreadable)";
        if (!*at) break;
        out += static_cast<char>(*at);
    }
    return out;
}

constexpr size_t kWidest = 512;

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

std::string bpf_printf(Machine &machine, std::string_view text, std::span<const uint64_t> arguments) {
    std::string out;
    size_t next = 0;
    auto argument = [&] { return next < arguments.size() ? arguments[next++] : 0; };
    for (size_t at = 0; at < text.size();) {
        if (text[at] != '%') {
            out += text[at++];
            continue;
        }
        const size_t begin = at++;
        if (at < text.size() && text[at] == '%') {
            out += text[at++];
            continue;
        }
        Field field;
        for (; at < text.size() && std::string_view("-0+ ").find(text[at]) != std::string_view::npos; ++at) field.flag(text[at]);
        for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
            field.width = std::min<size_t>(10 * field.width + static_cast<size_t>(text[at] - '0'), kWidest);
        int longs = 0;
        while (at < text.size() && text[at] == 'l') ++at, ++longs;
        const char kind = at < text.size() ? text[at++] : 0;
        if (kind == 'd' || kind == 'i') {
            const uint64_t value = argument();
            field.put_signed(out, longs ? static_cast<int64_t>(value) : int64_t{static_cast<int32_t>(value)});
        } else if (kind == 'u' || kind == 'x' || kind == 'X') {
            const uint64_t value = longs ? argument() : static_cast<uint32_t>(argument());
            field.put(out, "", kind == 'u' ? format("{}", value) : kind == 'x' ? format("{:x}", value) : format("{:X}", value));
        } else if (kind == 'c') {
            field.put_text(out, std::string(1, static_cast<char>(argument())));
        } else if (kind == 's') {
            field.put_text(out, string_at(machine, argument()));
        } else if (kind == 'p') {
            const std::string_view more = text.substr(at);
            if (more.starts_with("ks") || more.starts_with("us")) {
                at += 2;
                field.put_text(out, string_at(machine, argument()));
            } else if (more.starts_with("i4") || more.starts_with("I4")) {
                at += 2;
                if (const uint8_t *ip = machine.memory().find(argument(), 4, false))
                    append(out, "{}.{}.{}.{}", ip[0], ip[1], ip[2], ip[3]);
            } else {
                if (!more.empty() && (more[0] == 'x' || more[0] == 'B' || more[0] == 's' || more[0] == 'S')) ++at;
                append(out, "{:#x}", argument());
            }
        } else {
            out += text.substr(begin, at - begin);
        }
    }
    return out;
}

} // namespace rawbpf::inline v0::emulator
