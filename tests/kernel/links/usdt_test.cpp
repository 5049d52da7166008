// A USDT program reads the arguments of probes in this very test, wherever the compiler left them: constants, registers, memory.
// With our header and with libbpf's, whose programs find the same maps filled.
#include <linux/bpf.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fstream>

#include "programs/usdt/binary.h"
#include "programs/usdt/fetch.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/probes.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"
#include "tests/kernel/links/linking.h"
#include "tests/support/fds.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> usdt_ours, usdt_theirs;
}

using namespace rawbpf;

// A probe as <sys/sdt.h> writes them; operands are the compiler's to place.
#define PROBE(name, arguments, ...) PROBE_AT("nop\n", name, arguments, __VA_ARGS__)
#define PROBE_AT(nops, name, arguments, ...)                                                                                     \
    asm volatile("990: " nops ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                      \
                 ".balign 4\n"                                                                                                   \
                 ".4byte 992f-991f, 994f-993f, 3\n"                                                                              \
                 "991: .asciz \"stapsdt\"\n"                                                                                     \
                 "992: .balign 4\n"                                                                                              \
                 "993: .8byte 990b, _.stapsdt.base, usdt_test_semaphore\n"                                                       \
                 ".asciz \"rawbpf\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n"                                            \
                 "994: .balign 4\n"                                                                                              \
                 ".popsection\n"                                                                                                 \
                 ".ifndef _.stapsdt.base\n"                                                                                      \
                 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                                         \
                 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                                                \
                 "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                                                           \
                 ".popsection\n.endif\n" ::__VA_ARGS__)
// On x86_64 the assembler's operands look as the notes want them; of arm64's registers it wants the 64-bit names.
#if defined(__aarch64__)
#define AS_REGISTER "%x"
#define INDEXED "[%x[base], %x[by], lsl 3]"
#define UNREADABLE "8@s0"
#elif defined(__riscv)
#define AS_REGISTER "%"
#define INDEXED "48(%[base])"
#define UNREADABLE "8@fa0"
#else
#define AS_REGISTER "%"
#define INDEXED "16(%[base],%[by],8)"
#define UNREADABLE "8@%%xmm0"
#endif

extern "C" {
__attribute__((section(".probes"))) volatile unsigned short usdt_test_semaphore = 0;

__attribute__((noinline)) void usdt_test_places(int number, unsigned long large, const short *memory, const long *table,
                                                long row) {
    PROBE("places",
          "-4@" AS_REGISTER "[number] 4@" AS_REGISTER "[number] 8@" AS_REGISTER "[large] -2@%[memory] 2@%[memory] 1@" AS_REGISTER
          "[large] -4@%[constant] 8@" INDEXED " " UNREADABLE,
          [number] "r"(number), [large] "r"(large), [memory] "m"(*memory), [constant] "i"(-71), [base] "r"(table), [by] "r"(row));
}
__attribute__((noinline)) void usdt_test_twice(long a, long b) {
    PROBE("twice", "8@" AS_REGISTER "[a]", [a] "r"(a));
    PROBE("twice", "8@" AS_REGISTER "[b] 8@" AS_REGISTER "[a]", [a] "r"(a), [b] "r"(b));
}
#if defined(__x86_64__)
// As libbpf's usdt.h has it, and as it had it for some months. What stands below the stack pointer, where a function without
// calls may keep its variables, must stay.
#define LONG_PROBE(nop, name)                                                                                                    \
    long kept;                                                                                                                   \
    asm volatile("lea -256(%%rsp), %%rsp\n movq $77, -8(%%rsp)\n movq $78, -24(%%rsp)" ::: "memory");                            \
    PROBE_AT(".byte 0x90, " nop "\n", name, "8@%[a]", [a] "r"(a));                                                               \
    asm volatile("movq -8(%%rsp), %0\n addq -24(%%rsp), %0\n lea 256(%%rsp), %%rsp" : "=r"(kept)::"memory", "cc");               \
    return kept
__attribute__((noinline)) long usdt_test_long(long a) { LONG_PROBE("0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", "long"); }
__attribute__((noinline)) long usdt_test_long5(long a) { LONG_PROBE("0x0f, 0x1f, 0x44, 0, 0", "long5"); }
#endif
// A variable by its name: "8@usdt_test_counter(%rip)", "8@[x0, #:lo12:usdt_test_counter]". Weak, or arm64's compiler goes by an
// anchor that it shares with others, which has no name in the file.
__attribute__((weak)) long usdt_test_counter = 0;
__attribute__((noinline)) void usdt_test_global(long a) {
    PROBE("global", "8@%[counter] 8@" AS_REGISTER "[a] -4@%[counter]", [counter] "m"(usdt_test_counter), [a] "r"(a));
}
__attribute__((noinline)) void usdt_test_none() { PROBE("none", "", "r"(0)); }
}

namespace {

struct Seen {
    int64_t count, arguments, cookie;
    int64_t values[12], errors[12];
};

struct Tracer {
    ObjectSpec spec;
    LoadedObject object;

    static Result<Tracer> load(std::span<const std::byte> bytes, const std::string &program = {}) {
        Tracer out;
        out.spec = TRY(parse_object(bytes, "usdt.bpf.o"));
        const auto own = static_cast<uint32_t>(getpid());
        std::memcpy(out.spec.find_global("wanted_pid").data(), &own, sizeof own);
        LoadOptions options;
        if (!program.empty()) options.programs = {program};
        out.object = TRY(rawbpf::load(out.spec, options));
        return out;
    }
    Result<Link> attach(const std::string &program, AttachOptions options = {}) {
        if (!has_feature(Feature::cookie)) options.pid = static_cast<int>(getpid()); // addresses are a process's then
        return attach_program(spec, object, *object.find_program(program), options);
    }
    Seen seen() const {
        for (const Map &map : object.maps)
            if (map.value_size() == sizeof(Seen)) return map.get<uint32_t, Seen>(0).value();
        return {};
    }
};

} // namespace

#define NEEDS_USDT()                                                                                                             \
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");                                          \
    if (!sys::exists("/sys/bus/event_source/devices/uprobe/type")) SKIP("needs uprobes (CONFIG_UPROBE_EVENTS)")

TEST_CASE("link: a USDT program reads its arguments from constants, registers and memory") {
    NEEDS_USDT();
    for (std::span<const std::byte> header : {usdt_ours, usdt_theirs}) {
        Result<Tracer> loaded = Tracer::load(header, "on_places");
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        Tracer tracer = std::move(*loaded);
        const std::span<std::byte> whose = tracer.spec.find_global("whose_header");
        const bool knows_indexed = load<int>(whose.data()) == 1; // libbpf's learned it in 1.7
        AttachOptions options;
        options.cookie = 99;
        {
            Result<Link> link = tracer.attach("on_places", options);
            REQUIRE_MESSAGE(link, link.error().message());
            CHECK(link->places() == 1);
            REQUIRE(link->notes().size() == 1);
            CHECK(link->notes()[0].find("a BPF program can't read argument 8: its location is \"8@") != std::string::npos);
            CHECK(usdt_test_semaphore == 1);
            const short memory = -300;
            const long table[] = {1, 2, 3, 4, 5, 6, 0x123456789abcdef};
            usdt_test_places(-5, 0xfedcba98765432f1, &memory, table, knows_indexed ? 4 : 0);
            const Seen seen = tracer.seen();
            CHECK(seen.count == 1);
            CHECK(seen.arguments == 9);
            CHECK(seen.cookie == 99);
            const int64_t expected[] = {-5, 0xfffffffb, static_cast<int64_t>(0xfedcba98765432f1), -300, 0xfed4, 0xf1, -71};
            for (size_t i = 0; i < std::size(expected); ++i) {
                CHECK_MESSAGE(seen.errors[i] == 0, i);
                CHECK_MESSAGE(seen.values[i] == expected[i], i);
            }
            if (knows_indexed) {
                CHECK(seen.errors[7] == 0);
#if defined(__aarch64__)
                CHECK(seen.values[7] == table[4]);
#else
                CHECK(seen.values[7] == table[6]);
#endif
            }
            CHECK(seen.errors[8] == -EINVAL);
            CHECK(seen.errors[9] == -ENOENT);
        }
        CHECK(usdt_test_semaphore == 0);
        usdt_test_none();
        CHECK(tracer.seen().count == 1);
    }
}

TEST_CASE("link: several USDT probes share one program's maps, and give their entries back") {
    NEEDS_USDT();
    Tracer tracer = Tracer::load(usdt_ours).value();
    auto taken = [&] {
        return tracer.object.usdt_specs ? std::count(tracer.object.usdt_specs->begin(), tracer.object.usdt_specs->end(), true)
                                        : 0;
    };
    AttachOptions twice, none;
    twice.target = "/proc/self/exe:rawbpf:twice";
    none.target = "/proc/self/exe:rawbpf:none";
    {
        Result<Link> first = tracer.attach("on_any", twice), second = tracer.attach("on_places");
        REQUIRE_MESSAGE(first, first.error().message());
        REQUIRE_MESSAGE(second, second.error().message());
        CHECK(first->places() == 2);
        CHECK(taken() == 3); // two places of one probe with different arguments, and the other probe
        usdt_test_twice(11, 22);
        Seen seen = tracer.seen();
        CHECK(seen.count == 2);
        CHECK(seen.arguments == 2); // the second site's
        CHECK(seen.values[0] == 22);
        CHECK(seen.values[1] == 11);
        CHECK(first->detach());
        CHECK(taken() == 1);
        CHECK(tracer.attach("on_any", none).value().places() == 1);
    }
    CHECK(taken() == 0);
    Link link = tracer.attach("on_any", none).value();
    usdt_test_none();
    CHECK(tracer.seen().count == 3);
    CHECK(tracer.seen().arguments == 0);
    CHECK(tracer.seen().errors[0] == -ENOENT);
}

TEST_CASE("link: a USDT probe of another process, that process only") {
    NEEDS_USDT();
    Tracer tracer = Tracer::load(usdt_ours).value();
    AttachOptions options;
    options.target = "/proc/self/exe:rawbpf:none";
    options.pid = 1; // not us: the probe stays silent here
    Result<Link> link = attach_program(tracer.spec, tracer.object, *tracer.object.find_program("on_any"), options);
    if (!link) CHECK_MESSAGE(link.error().kind == Errc::not_found, link.error().message()); // /proc/1/root may be another
    usdt_test_none();
    CHECK(tracer.seen().count == 0);
}

TEST_CASE("link: a USDT probe with a 10-byte nop stands on it where the kernel makes calls of those") {
    NEEDS_USDT();
#if defined(__x86_64__)
    struct Watcher final : sys::Observer {
        std::vector<uint64_t> offsets;
        void after(const sys::Call &call, long result) override {
            if (result < 0) return;
            if (call.number == __NR_bpf && call.args[0] == BPF_LINK_CREATE) {
                sys::LinkCreateAttr attr;
                std::memcpy(&attr, reinterpret_cast<const void *>(call.args[1]), std::min<size_t>(call.args[2], sizeof attr));
                if (attr.attach_type != uapi::BPF_TRACE_UPROBE_MULTI) return;
                const auto *first = reinterpret_cast<const uint64_t *>(attr.uprobe_multi.offsets);
                offsets.insert(offsets.end(), first, first + attr.uprobe_multi.cnt);
            } else if (call.number == __NR_perf_event_open) {
                offsets.push_back(reinterpret_cast<const sys::PerfEventAttr *>(call.args[0])->config2);
            }
        }
    };
    Tracer tracer = Tracer::load(usdt_ours).value();
    std::ifstream own("/proc/self/exe", std::ios::binary); // not mapped: the kernel changes what is
    REQUIRE(own);
    auto attached_at = [&](const char *probe) {
        AttachOptions options;
        options.target = format("/proc/self/exe:rawbpf:{}", probe);
        Watcher watcher;
        (void)has_feature(Feature::cookie); // asked before, lest its attempts be seen
        sys::Observer *before = sys::observe(&watcher);
        Result<Link> link = tracer.attach("on_any", options);
        sys::observe(before);
        REQUIRE_MESSAGE(link, link.error().message());
        REQUIRE(watcher.offsets.size() == 1);
        own.seekg(static_cast<std::streamoff>(watcher.offsets[0]));
        return std::pair(own.get(), std::move(*link));
    };
    CHECK(attached_at("none").first == 0x90); // a nop alone stays
    auto hit = [&](long (*probe)(long)) {
        for (int i = 1; i <= 3; ++i) { // the kernel changes the code under the first hit
            const int64_t count = tracer.seen().count;
            CHECK(probe(1234567 * i) == 77 + 78);
            CHECK(tracer.seen().count == count + 1);
            CHECK(tracer.seen().values[0] == 1234567 * i);
        }
    };
    {
        const auto [first_byte, link] = attached_at("long");
        CHECK(first_byte == (has_feature(Feature::uprobe_call) ? 0x66 : 0x90));
        hit(usdt_test_long);
    }
    const auto [first_byte, link] = attached_at("long5");
    CHECK(first_byte == 0x90);
    hit(usdt_test_long5);
#else
    SKIP("needs x86_64");
#endif
}

TEST_CASE("link: a USDT program reads what lies at a symbol's address") {
    NEEDS_USDT();
    Tracer tracer = Tracer::load(usdt_ours).value();
    AttachOptions options;
    options.target = "/proc/self/exe:rawbpf:global";
    Result<Link> link = tracer.attach("on_any", options);
    REQUIRE_MESSAGE(link, link.error().message());
    CHECK(link->notes().empty());
    for (long value : {0x1234567890abcdef, -5L}) {
        usdt_test_counter = value;
        usdt_test_global(42);
        const Seen seen = tracer.seen();
        CHECK(seen.arguments == 3);
        for (int64_t error : {seen.errors[0], seen.errors[1], seen.errors[2]}) CHECK(error == 0);
        CHECK(seen.values[0] == value);
        CHECK(seen.values[1] == 42);
        CHECK(seen.values[2] == static_cast<int32_t>(value));
    }
}

TEST_CASE("usdt: what the DSL's instructions fetch in the kernel") {
    NEEDS_USDT();
    struct Fetched {
        int64_t values[12], errors[12];
    };
    Result<usdt::Binary> own = usdt::Binary::open("/proc/self/exe", "own");
    REQUIRE_MESSAGE(own, own.error().message());
    auto fetch = [&](const char *name, auto &&hit) {
        std::vector<Error> problems;
        const std::vector<usdt::Probe> probes = own->probes(usdt::parse_target(format(":rawbpf:{}", name)), problems).value();
        REQUIRE(probes.size() == 1);
        Builder b("fetch");
        const MapRef results = b.array<Fetched>("results", 1);
        Code &f = b.program("uprobe", "fetch");
        f.mov(r6, r1);
        const auto key = f.stack<uint32_t>("key");
        f.store<uint32_t>(key, 0);
        f.lookup(results, key, [&] {
            f.mov(r9, r0);
            for (size_t i = 0; i < probes[0].arguments.size(); ++i) {
                const usdt::Argument &argument = probes[0].arguments[i];
                usdt::emit_argument(f, r8, r6, argument);
                f.store<uint64_t>(r9 + runtime(static_cast<int64_t>(8 * i)), r8);
                if (!usdt::is_in_memory(argument)) f.mov(r0, runtime(argument.problem.empty() ? 0 : 1));
                f.store<uint64_t>(r9 + runtime(static_cast<int64_t>(96 + 8 * i)), r0);
            }
        });
        f.ret(0);
        Built built = b.finish();
        REQUIRE_MESSAGE(built, built.report());
        const ObjectSpec spec = object_of(*built).value();
        Result<LoadedObject> object = load(spec);
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
        AttachOptions options;
        options.target = format("/proc/self/exe:{:#x}", probes[0].file_offset.value());
        options.pid = static_cast<int>(getpid());
        Result<Link> link = attach_program(spec, *object, object->programs.at(0), options);
        REQUIRE_MESSAGE(link, link.error().message());
        hit();
        return object->find_map("results")->get<uint32_t, Fetched>(0).value();
    };
    const short memory = -300;
    const long table[] = {1, 2, 3, 4, 5, 6, 0x123456789abcdef};
    Fetched seen = fetch("places", [&] { usdt_test_places(-5, 0xfedcba98765432f1, &memory, table, 4); });
    const int64_t expected[] = {
        -5,
        0xfffffffb,
        static_cast<int64_t>(0xfedcba98765432f1),
        -300,
        0xfed4,
        0xf1,
        -71,
#if defined(__aarch64__)
        table[4],
#else
        table[6],
#endif
        0
    };
    for (size_t i = 0; i < std::size(expected); ++i) {
        CHECK_MESSAGE(seen.values[i] == expected[i], i);
        CHECK_MESSAGE(seen.errors[i] == (i == 8 ? 1 : 0), i); // the ninth is a floating point register
    }
    usdt_test_counter = -77;
    seen = fetch("global", [] { usdt_test_global(43); });
    CHECK(seen.values[0] == -77);
    CHECK(seen.values[1] == 43);
    CHECK(seen.values[2] == -77);
    // Memory that isn't there is an error of its own, and no other's.
    seen = fetch("places", [&] { usdt_test_places(-6, 1, reinterpret_cast<const short *>(8), table, 4); });
    CHECK(seen.values[0] == -6);
    CHECK(seen.values[3] == 0);
    CHECK(seen.errors[3] == -EFAULT);
    CHECK(seen.values[6] == -71);
}
