// The ring buffer's reader against libbpf's, on the same map, fed by the same program.
//
//   fill, then consume   one thread: the cost of a record to the reader alone
//   live                 producer and consumer on a CPU each: what arrives in a second, busy polling or sleeping in epoll, with
//                        the kernel's default wake-ups and with BPF_RB_NO_WAKEUP
#include <atomic>
#include <thread>
#include <vector>

#include <sched.h>

#include "runtime/events/ring_buffer.h"
#include "tests/bench/bench.h"
#include "tests/support/ring_producer.h"

#ifdef RAWBPF_BENCH_LIBBPF
#include <bpf/libbpf.h>
#endif

using namespace rawbpf;
using namespace rawbpf::bench;
using namespace rawbpf::test;

namespace {

constexpr uint32_t kSize = 512 << 10;
constexpr uint32_t kRecords = 1000; // a run of the program
constexpr double kLive = 0.15e9;    // ns a measurement

uint64_t sum, count;

/// The two readers behind one face.
struct Ours {
    RingBuffer ring;
    explicit Ours(int map) : ring(RingBuffer::open(map, kSize).value()) {}
    size_t consume() {
        return ring.consume([](Bytes record) { sum += load<uint64_t>(record.data()), ++count; });
    }
    void busy_poll() {
        ring.busy_poll([](Bytes record) { sum += load<uint64_t>(record.data()), ++count; });
    }
    void wait_and_consume() {
        consume();
        (void)ring.wait(50);
    }
};

#ifdef RAWBPF_BENCH_LIBBPF
struct Libbpf {
    ring_buffer *ring;
    explicit Libbpf(int map) : ring(ring_buffer__new(map, handle, nullptr, nullptr)) {}
    ~Libbpf() { ring_buffer__free(ring); }
    static int handle(void *, void *data, size_t) { return sum += *static_cast<uint64_t *>(data), ++count, 0; }
    size_t consume() { return static_cast<size_t>(ring_buffer__consume(ring)); }
    void busy_poll() { consume(); }
    void wait_and_consume() { ring_buffer__poll(ring, 50); }
};
#endif

/// ns a record: fills the ring, then times one consume().
template <class Reader> double fill_then_consume(int map, int program) {
    while (produce(program).value_or(0u) == kRecords) {
    }
    Reader reader(map);
    const double start = now_ns();
    const size_t n = reader.consume();
    const double taken = now_ns() - start;
    reader.consume();
    return taken / static_cast<double>(n);
}

void pin(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/// Millions of records a second that reach the reader.
template <class Reader> double live(int map, int program, bool sleep, int consumer_cpu, int producer_cpu) {
    std::atomic<bool> stop = false, started = false;
    Reader reader(map);
    std::thread producer([&] {
        pin(producer_cpu);
        while (!stop.load(std::memory_order_relaxed)) {
            started = true;
            if (!produce(program)) break;
        }
    });
    pin(consumer_cpu);
    while (!started) sleep ? reader.wait_and_consume() : reader.busy_poll();
    count = 0;
    const double start = now_ns();
    double now = start;
    while (now - start < kLive) {
        if (sleep) {
            reader.wait_and_consume();
        } else {
            for (int i = 0; i < 64; ++i) reader.busy_poll();
        }
        now = now_ns();
    }
    const double rate = static_cast<double>(count) / (now - start) * 1e3;
    stop = true;
    producer.join();
    reader.consume();
    return rate;
}

void compare_live(const char *name, int map, int program, bool sleep, int a, int b) {
    auto ours = [&] { return live<Ours>(map, program, sleep, a, b); };
#ifdef RAWBPF_BENCH_LIBBPF
    const auto [mine, theirs] = in_turns(15, ours, [&] { return live<Libbpf>(map, program, sleep, a, b); });
    row(name, "M/s", mine, theirs, Mark::at_least, 1.0);
#else
    row(name, "M/s", repeat(15, ours));
#endif
}

} // namespace

int main() {
    auto map = make_ring(kSize);
    auto loud = map ? make_producer(map->get(), kRecords, 0) : Result<Fd>(Unexpected(map.error()));
    auto quiet = map ? make_producer(map->get(), kRecords, BPF_RB_NO_WAKEUP) : Result<Fd>(Unexpected(map.error()));
    if (!loud || !quiet) {
        skipped("ring buffer", (loud ? quiet : loud).error().message());
        return 0;
    }
    auto ours = [&] { return fill_then_consume<Ours>(map->get(), quiet->get()); };
#ifdef RAWBPF_BENCH_LIBBPF
    const auto [mine, theirs] = in_turns(31, ours, [&] { return fill_then_consume<Libbpf>(map->get(), quiet->get()); });
    row("ring buffer: consume a filled ring, a record", "ns", mine, theirs, Mark::at_most, 1.0);
#else
    row("ring buffer: consume a filled ring, a record", "ns", repeat(31, ours), Mark::at_most, 2.5);
#endif

    cpu_set_t mine_set;
    sched_getaffinity(0, sizeof mine_set, &mine_set);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &mine_set)) cpus.push_back(cpu);
    if (cpus.size() < 2) {
        skipped("ring buffer: live", "needs two CPUs");
        return 0;
    }
    compare_live("ring buffer: live, busy, default wake-ups", map->get(), loud->get(), false, cpus[0], cpus[1]);
    compare_live("ring buffer: live, busy, NO_WAKEUP", map->get(), quiet->get(), false, cpus[0], cpus[1]);
    compare_live("ring buffer: live, epoll, default wake-ups", map->get(), loud->get(), true, cpus[0], cpus[1]);
    return 0;
}
