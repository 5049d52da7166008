// Custom traces, the harder part: programs of other types, threads that are preempted between the store and the jump, values
// that are checked by another way than the one they came, processes that nobody knows, functions with and without frames.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "asm/builder.h"
#include "programs/capture/task_state.h"
#include "programs/custom/program.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"
#include "tests/kernel/custom_entries.h"
#include "tests/kernel/custom_support.h"

using namespace rawbpf;
using namespace rawbpf::custom;
using rawbpf::test::missing;
using rawbpf::test::Seen;
using rawbpf::test::traced;

// The last argument is on the stack, on x86_64 (six in registers) and arm64 (eight) alike.
TRACED void rawbpf_custom_on_stack(uint64_t id, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                                   uint64_t h, uint64_t again) {
    __asm__ volatile("" : : "r"(id), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h), "r"(again) : "memory");
}
TRACED void rawbpf_custom_dawdle(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }
TRACED void rawbpf_custom_alone(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }

namespace {

constexpr int kThreads = 8;
bool in_guest() { return std::getenv("RAWBPF_KERNEL") != nullptr; } // a machine of its own, and a slow one

std::string first_word_in_parentheses(const char *path) {
    std::ifstream file(path);
    std::string text;
    std::getline(file, text);
    const size_t from = text.find('('), to = text.find(')');
    return from == std::string::npos || to == std::string::npos ? "" : text.substr(from + 1, to - from - 1);
}

ObjectSpec spec_of(Builder &b) {
    Built built = b.finish();
    REQUIRE_MESSAGE(built, built.report());
    return object_of(*built).value();
}

// An external program that stores and jumps by hand: loaded with the tracer's maps, its array filled.
struct Joined {
    ObjectSpec spec;
    LoadedObject object;
    Link link;
};
Result<void> join(CustomTracer &tracer, ProgramKind kind, Joined &out) {
    LoadOptions options;
    if (out.spec.find_map("custom_context_by_thread"))
        options.replace_maps.emplace_back("custom_context_by_thread", tracer.thread_context_map_fd());
    if (out.spec.find_map("custom_context_map")) options.replace_maps.emplace_back("custom_context_map", tracer.context_map_fd());
    out.object = TRY(load(out.spec, options));
    return put_program(*out.object.find_map("prog_array"), 0, tracer.generic_program_fd(kind), &out.object.programs[0]);
}

// The context by thread from r1, and away through prog_array; r6 is the program's context.
void store_and_jump(Code &f, MapRef contexts, MapRef programs) {
    const Slot thread = f.stack<uint64_t>("thread"), context = f.stack<uint64_t>("context");
    f.store<uint64_t>(context, r1);
    f.call(helper::get_current_pid_tgid);
    f.store<uint64_t>(thread, r0);
    f.call(helper::map_update_elem, contexts, thread, context, BPF_ANY);
    f.if_(r0 == 0, [&] { f.call(helper::tail_call, r6, programs, 0); });
}

// --- Preemption

// How a foreign program of the OpenTelemetry profiler's kind stores: this CPU's slot. Then, with every other context, it takes
// its time.
ObjectSpec dawdler() {
    constexpr int kTurns = 4000; // 25 ns each or more
    Builder b("external");
    const MapRef contexts = b.percpu_array<uint64_t>("custom_context_map", 1);
    const MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program("uprobe", "dawdler");
    const Slot zero = f.stack<uint32_t>("zero");
    f.mov(r6, r1);
    f.store<uint32_t>(zero, 0);
    f.call(helper::map_lookup_elem, contexts, zero);
    f.if_(r0 != 0, [&] {
        f.argument(r1, r6, 1);
        f.store<uint64_t>(r0, r1);
        f.if_(r1 & 1, [&] { f.loop(r7, kTurns, [&] { f.call(helper::ktime_get_ns); }); });
        f.call(helper::tail_call, r6, programs, 0);
    });
    f.ret(0);
    return spec_of(b);
}

// In a guest, which is nobody's machine, the kernel is told to preempt.
struct FullPreemption {
    static constexpr const char *kFile = "/sys/kernel/debug/sched/preempt";
    std::string before = first_word_in_parentheses(kFile);
    FullPreemption() {
        if (in_guest() && !before.empty()) std::ofstream(kFile) << "full";
    }
    ~FullPreemption() {
        if (in_guest() && !before.empty()) std::ofstream(kFile) << before;
    }
    FullPreemption(const FullPreemption &) = delete;
    FullPreemption &operator=(const FullPreemption &) = delete;
    // Programs at uprobes are preempted since 6.0.
    [[nodiscard]] static bool certain() { return release() >= 600 && first_word_in_parentheses(kFile) == "full"; }
    // And by each other since 6.6 (EEVDF). Before, whoever comes between (the reader, the kernel's own threads) stores nothing.
    [[nodiscard]] static bool by_turns() { return release() >= 606; }
    [[nodiscard]] static int release() { // 6.12 is 612
        utsname name{};
        int major = 0, minor = 0;
        return uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2 ? major * 100 + minor : 0;
    }
};

// Threads on one CPU, all of them nearly always between the store and the jump.
template <class Attach>
std::optional<Seen> dawdle(CustomTracer &tracer, int calls, uint32_t *tids, std::string &why, const Attach &attach) {
    return traced(tracer,
                  [&] {
                      cpu_set_t one;
                      CPU_ZERO(&one);
                      CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
                      if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
                      std::vector<std::thread> threads;
                      for (int t = 0; t < kThreads; ++t)
                          threads.emplace_back([=] {
                              tids[t] = static_cast<uint32_t>(syscall(SYS_gettid));
                              for (int i = 0; i < calls; ++i)
                                  rawbpf_custom_dawdle(uint64_t{tids[t]} << 32 | static_cast<uint32_t>(i));
                          });
                      for (std::thread &thread : threads) thread.join();
                  },
                  why, {.with_stacks = false, .attach = attach});
}

uint64_t strangers(const Seen &seen) {
    uint64_t out = 0;
    for (const Record &head : seen.heads) out += head.context >> 32 != head.tid;
    return out;
}

} // namespace

TEST_CASE("custom: preempted between the store and the jump: never a stranger's context") {
    constexpr const char *kTarget = "/proc/self/exe:rawbpf_custom_dawdle";
    const int calls = in_guest() ? 300 : 1000;
    FullPreemption preemption;
    auto *tids = static_cast<uint32_t *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(tids != MAP_FAILED);
    uint64_t cleared = 0, disturbed = 0; // how often it was prevented, how often it happens
    {
        OPEN_OR_SKIP(tracer, CustomOptions{});
        REQUIRE(tracer.load_external(dawdler(), {kTarget}).has_value());
        std::string why;
        const std::optional<Seen> seen = dawdle(tracer, calls, tids, why, [&, &tracer = tracer](int) { return tracer.attach(); });
        if (!seen) SKIP("needs uprobes: " + why);
        if (!tracer.guarded()) SKIP("the guard needs raw tracepoints: " + tracer.notes().front());
        CHECK(strangers(*seen) == 0);
        CHECK(seen->counts.entered == static_cast<uint64_t>(kThreads * calls));
        CHECK(seen->heads.size() + seen->counts.lost_context + seen->counts.lost_ring_full + seen->counts.lost_scratch ==
              seen->counts.entered);
        CHECK(seen->counts.lost_context == seen->counts.cleared); // each that was taken away is missed once
        cleared = seen->counts.cleared;
        std::set<uint64_t> contexts;
        for (const Record &head : seen->heads) contexts.insert(head.context);
        CHECK(contexts.size() == seen->heads.size()); // none twice
        CHECK(seen->heads.size() > 0);
    }
    // The same without the guard, which shows that there is something to guard from.
    {
        OPEN_OR_SKIP(tracer, CustomOptions{});
        Joined joined{dawdler(), {}, {}};
        const Result<void> put = join(tracer, ProgramKind::probe, joined);
        REQUIRE_MESSAGE(put, put.error().message());
        std::string why;
        const std::optional<Seen> seen = dawdle(tracer, calls, tids, why, [&](int) -> Result<void> {
            AttachOptions where;
            where.target = kTarget;
            joined.link = TRY(attach_program(joined.spec, joined.object, joined.object.programs[0], where));
            return {};
        });
        munmap(tids, 4096);
        if (!seen) SKIP("needs uprobes: " + why);
        disturbed = strangers(*seen) + seen->counts.lost_context; // the other thread may have taken it away with its own jump
    }
    if (preemption.certain()) {
        CHECK(cleared > 0);
        if (preemption.by_turns()) CHECK(disturbed > 0);
    }
    if (cleared == 0)
        SKIP("needs a kernel that preempts programs at uprobes (6.0, preempt=full): no thread was interrupted before it jumped");
}

TEST_CASE("custom: a program at a perf event jumps, too: each page that is touched is a trace") {
    constexpr size_t kPages = 64;
    CustomOptions options;
    options.kinds = {ProgramKind::perf_event};
    OPEN_OR_SKIP(tracer, options);
    CHECK(tracer.generic_program_fd(ProgramKind::probe) == -1);
    Builder b("external");
    const MapRef contexts = b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads);
    const MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program("perf_event", "faults");
    f.mov(r6, r1);
    f.load<uint64_t>(r1, RAWBPF_AT(r6, bpf_perf_event_data, addr)); // where the fault was
    store_and_jump(f, contexts, programs);
    f.ret(0);
    Joined joined{spec_of(b), {}, {}};
    const Result<void> put = join(tracer, ProgramKind::perf_event, joined);
    REQUIRE_MESSAGE(put, put.error().message(), " ", put.error().hint);
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto *area = static_cast<char *>(mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(area != MAP_FAILED);
    REQUIRE(madvise(area, kPages * page, MADV_NOHUGEPAGE) == 0);
    Fd event;
    std::string why;
    const std::optional<Seen> seen =
        traced(tracer,
               [&] {
                   for (size_t i = 0; i < kPages; ++i) static_cast<volatile char *>(area)[i * page] = 1;
               },
               why, {.with_stacks = false, .attach = [&](int pid) -> Result<void> {
                         sys::PerfEventAttr attr;
                         attr.type = PERF_TYPE_SOFTWARE;
                         attr.config = PERF_COUNT_SW_PAGE_FAULTS;
                         attr.sample_period = 1;
                         attr.sample_type = PERF_SAMPLE_ADDR;
                         event = TRY(sys::perf_event_open(attr, pid, -1, -1, 0));
                         AttachOptions where;
                         where.target_fd = event.get();
                         joined.link = TRY(attach_program(joined.spec, joined.object, joined.object.programs[0], where));
                         return {};
                     }});
    munmap(area, kPages * page);
    if (!seen) SKIP("needs perf events: " + why);
    std::map<size_t, int> pages;
    for (const Record &head : seen->heads) {
        CHECK(head.origin == Origin::custom);
        CHECK(head.flags == 0);
        const uint64_t offset = head.context - reinterpret_cast<uintptr_t>(area);
        if (offset < kPages * page) ++pages[offset / page];
    }
    CHECK(pages.size() == kPages); // and the faults of what else the child touched
    for (const auto &[index, times] : pages) CHECK(times == 1);
    CHECK(seen->counts.lost_context == 0);
}

TEST_CASE("custom: a program at a tracepoint jumps, too: as many traces as system calls") {
    constexpr uint64_t kCalls = 50, kMark = 0x5a5a;
    Builder b("external");
    const MapRef contexts = b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads);
    const MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program("tracepoint/syscalls/sys_enter_getpgid", "calls");
    f.mov(r6, r1);
    f.load<uint64_t>(r1, r6 + 16); // args[0]
    f.mov(r2, r1);
    f.rsh(r2, 16);
    f.if_(r2 == runtime(kMark), [&] { store_and_jump(f, contexts, programs); }); // nobody else's process has such a number
    f.ret(0);
    CustomOptions options;
    options.kinds = {ProgramKind::tracepoint};
    OPEN_OR_SKIP(tracer, options);
    const Result<void> loaded = tracer.load_external(spec_of(b));
    REQUIRE_MESSAGE(loaded, loaded.error().message(), " ", loaded.error().hint);
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer,
        [] {
            for (uint64_t i = 0; i < kCalls; ++i) (void)syscall(SYS_getpgid, static_cast<pid_t>(kMark << 16 | i));
        },
        why);
    if (!seen) SKIP("needs tracepoints of system calls: " + why);
    REQUIRE(seen->heads.size() == kCalls);
    CHECK(seen->counts.entered == kCalls);
    for (uint64_t i = 0; i < kCalls; ++i) {
        CHECK(seen->heads[i].context == (kMark << 16 | i));
        CHECK(seen->heads[i].origin == Origin::custom);
        CHECK(seen->heads[i].kernel_bytes >= 0); // 5.10 gives programs there the user's registers: no kernel stack
        CHECK(seen->heads[i].user_bytes > 0);
    }
}

// The kernel says EINVAL.
TEST_CASE("custom: a generic program of another type is refused with the reason") {
    CustomOptions options;
    options.kinds = {ProgramKind::probe, ProgramKind::perf_event, ProgramKind::tracepoint};
    OPEN_OR_SKIP(tracer, options);
    const auto refused = [&](const char *section, ProgramKind kind, const char *is, const char *wanted) {
        Builder b("external");
        const MapRef contexts = b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads);
        const MapRef programs = b.prog_array("prog_array", 1);
        Code &f = b.program(section, "jumps");
        f.mov(r6, r1);
        f.mov(r1, 1);
        store_and_jump(f, contexts, programs);
        f.ret(0);
        Joined joined{spec_of(b), {}, {}};
        const Result<void> put = join(tracer, kind, joined);
        REQUIRE_FALSE(put.has_value());
        CHECK(put.error().kind == Errc::invalid_argument);
        const std::string text = put.error().message() + "\n" + put.error().hint;
        CHECK_MESSAGE(text.find(is) != std::string::npos, text);
        CHECK_MESSAGE(text.find(wanted) != std::string::npos, text);
    };
    refused("uprobe", ProgramKind::perf_event, "BPF_PROG_TYPE_PERF_EVENT", "BPF_PROG_TYPE_KPROBE");
    refused("perf_event", ProgramKind::tracepoint, "BPF_PROG_TYPE_TRACEPOINT", "BPF_PROG_TYPE_PERF_EVENT");
    refused("tracepoint/syscalls/sys_enter_getpgid", ProgramKind::probe, "BPF_PROG_TYPE_KPROBE", "BPF_PROG_TYPE_TRACEPOINT");
}

// The context comes from the thread's own stack; the same value is in a register, where the program compares it; and it says
// whose it is, which the kernel knows by itself.
TEST_CASE("custom: values on the threads' stacks, 8 threads, samples beside: each shown trace has its own") {
    const int calls = in_guest() ? 500 : 12'500;
    Builder b("external");
    const MapRef contexts = b.hash<uint64_t, uint64_t>("custom_context_by_thread", kMostThreads);
    const MapRef differ = b.array<uint64_t>("differ", 1);
    const MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program("uprobe", "from_the_stack");
    f.mov(r6, r1);
#if defined(__x86_64__)
    f.load<uint64_t>(r7, r6 + 152); // sp: the return address, and three arguments
    f.add(r7, 8 + 2 * 8);
#elif defined(__aarch64__)
    f.load<uint64_t>(r7, r6 + 248); // sp: one argument
#else
    SKIP("needs to know where this machine passes arguments");
#endif
    f.read_user<uint64_t>(r7, r7);
    f.argument(r1, r6, 1);
    f.if_(r1 != r7, [&] {
        const Slot zero = f.stack<uint32_t>("zero");
        f.store<uint32_t>(zero, 0);
        f.call(helper::map_lookup_elem, differ, zero);
        f.if_(r0 != 0, [&] {
            f.mov(r1, 1);
            f.atomic_add<uint64_t>(Mem(r0, 0), r1);
        });
    });
    f.mov(r1, r7);
    store_and_jump(f, contexts, programs);
    f.ret(0);
    CustomOptions options;
    options.sample_hz = 999;
    OPEN_OR_SKIP(tracer, options);
    Joined joined{spec_of(b), {}, {}};
    const Result<void> put = join(tracer, ProgramKind::probe, joined);
    REQUIRE_MESSAGE(put, put.error().message(), " ", put.error().hint);
    std::string why;
    const std::optional<Seen> seen =
        traced(tracer,
               [&] {
                   std::vector<std::thread> threads;
                   for (int t = 0; t < kThreads; ++t)
                       threads.emplace_back([=] {
                           const uint64_t tid = static_cast<uint64_t>(syscall(SYS_gettid));
                           for (int i = 0; i < calls; ++i) {
                               const uint64_t id = tid << 32 | static_cast<uint32_t>(i);
                               rawbpf_custom_on_stack(id, 2, 3, 4, 5, 6, 7, 8, id);
                           }
                       });
                   for (std::thread &thread : threads) thread.join();
               },
               why, {.with_stacks = false, .attach = [&, &tracer = tracer](int) -> Result<void> {
                         TRY(tracer.attach());
                         AttachOptions where;
                         where.target = "/proc/self/exe:rawbpf_custom_on_stack";
                         joined.link = TRY(attach_program(joined.spec, joined.object, joined.object.programs[0], where));
                         return {};
                     }});
    if (!seen) SKIP("needs uprobes: " + why);
    const uint64_t all = static_cast<uint64_t>(kThreads) * static_cast<uint64_t>(calls);
    CHECK(seen->counts.entered == all);
    CHECK(seen->counts.lost_context == 0);
    CHECK(seen->counts.sampled > 0);
    CHECK((joined.object.find_map("differ")->get<uint32_t, uint64_t>(0).value_or(1)) == 0);
    uint64_t wrong = 0;
    std::set<uint64_t> distinct;
    std::set<uint32_t> tids;
    for (const Record &head : seen->heads) {
        if (head.origin != Origin::custom) continue;
        wrong += head.context >> 32 != head.tid;
        distinct.insert(head.context);
        tids.insert(head.tid);
    }
    CHECK(wrong == 0);
    CHECK(tids.size() == kThreads);
    CHECK(distinct.size() == seen->of(Origin::custom)); // none twice
    // A slow machine's ring can be full; the sum is exact all the same.
    const uint64_t shown = seen->of(Origin::custom);
    CHECK(shown <= all);
    CHECK(shown + seen->counts.lost_ring_full + seen->counts.lost_scratch >= all);
    if (seen->counts.lost_ring_full + seen->counts.lost_scratch == 0) CHECK(shown == all);
}

TEST_CASE("custom: traces of a process that nobody knows are shown without names, and counted") {
    OPEN_OR_SKIP(tracer, CustomOptions{});
    REQUIRE(tracer.add_function("/proc/self/exe:rawbpf_custom_alone").has_value());
    std::string why;
    const std::optional<Seen> seen =
        traced(tracer,
               [] {
                   for (uint64_t i = 0; i < 5; ++i) rawbpf_custom_alone(i);
               },
               why, {.poll_meanwhile = false, .know_processes = false}); // first looked at when it has ended
    if (!seen) SKIP("needs uprobes: " + why);
    REQUIRE(seen->heads.size() == 5);
    CHECK(seen->unknown == 5);
    for (size_t i = 0; i < 5; ++i) {
        CHECK(seen->heads[i].context == i);
        REQUIRE_FALSE(seen->stacks[i].empty());
        for (const std::string &symbol : seen->stacks[i]) CHECK(symbol.empty());
    }
}

TEST_CASE("custom: the caller at a function's first instruction, in C and C++, with a frame, without, with a landing pad") {
    struct Entry {
        const char *symbol, *name;
        void (*function)(uint64_t);
    };
    static constexpr Entry kEntries[] = {
        {"rawbpf_entry_c_frame", "rawbpf_entry_c_frame", rawbpf_entry_c_frame},
        {"rawbpf_entry_c_frameless", "rawbpf_entry_c_frameless", rawbpf_entry_c_frameless},
        {"rawbpf_entry_c_landing", "rawbpf_entry_c_landing", rawbpf_entry_c_landing},
        {"_ZN16rawbpf_entry_cpp5frameEm", "rawbpf_entry_cpp::frame", rawbpf_entry_cpp::frame},
        {"_ZN16rawbpf_entry_cpp9framelessEm", "rawbpf_entry_cpp::frameless", rawbpf_entry_cpp::frameless},
        {"_ZN16rawbpf_entry_cpp7landingEm", "rawbpf_entry_cpp::landing", rawbpf_entry_cpp::landing},
    };
#if defined(__x86_64__) // what the flags are for
    const auto begins = [](void (*function)(uint64_t), const char *with, size_t size) {
        return std::memcmp(reinterpret_cast<const void *>(function), with, size) == 0;
    };
    for (size_t i = 0; i < std::size(kEntries); ++i) {
        CHECK(begins(kEntries[i].function, "\x55", 1) == (i % 3 == 0));             // push %rbp
        CHECK(begins(kEntries[i].function, "\xf3\x0f\x1e\xfa", 4) == (i % 3 == 2)); // endbr64
    }
#endif
    constexpr uint64_t kTimes = 3;
    OPEN_OR_SKIP(tracer, CustomOptions{});
    for (const Entry &entry : kEntries) {
        const Result<void> added = tracer.add_function(format("/proc/self/exe:{}", entry.symbol));
        REQUIRE_MESSAGE(added, added.error().message());
    }
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer,
        [] {
            for (size_t e = 0; e < std::size(kEntries); ++e)
                for (uint64_t i = 0; i < kTimes; ++i) rawbpf_entry_outer(kEntries[e].function, e * kTimes + i);
        },
        why);
    if (!seen) SKIP("needs uprobes: " + why);
    REQUIRE(seen->heads.size() == std::size(kEntries) * kTimes);
    for (size_t i = 0; i < seen->heads.size(); ++i) {
        CHECK(seen->heads[i].context == i);
        const std::vector<std::string> &stack = seen->stacks[i];
        REQUIRE(stack.size() >= 3);
        CHECK_MESSAGE(stack[0].starts_with(kEntries[i / kTimes].name), stack[0]);
        CHECK_MESSAGE(stack[1] == "rawbpf_entry_middle", std::string(kEntries[i / kTimes].name));
        CHECK_MESSAGE(stack[2] == "rawbpf_entry_outer", std::string(kEntries[i / kTimes].name));
        CHECK(std::count(stack.begin(), stack.end(), "rawbpf_entry_middle") == 1);
        CHECK(std::count(stack.begin(), stack.end(), "rawbpf_entry_outer") == 1);
    }
}

// A kernel may keep the switches of some threads to itself. The program is run here by hand, as if this thread left twice: at
// address 0 there is no task, so its state reads as 0, and the thread that comes has no number.
TEST_CASE("custom: a thread that leaves and was not seen to come back is sent with the end that is known, and counted") {
    const Result<bool> wide = has_wide_state();
    if (!wide) SKIP("needs the kernel's BTF: " + wide.error().message());
    UnitOptions unit;
    unit.off_cpu = true;
    unit.wide_state = *wide;
    unit.ring_bytes = 1 << 20;
    unit.off_threads = 16;
    LoadOptions which;
    which.programs = {"custom_off_cpu"};
    Result<LoadedObject> object = load(object_of(generic_unit(unit)).value(), which);
    if (!object && test::missing(object.error())) SKIP("needs CAP_BPF and ring buffers: " + object.error().message());
    REQUIRE_MESSAGE(object, object.error().message(), " ", object.error().log);
    const Map &traces = *object->find_map("custom_traces"), &counts = *object->find_map("custom_counts");
    RingBuffer ring = RingBuffer::open(traces.fd(), traces.max_entries()).value();
    const auto counted = [&](uint64_t Counts::*number) {
        uint64_t sum = 0;
        const auto each = counts.get_per_cpu<uint32_t, Counts>(0);
        REQUIRE(each);
        for (const Counts &cpu : *each) sum += cpu.*number;
        return sum;
    };
    uint64_t last_ns = 0;
    for (uint64_t left = 1; left <= 3; ++left) {
        const uint64_t arguments[3] = {}; // preempt, prev, next
        sys::ProgTestRunAttr run;
        run.prog_fd = static_cast<uint32_t>(object->find_program("custom_off_cpu")->fd.get());
        run.ctx_in = sys::reg(arguments);
        run.ctx_size_in = sizeof arguments;
        const Result<void> done = sys::prog_test_run(run);
        if (!done && left == 1) SKIP("needs to run programs at raw tracepoints by hand (5.10): " + done.error().message());
        REQUIRE(done);
        CHECK(counted(&Counts::end_unseen) == left - 1);
        CHECK(counted(&Counts::off_cpu) == left - 1);
        size_t sent = 0;
        ring.consume([&](Bytes record) {
            const std::optional<CustomTrace> trace = parse_trace(record);
            REQUIRE(trace);
            ++sent;
            CHECK(trace->head.origin == Origin::off_cpu);
            CHECK(trace->head.kernel_bytes > 0);
            CHECK(trace->head.user_bytes > 0);
            CHECK(trace->head.t_ns >= last_ns);
            CHECK(trace->head.t_ns <= sys::monotonic_ns());
            last_ns = trace->head.t_ns;
        });
        CHECK(sent == (left == 1 ? 0 : 1));
    }
    CHECK(counted(&Counts::lost_off_cpu_map) == 0);
    CHECK(counted(&Counts::lost_ring_full) == 0);
}
