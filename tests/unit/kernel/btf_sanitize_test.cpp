// BTF made fit for older kernels, on synthetic types.
#include "runtime/kernel/btf_sanitize.h"

#include <cstring>

#include "runtime/btf/btf.h"
#include "tests/support/test.h"

using namespace rawbpf;
using btf::Kind;

namespace {

// One of everything that is younger than the oldest BTF.
std::vector<std::byte> everything() {
    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);                        // 1
    btf::TypeId var = w.add_var("counter", n, 1);                     // 2
    (void)w.add_datasec(".data.mine", 8, {{var, 0, 4}, {var, 4, 4}}); // 3
    (void)w.add_float("double", 8);                                   // 4
    btf::TypeId s = w.add_struct("s", 4, {{"m", n, 0}});              // 5
    (void)w.add_decl_tag("contains:other:node", s, -1);               // 6
    (void)w.add_ptr(w.add_type_tag("kptr", n));                       // 7, 8
    (void)w.add_enum("big", 8, {{"A", 1}, {"B", 1LL << 40}});         // 9
    (void)w.add_enum("small", 4, {{"C", -1}}, true);                  // 10
    (void)w.add_func("f", w.add_func_proto(n, {{"x", n}}), 1);        // 11, 12
    (void)w.add_datasec("?.struct_ops", 4, {{var, 0, 4}});            // 13
    return w.finish();
}

constexpr BtfSupport kNothing{false, false, false, false, false, false, false};

} // namespace

TEST_CASE("btf sanitize: nothing to do leaves every byte") {
    std::vector<std::byte> bytes = everything();
    CHECK(sanitize_btf(bytes, BtfSupport{}).value() == bytes);
}

TEST_CASE("btf sanitize: every young kind becomes an old one under the same id") {
    std::vector<std::byte> bytes = everything();
    std::vector<std::byte> old = sanitize_btf(bytes, kNothing).value();
    btf::Btf before = btf::Btf::parse(bytes, "before").value();
    btf::Btf after = btf::Btf::parse(old, "after").value();
    REQUIRE(before.end_id() == 14);
    REQUIRE(after.end_id() == 15); // one integer more, for the values of ENUM64
    auto kind = [&](btf::TypeId id) { return after.type(id).value().kind; };
    CHECK(kind(2) == Kind::int_);
    CHECK(after.type(2).value().size_or_type == 1);
    btf::Type section = after.type(3).value();
    CHECK(section.kind == Kind::struct_);
    CHECK(section.name == "_data_mine");
    CHECK(section.vlen == 2);
    CHECK(after.member(section, 1).value().bit_offset == 32);
    CHECK(after.member(section, 1).value().type == 2);
    CHECK(kind(4) == Kind::struct_);
    CHECK(after.type(4).value().size_or_type == 8);
    CHECK(kind(6) == Kind::int_);
    CHECK(kind(7) == Kind::const_);
    CHECK(after.type(7).value().size_or_type == 1);
    CHECK(kind(8) == Kind::ptr);
    btf::Type big = after.type(9).value();
    CHECK(big.kind == Kind::union_);
    CHECK(after.member(big, 1).value().name == "B");
    CHECK(after.member(big, 1).value().type == 14);
    CHECK(after.member(big, 1).value().bit_offset == 0);
    CHECK(kind(10) == Kind::enum_);
    CHECK_FALSE(after.type(10).value().kind_flag);
    CHECK(after.type(12).value().kind == Kind::func);
    CHECK(after.type(12).value().vlen == 0);
    CHECK(after.type(13).value().name == "__struct_ops");
    CHECK(after.type(14).value().kind == Kind::int_);
    CHECK(after.type(14).value().size_or_type == 1);
    // What was old already is as it was.
    for (btf::TypeId id : {1u, 5u, 11u}) {
        CHECK(after.type(id).value().kind == before.type(id).value().kind);
        CHECK(after.type(id).value().name == before.type(id).value().name);
    }
}

TEST_CASE("btf sanitize: each kind alone") {
    std::vector<std::byte> bytes = everything();
    for (int which = 0; which < 7; ++which) {
        CAPTURE(which);
        BtfSupport support;
        bool *fields[] = {&support.var_datasec, &support.func_global, &support.float_kind, &support.decl_tag,
                          &support.type_tag,    &support.enum64,      &support.any_name};
        *fields[which] = false;
        CHECK_FALSE(support.everything());
        std::vector<std::byte> out = sanitize_btf(bytes, support).value();
        CHECK(out != bytes);
        CHECK(btf::Btf::parse(out, "out").has_value());
    }
}

TEST_CASE("btf sanitize: a section that may be left out loses its question mark, and only that") {
    BtfSupport support;
    support.any_name = false;
    const std::vector<std::byte> bytes = sanitize_btf(everything(), support).value();
    btf::Btf after = btf::Btf::parse(bytes, "after").value();
    btf::Type section = after.type(btf::TypeId{13}).value();
    CHECK(section.kind == Kind::datasec);
    CHECK(section.name == "_.struct_ops");
    CHECK(after.type(btf::TypeId{3}).value().name == ".data.mine");
}

TEST_CASE("btf sanitize: cut and broken BTF is refused with a place, or passed on, never read past") {
    std::vector<std::byte> bytes = everything();
    for (size_t n = 0; n < bytes.size(); ++n) {
        std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
        Result<std::vector<std::byte>> r = sanitize_btf(cut, kNothing);
        REQUIRE_FALSE(r.has_value());
        CHECK(r.error().kind == Errc::bad_input);
        CHECK(r.error().context.find("offset") != std::string::npos);
    }
    for (size_t at = 0; at < bytes.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::vector<std::byte> wrong = bytes;
            wrong[at] ^= static_cast<std::byte>(1 << bit);
            (void)sanitize_btf(wrong, kNothing);
        }
}
