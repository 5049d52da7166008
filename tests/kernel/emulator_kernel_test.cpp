// The emulator against the kernel's JIT: random programs, the same ones every time. `./dev fuzz engines` searches further.
#include "runtime/base/format.h"
#include "tests/kernel/both.h"
#include "tests/kernel/engines.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::Both;
using test::both;
using test::spec_from;

namespace {

// Two hundred of them, of which the verifier may find so many too complex.
void check_random_programs(bool maps, int most_refused) {
    if (const std::string why = test::refusal("mov", {}); !why.empty()) SKIP("programs can't be run here: " + why);
    if (!test::can_compare().empty()) SKIP("this kernel lacks cpu v4's instructions, 6.6");
    const bool newest = test::has_newest();
    int refused = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const test::Compared compared = test::compare_engines(seed, newest, maps);
        if (compared.refused) {
            ++refused;
            MESSAGE("seed ", seed, ": ", compared.why);
            continue;
        }
        INFO("seed ", seed);
        CHECK(compared.why == "");
    }
    CHECK(refused < most_refused);
}

} // namespace

TEST_CASE("emulator: two hundred random programs do the same as in the kernel") { check_random_programs(false, 20); }

TEST_CASE("emulator: two hundred random programs with maps do the same as in the kernel") { check_random_programs(true, 40); }

TEST_CASE("emulator: sixty times several programs and their tail calls as in the kernel") {
    if (const std::string why = test::refusal("mov", {}); !why.empty()) SKIP("programs can't be run here: " + why);
    if (!test::has_newest()) SKIP("this kernel counts tail calls in each function apart; needs 6.15"); // one count since 6.12
    int ran = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const test::Compared compared = test::compare_programs(seed);
        if (compared.refused) {
            MESSAGE("seed ", seed, ": ", compared.why);
            continue;
        }
        ++ran;
        INFO("seed ", seed, "\n", compared.text);
        CHECK(compared.why == "");
    }
    CHECK(ran > 40);
}

// ---- maps, kernel functions: the same programs, the same results

namespace {

/// Helper calls with their arguments on the stack: the key 8 bytes below r10, the value 16.
std::string call(std::string_view map, std::string_view helper, bool value = false, int flags = 0) {
    return format("r1 = {} ll\nr2 = r10\nr2 += {}\nr3 = r10\nr3 += -16\nr4 = {}\ncall bpf_{}\n", map, value ? -16 : -8, flags,
                  helper);
}
/// r6 = r6 * 31 + r0
constexpr std::string_view kMix = "r6 *= 31\nr6 += r0\n";
/// The same of what a map's helper answers: before Linux 6.4 the upper half of a negative r0 is what the C function left there.
const std::string kMixAnswer = "r0 <<= 32\nr0 s>>= 32\n" + std::string(kMix);
/// The same of what r0 points to, or of 7 where it is null.
std::string mix_value() { return "r1 = 7\nif r0 == 0 goto +1\nr1 = *(u64 *)(r0 + 0)\nr0 = r1\n" + std::string(kMix); }

} // namespace

#define NEEDS_KERNEL                                                                                                             \
    if (const std::string why = test::refusal("mov", {}); !why.empty()) SKIP("programs can't be run here: " + why)

TEST_CASE("emulator: a trie as in the kernel") {
    NEEDS_KERNEL;
    const std::string map = ".map m lpm_trie key 8 value 8 entries 5 flags 1\nr6 = 0\n";
    const std::string twice = map + "*(u64 *)(r10 - 8) = 8\n*(u64 *)(r10 - 16) = 1\n" + call("m", "map_update_elem") +
                              call("m", "map_update_elem", false, BPF_NOEXIST) + "exit\n";
    if (const Both heeds = both(spec_from(twice)); !heeds.why.empty())
        SKIP("needs a trie whose updates heed BPF_NOEXIST, 6.13 (or a stable kernel with it)");
    std::string text = map;
    uint32_t seed = 5;
    auto next = [&](uint32_t below) { return (seed = seed * 1664525 + 1013904223) / 65536 % below; };
    for (int n = 0; n < 90; ++n) {
        append(text, "*(u32 *)(r10 - 8) = {}\n*(u32 *)(r10 - 4) = {}\n*(u64 *)(r10 - 16) = {}\n", next(34),
               next(3) << 6 | next(3) << 14, n + 1);
        switch (next(4)) {
        case 0:
        case 1: text += call("m", "map_update_elem", false, static_cast<int>(next(4))) + kMixAnswer; break;
        case 2: text += call("m", "map_lookup_elem") + mix_value(); break;
        default: text += call("m", "map_delete_elem") + kMixAnswer;
        }
    }
    const Both result = both(spec_from(text + "r0 = r6\nexit\n"));
    if (result.refused) SKIP(result.why);
    CHECK(result.why == "");
}

TEST_CASE("emulator: a bloom filter errs where the kernel's does") {
    NEEDS_KERNEL;
    for (int size : {4, 7, 8, 12, 13, 26}) { // BPF_F_ZERO_SEED: a kernel's seed is random without it
        std::string text = format(".map m bloom_filter value {} entries 8 flags 64\nr6 = 0\n", size);
        for (int at = 8; at <= 40; at += 8) append(text, "*(u64 *)(r10 - {}) = {}\n", at, at * 1234567);
        for (int n = 0; n < 140; ++n) { // far more than there is room for
            append(text, "*(u32 *)(r10 - 40) = {}\nr1 = m ll\nr2 = r10\nr2 += -40\n", n * 77);
            text += n % 2 ? std::string("call bpf_map_peek_elem\n")
                          : "r3 = " + std::to_string(n % 20 == 0) + "\ncall bpf_map_push_elem\n";
            text += kMixAnswer;
        }
        const Both result = both(spec_from(text + "r0 = r6\nexit\n"));
        if (result.refused) SKIP(result.why);
        INFO(size << " bytes");
        CHECK(result.why == "");
    }
}

TEST_CASE("emulator: maps of maps, and values that are replaced, as in the kernel") {
    NEEDS_KERNEL;
    for (const char *kind : {"array_of_maps", "hash_of_maps"}) {
        std::string text = format(".map outer {} key 4 value 4 entries 4\n.map one hash key 4 value 8 entries 2\n"
                                  ".map two hash key 4 value 8 entries 2\nr6 = 0\n",
                                  kind);
        for (int n = 0; n < 6; ++n) {
            append(text, "*(u32 *)(r10 - 8) = {}\n*(u64 *)(r10 - 16) = {}\n", n, n + 100);
            text += call("outer", "map_lookup_elem");
            append(text, "r7 = r0\nif r0 == 0 goto none{}\n", n);
            for (const char *helper : {"map_update_elem", "map_lookup_elem"}) {
                append(text, "r1 = r7\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -16\nr4 = 0\ncall bpf_{}\n", helper);
                if (helper == std::string_view("map_update_elem")) text += kMixAnswer;
            }
            append(text, "if r0 == 0 goto none{}\nr8 = r0\n*(u64 *)(r10 - 16) = 9\n", n);
            text += "r1 = r7\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -16\nr4 = 0\ncall bpf_map_update_elem\n";
            append(text, "r0 = *(u64 *)(r8 + 0)\n*(u64 *)(r8 + 0) = 55\n{}none{}:\n", kMix, n);
        }
        ObjectSpec spec = spec_from(text + "r0 = r6\nexit\n");
        spec.maps[0].inner = std::make_shared<MapSpec>(spec.maps[1]);
        spec.maps[0].inner->name = "inner";
        spec.maps[0].slots = {{1, "one"}, {3, "two"}};
        const Both result = both(spec);
        if (result.refused) SKIP(result.why);
        CHECK(result.why == "");
        CHECK(result.r0 != 0);
    }
}

TEST_CASE("emulator: an arena and numbers to count with, as in the kernel") {
    NEEDS_KERNEL;
    const ObjectSpec spec = spec_from(R"(
.map a arena entries 4 flags 0x400
.program p "syscall"
    r6 = 0
    r1 = a ll
    r2 = 0
    r3 = 2
    r4 = -1
    r5 = 0
    call kfunc bpf_arena_alloc_pages
    r9 = r0
    if r9 == 0 goto out
    r7 = addr_space_cast(r9, 0, 1)
    r6 = *(u64 *)(r7 + 4096)
    *(u64 *)(r7 + 4096) = 77
    r8 = addr_space_cast(r7, 1, 0)
    if r8 != r9 goto out
    r0 = *(u64 *)(r7 + 4096)
    r6 += r0
    r1 = a ll
    r2 = 0
    r3 = 3
    r4 = -1
    r5 = 0
    call kfunc bpf_arena_alloc_pages
    if r0 != 0 goto out
    r1 = a ll
    r2 = r9
    r3 = 2
    call kfunc bpf_arena_free_pages
    r1 = a ll
    r2 = 0
    r3 = 3
    r4 = -1
    r5 = 0
    call kfunc bpf_arena_alloc_pages
    if r0 == 0 goto out
    r6 += 1000
    r1 = r10
    r1 += -8
    r2 = 3
    r3 = 7
    call kfunc bpf_iter_num_new
next:
    r1 = r10
    r1 += -8
    call kfunc bpf_iter_num_next
    if r0 == 0 goto done
    r1 = *(s32 *)(r0 + 0)
    r6 += r1
    goto next
done:
    r1 = r10
    r1 += -8
    call kfunc bpf_iter_num_destroy
    r0 = r6
    exit
out:
    r0 = r6
    exit
)");
    const Both result = both(spec);
    if (result.refused) SKIP(result.why);
    CHECK(result.why == "");
    CHECK(result.r0 == 77 + 1000 + 3 + 4 + 5 + 6);
}
