// Stacks of code without frame pointers, walked in the kernel: workloads whose stacks are known, and what they come out as.
#include "programs/unwind/program.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <unistd.h>

#include <linux/bpf.h>

#include "programs/profile/profile_dsl.h"
#include "programs/profile/program.h"
#include "programs/profile/sample.h"
#include "programs/unwind/live_tables.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/perf_event.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/unwind_workload.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr const char *kEndings[] = {"root", "no process", "no mapping", "no table", "no rule",
                                    "odd",  "unreadable", "stuck",      "depth",    "no registers"};
static_assert(std::size(kEndings) == UNWIND_ENDINGS);

// The files of one process, by the numbers of its regions.
struct Files : unwind::ModuleFiles {
    symbols::ProcessMaps maps;
    std::map<std::string, symbols::ElfSymbols> symbols;

    Result<Fd> open(uint32_t, const unwind::CodeMapping &mapping) override {
        return sys::open(maps.regions[mapping.module].path, O_RDONLY);
    }
    [[nodiscard]] std::string name(uint32_t module) const override { return maps.regions[module].path; }

    [[nodiscard]] std::vector<unwind::CodeMapping> mappings() const {
        std::vector<unwind::CodeMapping> out;
        for (size_t i = 0; i < maps.regions.size(); ++i) {
            const symbols::Region &region = maps.regions[i];
            unwind::CodeMapping mapping;
            mapping.start = region.start;
            mapping.end = region.end;
            mapping.file_offset = region.file_offset;
            mapping.module = static_cast<uint32_t>(i);
            if (region.kind() == symbols::RegionKind::vdso)
                mapping.kind = unwind::CodeMapping::Kind::vdso;
            else if (region.kind() != symbols::RegionKind::file)
                mapping.kind = unwind::CodeMapping::Kind::other;
            out.push_back(mapping);
        }
        return out;
    }
    /// The function, or the file where it has no name there, or "?".
    std::string name_of(uint64_t address) {
        const symbols::Region *region = maps.find(address);
        if (!region) return "?";
        if (region->kind() != symbols::RegionKind::file) return region->path;
        auto known = symbols.find(region->path);
        if (known == symbols.end()) {
            auto loaded = symbols::ElfSymbols::load(region->path);
            if (!loaded) return region->path;
            known = symbols.emplace(region->path, std::move(*loaded)).first;
        }
        auto name = known->second.find(region->offset_of(address));
        return name ? name->symbol : region->path;
    }
};

struct Stack {
    std::vector<std::string> names; ///< leaf first
    std::vector<uint64_t> frames;
    uint32_t flags = 0;
    bool in_kernel = false;
    [[nodiscard]] std::string text() const {
        std::string out = std::string(flags & UNWIND_TABLES ? "" : "[fp] ") + kEndings[PROFILE_ENDING(flags)] + ":";
        for (const std::string &name : names) out += " " + name;
        return out;
    }
    /// How many frames of that name follow each other from `at` on.
    [[nodiscard]] size_t run(size_t at, std::string_view name) const {
        size_t end = at;
        while (end < names.size() && names[end] == name) ++end;
        return end - at;
    }
};

struct Options {
    bool bpf_loop = true;
    uint32_t depth = 127;
    bool tables = true; ///< the process is made known
    std::function<void(LoadedObject &, uint32_t pid)> change;
};

struct Seen {
    std::vector<Stack> stacks;
    std::string why; ///< nothing could be seen
    [[nodiscard]] std::map<std::string, int> endings() const {
        std::map<std::string, int> out;
        for (const Stack &stack : stacks) ++out[kEndings[PROFILE_ENDING(stack.flags)]];
        return out;
    }
};

// Runs the workload and samples it, by the profile program with tables.
Seen seen(const std::string &what, int milliseconds, const Options &how = {}) {
    Seen out;
    const auto failed = [&](const Error &error) {
        out.why = error.message() + error.log;
        return out;
    };
    profile::ProgramOptions program;
    program.config = {1, 1, 1, PROFILE_PIDS_WANTED, 0, 0, 0, 0};
    program.unwind = probe_unwind();
    program.unwind->depth = how.depth;
    if (!how.bpf_loop) program.unwind->has_bpf_loop = false;
    auto spec = profile::program_spec(BpfSource::automatic, program);
    if (!spec) return failed(spec.error());
    auto object = load(std::move(*spec));
    if (!object) return failed(object.error());

    Files files;
    auto child = sys::Child::spawn(test::unwind_workload(what, milliseconds));
    if (!child) return failed(child.error());
    if (auto started = child->start(); !started) return failed(started.error());
    const auto pid = static_cast<uint32_t>(child->pid());
    const std::string status = "/proc/" + std::to_string(pid) + "/stat";
    for (int tries = 0; tries < 5000; ++tries) { // "PID (unwound) T ..."
        if (sys::read_file(status).value_or("").find("(unwound) T") != std::string::npos) break;
        usleep(2000);
    }
    auto maps = symbols::read_maps(static_cast<int>(pid));
    if (!maps) return failed(maps.error());
    files.maps = std::move(*maps);

    auto live = unwind::LiveTables::create(*object, files, {});
    if (!live) return failed(live.error());
    if (how.tables) {
        auto updated = (*live)->update(pid, files.mappings(), sys::monotonic_ns());
        if (!updated) return failed(updated.error());
        CHECK((*live)->published(pid));
        for (const std::string &warning : (*live)->warnings()) MESSAGE(warning);
    }
    if (how.change) how.change(*object, pid);
    if (auto put = object->find_map("profile_pids")->put(pid, uint8_t{1}); !put) return failed(put.error());

    std::vector<RingBuffer> rings;
    for (int i = 0; i < PROFILE_RINGS; ++i) {
        const Map *ring = object->find_map("profile_ring_" + std::to_string(i));
        auto opened = RingBuffer::open(ring->fd(), ring->max_entries());
        if (!opened) return failed(opened.error());
        rings.push_back(std::move(*opened));
    }
    std::vector<PerfEventLink> links;
    const auto cpus = online_cpus();
    if (!cpus) return failed(cpus.error());
    for (int cpu : *cpus) {
        SamplingEvent event;
        event.frequency = 997;
        event.cpu = cpu;
        auto link = PerfEventLink::open(event, object->find_program("profile")->fd.get());
        if (!link) return failed(link.error());
        links.push_back(std::move(*link));
        if (auto enabled = links.back().enable(); !enabled) return failed(enabled.error());
    }
    if (auto told = child->kill(SIGCONT); !told) return failed(told.error());
    const auto take = [&](Bytes record) {
        const auto sample = profile::parse_record(record);
        REQUIRE(sample);
        REQUIRE(sample->head.pid == pid);
        Stack stack;
        stack.flags = sample->head.flags;
        stack.in_kernel = sample->head.kernel_bytes > 0;
        stack.frames.assign(sample->user.begin(), sample->user.end());
        for (size_t i = 0; i < stack.frames.size(); ++i) {
            const bool exact = i == 0 || (stack.frames[i] & UNWIND_EXACT_PC) != 0;
            stack.names.push_back(files.name_of((stack.frames[i] & ~UNWIND_EXACT_PC) - (exact ? 0 : 1)));
        }
        out.stacks.push_back(std::move(stack));
    };
    for (bool ended = false; !ended;) {
        auto exit = child->poll();
        if (!exit) return failed(exit.error());
        ended = exit->has_value();
        for (RingBuffer &ring : rings) ring.consume(take);
        usleep(5000);
    }
    return out;
}

#define SEE(out, ...)                                                                                                            \
    const Seen out = seen(__VA_ARGS__);                                                                                          \
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");                                                     \
    REQUIRE_MESSAGE(out.why.empty(), out.why)

// All samples that are in the workload's own code (not before it has begun, nor at its end).
std::vector<const Stack *> with_leaf(const Seen &seen, std::string_view leaf) {
    std::vector<const Stack *> out;
    for (const Stack &stack : seen.stacks)
        if (!stack.names.empty() && stack.names.front() == leaf) out.push_back(&stack);
    return out;
}

// 99 in a hundred end at the outermost frame; the stacks of the others. (Where a system call ends the thread, its memory can't be
// read; and nothing describes the C library's clone3() around its system call.)
void check_roots(const Seen &seen) {
    size_t roots = 0;
    std::string others;
    for (const Stack &stack : seen.stacks) {
        const bool root = stack.flags == (UNWIND_TABLES | UNWIND_ENDED_ROOT);
        roots += root;
        if (!root && others.size() < 2000) others += "\n" + stack.text();
    }
    INFO(others);
    CHECK(seen.stacks.size() > 30);
    CHECK(roots * 100 >= seen.stacks.size() * 99);
}

using Chain = std::vector<std::string_view>;
// The frames from the leaf on, "*" for one or more that are anything else.
bool begins(const Stack &stack, const Chain &chain) {
    size_t at = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
        if (chain[i] != "*") {
            if (at >= stack.names.size() || stack.names[at++] != chain[i]) return false;
            continue;
        }
        const size_t before = at;
        while (at < stack.names.size() && stack.names[at] != chain[i + 1]) ++at;
        if (at == before) return false;
    }
    return true;
}

// Runs it on what this kernel has; every stack with that leaf must be that chain.
void check_chain(const std::string &what, const Chain &chain, const Options &how = {}) {
    SEE(out, what, 400, how);
    check_roots(out);
    const auto stacks = with_leaf(out, chain.front());
    CHECK(stacks.size() * 2 > out.stacks.size());
    size_t wrong = 0;
    for (const Stack *stack : stacks) {
        if (begins(*stack, chain)) continue;
        if (++wrong == 1) MESSAGE(stack->text());
    }
    CHECK(wrong == 0);
}

Chain recursion(size_t depth, std::string_view body) {
    Chain chain{"uw_spin"};
    chain.insert(chain.end(), depth, "uw_recurse");
    chain.insert(chain.end(), {body, "uw_run"});
    return chain;
}

} // namespace

TEST_CASE("unwind: load: with bpf_loop, and with a loop that the verifier walks through") {
    if (!has_program_type(BPF_PROG_TYPE_PERF_EVENT)) SKIP("needs perf_event programs");
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    UnwindProgramOptions unwind = probe_unwind();
    for (const bool loop : {true, false}) {
        if (loop && !unwind.has_bpf_loop) continue;
        unwind.has_bpf_loop = loop;
        INFO(loop);
        profile::ProgramOptions options;
        options.config = {1, 1, 0, 0, 0, 0, 0, 0};
        options.unwind = unwind;
        auto spec = profile::program_spec(BpfSource::automatic, options);
        REQUIRE(spec);
        Result<LoadedObject> object = load(std::move(*spec));
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    }
}

TEST_CASE("unwind: a recursion has as many frames as calls") {
    check_chain("recurse", recursion(30, "uw_case_recurse"));
    Options how;
    how.bpf_loop = false;
    check_chain("recurse", recursion(30, "uw_case_recurse"), how);
}

TEST_CASE("unwind: through the C library's qsort, to the callback") {
    check_chain("qsort", {"uw_spin", "uw_compare", "*", "uw_case_qsort", "uw_run"});
}

TEST_CASE("unwind: functions that move and align their stack") {
    check_chain("alloca", {"uw_spin", "uw_alloca", "uw_case_alloca", "uw_run"});
    check_chain("aligned", {"uw_spin", "uw_aligned", "uw_case_aligned", "uw_run"});
}

TEST_CASE("unwind: a thread, to where it starts") { check_chain("thread", {"uw_spin", "uw_thread"}); }

TEST_CASE("unwind: a signal's handler, on what it interrupted") {
    check_chain("signal", {"uw_spin", "uw_handler", "*", "uw_undefined", "uw_case_signal", "uw_run"});
    check_chain("signal_stack", {"uw_spin", "uw_handler", "*", "uw_undefined", "uw_case_signal_stack", "uw_run"});
}

TEST_CASE("unwind: from within the kernel, by the thread's own registers") {
    check_chain("system", {"uw_read", "uw_case_system", "uw_run"});
    SEE(out, "system", 200);
    CHECK(std::any_of(out.stacks.begin(), out.stacks.end(), [](const Stack &stack) { return stack.in_kernel; }));
}

TEST_CASE("unwind: a stack deeper than the limit") {
    for (const uint32_t depth : {20u, 255u}) {
        Options how;
        how.depth = depth;
        SEE(out, "deep", 300, how);
        const auto stacks = with_leaf(out, "uw_spin");
        CHECK(stacks.size() > 20);
        for (const Stack *stack : stacks) {
            CHECK(PROFILE_ENDING(stack->flags) == (depth == 20 ? UNWIND_ENDED_DEPTH : UNWIND_ENDED_ROOT));
            CHECK(stack->run(1, "uw_recurse") == (depth == 20 ? 19 : 200));
        }
    }
}

TEST_CASE("unwind: a process that nothing is known of goes by frame pointers, and says so") {
    Options how;
    how.tables = false;
    SEE(out, "recurse", 200, how);
    CHECK(out.stacks.size() > 20);
    for (const Stack &stack : out.stacks) CHECK(stack.flags == UNWIND_ENDED_NO_PROCESS);
}
