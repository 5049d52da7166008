// Open, relocate and load objects of the corpus, ours beside libbpf, with a kernel that says yes at once (dry.c): what a loader
// costs by itself, in processor time. The objects are those of `./dev corpus`, as far as it has made them; only objects that both
// load here count. Each object is loaded anew with everything that it takes, the kernel's types included: half of libbpf's time
// goes into reading those again and again, and ours may not gain by keeping them.
//
// The heap is counted in operator new: the most that was held at once while one of bpfcc's tools was loaded.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include <malloc.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"
#include "tests/bench/bench.h"
#include "tests/bench/dry.h"

namespace {
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

namespace rawbpf {
namespace {

constexpr int kRounds = 3;

double cpu_ms() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

bool load_ours(const std::string &path) {
    auto bytes = sys::map_file(path);
    if (!bytes) return false;
    auto spec = parse_object(bytes->bytes(), path);
    if (!spec) return false;
    LoadOptions options;
    options.pin_by_name = false;
    return load(std::move(*spec), options).has_value();
}

std::vector<std::string> objects_of(const std::filesystem::path &folder, std::string_view set) {
    std::vector<std::string> out;
    std::error_code problem;
    for (const auto &place : std::filesystem::directory_iterator(folder, problem))
        if (place.path().filename().string().starts_with(set))
            for (const auto &file : std::filesystem::directory_iterator(place.path(), problem))
                if (file.path().extension() == ".o") out.push_back(file.path());
    std::sort(out.begin(), out.end());
    return out;
}

template <class F> double all(const std::vector<std::string> &paths, F &&load_one) {
    const double start = cpu_ms();
    for (const std::string &path : paths) (void)load_one(path);
    return cpu_ms() - start;
}

void compare(std::string_view set, const std::vector<std::string> &found) {
    using namespace bench;
    const std::string name = format("loading: {}", set);
    std::vector<std::string> paths;
    for (const std::string &path : found) {
        bool both = load_ours(path);
#ifdef RAWBPF_BENCH_LIBBPF
        both = both && dry_libbpf(path.c_str());
#endif
        if (both) paths.push_back(path);
        if (bench::rounds(2) == 1 && !paths.empty()) break; // the short form
    }
    if (paths.empty()) return skipped(name, "no objects; ./dev corpus makes them");
    const std::string title = format("{}, {} objects: processor time", name, paths.size());
#ifdef RAWBPF_BENCH_LIBBPF
    auto [ours, theirs] = in_turns(
        kRounds, [&] { return all(paths, load_ours); },
        [&] { return all(paths, [](const std::string &path) { return dry_libbpf(path.c_str()) != 0; }); });
    row(title, "ms", ours, theirs, Mark::at_most, 0.5);
#else
    row(title, "ms", repeat(kRounds, [&] { return all(paths, load_ours); }));
#endif
    std::vector<double> heaps;
    for (const std::string &path : paths) {
        const size_t before = held;
        peak = held;
        (void)load_ours(path);
        heaps.push_back(static_cast<double>(peak - before) / 1000);
    }
    const bool usual = set == "libbpf-tools";
    std::sort(heaps.begin(), heaps.end());
    if (usual)
        row(format("{}: heap, of the median object", name), "kB", Figure{heaps[heaps.size() / 2], heaps.front(), heaps.back()},
            Mark::at_most, 200);
    else
        row(format("{}: heap", name), "kB", Figure{heaps[heaps.size() / 2], heaps.front(), heaps.back()});
}

int run(std::span<const char *const> wanted) {
    const char *given = std::getenv("RAWBPF_CORPUS"), *home = std::getenv("HOME");
    const std::filesystem::path folder =
        (given ? std::filesystem::path(given) : std::filesystem::path(home ? home : "/root") / ".cache/rawbpf-corpus") /
        "objects";
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        bench::skipped("loading", "no kernel BTF here");
        return 0;
    }
    dry_kernel(1);
    if (!wanted.empty()) {
        for (std::string_view set : wanted) compare(set, objects_of(folder, set));
        return 0;
    }
    for (const char *set : {"libbpf-tools", "selftests-6.1-", "selftests-6.12-"}) compare(set, objects_of(folder, set));
    return 0;
}

} // namespace
} // namespace rawbpf

int main(int count, char **words) { return rawbpf::run(std::span(words + 1, words + count)); }
