// From an object file's bytes to relocated instructions, beside the system's libbpf.
//
// What libbpf does before it asks the kernel is spread over open and load, and load can't be had without the kernel's part; so
// of libbpf the time in user space is counted (getrusage), which the kernel samples by ticks: many repetitions a round. Ours is
// the same: parse, map and index the kernel's BTF, relocate. The first row is opening alone, in processor time.
//
// Mark: half of libbpf's time, the mark that the whole corpus will be held to.
#include <cstdlib>

#include <sys/resource.h>
#include <unistd.h>

#include "runtime/object/core.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"
#include "tests/bench/bench.h"

#ifdef RAWBPF_BENCH_LIBBPF
#include <bpf/libbpf.h>
#endif

namespace rawbpf {
inline namespace v0 {
extern const std::span<const std::byte> golden_clang14;
}

namespace {

constexpr char kKernel[] = "/sys/kernel/btf/vmlinux";
constexpr int kRounds = 7, kTimes = 60;

[[noreturn]] void die(const std::string &what) {
    std::fprintf(stderr, "object: %s\n", what.c_str());
    std::exit(1);
}

double cpu_us() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}
double user_us() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) * 1e6 + static_cast<double>(usage.ru_utime.tv_usec);
}

/// Microseconds a call, by that clock.
template <class F> double each(double (*clock)(), F &&run) {
    const double start = clock();
    for (int i = 0; i < kTimes; ++i) run();
    return (clock() - start) / kTimes;
}

ObjectSpec parse() {
    auto spec = parse_object(golden_clang14, "golden.bpf.o");
    if (!spec) die(spec.error().message());
    return std::move(*spec);
}

void relocate() {
    ObjectSpec spec = parse();
    auto bytes = sys::map_file(kKernel); // each time anew, as libbpf reads it
    if (!bytes) bytes = sys::read_into_mapping(kKernel);
    if (!bytes) die(bytes.error().message());
    auto kernel = btf::Btf::parse(bytes->bytes(), "vmlinux");
    if (!kernel) die(kernel.error().message());
    const btf::Btf *targets[] = {&*kernel};
    if (auto report = relocate_core(spec, targets); !report) die(report.error().message());
}

} // namespace

int run() {
    using namespace bench;
    if (access(kKernel, R_OK) != 0) {
        skipped("object: open and relocate", "no kernel BTF here");
        return 0;
    }
#ifdef RAWBPF_BENCH_LIBBPF
    libbpf_set_print(nullptr);
    auto open = [] { return bpf_object__open_mem(golden_clang14.data(), golden_clang14.size(), nullptr); };
    auto opened = [&] { bpf_object__close(open()); };
    bpf_object *probe = open();
    const bool loads = probe && bpf_object__load(probe) == 0;
    bpf_object__close(probe);
    auto [ours, theirs] = in_turns(
        kRounds, [] { return each(cpu_us, [] { (void)parse(); }); }, [&] { return each(cpu_us, opened); });
    row("object: open (ours appends subprograms too)", "us", ours, theirs, Mark::at_most, 1.0);
    if (!loads) {
        skipped("object: open and relocate", "libbpf can't load the object here");
        return 0;
    }
    auto loaded = [&] {
        bpf_object *object = open();
        if (bpf_object__load(object) != 0) die("libbpf no longer loads the object");
        bpf_object__close(object);
    };
    auto [all, peer] = in_turns(
        kRounds, [] { return each(user_us, relocate); }, [&] { return each(user_us, loaded); });
    row("object: open and relocate, user time", "us", all, peer, Mark::at_most, 0.5);
#else
    row("object: open", "us", repeat(kRounds, [] { return each(cpu_us, [] { (void)parse(); }); }));
    row("object: open and relocate, user time", "us", repeat(kRounds, [] { return each(user_us, relocate); }));
#endif
    return 0;
}

} // namespace rawbpf

int main() { return rawbpf::run(); }
