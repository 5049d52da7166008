// The tracer against a kernel: a child calls so many times, and exactly so many are seen.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs/trace/decode.h"
#include "programs/trace/tracer.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"
#include "runtime/provider/provider.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "tests/kernel/traced.h"
#include "tests/kernel/usdt_programs.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

TRACED long rawbpf_traced_leaf(long number, const char *text) {
    __asm__ volatile("" : : "r"(text) : "memory");
    return number - 3;
}
TRACED long rawbpf_traced_sum(long number) {
    const long sum = number == 0 ? 0 : number + rawbpf_traced_sum(number - 1);
    __asm__ volatile("" : : : "memory");
    return sum;
}
TRACED long rawbpf_traced_middle(long number) {
    // A probe's program can't wait for a page (only what is sleepable can): these literals may lie on one that nobody has read
    // yet.
    const char *const hello = "hello", *const world = "world";
    (void)*static_cast<const volatile char *>(hello), (void)*static_cast<const volatile char *>(world);
    const long sum = rawbpf_traced_leaf(number, hello) + rawbpf_traced_leaf(number + 1, world);
    __asm__ volatile("" : : : "memory");
    return sum;
}

// Probes that stand in links/usdt_test.cpp.
extern "C" {
extern volatile unsigned short usdt_test_semaphore;
void usdt_test_places(int number, unsigned long large, const short *memory, const long *table, long row);
void usdt_test_twice(long a, long b);
}

namespace {

constexpr int kCalls = 1000;

// A child that waits for a word before it does `work`, kCalls times.
template <class Work> struct Child {
    explicit Child(Work work) {
        REQUIRE(pipe(go) == 0);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            close(go[1]); // so that it ends when we do
            char word = 0;
            if (read(go[0], &word, 1) != 1) _exit(1);
            for (int i = 0; i < kCalls; ++i) work(i);
            _exit(0);
        }
    }
    ~Child() {
        close(go[0]);
        close(go[1]);
    }
    void run() {
        REQUIRE(write(go[1], "", 1) == 1);
        int status = 0;
        REQUIRE(waitpid(pid, &status, 0) == pid);
        REQUIRE(status == 0);
    }
    int pid = -1, go[2] = {-1, -1};
};

struct Seen {
    std::vector<std::string> lines; ///< "leaf(7, "hello")", "leaf = 4"
    std::vector<PlaceCounts> counts;
    std::vector<std::string> places;
    std::vector<uint64_t> durations;           ///< of the results that the kernel paired with their calls
    std::vector<std::vector<uint64_t>> stacks; ///< of the user's
};

// Traces what the child does; nullopt where this kernel has no such probes.
template <class Work> std::optional<Seen> traced(TraceOptions options, Work work, std::string &missing) {
    Child child(work);
    options.workload = child.pid;
    options.program.filters.children = true;
    Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
    if (!tracer && tracer.error().kind == Errc::unsupported) {
        missing = tracer.error().message();
        return {};
    }
    REQUIRE_MESSAGE(tracer, tracer.error().message(), " ", tracer.error().log);
    Seen out;
    const std::shared_ptr<const btf::Btf> kernel = kernel_btf().value_or(nullptr);
    const auto see = [&](const Event &event) {
        std::string line = event.place->function;
        bool unreadable = false;
        if (event.header.what == What::result) {
            line += " = ";
            append_result(line, event.result_type(), event.result(), kernel.get(), false, !is_user_function(event.place->kind));
            if (event.header.duration) out.durations.push_back(event.header.duration);
        }
        if (event.header.what == What::call || !event.layout->columns.empty()) {
            line += event.header.what == What::result ? " of (" : "(";
            for (size_t i = 0; i < event.layout->columns.size(); ++i) {
                if (i) line += ", ";
                append_value(line, event.type(i), event.value(i), event.blob(i), event.record, kernel.get(), false, unreadable);
            }
            line += ')';
        }
        CHECK_FALSE(unreadable);
        if (options.program.stack) out.stacks.push_back(event.user_stack().frames);
        out.lines.push_back(std::move(line));
    };
    Result<void> attached = (*tracer)->attach();
    if (!attached && (attached.error().kind == Errc::unsupported || attached.error().os == EPERM)) {
        missing = attached.error().message();
        return {};
    }
    REQUIRE_MESSAGE(attached, attached.error().message());
    child.run();
    const Result<void> finished = (*tracer)->finish(see);
    REQUIRE_MESSAGE(finished, finished.error().message());
    Result<std::vector<PlaceCounts>> counts = (*tracer)->counts();
    REQUIRE(counts);
    out.counts = std::move(*counts);
    for (const ProbeSite &place : (*tracer)->places()) out.places.push_back(place.function);
    for (const PlaceCounts &one : out.counts)
        CHECK(one.counts.fired == one.shown + one.counts.filtered + one.counts.sampled_out + one.counts.lost);
    return out;
}

TraceOptions of(std::vector<std::string> probes) {
    TraceOptions options;
    options.probes = std::move(probes);
    options.program.ring_bytes = 4 << 20;
    return options;
}

// A line an event.
std::string text_of(const Seen &seen) {
    std::string out;
    for (const std::string &line : seen.lines) append(out, "{}\n", line);
    return out;
}
// With the word ADDRESS for whatever stands behind each of these, up to the next , or ).
std::string without_addresses(std::string text, std::initializer_list<std::string_view> behind) {
    for (const std::string_view one : behind) {
        const size_t at = text.find(one);
        REQUIRE(at != std::string::npos);
        const size_t from = at + one.size(), end = text.find_first_of(",)", from);
        CHECK(end - from > 5);
        text.replace(from, end - from, "ADDRESS");
    }
    return text;
}

std::string own(std::string_view function) { return format("uprobe:/proc/self/exe:{}", function); }
void call_functions(int i) { (void)rawbpf_traced_middle(i); }

uint64_t count_of(const Seen &seen, std::string_view function) {
    uint64_t sum = 0;
    for (size_t i = 0; i < seen.places.size(); ++i)
        if (seen.places[i] == function) sum += seen.counts[i].shown;
    return sum;
}

} // namespace

TEST_CASE("trace: calls of a program's functions are counted right to the call") {
    TraceOptions options = of({own("rawbpf_traced_*")});
    options.program.mode = Mode::count;
    options.match.signatures = false;
    std::string missing;
    const std::optional<Seen> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(count_of(*seen, "rawbpf_traced_middle") == kCalls);
    CHECK(count_of(*seen, "rawbpf_traced_leaf") == 2 * kCalls);
}

TEST_CASE("trace: each call is an event, with its arguments; a return brings the result") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.match.signature = "long (long number, const char *text)";
    options.program.results = true;
    options.match.results = true;
    options.match.allow_unwind_risk = true;
    std::string missing;
    const std::optional<Seen> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->lines.size() == 4 * kCalls);
    CHECK(seen->lines[0] == "rawbpf_traced_leaf(0, \"hello\")");
    CHECK(seen->lines[1] == "rawbpf_traced_leaf = -3");
    CHECK(seen->lines[4 * kCalls - 2] == "rawbpf_traced_leaf(1000, \"world\")");
    CHECK(seen->lines[4 * kCalls - 1] == "rawbpf_traced_leaf = 997");
}

TEST_CASE("trace: filters let through exactly what they describe, and the rest is counted") {
    struct Row {
        const char *filter;
        size_t calls; ///< of the leaf's 2000, whose first arguments are 0 1 1 2 2 3 ... 999 1000
    };
    const Row rows[] = {
        {"arg0 == 7", 2},
        {"number == 7 && text == \"hello\"", 1},
        {"text != \"hello\"", 1000},
        {"text == \"hell\"", 0},
        {"text == \"hello!\"", 0},
        {"arg0 < 10 || arg0 >= 999", 2 * 10 - 1 + 2 + 1},
        {"!(arg0 & 1)", 1000},
        {"arg0 % 10 == 3 && arg0 / 100 == 2", 20},
        {"number > -1 && number << 1 == 20", 2},
        {"(number == 5) + (number == 6) == 1", 4},
        {"-number == -8", 2},
        {"pid == tid && uid < 4000000000 && number == 1", 2},
        {"comm == \"no such name\"", 0},
        {"arg0 == 18446744073709551615", 0},
    };
    for (const Row &row : rows) {
        INFO(row.filter);
        TraceOptions options = of({own("rawbpf_traced_leaf")});
        options.match.signature = "long number, const char *text";
        options.filter = row.filter;
        std::string missing;
        const std::optional<Seen> seen = traced(options, call_functions, missing);
        if (!seen) SKIP("needs uprobes: " + missing);
        CHECK(seen->lines.size() == row.calls);
        CHECK(seen->counts[0].counts.fired == 2 * kCalls);
        CHECK(seen->counts[0].counts.filtered == 2 * kCalls - row.calls);
    }
}

TEST_CASE("trace: a call and its return are one event, at every depth of recursion") {
    TraceOptions options = of({own("rawbpf_traced_sum")});
    options.match.signature = "long (long number)";
    options.match.allow_unwind_risk = true;
    options.filter = "ret == 10 || ret == 3 && duration > 0";
    std::string missing;
    const std::optional<Seen> seen = traced(
        options, [](int) { (void)rawbpf_traced_sum(5); }, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->lines.size() == 2 * kCalls);
    CHECK(seen->lines[0] == "rawbpf_traced_sum = 3 of (2)");
    CHECK(seen->lines[1] == "rawbpf_traced_sum = 10 of (4)");
    REQUIRE(seen->durations.size() == 2 * kCalls);
    CHECK(seen->durations[0] < seen->durations[1]);
    CHECK(seen->counts[0].counts.fired == 6 * kCalls); // the returns
}

TEST_CASE("trace: threads that share a CPU keep each their own calls") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.match.signature = "long (long number, const char *text)";
    options.match.allow_unwind_risk = true;
    options.program.mode = Mode::count;
    options.filter = "ret == number - 3 && comm != \"nobody\"";
    constexpr int kThreads = 4, kEach = 10 * kCalls;
    const auto work = [](int i) {
        if (i != 0) return;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
        std::vector<std::thread> threads;
        for (long t = 1; t <= kThreads; ++t)
            threads.emplace_back([t] {
                for (int call = 0; call < kEach; ++call) (void)rawbpf_traced_leaf(t << 32 | call, "text");
            });
        for (std::thread &thread : threads) thread.join();
    };
    std::string missing;
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(seen->counts[0].counts.fired == kThreads * kEach);
    CHECK(count_of(*seen, "rawbpf_traced_leaf") == kThreads * kEach);
}

TEST_CASE("trace: only calls that take long enough") {
    TraceOptions options = of({"syscall:clock_nanosleep"});
    options.program.filters.min_duration = 1'000'000;
    options.program.calls = false;
    std::string missing;
    const auto work = [](int i) {
        if (i >= 40) return;
        timespec wait{0, i % 10 == 3 ? 2'000'000 : 1'000};
        (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait, nullptr);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints of system calls: " + missing);
    // The short ones may be held up by others, the long ones can't be short.
    CHECK(seen->durations.size() >= 4);
    CHECK(seen->durations.size() <= 40);
    for (uint64_t duration : seen->durations) CHECK(duration >= 1'000'000);
    CHECK(seen->counts[0].counts.fired >= 40); // others sleep, too
}

TEST_CASE("trace: descriptors lead to their files") {
    TraceOptions options = of({"syscall:read"});
    options.filter = "count == 77";
    std::string missing;
    const auto work = [](int) {
        static const int fd = open("/proc/version", O_RDONLY);
        char text[80];
        (void)syscall(SYS_read, fd, text, 77);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints of system calls: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF");
    REQUIRE(seen->lines.size() == kCalls);
    CHECK_MESSAGE(seen->lines[0].find("</proc/version>") != std::string::npos, seen->lines[0]);
}

TEST_CASE("trace: with each event the stack of the program") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.stack = true;
    options.filter = "arg0 < 3";
    std::string missing;
    const std::optional<Seen> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->stacks.size() == 5);
    for (const auto &stack : seen->stacks) {
        REQUIRE_FALSE(stack.empty());
        CHECK(stack[0] == reinterpret_cast<uint64_t>(&rawbpf_traced_leaf));
    }
}

TEST_CASE("trace: only tasks of a namespace") {
    for (const bool other : {false, true}) {
        // A child in a pid and mount namespace of its own, whose events aren't those of ours.
        int ready[2];
        REQUIRE(pipe(ready) == 0);
        const pid_t stranger = fork();
        REQUIRE(stranger >= 0);
        if (stranger == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const bool done = unshare(CLONE_NEWNS) == 0;
            (void)!write(ready[1], done ? "y" : "n", 1);
            pause();
            _exit(0);
        }
        char word = 0;
        REQUIRE(read(ready[0], &word, 1) == 1);
        TraceOptions options = of({own("rawbpf_traced_leaf")});
        options.mntns = other ? stranger : getpid();
        options.pidns = getpid();
        std::string missing;
        const std::optional<Seen> seen = traced(options, call_functions, missing);
        kill(stranger, SIGKILL);
        waitpid(stranger, nullptr, 0);
        close(ready[0]);
        close(ready[1]);
        if (!seen) SKIP("needs uprobes: " + missing);
        if (word != 'y') SKIP("needs mount namespaces");
        CHECK(seen->lines.size() == (other ? 0 : 2 * kCalls));
        CHECK(seen->counts[0].counts.fired == 2 * kCalls);
    }
}

TEST_CASE("trace: only tasks of a cgroup") {
    std::string root;
    std::ifstream mounts("/proc/mounts");
    for (std::string device, where, type, rest; mounts >> device >> where >> type && std::getline(mounts, rest);)
        if (type == "cgroup2" && root.empty()) root = where;
    const std::string folder = root + "/rawbpf_trace_test";
    if (root.empty() || (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)) SKIP("needs cgroup v2, and the right to make one");
    for (const bool inside : {false, true}) {
        TraceOptions options = of({own("rawbpf_traced_leaf")});
        options.cgroup = folder;
        std::string missing;
        const auto work = [&](int i) {
            if (inside && i == 0) std::ofstream(folder + "/cgroup.procs") << getpid();
            call_functions(i);
        };
        const std::optional<Seen> seen = traced(options, work, missing);
        rmdir(folder.c_str());
        if (!seen) SKIP("needs uprobes: " + missing);
        CHECK(seen->lines.size() == (inside ? 2 * kCalls : 0));
        CHECK(seen->counts[0].counts.filtered == (inside ? 0 : 2 * kCalls));
        mkdir(folder.c_str(), 0755);
    }
    rmdir(folder.c_str());
}

TEST_CASE("trace: USDT probes with their arguments, wherever the compiler left them") {
    KnownProbes known;
    REQUIRE(known.add("rawbpf:places(int number, u32 same, const char *text, s16 memory, u16 again, u8 low)", "t"));
    TraceOptions options = of({"usdt:/proc/self/exe:rawbpf:places"});
    options.match.known = &known;
    options.filter = "number < 0";
    options.program.text_bytes = 32;
    std::string missing;
    const auto work = [](int i) {
        static const char text[] = "some text";
        static volatile long table[4] = {0, 33, 0, 33};  // the second on arm64, the fourth on x86_64
        (void)*static_cast<const volatile char *>(text); // where programs can't wait for a page it has to be there
        const short memory = -5;
        usdt_test_places(i % 2 ? -i : i, reinterpret_cast<unsigned long>(text), &memory, const_cast<const long *>(table),
                         table[0] + 1);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->lines.size() == kCalls / 2);
    INFO(seen->lines[0]);
    CHECK(seen->lines[0].starts_with("places(-1, 4294967295, \"some text\", -5, 65531, "));
    CHECK(seen->lines[0].ends_with(", -71, 33, ?)")); // the last is in a vector register
    CHECK(seen->lines[1].starts_with("places(-3, 4294967293, "));
    CHECK(seen->counts[0].counts.fired == kCalls);
}

TEST_CASE("trace: USDT probes, each site with its own arguments; the kernel raises and drops the semaphore") {
    TraceOptions options = of({"usdt:/proc/self/exe:rawbpf:twi*"});
    REQUIRE(usdt_test_semaphore == 0);
    std::string missing;
    const auto work = [](int i) {
        if (usdt_test_semaphore == 0) _exit(1); // raised in every process that has it mapped
        usdt_test_twice(i, i + 1);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->lines.size() == 2 * kCalls);
    CHECK(seen->lines[2] == "twice(1)");
    CHECK(seen->lines[3] == "twice(2, 1)");
    CHECK(seen->counts.size() == 2);
    CHECK(usdt_test_semaphore == 0);
}

// What tests/usdt/probes.c passes, in C++; addresses aside.
TEST_CASE("trace: every kind of argument that <rawbpf/usdt.h> passes") {
    TraceOptions options = of({"usdt:/proc/self/exe:app"});
    options.program.text_bytes = 32;
    std::string missing;
    KnownProbes known;
    REQUIRE(known.add("app:pointers(const char *text, const char *built, ptr point, int x, ptr nothing, ptr literal)\n"
                      "app:inlined(int a, const char *text)",
                      "t"));
    options.match.known = &known;
    const auto work = [](int i) {
        if (i == 0 && (!freopen("/dev/null", "w", stdout) || fire_header_probes() != 0)) _exit(1);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(without_addresses(text_of(*seen), {"\"hello!\", ", "3, 0x0, ", "generic(2.5, 8)\ngeneric("}) == R"(none()
constants(5, -5, 4294967295, 81985529216486895, 97, 1)
global(41, 1)
unsigned_ones(250, 65000, 4000000000, 18364758544493064720, 1, 120)
signed_ones(-5, -500, -70000, -5000000000, -3, 2147483647)
real(1.5, -2.25, 7, 2.5, 0.5)
pointers("hello", "hello!", ADDRESS, 3, 0x0, ADDRESS)
twelve(1, -2, 3, 4, 5, 6, 2, -1, 4, 5, 6, 7)
inlined(1, "one")
inlined(2, "two")
inlined(3, "three")
leaf(10, 20, 30)
lazy(42, 289)
lazy(8, 289)
once(0, 1)
generic(1, 4)
generic(2.5, 8)
generic(ADDRESS, 8)
generic(200, 1)
generic(-5000000000, 8)
lambda(9, 0)
)");
}

TEST_CASE("trace: what the Go fork's probes pass: registers, texts without an end, 32 bits of a register, nothing") {
    TraceOptions options =
        of({"usdt:/proc/self/exe:net_http", "usdt:/proc/self/exe:sql", "usdt:/proc/self/exe:tls", "usdt:/proc/self/exe:net"});
    options.program.text_bytes = 64;
    std::string missing;
    const auto work = [](int i) {
        if (i == 0 && fire_go_probes() != 0) _exit(1);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(text_of(*seen) == R"+(server_request_start("GET", "/load?num=5")
client_request_start("POST", "http://localhost:8080/")
prepare("SELECT 1")
exec("INSERT INTO t VALUES (1)")
query("SELECT 1")
stmt_exec()
stmt_query()
tx_begin()
client_response_received(404)
handshake_start(-1)
handshake_end(0)
handshake_error(1)
server_request_end(200)
conn_accept()
conn_close()
)+");
}

TEST_CASE("trace: probes that a program made while it ran") {
    usdt::Provider shop("shop");
    const auto order =
        shop.add<int, const char *, double, float, uint8_t, long, int8_t, uint16_t, uint64_t, short, bool, char>("order");
    const auto none = shop.add<>("none");
    REQUIRE(shop.load());
    KnownProbes known;
    REQUIRE(known.add("shop:order(int id, const char *who, u64 sum, u32 part, u8 a, long b, s8 c, u16 d, u64 e, short f, bool g, "
                      "char h)",
                      "t"));
    TraceOptions options = of({"usdt:" + shop.path() + ":shop"});
    options.match.known = &known;
    options.program.text_bytes = 32;
    std::string missing;
    const auto work = [&](int i) {
        if (!order.enabled()) _exit(1);
        if (i > 1) return;
        char who[] = "Jane";
        order(-1 - i, who, 2.5, -0.25F, 250, -5, -8, 65000, 1ULL << 63, -9, true, 'x');
        none();
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(text_of(*seen) == R"+(order(-1, "Jane", 2.5, -0.25, 250, -5, -8, 65000, 9223372036854775808, -9, true, 'x')
none()
order(-2, "Jane", 2.5, -0.25, 250, -5, -8, 65000, 9223372036854775808, -9, true, 'x')
none()
)+");
    CHECK_FALSE(order.enabled());
}

TEST_CASE("trace: one in so many, exactly") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.filters.one_in = 10;
    std::string missing;
    const std::optional<Seen> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    // On each CPU each tenth; the child may have moved.
    CHECK(seen->lines.size() >= 2 * kCalls / 10 - 16);
    CHECK(seen->lines.size() <= 2 * kCalls / 10);
    CHECK(seen->counts[0].counts.sampled_out == 2 * kCalls - seen->lines.size());
}

TEST_CASE("trace: so many events and no more") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.filters.most_events = 100;
    std::string missing;
    const std::optional<Seen> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(seen->lines.size() == 100); // one thread: none comes in between
    CHECK(seen->counts[0].counts.filtered == 2 * kCalls - 100);
}

TEST_CASE("trace: a ring that is too small loses events, and says how many") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.ring_bytes = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
    std::string missing;
    const std::optional<Seen> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(seen->counts[0].counts.lost > 0);
    CHECK(seen->lines.size() + seen->counts[0].counts.lost == 2 * kCalls);
}

TEST_CASE("trace: system calls, with arguments and errors") {
    TraceOptions options = of({"syscall:getpgid"});
    options.program.results = true;
    options.program.calls = false;
    options.program.filters.errors = true;
    std::string missing;
    const auto work = [](int i) { (void)syscall(SYS_getpgid, i % 2 ? 0 : -1); };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints of system calls: " + missing);
    REQUIRE(seen->lines.size() == kCalls / 2);
    CHECK(seen->lines[0] == "getpgid = -3 (ESRCH) of (-1)");
    CHECK(seen->counts[0].counts.fired >= kCalls); // others call it, too
}

TEST_CASE("trace: a tracepoint's fields by their names") {
    TraceOptions options = of({"tracepoint:sched:sched_process_exit"});
    options.filter = "prio > 1 && comm != \"init\""; // comm: the record's own
    std::string missing;
    const std::optional<Seen> seen = traced(
        options, [](int) {}, missing);
    if (!seen) SKIP("needs tracepoints: " + missing);
    REQUIRE(seen->lines.size() == 1);
    CHECK(seen->lines[0].starts_with("sched_process_exit(\""));
}

TEST_CASE("trace: the end of a process that the workload started is seen") {
    TraceOptions options = of({"tracepoint:sched:sched_process_exit"});
    std::string missing;
    const auto work = [](int i) {
        if (i >= 20) return;
        const int child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints: " + missing);
    CHECK(seen->lines.size() == 21);
}

TEST_CASE("trace: kernel functions, by whatever way this kernel has, right to the call") {
#if defined(__x86_64__)
    const std::string function = "__x64_sys_getpgid";
#else
    const std::string function = "__arm64_sys_getpgid";
#endif
    TraceOptions options = of({function});
    options.program.mode = Mode::count;
    std::string missing;
    const auto work = [](int) { (void)syscall(SYS_getpgid, 0); };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes or fentry: " + missing);
    CHECK(count_of(*seen, function) == kCalls);
}

// Where an instruction begins is the kernel's to say: it decodes the function and refuses what lies between two.
TEST_CASE("trace: kprobes inside a kernel function, right to the call, at the first places where an instruction begins") {
#if defined(__x86_64__)
    const std::string function = "__x64_sys_getpgid";
    constexpr int kStep = 1;
#else
    const std::string function = "__arm64_sys_getpgid";
    constexpr int kStep = 4;
#endif
    if (!sys::exists("/sys/bus/event_source/devices/kprobe/type")) SKIP("needs kprobes (CONFIG_KPROBE_EVENTS)");
    const auto inside = [&](int offset) { return format("{}+{:#x}", function, offset); };
    const auto open = [](std::vector<std::string> probes, int workload) {
        TraceOptions options = of(std::move(probes));
        options.program.mode = Mode::count;
        options.workload = workload;
        options.program.filters.children = true;
        Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
        REQUIRE_MESSAGE(tracer, tracer.error().message(), " ", tracer.error().log);
        return std::move(*tracer);
    };
    constexpr int kWanted = 2, kFurthest = 64; // behind the first one or two nothing branches yet
    std::vector<int> found;
    size_t refused = 0;
    {
        const auto any = open({"kprobe:" + inside(kStep)}, getpid());
        const ObjectSpec spec = object_of(any->unit()).value();
        const Program *program = any->object().find_program("trace_0");
        REQUIRE(program);
        for (int offset = kStep; offset < kFurthest && found.size() < kWanted; offset += kStep) {
            AttachOptions how;
            how.target = inside(offset);
            const Result<Link> link = attach_program(spec, any->object(), *program, how);
            if (link) {
                found.push_back(offset);
                continue;
            }
            ++refused; // arm64's kernels refuse what ftrace may change, too
            INFO(link.error().message(), " ", link.error().hint);
            CHECK((link.error().os == EILSEQ || link.error().os == EINVAL));
            CHECK(link.error().hint.find("instruction") != std::string::npos);
        }
    }
    INFO(refused);
    REQUIRE(found.size() == kWanted);
    Child child([](int) { (void)syscall(SYS_getpgid, 0); });
    const auto tracer = open({"kprobe:" + function, "kprobe:" + inside(found[0]), "kprobe:" + inside(found[1])}, child.pid);
    const Result<void> attached = tracer->attach();
    REQUIRE_MESSAGE(attached, attached.error().message(), " ", attached.error().hint);
    child.run();
    REQUIRE(tracer->finish([](const Event &) {}).has_value());
    const Result<std::vector<PlaceCounts>> counts = tracer->counts();
    REQUIRE(counts);
    REQUIRE(tracer->places().size() == 3);
    for (size_t i = 0; i < 3; ++i) {
        CHECK(tracer->places()[i].function == (i == 0 ? function : inside(found[i - 1])));
        CHECK(counts->at(i).shown == kCalls);
    }
}

TEST_CASE("trace: a kernel function by its bare name, with its arguments and result") {
    TraceOptions options = of({"vfs_read"});
    options.program.results = true;
    options.match.results = true;
    std::string missing;
    const auto work = [](int) {
        static const int fd = open("/dev/zero", O_RDONLY);
        char bytes[7];
        (void)!read(fd, bytes, sizeof bytes);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes or fentry: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    // The child waits for its word by a read, which may begin before the probes stand.
    REQUIRE(seen->lines.size() >= 2 * kCalls);
    const std::string &last_call = seen->lines[seen->lines.size() - 2];
    CHECK(last_call.starts_with("vfs_read(/dev/zero, 0x"));
    CHECK(last_call.find(", 7, 0x") != std::string::npos);
    CHECK(seen->lines.back().starts_with("vfs_read = 7"));
}

TEST_CASE("trace: kprobes read arguments, kretprobes results; names and types are BTF's") {
    TraceOptions options = of({"kprobe:do_sys_openat2"});
    options.program.results = true;
    std::string missing;
    const auto work = [](int i) {
        // On the stack: a literal's page may not be there yet, and a kprobe can't wait for it.
        char path[16];
        snprintf(path, sizeof path, "%s", i % 2 ? "/dev/null" : "/no such file");
        __asm__ volatile("" : : "r"(path) : "memory");
        close(static_cast<int>(syscall(SYS_openat, -100, path, 0, 0)));
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    REQUIRE(seen->lines.size() == 2 * kCalls);
    CHECK(seen->lines[0].starts_with("do_sys_openat2(-100, \"/no such file\", "));
    CHECK(seen->lines[1] == "do_sys_openat2 = -2 (ENOENT)");
    CHECK(seen->lines[2].starts_with("do_sys_openat2(-100, \"/dev/null\", "));
    CHECK(seen->lines[3].starts_with("do_sys_openat2 = "));
}

TEST_CASE("trace: a struct file * is shown as its path, mounts crossed") {
    TraceOptions options = of({"kprobe:vfs_read"});
    std::string missing;
    const auto work = [](int i) {
        if (i > 9) return;
        const int fd = open("/proc/self/status", 0);
        char byte = 0;
        (void)!read(fd, &byte, 1);
        close(fd);
        int ends[2];
        if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) return;
        (void)!read(ends[0], &byte, 1);
        close(ends[0]);
        close(ends[1]);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    size_t files = 0, pipes = 0;
    for (const std::string &line : seen->lines) {
        files += line.starts_with("vfs_read(/proc/") && line.find("/status, 0x") != std::string::npos;
        pipes += line.starts_with("vfs_read(pipefs:");
    }
    CHECK(files == 10);
    CHECK(pipes >= 10);
}

// How many instructions the verifier takes is the same on any machine. There is a program for each form that the records of
// system calls have, fifty, and walks from dentry to dentry, and from frame to frame, in most of them.
TEST_CASE("trace: the verifier goes through the programs of all system calls not much more than once") {
    if (!has_feature(Feature::bpf_loop)) SKIP("needs bpf_loop, 5.17");
    if (!kernel_btf()) SKIP("needs the kernel's BTF, 5.4");
    for (const bool stack : {false, true}) {
        INFO(stack);
        TraceOptions options = of({"syscall:*"});
        options.program.stack = stack;
        options.copies = true;
        const Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
        if (!tracer && tracer.error().kind == Errc::unsupported) SKIP("needs tracepoints of system calls");
        REQUIRE_MESSAGE(tracer, tracer.error().message() << tracer.error().log);
        uint64_t verified = 0, insns = 0, walk_paths = 0;
        for (const Program &program : (*tracer)->object().programs) {
            const auto info = sys::prog_info(program.fd.get());
            REQUIRE(info);
            verified += info->verified_insns;
            insns += info->xlated_prog_len / 8;
        }
        for (const Function &function : (*tracer)->unit().functions) walk_paths += function.name == "trace_path";
        CHECK(walk_paths == 1);
        CHECK(verified >= insns / 2); // 5.16
        CHECK(verified <= 2 * insns);
    }
}

TEST_CASE("trace: what a filter can read through a kernel structure") {
    TraceOptions options = of({"kprobe:vfs_read"});
    options.filter = "file->f_inode->i_size == 0 && count == 1";
    std::string missing;
    const auto work = [](int i) {
        const int fd = open(i % 2 ? "/proc/self/stat" : "/proc/self/exe", 0);
        char byte = 0;
        (void)!read(fd, &byte, 1);
        close(fd);
    };
    const std::optional<Seen> seen = traced(options, work, missing);
    if (!seen) SKIP("needs kprobes and BTF: " + missing);
    CHECK(seen->lines.size() == kCalls / 2);
}

TEST_CASE("trace: what can't be is said") {
    const auto wrong = [](std::vector<std::string> probes, std::string filter = {}) {
        TraceOptions options = of(std::move(probes));
        options.filter = std::move(filter);
        Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
        return tracer ? std::string("nothing is wrong") : tracer.error().message() + "|" + tracer.error().hint;
    };
    // A filter that needs the return is held to the same rules as what asks for returns.
    TraceOptions returns = of({own("rawbpf_traced_leaf")});
    returns.program.results = returns.match.results = true;
    const Result<std::unique_ptr<Tracer>> refused = Tracer::open(returns);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "ret < 0") ==
          (refused ? "nothing is wrong" : refused.error().message() + "|" + refused.error().hint));
    returns.program.filters.min_duration = 1;
    returns.match.allow_unwind_risk = true;
    CHECK_FALSE(Tracer::open(returns)); // calls as they begin, and how long they took
    CHECK(wrong({own("rawbpf_traced_leav")}).find("rawbpf_traced_leaf") != std::string::npos);
    CHECK(wrong({"uprobe:/no/such/file:f"}).find("No such file") != std::string::npos);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "arg0 == ").find("the filter ends\n  arg0 == \n") != std::string::npos);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "file->x == 1").find("has no file") != std::string::npos);
    CHECK(wrong({"tracepoint:sched:sched_process_exit"}, "ret < 0").find("are points in time") != std::string::npos);
    CHECK(wrong({"tracepoint:sched:sched_process_exit"}, "duration > 1us").find("are points in time") != std::string::npos);
    CHECK(wrong({own("rawbpf_traced_leaf")}, "comm > 3").find("a text is only compared with a text") != std::string::npos);
    CHECK(wrong({"usdt:/proc/self/exe:rawbpf:plcaes"}).find("places") != std::string::npos);
    CHECK(wrong({"usdt:/proc/self/exe:rawbpf:places"}, "nothing == 1").find("has no nothing") != std::string::npos);
    CHECK(wrong({"usdt:/proc/self/exe:rawbpf:places"}, "ret < 0").find("are points in time") != std::string::npos);
    CHECK(wrong({"kpobe:x"}).find("no kind of probe") != std::string::npos);
}
