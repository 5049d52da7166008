#include "programs/languages/php/learn.h"

#include <algorithm>
#include <vector>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::php {
namespace {

constexpr uint64_t kGlobalWords = 384;     // of executor_globals
constexpr uint64_t kFrameWords = 10;       // of a frame
constexpr uint64_t kFunctionWords = 30;    // of a function
constexpr uint64_t kName = 8, kScope = 16; // in a function
constexpr uint64_t kClassName = 8;         // in a class
constexpr uint64_t kInstruction = 32;      // bytes
constexpr size_t kLeastFrames = 2, kMostFrames = 512;
constexpr uint64_t kMostText = 4096;
constexpr uint32_t kMostLines = 10'000'000;

struct Chain {
    uint64_t function = 0, previous = 0;     // bytes in a frame
    std::vector<uint64_t> frames, functions; // leaf first; function 0: none
    size_t count = 0;                        // of functions
};

class Learning {
  public:
    explicit Learning(Memory &memory) : memory_(memory) {}

    [[nodiscard]] static bool pointer(uint64_t word) { return word >= Pages::kPage && word % 8 == 0; }

    /// A zend_string: its type is 6, and behind its characters is a zero.
    [[nodiscard]] bool is_text(uint64_t at) {
        if (!pointer(at)) return false;
        const auto type = memory_.word32(at + 4);
        const auto length = memory_.word(at + kTextLength);
        if (!type || (*type & 0xf) != 6 || !length || *length == 0 || *length > kMostText) return false;
        std::byte last{1};
        return memory_.read(at + kText + *length, std::span(&last, 1)) && last == std::byte{0};
    }
    [[nodiscard]] std::string text(uint64_t at) {
        const uint64_t length = memory_.word(at + kTextLength).value_or(0);
        std::string out(std::min(length, kMostText), '\0');
        if (!memory_.read(at + kText, std::as_writable_bytes(std::span(out)))) out.clear();
        return out;
    }
    [[nodiscard]] uint8_t type(uint64_t function) {
        uint8_t out = 0;
        return memory_.read(function, std::as_writable_bytes(std::span(&out, 1))) ? out : 0;
    }
    [[nodiscard]] bool of_script(uint64_t function) { return function != 0 && (type(function) == 2 || type(function) == 4); }
    [[nodiscard]] bool is_function(uint64_t at) {
        if (!pointer(at)) return false;
        const uint8_t kind = type(at);
        if (kind != 1 && kind != 2 && kind != 4) return false;
        const auto name = memory_.word(at + kName), scope = memory_.word(at + kScope);
        if (!name || !scope || (*name == 0 ? kind == 1 : !is_text(*name))) return false;
        return *scope == 0 || (pointer(*scope) && is_text(memory_.word(*scope + kClassName).value_or(0)));
    }

    bool follow(uint64_t frame, uint64_t function, uint64_t previous, Chain &out) {
        out = {function, previous, {}, {}, 0};
        for (uint64_t at = frame; at != 0;) {
            if (out.frames.size() >= kMostFrames || !pointer(at)) return false;
            const auto its = memory_.word(at + function), next = memory_.word(at + previous);
            if (!its || !next || (*its != 0 && !is_function(*its))) return false; // generators have frames without
            out.frames.push_back(at);
            out.functions.push_back(*its);
            out.count += *its != 0;
            at = *next;
        }
        return of_script(out.functions.back());
    }

    Chain longest(uint64_t frame) {
        Chain best, one;
        for (uint64_t function = 0; function < kFrameWords; ++function) {
            const auto word = memory_.word(frame + function * 8);
            if (!word) break;
            if (*word != 0 && !is_function(*word)) continue;
            for (uint64_t previous = 0; previous < kFrameWords; ++previous)
                if (previous != function && follow(frame, function * 8, previous * 8, one) && one.count > best.count) best = one;
        }
        return best;
    }

  private:
    Memory &memory_;
};

struct Lines {
    uint16_t file, position, line; // in a function, in a frame, in an instruction
};

// Three words at once, since each proves the others: a path with lines behind it, and an instruction that has one of them.
std::optional<Lines> lines_of(Memory &memory, Learning &learning, const Chain &chain) {
    const auto instruction_has = [&](uint64_t position, uint64_t line, const std::vector<std::pair<uint32_t, uint32_t>> &ranges) {
        size_t within = 0, n = 0;
        for (size_t i = 0; i < chain.frames.size(); ++i) {
            if (!learning.of_script(chain.functions[i])) continue;
            const auto at = memory.word(chain.frames[i] + position);
            const uint32_t number = at && Learning::pointer(*at) ? memory.word32(*at + line).value_or(0) : 0;
            within += number >= ranges[n].first && number <= ranges[n].second;
            ++n;
        }
        return within == n;
    };
    for (uint64_t file = kScope + 8; file < kFunctionWords * 8; file += 8) {
        std::vector<std::pair<uint32_t, uint32_t>> ranges;
        for (const uint64_t function : chain.functions) {
            if (!learning.of_script(function)) continue;
            const uint64_t path = memory.word(function + file).value_or(0);
            const auto first = memory.word32(function + file + 8), last = memory.word32(function + file + 12);
            if (!learning.is_text(path) || !first || !last || *first > *last || *first == 0 || *last > kMostLines) {
                ranges.clear();
                break;
            }
            ranges.emplace_back(*first, *last);
        }
        if (ranges.empty()) continue;
        for (uint64_t position = 0; position < kFrameWords * 8; position += 8)
            for (uint64_t line = kInstruction - 4; line >= 8; line -= 4) // the last first: small numbers are operands as well
                if (instruction_has(position, line, ranges))
                    return Lines{static_cast<uint16_t>(file), static_cast<uint16_t>(position), static_cast<uint16_t>(line)};
    }
    return std::nullopt;
}

} // namespace

std::optional<Layout> learn(Memory &memory, const Lesson &lesson, std::string &why) {
    Learning learning(memory);
    const uint64_t globals = lesson.file.address("executor_globals") + lesson.bias;
    Chain best;
    uint64_t where = 0;
    for (uint64_t at = 0; at < kGlobalWords * 8; at += 8) {
        const auto frame = memory.word(globals + at);
        if (!frame) break;
        if (!Learning::pointer(*frame)) continue;
        const uint64_t start = globals + at - lesson.bias;
        if (std::any_of(lesson.refuted.begin(), lesson.refuted.end(),
                        [&](const LanguageProcess &way) { return way.start == start; }))
            continue;
        if (Chain chain = learning.longest(*frame); chain.count > best.count) {
            best = std::move(chain);
            where = at;
        }
    }
    if (best.count < kLeastFrames) {
        why = memory.exhausted() ? "too much had to be read"
              : !lesson.refuted.empty()
                  ? "no word of executor_globals leads to frames that agree with its native stacks"
                  : format("its stacks have {} PHP functions, and it takes {} of them", best.count, kLeastFrames);
        return std::nullopt;
    }
    const auto lines = lines_of(memory, learning, best);
    if (!lines) {
        why = "no word of its functions and frames says which line they are in";
        return std::nullopt;
    }
    // A frame's flags are in the value that is in front of its caller's address: `this`, whose type leaves room.
    if (best.previous < 8) {
        why = "its frames have no room for their flags";
        return std::nullopt;
    }
    const uint64_t mark = best.previous - 6;
    uint8_t root = 0;
    if (!memory.read(best.frames.back() + mark, std::as_writable_bytes(std::span(&root, 1))) ||
        (root & (kCode | kTop)) != (kCode | kTop)) {
        why = "the flags of its outermost frame don't say that it is a script";
        return std::nullopt;
    }
    Layout out;
    LanguageProcess &process = out.process;
    process.start = globals + where;
    process.flags = LANGUAGE_COPIED | LANGUAGE_OWNER | LANGUAGE_LINES; // closures' functions are copies
    process.code = static_cast<uint16_t>(best.function);
    process.previous = static_cast<uint16_t>(best.previous);
    process.position = lines->position;
    process.mark = static_cast<uint16_t>(mark);
    process.line_of = lines->line;
    process.name = kName;
    process.owner = kScope;
    process.owner_hops = 1;
    process.owner_hop[0] = kClassName;
    process.file = lines->file;
    process.line = static_cast<uint16_t>(lines->file + 8);
    process.table = lines->file; // no table: lines come with the frames
    process.tables = LANGUAGE_TABLE_NONE;
    process.code_bytes = process.line + 8u;
    process.code_short = kScope + 8;
    process.kind_mask = 1; // of the types 1 is internal, which is odd alone
    process.kind_value = 0;
    process.window = std::max<uint32_t>({process.code, process.previous, process.position}) + 8;
    out.groups = Groups::marked;
    out.text = kText;
    out.frames = best.count;
    return out;
}

std::string describe(const Interpreter &file, const Layout &layout) {
    std::string out = with_version("PHP", file.version);
    const LanguageProcess &process = layout.process;
    append(out,
           ": frame at executor_globals +{}, function +{}, caller +{}, position +{}; file +{}, line of an instruction +{}; "
           "learnt from {} frames",
           process.start - file.address("executor_globals"), process.code, process.previous, process.position, process.file,
           process.line_of, layout.frames);
    return out;
}

} // namespace rawbpf::inline v0::languages::php
