// Objects without a kernel: what two compilers made of golden.bpf.c, and files that aren't whole.
#include "programs/inspect/object_view.h"

#include "asm/kinds.h"
#include "runtime/object/elf_object.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang14, golden_clang19;
}
using namespace rawbpf;

TEST_CASE("inspect: an object's tables") {
    for (Bytes bytes : {golden_clang14, golden_clang19}) {
        auto spec = parse_object(bytes, "golden.o");
        REQUIRE(spec);
        auto text = inspect::object_text(*spec, bytes);
        REQUIRE(text);
        for (const char *wanted :
             {"object golden.o: license \"GPL\"", "\nsections\n", "raw_tp/sched_switch", ", code\n", "\nprograms\n",
              "RAW_TRACEPOINT, ", "only on request", "\nmaps\n", "HASH                 key 4, value 8, 64 entries", "read-only",
              "\nglobal variables\n", "global seed : int = 5", "static ticks : volatile long", "\nrelocations\n",
              "field_exists   struct task_struct.__state (0:", "map            counts",
              "enumval_value  enum pid_type::PIDTYPE_TGID"}) {
            CAPTURE(wanted);
            CHECK(text->find(wanted) != std::string::npos);
        }
        auto json = inspect::object_json(*spec, bytes);
        REQUIRE(json);
        for (const char *wanted :
             {"{\"type\":\"object\",\"name\":\"golden.o\",\"license\":\"GPL\"", "{\"type\":\"section\"",
              "{\"type\":\"program\",\"program\":\"fields\",\"section\":\"raw_tp/sched_switch\",\"prog_type\":\"RAW_TRACEPOINT\"",
              "{\"type\":\"map\",\"map\":\"counts\",\"map_type\":\"HASH\",\"key_size\":4",
              "{\"type\":\"global\",\"name\":\"limit\",\"section\":\".rodata\"", "\"value\":\"07000000\"",
              "{\"type\":\"relocation\",\"program\":\"fields\""}) {
            CAPTURE(wanted);
            CHECK(json->find(wanted) != std::string::npos);
        }
    }
}

TEST_CASE("inspect: the arena's variables, maps on request, and values that would never end") {
    ObjectSpec spec;
    spec.name = "made.o";
    btf::Writer w;
    const auto number = w.add_int("int", 4, true), nothing = w.add_struct("nothing", 0, {});
    const auto endless = w.add_struct("endless", 4, {{"none", w.add_array(nothing, number, 1u << 30), 0}, {"n", number, 0}});
    (void)w.add_datasec(".addr_space.1", 8, {{w.add_var("count", number, 1), 4, 4}});
    std::vector<btf::VarSecinfo> many;
    for (int i = 0; i < 300; ++i) many.push_back({w.add_var("e", endless, 1), 0, 4});
    (void)w.add_datasec(".data", 4, many);
    spec.btf = w.finish();
    MapSpec arena, data;
    arena.name = "arena";
    arena.type = uint32_t(MapType::ARENA);
    arena.autocreate = false;
    arena.contents = {std::byte{}, std::byte{}, std::byte{}, std::byte{}, std::byte{7}, std::byte{}, std::byte{}, std::byte{}};
    data.name = "made.data";
    data.data_section = ".data";
    data.contents = {std::byte{1}, std::byte{}, std::byte{}, std::byte{}};
    spec.maps = {arena, data};
    const Result<std::string> text = inspect::object_text(spec, golden_clang19); // any file's sections
    REQUIRE(text);
    CHECK(text->find("global count : int = 7") != std::string::npos);
    CHECK(text->find(", only on request") != std::string::npos);
    CHECK(text->size() < 100'000);
}

TEST_CASE("inspect: a file cut anywhere is shown or refused") {
    const Bytes whole = golden_clang19;
    size_t refused = 0;
    for (size_t cut = 0; cut < whole.size(); cut += 7) {
        const Bytes part = whole.first(cut);
        auto spec = parse_object(part, "cut.o");
        if (!spec) {
            ++refused;
            continue;
        }
        (void)inspect::object_text(*spec, part);
        (void)inspect::object_json(*spec, part);
    }
    CHECK(refused > 0);
}
