// What inet_ntop(3) prints. The C library's own prints by sprintf, which brings locales, stdio and their tables into a static
// executable: a sixth of it, and cli/static, which stands in for <ctype.h>, would then be there twice.
//
// RFC 5952: the longest run of zero groups, of two at least and the first of equals, becomes "::"; groups have no leading zeroes;
// an IPv4 address in the last 32 bits (::ffff:0:0/96, ::/96) is written with dots.
#include "programs/trace/address.h"

#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {

void append_ipv4(std::string &out, const uint8_t *bytes) { append(out, "{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]); }

void append_ipv6(std::string &out, const uint8_t *bytes) {
    constexpr int kGroups = 8;
    uint16_t groups[kGroups];
    for (int i = 0; i < kGroups; ++i) groups[i] = static_cast<uint16_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    int best = -1, length = 1;
    for (int i = 0; i < kGroups; ++i) {
        int end = i;
        while (end < kGroups && groups[end] == 0) ++end;
        if (end - i > length) best = i, length = end - i;
        i = end;
    }
    const bool dots = best == 0 && (length == 6 || (length == 5 && groups[5] == 0xffff));
    for (int i = 0; i < (dots ? 6 : kGroups); ++i) {
        if (i == best) {
            out += "::";
            i += length - 1;
            continue;
        }
        if (i > 0 && i != best + length) out += ':';
        append(out, "{:x}", groups[i]);
    }
    if (!dots) return;
    if (length == 5) out += ':';
    append_ipv4(out, bytes + 12);
}

} // namespace rawbpf::inline v0::trace
