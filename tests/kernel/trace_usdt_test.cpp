// The tracer at USDT probes: arguments from wherever the compiler left them, semaphores, probes made at run time.
#include <cstdio>
#include <optional>
#include <string>

#include <unistd.h>

#include "programs/trace/tracer.h"
#include "runtime/provider/provider.h"
#include "tests/kernel/trace_child.h"
#include "tests/kernel/usdt_programs.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;
using namespace rawbpf::test;

// Probes that stand in links/usdt_test.cpp.
extern "C" {
extern volatile unsigned short usdt_test_semaphore;
void usdt_test_places(int number, unsigned long large, const short *memory, const long *table, long row);
void usdt_test_twice(long a, long b);
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
    const std::optional<Traced> seen = traced(options, work, missing);
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
    const std::optional<Traced> seen = traced(options, work, missing);
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
    const std::optional<Traced> seen = traced(options, work, missing);
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
    const std::optional<Traced> seen = traced(options, work, missing);
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
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(text_of(*seen) == R"+(order(-1, "Jane", 2.5, -0.25, 250, -5, -8, 65000, 9223372036854775808, -9, true, 'x')
none()
order(-2, "Jane", 2.5, -0.25, 250, -5, -8, 65000, 9223372036854775808, -9, true, 'x')
none()
)+");
    CHECK_FALSE(order.enabled());
}
