// Bloom filters, identical to the kernel's (kernel/bpf/bloom_filter.c, 5.16): with BPF_F_ZERO_SEED they have false positives
// for the same values as the kernel. Without it the kernel uses a random seed; here it is always 0, so that every run is the
// same.
//
//      bits: max_entries * functions * 7/5, up to the next power of two          bit n = jhash(value, seed 0 + n) & mask
//
// jhash is lookup3 (Bob Jenkins, 2006, public domain), as in include/linux/jhash.h. On a little-endian machine its variants
// for words and for bytes have the same results, so there is only one here.
#include <bit>
#include <cerrno>

#include "runtime/emulator/maps.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {

uint32_t lookup3(const uint8_t *key, uint32_t length, uint32_t seed) {
    uint32_t a = 0xdeadbeef + length + seed, b = a, c = a;
    auto word = [](const uint8_t *from, uint32_t bytes) { // the bytes that there are
        uint32_t out = 0;
        for (uint32_t n = 0; n < 4 && n < bytes; ++n) out |= uint32_t{from[n]} << 8 * n;
        return out;
    };
    auto part = [&](uint32_t from) { return from < length ? word(key + from, length - from) : 0; };
    for (; length > 12; length -= 12, key += 12) {
        a += word(key, 4);
        b += word(key + 4, 4);
        c += word(key + 8, 4);
        a = (a - c) ^ std::rotl(c, 4), c += b;
        b = (b - a) ^ std::rotl(a, 6), a += c;
        c = (c - b) ^ std::rotl(b, 8), b += a;
        a = (a - c) ^ std::rotl(c, 16), c += b;
        b = (b - a) ^ std::rotl(a, 19), a += c;
        c = (c - b) ^ std::rotl(b, 4), b += a;
    }
    if (length == 0) return c;
    a += part(0);
    b += part(4);
    c += part(8);
    c = (c ^ b) - std::rotl(b, 14);
    a = (a ^ c) - std::rotl(c, 11);
    b = (b ^ a) - std::rotl(a, 25);
    c = (c ^ b) - std::rotl(b, 16);
    a = (a ^ c) - std::rotl(c, 4);
    b = (b ^ a) - std::rotl(a, 14);
    c = (c ^ b) - std::rotl(b, 24);
    return c;
}

} // namespace

uint32_t EmulatedMap::bloom_bit(const uint8_t *value, uint32_t function) const {
    return lookup3(value, value_size_, function) & bloom_mask_;
}

int64_t EmulatedMap::add(const uint8_t *value, uint64_t flags) {
    if (flags != BPF_ANY) return -EINVAL;
    for (uint32_t n = 0; n < bloom_functions_; ++n) {
        const uint32_t bit = bloom_bit(value, n);
        set(values_[bit / 8], static_cast<uint8_t>(values_[bit / 8] | 1U << bit % 8));
    }
    return 0;
}

int64_t EmulatedMap::may_contain(const uint8_t *value) const {
    for (uint32_t n = 0; n < bloom_functions_; ++n) {
        const uint32_t bit = bloom_bit(value, n);
        if (!(values_[bit / 8] >> bit % 8 & 1)) return -ENOENT;
    }
    return 0;
}

} // namespace rawbpf::inline v0::emulator
