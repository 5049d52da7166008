// Types as JSON lines.
#include "programs/inspect/btf_list.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::inspect;

TEST_CASE("json lines: types") {
    btf::Writer w;
    const auto i = w.add_int("int", 4, true);
    const auto s = w.add_struct("s", 4, {{"a", i, 0, 3}});
    const auto e = w.add_enum("e", 8, {{"BIG", -1}, {"ONE", 1}});
    const auto p = w.add_func_proto(0, {{"x", s}});
    const std::vector<std::byte> bytes = w.finish();
    auto b = btf::Btf::parse(bytes, "t");
    REQUIRE(b);
    std::string out;
    for (btf::TypeId id : {i, s, e, p}) REQUIRE(append_type_json(out, *b, id));
    CHECK(
        out ==
        R"({"type":"btf","id":1,"kind":"int","name":"int","size":4,"bits":32,"bit_offset":0,"signed":true,"char":false,"bool":false}
{"type":"btf","id":2,"kind":"struct","name":"s","size":4,"members":[{"name":"a","type_id":1,"bit_offset":0,"bit_size":3}]}
{"type":"btf","id":3,"kind":"enum64","name":"e","size":8,"signed":false,"values":[{"name":"BIG","value":"18446744073709551615"},{"name":"ONE","value":1}]}
{"type":"btf","id":4,"kind":"func_proto","name":null,"return_type_id":0,"params":[{"name":"x","type_id":2}]}
)");
    const std::string before = out;
    CHECK(!append_type_json(out, *b, 99));
    CHECK(out == before);
}
