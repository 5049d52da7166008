// HotSpot's tables and heaps of code, made in the test's own memory: as they are, cut, lying, leading in circles.
#include "programs/languages/hotspot/code.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;
using namespace rawbpf::languages::hotspot;
using namespace rawbpf::test;

namespace {

constexpr uint64_t kBase = MadeMemory::kBase, kBias = 0x1000; // the file's addresses are below the process's by that
constexpr uint64_t kSymbols = kBase, kStructs = kBase + 0x1000, kTypes = kBase + 0x5000, kConstants = kBase + 0x7000,
                   kTexts = kBase + 0x8000;
constexpr uint64_t kStride = 56, kTypeStride = 40; // unlike any JDK's
constexpr uint64_t kObjects = kBase + 0x10000, kHeap = kBase + 0x20000, kSegments = kBase + 0x30000;
constexpr uint64_t kSegment = 128;

/// A virtual machine with one heap: an nmethod, free memory, the interpreter, a stub.
class Made {
  public:
    MadeMemory memory;
    Interpreter file;

    /// `old`: with one heap, and a class's file in the class, as before JDK 9.
    explicit Made(bool by_offset = false, bool old = false) : by_offset_(by_offset) {
        symbol("gHotSpotVMStructs", kStructs);
        symbol("gHotSpotVMStructEntryArrayStride", kStride);
        const char *at[] = {"TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"};
        for (uint64_t i = 0; i < 6; ++i) symbol("gHotSpotVMStructEntry" + std::string(at[i]) + "Offset", 8 * i);
        symbol("gHotSpotVMTypes", kTypes);
        symbol("gHotSpotVMTypeEntryArrayStride", kTypeStride);
        symbol("gHotSpotVMTypeEntryTypeNameOffset", 8);
        symbol("gHotSpotVMTypeEntrySizeOffset", 24);
        symbol("gHotSpotVMIntConstants", kConstants);
        symbol("gHotSpotVMIntConstantEntryArrayStride", 32);
        symbol("gHotSpotVMIntConstantEntryNameOffset", 0);
        symbol("gHotSpotVMIntConstantEntryValueOffset", 12);
        memory.put<uint64_t>(
            kConstants, text(by_offset ? "ConstMethodFlags::_misc_has_linenumber_table" : "ConstMethod::_has_linenumber_table"));
        memory.put<uint32_t>(kConstants + 12, 4);
        field("ConstMethod", "_constMethod_size", "int", 20);
        field("ConstMethod", by_offset ? "_flags._flags" : "_flags", by_offset ? "u4" : "u2", 24);
        field("ConstMethod", "_code_size", "u2", 28);
        field(old ? "InstanceKlass" : "ConstantPool", "_source_file_name_index", "u2", 40);
        type("ConstMethod", 48);
        if (old)
            variable("CodeCache", "_heap", "CodeHeap*", kObjects + 0x200);
        else
            variable("CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", kObjects);
        field("GrowableArrayBase", "_len", "int", 0);
        field("GrowableArray<int>", "_data", "int*", 8);
        field("CodeHeap", "_memory", "VirtualSpace", 8);
        field("CodeHeap", "_segmap", "VirtualSpace", 56);
        field("CodeHeap", "_log2_segment_size", "int", 4);
        field("VirtualSpace", "_low_boundary", "char*", 0);
        field("VirtualSpace", "_high_boundary", "char*", 8);
        field("VirtualSpace", "_low", "char*", 16);
        field("VirtualSpace", "_high", "char*", 24);
        field("HeapBlock::Header", "_length", by_offset ? "uint32_t" : "size_t", 0);
        field("HeapBlock::Header", "_used", "bool", 8);
        field("CodeBlob", "_name", "const char*", 0);
        field("CodeBlob", "_frame_size", "int", 8);
        field("CodeBlob", "_frame_complete_offset", by_offset ? "int16_t" : "int", 12);
        field("CodeBlob", by_offset ? "_code_offset" : "_code_begin", by_offset ? "int" : "address", 16);
        field("CodeBlob", by_offset ? "_data_offset" : "_code_end", by_offset ? "int" : "address", 24);
        field(by_offset ? "nmethod" : "CompiledMethod", "_method", "Method*", 32);
        field("nmethod", "_compile_id", "int", 40);
        field("Method", "_constMethod", "ConstMethod*", 8);
        field("ConstMethod", "_constants", "ConstantPool*", 8);
        field("ConstMethod", "_name_index", "u2", 18);
        field("ConstantPool", "_pool_holder", "InstanceKlass*", 24);
        field("Klass", "_name", "Symbol*", 16);
        field("Symbol", "_length", "u2", 4);
        field("Symbol", "_body[0]", "u1", 6);
        type("HeapBlock", 16);
        type("ConstantPool", 72);
        // The heap's array, list, and spaces.
        memory.put<uint64_t>(kObjects, kObjects + 0x100);
        memory.put<uint32_t>(kObjects + 0x100, 1);
        memory.put<uint64_t>(kObjects + 0x108, kObjects + 0x200);
        memory.put<uint64_t>(kObjects + 0x200, list());
        memory.put<uint32_t>(list() + 4, 7);
        for (const auto &[offset, at] : {std::pair<uint64_t, uint64_t>(8, kHeap), {56, kSegments}}) {
            memory.put<uint64_t>(list() + offset, at);
            memory.put<uint64_t>(list() + offset + 8, at + 0x8000);
            memory.put<uint64_t>(list() + offset + 16, at);
            memory.put<uint64_t>(list() + offset + 24, at + 0x4000);
        }
        for (uint64_t i = 0; i < 0x4000 / kSegment; ++i) memory.put<uint8_t>(kSegments + i, 0xff);
        memory.put_text(kTexts + 0x2000, "nmethod");
        memory.put_text(kTexts + 0x2010, "Interpreter");
        memory.put_text(kTexts + 0x2020, "resolve_static_call");
        memory.put_text(kTexts + 0x2040, "I2C/C2I adapters");
        memory.put_text(kTexts + 0x2060, "StubRoutines (1)");
        block(0, 8, true);
        blob(0, kTexts + 0x2000, 0x100, 0x300, 6, 0x20);
        memory.put<uint64_t>(blob_at(0) + 32, method());
        memory.put<uint32_t>(blob_at(0) + 40, 17);
        block(8, 4, false);
        block(12, 4, true);
        blob(12, kTexts + 0x2010, 0x80, 0x1e0, 0, UINT32_MAX);
        block(16, 2, true);
        blob(16, kTexts + 0x2020, 0x80, 0xe0, 4, UINT32_MAX);
        // Method, ConstMethod, ConstantPool, Klass, and the two symbols.
        memory.put<uint64_t>(method() + 8, method() + 0x100);
        memory.put<uint64_t>(method() + 0x108, method() + 0x200);
        memory.put<uint16_t>(method() + 0x112, 5);
        memory.put<uint64_t>(method() + 0x200 + 24, method() + 0x400);
        memory.put<uint64_t>(method() + 0x200 + 72 + 5 * 8, method() + 0x500);
        memory.put<uint64_t>(method() + 0x410, method() + 0x540);
        name(method() + 0x500, "fib");
        // Its file, eight bytes of code, and a table of lines.
        memory.put<uint64_t>(method() + 0x200 + 72 + 6 * 8, method() + 0x580);
        memory.put<uint16_t>(method() + (old ? 0x400 : 0x200) + 40, 6);
        name(method() + 0x580, "Main.java");
        memory.put<uint32_t>(method() + 0x100 + 20, 8);
        memory.put<uint16_t>(method() + 0x100 + 24, 4);
        memory.put<uint16_t>(method() + 0x100 + 28, 4);
        for (uint64_t i = 0; const uint8_t byte : {0x07, 0x1e, 0}) memory.put<uint8_t>(method() + 0x100 + 48 + 4 + i++, byte);
        name(method() + 0x540, "app/Main");
    }
    static uint64_t list() { return kObjects + 0x300; }
    static uint64_t method() { return kObjects + 0x1000; }
    static uint64_t blob_at(uint64_t segment) { return kHeap + segment * kSegment + 16; }
    void block(uint64_t segment, uint64_t length, bool used) {
        memory.put<uint64_t>(kHeap + segment * kSegment, length);
        memory.put<uint8_t>(kHeap + segment * kSegment + 8, used);
        for (uint64_t i = 0; i < length; ++i)
            memory.put<uint8_t>(kSegments + segment + i, static_cast<uint8_t>(!used ? 0xff : std::min<uint64_t>(i, 3)));
    }
    void blob(uint64_t segment, uint64_t its_name, uint32_t begin, uint32_t end, uint32_t words, uint32_t complete) {
        const uint64_t at = blob_at(segment);
        memory.put<uint64_t>(at, its_name);
        memory.put<uint32_t>(at + 8, words);
        if (by_offset_)
            memory.put<uint16_t>(at + 12, static_cast<uint16_t>(complete));
        else
            memory.put<uint32_t>(at + 12, complete);
        memory.put<uint64_t>(at + 16, by_offset_ ? begin : at + begin);
        memory.put<uint64_t>(at + 24, by_offset_ ? end : at + end);
    }
    void name(uint64_t at, const std::string &text) {
        memory.put<uint16_t>(at + 4, static_cast<uint16_t>(text.size()));
        for (size_t i = 0; i < text.size(); ++i) memory.put<char>(at + 6 + i, text[i]);
    }
    std::optional<Offsets> layout(std::string &why) {
        Memory reader(memory);
        const auto structs = VmStructs::read(reader, file, kBias, why);
        return structs ? layout_of(*structs, why) : std::nullopt;
    }
    Offsets layout() {
        std::string why;
        const auto found = layout(why);
        REQUIRE_MESSAGE(found, why);
        return *found;
    }
    std::vector<Code> code() {
        const Offsets its = layout();
        Memory reader(memory);
        const auto heaps = read_heaps(reader, its);
        return heaps ? read_code(reader, its, *heaps) : std::vector<Code>();
    }
    std::optional<Code> at(uint64_t pc) {
        const Offsets its = layout();
        Memory reader(memory);
        const auto heaps = read_heaps(reader, its);
        return heaps ? read_code_at(reader, its, *heaps, pc) : std::nullopt;
    }
    Method read_method(uint64_t of = method()) {
        const Offsets its = layout();
        Memory reader(memory);
        return hotspot::read_method(reader, its.methods, of);
    }
    std::string method_name(uint64_t of = method()) { return read_method(of).name; }
    uint32_t line(uint64_t bytecode_at) {
        const Method its = read_method();
        const auto bytecode = its.bytecode_at(bytecode_at);
        Memory reader(memory);
        return bytecode ? line_of(reader, its, *bytecode) : 0;
    }

  private:
    void symbol(const std::string &its_name, uint64_t value) {
        const uint64_t at = kSymbols + 8 * symbols_++;
        memory.put<uint64_t>(at, value);
        file.exports.emplace(its_name, at - kBias);
    }
    uint64_t text(const char *what) {
        const uint64_t at = kTexts + texts_;
        memory.put_text(at, what);
        texts_ += std::strlen(what) + 1;
        return at;
    }
    void entry(const char *type, const char *its_name, const char *kind, bool is_static, uint64_t offset, uint64_t address) {
        const uint64_t at = kStructs + kStride * fields_++;
        memory.put<uint64_t>(at, text(type));
        memory.put<uint64_t>(at + 8, text(its_name));
        memory.put<uint64_t>(at + 16, text(kind));
        memory.put<uint32_t>(at + 24, is_static);
        memory.put<uint64_t>(at + 32, offset);
        memory.put<uint64_t>(at + 40, address);
    }
    void field(const char *type, const char *its_name, const char *kind, uint64_t offset) {
        entry(type, its_name, kind, false, offset, 0);
    }
    void variable(const char *type, const char *its_name, const char *kind, uint64_t address) {
        entry(type, its_name, kind, true, 0, address);
    }
    void type(const char *its_name, uint64_t size) {
        const uint64_t at = kTypes + kTypeStride * types_++;
        memory.put<uint64_t>(at + 8, text(its_name));
        memory.put<uint64_t>(at + 24, size);
    }

    bool by_offset_;
    uint64_t symbols_ = 0, fields_ = 0, types_ = 0, texts_ = 0;
};

} // namespace

TEST_CASE("hotspot: the code in a heap, by the virtual machine's own tables") {
    for (const bool by_offset : {false, true}) { // as in JDK 17, as in 25
        CAPTURE(by_offset);
        Made vm(by_offset);
        const std::vector<Code> code = vm.code();
        REQUIRE(code.size() == 3);
        CHECK((code[0].kind == Kind::method && code[0].begin == Made::blob_at(0) + 0x100 &&
               code[0].end == Made::blob_at(0) + 0x300));
        CHECK((code[0].frame_words == 6 && code[0].complete == 0x20 && code[0].compile_id == 17 && code[0].name.empty()));
        CHECK(code[0].method == Made::method());
        CHECK(vm.method_name() == "app.Main.fib");
        CHECK((code[1].kind == Kind::interpreter && code[1].name == "Interpreter"));
        CHECK((code[2].kind == Kind::stub && code[2].complete == 0 && code[2].frame_words == 4));
        for (const Code &one : code) {
            CHECK(find_code(code, one.begin) == &one);
            CHECK(find_code(code, one.end - 1) == &one);
            CHECK(find_code(code, one.end) == nullptr);
            for (const uint64_t pc : {one.begin, one.end - 1}) {
                const auto found = vm.at(pc);
                REQUIRE(found);
                CHECK(found->is(one));
                if (one.kind == Kind::method) {
                    Memory reader(vm.memory);
                    CHECK(is_there(reader, vm.layout(), one));
                    Code freed = one;
                    ++freed.compile_id;
                    CHECK(!is_there(reader, vm.layout(), freed));
                }
            }
            CHECK(!vm.at(one.end));
        }
        CHECK(find_code(code, 0) == nullptr);
        CHECK(!vm.at(kHeap + 9 * kSegment)); // free
        CHECK(!vm.at(kHeap - 1));
    }
}

TEST_CASE("hotspot: one heap, and a file's name in the class, as before JDK 9") {
    Made vm(true, true);
    const auto code = vm.code();
    REQUIRE(code.size() == 3);
    CHECK((code[0].kind == Kind::method && code[0].method == Made::method()));
    CHECK((code[1].kind == Kind::interpreter && code[1].position == -7));
    CHECK(vm.at(code[0].begin));
    const Method its = vm.read_method();
    CHECK((its.name == "app.Main.fib" && its.file == "Main.java"));
    const auto newer = Made(true).code();
    REQUIRE(newer.size() == 3);
    CHECK(newer[1].position == -8);
    vm.memory.put<uint64_t>(kObjects + 0x200, 0); // it isn't made yet
    CHECK(vm.code().empty());
}

TEST_CASE("hotspot: how a frame is left") {
    Code method;
    method.begin = 0x1000, method.end = 0x2000, method.frame_words = 6, method.complete = 0x20, method.kind = Kind::method;
    const auto same = [](const UnwindRule &a, const UnwindRule &b) { return std::memcmp(&a, &b, sizeof a) == 0; };
    CHECK(same(rule_at(method, 0x101f).rule, unwind::kNoFrame));
    CHECK(same(rule_at(method, 0x1020).rule, {UNWIND_SP, 0, 6, -2, -1}));
    CHECK(rule_at(method, 0x1020).roughly);
    Code other = method;
    other.kind = Kind::interpreter, other.position = -7;
    CHECK(same(rule_at(other, 0x1000).rule, {UNWIND_FP, 0, 2, -2, -1}));
    CHECK((rule_at(other, 0x1000).callers_sp == -1 && rule_at(other, 0x1000).function == -3 &&
           rule_at(other, 0x1000).position == -7));
    other.kind = Kind::frameless;
    CHECK(same(rule_at(other, 0x1800).rule, unwind::kNoFrame));
    other.kind = Kind::routine;
    CHECK(same(rule_at(other, 0x1800).rule, kGuess));
    method.frame_words = 0;
    CHECK(same(rule_at(method, 0x1800).rule, kGuess));
}

TEST_CASE("hotspot: a piece of code takes the place of what it lies over") {
    const auto piece = [](uint64_t begin, uint64_t end) {
        Code out;
        out.begin = begin, out.end = end;
        return out;
    };
    std::vector<Code> list;
    for (const auto &[begin, end] : {std::pair<uint64_t, uint64_t>(30, 40), {10, 20}, {50, 60}})
        put_code(list, piece(begin, end));
    REQUIRE(list.size() == 3);
    put_code(list, piece(20, 30)); // beside them
    REQUIRE(list.size() == 4);
    put_code(list, piece(15, 35)); // over three
    REQUIRE(list.size() == 2);
    CHECK((list[0].begin == 15 && list[1].begin == 50));
    CHECK(find_code(list, 12) == nullptr);
}

TEST_CASE("hotspot: tables that lack something say what") {
    Made vm;
    std::string why;
    vm.file.exports.erase("gHotSpotVMTypes");
    CHECK(!vm.layout(why));
    CHECK(why == "libjvm.so has no symbol gHotSpotVMTypes");
    Made cut;
    cut.memory.put<uint64_t>(kStructs, 0); // the table is empty
    CHECK(!cut.layout(why));
    CHECK(why == "the virtual machine's tables don't have CodeCache: _heaps");
    Made astray;
    astray.memory.put<uint64_t>(kStructs + kStride, 0xdead0000);
    CHECK(!astray.layout(why));
    CHECK(why == "the virtual machine's table of structures can't be read");
    Made endless; // each entry is the first one again: bounded
    endless.memory.put<uint64_t>(kSymbols + 8, 0);
    CHECK(!endless.layout(why));
}

TEST_CASE("hotspot: heaps that lie end early") {
    for (const uint64_t length : {uint64_t{0}, uint64_t{1} << 60, uint64_t{129}}) { // nowhere, behind all, behind the heap
        Made vm;
        vm.memory.put<uint64_t>(kHeap + 8 * kSegment, length);
        CHECK(vm.code().size() == 1);
    }
    Made count;
    count.memory.put<uint32_t>(kObjects + 0x100, UINT32_MAX);
    CHECK(count.code().empty());
    Made turned; // its end is before its beginning
    turned.memory.put<uint64_t>(Made::list() + 8 + 24, kHeap - 1);
    CHECK(turned.code().empty());
    Made huge; // the kernel's half of the address space
    huge.memory.put<uint64_t>(Made::list() + 8 + 8, UINT64_MAX);
    CHECK(huge.code().empty());
    Made bits;
    bits.memory.put<uint32_t>(Made::list() + 4, 63);
    CHECK(bits.code().empty());
    Made beyond; // the code of a blob ends behind its block
    beyond.memory.put<uint64_t>(Made::blob_at(0) + 24, Made::blob_at(0) + 0x8000);
    CHECK(beyond.code().size() == 2);
    CHECK(!beyond.at(Made::blob_at(0) + 0x110));
    Made circle; // a block's segments lead back to themselves, or before the heap
    circle.memory.put<uint8_t>(kSegments + 1, 2);
    CHECK(!circle.at(kHeap + kSegment));
    circle.memory.put<uint8_t>(kSegments, 1);
    CHECK(!circle.at(kHeap));
    Made unread; // nothing is at the array
    unread.memory.put<uint64_t>(kObjects, 0xdead0000);
    CHECK(unread.code().empty());
    Made tiny; // of one byte a block: as many as there is room for
    for (uint64_t i = 0; i < 0x4000 / kSegment; ++i) tiny.block(i, 1, false);
    CHECK(tiny.code().empty());
}

TEST_CASE("hotspot: names that lie are none, or one line") {
    Made vm;
    CHECK(vm.method_name(0xdead0000).empty());
    CHECK(vm.method_name(UINT64_MAX - 4).empty());
    vm.name(Made::method() + 0x500, "a\nb\x7f");
    CHECK(vm.method_name() == "app.Main.a?b?");
    vm.name(Made::method() + 0x540, std::string());
    CHECK(vm.method_name().empty());
    Made circle; // a ConstMethod that is its own pool, class and symbol
    const uint64_t self = Made::method() + 0x600;
    circle.memory.put<uint64_t>(Made::method() + 8, self);
    circle.memory.put<uint64_t>(self + 8, self);
    circle.memory.put<uint64_t>(self + 16, self);
    circle.memory.put<uint64_t>(self + 24, self);
    circle.memory.put<uint64_t>(self + 72, self);
    CHECK(circle.method_name().size() < 5000);
}

TEST_CASE("hotspot: a method's file and lines") {
    for (const bool by_offset : {false, true}) {
        Made vm(by_offset);
        const uint64_t its = Made::method() + 0x100 + 48; // its bytecodes
        CHECK(vm.read_method().file == "Main.java");
        CHECK((vm.line(its) == 7 && vm.line(its + 2) == 7 && vm.line(its + 3) == 13));
        CHECK((vm.line(its - 1) == 0 && vm.line(its + 4) == 0 && vm.line(0) == 0)); // in no bytecode of its
        const auto untold = [&](auto &&change) {
            Made other(by_offset);
            change(other);
            CHECK(other.method_name() == "app.Main.fib");
            return other.line(its);
        };
        CHECK(untold([](Made &) {}) == 7);
        CHECK(untold([](Made &one) { one.memory.put<uint16_t>(Made::method() + 0x100 + 24, 3); }) == 0); // it has none
        CHECK(untold([](Made &one) { one.memory.put<uint16_t>(Made::method() + 0x100 + 28, 0); }) == 0); // no bytecodes
        CHECK(untold([](Made &one) { one.memory.put<uint32_t>(Made::method() + 0x100 + 20, 6); }) == 0); // no room for it
        CHECK(untold([](Made &one) { one.memory.put<int32_t>(Made::method() + 0x100 + 20, -1); }) == 0); // more than all
        CHECK(untold([](Made &one) { one.file.exports.erase("gHotSpotVMIntConstants"); }) == 0);
        CHECK(untold([](Made &one) { one.memory.put<uint64_t>(kConstants, 0xdead0000); }) == 0);
        Made nameless(by_offset);
        nameless.memory.put<uint16_t>(Made::method() + 0x200 + 40, 0);
        CHECK((nameless.read_method().file.empty() && nameless.line(its) == 7));
    }
}

TEST_CASE("hotspot: memory of arbitrary bytes is survived") {
    uint64_t state = 1;
    for (int round = 0; round < 300; ++round) {
        Made vm;
        for (int i = 0; i < 40; ++i) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            vm.memory.put<uint8_t>(kObjects + (state >> 20) % 0x14000, static_cast<uint8_t>(state >> 56));
        }
        for (const Code &code : vm.code()) CHECK(code.begin < code.end);
        (void)vm.at(kHeap + (state >> 30) % 0x4000);
        (void)vm.line(Made::method() + 0x100 + 48);
    }
}
