// See samples.h. Everything is made with btf::Writer, whose own bytes are compared with the documentation's in btf_test.cpp.
#include "tests/unit/btf/samples.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"

namespace rawbpf::test {

using btf::Kind;

std::vector<std::byte> sample_btf() {
    btf::Writer w;
    REQUIRE(w.add_int("int", 4, true) == id::int_);
    REQUIRE(w.add_int("_Bool", 1, btf::IntEncoding{.bits = 8, .is_bool = true}) == id::bool_);
    REQUIRE(w.add_typedef("pid_t", id::int_) == id::pid);
    REQUIRE(w.add_modifier(Kind::const_, id::pid) == id::const_pid);
    REQUIRE(w.add_ptr(id::task) == id::task_ptr);
    REQUIRE(w.add_struct("task_struct", 48,
                         {{"pid", id::pid, 0},
                          {"parent", id::task_ptr, 64},
                          {"state", id::state, 128},
                          {"flags", id::flags, 160},
                          {"alive", id::bool_, 224}}) == id::task);
    REQUIRE(w.add_struct("task_struct___old", 8, {{"pid", id::int_, 0}}) == id::task_old);
    REQUIRE(w.add_struct("flags", 8, {{"low", id::int_, 0, 3}, {"high", id::int_, 3, 5}, {"rest", id::int_, 32}}) == id::flags);
    REQUIRE(w.add_enum("state", 4, {{"DEAD", -1}, {"BUSY", 7}}, true) == id::state);
    REQUIRE(w.add_struct("state", 8, {{"as_int", id::int_, 0}, {"as_ptr", id::task_ptr, 0}}, true) == id::state_union);
    REQUIRE(w.add_enum("big", 8, {{"HUGE_VALUE", 0x123456789abcdef0}}) == id::big);
    REQUIRE(w.add_array(id::int_, id::int_, 10) == id::numbers);
    REQUIRE(w.add_array(id::numbers, id::int_, 3) == id::matrix);
    REQUIRE(w.add_func_proto(id::int_, {{"task", id::task_ptr}, {"", 0}}) == id::proto);
    REQUIRE(w.add_func("wake_up", id::proto, 1) == id::func);
    REQUIRE(w.add_var("counter", id::int_, 1) == id::var);
    REQUIRE(w.add_datasec(".data", 20, {{id::var, 16, 4}}) == id::data);
    REQUIRE(w.add_float("double", 8) == id::real);
    REQUIRE(w.add_decl_tag("kfunc", id::func, -1) == id::tag);
    REQUIRE(w.add_type_tag("user", id::volatile_int) == id::user);
    REQUIRE(w.add_modifier(Kind::volatile_, id::int_) == id::volatile_int);
    REQUIRE(w.add_modifier(Kind::restrict_, id::task_ptr) == id::restrict_ptr);
    REQUIRE(w.add_fwd("other") == id::other);
    REQUIRE(w.next_id() == id::count);
    return w.finish();
}

void swap_btf(std::vector<std::byte> &bytes) {
    auto swap_word = [&](size_t at) {
        uint32_t value = byte_swap(load<uint32_t>(bytes.data() + at));
        std::memcpy(bytes.data() + at, &value, sizeof value);
    };
    bool host = load<uint16_t>(bytes.data()) == 0xeb9f;
    auto types_end = [&] { return 24 + load<uint32_t>(bytes.data() + 12); };
    size_t end = host ? types_end() : 0;
    std::swap(bytes[0], bytes[1]);
    for (size_t at = 4; at < 24; at += 4) swap_word(at);
    if (!host) end = types_end();
    for (size_t at = 24; at < end; at += 4) swap_word(at);
}

std::vector<std::byte> with_layout(const std::vector<std::byte> &bytes, uint8_t kind, uint8_t fixed, uint8_t each) {
    uint32_t header[8];
    std::memcpy(header, bytes.data(), 24);
    header[1] = sizeof header;
    header[6] = static_cast<uint32_t>(bytes.size() - 24);
    header[7] = (kind + 1u) * 4;
    Bytes head = bytes_of_object(header);
    std::vector<std::byte> out(head.begin(), head.end());
    out.insert(out.end(), bytes.begin() + 24, bytes.end());
    out.resize(out.size() + header[7]);
    out[out.size() - 4] = std::byte{fixed};
    out[out.size() - 3] = std::byte{each};
    return out;
}

std::vector<std::byte> many_types(size_t count, bool sorted) {
    btf::Writer w;
    for (size_t i = 0; i < count; ++i) {
        size_t number = sorted ? i : i * 618033 % 1000003; // a prime stride: all different, in no order
        std::string name = format("type_{:07}", number);
        switch (i % 4) {
        case 0: (void)w.add_int(name, 4, true); break;
        case 1: (void)w.add_struct(name, 8, {{"first", 1, 0}, {"second", 1, 32}}); break;
        case 2: (void)w.add_typedef(name, 1); break;
        default: (void)w.add_enum(name, 4, {{"A", 1}, {"B", 2}, {"C", 3}}); break;
        }
    }
    return w.finish();
}

} // namespace rawbpf::test
