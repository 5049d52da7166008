// Finding types by name without an index of names.
//
// An index would cost half a megabyte and more time than it saves: a tool asks for a handful of names. Comparing 126,000 names,
// each somewhere in 2.3 MB of strings, is what makes the plain way slow. So the question is turned round:
//
//      strings:  ...\0task_struct\0...\0__task_struct\0...     1. where is "task_struct\0"? 16 bytes at a time: first letter,
//                     ^ 0x4711            ^ 0x9a30                 last letter and NUL in their places, then the whole
//      types:    name_off | info | ...                         2. which types have a name_off among those? One small bit set
//                                                                  answers "no" for nearly all, the string itself for the rest
//
// A name may be the tail of another string ("task_struct" in "__task_struct"), so all occurrences count, not only whole strings.
// In step 2 each type's place depends on the length of the one before it, and a processor waits for each. The sparse index
// breaks the chain: four stretches between signposts are walked side by side.
//
// Linux 7.0 sorts the types of a kernel by name, anonymous ones first. Where a sample says so, find() searches by halving. It
// believes only what it has seen: a hit is compared, and a miss is settled by the scan. So a file that only looks sorted costs
// time, never a wrong answer.
//
// Measured on Linux 6.18 (126,585 types): step 1 takes 0.14 ms, step 2 at most 0.13 ms (0.24 and 0.1 where the
// bytes are in no cache); a binary search 10 microseconds. Debian 12's libbpf needs 7 ms to load and find, this room 0.8.
#include <algorithm>

#include "runtime/base/stable_sort.h"
#include "runtime/btf/state.h"

namespace rawbpf::inline v0::btf {

namespace {

using Lanes = int8_t __attribute__((vector_size(16)));

Lanes lanes_at(const std::byte *at) {
    Lanes value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
bool any(Lanes mask) {
    uint64_t half[2];
    std::memcpy(half, &mask, sizeof mask);
    return (half[0] | half[1]) != 0;
}

/// Calls `found` with the offset of every occurrence of `text` that is followed by a NUL or by `or_after`.
template <class F> void for_each_occurrence(Bytes in, std::string_view text, char or_after, F found) {
    const size_t length = text.size();
    if (length == 0 || in.size() <= length) return;
    const size_t end = in.size() - length; // an occurrence begins before this
    const std::byte *at = in.data();
    auto check = [&](size_t i) {
        const char next = static_cast<char>(at[i + length]);
        if ((next == '\0' || next == or_after) && std::memcmp(at + i, text.data(), length) == 0) found(i);
    };
    size_t i = 0;
    const Lanes first = Lanes{} + static_cast<int8_t>(text.front());
    const Lanes last = Lanes{} + static_cast<int8_t>(text.back());
    const Lanes nul = {}, other = nul + static_cast<int8_t>(or_after);
    for (; i + sizeof(Lanes) <= end; i += sizeof(Lanes)) {
        __builtin_prefetch(at + i + kAhead);
        const Lanes next = lanes_at(at + i + length);
        const Lanes hit =
            (lanes_at(at + i) == first) & (lanes_at(at + i + length - 1) == last) & ((next == nul) | (next == other));
        if (any(hit)) [[unlikely]]
            for (size_t j = i; j < i + sizeof(Lanes); ++j) check(j);
    }
    for (; i < end; ++i) check(i);
}

/// A set of string offsets that may say yes wrongly, never no.
class OffsetFilter {
  public:
    void add(uint32_t offset) {
        uint32_t bit = hash(offset);
        bits_[bit / 64] |= uint64_t{1} << bit % 64;
        empty_ = false;
    }
    [[nodiscard]] bool may_have(uint32_t offset) const {
        uint32_t bit = hash(offset);
        return bits_[bit / 64] >> bit % 64 & 1;
    }
    [[nodiscard]] bool empty() const { return empty_; }

  private:
    static uint32_t hash(uint32_t offset) { return offset * 0x9e3779b1u >> 19; } // 13 bits
    uint64_t bits_[128] = {};
    bool empty_ = true;
};

/// For many names at once: looks at how a type's name begins. Says yes wrongly too, never no.
class BeginningFilter {
  public:
    explicit BeginningFilter(const Btf::State &s) : state_(s) {}
    /// All flavours of it: after the name, there may be its end or an underscore.
    void add(std::string_view essential) {
        char start[kBytes + 1] = {};
        const size_t length = std::min(essential.size(), kBytes);
        std::memcpy(start, essential.data(), length);
        set(start);
        for (size_t i = length; i < kBytes; ++i) start[i] = '_';
        set(start);
    }
    [[nodiscard]] bool may_have(uint32_t offset) const {
        const size_t at = offset - state_.strings_start;
        if (offset < state_.strings_start || at + sizeof(uint32_t) > state_.strings.size()) return true;
        const uint32_t bit = hash(reinterpret_cast<const char *>(state_.strings.data()) + at);
        return bits_[bit / 64] >> bit % 64 & 1;
    }
    [[nodiscard]] bool empty() const { return empty_; }

  private:
    static constexpr size_t kBytes = 3;
    /// Of three bytes, or fewer where the name ends; four can be read.
    static uint32_t hash(const char *name) {
        uint32_t word;
        std::memcpy(&word, name, sizeof word);
        word &= (word & 0xff) == 0 ? 0 : (word & 0xff00) == 0 ? 0xff : 0xffffff; // little-endian hosts
        return word * 0x9e3779b1u >> 16;
    }
    void set(const char (&start)[kBytes + 1]) {
        const uint32_t bit = hash(start);
        bits_[bit / 64] |= uint64_t{1} << bit % 64;
        empty_ = false;
    }
    const Btf::State &state_;
    uint64_t bits_[1024] = {};
    bool empty_ = true;
};

/// The offsets, own and base's, at which `text` stands, followed by a NUL or by `or_after`.
void add_occurrences(OffsetFilter &filter, const Btf::State &s, std::string_view text, char or_after = '\0') {
    for_each_occurrence(s.strings, text, or_after, [&](size_t at) { filter.add(s.strings_start + static_cast<uint32_t>(at)); });
    if (s.base) add_occurrences(filter, *s.base, text, or_after);
}

/// Calls `wanted(id, type's bytes)` for all own types whose name offset may be in the filter, roughly in order: of two ids less
/// than 4 << shift apart the larger may come first. Stops after such a stretch when `wanted` returned true in it.
template <bool Swap, class Filter, class F> void scan(const Btf::State &s, const Filter &filter, F wanted) {
    constexpr size_t kSideBySide = 4;
    const size_t stride = size_t{1} << s.shift;
    const size_t count = s.end - s.first;
    bool done = false;
    auto step = [&](const std::byte *&at, size_t number) __attribute__((always_inline)) {
        __builtin_prefetch(at + kAhead);
        uint32_t name = load<uint32_t>(at), info = load<uint32_t>(at + 4);
        if constexpr (Swap) {
            name = byte_swap(name);
            info = byte_swap(info);
        }
        if (filter.may_have(name)) [[unlikely]]
            done |= wanted(static_cast<TypeId>(s.first + number), at);
        KindSize size = s.sizes[kind_in(info)];
        at += kTypeHeader + size.fixed + size.each * vlen_in(info);
    };
    size_t post = 0;
    for (; (post + kSideBySide) * stride <= count && !done; post += kSideBySide) {
        const std::byte *a = s.types + s.index[post], *b = s.types + s.index[post + 1];
        const std::byte *c = s.types + s.index[post + 2], *d = s.types + s.index[post + 3];
        for (size_t i = 0, number = post * stride; i < stride; ++i, ++number) {
            step(a, number);
            step(b, number + stride);
            step(c, number + 2 * stride);
            step(d, number + 3 * stride);
        }
    }
    if (done || post == s.index.size()) return;
    const std::byte *at = s.types + s.index[post];
    for (size_t number = post * stride; number < count && !done; ++number) step(at, number);
}

template <class Filter, class F> void scan(const Btf::State &s, const Filter &filter, F wanted) {
    if (filter.empty()) return;
    s.swap ? scan<true>(s, filter, wanted) : scan<false>(s, filter, wanted);
}

/// Among sorted types: the first of that name and kind, by halving.
std::optional<TypeId> find_sorted(const Btf::State &s, std::string_view name, Kind kind) {
    // The last signpost whose name is smaller: the first type of that name comes after it, before or at the next one.
    auto after =
        std::partition_point(s.index.begin(), s.index.end(), [&](uint32_t offset) { return s.name_at(s.types + offset) < name; });
    if (after == s.index.begin()) return std::nullopt; // an anonymous type is always smaller
    const std::byte *at = s.types + *(after - 1);
    TypeId id = s.first + static_cast<TypeId>((after - s.index.begin() - 1) << s.shift);
    for (; id < s.end; ++id, at += s.size_at(at)) {
        std::string_view here = s.name_at(at);
        if (here < name) continue;
        if (here != name) break;
        if (kind == Kind::void_ || kind_in(s.word(at + 4)) == static_cast<uint32_t>(kind)) return id;
    }
    return std::nullopt;
}

std::optional<TypeId> find_own(const Btf::State &s, std::string_view name, Kind kind) {
    if (s.sorted)
        if (std::optional<TypeId> id = find_sorted(s, name, kind)) return id;
    OffsetFilter filter;
    add_occurrences(filter, s, name);
    std::optional<TypeId> first;
    scan(s, filter, [&](TypeId id, const std::byte *at) {
        if (kind != Kind::void_ && kind_in(s.word(at + 4)) != static_cast<uint32_t>(kind)) return false;
        if (s.name_at(at) != name) return false;
        first = std::min(id, first.value_or(id));
        return true;
    });
    return first;
}

/// All own types that have a name in the filter and that `same` agrees to, in order.
template <class F> std::vector<TypeId> collect(const Btf::State &s, const OffsetFilter &filter, F same) {
    std::vector<TypeId> out;
    scan(s, filter, [&](TypeId id, const std::byte *at) {
        if (same(s.name_at(at))) out.push_back(id);
        return false;
    });
    stable_sort(out);
    return out;
}

} // namespace

std::string_view essential_name(std::string_view name) {
    // x___y, with neither x nor y an underscore; the last such place counts.
    for (size_t at = name.size(); at-- > 1;)
        if (at + 3 < name.size() && name.compare(at, 3, "___") == 0 && name[at - 1] != '_' && name[at + 3] != '_')
            return name.substr(0, at);
    return name;
}

std::optional<TypeId> Btf::find(std::string_view name, Kind kind) const {
    if (name.empty()) return std::nullopt;
    if (state_->base)
        if (std::optional<TypeId> id = Btf(state_->base).find(name, kind)) return id;
    return find_own(*state_, name, kind);
}

std::vector<TypeId> Btf::find_all(std::string_view name) const {
    OffsetFilter filter;
    add_occurrences(filter, *state_, name);
    return collect(*state_, filter, [&](std::string_view here) { return here == name; });
}

std::vector<TypeId> Btf::find_flavours(std::string_view essential) const {
    OffsetFilter filter;
    add_occurrences(filter, *state_, essential, '_');
    return collect(*state_, filter, [&](std::string_view here) { return essential_name(here) == essential; });
}

std::vector<std::vector<TypeId>> Btf::find_flavours(std::span<const std::string_view> essentials) const {
    std::vector<std::vector<TypeId>> out(essentials.size());
    if (essentials.size() < 2) {
        for (size_t i = 0; i < essentials.size(); ++i) out[i] = find_flavours(essentials[i]);
        return out;
    }
    std::vector<std::pair<std::string_view, size_t>> wanted;
    BeginningFilter filter(*state_);
    for (size_t i = 0; i < essentials.size(); ++i) {
        wanted.emplace_back(essentials[i], i);
        filter.add(essentials[i]);
    }
    stable_sort(wanted);
    scan(*state_, filter, [&](TypeId id, const std::byte *at) {
        const std::string_view name = essential_name(state_->name_at(at));
        for (auto w = std::lower_bound(wanted.begin(), wanted.end(), std::pair(name, size_t{0}));
             w != wanted.end() && w->first == name; ++w)
            out[w->second].push_back(id);
        return false;
    });
    for (std::vector<TypeId> &ids : out) stable_sort(ids);
    return out;
}

} // namespace rawbpf::inline v0::btf
