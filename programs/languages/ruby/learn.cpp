#include "programs/languages/ruby/learn.h"

#include <algorithm>
#include <vector>

#include "programs/languages/ruby/lines.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::ruby {
namespace {

// The first words of a context, the first of a frame, and an object's flags are what they have been since 2.5.
constexpr uint64_t kStack = 0, kStackWords = 8, kFrame = 16; // of a context
constexpr uint64_t kPosition = 0;                            // of a frame
constexpr uint32_t kType = 0x1f, kString = 5, kArray = 7;    // of an object's flags
constexpr uint32_t kIseqMask = 0xf01f, kIseq = 0x701a;       // an internal object, of the sort that is instructions
constexpr uint64_t kInstructions = 4;                        // of a body: how many words of instructions it has
constexpr uint64_t kArrayFirst = 16;
constexpr size_t kLeastFrames = 3, kMostFrames = 4096, kMostLearnt = 256;

struct Slots {
    int64_t from, to; // bytes from the thread pointer: the variables of what was there when the program began
};
Slots slots(Arch arch) { return arch == Arch::arm64 ? Slots{16, 0x1000} : Slots{-0x1000, 0}; }

struct Frames {
    int64_t slot = 0;
    uint64_t stride = 0, iseq = 0;
    std::vector<uint64_t> frames, iseqs; // only those that have instructions
};

class Learning {
  public:
    explicit Learning(Memory &memory) : memory_(memory) {}

    [[nodiscard]] static bool pointer(uint64_t word) { return word >= Pages::kPage && word % 8 == 0; }
    [[nodiscard]] uint64_t word(uint64_t at) { return memory_.word(at).value_or(0); }
    [[nodiscard]] uint32_t flags(uint64_t object) { return pointer(object) ? memory_.word32(object).value_or(0) : 0; }
    [[nodiscard]] bool is_text(uint64_t object) { return (flags(object) & kType) == kString; }
    [[nodiscard]] bool is_path(uint64_t object) {
        return is_text(object) || ((flags(object) & kType) == kArray && is_text(word(object + kArrayFirst)));
    }

    /// The frames of the context at `context`, if it is one.
    bool frames_of(uint64_t context, Frames &best) {
        if (!pointer(context)) return false;
        const uint64_t stack = word(context + kStack), words = word(context + kStackWords), leaf = word(context + kFrame);
        if (!pointer(stack) || !pointer(leaf) || words < 256 || words > 1 << 24) return false;
        const uint64_t end = stack + words * 8;
        if (leaf <= stack || leaf >= end) return false;
        for (uint64_t stride = 40; stride <= 104; stride += 8) {
            if ((end - leaf) % stride != 0 || (end - leaf) / stride > kMostFrames) continue;
            for (uint64_t iseq = 8; iseq < 40; iseq += 8) {
                Frames one{0, stride, iseq, {}, {}};
                bool all = true;
                for (uint64_t frame = leaf; all && frame + stride < end && one.frames.size() < kMostLearnt; frame += stride) {
                    const auto its = memory_.word(frame + iseq);
                    all = its && (*its == 0 || (flags(*its) & kType) == (kIseq & kType));
                    if (!all || (flags(*its) & kIseqMask) != kIseq) continue;
                    one.frames.push_back(frame);
                    one.iseqs.push_back(*its);
                }
                if (all && one.frames.size() > best.frames.size()) best = std::move(one);
            }
        }
        return !best.frames.empty();
    }

  private:
    Memory &memory_;
};

/// The first of `from`, from + 8 ... below `to` that is right for all.
template <class Right> std::optional<uint16_t> first_of(uint64_t from, uint64_t to, Right &&right) {
    for (uint64_t at = from; at < to; at += 8)
        if (right(at)) return static_cast<uint16_t>(at);
    return std::nullopt;
}

// Embedded texts say it: behind the characters is a zero.
std::optional<uint32_t> text_of(Memory &memory, Learning &learning, const std::vector<uint64_t> &texts) {
    for (const uint32_t at : {kEmbeddedShort, kEmbedded}) {
        size_t right = 0, all = 0;
        for (const uint64_t object : texts) {
            const uint32_t flags = learning.flags(object);
            if ((flags & kFar) != 0) continue;
            ++all;
            const uint64_t length = at == kEmbedded ? learning.word(object + 16) : flags >> 14 & 0x1f;
            const auto text = memory.text(object + at, 1024);
            right += text && length > 0 && text->size() == length;
        }
        if (all > 0 && right == all) return at;
    }
    return std::nullopt;
}

// Whether the entries and the index whose addresses are at `table` and `table` + 24 of a body give its positions lines.
bool has_lines(Memory &memory, Learning &learning, uint64_t body, uint64_t table, uint32_t entry, uint64_t position) {
    const uint64_t entries = learning.word(body + table), index = learning.word(body + table + 24);
    const uint32_t count = memory.word32(body + table + 16).value_or(0);
    if (!Learning::pointer(entries) || !Learning::pointer(index) || count == 0 ||
        count > memory.word32(body + kInstructions).value_or(0))
        return false;
    std::vector<std::byte> lines(uint64_t{std::min(count, 1024u)} * entry), ranks(48);
    if (!memory.read(entries, lines) || !memory.read(index, ranks)) return false;
    for (size_t at = 0; at < lines.size(); at += entry) {
        const auto line = load<int32_t>(lines.data() + at);
        if (line <= 0 || line > 10'000'000) return false;
    }
    const auto first = entry_at(ranks, 0);
    const auto its = entry_at(ranks, std::min<uint64_t>(position, 53));
    return first == 1u && its && *its >= 1 && *its <= count;
}

} // namespace

std::optional<Layout> learn(Memory &memory, const Lesson &lesson, std::string &why) {
    Learning learning(memory);
    Frames best;
    const Slots range = slots(lesson.arch);
    for (int64_t slot = range.from; slot < range.to; slot += 8) {
        const auto start = static_cast<uint64_t>(slot);
        if (std::any_of(lesson.refuted.begin(), lesson.refuted.end(),
                        [&](const LanguageProcess &way) { return way.start == start; }))
            continue;
        Frames one;
        if (!learning.frames_of(learning.word(lesson.thread_pointer + start), one) || one.frames.size() <= best.frames.size())
            continue;
        best = std::move(one);
        best.slot = slot;
    }
    const size_t n = best.frames.size();
    if (n < kLeastFrames) {
        why = memory.exhausted()        ? "too much had to be read"
              : !lesson.refuted.empty() ? "no variable of its threads leads to frames that agree with its native stacks"
                                        : format("its stacks have {} Ruby functions, and it takes {} of them", n, kLeastFrames);
        return std::nullopt;
    }
    const auto in_all = [&](auto &&right) {
        for (size_t i = 0; i < n; ++i)
            if (!right(i)) return false;
        return true;
    };

    // What sort of frame it is: of a method, a block ... as odd patterns in the upper half, with the flags below.
    const auto sort = first_of(best.iseq + 8, best.stride, [&](uint64_t at) {
        return in_all([&](size_t i) {
            const uint64_t flags = learning.word(learning.word(best.frames[i] + at));
            const uint64_t pattern = flags >> 16 & 0x7fff;
            return (flags & 1) != 0 && flags >> 32 == 0 && (pattern % 0x1111 == 0 || pattern == 0x7888 || pattern == 0x7999) &&
                   pattern != 0;
        });
    });
    if (!sort) {
        why = "no word of its frames leads to their sort";
        return std::nullopt;
    }
    std::optional<uint16_t> base;
    const auto hop = first_of(8, 64, [&](uint64_t at) {
        base = first_of(0, 64, [&](uint64_t code) {
            return in_all([&](size_t i) {
                const uint64_t body = learning.word(best.iseqs[i] + at), text = learning.word(body + code);
                const uint64_t position = learning.word(best.frames[i] + kPosition) - text;
                return Learning::pointer(body) && Learning::pointer(text) && position % 8 == 0 &&
                       position / 8 <= memory.word32(body + kInstructions).value_or(0);
            });
        });
        return base.has_value();
    });
    if (!hop) {
        why = "no word of its functions leads to the instructions that its frames are in";
        return std::nullopt;
    }
    std::vector<uint64_t> bodies, texts;
    for (const uint64_t iseq : best.iseqs) bodies.push_back(learning.word(iseq + *hop));
    const auto path = first_of(16, 200, [&](uint64_t at) {
        return in_all([&](size_t i) {
            return learning.is_path(learning.word(bodies[i] + at)) && learning.is_text(learning.word(bodies[i] + at + 8)) &&
                   learning.is_text(learning.word(bodies[i] + at + 16));
        });
    });
    if (!path) {
        why = "no word of its functions is their path and name";
        return std::nullopt;
    }
    const uint64_t label = *path + 16u, first_line = *path + 24u;
    for (const uint64_t body : bodies) texts.push_back(learning.word(body + label));
    const auto text = text_of(memory, learning, texts);
    if (!text) {
        why = "its strings are laid out in a way that isn't known";
        return std::nullopt;
    }
    uint16_t entry = 0;
    const auto table = first_of(first_line, 248 - 32, [&](uint64_t at) {
        for (const uint16_t size : {12, 8}) {
            entry = size;
            if (in_all([&](size_t i) {
                    const uint64_t position = learning.word(best.frames[i] + kPosition) - learning.word(bodies[i] + *base);
                    return has_lines(memory, learning, bodies[i], at, size, position / 8);
                }))
                return true;
        }
        return false;
    });
    if (!table) {
        why = "no words of its functions are tables of lines";
        return std::nullopt;
    }

    Layout out;
    LanguageProcess &process = out.process;
    process.start = static_cast<uint64_t>(best.slot);
    process.flags = LANGUAGE_BY_THREAD | LANGUAGE_BASE | LANGUAGE_MARK_FAR | LANGUAGE_CODE_HOP;
    process.hops = 1;
    process.hop[0] = kFrame;
    process.stride = static_cast<uint16_t>(best.stride);
    process.room = kStack;
    process.room_words = kStackWords;
    process.code = static_cast<uint16_t>(best.iseq);
    process.position = kPosition;
    process.mark = *sort;
    process.kind_mask = kIseqMask;
    process.kind_value = kIseq;
    process.code_hop = *hop;
    process.base = *base;
    process.name = static_cast<uint16_t>(label);
    process.file = *path;
    process.line = static_cast<uint16_t>(first_line);
    process.text_far = kFar;
    process.list_mask = kType;
    process.list_value = kArray;
    process.list_first = kArrayFirst;
    process.tables = LANGUAGE_TABLE_ENTRIES;
    process.table = *table;
    process.entries = static_cast<uint16_t>(*table + 16);
    process.entry = entry;
    process.index = static_cast<uint16_t>(*table + 24);
    process.window = std::max<uint32_t>(process.code, process.mark) + 8;
    process.code_bytes = process.index + 8u;
    if (process.code_bytes >= LANGUAGE_CODE_BYTES || process.window >= LANGUAGE_WINDOW) {
        why = "its functions are larger than what is looked at of them";
        return std::nullopt;
    }
    out.groups = Groups::marked;
    out.text = *text;
    // To 3.1 the first line is a number of Ruby's, odd and alone in its word; then it shares that with another one.
    out.index_bytes = in_all([&](size_t i) { return learning.word(bodies[i] + first_line) >> 32 == 0; }) ? 2 : 1;
    out.frames = n;
    return out;
}

std::string describe(const Interpreter &file, const Layout &layout) {
    std::string out = with_version("Ruby", file.version);
    const LanguageProcess &process = layout.process;
    append(
        out,
        ": context at {:+}, frames of {} bytes, iseq +{}, sort +{}, body +{}, instructions +{}, path +{}, lines +{} of {} bytes; "
        "learnt from {} frames",
        static_cast<int64_t>(process.start), process.stride, process.code, process.mark, process.code_hop, process.base,
        process.file, process.table, process.entry, layout.frames);
    return out;
}

} // namespace rawbpf::inline v0::languages::ruby
