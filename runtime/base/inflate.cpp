// DEFLATE (RFC 1951) inside gzip (RFC 1952) or zlib (RFC 1950). The code is small rather than fast, since its inputs have 50
// KB, or are debug sections of a megabyte or two.
//
//      1f 8b 08 flags | 4 mtime | xfl os | [extra] [name\0] [comment\0] [crc16] | blocks ... | crc32 | length
//
//      78 flags | blocks ... | adler32, big-endian                                          zlib
//
//      block:  1 bit: the last one?   2 bits: 0 stored, 1 the codes of the standard, 2 codes that come with the block
//      symbol: 0..255 a byte, 256 the block's end, 257..285 a length 3..258, followed by the code of a distance 1..32768
//
// Codes are canonical: their lengths alone define them. A code is decoded bit by bit: `first` is the smallest code of each
// length, and symbols are sorted by (length, value), so one comparison per bit finds the symbol. Every read is checked against
// the end of the input, and every output against the limit, since a few bytes of input could otherwise become a thousand times
// as many.
#include "runtime/base/inflate.h"

#include <array>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {
namespace {

constexpr int kLongest = 15;

struct Code {
    std::array<uint16_t, kLongest + 1> count{};
    std::array<uint16_t, 288> symbols{};

    /// False when the lengths say more codes than there is room for.
    bool build(const uint8_t *lengths, size_t n) {
        count.fill(0);
        for (size_t i = 0; i < n; ++i) ++count[lengths[i]];
        count[0] = 0;
        int room = 1;
        for (int bits = 1; bits <= kLongest; ++bits) {
            room = room * 2 - count[static_cast<size_t>(bits)];
            if (room < 0) return false;
        }
        std::array<uint16_t, kLongest + 2> next{};
        for (size_t bits = 1; bits <= kLongest; ++bits) next[bits + 1] = static_cast<uint16_t>(next[bits] + count[bits]);
        for (size_t i = 0; i < n; ++i)
            if (lengths[i]) symbols[next[lengths[i]]++] = static_cast<uint16_t>(i);
        return true;
    }
};

class Inflater {
  public:
    Inflater(Bytes bytes, size_t at, size_t limit, std::string &out) : bytes_(bytes), at_(at), limit_(limit), out_(out) {}

    /// nullptr, or what is wrong.
    const char *run() {
        for (bool last = false; !last;) {
            last = bits(1);
            const uint32_t kind = bits(2);
            const char *wrong = kind == 0 ? stored() : kind == 1 ? standard() : kind == 2 ? own() : "a block of unknown kind";
            if (wrong) return wrong;
            if (ended_) return "ends early";
        }
        return nullptr;
    }
    [[nodiscard]] size_t at() const { return at_; }

  private:
    uint32_t bits(int n) {
        while (held_ < n) {
            if (at_ >= bytes_.size()) {
                ended_ = true;
                return 0;
            }
            hold_ |= static_cast<uint32_t>(bytes_[at_++]) << held_;
            held_ += 8;
        }
        const uint32_t value = hold_ & ((1u << n) - 1);
        hold_ >>= n;
        held_ -= n;
        return value;
    }
    /// The next symbol; -1: there is no such code.
    int symbol(const Code &code) {
        int value = 0, first = 0, index = 0;
        for (size_t length = 1; length <= kLongest; ++length) {
            value |= static_cast<int>(bits(1));
            if (ended_) return -1;
            const int count = code.count[length];
            if (value - first < count) return code.symbols[static_cast<size_t>(index + value - first)];
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        return -1;
    }
    const char *stored() {
        hold_ = 0; // the rest of the byte is padding
        held_ = 0;
        if (bytes_.size() - at_ < 4) return "ends early";
        const size_t length = load<uint8_t>(&bytes_[at_]) | size_t{load<uint8_t>(&bytes_[at_ + 1])} << 8;
        const size_t inverse = load<uint8_t>(&bytes_[at_ + 2]) | size_t{load<uint8_t>(&bytes_[at_ + 3])} << 8;
        at_ += 4;
        if (length != (inverse ^ 0xffff)) return "a stored block with a wrong length";
        if (bytes_.size() - at_ < length) return "ends early";
        if (limit_ - out_.size() < length) return kTooLong;
        out_.append(reinterpret_cast<const char *>(bytes_.data() + at_), length);
        at_ += length;
        return nullptr;
    }
    const char *standard() {
        uint8_t lengths[288];
        for (size_t i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
        (void)literals_.build(lengths, 288);
        for (size_t i = 0; i < 30; ++i) lengths[i] = 5;
        (void)distances_.build(lengths, 30);
        return block();
    }
    const char *own() {
        constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
        const size_t literals = bits(5) + 257, distances = bits(5) + 1, codes = bits(4) + 4;
        if (literals > 286 || distances > 30) return "more codes than there are";
        uint8_t lengths[320] = {};
        for (size_t i = 0; i < codes; ++i) lengths[kOrder[i]] = static_cast<uint8_t>(bits(3));
        if (ended_ || !literals_.build(lengths, 19)) return "code lengths that can't be";
        uint8_t all[320] = {};
        for (size_t i = 0; i < literals + distances;) {
            const int next = symbol(literals_);
            if (next < 0) return "a code that isn't there";
            if (next < 16) {
                all[i++] = static_cast<uint8_t>(next);
                continue;
            }
            if (next == 16 && i == 0) return "a repetition of nothing";
            const uint8_t value = next == 16 ? all[i - 1] : 0;
            size_t times = next == 16 ? 3 + bits(2) : next == 17 ? 3 + bits(3) : 11 + bits(7);
            if (times > literals + distances - i) return "more code lengths than announced";
            for (; times; --times) all[i++] = value;
        }
        if (ended_ || all[256] == 0) return "a block without an end";
        if (!literals_.build(all, literals) || !distances_.build(all + literals, distances)) return "code lengths that can't be";
        return block();
    }
    const char *block() {
        constexpr uint16_t kLength[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                        31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
        constexpr uint8_t kLengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
        constexpr uint16_t kDistance[] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
                                          193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
        constexpr uint8_t kDistanceBits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                             6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
        for (;;) {
            const int next = symbol(literals_);
            if (next < 0) return ended_ ? "ends early" : "a code that isn't there";
            if (next == 256) return nullptr;
            if (next < 256) {
                if (out_.size() == limit_) return kTooLong;
                out_.push_back(static_cast<char>(next));
                continue;
            }
            const size_t which = static_cast<size_t>(next) - 257;
            if (which >= std::size(kLength)) return "a length that isn't there";
            const size_t length = kLength[which] + bits(kLengthBits[which]);
            const int far = symbol(distances_);
            if (far < 0 || far >= 30) return "a distance that isn't there";
            const size_t distance = kDistance[far] + bits(kDistanceBits[far]);
            if (ended_) return "ends early";
            if (distance > out_.size()) return "a distance to before the start";
            if (limit_ - out_.size() < length) return kTooLong;
            for (size_t i = 0; i < length; ++i) out_.push_back(out_[out_.size() - distance]);
        }
    }

  public:
    static constexpr const char *kTooLong = "too long";

  private:
    Bytes bytes_;
    size_t at_, limit_;
    std::string &out_;
    Code literals_, distances_;
    uint32_t hold_ = 0;
    int held_ = 0;
    bool ended_ = false;
};

uint32_t crc32(std::string_view text) {
    uint32_t crc = ~0u;
    for (const char c : text) {
        crc ^= static_cast<uint8_t>(c);
        for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

uint32_t adler32(std::string_view text) {
    uint32_t a = 1, b = 0;
    for (const char c : text) {
        a = (a + static_cast<uint8_t>(c)) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

// Where the stream of blocks that begins at `at` ends.
Result<size_t> inflate(Bytes bytes, size_t at, std::string_view what, size_t limit, std::string &out) {
    Inflater inflater(bytes, at, limit, out);
    if (const char *wrong = inflater.run()) {
        if (wrong == Inflater::kTooLong) return fail(Errc::no_memory, "{}: comes to more than {} bytes", what, limit);
        return fail(Errc::bad_input, "{}: offset {:#x}: damaged: {}", what, inflater.at(), wrong);
    }
    return inflater.at();
}

} // namespace

Result<std::string> unzlib(Bytes bytes, std::string_view what, size_t limit) {
    constexpr unsigned kDictionary = 32;
    const auto byte = [&](size_t at) { return static_cast<uint32_t>(bytes[at]); };
    if (bytes.size() < 2 || (byte(0) & 15) != 8 || (byte(0) << 8 | byte(1)) % 31 != 0 || byte(1) & kDictionary)
        return fail(Errc::bad_input, "{}: no zlib stream", what);
    std::string out;
    const size_t end = TRY(inflate(bytes, 2, what, limit, out));
    if (bytes.size() - end < 4) return fail(Errc::bad_input, "{}: ends before its checksum", what);
    if ((byte(end) << 24 | byte(end + 1) << 16 | byte(end + 2) << 8 | byte(end + 3)) != adler32(out))
        return fail(Errc::bad_input, "{}: damaged: the checksum is wrong", what);
    return out;
}

Result<std::string> gunzip(Bytes bytes, std::string_view what, size_t limit) {
    constexpr uint8_t kCrc = 2, kExtra = 4, kName = 8, kComment = 16;
    ByteReader reader(bytes, what);
    const uint8_t first = TRY(reader.read<uint8_t>()), second = TRY(reader.read<uint8_t>());
    const uint8_t method = TRY(reader.read<uint8_t>()), flags = TRY(reader.read<uint8_t>());
    if (first != 0x1f || second != 0x8b || method != 8) return fail(Errc::bad_input, "{}: no gzip file", what);
    TRY(reader.skip(6));
    if (flags & kExtra) {
        const size_t low = TRY(reader.read<uint8_t>()), high = TRY(reader.read<uint8_t>());
        TRY(reader.skip(low | high << 8));
    }
    if (flags & kName) TRY(reader.c_string());
    if (flags & kComment) TRY(reader.c_string());
    if (flags & kCrc) TRY(reader.skip(2));

    std::string out;
    const size_t end = TRY(inflate(bytes, reader.offset(), what, limit, out));
    if (bytes.size() - end < 8) return fail(Errc::bad_input, "{}: ends before its checksum", what);
    auto word = [&](size_t at) {
        uint32_t value = 0;
        for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
        return value;
    };
    if (word(end) != crc32(out) || word(end + 4) != static_cast<uint32_t>(out.size()))
        return fail(Errc::bad_input, "{}: damaged: the checksum or the length is wrong", what);
    return out;
}

} // namespace rawbpf::inline v0
