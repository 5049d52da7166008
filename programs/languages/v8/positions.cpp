#include "programs/languages/v8/positions.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rawbpf::inline v0::languages::v8 {
namespace {

/// Numbers of seven bits a byte.
class Reader {
  public:
    explicit Reader(Bytes bytes) : left_(bytes) {}
    [[nodiscard]] bool done() const { return left_.empty(); }
    /// nullopt: it has no end, or is too large.
    std::optional<uint64_t> number() {
        uint64_t out = 0;
        for (unsigned shift = 0; shift < 63 && !left_.empty(); shift += 7) {
            const auto byte = static_cast<uint8_t>(left_.front());
            left_ = left_.subspan(1);
            out |= uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) return out;
        }
        return std::nullopt;
    }
    /// The lowest bit is the sign.
    std::optional<int64_t> difference() {
        const auto its = number();
        if (!its) return std::nullopt;
        const auto half = static_cast<int64_t>(*its >> 1);
        return (*its & 1) != 0 ? -half - 1 : half;
    }

  private:
    Bytes left_;
};

/// A place in the source as V8 has it in one word (SourcePosition): external? | text + 1: 30 bits | inlining + 1: 16 bits.
struct Word {
    int32_t text, inlined;
};

std::optional<Word> split(uint64_t word) {
    constexpr uint64_t kExternal = 1, kText = (1u << 30) - 1, kInlined = (1u << 16) - 1;
    if ((word & kExternal) != 0 || word >> 47 != 0) return std::nullopt;
    return Word{static_cast<int32_t>(word >> 1 & kText) - 1, static_cast<int32_t>(word >> 31 & kInlined) - 1};
}

} // namespace

std::optional<std::vector<Position>> read_positions(Bytes table, const Limits &limits) {
    std::vector<Position> out;
    Reader reader(table);
    int64_t code = -1, word = 0;
    while (!reader.done()) {
        const auto forward = reader.difference();
        const auto further = forward ? reader.difference() : std::nullopt;
        if (!further || __builtin_add_overflow(word, *further, &word) || word < 0) return std::nullopt;
        // Only forward: its sign says whether a statement begins.
        const int64_t by = *forward >= 0 ? *forward : -(*forward + 1);
        if (__builtin_add_overflow(code, by, &code) || code >= int64_t{limits.code}) return std::nullopt;
        const auto split_word = split(static_cast<uint64_t>(word));
        if (!split_word || split_word->inlined >= static_cast<int64_t>(limits.inlined)) return std::nullopt;
        const bool own = split_word->inlined < 0;
        if (own && (split_word->text < 0 || split_word->text > static_cast<int64_t>(limits.text))) return std::nullopt;
        out.push_back({static_cast<int32_t>(code), split_word->text, split_word->inlined});
    }
    return out.empty() ? std::nullopt : std::optional(std::move(out));
}

const Position *position_at(std::span<const Position> positions, int32_t code) {
    const auto next = std::upper_bound(positions.begin(), positions.end(), code,
                                       [](int32_t wanted, const Position &position) { return wanted < position.code; });
    return next == positions.begin() ? nullptr : &*(next - 1);
}

std::optional<std::vector<Inlining>> read_inlinings(Bytes table) {
    constexpr size_t kBytes = 16; // the calling place, the function; four bytes behind have no meaning
    if (table.size() % kBytes != 0) return std::nullopt;
    std::vector<Inlining> out;
    for (; !table.empty(); table = table.subspan(kBytes)) {
        const auto place = split(load<uint64_t>(table.data()));
        const auto function = load<int32_t>(table.data() + sizeof(uint64_t));
        if (!place || function < -1 || place->inlined >= static_cast<int64_t>(out.size())) return std::nullopt;
        out.push_back({place->text, place->inlined, function});
    }
    return out;
}

// The first bytecodes are two prefixes, the same for debuggers, and what a debugger puts in the place of bytecodes that have no
// operand, one, two, three, four. A bytecode's operands grow with what stands in front of it, or are always as large; so twice
// what the second row is larger than the first, the third is larger than the second.
std::optional<BytecodeSizes> BytecodeSizes::find(Bytes file) {
    constexpr std::array<uint8_t, 9> kSecond = {1, 1, 1, 1, 1, 3, 5, 7, 9};
    constexpr size_t kFewest = 64, kMost = 256;
    const auto *const begin = reinterpret_cast<const uint8_t *>(file.data()), *const end = begin + file.size();
    for (const uint8_t *at = begin; at != end; ++at) {
        const size_t left = static_cast<size_t>(end - at);
        at = static_cast<const uint8_t *>(memmem(at, left, kSecond.data(), kSecond.size()));
        if (!at) return std::nullopt;
        for (size_t count = kFewest; count <= kMost; ++count) {
            if (count > static_cast<size_t>(at - begin) || 2 * count > static_cast<size_t>(end - at)) break;
            const uint8_t *const first = at - count, *const third = at + count;
            bool right = first[kSecond.size() - 1] == 5;
            for (size_t i = 0; right && i < count; ++i)
                right = first[i] != 0 && at[i] >= first[i] && third[i] - at[i] == 2 * (at[i] - first[i]);
            if (right) return BytecodeSizes(file.subspan(static_cast<size_t>(first - begin), 3 * count));
        }
    }
    return std::nullopt;
}

BytecodeSizes::BytecodeSizes(Bytes table) : sizes_(table.size() / 3 * 3) {
    for (size_t i = 0; i < sizes_.size(); ++i) sizes_[i] = static_cast<uint8_t>(table[i]);
}

uint32_t BytecodeSizes::of(Bytes bytecodes) const {
    if (bytecodes.empty()) return 0;
    const size_t count = sizes_.size() / 3;
    const auto first = static_cast<uint8_t>(bytecodes[0]);
    const bool prefix = first < 4; // two bytes, four; and both for debuggers
    if (prefix && bytecodes.size() < 2) return 0;
    const size_t row = prefix ? first % 2 + 1 : 0;
    const size_t number = static_cast<uint8_t>(bytecodes[prefix ? 1 : 0]);
    const uint32_t size = number < count ? sizes_[row * count + number] + (prefix ? 1u : 0u) : 0;
    return size <= bytecodes.size() ? size : 0;
}

// The first number is of what comes before any bytecode.
std::optional<int32_t> bytecode_at(Bytes table, Bytes bytecodes, const BytecodeSizes &sizes, uint32_t at) {
    Reader reader(table);
    std::optional<int32_t> found;
    int32_t bytecode = -1;
    size_t next = 0;
    uint64_t end = 0;
    while (!reader.done()) {
        const auto length = reader.number();
        if (!length || __builtin_add_overflow(end, *length, &end)) return std::nullopt;
        if (!found && at < end) found = bytecode;
        bytecode = static_cast<int32_t>(next);
        if (reader.done()) break;
        const uint32_t size = sizes.of(bytecodes.subspan(next));
        if (size == 0) return std::nullopt;
        next += size;
    }
    return next == bytecodes.size() ? found : std::nullopt;
}

} // namespace rawbpf::inline v0::languages::v8
