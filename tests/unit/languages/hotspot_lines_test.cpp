// Lines and inlined methods of HotSpot's code: streams and tables made in the test's own memory, right, cut, lying.
#include "programs/languages/hotspot/lines.h"

#include <string>
#include <utility>
#include <vector>

#include "programs/languages/hotspot/code.h"
#include "programs/languages/hotspot/scopes.h"
#include "programs/languages/hotspot/unsigned5.h"
#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;
using namespace rawbpf::languages::hotspot;
using namespace rawbpf::test;

namespace {

using hotspot::Code, hotspot::Number; // rawbpf has others, which a batch's other files include
using Stream = std::vector<std::byte>;

/// As the JDK writes it (unsigned5.hpp): the last byte that isn't yet enough is 192 or more (191 without zero).
void put_number(Stream &out, uint32_t value, bool without_zero) {
    const uint32_t lowest = without_zero ? 1 : 0, low = 192 - lowest;
    for (int i = 0; i < 4 && value >= low; ++i) {
        value -= low;
        out.push_back(static_cast<std::byte>(low + value % 64 + lowest));
        value /= 64;
    }
    out.push_back(static_cast<std::byte>(value + lowest));
}
void put_signed(Stream &out, int32_t value, bool without_zero) {
    put_number(out, static_cast<uint32_t>(value) << 1 ^ static_cast<uint32_t>(value >> 31), without_zero);
}

using Line = std::pair<uint32_t, uint32_t>; // bytecode, line

/// As the JDK writes it (compressedStream.cpp).
Stream table_of(const std::vector<Line> &lines, bool without_zero) {
    Stream out;
    int64_t at = 0, line = 0;
    for (const auto &[bytecode, number] : lines) {
        const int64_t bytes = bytecode - at, more = number - line;
        if (bytes >= 0 && bytes <= 0x1f && more >= 0 && more <= 7 && (bytes << 3 | more) != 0xff && (bytes << 3 | more) != 0) {
            out.push_back(static_cast<std::byte>(bytes << 3 | more));
        } else {
            out.push_back(std::byte{0xff});
            put_signed(out, static_cast<int32_t>(bytes), without_zero);
            put_signed(out, static_cast<int32_t>(more), without_zero);
        }
        at = bytecode, line = number;
    }
    out.push_back(std::byte{0});
    return out;
}

constexpr uint64_t kBlob = MadeMemory::kBase, kApart = kBlob + 0x8000, kWritable = kBlob + 0x10000;

/// An nmethod with two inlined methods: at 0x10 its own, at 0x20 one in it, at 0x30 one in that. Offsets as none of a JDK's.
class Inlined {
  public:
    MadeMemory memory;
    ScopeOffsets layout;
    Code code;
    bool without_zero;
    std::vector<uint64_t> scopes; // of the three, in the stream
    enum class Form { blob, data, apart };

    explicit Inlined(Form form = Form::blob, bool zero = false) : without_zero(!zero), form_(form) {
        layout.pcs = {8, 4, true};
        layout.pcs_end = {12, 4, true};
        layout.scopes_end = {16, 4, true};
        layout.metadata = {20, 4, true};
        layout.metadata_base = {24, 4, true};
        layout.relocation_bytes = {28, 4, true};
        layout.writable_bytes = {32, 4, true};
        layout.scopes = {40, 8, false};
        layout.pc_offset = {0, 4, true};
        layout.scope_offset = {4, 4, true};
        layout.pc_bytes = 12;
        if (form != Form::blob) layout.apart = Number{48, 8, false};
        if (form == Form::apart) layout.writable = Number{56, 8, false};
        layout.metadata_by_base = form == Form::data;
        code.at = kBlob;
        code.begin = kBlob + 0x100;
        code.end = kBlob + 0x200;
        code.method = 0x111100;
        code.kind = Kind::method;
        stream.push_back(std::byte{0xff});
        scopes.push_back(scope(0, 1, 7 + 1));
        scopes.push_back(scope(scopes[0], 2, 300 + 1));
        scopes.push_back(scope(scopes[1], 3, 0)); // it is entered
        put_tables({{-1, 0}, {0x10, scopes[0]}, {0x20, scopes[1]}, {0x30, scopes[2]}, {INT32_MAX, 0}});
    }
    uint64_t scope(uint64_t caller, uint32_t method, uint32_t bytecode) {
        const uint64_t at = stream.size();
        for (const uint64_t value : {caller, uint64_t{method}, uint64_t{bytecode}, uint64_t{5}, uint64_t{6}, uint64_t{7}})
            put_number(stream, static_cast<uint32_t>(value), without_zero);
        return at;
    }
    void put_tables(const std::vector<std::pair<int32_t, uint64_t>> &pcs) {
        const uint64_t pcs_bytes = pcs.size() * layout.pc_bytes;
        uint64_t pcs_at = kApart + 0x40, scopes_at = pcs_at + pcs_bytes, metadata_at = kWritable + 0x18;
        memory.put<uint64_t>(kBlob + 48, kApart);
        memory.put<uint64_t>(kBlob + 56, kWritable);
        memory.put<uint32_t>(kBlob + 28, 0x11); // aligned by whoever reads
        memory.put<uint32_t>(kBlob + 32, 0x18 + 24);
        if (form_ == Form::blob) { // metadata, scopes, PcDescs
            metadata_at = kBlob + 0x400;
            scopes_at = metadata_at + 24;
            pcs_at = kBlob + 0x800;
            memory.put<uint32_t>(kBlob + 8, 0x800);
            memory.put<uint32_t>(kBlob + 12, static_cast<uint32_t>(0x800 + pcs_bytes));
            memory.put<uint32_t>(kBlob + 20, 0x400);
            memory.put<uint64_t>(kBlob + 40, scopes_at);
        } else {
            memory.put<uint32_t>(kBlob + 8, 0x40);
            memory.put<uint32_t>(kBlob + 12, static_cast<uint32_t>(0x40 + pcs_bytes));
            memory.put<uint32_t>(kBlob + 16, static_cast<uint32_t>(0x40 + pcs_bytes + stream.size()));
            if (form_ == Form::data) {
                metadata_at = kBlob + 0x300 + 0x20;
                memory.put<uint32_t>(kBlob + 24, 0x300);
                memory.put<uint32_t>(kBlob + 20, 0x20);
            }
        }
        pcs_at_ = pcs_at, scopes_at_ = scopes_at;
        for (size_t i = 0; i < pcs.size(); ++i) {
            memory.put<int32_t>(pcs_at + i * layout.pc_bytes, pcs[i].first);
            memory.put<uint32_t>(pcs_at + i * layout.pc_bytes + 4, static_cast<uint32_t>(pcs[i].second));
        }
        for (size_t i = 0; i < stream.size(); ++i) memory.put<std::byte>(scopes_at + i, stream[i]);
        for (uint64_t i = 0; i < 3; ++i) memory.put<uint64_t>(metadata_at + 8 * i, 0x111100 * (i + 1));
    }
    /// "method:bytecode" each, innermost first.
    std::string at(uint64_t offset, bool caller = true) {
        Memory reader(memory, 64);
        std::string out;
        for (const Scope &one : hotspot::scopes_at(reader, layout, code, code.begin + offset, caller))
            out += std::to_string(one.method / 0x111100) + ":" + std::to_string(one.bytecode) + " ";
        return out;
    }
    void put_scope_byte(uint64_t at, uint8_t byte) { memory.put<uint8_t>(scopes_at_ + at, byte); }
    [[nodiscard]] uint64_t pcs_at() const { return pcs_at_; }
    [[nodiscard]] uint64_t scopes_at() const { return scopes_at_; }
    Stream stream;

  private:
    Form form_;
    uint64_t pcs_at_ = 0, scopes_at_ = 0;
};

} // namespace

TEST_CASE("hotspot: numbers of streams, with and without bytes of zero") {
    for (const bool without_zero : {false, true}) {
        Stream stream;
        const std::vector<uint32_t> all{0, 1, 2, 190, 191, 192, 255, 256, 12287, 12288, 1 << 20, UINT32_MAX - 1, UINT32_MAX};
        for (const uint32_t value : all) put_number(stream, value, without_zero);
        if (without_zero)
            for (const std::byte byte : stream) CHECK(byte != std::byte{0});
        Numbers in(stream, without_zero);
        for (const uint32_t value : all) CHECK(in.next() == value);
        CHECK(!in.next());
        Stream negative;
        for (const int32_t value : {0, -1, 1, -1000, 1000, INT32_MIN, INT32_MAX}) put_signed(negative, value, without_zero);
        Numbers signs(negative, without_zero);
        for (const int32_t value : {0, -1, 1, -1000, 1000, INT32_MIN, INT32_MAX}) CHECK(signs.next_signed() == value);
    }
    const Stream zero{std::byte{0}};
    CHECK(Numbers(zero, false).next() == 0u);
    CHECK(!Numbers(zero, true).next());
    const Stream cut{std::byte{0xff}, std::byte{0xff}};
    CHECK(!Numbers(cut, true).next());
    const Stream endless(6, std::byte{0xff}); // five bytes at the most
    Numbers long_one(endless, false);
    CHECK(long_one.next().has_value());
    CHECK(!long_one.next());
}

TEST_CASE("hotspot: lines of bytecodes") {
    const std::vector<Line> lines{{0, 10}, {3, 12}, {40, 11}, {44, 500}, {44, 501}, {3000, 499}, {3001, 65535}};
    for (const bool without_zero : {false, true}) {
        CAPTURE(without_zero);
        const Stream table = table_of(lines, without_zero);
        for (const auto &[bytecode, line] : std::vector<Line>{{0, 10},
                                                              {2, 10},
                                                              {3, 12},
                                                              {39, 12},
                                                              {40, 11},
                                                              {43, 11},
                                                              {44, 500},
                                                              {2999, 501},
                                                              {3000, 499},
                                                              {3001, 65535},
                                                              {9999, 65535}})
            CHECK(line_in(table, bytecode) == line);
        for (size_t bytes = 0; bytes < table.size(); ++bytes) // cut: none, or what was there before the cut
            CHECK(line_in(std::span(table).first(bytes), 9999) == 0);
    }
    CHECK(line_in(table_of({{5, 7}}, true), 4) == 0); // before the first
    CHECK(line_in({}, 0) == 0);
    const Stream back{std::byte{0xff}, std::byte{4}, std::byte{9}, std::byte{0xff}, std::byte{3}, std::byte{9}, std::byte{0}};
    CHECK(line_in(back, 100) == 0); // a distance that is negative
    Stream far(70000, std::byte{0xf9});
    far.push_back(std::byte{0});
    CHECK(line_in(far, 65535) == 2114); // 31 bytecodes and a line each, and then it is enough
    CHECK(line_in(far, UINT32_MAX) == 0);
}

TEST_CASE("hotspot: what was inlined where, in each JDK's form") {
    for (const auto form : {Inlined::Form::blob, Inlined::Form::data, Inlined::Form::apart})
        for (const bool zero : {false, true}) {
            CAPTURE(static_cast<int>(form));
            CAPTURE(zero);
            Inlined vm(form, zero);
            CHECK(vm.at(0x10) == "1:7 ");
            CHECK(vm.at(0x20) == "2:300 1:7 ");
            CHECK(vm.at(0x30) == "3:0 2:300 1:7 ");
            CHECK(vm.at(0x11) == "2:300 1:7 "); // the next one
            CHECK(vm.at(0) == "1:7 ");
            CHECK(vm.at(0x31) == ""); // where a caller returns to there would be one
            CHECK(vm.at(0x31, false) == "3:0 2:300 1:7 ");
            CHECK(vm.at(0x101) == ""); // not its code
        }
}

TEST_CASE("hotspot: scopes that lie are none") {
    for (const auto form : {Inlined::Form::blob, Inlined::Form::apart})
        for (const bool zero : {false, true}) {
            Inlined other(form, zero);
            other.code.method = 0x222200; // the chain ends at another method than the code's
            CHECK(other.at(0x30) == "");
            Inlined circle(form, zero);
            circle.put_scope_byte(circle.scopes[1],
                                  static_cast<uint8_t>(circle.scopes[2] + !zero)); // its caller is inlined in it
            CHECK(circle.at(0x30) == "");
            circle.put_scope_byte(circle.scopes[1], static_cast<uint8_t>(circle.scopes[1] + !zero)); // it is its own caller
            CHECK(circle.at(0x30) == "");
            Inlined number(form, zero);
            number.put_scope_byte(number.scopes[2] + 1, 100); // a method that there isn't
            if (form == Inlined::Form::apart) CHECK(number.at(0x30) == "");
            number.put_scope_byte(number.scopes[2] + 1, !zero); // none
            CHECK(number.at(0x30) == "");
            Inlined beyond(form, zero);
            beyond.memory.put<uint32_t>(beyond.pcs_at() + 3 * 12 + 4, 0x7fffffff); // a scope behind the stream
            CHECK(beyond.at(0x30) == "");
            Inlined unsorted(form, zero); // ends all the same
            for (uint64_t i = 0; i < 5; ++i)
                unsorted.memory.put<int32_t>(unsorted.pcs_at() + i * 12, static_cast<int32_t>(100 - 40 * i));
            (void)unsorted.at(0x30);
        }
    Inlined turned; // the table ends before it begins
    turned.memory.put<uint32_t>(kBlob + 12, 0x100);
    CHECK(turned.at(0x30) == "");
    Inlined huge(Inlined::Form::apart);
    huge.memory.put<uint32_t>(kBlob + 12, INT32_MAX);
    CHECK(huge.at(0x30) == "");
    Inlined nowhere(Inlined::Form::apart);
    nowhere.memory.put<uint64_t>(kBlob + 48, UINT64_MAX - 8);
    CHECK(nowhere.at(0x30) == "");
    Inlined deep(Inlined::Form::apart); // more methods in each other than any compiler inlines
    for (int i = 0; i < 200; ++i) deep.scopes.push_back(deep.scope(deep.scopes.back(), 2, 1));
    deep.put_tables({{-1, 0}, {0x10, deep.scopes[3 + 50]}, {0x20, deep.scopes.back()}, {INT32_MAX, 0}});
    CHECK(deep.at(0x10).size() > 200);
    CHECK(deep.at(0x20) == "");
    uint64_t state = 7;
    for (int round = 0; round < 2000; ++round) {
        Inlined vm(static_cast<Inlined::Form>(round % 3), round % 2 != 0);
        for (int i = 0; i < 8; ++i) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const uint64_t places[] = {kBlob, vm.pcs_at(), vm.scopes_at()};
            vm.memory.put<uint8_t>(places[i % 3] + (state >> 20) % 64, static_cast<uint8_t>(state >> 56));
        }
        CHECK(vm.at((state >> 30) % 0x100, round % 5 != 0).size() < 128 * 20);
    }
}
