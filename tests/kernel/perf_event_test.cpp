// Sampling end to end: a hand-made program counts its own runs in a map, a perf event's clock runs it.
#include "runtime/link/perf_event.h"

#include <algorithm>
#include <ctime>
#include <unistd.h>

#include "asm/insn.h"
#include "runtime/kernel/map.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"
#include "runtime/sys/uapi.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

// key = 0; value = bpf_map_lookup_elem(map, &key); if (value) (*value)++; return 0;
std::vector<Insn> counting_program(int map_fd) {
    return {
        {0x62, 10, 0, -4, 0}, // *(u32 *)(r10 - 4) = 0
        {0xbf, 2, 10, 0, 0},  // r2 = r10
        {0x07, 2, 0, 0, -4},  // r2 += -4
        {0x18, 1, BPF_PSEUDO_MAP_FD, 0, map_fd},
        {},                 // r1 = map
        {0x85, 0, 0, 0, 1}, // r0 = bpf_map_lookup_elem(r1, r2)
        {0x15, 0, 0, 2, 0}, // if r0 == 0 goto +2
        {0xb7, 1, 0, 0, 1}, // r1 = 1
        {0xdb, 0, 1, 0, 0}, // lock *(u64 *)(r0 + 0) += r1
        {0xb7, 0, 0, 0, 0}, // r0 = 0
        {0x95, 0, 0, 0, 0}, // exit
    };
}

Result<Map> counter_map() {
    MapSpec spec;
    spec.name = "ticks";
    spec.type = BPF_MAP_TYPE_ARRAY;
    spec.key_size = 4;
    spec.value_size = 8;
    spec.max_entries = 1;
    return Map::create(spec);
}

Result<Fd> load_counting(const Map &map) {
    std::vector<Insn> insns = counting_program(map.fd());
    sys::ProgLoadAttr attr;
    attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
    attr.insns = sys::reg(insns.data());
    attr.insn_cnt = static_cast<uint32_t>(insns.size());
    attr.license = sys::reg("GPL");
    return sys::prog_load(attr);
}

// Burns CPU in this thread for so long.
void burn(uint64_t ns) {
    for (uint64_t end = sys::process_cpu_ns() + ns; sys::process_cpu_ns() < end;) {
    }
}

} // namespace

TEST_CASE("perf event: samples this thread at the frequency asked for, and stops") {
    Result<Map> map = counter_map();
    if (!map) SKIP("needs CAP_BPF");
    auto before = test::open_descriptors();
    {
        Fd program = load_counting(*map).value();
        SamplingEvent event;
        event.frequency = 1000;
        event.pid = static_cast<int>(gettid());
        PerfEventLink link = PerfEventLink::open(event, program.get()).value();
        burn(20'000'000);
        CHECK(map->get<uint32_t, uint64_t>(0).value() == 0); // not enabled yet
        REQUIRE(link.enable().has_value());
        burn(200'000'000);
        REQUIRE(link.disable().has_value());
        uint64_t ticks = map->get<uint32_t, uint64_t>(0).value();
        // The event counts the time that the thread ran, the ticks must agree with it; skipped ones are possible, more aren't.
        uint64_t ran_ns = link.count().value();
        CHECK(ran_ns >= 190'000'000);
        CHECK(ticks <= ran_ns / 1'000'000 * 11 / 10 + 5);
        CHECK(ticks >= 5); // 200 on a real machine; under emulation the timer's own ticks, 100 or 250 a second, are the limit
        burn(20'000'000);
        CHECK(map->get<uint32_t, uint64_t>(0).value() == ticks);
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("perf event: starts with the workload's exec") {
    Result<Map> map = counter_map();
    if (!map) SKIP("needs CAP_BPF");
    Fd program = load_counting(*map).value();
    auto child = sys::Child::spawn({"sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"}).value();
    SamplingEvent event;
    event.frequency = 2000;
    event.pid = child.pid();
    event.inherit = event.enable_on_exec = true;
    PerfEventLink link = PerfEventLink::open(event, program.get()).value();
    CHECK(map->get<uint32_t, uint64_t>(0).value() == 0);
    REQUIRE(child.start().has_value());
    CHECK(child.wait().value().code == 0);
    CHECK(map->get<uint32_t, uint64_t>(0).value() > 0);
}

TEST_CASE("perf event: what can't be is explained") {
    Result<Map> map = counter_map();
    if (!map) SKIP("needs CAP_BPF");
    Fd program = load_counting(*map).value();
    auto before = test::open_descriptors();
    auto refused = [&](const SamplingEvent &event) {
        Result<PerfEventLink> link = PerfEventLink::open(event, program.get());
        REQUIRE_FALSE(link.has_value());
        return std::move(link).error();
    };
    const std::string limit = sys::read_file("/proc/sys/kernel/perf_event_max_sample_rate").value();
    SamplingEvent fast;
    fast.cpu = 0;
    fast.frequency = 1'000'000;
    Error too_fast = refused(fast);
    CHECK(too_fast.kind == Errc::invalid_argument);
    CHECK(too_fast.message().find(limit.substr(0, limit.size() - 1)) != std::string::npos);
    CHECK(too_fast.message().find("1000000") != std::string::npos);

    SamplingEvent nobody;
    nobody.pid = 0x7ffffffe;
    CHECK(refused(nobody).kind == Errc::not_found);
    CHECK(refused(nobody).message().find("2147483646") != std::string::npos);
    SamplingEvent nowhere;
    CHECK(refused(nowhere).kind == Errc::invalid_argument);
    SamplingEvent still;
    still.cpu = 0;
    still.frequency = 0;
    CHECK(refused(still).kind == Errc::invalid_argument);
    SamplingEvent far;
    far.cpu = 60000;
    Error no_cpu = refused(far);
    CHECK(no_cpu.kind == Errc::not_found);
    CHECK(no_cpu.message().find("CPU 60000") != std::string::npos);

    SamplingEvent cpu0;
    cpu0.cpu = 0;
    Result<PerfEventLink> no_program = PerfEventLink::open(cpu0, map->fd()); // a map is no program
    REQUIRE_FALSE(no_program.has_value());
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("perf event: cycles need a PMU; without one the software clock is named") {
    Result<Map> map = counter_map();
    if (!map) SKIP("needs CAP_BPF");
    Fd program = load_counting(*map).value();
    SamplingEvent event;
    event.hardware = true;
    event.frequency = 1000;
    event.pid = static_cast<int>(gettid());
    Result<PerfEventLink> link = PerfEventLink::open(event, program.get());
    if (link) {
        REQUIRE(link->enable().has_value());
        burn(100'000'000);
        CHECK(map->get<uint32_t, uint64_t>(0).value() > 10);
    } else {
        CHECK(link.error().kind == Errc::unsupported);
        CHECK(link.error().hint.find("software clock") != std::string::npos);
    }
}

TEST_CASE("probes: this kernel has what it says it has") {
    if (!counter_map()) SKIP("needs CAP_BPF");
    auto before = test::open_descriptors();
    forget_features();
    for (int i = 0; i < kFeatureCount; ++i) {
        Feature feature = static_cast<Feature>(i);
        CAPTURE(feature_name(feature));
        bool has = has_feature(feature);
        CHECK(has_feature(feature) == has);
        CHECK(need(feature).has_value() == has);
        CHECK(feature_name(feature).find(", ") != std::string_view::npos);
    }
    // What the kernels that this project supports (5.10 and newer) all have.
    CHECK(has_feature(Feature::object_name));
    CHECK(has_feature(Feature::btf));
    CHECK(has_feature(Feature::global_data));
    CHECK(has_feature(Feature::map_freeze));
    CHECK(has_feature(Feature::batch));
    CHECK(has_feature(Feature::ring_buffer));
    CHECK_FALSE(has_map_type(9999));
    CHECK(has_helper(BPF_PROG_TYPE_PERF_EVENT, 67)); // bpf_get_stack
    CHECK_FALSE(has_helper(BPF_PROG_TYPE_PERF_EVENT, 99999));
    CHECK(test::open_descriptors() == before);
}
