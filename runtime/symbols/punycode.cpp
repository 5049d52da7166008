// Punycode, decoding only (RFC 3492, section 6.2). The ASCII letters of a word come first, then one number for each other
// letter, which says both which letter it is and where it goes:
//
//     mangled  "gdel_5qa"   = "gdel" + 5qa    -> "gödel"
//                              basic   delta: position and code point in one, in base 36 with variable-length digits
//
// The deltas count through all (code point, position) pairs in order, so the decoder is one running counter.
#include "runtime/symbols/punycode.h"

#include <cstdint>
#include <vector>

#include "runtime/symbols/utf8.h"

namespace rawbpf::inline v0::symbols {
namespace {

// The RFC's parameters (section 5).
constexpr uint32_t kBase = 36, kTMin = 1, kTMax = 26, kSkew = 38, kDamp = 700, kInitialBias = 72, kInitialN = 0x80;
constexpr size_t kMaxLetters = 256;

uint32_t adapt(uint32_t delta, uint32_t points, bool first) {
    delta = first ? delta / kDamp : delta / 2;
    delta += delta / points;
    uint32_t k = 0;
    for (; delta > (kBase - kTMin) * kTMax / 2; k += kBase) delta /= kBase - kTMin;
    return k + (kBase - kTMin + 1) * delta / (delta + kSkew);
}

int digit_value(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    if (c >= '0' && c <= '9') return c - '0' + 26;
    return -1;
}

} // namespace

std::optional<std::string> decode_punycode(std::string_view text) {
    std::vector<uint32_t> letters;
    if (size_t separator = text.rfind('_'); separator != std::string_view::npos) {
        if (separator > kMaxLetters) return std::nullopt;
        for (char c : text.substr(0, separator)) letters.push_back(static_cast<unsigned char>(c));
        text.remove_prefix(separator + 1);
    }
    if (text.empty()) return std::nullopt;
    uint32_t n = kInitialN, i = 0, bias = kInitialBias;
    size_t at = 0;
    while (at < text.size()) {
        uint32_t before = i, weight = 1;
        for (uint32_t k = kBase;; k += kBase) {
            int digit = at < text.size() ? digit_value(text[at++]) : -1;
            uint32_t step = 0;
            if (digit < 0 || __builtin_mul_overflow(static_cast<uint32_t>(digit), weight, &step) ||
                __builtin_add_overflow(i, step, &i))
                return std::nullopt;
            uint32_t threshold = k <= bias ? kTMin : k >= bias + kTMax ? kTMax : k - bias;
            if (static_cast<uint32_t>(digit) < threshold) break;
            if (__builtin_mul_overflow(weight, kBase - threshold, &weight)) return std::nullopt;
        }
        uint32_t count = static_cast<uint32_t>(letters.size()) + 1;
        if (count > kMaxLetters) return std::nullopt;
        bias = adapt(i - before, count, before == 0);
        if (__builtin_add_overflow(n, i / count, &n)) return std::nullopt;
        i %= count;
        letters.insert(letters.begin() + i, n);
        ++i;
    }
    std::string out;
    for (uint32_t letter : letters)
        if (!append_utf8(out, letter)) return std::nullopt;
    return out;
}

} // namespace rawbpf::inline v0::symbols
