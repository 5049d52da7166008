// Reads LZMA, the compression of xz and 7-Zip, from memory to memory: what a packed rawbpf unpacks itself by (README.md).
//
// A text is told as bytes (literals) and as "the same as N bytes ago, for L bytes" (matches). Each yes or no of that is one
// decision, and a range coder gives a likely decision less than a bit: it keeps an interval of numbers, each decision takes a
// part of it as wide as the decision was likely, and the number that was stored says which part:
//
//      range  |--------- 0: p -----------|---- 1: 1 - p ----|        code < bound: it was 0, and p grows by a 32nd of what it lacks
//                                        ^ bound = range / 2048 * p          else: it was 1, and p shrinks by a 32nd
//
// A model is the decisions' probabilities, chosen by what went before: `state` is of which kind the last few were. Source: the
// LZMA specification (lzma-specification.txt of the LZMA SDK, in the public domain).
//
// Nothing here calls anything: no C library is there yet. A stream may hold anything: no byte outside of `in` is read, nor
// outside of `out` written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rawbpf::packed {

constexpr int kStates = 12, kPosStates = 16, kMostLiteralBits = 4; // lc + lp

/// How the packer tuned the model (the specification's lc, lp and pb).
struct Tuning {
    uint32_t context_bits;  ///< of the byte before that choose a literal's probabilities; with the next at most kMostLiteralBits
    uint32_t literal_bits;  ///< of the position, likewise
    uint32_t position_bits; ///< of the position, for all else; at most 4
};

using Probability = uint16_t; // that it is 0, in 2048ths

struct LengthModel {
    Probability is_long, is_longest, low[kPosStates][8], middle[kPosStates][8], high[256];
};

/// 28 KB: too large for a stack that may be small.
struct Model {
    Probability is_match[kStates][kPosStates], is_again[kStates], is_other[kStates], is_third[kStates], is_fourth[kStates],
        is_more[kStates][kPosStates];
    Probability slot[4][64], near[128], align[16];
    LengthModel match_length, again_length;
    Probability literal[0x300 << kMostLiteralBits];
};

class Decoder {
  public:
    Decoder(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes, Tuning tuning, Model &model)
        : in_(in), end_(in + in_bytes), out_(out), bytes_(out_bytes), tuning_(tuning), model_(model) {}

    /// Whether the stream was so many bytes; false: it is damaged, and `out` holds what came before the damage.
    bool decode() {
        if (tuning_.context_bits + tuning_.literal_bits > kMostLiteralBits || tuning_.position_bits > 4) return false;
        auto *one = reinterpret_cast<Probability *>(&model_);
        for (size_t i = 0; i < sizeof(Model) / sizeof(Probability); ++i) one[i] = 1024;
        if (next() != 0) return false;
        for (int i = 0; i < 4; ++i) code_ = code_ << 8 | next();
        while (at_ < bytes_ && !ended_) {
            const uint32_t position = at_ & ((1u << tuning_.position_bits) - 1);
            if (bit(model_.is_match[state_][position]) == 0)
                literal();
            else if (!match(position))
                return false;
        }
        return at_ == bytes_ && !ended_;
    }

  private:
    uint8_t next() {
        if (in_ == end_) {
            ended_ = true;
            return 0;
        }
        return *in_++;
    }
    void fill() {
        if (range_ >= 1u << 24) return;
        range_ <<= 8;
        code_ = code_ << 8 | next();
    }
    uint32_t bit(Probability &zero) {
        const uint32_t bound = (range_ >> 11) * zero;
        const bool one = code_ >= bound;
        if (one) {
            range_ -= bound;
            code_ -= bound;
            zero = static_cast<Probability>(zero - (zero >> 5));
        } else {
            range_ = bound;
            zero = static_cast<Probability>(zero + ((2048 - zero) >> 5));
        }
        fill();
        return one;
    }
    // A number of so many bits, the highest first; each is expected by those above it.
    uint32_t tree(Probability *of, int bits) {
        uint32_t path = 1;
        for (int i = 0; i < bits; ++i) path = path << 1 | bit(of[path]);
        return path - (1u << bits);
    }
    // The lowest first.
    uint32_t tree_from_below(Probability *of, int bits) {
        uint32_t path = 1, number = 0;
        for (int i = 0; i < bits; ++i) {
            const uint32_t one = bit(of[path]);
            path = path << 1 | one;
            number |= one << i;
        }
        return number;
    }
    // Bits that nothing is expected of.
    uint32_t plain(int bits) {
        uint32_t number = 0;
        for (int i = 0; i < bits; ++i) {
            range_ >>= 1;
            const bool one = code_ >= range_;
            if (one) code_ -= range_;
            number = number << 1 | one;
            fill();
        }
        return number;
    }

    void literal() {
        const uint32_t before = at_ > 0 ? out_[at_ - 1] : 0;
        const uint32_t position = at_ & ((1u << tuning_.literal_bits) - 1);
        Probability *of = model_.literal + 0x300 * ((position << tuning_.context_bits) + (before >> (8 - tuning_.context_bits)));
        uint32_t path = 1;
        if (state_ >= 7) { // behind a match: what the match would have gone on with is the byte that it isn't
            uint32_t other = out_[at_ - distances_[0]];
            while (path < 0x100) {
                const uint32_t expected = other >> 7 & 1;
                other <<= 1;
                const uint32_t one = bit(of[((1 + expected) << 8) + path]);
                path = path << 1 | one;
                if (one != expected) break;
            }
        }
        while (path < 0x100) path = path << 1 | bit(of[path]);
        out_[at_++] = static_cast<uint8_t>(path);
        state_ = state_ < 4 ? 0 : state_ < 10 ? state_ - 3 : state_ - 6;
    }
    // False: it begins before the text does, or goes on behind its end.
    bool match(uint32_t position) {
        uint32_t length = 1;
        if (bit(model_.is_again[state_]) == 0) {
            distances_[3] = distances_[2];
            distances_[2] = distances_[1];
            distances_[1] = distances_[0];
            length = length_by(model_.match_length, position);
            distances_[0] = distance(length);
            state_ = state_ < 7 ? 7 : 10;
        } else if (bit(model_.is_other[state_]) != 0) {
            const int which = bit(model_.is_third[state_]) == 0 ? 1 : bit(model_.is_fourth[state_]) == 0 ? 2 : 3;
            const uint32_t again = distances_[which];
            for (int i = which; i > 0; --i) distances_[i] = distances_[i - 1];
            distances_[0] = again;
            length = length_by(model_.again_length, position);
            state_ = state_ < 7 ? 8 : 11;
        } else if (bit(model_.is_more[state_][position]) != 0) {
            length = length_by(model_.again_length, position);
            state_ = state_ < 7 ? 8 : 11;
        } else { // one byte
            state_ = state_ < 7 ? 9 : 11;
        }
        const size_t back = distances_[0];
        if (back == 0 || back > at_ || length > bytes_ - at_) return false; // 0: the end's mark, which is 2^32 here
        for (; length > 0; --length, ++at_) out_[at_] = out_[at_ - back];
        return true;
    }
    uint32_t length_by(LengthModel &of, uint32_t position) {
        if (bit(of.is_long) == 0) return 2 + tree(of.low[position], 3);
        if (bit(of.is_longest) == 0) return 10 + tree(of.middle[position], 3);
        return 18 + tree(of.high, 8);
    }
    uint32_t distance(uint32_t length) {
        const uint32_t slot = tree(model_.slot[length < 6 ? length - 2 : 3], 6);
        if (slot < 4) return slot + 1;
        const int bits = static_cast<int>(slot / 2) - 1;
        const uint32_t high = (2 | (slot & 1)) << bits;
        if (slot < 14) return high + tree_from_below(model_.near + high - slot, bits) + 1;
        return high + (plain(bits - 4) << 4) + tree_from_below(model_.align, 4) + 1;
    }

    const uint8_t *in_, *end_;
    uint8_t *out_;
    size_t bytes_, at_ = 0;
    Tuning tuning_;
    Model &model_;
    uint32_t range_ = 0xffffffff, code_ = 0, state_ = 0;
    uint32_t distances_[4] = {1, 1, 1, 1};
    bool ended_ = false;
};

} // namespace rawbpf::packed
