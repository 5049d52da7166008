// What the maps of a loaded object hold, as text and as JSON.
#include "programs/load/contents.h"

#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"
#include "tests/kernel/links/linking.h"

using namespace rawbpf;

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> maps_object;
}

TEST_CASE("contents: maps with their types, as C and as JSON lines") {
    if (!has_program_type(BPF_PROG_TYPE_SOCKET_FILTER)) SKIP("needs CAP_BPF");
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    ObjectSpec spec = parse_object(maps_object, "maps.bpf.o").value();
    Result<LoadedObject> object = load(spec);
    REQUIRE_MESSAGE(object, object.error().message());
    uint8_t packet[64] = {};
    sys::ProgTestRunAttr run;
    run.prog_fd = static_cast<uint32_t>(object->programs.at(0).fd.get());
    run.data_in = sys::reg(packet);
    run.data_size_in = sizeof packet;
    REQUIRE(sys::prog_test_run(run));

    std::string text;
    REQUIRE(load_tool::append_contents(text, spec, *object));
    CAPTURE(text);
    auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
    CHECK(has("seen (BPF_MAP_TYPE_HASH): 2 entries\n"
              "  {.pid = 3, .comm = \"bash\"} = {.hits = 5, .mood = BUSY, .bytes = {1, 2, 3, 4}, .low = 5, .high = 17}\n"
              "  {.pid = 12, .comm = \"bash\"} = {.hits = 1152921504606846976, .mood = BUSY"));
    CHECK(has("slots (BPF_MAP_TYPE_ARRAY): 1 entry, 3 more are zero\n  2 = 9\n"));
    CHECK(has("each (BPF_MAP_TYPE_PERCPU_ARRAY): 1 entry\n  0 = [cpu "));
    CHECK(has("events (BPF_MAP_TYPE_RINGBUF): not shown, a ring is read"));
    CHECK(has(".data:\n  answer = 42\n"));
    CHECK(has(".bss:\n  greeting = \"hi\"\n"));
    CHECK_FALSE(has("constant"));

    text.clear();
    REQUIRE(load_tool::append_contents(text, spec, *object, {.json = true, .constants = true}));
    CHECK(has("{\"type\":\"entry\",\"map\":\"seen\",\"key\":{\"pid\":12,\"comm\":\"bash\"},\"value\":{\"hits\":"
              "\"1152921504606846976\",\"mood\":\"BUSY\","
              "\"bytes\":[1,2,3,4],\"low\":5,\"high\":17}}\n"));
    CHECK(has("{\"type\":\"map_contents\",\"map\":\"slots\",\"map_type\":\"BPF_MAP_TYPE_ARRAY\",\"entries\":1,\"zero\":3,"
              "\"reason\":null}\n"));
    CHECK(has("\"name\":\"answer\",\"value\":42}\n"));
    CHECK(has("\"name\":\"constant\",\"value\":5}\n"));
    CHECK(has("\"map\":\"each\",\"key\":0,\"values\":["));
}
