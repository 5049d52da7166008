// bpf_trace_printk()'s format: a part of printf's, and the kernel's own %p letters.
//
//      %[-][0][width][l|ll](d i u x X c p s)     %pks %pus: strings; %pi4 %pI4 %pi6: addresses; %px %pB %ps: an address
//
// The kernel refuses formats that it doesn't know (kernel/trace/bpf_trace.c, bpf_bprintf_prepare()); here such a part is printed
// as it stands.
#include <cinttypes>
#include <cstdio>

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
        while (at < text.size() && (text[at] == '-' || text[at] == '0' || text[at] == '+' || text[at] == ' ' || text[at] == '#'))
            ++at;
        size_t width = 0;
        for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
            width = std::min<size_t>(10 * width + (text[at] - '0'), 512);
        const std::string flags(text.substr(begin, at - begin));
        int longs = 0;
        while (at < text.size() && text[at] == 'l') ++at, ++longs;
        const char kind = at < text.size() ? text[at++] : 0;
        char buffer[600];
        auto number = [&](const char *letters, auto value) { // the flags are ours to pass on: digits and a few signs
            const std::string all = flags + letters;
            std::snprintf(buffer, sizeof buffer, all.c_str(), value);
            out += buffer;
        };
        if (flags.size() > 40) {
            out += text.substr(begin, at - begin);
        } else if (kind == 'd' || kind == 'i') {
            const uint64_t value = argument();
            number(PRId64, longs ? static_cast<int64_t>(value) : int64_t{static_cast<int32_t>(value)});
        } else if (kind == 'u' || kind == 'x' || kind == 'X') {
            const uint64_t value = argument();
            number(kind == 'u' ? PRIu64 : kind == 'x' ? PRIx64 : PRIX64, longs ? value : uint64_t{static_cast<uint32_t>(value)});
        } else if (kind == 'c') {
            number("c", static_cast<int>(argument() & 0xff));
        } else if (kind == 's') {
            number("s", string_at(machine, argument()).c_str());
        } else if (kind == 'p') {
            const std::string_view more = text.substr(at);
            if (more.starts_with("ks") || more.starts_with("us")) {
                at += 2;
                number("s", string_at(machine, argument()).c_str());
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
