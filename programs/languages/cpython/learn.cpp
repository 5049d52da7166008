#include "programs/languages/cpython/learn.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::cpython {
namespace {

constexpr uint64_t kMemberBytes = 40, kMemberOffset = 16; // PyMemberDef

constexpr uint64_t kStateWords = 64; // of a thread state that may lead to a frame
constexpr uint64_t kHopWords = 8;    // of what lies in between
constexpr uint64_t kFrameWords = 13; // of a frame: code and caller
constexpr size_t kLeastFrames = 3, kMostFrames = 512;
constexpr uint64_t kMostCode = 1 << 24; // bytes of a function's instructions

/// Where each object has its type, and types what they say (Include/object.h, the same since 2.7 on 64 bits but for the head).
struct Objects {
    uint64_t head; // bytes in front of what an object is; 32 where there is no lock of the interpreter (3.13)
    [[nodiscard]] uint64_t type() const { return head - 8; }
    [[nodiscard]] uint64_t length() const { return head; } // of a string, of bytes, of a code object's instructions
    [[nodiscard]] uint64_t bytes() const { return head + 16; }
    [[nodiscard]] uint64_t basic_size() const { return head + 16; } // of a type, as the next two
    [[nodiscard]] uint64_t item_size() const { return head + 24; }
    [[nodiscard]] uint64_t members() const { return head + 224; }
};
constexpr Objects kHeads[] = {{16}, {32}};

struct Slots {
    int64_t from, to; // bytes from the thread pointer
};
// Where a thread has its values. By a key: glibc's struct pthread begins at the thread pointer on x86_64 and ends there on arm64;
// its first block of 32 values is in it. By a variable of its own, as from 3.15 on: those are on the other side.
constexpr Slots kSlots[] = {{0x100, 0x700}, {-0x800, 0}}, kSlotsArm64[] = {{-0x780, 0}, {0x10, 0x810}};
std::span<const Slots> slots(Arch arch) { return arch == Arch::arm64 ? kSlotsArm64 : kSlots; }

struct Chain {
    uint64_t code = 0, previous = 0;     // bytes in a frame
    std::vector<uint64_t> frames, codes; // leaf first; code 0: a frame that is no function's
    size_t functions = 0;
};

struct Way {
    int64_t slot; // from the thread's pointer
    std::vector<uint64_t> hops;
    Chain chain;
    [[nodiscard]] bool is(const LanguageProcess &other) const {
        return static_cast<uint64_t>(slot) == other.start && hops.size() == other.hops &&
               std::equal(hops.begin(), hops.end(), other.hop);
    }
};

class Learning {
  public:
    Learning(Memory &memory, const Build &build) : memory_(memory), build_(build) {
        for (const Objects &one : kHeads) {
            objects = one;
            of_code = members(build.code_type);
            if (of_code.contains("co_filename")) break;
        }
    }

    [[nodiscard]] std::map<std::string, uint32_t, std::less<>> members(uint64_t type) {
        std::map<std::string, uint32_t, std::less<>> out;
        const uint64_t table = memory_.word(type + objects.members()).value_or(0);
        for (uint64_t i = 0; table != 0 && i < 64; ++i) {
            const uint64_t at = table + i * kMemberBytes;
            const uint64_t name = memory_.word(at).value_or(0), offset = memory_.word(at + kMemberOffset).value_or(UINT64_MAX);
            if (name == 0) break;
            if (auto text = memory_.text(name, 40); text && offset < 4096) out[*text] = static_cast<uint32_t>(offset);
        }
        return out;
    }

    [[nodiscard]] bool is_code(uint64_t object) {
        return object >= Pages::kPage && object % 8 == 0 && memory_.word(object + objects.type()) == build_.code_type;
    }
    [[nodiscard]] static uint64_t untagged(uint64_t word) { return word & ~uint64_t{7}; }

    /// The chain from this frame on, if it is one.
    bool follow(uint64_t frame, uint64_t code, uint64_t previous, Chain &out) {
        out = {code, previous, {}, {}, 0};
        for (uint64_t at = frame; at != 0;) {
            if (out.frames.size() >= kMostFrames || at % 8 != 0) return false;
            const auto its = memory_.word(at + code), next = memory_.word(at + previous);
            if (!its || !next) return false;
            const uint64_t object = untagged(*its);
            const bool function = is_code(object);
            if (!function && (build_.none == 0 || object != build_.none)) return false;
            out.frames.push_back(at);
            out.codes.push_back(function ? object : 0);
            out.functions += function;
            at = *next;
        }
        return out.functions > 0;
    }

    /// The longest chain that begins at this frame; none: functions is 0.
    Chain longest(uint64_t frame) {
        Chain best, one;
        for (uint64_t code = 0; code < kFrameWords; ++code) {
            const auto word = memory_.word(frame + code * 8);
            if (!word) break;
            const uint64_t object = untagged(*word);
            if (!is_code(object) && (build_.none == 0 || object != build_.none)) continue;
            for (uint64_t previous = 0; previous < kFrameWords; ++previous)
                if (previous != code && follow(frame, code * 8, previous * 8, one) && one.functions > best.functions) best = one;
        }
        return best;
    }

    /// All ways from a thread's pointer to a chain, those that begin first in a thread state first.
    std::vector<Way> ways(uint64_t thread_pointer, Slots range) {
        std::vector<Way> out;
        const auto take = [&](uint64_t frame, int64_t slot, std::vector<uint64_t> hops) {
            if (frame < Pages::kPage || frame % 8 != 0) return;
            if (Chain chain = longest(frame); chain.functions > 0) out.push_back({slot, std::move(hops), std::move(chain)});
        };
        for (int64_t slot = range.from; slot < range.to; slot += 8) {
            const uint64_t state = memory_.word(thread_pointer + static_cast<uint64_t>(slot)).value_or(0);
            if (state < Pages::kPage || state % 8 != 0) continue;
            for (uint64_t i = 0; i < kStateWords; ++i) {
                const auto word = memory_.word(state + i * 8);
                if (!word) break;
                if (*word < Pages::kPage || *word % 8 != 0) continue;
                take(*word, slot, {i * 8});
                for (uint64_t j = 0; j < kHopWords; ++j) take(memory_.word(*word + j * 8).value_or(0), slot, {i * 8, j * 8});
            }
        }
        std::stable_sort(out.begin(), out.end(),
                         [](const Way &a, const Way &b) { return std::tie(a.slot, a.hops) < std::tie(b.slot, b.hops); });
        return out;
    }

    Objects objects{};
    std::map<std::string, uint32_t, std::less<>> of_code; // PyCode_Type's members

  private:
    Memory &memory_;
    const Build &build_;
};

// A code object's instructions, which end it.
struct Instructions {
    uint64_t begin; // bytes of a code object in front of them
    uint64_t unit;  // bytes of one
    uint64_t count; // where in a code object their number is
};

// Without the lock of the interpreter, from 3.14 on, each thread specialises a copy of its own: a code object has a list of them,
// whose first is its own instructions, and a frame has a number in that list.
struct Copies {
    uint32_t list; // in a code object
    uint32_t copy; // in a frame
};

// The word of every code object that leads to such a list.
std::optional<uint32_t> copies_of(Memory &memory, const Chain &chain, const Instructions &instructions) {
    for (uint32_t at = 16; at < instructions.begin; at += 8)
        if (std::all_of(chain.codes.begin(), chain.codes.end(), [&](uint64_t code) {
                const uint64_t list = code == 0 ? 0 : memory.word(code + at).value_or(0);
                return code == 0 || memory.word(list + 8) == code + instructions.begin;
            }))
            return at;
    return std::nullopt;
}

// Where the instructions begin that a frame is in; 0: it says no copy that there is.
uint64_t begin_of(Memory &memory, const Chain &chain, size_t i, const Instructions &instructions, const Copies *copies) {
    if (!copies) return chain.codes[i] + instructions.begin;
    const uint64_t list = memory.word(chain.codes[i] + copies->list).value_or(0);
    const auto copy = memory.word32(chain.frames[i] + copies->copy);
    return copy && *copy < memory.word(list).value_or(0) ? memory.word(list + 8 + 8 * uint64_t{*copy}).value_or(0) : 0;
}

// The word of a frame that lies within its code's instructions, in every frame. The code object says how many there are: what
// else a frame points at may lie right behind.
std::optional<uint32_t> position_of(Memory &memory, const Chain &chain, const Instructions &instructions, const Copies *copies) {
    for (uint32_t at = 0; at < LANGUAGE_WINDOW - 8; at += 8) {
        size_t within = 0, functions = 0;
        for (size_t i = 0; i < chain.frames.size(); ++i) {
            if (chain.codes[i] == 0) continue;
            ++functions;
            const auto word = memory.word(chain.frames[i] + at), units = memory.word(chain.codes[i] + instructions.count);
            const uint64_t begin = begin_of(memory, chain, i, instructions, copies);
            if (!word || !units || begin == 0) break;
            const uint64_t bytes = std::min(*units, kMostCode) * instructions.unit;
            within += *word + instructions.unit >= begin && *word < begin + bytes; // 3.11 begins one instruction early
        }
        if (functions > 0 && within == functions) return at;
    }
    return std::nullopt;
}

// The same where there are copies, and which number is a copy's. In a thread that runs what is the objects' own it is 0, as the
// upper half of a pointer may be; it lies behind pointers, the position among them.
std::optional<std::pair<uint32_t, Copies>> position_in_copies(Memory &memory, const Chain &chain,
                                                              const Instructions &instructions) {
    const auto list = copies_of(memory, chain, instructions);
    for (uint32_t copy = 16; list && copy + 4 <= LANGUAGE_WINDOW - 8; copy += 8) {
        const Copies copies{*list, copy};
        if (const auto at = position_of(memory, chain, instructions, &copies); at && *at + 8 <= copy)
            return std::pair(*at, copies);
    }
    return std::nullopt;
}

// 3.10 counts instructions, and its type doesn't say where. Of all frames but the leaf's the instruction is a call.
std::optional<uint32_t> index_of(Memory &memory, const Objects &objects, const Chain &chain, uint32_t code_text) {
    constexpr uint8_t kCalls[] = {131, 141, 142, 161}; // CALL_FUNCTION, _KW, _EX, CALL_METHOD (Include/opcode.h)
    for (uint32_t at = 40; at + 4 <= LANGUAGE_WINDOW - 8; at += 4) {
        size_t calls = 0, callers = 0;
        for (size_t i = 1; i < chain.frames.size(); ++i) {
            const auto index = memory.word32(chain.frames[i] + at);
            const auto code = memory.word(chain.codes[i] + code_text);
            const auto length = code ? memory.word(*code + objects.length()) : std::nullopt;
            ++callers;
            if (!index || !length || uint64_t{*index} * 2 + 2 > *length) continue;
            uint8_t opcode = 0;
            if (memory.read(*code + objects.bytes() + uint64_t{*index} * 2, std::as_writable_bytes(std::span(&opcode, 1))))
                calls += std::find(std::begin(kCalls), std::end(kCalls), opcode) != std::end(kCalls);
        }
        if (callers > 0 && calls * 4 >= callers * 3) return at; // others wait in an import, a with, a for
    }
    return std::nullopt;
}

// Where a string's characters begin: behind them, at its length, is a zero, and none is in front.
std::optional<uint32_t> text_of(Memory &memory, const Objects &objects, const Chain &chain, uint32_t file) {
    for (const uint64_t at : {objects.head + 24, objects.head + 32}) {
        size_t right = 0, functions = 0;
        for (const uint64_t code : chain.codes) {
            if (code == 0) continue;
            ++functions;
            const uint64_t object = memory.word(code + file).value_or(0);
            const auto length = memory.word(object + objects.length());
            const auto text = memory.text(object + at, 4096);
            right += length && text && *length > 0 && text->size() == *length;
        }
        if (functions > 0 && right == functions) return static_cast<uint32_t>(at);
    }
    return std::nullopt;
}

// Whether the table that debuggers read says the same (Include/internal/pycore_debug_offsets.h). In every version so far a thread
// state's words are told as its size, prev, next, interp, current_frame, and a frame's as its size, previous, executable,
// instr_ptr.
bool confirmed(Memory &memory, uint64_t runtime, const LanguageProcess &process) {
    constexpr std::string_view kCookie = "xdebugpy";
    std::array<char, kCookie.size()> cookie{};
    std::array<uint64_t, 128> words{};
    if (runtime == 0 || process.hops != 1 || !memory.read(runtime, std::as_writable_bytes(std::span(cookie))) ||
        std::string_view(cookie.data(), cookie.size()) != kCookie ||
        !memory.read(runtime + kCookie.size(), std::as_writable_bytes(std::span(words))))
        return false;
    const auto says = [&](std::initializer_list<uint64_t> run) {
        return std::search(words.begin(), words.end(), run.begin(), run.end()) != words.end();
    };
    return says({0, 8, 16, process.hop[0]}) && says({process.previous, process.code, process.position});
}

} // namespace

std::optional<Layout> learn(Memory &memory, const Build &build, Arch arch, uint64_t thread_pointer,
                            std::span<const LanguageProcess> refuted, std::string &why) {
    Learning learning(memory, build);
    const Objects &objects = learning.objects;
    const auto member = [&](std::string_view name) -> std::optional<uint32_t> {
        const auto at = learning.of_code.find(name);
        return at == learning.of_code.end() || at->second >= LANGUAGE_CODE_BYTES - 8 ? std::nullopt : std::optional(at->second);
    };
    const auto file = member("co_filename"), line = member("co_firstlineno");
    auto name = member("co_qualname");
    if (!name) name = member("co_name");
    auto table = member("co_linetable");
    if (!table) table = member("co_lnotab");
    if (!file || !line || !name || !table) {
        why = "the type of code objects doesn't say where name, file, line and table of lines are";
        return std::nullopt;
    }

    std::vector<Way> ways;
    size_t most = 0;
    for (const Slots &range : slots(arch)) {
        if (most >= kLeastFrames) break;
        ways = learning.ways(thread_pointer, range);
        std::erase_if(ways, [&](const Way &way) {
            return std::any_of(refuted.begin(), refuted.end(), [&](const LanguageProcess &other) { return way.is(other); });
        });
        for (const Way &way : ways) most = std::max(most, way.chain.functions);
    }
    if (most < kLeastFrames) {
        why = memory.exhausted() ? "too much had to be read"
              : !refuted.empty() ? "no word of its thread states leads to frames that agree with its native stacks"
                                 : format("its stacks have {} Python functions, and it takes {} of them", most, kLeastFrames);
        return std::nullopt;
    }
    // Generators have short chains of their own.
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const Way &one) { return one.chain.functions * 2 > most; });
    const Chain &best = way->chain;
    Layout out;
    out.process.start = static_cast<uint64_t>(way->slot);
    for (const uint64_t hop : way->hops) out.process.hop[out.process.hops++] = static_cast<uint32_t>(hop);

    LanguageProcess &process = out.process;
    process.flags = LANGUAGE_BY_THREAD;
    process.code = static_cast<uint16_t>(best.code);
    process.previous = static_cast<uint16_t>(best.previous);
    process.name = static_cast<uint16_t>(*name);
    process.file = static_cast<uint16_t>(*file);
    process.line = static_cast<uint16_t>(*line);
    process.table = static_cast<uint16_t>(*table);
    process.code_bytes = std::max({*name, *file, *line, *table}) + 8;
    out.frames = best.functions;

    // Where instructions are part of the object (3.11), it is one of variable size.
    const auto size = memory.word(build.code_type + objects.basic_size()),
               unit = memory.word(build.code_type + objects.item_size());
    const bool inside = size && *size < 1024 && unit == 2;
    const Instructions instructions{size.value_or(0), 2, objects.length()};
    const bool copied = inside && objects.head != kHeads[0].head && build.version >= 0x030e0000; // Py_GIL_DISABLED
    if (const auto found = copied ? position_in_copies(memory, best, instructions) : std::nullopt) {
        const auto &[position, copies] = *found;
        out.code_size = static_cast<uint32_t>(instructions.begin);
        process.flags |= LANGUAGE_THREAD_COPIES;
        process.position = static_cast<uint16_t>(position);
        process.copies = static_cast<uint16_t>(copies.list);
        process.copy = static_cast<uint16_t>(copies.copy);
        process.instructions = static_cast<uint16_t>(instructions.begin);
        process.code_bytes = std::max(process.code_bytes, copies.list + 8);
    } else if (const auto position = inside && !copied ? position_of(memory, best, instructions, nullptr) : std::nullopt) {
        out.code_size = static_cast<uint32_t>(instructions.begin);
        process.position = static_cast<uint16_t>(*position);
    } else if (const auto of_frame = learning.members(build.frame_type); of_frame.contains("f_lasti")) {
        process.position = static_cast<uint16_t>(of_frame.at("f_lasti")); // counts bytes, to 3.9
        out.index_bytes = 1;
    } else if (const auto at = member("co_code"); at && build.version == 0) {
        const auto index = index_of(memory, objects, best, *at);
        if (!index) {
            why = "no word of its frames counts their functions' instructions";
            return std::nullopt;
        }
        process.position = static_cast<uint16_t>(*index);
        out.index_bytes = 2;
    } else {
        why = "no word of its frames lies in their functions' instructions";
        return std::nullopt;
    }
    const auto text = text_of(memory, objects, best, *file);
    if (!text) {
        why = "its strings are laid out in a way that isn't known";
        return std::nullopt;
    }
    out.text = *text;
    out.head = static_cast<uint32_t>(objects.head);
    process.table_head = static_cast<uint16_t>(objects.length());

    const uint32_t minor = build.version >> 16 & 0xff;
    const bool has_shims = build.version >= 0x030c0000;
    out.groups = has_shims ? Groups::shims : minor == 11 ? Groups::marked : Groups::each;
    // From 3.15 on a thread has a frame in its state, behind the shim of its first evaluation.
    out.based = has_shims && best.codes.size() > 1 && best.codes.back() == 0 && best.codes[best.codes.size() - 2] == 0;
    // Else the last frame of a list is a shim, and lies on the native stack as the evaluation's words do that a second hop leads
    // from.
    out.stacked = !out.based && (has_shims || process.hops > 1);
    if (out.code_size != 0) process.flags |= LANGUAGE_NEAR; // since 3.11 they are on a stack of their own
    process.mark = 68;                                      // of 3.11: is_entry; of others nobody asks
    process.none = has_shims ? build.none : 0;
    out.confirmed = confirmed(memory, build.runtime, process);
    process.window = std::max<uint32_t>(
        {process.code + 8u, process.previous + 8u, process.position + 8u, process.copy + 4u, process.mark + 1u});
    if (process.window >= LANGUAGE_WINDOW || process.code_bytes >= LANGUAGE_CODE_BYTES) {
        why = "its frames are larger than what is looked at of them";
        return std::nullopt;
    }
    return out;
}

std::string describe(const Build &build, const Layout &layout) {
    std::string out = "CPython";
    if (build.version != 0) append(out, " {}.{}.{}", build.version >> 24, build.version >> 16 & 0xff, build.version >> 8 & 0xff);
    const LanguageProcess &process = layout.process;
    append(out, ": thread state at {:+}, frame at", static_cast<int64_t>(process.start));
    for (uint32_t i = 0; i < process.hops; ++i) append(out, " +{}", process.hop[i]);
    append(out, ", code +{}, caller +{}, position +{}; learnt from {} frames{}", process.code, process.previous, process.position,
           layout.frames, layout.confirmed ? ", and its table for debuggers says the same" : "");
    return out;
}

} // namespace rawbpf::inline v0::languages::cpython
