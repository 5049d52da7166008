#include "programs/languages/v8/code.h"

#include <algorithm>
#include <span>
#include <utility>

#include "programs/languages/v8/exits.h"

namespace rawbpf::inline v0::languages::v8 {
namespace {

constexpr int32_t kWord = sizeof(uint64_t);
constexpr uint64_t kAligned = 32;       // where machine code begins, or a multiple of it
constexpr uint64_t kMostCode = 1 << 20; // bytes of one function's that are gone back
constexpr uint32_t kMostCodeBytes = 1 << 26;
constexpr int32_t kMostBytes = 1 << 20;  // of a table, of a function's bytecodes
constexpr int32_t kHeaderWords = 6;      // of Code, before what isn't an object
constexpr int32_t kBackWords = 12;       // before the places to go back at
constexpr int32_t kMostFunctions = 4096; // inlined in one piece of code
constexpr int32_t kMostExits = 1 << 14;  // words
constexpr size_t kMostBehind = 1 << 12;  // bytes of the table behind machine code
constexpr int32_t kDataWords = 3;        // of a SharedFunctionInfo, before what says how it runs: its first ones
constexpr uint64_t kMostAddress = 1ull << 47;

/// Of a list that doesn't keep what is in it alive.
constexpr uint64_t strong(uint64_t word) { return word & ~uint64_t{2}; }

} // namespace

bool CodeReader::is_bytes(uint64_t object) {
    const auto its = heap_.type(object);
    return its && (*its == layout_.bytes_type || *its == layout_.trusted_bytes_type);
}

/// What an array has from `data` on: at least so many bytes.
std::optional<std::vector<std::byte>> CodeReader::contents(uint64_t array, int32_t data, int32_t least) {
    const auto length = heap_.field(array, objects_.array_length);
    if (!length || !is_smi(*length) || smi(*length) < least || smi(*length) > kMostBytes) return std::nullopt;
    std::vector<std::byte> out(static_cast<size_t>(smi(*length)));
    if (!memory_.read(array - 1 + static_cast<uint64_t>(data), out)) return std::nullopt;
    return out;
}

std::optional<std::vector<std::byte>> CodeReader::bytes(uint64_t array) {
    return is_bytes(array) ? contents(array, objects_.array_data, 0) : std::nullopt;
}

std::optional<std::vector<std::byte>> CodeReader::bytecodes(uint64_t array) {
    return heap_.is(array, layout_.bytecodes_type) ? contents(array, layout_.bytecodes_data, 1) : std::nullopt;
}

/// Its words in front of the bytecodes are searched for the table: there is another array of bytes, of what is caught where.
std::optional<int32_t> CodeReader::text_at(uint64_t bytecodes, int32_t offset, uint32_t source) {
    const auto length = heap_.field(bytecodes, objects_.array_length);
    if (!length || !is_smi(*length) || offset < 0 || offset >= smi(*length)) return std::nullopt;
    const Limits limits{static_cast<uint32_t>(smi(*length)), source, 0};
    std::optional<std::vector<Position>> positions;
    for (int32_t at = objects_.array_length + kWord; at + kWord <= layout_.bytecodes_data; at += kWord) {
        const auto word = heap_.field(bytecodes, at);
        const auto table = word && is_pointer(*word) ? bytes(*word) : std::nullopt;
        auto its = table ? read_positions(*table, limits) : std::nullopt;
        if (its && positions) return std::nullopt; // which one?
        if (its) positions = std::move(its);
    }
    const Position *position = positions ? position_at(*positions, offset) : nullptr;
    return position ? std::optional(position->text) : std::nullopt;
}

std::optional<int32_t> CodeReader::interpreted(const Shared &function, uint64_t bytecodes, uint64_t offset, uint32_t source) {
    if (!is_pointer(bytecodes) || !is_smi(offset)) return std::nullopt;
    bytecodes = heap_.moved(bytecodes);
    if (!heap_.is(bytecodes, layout_.bytecodes_type)) bytecodes = bytecodes_of(function).value_or(0);
    if (bytecodes == 0) return std::nullopt;
    return text_at(bytecodes, smi(offset) - (layout_.bytecodes_data - 1), source); // it counts from the pointer
}

std::optional<Code> CodeReader::code_of(uint64_t header) {
    const auto map = heap_.field(header, objects_.map);
    if (!map || !is_pointer(*map) || *map >= kMostAddress) return std::nullopt;
    Code out;
    out.header = header;
    out.begin = header - 1 + static_cast<uint64_t>(layout_.begin);
    if (layout_.code_type) {
        if (!heap_.is(header, *layout_.code_type)) return std::nullopt;
        for (int32_t at = kWord; out.code == 0 && at + kWord <= layout_.begin; at += kWord) {
            const auto word = heap_.field(header, at);
            if (!word || !is_pointer(*word) || *word >= kMostAddress) continue;
            for (int32_t there = kWord; there <= kHeaderWords * kWord; there += kWord)
                if (heap_.field(*word, there) == out.begin) out.code = *word;
        }
        if (out.code == 0) return std::nullopt;
    } else {
        bool right = false;
        for (int32_t at = kWord; !right && at <= kHeaderWords * kWord; at += kWord) {
            const auto word = heap_.field(header, at);
            right = word && is_pointer(*word) && *word < kMostAddress && heap_.is(*word, *layout_.container_type);
        }
        if (!right) return std::nullopt;
        out.code = header;
    }
    for (int32_t at = kHeaderWords * kWord; at > kWord && out.table == 0; at -= kWord) {
        const auto word = heap_.field(out.code, at), before = heap_.field(out.code, at - kWord);
        if (word && before && is_pointer(*word) && *word < kMostAddress && is_bytes(*word)) out.table = *word, out.back = *before;
    }
    return out.table != 0 && is_pointer(out.back) ? std::optional(out) : std::nullopt;
}

std::optional<Code> CodeReader::code_at(uint64_t pc) {
    const auto before = static_cast<uint64_t>(layout_.begin);
    if (pc >= kMostAddress) return std::nullopt;
    for (uint64_t begin = pc / kAligned * kAligned; begin > before && pc - begin < kMostCode; begin -= kAligned) {
        const auto map = memory_.word(begin - before);
        if (!map) return std::nullopt;
        if (!is_pointer(*map) || *map >= kMostAddress) continue;
        auto out = code_of(begin - before + 1);
        if (!out) continue;
        const auto size =
            layout_.code_size ? memory_.word32(out->code - 1 + static_cast<uint64_t>(*layout_.code_size)) : kMostCodeBytes;
        if (size && pc - begin <= *size) return out;
    }
    return std::nullopt;
}

bool CodeReader::is_there(const Code &code) { return code_of(code.header) == code; }

Tier CodeReader::tier(const Code &code) { return heap_.is(code.back, layout_.bytecodes_type) ? Tier::baseline : Tier::optimised; }

bool CodeReader::is_of(const Code &code, const Shared &function, uint64_t bytecodes) {
    if (tier(code) == Tier::baseline) return code.back == bytecodes || code.back == heap_.moved(bytecodes);
    for (int32_t i = 1; i < kBackWords; ++i) {
        const auto word = heap_.field(code.back, objects_.array_data + i * kWord);
        if (word && is_pointer(*word) && (*word == function.at || heap_.field(*word, kWord) == function.at)) return true;
    }
    return false;
}

std::optional<std::vector<Shared>> CodeReader::functions(uint64_t back, const std::vector<Inlining> &inlinings) {
    int32_t count = 0;
    for (const Inlining &inlining : inlinings) count = std::max(count, inlining.function + 1);
    if (count > kMostFunctions) return std::nullopt;
    if (count == 0) return std::vector<Shared>{};
    for (int32_t i = 0; i < kBackWords; ++i) {
        const auto list = heap_.field(back, objects_.array_data + i * kWord);
        const auto length = list && is_pointer(*list) ? heap_.field(*list, objects_.array_length) : std::nullopt;
        if (!length || !is_smi(*length) || smi(*length) < count) continue;
        std::vector<Shared> out;
        while (static_cast<int32_t>(out.size()) < count) {
            const auto word = heap_.field(*list, objects_.array_data + static_cast<int32_t>(out.size()) * kWord);
            const auto its = word ? heap_.shared_info(strong(*word)) : std::nullopt;
            if (!its) break;
            out.push_back(*its);
        }
        if (static_cast<int32_t>(out.size()) == count) return out;
    }
    return std::nullopt;
}

/// A function's first words have its BytecodeArray, or what has: baseline code, or the interpreter's own code for it.
std::optional<uint64_t> CodeReader::bytecodes_of(const Shared &function) {
    for (int32_t at = kWord; at <= kDataWords * kWord; at += kWord) {
        const auto data = heap_.field(function.at, at);
        if (!data || !is_pointer(*data) || *data >= kMostAddress) continue;
        if (heap_.is(*data, layout_.bytecodes_type)) return data;
        for (int32_t there = kWord; there <= kHeaderWords * kWord; there += kWord) {
            const auto word = heap_.field(*data, there);
            if (word && is_pointer(*word) && *word < kMostAddress && heap_.is(*word, layout_.bytecodes_type)) return word;
        }
    }
    return std::nullopt;
}

/// Where a call is that isn't inlined, by what its code would go back to when it returns to `at`.
std::optional<int32_t> CodeReader::text_of_call(const Code &code, uint32_t at, const Shared &function, uint32_t source) {
    const auto length = heap_.field(code.back, objects_.array_length), first = heap_.field(code.back, objects_.array_data);
    if (!layout_.code_size || !length || !first || !is_smi(*length)) return std::nullopt;
    if (smi(*length) < 0 || smi(*length) > kMostExits) return std::nullopt;
    std::vector<uint64_t> words(static_cast<size_t>(smi(*length)));
    const uint64_t at_words = code.back - 1 + static_cast<uint64_t>(objects_.array_data);
    if (!memory_.read(at_words, std::as_writable_bytes(std::span(words)))) return std::nullopt;
    const auto exits = read_exits(words);
    const auto size = memory_.word32(code.code - 1 + static_cast<uint64_t>(*layout_.code_size));
    if (!exits || !size || *size > kMostCodeBytes) return std::nullopt;
    std::vector<std::byte> behind(kMostBehind);
    const uint64_t end = code.begin + *size;
    // The memory may end before.
    while (!behind.empty() && !memory_.read(end, behind)) behind.resize(behind.size() / 2);
    const Exit *exit = exit_of_call(behind, *exits, at);
    const auto translations = exit && is_pointer(*first) ? bytes(*first) : std::nullopt;
    if (!translations || !has_one_frame(*translations, exit->translation)) return std::nullopt;
    const auto its = bytecodes_of(function);
    return its ? text_at(*its, exit->bytecode, source) : std::nullopt;
}

std::vector<Spot> CodeReader::spots(const Code &code, uint64_t pc, const Shared &function, uint32_t source) {
    if (pc < code.begin || pc - code.begin >= kMostCodeBytes) return {};
    const auto at = static_cast<uint32_t>(pc - code.begin);
    const auto table = bytes(code.table);
    if (!table) return {};
    if (tier(code) == Tier::baseline) {
        const auto its = sizes_ ? bytecodes(code.back) : std::nullopt;
        const auto bytecode = its ? bytecode_at(*table, *its, *sizes_, at) : std::nullopt;
        const auto text = bytecode ? text_at(code.back, std::max(*bytecode, 0), source) : std::nullopt;
        return text ? std::vector<Spot>{{function, *text}} : std::vector<Spot>{};
    }
    const auto length = heap_.field(code.back, objects_.array_length);
    if (!length || !is_smi(*length) || smi(*length) < kBackWords) return {};
    std::optional<std::vector<Inlining>> inlinings;
    for (int32_t i = kBackWords - 1; i > 0 && !inlinings; --i) {
        const auto word = heap_.field(code.back, objects_.array_data + i * kWord);
        const auto its = word && is_pointer(*word) ? bytes(*word) : std::nullopt;
        if (its) inlinings = read_inlinings(*its);
    }
    const auto inlined = inlinings ? functions(code.back, *inlinings) : std::nullopt;
    if (!inlined) return {};
    const auto positions = read_positions(*table, {kMostCodeBytes, source, static_cast<uint32_t>(inlinings->size())});
    const Position *position = positions ? position_at(*positions, static_cast<int32_t>(at)) : nullptr;
    if (!position) return {};
    // A caller's address is the last byte of its call.
    if (const auto text = text_of_call(code, at + 1, function, source)) return {{function, *text}};
    std::vector<Spot> out;
    int32_t text = position->text, by = position->inlined;
    while (by >= 0) {
        const Inlining &inlining = (*inlinings)[static_cast<size_t>(by)];
        out.push_back({inlining.function < 0 ? function : (*inlined)[static_cast<size_t>(inlining.function)], text});
        text = inlining.text;
        by = inlining.inlined; // one before
    }
    out.push_back({function, text});
    return out;
}

} // namespace rawbpf::inline v0::languages::v8
