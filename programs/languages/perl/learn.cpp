#include "programs/languages/perl/learn.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "programs/languages/perl/names.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::perl {
namespace {

constexpr uint64_t kContexts = 8, kPrevious = 16, kNext = 24, kTop = 32, kMost = 36; // of a stack's head
constexpr uint64_t kOperation = 16;                                                  // of an operation: its function
constexpr uint64_t kBody = 0, kFlags = 12, kUnion = 16;                              // of an object (SV)
constexpr uint64_t kNameOfGlob = 32, kStashOfGlob = 40, kSizeOfHash = 24;            // of their bodies
constexpr uint32_t kTypeMask = 0xff, kNamed = 0x8000;                                // of an object's flags; of a code's
// What lies next to the word at which a code's name is.
constexpr uint64_t kStashBefore = 24, kSequenceBehind = 32, kFlagsBehind = 36;
constexpr uint64_t kLineBefore = 12;  // in front of a position's file
constexpr uint64_t kOtherBehind = 16; // the code of an eval's context behind that of a sub's
constexpr size_t kMostStacks = 256, kMostContexts = 512, kLeastContexts = 2;
constexpr uint32_t kMostTop = 1 << 20;
constexpr uint64_t kMostOperations = 512, kMostCode = 4096;

struct Slots {
    int64_t from, to; // bytes from the thread pointer: where its thread-specific values may be
};
Slots slots(Arch arch) { return arch == Arch::arm64 ? Slots{-0x780, 0} : Slots{0x100, 0x700}; }

struct Kinds { // of contexts, by their names; the first one's is 0
    uint8_t none = 16, block = 16, sub = 16, eval = 16, subst = 16, all = 0;
};

struct Shape { // of contexts
    uint64_t stride = 0, position = 0;
};

class Learning {
  public:
    Learning(Memory &memory, const Lesson &lesson) : memory_(memory), lesson_(lesson) {}

    [[nodiscard]] static bool pointer(uint64_t word) { return word >= Pages::kPage && word % 8 == 0; }
    [[nodiscard]] uint64_t word(uint64_t at) { return memory_.word(at).value_or(0); }
    [[nodiscard]] uint32_t half(uint64_t at) { return memory_.word32(at).value_or(0); }
    [[nodiscard]] uint8_t byte(uint64_t at) { return static_cast<uint8_t>(half(at & ~uint64_t{3}) >> (at % 4 * 8)); }
    [[nodiscard]] uint64_t there(std::string_view name) {
        const uint64_t at = lesson_.file.address(name);
        return at == 0 ? 0 : at + lesson_.bias;
    }

    [[nodiscard]] Kinds kinds() {
        Kinds out;
        const uint64_t names = there("PL_block_type");
        for (uint8_t i = 0; i < 16; ++i) {
            const auto name = memory_.text(word(names + uint64_t{i} * 8), 24);
            if (!name || name->empty() || !std::all_of(name->begin(), name->end(), [](char c) { return c >= '-' && c <= 'z'; }))
                break;
            if (*name == "NULL") out.none = i;
            if (*name == "BLOCK") out.block = i;
            if (*name == "SUB") out.sub = i;
            if (*name == "EVAL") out.eval = i;
            if (*name == "SUBST") out.subst = i;
            out.all = static_cast<uint8_t>(i + 1);
        }
        return out;
    }

    /// The heads from this one on, leaf first; empty: it is none.
    [[nodiscard]] std::vector<uint64_t> heads(uint64_t at) {
        std::vector<uint64_t> out;
        for (uint64_t inner = 0; at != 0; inner = at, at = word(at + kPrevious)) {
            const uint32_t top = half(at + kTop), most = half(at + kMost);
            if (out.size() >= kMostStacks || !pointer(at) || !pointer(word(at)) || !pointer(word(at + kContexts)) || most == 0 ||
                most > kMostTop || (top != UINT32_MAX && top > most) || (inner != 0 && word(at + kNext) != inner))
                return {};
            const uint64_t next = word(at + kNext);
            if (next != 0 && (!pointer(next) || word(next + kPrevious) != at)) return {};
            out.push_back(at);
        }
        return out;
    }

    [[nodiscard]] bool is_operation(uint64_t at) {
        const uint64_t function = pointer(at) ? word(at + kOperation) - lesson_.bias : 0;
        return std::any_of(lesson_.file.code.begin(), lesson_.file.code.end(), [&](const elf::Segment &segment) {
            return function >= segment.address && function < segment.address + segment.file_size;
        });
    }
    [[nodiscard]] bool is_position(uint64_t at) {
        const uint64_t function = pointer(at) ? word(at + kOperation) : 0;
        return function != 0 && (function == nextstate || function == dbstate);
    }
    [[nodiscard]] uint32_t type(uint64_t object) { return pointer(object) ? half(object + kFlags) & kTypeMask : 0; }
    [[nodiscard]] uint64_t body(uint64_t object) { return pointer(object) ? word(object + kBody) : 0; }

    [[nodiscard]] std::string name(uint64_t at) {
        const uint32_t length = pointer(at) || at % 4 == 0 ? half(at + kNameLength) : 0;
        if (at < Pages::kPage || length == 0 || length > 1024) return {};
        std::vector<std::byte> object(kName + length + 2);
        return memory_.read(at, object) ? name_of(object) : std::string();
    }
    [[nodiscard]] bool is_file(uint64_t at) {
        const auto text = at >= Pages::kPage ? memory_.text(at, 4096) : std::nullopt;
        return text && !text->empty() &&
               std::all_of(text->begin(), text->end(), [](char c) { return static_cast<uint8_t>(c) >= ' '; });
    }

    /// The addresses of operations' functions.
    uint64_t nextstate = 0, dbstate = 0, leave = 0;
    std::vector<uint64_t> evals; // begin an eval
    void find_operations() {
        for (uint64_t i = 0; i < kMostOperations; ++i) {
            const auto name = memory_.text(word(there("PL_op_name") + i * 8), 32);
            if (!name || name->empty()) break;
            const uint64_t function = word(there("PL_ppaddr") + i * 8);
            if (*name == "nextstate") nextstate = function;
            if (*name == "dbstate") dbstate = function;
            if (*name == "leave") leave = function;
            if (*name == "entertry" || *name == "entertrycatch" || *name == "entereval" || *name == "require")
                evals.push_back(function);
        }
    }

    /// Where it is in the file, with the address of its first byte; nullopt: no function of it begins there.
    [[nodiscard]] std::optional<Interpreter::Range> function(uint64_t address) {
        for (const elf::Segment &segment : lesson_.file.code) {
            const uint64_t offset = address - lesson_.bias - segment.address + segment.offset;
            const auto &all = lesson_.file.functions;
            const auto at = std::lower_bound(all.begin(), all.end(), offset,
                                             [](const Interpreter::Range &one, uint64_t start) { return one.start < start; });
            if (at != all.end() && at->start == offset) return *at;
        }
        return std::nullopt;
    }

    /// What begins an eval, in a sub that native code called, has a function run its sub's other operations in one more frame.
    [[nodiscard]] std::vector<Interpreter::Range> resumes() {
        std::vector<Interpreter::Range> out;
        for (const uint64_t eval : evals) {
            const auto own = function(eval);
            if (!own || lesson_.arch != Arch::x86_64) continue;
            out.push_back(*own);
            std::vector<std::byte> code(std::min<uint64_t>(own->end - own->start, kMostCode));
            if (eval != evals.front() || !memory_.read(eval, code)) continue; // all of them have the same one
            for (size_t i = 0; i + 5 <= code.size(); ++i) {
                if (code[i] != std::byte{0xe8} && code[i] != std::byte{0xe9}) continue; // call rel32; jmp rel32
                const auto distance = static_cast<uint64_t>(int64_t{load<int32_t>(code.data() + i + 1)});
                if (const auto callee = function(eval + i + 5 + distance)) out.push_back(*callee);
            }
        }
        return out;
    }

  private:
    Memory &memory_;
    const Lesson &lesson_;
};

/// What leads to the frames, and the frames.
struct Found {
    int64_t slot = 0;
    uint64_t interpreter = 0, size = 0;
    uint64_t stacks = 0, leaf = 0; // in the interpreter
    std::vector<uint64_t> heads;
    std::vector<uint64_t> contexts; // leaf first, of all heads
    Shape shape;
};

/// The contexts of these heads, if they have this shape.
bool contexts_of(Learning &learning, const Kinds &kinds, Found &found, const Shape &shape) {
    std::vector<uint64_t> contexts;
    for (const uint64_t head : found.heads) {
        const uint64_t first = learning.word(head + kContexts);
        const uint32_t top = learning.half(head + kTop);
        if (top == UINT32_MAX) continue;
        for (uint64_t i = uint64_t{top} + 1; i-- > 0 && contexts.size() < kMostContexts;) {
            const uint64_t context = first + i * shape.stride, position = learning.word(context + shape.position);
            const bool of_interpreter = position >= found.interpreter && position < found.interpreter + found.size;
            const uint8_t kind = learning.byte(context) % 16; // that of a substitution has no position
            if (kind >= kinds.all || (kind != kinds.subst && !of_interpreter && !learning.is_position(position))) return false;
            contexts.push_back(context);
        }
    }
    found.shape = shape;
    found.contexts = std::move(contexts);
    return true;
}

bool find_contexts(Learning &learning, const Kinds &kinds, Found &found) {
    for (uint64_t stride = 72; stride <= 136; stride += 8)
        for (uint64_t position = 8; position + 8 < stride; position += 8)
            if (contexts_of(learning, kinds, found, {stride, position})) return true;
    return false;
}

/// The interpreter at `at`, if there is one with frames.
std::optional<Found> interpreter_at(Learning &learning, const Kinds &kinds, uint64_t at, uint64_t size, bool &seen) {
    Found found;
    found.interpreter = at;
    found.size = size;
    for (uint64_t word = 64; word + 8 <= size; word += 8) {
        found.heads = learning.heads(learning.word(at + word));
        if (found.heads.empty()) continue;
        // The leaf's position is in front of its stack.
        found.stacks = word;
        for (found.leaf = word - 8; found.leaf + 64 >= word && found.leaf > 0; found.leaf -= 8) {
            const uint64_t position = learning.word(at + found.leaf);
            if (learning.is_position(position)) break;
        }
        if (found.leaf + 64 < word) continue;
        seen = true;
        if (find_contexts(learning, kinds, found) && found.contexts.size() >= kLeastContexts) return found;
    }
    return std::nullopt;
}

template <class Right> std::optional<uint16_t> first_of(uint64_t from, uint64_t to, Right &&right) {
    for (uint64_t at = from; at < to; at += 8)
        if (right(at)) return static_cast<uint16_t>(at);
    return std::nullopt;
}

/// Where the names of code objects and of their packages are.
struct Names {
    uint16_t name = 0, package = 0; // package: in a hash's body; 0: behind its table
};
std::optional<Names> names_of(Learning &learning, const std::vector<uint64_t> &codes) {
    const auto in_all = [&](uint64_t at, auto &&right) {
        return std::all_of(codes.begin(), codes.end(), [&](uint64_t code) {
            const uint64_t body = learning.body(code), its = learning.word(body + at);
            const bool named = (learning.half(body + at + kFlagsBehind) & kNamed) != 0;
            const uint64_t glob = named ? 0 : learning.body(its);
            const uint64_t name = named ? its : learning.word(glob + kNameOfGlob);
            const uint64_t stash = named ? learning.word(body + at - kStashBefore) : learning.word(glob + kStashOfGlob);
            return (named || glob != 0) && !learning.name(name).empty() && right(stash);
        });
    };
    for (uint16_t at = 40; at <= 72; at += 8)
        for (const uint16_t package : {24, 32, 40, 48, 56, 64, 72, 0})
            if (in_all(at, [&](uint64_t stash) {
                    const uint64_t body = learning.body(stash);
                    const uint64_t name =
                        package != 0 ? learning.word(body + package)
                                     : learning.word(learning.word(stash + kUnion) + 8 * learning.word(body + kSizeOfHash) + 8);
                    return body != 0 && !learning.name(name).empty();
                }))
                return Names{at, package};
    return std::nullopt;
}

} // namespace

std::optional<Layout> learn(Memory &memory, const Lesson &lesson, std::string &why) {
    Learning learning(memory, lesson);
    const Kinds kinds = learning.kinds();
    const uint64_t sizes = learning.there("PL_interp_size"), key = learning.half(learning.there("PL_thr_key"));
    const uint64_t size = learning.byte(sizes) | uint64_t{learning.byte(sizes + 1)} << 8;
    if (kinds.sub == 16 || kinds.block == 16 || kinds.eval == 16 || kinds.none == 16) {
        why = "PL_block_type doesn't name the kinds of its contexts";
        return std::nullopt;
    }
    learning.find_operations();
    if (learning.nextstate == 0 || learning.leave == 0) {
        why = "PL_op_name doesn't name its operations";
        return std::nullopt;
    }
    std::optional<Found> found;
    bool seen = false;
    const Slots range = slots(lesson.arch);
    // The interpreter that was made last is mostly the thread's; where none of its values is that, each is looked at.
    const uint64_t current = learning.word(learning.there("PL_curinterp"));
    bool is_current = false;
    for (const bool any : {false, true})
        for (int64_t slot = range.from; slot < range.to && !found && !(any && is_current); slot += 8) {
            const uint64_t start = static_cast<uint64_t>(slot) - 16 * key;
            if (std::any_of(lesson.refuted.begin(), lesson.refuted.end(),
                            [&](const LanguageProcess &way) { return way.start == start; }))
                continue;
            const uint64_t at = learning.word(lesson.thread_pointer + static_cast<uint64_t>(slot));
            if (!Learning::pointer(at) || at == lesson.thread_pointer || (!any && at != current)) continue;
            is_current = !any;
            found = interpreter_at(learning, kinds, at, size, seen);
            if (found) found->slot = slot;
        }
    if (!found) {
        why = memory.exhausted()        ? "too much had to be read"
              : !lesson.refuted.empty() ? "no value of its threads leads to frames that agree with its native stacks"
              : seen                    ? "its stacks have too few frames yet, or some that aren't understood"
                                        : "no value of its threads leads to an interpreter";
        return std::nullopt;
    }
    const Shape &shape = found->shape;
    const auto root = first_of(64, size - 16, [&](uint64_t at) {
        const uint64_t leave = learning.word(found->interpreter + at + 8);
        return learning.type(learning.word(found->interpreter + at)) != 0 && learning.is_operation(leave) &&
               learning.word(leave + kOperation) == learning.leave;
    });
    if (!root) {
        why = "no word of its interpreter is the program's code";
        return std::nullopt;
    }
    const uint32_t code_type = learning.type(learning.word(found->interpreter + *root));
    std::vector<uint64_t> subs, codes;
    for (const uint64_t context : found->contexts)
        if (learning.byte(context) % 16 == kinds.sub && (learning.byte(context) & kInRegex) == 0) subs.push_back(context);
    if (subs.empty()) {
        why = "its stacks have no subs yet";
        return std::nullopt;
    }
    const auto code = first_of(shape.position + 8, shape.stride - kOtherBehind, [&](uint64_t at) {
        return std::all_of(subs.begin(), subs.end(),
                           [&](uint64_t context) { return learning.type(learning.word(context + at)) == code_type; });
    });
    if (!code) {
        why = "no word of its contexts is a sub's code";
        return std::nullopt;
    }
    for (const uint64_t context : subs) codes.push_back(learning.word(context + *code));
    std::optional<uint16_t> returns;
    for (const uint16_t before : {24, 16}) {
        const uint64_t at = *code - before;
        const bool all = *code >= shape.position + 8 + before && std::all_of(subs.begin(), subs.end(), [&](uint64_t context) {
            const uint64_t word = learning.word(context + at);
            return word == 0 || Learning::pointer(word);
        });
        if (all && std::any_of(subs.begin(), subs.end(),
                               [&](uint64_t context) { return learning.is_operation(learning.word(context + at)); })) {
            returns = static_cast<uint16_t>(at);
            break;
        }
    }
    if (!returns) {
        why = "no word of its contexts is where a sub returns to";
        return std::nullopt;
    }
    const auto file = first_of(40, 72, [&](uint64_t at) {
        const auto right = [&](uint64_t position) {
            const uint32_t line = learning.half(position + at - kLineBefore);
            return learning.is_file(learning.word(position + at)) && line > 0 && line <= 10'000'000;
        };
        return right(learning.word(found->interpreter + found->leaf)) &&
               std::all_of(found->contexts.begin(), found->contexts.end(), [&](uint64_t context) {
                   const uint64_t position = learning.word(context + shape.position);
                   return learning.byte(context) % 16 == kinds.subst || !learning.is_position(position) || right(position);
               });
    });
    if (!file) {
        why = "no word of its positions is a file's path";
        return std::nullopt;
    }
    const auto names = names_of(learning, codes);
    if (!names) {
        why = "no word of its subs leads to their names and packages";
        return std::nullopt;
    }

    Layout out;
    LanguageProcess &process = out.process;
    process.key = learning.there("PL_thr_key");
    process.start = static_cast<uint64_t>(found->slot) - 16 * key;
    process.flags = LANGUAGE_BY_THREAD | LANGUAGE_COPIED | LANGUAGE_OWNER | LANGUAGE_LINES | LANGUAGE_ROOMS | LANGUAGE_CALLERS |
                    LANGUAGE_CODE_HOP;
    process.hops = 1;
    process.hop[0] = static_cast<uint32_t>(found->stacks);
    process.leaf = static_cast<uint16_t>(found->leaf);
    process.root = *root;
    process.room = kContexts;
    process.room_top = kTop;
    process.room_next = kPrevious;
    process.stride = static_cast<uint16_t>(shape.stride);
    const auto kind = [&](uint8_t of, uint64_t is) { process.kinds |= is << (of * LANGUAGE_KIND_BITS); };
    kind(kinds.sub, LANGUAGE_KIND_FUNCTION);
    kind(kinds.eval, LANGUAGE_KIND_OTHER);
    kind(kinds.none, LANGUAGE_KIND_NONE);
    kind(kinds.block, LANGUAGE_KIND_ROOT);
    process.mark = 0;
    process.mark_mask = 0x0f | kInRegex | kOfRegex;
    process.mark_zero = *returns;
    process.code = *code;
    process.code_other = static_cast<uint16_t>(*code + kOtherBehind);
    process.position = static_cast<uint16_t>(shape.position);
    process.line_file = *file;
    process.line_of = static_cast<uint16_t>(*file - kLineBefore);
    process.kind_at = kFlags;
    process.kind_mask = kTypeMask;
    process.kind_value = code_type;
    process.code_hop = kBody;
    process.name = names->name;
    process.name_hops = 2;
    process.name_hop[0] = kBody;
    process.name_hop[1] = kNameOfGlob;
    process.named = static_cast<uint16_t>(names->name + kFlagsBehind);
    process.named_mask = kNamed;
    process.named_owner = static_cast<uint16_t>(names->name - kStashBefore);
    process.owner = names->name;
    process.owner_hop[0] = kBody;
    process.owner_hop[1] = kStashOfGlob;
    process.owner_hop[2] = kBody;
    process.owner_hop[3] = names->package;
    process.owner_hops = names->package != 0 ? 4 : 2;
    if (names->package == 0) process.flags |= LANGUAGE_OWNER_TABLE;
    process.owner_table = kUnion;
    process.owner_size = kSizeOfHash;
    process.file = names->name; // files come with positions
    process.line = process.named;
    process.table = static_cast<uint16_t>(names->name + kSequenceBehind); // when it was compiled tells code objects apart
    process.tables = LANGUAGE_TABLE_NONE;
    process.code_bytes = names->name + kSequenceBehind + 8u;
    process.window = process.code_other + 8u;
    out.groups = Groups::marked;
    out.text = kName;
    out.frames = subs.size();
    out.resumes = learning.resumes();
    return out;
}

std::string describe(const Interpreter &file, const Layout &layout) {
    std::string out = with_version("Perl", file.version);
    const LanguageProcess &process = layout.process;
    append(
        out,
        ": stacks at +{}, contexts of {} bytes, position +{}, code +{}, return +{}; file of a position +{}, program's code +{}; "
        "name +{}, package's {}; learnt from {} frames",
        process.hop[0], process.stride, process.position, process.code, process.mark_zero, process.line_file, process.root,
        process.name, process.owner_hops == 4 ? format("+{}", process.owner_hop[3]) : "behind its table", layout.frames);
    return out;
}

} // namespace rawbpf::inline v0::languages::perl
