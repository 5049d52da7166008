// Several threads use the library at the same time, each its own objects. What the library keeps for the whole process
// (runtime/base/remembering.h) is forgotten first, so that all of them ask for it at once. ThreadSanitizer watches these tests,
// too
// (`./dev test --full`).
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asm/builder.h"
#include "asm/map_types.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/map.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/perf_event.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/blocking_call.h"
#include "runtime/sys/cpus.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr int kThreads = 4, kRounds = 8;

bool may_use_bpf() {
    MapSpec spec;
    spec.name = "may";
    spec.type = BPF_MAP_TYPE_ARRAY;
    spec.key_size = spec.value_size = 4;
    spec.max_entries = 1;
    return Map::create(spec).has_value();
}

#define NEEDS_BPF()                                                                                                              \
    if (!may_use_bpf()) SKIP("needs CAP_BPF")

// In each thread, which all begin at the same time; what went wrong, for each.
template <class Task> std::array<std::string, kThreads> at_once(Task task) {
    std::array<std::string, kThreads> wrong;
    std::atomic<int> waiting{kThreads};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            --waiting;
            while (waiting > 0) std::this_thread::yield();
            if (Result<void> done = task(i); !done) wrong[static_cast<size_t>(i)] = done.error().message();
        });
    for (std::thread &thread : threads) thread.join();
    return wrong;
}

Result<Unit> counter(int number) {
    Builder b("threads");
    const MapRef counts = b.array<uint64_t>("counts", 4), ring = b.ringbuf("ring", 65536);
    Code &f = b.program("perf_event", "on_tick");
    const Slot key = f.stack<uint32_t>("key");
    const Label done = f.label("done");
    f.store<uint32_t>(key, runtime(number));
    f.call(helper::map_lookup_elem, counts, key);
    f.jump_if(r0 == 0, done);
    f.mov(r1, 1);
    f.atomic_add<uint64_t>(r0 + 0, r1);
    f.reserve(r6, ring, 8, [&] {
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(r6, r0);
    });
    f.bind(done);
    f.ret(0);
    Built built = b.finish();
    if (!built) return Unexpected(make_error(Errc::internal, built.report()));
    return std::move(*built);
}

Result<void> load_and_attach(int number) {
    for (int round = 0; round < kRounds; ++round) {
        LoadedObject object = RAWBPF_TRY(load(RAWBPF_TRY(object_of(RAWBPF_TRY(counter(number))))));
        const Map &counts = *object.find_map("counts");
        RAWBPF_TRY(counts.put(static_cast<uint32_t>(number), static_cast<uint64_t>(round + 1)));
        RingBuffer ring = RAWBPF_TRY(RingBuffer::open(object.find_map("ring")->fd(), 65536));
        PerfEventLink link =
            RAWBPF_TRY(PerfEventLink::open({.frequency = 99, .pid = getpid()}, object.find_program("on_tick")->fd.get()));
        RAWBPF_TRY(link.enable());
        const uint64_t value = RAWBPF_TRY((counts.get<uint32_t, uint64_t>(static_cast<uint32_t>(number))));
        if (value < static_cast<uint64_t>(round + 1)) return Unexpected(make_error(Errc::internal, "another thread's map"));
    }
    return {};
}

} // namespace

TEST_CASE("threads: four load and attach at once") {
    NEEDS_BPF();
    const size_t before = test::open_descriptors().size();
    forget_features();
    for (const std::string &wrong : at_once(load_and_attach)) CHECK_MESSAGE(wrong.empty(), wrong);
    CHECK(test::open_descriptors().size() <= before + 1); // a tracefs of our own may stay
}

TEST_CASE("threads: four ask what this kernel can do at once, and hear the same") {
    NEEDS_BPF();
    forget_features();
    std::array<std::string, kThreads> heard;
    const auto ask = [&](int number) -> Result<void> {
        std::string &out = heard[static_cast<size_t>(number)];
        const auto add = [&](Support support) { out += static_cast<char>('0' + static_cast<int>(support)); };
        for (int i = 0; i < kFeatureCount; ++i) add(probe_feature(static_cast<Feature>(i)).support);
        for (uint32_t type = 1; type < kMapTypeCount; ++type) add(probe_map_type(type).support);
        for (uint32_t id : {1U, 113U, 130U, 174U, 181U}) add(probe_helper(id).support);
        out += std::to_string(RAWBPF_TRY(possible_cpu_count()));
        return {};
    };
    for (const std::string &wrong : at_once(ask)) CHECK_MESSAGE(wrong.empty(), wrong);
    for (const std::string &one : heard) CHECK(one == heard[0]);
    CHECK(heard[0].find('0') != std::string::npos);
}

TEST_CASE("threads: calls that block are ended at the same time") {
    const auto begin_and_end = [](int) -> Result<void> {
        for (int round = 0; round < kRounds; ++round)
            if (Result<sys::BlockingCall> call = sys::BlockingCall::call(__NR_ppoll, {}, STDERR_FILENO); !call)
                return std::move(call).failure();
        return {};
    };
    for (const std::string &wrong : at_once(begin_and_end)) CHECK_MESSAGE(wrong.empty(), wrong);
}
