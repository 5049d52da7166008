// The code is followed from its first instruction to its last, jumps aside, with what each register and each word of the frame is
// known to hold. What isn't understood is forgotten; a distance that doesn't come out is missing, and one that came out wrongly
// leads to no goroutine whose m leads back: the program looks at each sample (goroutine_dsl.cpp).
#include "programs/labels/go_runtime.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include <elf.h>

#include "programs/labels/x86_code.h"
#include "programs/languages/exports.h"
#include "runtime/base/format.h"
#include "runtime/elf/go_table.h"

namespace rawbpf::inline v0::labels {
namespace {

constexpr size_t kMostCode = 4096;       // bytes of a function that are followed
constexpr int64_t kMostDistance = 65536; // within g or m
constexpr int64_t kFarthest = 4 << 20;   // of g, below the thread's pointer

struct Value {
    enum class Is : uint8_t { unknown, number, word, g, m, of_g, of_m } is = Is::unknown;
    int64_t at = 0; ///< the number; the word's address; how far in g or m
};

class Follower {
  public:
    Follower(Bytes code, uint64_t address) : code_(code.first(std::min(code.size(), kMostCode))), address_(address) {
        registers_[X86Instruction::kGoroutine] = {Value::Is::g}; // Go 1.17 and newer, in code that Go's compiler made
    }

    void follow() {
        size_t at = 0;
        while (at < code_.size()) {
            const auto one = decode_x86(code_.subspan(at));
            if (!one) return;
            at += one->length;
            step(*one, address_ + at);
        }
    }

    std::optional<int64_t> distance; // of g from the thread's pointer
    std::optional<uint64_t> word;    // where that is written
    std::optional<int64_t> m;        // of g: the first of its words that is loaded
    bool first_of_m = false;         // m's first word is loaded: g0
    std::optional<int64_t> becomes;  // of m: the last of its words that becomes the thread's g
    std::optional<int64_t> stored;   // of g: the first of its words that is stored
    std::set<int64_t> compared;      // words that are compared with 1, from whatever register

  private:
    static bool in_structure(int64_t at) { return at > 0 && at < kMostDistance; }

    void step(const X86Instruction &one, uint64_t next) {
        const bool plain = one.memory && one.index == X86Instruction::kNone;
        if (one.opcode == 0x8b && plain && one.wide) {
            set(one.reg, loaded(one, next));
        } else if (one.opcode == 0x8b && !one.memory && one.wide) {
            set(one.reg, registers_[static_cast<size_t>(one.rm)]);
        } else if (one.opcode == 0x89 && plain && one.wide) {
            store(one, registers_[static_cast<size_t>(one.reg)]);
        } else if (one.opcode == 0x89 && !one.memory && one.wide) {
            set(one.rm, registers_[static_cast<size_t>(one.reg)]);
        } else if (one.opcode == 0xc7 && !one.memory && one.wide) {
            set(one.rm, {Value::Is::number, one.immediate});
        } else if (one.opcode == 0x83 && (one.reg & 7) == 7) { // cmp
            if (plain && one.wide && one.immediate == 1 && !one.by_rip && one.base != X86Instruction::kStackPointer &&
                in_structure(one.displacement))
                compared.insert(one.displacement);
        } else if (one.opcode == 0xe8 || (one.opcode == 0xff && (one.reg & 7) == 2)) {
            call();
        } else {
            other(one);
        }
    }

    Value loaded(const X86Instruction &one, uint64_t next) {
        if (one.by_fs) return thread_word(one) ? Value{Value::Is::g} : Value{};
        if (one.by_rip) return {Value::Is::word, static_cast<int64_t>(next) + one.displacement};
        if (one.base == X86Instruction::kNone) return {};
        if (one.base == X86Instruction::kStackPointer) {
            const auto known = frame_.find(one.displacement);
            return known == frame_.end() ? Value{} : known->second;
        }
        const Value from = registers_[static_cast<size_t>(one.base)];
        if (from.is == Value::Is::g && in_structure(one.displacement)) {
            if (!m) m = one.displacement;
            if (*m == one.displacement) return {Value::Is::m};
            return {Value::Is::of_g, one.displacement};
        }
        if (from.is != Value::Is::m || one.displacement < 0 || one.displacement >= kMostDistance) return {};
        if (one.displacement == 0) first_of_m = true;
        return {Value::Is::of_m, one.displacement};
    }

    /// Whether this is the thread's word that g is in; the first one that is used tells where.
    bool thread_word(const X86Instruction &one) {
        if (one.base == X86Instruction::kNone) {
            if (!distance) distance = one.displacement;
            return !word && *distance == one.displacement;
        }
        const Value from = registers_[static_cast<size_t>(one.base)];
        if (from.is == Value::Is::number) {
            const int64_t at = static_cast<int64_t>(static_cast<uint64_t>(from.at) + static_cast<uint64_t>(one.displacement));
            if (!distance) distance = at;
            return !word && *distance == at;
        }
        if (from.is != Value::Is::word || one.displacement != 0) return false;
        if (!distance) distance = 0, word = static_cast<uint64_t>(from.at);
        return word == static_cast<uint64_t>(from.at);
    }

    void store(const X86Instruction &one, const Value &value) {
        if (one.by_fs) {
            if (thread_word(one) && value.is == Value::Is::of_m && value.at > 0) becomes = value.at;
            return;
        }
        if (one.base == X86Instruction::kStackPointer) {
            frame_[one.displacement] = value;
            return;
        }
        if (one.base == X86Instruction::kNone) return;
        if (registers_[static_cast<size_t>(one.base)].is == Value::Is::g && in_structure(one.displacement) && !stored)
            stored = one.displacement;
    }

    void call() {
        const Value g = registers_[X86Instruction::kGoroutine];
        registers_ = {};
        registers_[X86Instruction::kGoroutine] = g;
    }

    /// Whatever it may write is unknown from here on.
    void other(const X86Instruction &one) {
        const uint16_t op = one.opcode;
        const bool only_reads = op == 0x38 || op == 0x39 || op == 0x3a || op == 0x3b || op == 0x84 || op == 0x85;
        if (only_reads) return;
        set(one.reg, {});
        set(one.rm, {});
        if (op == 0x99 || op == 0xf7) set(0, {}), set(2, {});
        const bool moves_stack = (op >= 0x50 && op <= 0x5f) || op == 0xc9 || one.rm == X86Instruction::kStackPointer ||
                                 one.reg == X86Instruction::kStackPointer;
        if (moves_stack) frame_.clear();
    }

    void set(int number, const Value &value) {
        if (number < 0) return;
        registers_[static_cast<size_t>(number)] = value;
        if (number == X86Instruction::kStackPointer) frame_.clear();
    }

    Bytes code_;
    uint64_t address_;
    std::array<Value, 16> registers_{};
    std::map<int64_t, Value> frame_; // words, from the stack pointer
};

/// Functions by their names, in the file's bytes.
class Functions {
  public:
    Functions(const elf::Elf &file, Bytes bytes, const elf::GoTable &table) : file_(file), bytes_(bytes), table_(table) {}

    /// nullopt: there is none of that name.
    [[nodiscard]] std::optional<Follower> follow(std::string_view name) const {
        for (const elf::GoFunction &function : table_.functions) {
            if (!has_name(function, name)) continue;
            const auto offset = file_.file_offset(function.start);
            if (!offset || *offset > bytes_.size()) continue;
            const Bytes rest = bytes_.subspan(*offset);
            Follower out(rest.first(std::min<uint64_t>(rest.size(), function.end - function.start)), function.start);
            out.follow();
            return out;
        }
        return std::nullopt;
    }

  private:
    /// What is written in assembly has the convention of calls behind its name, in some versions.
    [[nodiscard]] bool has_name(const elf::GoFunction &function, std::string_view name) const {
        const auto text = [&](size_t at, std::string_view wanted) {
            return table_.names.size() - at >= wanted.size() &&
                   std::string_view(reinterpret_cast<const char *>(table_.names.data()) + at, wanted.size()) == wanted;
        };
        using namespace std::string_view_literals;
        if (function.name > table_.names.size() || !text(function.name, name)) return false;
        const size_t behind = function.name + name.size();
        return text(behind, "\0"sv) || text(behind, ".abi0\0"sv);
    }

    const elf::Elf &file_;
    Bytes bytes_;
    const elf::GoTable &table_;
};

std::string read_way(const Functions &functions, GoRuntime &out) {
    const auto switches = functions.follow("runtime.systemstack");
    if (!switches) return "its table of functions has no runtime.systemstack, which would tell where its goroutines are";
    if (!switches->distance || !switches->m || !switches->becomes || !switches->first_of_m ||
        (!switches->word && (*switches->distance >= 0 || *switches->distance < -kFarthest)))
        return "its function runtime.systemstack is another one than rawbpf knows";
    out.distance = static_cast<uint64_t>(*switches->distance);
    out.word = switches->word;
    out.m = static_cast<uint32_t>(*switches->m);
    out.curg = static_cast<uint32_t>(*switches->becomes);
    if (const auto created = functions.follow("runtime.printcreatedby"); created && created->compared.size() == 1)
        out.number = static_cast<uint32_t>(*created->compared.begin());
    if (const auto sets = functions.follow("runtime/pprof.runtime_setProfLabel"); sets && sets->stored)
        out.labels = static_cast<uint32_t>(*sets->stored);
    return {};
}

} // namespace

std::string GoRuntime::describe() const {
    std::string out = word ? format("g where the dynamic linker says it at {:#x}", *word)
                           : format("g at {} from the thread's pointer", static_cast<int64_t>(distance));
    append(out, ", its m at {}, the goroutine at {} of that, {}, {}", m, curg,
           number ? format("its number at {}", number) : std::string("its number isn't known"),
           labels ? format("its labels at {}", labels) : std::string("the program sets no labels"));
    return out;
}

std::optional<GoRuntime> go_runtime(const elf::Elf &file, Bytes bytes) {
    if (!file.is_64()) return std::nullopt;
    const auto table = elf::read_go_table(file);
    if (!table) return std::nullopt;
    GoRuntime out;
    out.code = languages::executable_segments(file);
    out.why_not = file.machine() == EM_X86_64 ? read_way(Functions(file, bytes, *table), out)
                                              : "labels of goroutines are read on x86_64 only";
    return out;
}

std::optional<LabelProcess> locate(const GoRuntime &runtime, uint64_t bias, languages::Memory &memory, std::string &why) {
    if (!runtime.why_not.empty()) {
        why = runtime.why_not;
        return std::nullopt;
    }
    LabelProcess out{};
    out.offset = runtime.distance;
    if (runtime.word) {
        const auto distance = memory.word(bias + *runtime.word);
        const auto below = distance ? -*distance : 0;
        if (below == 0 || below > uint64_t{kFarthest}) {
            why = "the dynamic linker hasn't written down yet where threads have their goroutine";
            return std::nullopt;
        }
        out.offset = *distance;
    }
    out.go_m = runtime.m;
    out.go_curg = runtime.curg;
    out.go_number = runtime.number;
    out.go_labels = runtime.labels;
    return out;
}

} // namespace rawbpf::inline v0::labels
