// DSL -> load -> attach -> read, with the installed headers and library only: samples this process at 999 Hz for a fifth of a
// second, and counts the records that the kernel sent.
#include <rawbpf/rawbpf.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <unistd.h>

using namespace rawbpf;

Result<size_t> samples() {
    Builder b("hello");
    MapRef ring = b.ringbuf("samples", 65536);
    Code &f = b.program("perf_event", "on_tick");
    f.reserve(r6, ring, 8, [&] {
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(r6, r0);
    });
    f.ret(0);
    Built built = b.finish();
    if (!built) return Unexpected(make_error(Errc::internal, built.report()));

    LoadedObject object = RAWBPF_TRY(load(RAWBPF_TRY(object_of(*built))));
    RingBuffer records = RAWBPF_TRY(RingBuffer::open(object.find_map("samples")->fd(), 65536));
    auto link = RAWBPF_TRY(PerfEventLink::open({.frequency = 999, .pid = getpid()}, object.find_program("on_tick")->fd.get()));
    RAWBPF_TRY(link.enable());
    for (clock_t start = clock(); clock() - start < CLOCKS_PER_SEC / 5;) continue;
    return records.consume([](Bytes) {});
}

int main() {
    Result<size_t> count = samples();
    if (!count) return fprintf(stderr, "hello: %s\n", count.error().message().c_str()), 1;
    return printf("%zu samples\n", *count), *count > 0 ? 0 : 1;
}
