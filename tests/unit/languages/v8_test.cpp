// V8's heap, made in the test's own memory: as it is, lying, cut, leading in circles.
#include "programs/languages/v8/heap.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/languages/v8/layout.h"
#include "tests/support/test.h"
#include "tests/unit/languages/made_heap.h"
#include "tests/unit/languages/made_memory.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::languages;
using namespace rawbpf::languages::v8;
using namespace rawbpf::test;

namespace {

constexpr uint64_t kFunction = MadeMemory::kBase + 0x4000, kShared = kFunction + 0x100, kScope = kFunction + 0x200,
                   kScript = kFunction + 0x800, kStrings = MadeMemory::kBase + 0x8000;
enum Type : uint16_t {
    kTwoByte = 32,
    kOneByte = 40,
    kCons = 41,
    kExternal = 42,
    kSliced = 43,
    kThin = 45,
    kUndefined = 131,
    kArray = 200,
    kScopeType = 260,
    kSharedType = 261,
    kScriptType = 262,
    kFunctionType = 2065
};

/// A function `fib` of /app/a.js with two variables in its context, on the second line.
class Made {
  public:
    MadeMemory memory;
    v8::Layout layout;

    /// `in_front`: the place in the source lies so in a ScopeInfo.
    explicit Made(bool in_front = true) {
        layout = {.context = -8,
                  .function = -16,
                  .map = 0,
                  .instance_type = 12,
                  .shared = 32,
                  .name_or_scope = 24,
                  .script = 40,
                  .script_name = 16,
                  .script_source = 8,
                  .line_ends = 56,
                  .string_length = 12,
                  .one_byte_chars = 16,
                  .two_byte_chars = 16,
                  .cons_first = 16,
                  .cons_second = 24,
                  .sliced_parent = 16,
                  .sliced_offset = 24,
                  .thin_actual = 16,
                  .resource = 16,
                  .array_length = 8,
                  .array_data = 16,
                  .first_function = kFunctionType,
                  .last_function = kFunctionType + 16,
                  .shared_type = kSharedType,
                  .script_type = kScriptType,
                  .scope_type = kScopeType,
                  .array_type = kArray,
                  .first_nonstring = 128,
                  .representation_mask = 7,
                  .one_byte = 8,
                  .cons = 1,
                  .sliced = 3,
                  .thin = 5,
                  .external = 2,
                  .scope_locals = 2,
                  .scope_first = in_front ? 5 : 3};
        object(kFunction, kFunctionType);
        memory.put(kFunction + 32, tagged(kShared));
        object(kShared, kSharedType);
        memory.put(kShared + 24, tagged(kScope));
        memory.put(kShared + 40, tagged(kScript));
        object(kScript, kScriptType);
        memory.put(kScript + 16, text("/app/a.js"));
        memory.put(kScript + 8, text("let a, b\nfunction fib() {\n}\n"));
        memory.put(kScript + 56, undefined());
        object(kScope, kScopeType);
        const std::vector<uint64_t> place{small(21), small(27)};
        words_ = {0x4171c4, small(0), small(2)};
        if (in_front) words_.insert(words_.end(), place.begin(), place.end());
        names_ = words_.size();
        words_.insert(words_.end(), {text("a"), text("b"), small(7), small(8)});
        name_ = words_.size();
        words_.insert(words_.end(), {text("fib"), small(-1), undefined()});
        if (!in_front) words_.insert(words_.end(), place.begin(), place.end());
        put_scope();
    }
    void put_scope() {
        for (size_t i = 0; i < words_.size(); ++i) memory.put(kScope + 8 + 8 * i, words_[i]);
    }
    std::vector<uint64_t> &scope() { return words_; }
    [[nodiscard]] size_t names() const { return names_; } ///< of its words, the first of the variables' names
    [[nodiscard]] size_t name() const { return name_; }   ///< and its own

    void object(uint64_t at, Type type) { put_object(memory, at, type); }
    uint64_t fresh(Type type) {
        const uint64_t at = next_;
        next_ += 0x80;
        object(at, type);
        return at;
    }
    uint64_t undefined() { return tagged(fresh(kUndefined)); }
    uint64_t text(const std::string &characters) {
        const uint64_t at = fresh(kOneByte);
        memory.put<uint32_t>(at + 12, static_cast<uint32_t>(characters.size()));
        for (size_t i = 0; i < characters.size(); ++i) memory.put<char>(at + 16 + i, characters[i]);
        return tagged(at);
    }
    uint64_t pair(Type type, uint32_t length, uint64_t first, uint64_t second) {
        const uint64_t at = fresh(type);
        memory.put<uint32_t>(at + 12, length);
        memory.put(at + 16, first);
        memory.put(at + 24, second);
        return tagged(at);
    }
    std::optional<std::string> read_text(uint64_t string) {
        Memory reader(memory);
        return Heap(reader, layout).text(string);
    }
    /// "fib /app/a.js:2", or where it failed.
    std::string read() {
        Memory reader(memory);
        Heap heap(reader, layout);
        const auto shared = heap.shared(tagged(kFunction));
        if (!shared) return "no function";
        const auto function = heap.function(*shared);
        if (!function) return "no name";
        const auto ends = function->script != 0 ? heap.line_ends(function->script, function->source) : std::nullopt;
        return function->name + " " + (function->script != 0 ? heap.script_name(function->script) : "") + ":" +
               std::to_string(ends ? line_of(*ends, function->position) : 0);
    }

  private:
    uint64_t next_ = kStrings;
    std::vector<uint64_t> words_;
    size_t names_ = 0, name_ = 0;
};

} // namespace

TEST_CASE("v8: a function's name, file and line, where the place in the source lies in front and behind") {
    for (const bool in_front : {true, false}) {
        Made made(in_front);
        CHECK(made.read() == "fib /app/a.js:2");
        made.scope()[made.name()] = small(0); // none of its own: what it was assigned to
        made.scope()[made.name() + 2] = made.text("app.fib");
        made.put_scope();
        CHECK(made.read() == "app.fib /app/a.js:2");
        made.scope()[2] = small(0); // no variables in the context
        made.scope().erase(made.scope().begin() + static_cast<std::ptrdiff_t>(made.names()),
                           made.scope().begin() + static_cast<std::ptrdiff_t>(made.names()) + 4);
        made.put_scope();
        CHECK(made.read() == "app.fib /app/a.js:2");
    }
    Made module(true); // a number of variables stands in front of the names
    module.scope().insert(module.scope().begin() + static_cast<std::ptrdiff_t>(module.names()), small(3));
    module.put_scope();
    CHECK(module.read() == "fib /app/a.js:2");
    Made own; // V8's own have a string, and no script
    own.memory.put(kShared + 24, own.text("map"));
    own.memory.put(kShared + 40, own.undefined());
    CHECK(own.read() == "map :0");
    own.memory.put(kShared + 24, small(0));
    CHECK(own.read() == " :0");
}

TEST_CASE("v8: lines as V8 has them, and those that are counted, of text outside of the heap, too") {
    Made made;
    const uint64_t ends = made.fresh(kArray);
    made.memory.put(ends + 8, small(3));
    for (int i = 0; i < 3; ++i) made.memory.put(ends + 16 + 8 * static_cast<uint64_t>(i), small(5 + 5 * i));
    made.memory.put(kScript + 56, tagged(ends));
    CHECK(made.read() == "fib /app/a.js:4"); // 21 is behind 5, 10, 15
    made.memory.put(ends + 24, small(1));    // not ascending
    CHECK(made.read() == "fib /app/a.js:0");
    made.memory.put(ends + 8, small(INT32_MAX));
    CHECK(made.read() == "fib /app/a.js:0");
    made.memory.put(kScript + 56, made.undefined());
    const uint64_t chars = MadeMemory::kBase + 0x20000;
    made.memory.put_text(chars, "one\ntwo\nthree\nfour four\n");
    made.memory.put(kScript + 8, made.pair(kExternal, 24, 0xdead, chars));
    CHECK(made.read() == "fib /app/a.js:4");
    made.memory.put(kScript + 8, made.pair(kExternal, 24, 0xdead, 0x10)); // nothing is there
    CHECK(made.read() == "fib /app/a.js:0");
    CHECK(line_of({}, 5) == 1);
    CHECK(line_of({3, 9}, 3) == 1);
    CHECK(line_of({3, 9}, 4) == 2);
    CHECK(line_of({3, 9}, 10) == 3);
    CHECK(line_of({3, 9}, -1) == 0);
}

TEST_CASE("v8: strings in pieces, parts of others, of two bytes; and none that lead in circles or beyond their end") {
    Made made;
    const uint64_t left = made.text("left"), right = made.text("right"), empty = made.text("");
    CHECK(made.read_text(made.pair(kCons, 9, left, right)) == "leftright");
    CHECK(made.read_text(made.pair(kCons, 4, left, empty)) == "left");
    CHECK(made.read_text(made.pair(kThin, 5, right, 0)) == "right");
    CHECK(made.read_text(made.pair(kSliced, 3, right, small(1))) == "igh");
    CHECK(!made.read_text(made.pair(kSliced, 5, right, small(1)))); // beyond its end
    CHECK(!made.read_text(made.pair(kSliced, 1, right, small(-1))));
    const uint64_t wide = made.fresh(kTwoByte);
    made.memory.put<uint32_t>(wide + 12, 4);
    const uint16_t characters[] = {0x66, 0xfc, 0x20ac, 0xd83d};
    for (uint64_t i = 0; i < 4; ++i) made.memory.put<uint16_t>(wide + 16 + 2 * i, characters[i]);
    CHECK(made.read_text(tagged(wide)) == "f\u00fc\u20ac?");
    CHECK(made.read_text(made.text("a\nb\033c")) == "a?b?c"); // one line
    const uint64_t circle = made.fresh(kThin);
    made.memory.put(circle + 16, tagged(circle));
    CHECK(!made.read_text(tagged(circle)));
    const uint64_t ring = made.fresh(kCons);
    made.memory.put<uint32_t>(ring + 12, 8);
    made.memory.put(ring + 16, tagged(ring));
    made.memory.put(ring + 24, tagged(ring));
    CHECK(!made.read_text(tagged(ring)));
    const uint64_t endless = made.fresh(kOneByte);
    made.memory.put<uint32_t>(endless + 12, UINT32_MAX);
    CHECK(made.read_text(tagged(endless))->size() <= 2048);
    CHECK(!made.read_text(made.undefined()));
    CHECK(!made.read_text(small(7)));
}

TEST_CASE("v8: what was moved a moment ago is followed; what is of another type is no function") {
    Made made;
    const uint64_t old = made.fresh(kFunctionType);
    made.memory.put(old, kFunction); // its map's word is its new place
    Memory reader(made.memory);
    Heap heap(reader, made.layout);
    const auto there = heap.shared(tagged(kFunction)), moved = heap.shared(tagged(old));
    REQUIRE((there && moved));
    CHECK(*there == *moved);
    CHECK(!heap.shared(kFunction)); // no pointer
    CHECK(!heap.shared(small(4)));
    CHECK(!heap.shared(tagged(kScript)));
    CHECK(!heap.shared(tagged(0x10)));
    Made other;
    other.object(kShared, kScopeType);
    CHECK(other.read() == "no function");
}

TEST_CASE("v8: a scope that makes no sense gives no name") {
    for (const uint64_t count : {small(-1), small(5000), small(40), tagged(kScope), uint64_t{3}}) {
        Made made;
        made.scope()[2] = count;
        made.put_scope();
        CHECK(made.read() == "no name");
    }
    Made made;
    made.scope()[made.name()] = tagged(kScript); // an object that is no string
    made.put_scope();
    CHECK(made.read() == "no name");
    Made backwards;
    backwards.scope()[4] = small(3); // it ends before it begins
    backwards.put_scope();
    CHECK(backwards.read() == "fib /app/a.js:0");
}

TEST_CASE("v8: whatever the heap holds, reading it ends") {
    std::mt19937_64 random(24);
    for (int round = 0; round < 3000; ++round) {
        Made made(round % 2 == 0);
        auto &bytes = made.memory.bytes();
        for (int i = 0; i < 8; ++i) { // pointers to anything, and bytes
            const uint64_t at = 0x1000 + random() % 0x9000 / 8 * 8;
            const uint64_t word = i % 2 == 0 ? tagged(MadeMemory::kBase + random() % 0xa000 / 8 * 8) : random();
            std::memcpy(bytes.data() + at, &word, sizeof word);
        }
        CHECK(made.read().size() < 8192);
    }
}

namespace {

/// A file that says so of V8's objects; `mend` may say otherwise.
std::optional<File> recognised(const std::vector<std::pair<std::string, int32_t>> &mended, std::string_view gone = "") {
    std::map<std::string, int32_t> told = {{"SmiTag", 0},
                                           {"TaggedSize", 8},
                                           {"SmiShiftSize", 31},
                                           {"off_fp_context", -8},
                                           {"off_fp_function", -16},
                                           {"class_HeapObject__map__Map", 0},
                                           {"class_Map__instance_type__uint16_t", 12},
                                           {"class_JSFunction__shared__SharedFunctionInfo", 32},
                                           {"class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", 24},
                                           {"class_SharedFunctionInfo__script_or_debug_info__HeapObject", 40},
                                           {"class_Script__name__Object", 16},
                                           {"class_Script__source__Object", 8},
                                           {"class_Script__line_ends__Object", 56},
                                           {"class_FixedArrayBase__length__SMI", 8},
                                           {"class_FixedArray__data__uintptr_t", 16},
                                           {"class_String__length__int32_t", 12},
                                           {"class_SeqOneByteString__chars__char", 16},
                                           {"class_SeqTwoByteString__chars__char", 16},
                                           {"class_ConsString__first__String", 16},
                                           {"class_ConsString__second__String", 24},
                                           {"class_SlicedString__parent__String", 16},
                                           {"class_SlicedString__offset__SMI", 24},
                                           {"class_ThinString__actual__String", 16},
                                           {"class_ExternalString__resource__Object", 16},
                                           {"FirstNonstringType", 128},
                                           {"StringRepresentationMask", 7},
                                           {"OneByteStringTag", 8},
                                           {"ConsStringTag", 1},
                                           {"SlicedStringTag", 3},
                                           {"ThinStringTag", 5},
                                           {"ExternalStringTag", 2},
                                           {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262},
                                           {"type_Script__SCRIPT_TYPE", 167},
                                           {"type_ScopeInfo__SCOPE_INFO_TYPE", 261},
                                           {"type_FixedArray__FIXED_ARRAY_TYPE", 175},
                                           {"type_JSFunction__JS_FUNCTION_TYPE", 2066},
                                           {"scopeinfo_idx_ncontextlocals", 2},
                                           {"scopeinfo_idx_first_vars", 3}};
    for (const auto &[name, value] : mended) told[name] = value;
    told.erase(std::string(gone));
    std::vector<std::string> names;
    for (const auto &[name, value] : told) names.push_back("v8dbg_" + name);
    std::vector<SmallSymbol> symbols;
    for (size_t i = 0; i < names.size(); ++i) symbols.push_back({names[i], SmallElf::kText + 4 * i, 4, STT_OBJECT});
    SmallElf small;
    small.symbols(symbols, SHT_DYNSYM);
    std::vector<std::byte> image = small.finish();
    size_t at = offset_in(image, SmallElf::kText);
    for (const auto &[name, value] : told) {
        std::memcpy(image.data() + at, &value, sizeof value);
        at += sizeof value;
    }
    return v8::recognise(*elf::Elf::parse(image, "v8"), image);
}

} // namespace

TEST_CASE("v8: a file tells where everything lies, whatever its fields' types are called; or what it doesn't tell is said") {
    const auto file = recognised({});
    REQUIRE((file && file->layout));
    CHECK((file->why.empty() && file->code.size() == 1));
    const v8::Layout &layout = *file->layout;
    CHECK((layout.context == -8 && layout.function == -16 && layout.shared == 32 && layout.name_or_scope == 24));
    CHECK((layout.script == 40 && layout.first_function == 2066 && layout.last_function > 2066));
    CHECK(recognised({{"LastJSFunctionType", 2081}})->layout->last_function == 2081);
    CHECK(recognised({{"class_SharedFunctionInfo__script__Tagged_HeapObject_", 48}})->layout->script == 48);
    for (const std::string_view gone :
         {"off_fp_function", "class_Script__name__Object", "type_Script__SCRIPT_TYPE", "ThinStringTag"}) {
        const auto less = recognised({}, gone);
        REQUIRE(less.has_value());
        CHECK((!less->layout && less->why.find("v8dbg_") != std::string::npos));
    }
    CHECK(recognised({{"TaggedSize", 4}})->why.find("compressed") != std::string::npos);
    CHECK(recognised({{"class_Script__source__Object", -8}})->why.find("no sense") != std::string::npos);
    CHECK(recognised({{"scopeinfo_idx_first_vars", 1 << 20}})->why.find("no sense") != std::string::npos);
    SmallElf other;
    other.symbols({{"main", SmallElf::kText, 4}}, SHT_DYNSYM);
    const std::vector<std::byte> image = other.finish();
    CHECK(!v8::recognise(*elf::Elf::parse(image, "other"), image));
}

TEST_CASE("v8: a file tells what leads to the lines that run, in both ways; or what it doesn't tell is said") {
    const std::vector<std::pair<std::string, int32_t>> both = {{"off_fp_bytecode_array", -32},
                                                               {"off_fp_bytecode_offset", -40},
                                                               {"class_BytecodeArray__data__uintptr_t", 54},
                                                               {"type_BytecodeArray__BYTECODE_ARRAY_TYPE", 191},
                                                               {"type_ByteArray__BYTE_ARRAY_TYPE", 190}};
    auto apart = both, inside = both;
    apart.insert(apart.end(), {{"type_InstructionStream__INSTRUCTION_STREAM_TYPE", 252},
                               {"class_InstructionStream__instruction_start__uintptr_t", 32},
                               {"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", 196},
                               {"class_Code__instruction_size__int", 56}});
    inside.insert(inside.end(),
                  {{"type_CodeDataContainer__CODE_DATA_CONTAINER_TYPE", 241}, {"class_Code__instruction_start__uintptr_t", 128}});
    const auto newer = recognised(apart), older = recognised(inside);
    REQUIRE((newer->layout->code && older->layout->code));
    const CodeLayout &a = *newer->layout->code, &b = *older->layout->code;
    CHECK((a.code_type == 252 && a.begin == 32 && a.code_size == 56 && a.bytes_type == 190 && a.trusted_bytes_type == 196));
    CHECK((!b.code_type && b.container_type == 241 && b.begin == 128 && !b.code_size && b.trusted_bytes_type == 190));
    CHECK((a.bytecodes == -32 && a.offset == -40 && a.bytecodes_data == 54 && a.bytecodes_type == 191));
    CHECK((newer->why_no_lines.empty() && !newer->sizes)); // such a file has no sizes of bytecodes
    const auto without = recognised({});
    CHECK(
        (without->layout && !without->layout->code && without->why_no_lines.find("off_fp_bytecode_array") != std::string::npos));
    CHECK(recognised(both)->why_no_lines.find("INSTRUCTION_STREAM") != std::string::npos);
    for (const auto &[name, value] : apart) {
        if (name.starts_with("type_Trusted") || name.starts_with("class_Code")) continue;
        auto less = apart;
        less.erase(std::find(less.begin(), less.end(), std::pair(name, value)));
        CAPTURE(name);
        CHECK((recognised(less)->layout && !recognised(less)->layout->code));
    }
    inside.push_back({"class_BytecodeArray__data__uintptr_t", 1 << 20});
    CHECK(recognised(inside)->why_no_lines.find("no sense") != std::string::npos);
}
