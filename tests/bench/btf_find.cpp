// Finding one type in the running kernel's BTF, cold: everything from opening the file to having the type's id, beside the
// system's libbpf.
//
// A tool looks for its types once, soon after it starts, with an empty heap and nothing in its page tables; so each measurement
// runs in a child process of its own, ours and libbpf's in turns. Heap is what malloc has given out between "before" and "found"
// (mallinfo2), the bytes of the file itself not counted. Two rows ask a copy of the kernel's types that is sorted by name, as
// Linux 7 has them.
//
// A peer does the same: libbpf maps the file where it can (1.6), and reads it for the row that reads. Marks, where libbpf 1.7
// took 2.8 and 4.5 ms: 1 ms mapped, 4 ms read; 64 KiB.
#include <algorithm>
#include <cstdlib>
#include <malloc.h>
#include <optional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "runtime/btf/btf.h"
#include "runtime/sys/file.h"
#include "tests/bench/bench.h"

#ifdef RAWBPF_BENCH_LIBBPF
#include <bpf/btf.h>
#endif

// Inside the namespace, because libbpf has a global struct btf.
namespace rawbpf {
namespace {

constexpr char kPath[] = "/sys/kernel/btf/vmlinux";
constexpr int kRounds = 31;

[[noreturn]] void die(const std::string &what) {
    std::fprintf(stderr, "btf_find: %s\n", what.c_str());
    std::_Exit(1);
}

template <class T> T must(Result<T> result) {
    if (!result) die(result.error().message());
    return std::move(*result);
}

size_t heap_in_use() {
    auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// Made before the children are.
struct Prepared {
    std::string file;
    std::vector<std::byte> in_order;
    std::optional<btf::Btf> types, sorted;
} prepared;

/// One way to find a struct; returns the heap that is held when it is found.
using Way = size_t (*)(const char *name);
struct Measured {
    double us = 0, heap = 0;
};

Measured in_child(Way way, const char *name) {
    int ends[2];
    if (pipe(ends) != 0) die("pipe failed");
    pid_t child = fork();
    if (child < 0) die("fork failed");
    if (child == 0) {
        const double start = bench::now_ns();
        Measured m;
        m.heap = static_cast<double>(way(name));
        m.us = (bench::now_ns() - start) / 1000;
        _exit(write(ends[1], &m, sizeof m) == sizeof m ? 0 : 1);
    }
    close(ends[1]);
    Measured m;
    const bool whole = read(ends[0], &m, sizeof m) == sizeof m;
    close(ends[0]);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0 || !whole) die("a child failed");
    return m;
}

void find(const btf::Btf &types, const char *name) {
    if (!types.find(name, btf::Kind::struct_)) die(format("no struct {}", name));
}

size_t parse_and_find(Bytes bytes, const char *name) {
    const size_t before = heap_in_use();
    btf::Btf types = must(btf::Btf::parse(bytes, "vmlinux"));
    find(types, name);
    return heap_in_use() - before;
}

size_t mapped(const char *name) {
    sys::Mapping file = must(sys::map_file(kPath));
    return parse_and_find(file.bytes(), name);
}
size_t read_whole(const char *name) {
    sys::Mapping file = must(sys::read_into_mapping(kPath));
    return parse_and_find(file.bytes(), name);
}
size_t parse_only(const char *) { return must(btf::Btf::parse(bytes_of(prepared.file), "vmlinux")).heap_size(); }
size_t find_only(const char *name) { return find(*prepared.types, name), 0; }
size_t find_in_sorted(const char *name) { return find(*prepared.sorted, name), 0; }

#ifdef RAWBPF_BENCH_LIBBPF
size_t find_by_libbpf(::btf *types, const char *name, size_t heap_before) {
    if (!types) die("libbpf can't load the kernel's BTF");
    if (btf__find_by_name_kind(types, name, BTF_KIND_STRUCT) <= 0) die(format("libbpf finds no struct {}", name));
    // A newer libbpf maps the file, and its bytes aren't on the heap.
    const size_t held = heap_in_use() - heap_before;
    return held > prepared.file.size() ? held - prepared.file.size() : held;
}
size_t libbpf(const char *name) {
    const size_t before = heap_in_use();
    return find_by_libbpf(btf__load_vmlinux_btf(), name, before);
}
// Where a kernel's BTF can't be mapped (before 6.16), whatever libbpf there is reads it.
size_t libbpf_reads(const char *name) {
    const size_t before = heap_in_use();
    return find_by_libbpf(btf__parse_raw(kPath), name, before);
}
#else
constexpr Way libbpf = nullptr, libbpf_reads = nullptr;
#endif

/// As many types in order of their names, anonymous ones first. Their names, kinds and lengths are what matters here.
std::vector<std::byte> sorted_copy(const btf::Btf &types) {
    std::vector<std::pair<std::string_view, btf::Kind>> all;
    for (btf::TypeId id = types.first_id(); id < types.end_id(); ++id) {
        btf::Type type = must(types.type(id));
        all.emplace_back(type.name, type.kind);
    }
    std::sort(all.begin(), all.end());
    btf::Writer out;
    for (auto &[name, kind] : all) {
        if (kind == btf::Kind::struct_)
            (void)out.add_struct(name, 8, {{"a", 1, 0}, {"b", 1, 32}});
        else
            (void)out.add_typedef(name, 1);
    }
    return out.finish();
}

/// The struct that a search from the front finds last.
std::string last_struct(const btf::Btf &types) {
    for (btf::TypeId id = types.end_id(); --id > 0;) {
        btf::Type type = must(types.type(id));
        if (type.kind == btf::Kind::struct_ && types.find(type.name, btf::Kind::struct_) == id) return std::string(type.name);
    }
    die("no structs");
}

/// A way's time, and the peer's in turns with it where there is one. Held to `ratio` of the peer's.
void row(const std::string &what, Way way, [[maybe_unused]] Way theirs, const char *name,
         [[maybe_unused]] std::optional<double> ratio, bool with_heap = false) {
    double heap = 0;
    auto ours = [&] {
        Measured m = in_child(way, name);
        heap = std::max(heap, m.heap);
        return m.us;
    };
#ifdef RAWBPF_BENCH_LIBBPF
    double peer_heap = 0;
    auto peer = [&] {
        Measured m = in_child(theirs, name);
        peer_heap = std::max(peer_heap, m.heap);
        return m.us;
    };
    if (ratio) {
        auto [mine, its] = bench::in_turns(kRounds, ours, peer);
        bench::row(what, "us", mine, its, bench::Mark::at_most, *ratio);
        if (with_heap)
            bench::row(what + ": heap", "B", {heap, heap, heap}, {peer_heap, peer_heap, peer_heap}, bench::Mark::at_most,
                       65536 / peer_heap);
        return;
    }
#endif
    bench::row(what, "us", bench::repeat(kRounds, ours));
    if (with_heap) bench::row(what + ": heap", "B", {heap, heap, heap}, bench::Mark::at_most, 65536);
}

int run() {
    Result<std::string> file = sys::read_file(kPath);
    if (!file) {
        bench::skipped("btf", file.error().message());
        return 0;
    }
    prepared.file = std::move(*file);
    prepared.types = must(btf::Btf::parse(bytes_of(prepared.file), "vmlinux"));
    prepared.in_order = sorted_copy(*prepared.types);
    prepared.sorted = must(btf::Btf::parse(prepared.in_order, "sorted"));
    if (!prepared.sorted->sorted()) die("the sorted copy isn't seen to be sorted");
    const std::string last = last_struct(*prepared.types);

    if (Result<sys::Mapping> mapping = sys::map_file(kPath)) {
        row("btf: map, parse, find task_struct", mapped, libbpf, "task_struct", 1 / 2.8, true);
        row("btf: map, parse, find " + last + " (the last)", mapped, libbpf, last.c_str(), 1 / 2.8);
    } else {
        bench::skipped("btf: map, parse, find", "needs a BTF that can be mapped, 6.16");
    }
    row("btf: read, parse, find task_struct", read_whole, libbpf_reads, "task_struct", 4 / 4.5, true);
    row("btf: find where sorted (Linux 7)", find_in_sorted, libbpf, "task_struct", 0.01);
    row("btf:   of which parse", parse_only, nullptr, "", {});
    row("btf:   of which find task_struct", find_only, nullptr, "task_struct", {});
    row("btf:   of which find " + last, find_only, nullptr, last.c_str(), {});
    return 0;
}

} // namespace
} // namespace rawbpf

int main() { return rawbpf::run(); }
