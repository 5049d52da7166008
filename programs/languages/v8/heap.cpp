#include "programs/languages/v8/heap.h"

#include <algorithm>
#include <span>

#include "runtime/symbols/long_names.h"

namespace rawbpf::inline v0::languages::v8 {
namespace {

constexpr uint32_t kMostText = 8 << 20; // characters of a script, for its lines
constexpr uint32_t kMostLines = 1 << 19;
constexpr int kMostPieces = 8; // of a string that was put together, one in another
constexpr int32_t kMostLocals = 4096;
constexpr int32_t kInlineLocals =
    75; // of more variables a ScopeInfo has one table (ScopeInfo::kScopeInfoMaxInlinedLocalNamesSize)

void append_character(std::string &to, uint32_t character) {
    if (character < ' ' || character == 127) character = '?';
    if (character < 0x80) {
        to.push_back(static_cast<char>(character));
    } else if (character < 0x800) {
        to.push_back(static_cast<char>(0xc0 | character >> 6));
        to.push_back(static_cast<char>(0x80 | (character & 0x3f)));
    } else if (character >= 0xd800 && character < 0xe000) { // half of a pair
        to.push_back('?');
    } else {
        to.push_back(static_cast<char>(0xe0 | character >> 12));
        to.push_back(static_cast<char>(0x80 | (character >> 6 & 0x3f)));
        to.push_back(static_cast<char>(0x80 | (character & 0x3f)));
    }
}

} // namespace

std::optional<int32_t> Heap::type(uint64_t object) {
    if (!is_pointer(object)) return std::nullopt;
    const auto map = field(object, layout_.map);
    if (!map || !is_pointer(*map)) return std::nullopt;
    const auto word = memory_.word32(*map - 1 + static_cast<uint64_t>(layout_.instance_type));
    return word ? std::optional(static_cast<int32_t>(*word & 0xffff)) : std::nullopt;
}

bool Heap::is(uint64_t object, int32_t wanted) { return type(object) == wanted; }

bool Heap::is_string(uint64_t object) {
    const auto its = type(object);
    return its && *its < layout_.first_nonstring;
}

uint64_t Heap::moved(uint64_t object) {
    const auto map = field(object, layout_.map);
    return map && !is_pointer(*map) && *map % sizeof(uint64_t) == 0 && *map != 0 ? *map + 1 : object;
}

std::optional<Shared> Heap::supposed(uint64_t function) {
    if (!is_pointer(function)) return std::nullopt;
    const auto at = field(moved(function), layout_.shared);
    if (!at || !is_pointer(*at)) return std::nullopt;
    const auto name = field(*at, layout_.name_or_scope), script = field(*at, layout_.script);
    return name && script ? std::optional(Shared{*at, *name, *script}) : std::nullopt;
}

std::optional<Shared> Heap::shared(uint64_t function) {
    const auto out = supposed(function);
    const auto its = out ? type(moved(function)) : std::nullopt;
    const bool right = its && *its >= layout_.first_function && *its <= layout_.last_function && is(out->at, layout_.shared_type);
    return right ? out : std::nullopt;
}

std::optional<Shared> Heap::shared_info(uint64_t word) {
    if (!is_pointer(word) || !is(word, layout_.shared_type)) return std::nullopt;
    const auto name = field(word, layout_.name_or_scope), script = field(word, layout_.script);
    return name && script ? std::optional(Shared{word, *name, *script}) : std::nullopt;
}

std::optional<Function> Heap::function(const Shared &shared) {
    Function out;
    if (is(shared.script, layout_.script_type)) {
        out.script = shared.script;
        const auto source = field(shared.script, layout_.script_source);
        if (source && is_pointer(*source) && is_string(moved(*source))) out.source = moved(*source);
    }
    if (is_smi(shared.name_or_scope)) return out;
    if (is_string(shared.name_or_scope)) { // V8's own, or it hasn't run yet
        auto name = text(shared.name_or_scope);
        if (!name) return std::nullopt;
        out.name = std::move(*name);
        return out;
    }
    if (!is(shared.name_or_scope, layout_.scope_type) || !read_scope(shared.name_or_scope, out)) return std::nullopt;
    return out;
}

// A ScopeInfo, in words behind its map (V8's src/objects/scope-info.tq):
//
//      flags  parameters  locals  [begin end]  | [variables of a module] names of locals ... | what each is ...
//             | the function's name, or 0; its slot | the name that it was given by what it was assigned to | [begin end]
//
// The place in the source lies in front since V8 12, which scope_first tells, and behind the names before.
bool Heap::read_scope(uint64_t scope, Function &out) {
    const auto word = [&](int32_t number) { return field(scope, static_cast<int32_t>(sizeof(uint64_t)) * (number + 1)); };
    const auto locals = word(layout_.scope_locals);
    if (!locals || !is_smi(*locals) || smi(*locals) < 0 || smi(*locals) > kMostLocals) return false;
    const int32_t count = smi(*locals);
    int32_t at = layout_.scope_first;
    if (count > 0) {
        auto first = word(at);
        if (first && is_smi(*first)) first = word(++at); // of a module
        if (!first || !is_pointer(*first)) return false;
        const bool table = count >= kInlineLocals && !is_string(*first);
        const int32_t names = table ? 1 : count;
        for (int32_t i = 0; i < names + count; ++i) {
            const auto its = word(at + i);
            if (!its || !(i < names ? table || is_string(*its) : is_smi(*its))) return false;
        }
        at += names + count;
    }
    const auto name = word(at), slot = word(at + 1);
    if (!name || !slot || !is_smi(*slot)) return false;
    if (is_string(*name)) {
        auto its = text(*name);
        if (!its) return false;
        out.name = std::move(*its);
    } else if (!is_smi(*name)) {
        return false;
    }
    const auto given = word(at + 2);
    if (!given || !is_pointer(*given)) return false;
    if (out.name.empty() && is_string(*given)) out.name = text(*given).value_or("");
    const bool in_front = layout_.scope_first - layout_.scope_locals >= 3;
    const int32_t place = in_front ? layout_.scope_first - 2 : at + 3;
    const auto begin = word(place), end = word(place + 1);
    if (begin && end && is_smi(*begin) && is_smi(*end) && smi(*begin) >= 0 && smi(*begin) <= smi(*end))
        out.position = smi(*begin);
    return true;
}

std::string Heap::script_name(uint64_t script) {
    const auto name = field(script, layout_.script_name);
    return name && is_string(*name) ? text(*name).value_or("") : std::string();
}

std::optional<Heap::Flat> Heap::flat(uint64_t string) {
    uint64_t skipped = 0; // characters, of strings that are a part of another
    std::optional<uint32_t> taken;
    for (int i = 0; i < kMostPieces; ++i) {
        const auto its = type(string);
        if (!its || *its >= layout_.first_nonstring) return std::nullopt;
        const auto length = memory_.word32(string - 1 + static_cast<uint64_t>(layout_.string_length));
        if (!length) return std::nullopt;
        const int32_t how = *its & layout_.representation_mask;
        if (how == 0) {
            const bool one_byte = (*its & layout_.one_byte) != 0;
            const auto chars = static_cast<uint64_t>(one_byte ? layout_.one_byte_chars : layout_.two_byte_chars);
            const uint32_t count = taken.value_or(*length);
            if (skipped > *length || count > *length - skipped) return std::nullopt;
            return Flat{string - 1 + chars + skipped * (one_byte ? 1 : 2), count, one_byte};
        }
        std::optional<uint64_t> next;
        if (how == layout_.external) {
            // Outside of the heap, as node's own scripts are. The word behind the resource is where the characters lie
            // (src/objects/string.tq, ExternalString), unless the string is "uncached", by this bit of its type.
            constexpr int32_t kUncached = 0x10;
            const auto chars = field(string, layout_.resource + static_cast<int32_t>(sizeof(uint64_t)));
            const uint32_t count = taken.value_or(*length);
            if (!chars || (*its & kUncached) != 0 || skipped > *length || count > *length - skipped) return std::nullopt;
            const bool one_byte = (*its & layout_.one_byte) != 0;
            return Flat{*chars + skipped * (one_byte ? 1 : 2), count, one_byte};
        }
        if (how == layout_.thin) {
            next = field(string, layout_.thin_actual);
        } else if (how == layout_.cons) { // of one piece, once it was read
            const auto second = field(string, layout_.cons_second);
            const auto rest = second ? memory_.word32(*second - 1 + static_cast<uint64_t>(layout_.string_length)) : std::nullopt;
            if (rest == 0u) next = field(string, layout_.cons_first);
        } else if (how == layout_.sliced) {
            const auto offset = field(string, layout_.sliced_offset);
            if (!offset || !is_smi(*offset) || smi(*offset) < 0) return std::nullopt;
            skipped += static_cast<uint64_t>(smi(*offset));
            if (!taken) taken = *length;
            next = field(string, layout_.sliced_parent);
        }
        if (!next) return std::nullopt;
        string = *next;
    }
    return std::nullopt;
}

bool Heap::append(uint64_t string, std::string &to, int depth) {
    if (to.size() >= symbols::kLongestName) return true;
    if (const auto piece = flat(string)) {
        const auto count = std::min<uint32_t>(piece->length, symbols::kLongestName);
        std::vector<uint16_t> characters(count);
        if (piece->one_byte) {
            std::vector<unsigned char> bytes(count);
            if (!memory_.read(piece->chars, std::as_writable_bytes(std::span(bytes)))) return false;
            std::copy(bytes.begin(), bytes.end(), characters.begin());
        } else if (!memory_.read(piece->chars, std::as_writable_bytes(std::span(characters)))) {
            return false;
        }
        for (const uint16_t character : characters) append_character(to, character);
        return true;
    }
    const auto its = type(string);
    if (depth == 0 || !its || *its >= layout_.first_nonstring || (*its & layout_.representation_mask) != layout_.cons)
        return false;
    const auto first = field(string, layout_.cons_first), second = field(string, layout_.cons_second);
    return first && second && append(*first, to, depth - 1) && append(*second, to, depth - 1);
}

std::optional<std::string> Heap::text(uint64_t string) {
    std::string out;
    if (!append(string, out, kMostPieces)) return std::nullopt;
    return symbols::within_bound(out);
}

uint32_t Heap::length(uint64_t string) {
    if (!is_string(string)) return 0;
    return memory_.word32(string - 1 + static_cast<uint64_t>(layout_.string_length)).value_or(0);
}

std::optional<std::vector<uint32_t>> Heap::line_ends(uint64_t script, uint64_t source) {
    std::vector<uint32_t> out;
    const auto known = field(script, layout_.line_ends);
    if (known && is(*known, layout_.array_type)) {
        const auto length = field(*known, layout_.array_length);
        if (!length || !is_smi(*length) || smi(*length) < 0 || smi(*length) > static_cast<int32_t>(kMostLines))
            return std::nullopt;
        std::vector<uint64_t> words(static_cast<size_t>(smi(*length)));
        if (!memory_.read(*known - 1 + static_cast<uint64_t>(layout_.array_data), std::as_writable_bytes(std::span(words))))
            return std::nullopt;
        for (const uint64_t word : words) out.push_back(static_cast<uint32_t>(smi(word)));
        return std::is_sorted(out.begin(), out.end()) ? std::optional(std::move(out)) : std::nullopt;
    }
    const auto text = source != 0 ? flat(source) : std::nullopt;
    if (!text || text->length > kMostText) return std::nullopt;
    std::vector<std::byte> bytes(Pages::kPage);
    const uint32_t width = text->one_byte ? 1 : 2;
    for (uint32_t at = 0; at < text->length && out.size() < kMostLines;) {
        const auto count = std::min<uint32_t>(text->length - at, Pages::kPage / width);
        if (!memory_.read(text->chars + uint64_t{at} * width, std::span(bytes).first(size_t{count} * width))) return std::nullopt;
        memory_.forget(); // it is read once
        for (uint32_t i = 0; i < count; ++i)
            if (bytes[i * width] == std::byte{'\n'} && (width == 1 || bytes[i * width + 1] == std::byte{0}))
                out.push_back(at + i);
        at += count;
    }
    return out;
}

uint32_t line_of(const std::vector<uint32_t> &line_ends, int32_t position) {
    if (position < 0) return 0;
    const auto at = std::lower_bound(line_ends.begin(), line_ends.end(), static_cast<uint32_t>(position));
    return static_cast<uint32_t>(at - line_ends.begin()) + 1;
}

uint32_t column_of(const std::vector<uint32_t> &line_ends, int32_t position) {
    const uint32_t line = line_of(line_ends, position);
    if (line == 0) return 0;
    return static_cast<uint32_t>(position) - (line == 1 ? 0 : line_ends[line - 2] + 1) + 1;
}

} // namespace rawbpf::inline v0::languages::v8
