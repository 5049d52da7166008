// Cuts and mutants of one object, through open and relocate only: an error or a spec, never a crash, a hang or much memory.
//
//      hostile SEED OBJECT       prints "N inputs, slowest ... ms, peak ... KiB"; exit 1 with a reason otherwise
//
// 200 cuts at random lengths and 20 mutants of 50 flipped bytes each. Built with ASan and UBSan by ./dev corpus --hostile; memory
// is counted by replacing operator new, since a sanitizer's own bookkeeping would drown ours. The targets are the running
// kernel's types where they can be read, so that relocations find something to disagree with.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/object/core.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"

using namespace rawbpf;

namespace {

constexpr int kCuts = 200, kMutants = 20, kFlips = 50;
constexpr size_t kMostMemory = 64 << 20;
constexpr unsigned kMostSeconds = 20; // for one input; real objects take milliseconds

size_t held = 0, peak = 0;

} // namespace

void *operator new(size_t size) {
    void *at = std::malloc(size);
    if (!at) std::abort();
    held += malloc_usable_size(at);
    peak = std::max(peak, held);
    return at;
}
void operator delete(void *at) noexcept {
    if (at) held -= malloc_usable_size(at);
    std::free(at);
}
void operator delete(void *at, size_t) noexcept { operator delete(at); }

namespace {

const btf::Btf *kernel_types() {
    static sys::Mapping bytes;
    static std::optional<btf::Btf> types = []() -> std::optional<btf::Btf> {
        auto file = sys::read_into_mapping("/sys/kernel/btf/vmlinux");
        if (!file) return {};
        bytes = std::move(*file);
        auto parsed = btf::Btf::parse(bytes.bytes(), "vmlinux");
        if (!parsed) return {};
        return *parsed;
    }();
    return types ? &*types : nullptr;
}

void too_slow(int) {
    constexpr char kText[] = "an input took more than 20 s\n";
    (void)!write(1, kText, sizeof kText - 1);
    _exit(1);
}

/// Milliseconds.
double open_and_relocate(Bytes bytes) {
    const auto start = std::chrono::steady_clock::now();
    alarm(kMostSeconds);
    auto spec = parse_object(bytes, "hostile.o");
    if (spec && kernel_types()) {
        for (ProgramSpec &program : spec->programs) program.autoload = true;
        const btf::Btf *targets[] = {kernel_types()};
        (void)relocate_core(*spec, targets).has_value();
    }
    alarm(0);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    auto file = sys::read_file(argv[2]);
    if (!file) {
        std::printf("%s\n", file.error().message().c_str());
        return 1;
    }
    signal(SIGALRM, too_slow);
    const Bytes whole = bytes_of(*file);
    (void)open_and_relocate(whole);
    std::mt19937_64 random(std::strtoull(argv[1], nullptr, 10) ^ whole.size());
    double slowest = 0;
    size_t most = 0;
    auto check = [&](Bytes bytes, const char *what, size_t number) {
        const size_t before = held;
        peak = held;
        slowest = std::max(slowest, open_and_relocate(bytes));
        most = std::max(most, peak - before);
        if (peak - before <= kMostMemory) return true;
        std::printf("%s %zu took %zu KiB\n", what, number, (peak - before) >> 10);
        return false;
    };
    for (int i = 0; i < kCuts; ++i) {
        const size_t size = random() % whole.size();
        // A copy of exactly that size, so that a read past its end is seen.
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        if (!check(cut, "cut at", size)) return 1;
    }
    for (int i = 0; i < kMutants; ++i) {
        std::vector<std::byte> mutant(whole.begin(), whole.end());
        for (int flip = 0; flip < kFlips; ++flip) mutant[random() % mutant.size()] ^= std::byte(1 + random() % 255);
        if (!check(mutant, "mutant", static_cast<size_t>(i))) return 1;
    }
    std::printf("%d inputs, slowest %.1f ms, peak %zu KiB\n", kCuts + kMutants, slowest, most >> 10);
    return 0;
}
