// What a program can make the emulator do has an end, and callbacks, tail calls and packets' ends lead where the kernel goes.
#include <algorithm>

#include "runtime/base/format.h"
#include "tests/support/spec_from.h"
#include "tests/unit/emulator/emulated.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

std::string answer(const ObjectSpec &spec, emulator::MachineOptions options = {.limit = 10'000'000}) {
    std::byte memory[16] = {};
    Result<uint64_t> r0 = run(spec, memory, options);
    return r0 ? std::to_string(static_cast<int64_t>(*r0)) : r0.error().message();
}
std::string answer(const std::string &text) { return answer(test::spec_from(text)); }

/// The same step by step, to the end, back to the beginning, and to the end again.
std::string stepped(const ObjectSpec &spec) {
    auto machine = emulator::Machine::create(spec, {.stepping = true}).value();
    std::byte memory[16] = {};
    REQUIRE(machine->set_memory(memory));
    REQUIRE(machine->enter(0));
    std::string results[2];
    for (std::string &out : results) {
        for (;;) {
            Result<bool> more = machine->step();
            if (!more) {
                out = more.error().message();
                break;
            }
            (void)machine->insns()[std::min(machine->pc(), machine->insns().size() - 1)];
            REQUIRE(machine->pc() < machine->insns().size());
            if (!*more || machine->ended()) {
                out = std::to_string(static_cast<int64_t>(machine->cpu().r[0]));
                break;
            }
        }
        while (machine->back()) {
        }
    }
    CHECK(results[0] == results[1]);
    return results[0];
}

/// a tail-calls b from wherever `where` says; every program and function adds what it does to the counter.
constexpr const char *kPrograms = R"(
.map t prog_array key 4 value 4 entries 2
.bss count u64[4]
)";
const std::string kTail = "r1 = 0\nr2 = t ll\nr3 = 0\ncall bpf_tail_call\n";
std::string add(int place) {
    return "r9 = count + " + std::to_string(8 * place) + " ll\nr8 = *(u64 *)(r9 + 0)\nr8 += 1\n*(u64 *)(r9 + 0) = r8\n";
}
ObjectSpec with_slots(const std::string &text) {
    ObjectSpec spec = test::spec_from(kPrograms + text);
    spec.maps[0].slots = {{0, "b"}, {1, "c"}};
    return spec;
}
const std::string kLoop = "r1 = 3\nr2 = cb ll\nr3 = 0\nr4 = 0\ncall bpf_loop\n";
const std::string kResult =
    "r7 = r0\nr9 = count ll\nr0 = *(u64 *)(r9 + 0)\nr0 *= 100\nr1 = *(u64 *)(r9 + 8)\nr0 += r1\nr0 *= 100\nr0 += r7\nexit\n";

} // namespace

TEST_CASE("emulator: a tail call in a callback ends that call of it, and no more") {
    // Three calls of the callback, each of which goes on to b: 3 rounds, 3 times b, r0 3.
    ObjectSpec every = with_slots(".program a\n" + kLoop + kResult + ".function cb\n" + add(0) + kTail + "r0 = 1\nexit\n" +
                                  ".program b\n" + add(1) + "r0 = 0\nexit\n");
    CHECK(answer(every) == "30303");
    CHECK(stepped(every) == "30303");
    // Where it fails, the callback goes on.
    ObjectSpec fails =
        with_slots(".program a\n" + kLoop + kResult + ".function cb\n" + add(0) +
                   "r1 = 0\nr2 = t ll\nr3 = 7\ncall bpf_tail_call\nr0 = 1\nexit\n.program b\n" + add(1) + "r0 = 0\nexit\n");
    CHECK(answer(fails) == "10001");
    // From a function that the callback calls: that function is replaced, the callback goes on.
    ObjectSpec deeper = with_slots(".program a\n" + kLoop + kResult + ".function cb\n" + add(0) + "call f\nr0 = 0\nexit\n" +
                                   ".function f\n" + kTail + "r0 = 77\nexit\n.program b\n" + add(1) + "r0 = 5\nexit\n");
    CHECK(answer(deeper) == "30303");
    CHECK(stepped(deeper) == "30303");
    // b has callbacks of its own, whose functions are b's.
    ObjectSpec nested = with_slots(".program a\n" + kLoop + kResult + ".function cb\n" + add(0) + kTail + "r0 = 1\nexit\n" +
                                   ".program b\nr1 = 2\nr2 = inner ll\nr3 = 0\nr4 = 0\ncall bpf_loop\nr0 = 0\nexit\n" +
                                   ".function inner\n" + add(1) + "r0 = 0\nexit\n");
    CHECK(answer(nested) == "30603");
    CHECK(stepped(nested) == "30603");
    // All together 33 tail calls, wherever they are.
    ObjectSpec many = with_slots(".program a\nr1 = 50\nr2 = cb ll\nr3 = 0\nr4 = 0\ncall bpf_loop\n" + kResult + ".function cb\n" +
                                 add(0) + kTail + "r0 = 0\nexit\n.program b\n" + add(1) + "r0 = 0\nexit\n");
    CHECK(answer(many) == "503350");
    // What b returns is the callback's answer.
    ObjectSpec wrong =
        with_slots(".program a\n" + kLoop + kResult + ".function cb\n" + kTail + "r0 = 1\nexit\n.program b\nr0 = 9\nexit\n");
    CHECK(answer(wrong).find("a callback returned 9") != std::string::npos);
    CHECK(stepped(wrong).find("a callback returned 9") != std::string::npos);
}

/// Program `name` whose functions are `depth` deep, the program itself among them; the last one does `end`. Each keeps a value of
/// its own on its stack, and adds to `place` what it finds there when the next one has returned.
std::string deep_program(const std::string &name, int depth, int place, const std::string &end) {
    std::string out = ".program " + name + "\n";
    for (int n = 0; n < depth; ++n) {
        if (n) out += ".function " + name + std::to_string(n) + "\n";
        if (n + 1 == depth) return out + end;
        out += "*(u64 *)(r10 - 512) = 1\n*(u64 *)(r10 - 8) = 1\ncall " + name + std::to_string(n + 1) + "\nr9 = count + " +
               std::to_string(8 * place) +
               " ll\nr8 = *(u64 *)(r9 + 0)\nr7 = *(u64 *)(r10 - 512)\nr8 += r7\nr7 = *(u64 *)(r10 - 8)\nr8 += r7\n*(u64 *)(r9 + "
               "0) = r8\n" +
               (n            ? "exit\n"
                : place == 0 ? kResult
                             : "exit\n");
    }
    return out;
}

TEST_CASE("emulator: each program of a chain of tail calls has eight frames") {
    const std::string ends = kTail + "r0 = 7\nexit\n";
    // 7 functions of a wait for b's, 33 times 7 of b for the next b's, the last of which stays.
    ObjectSpec chain = with_slots(deep_program("a", 8, 0, ends) + deep_program("b", 8, 1, ends));
    CHECK(answer(chain) == std::to_string((2 * 7 * 100 + 33 * 2 * 7) * 100 + 7));
    CHECK(stepped(chain) == answer(chain));
    // A ninth is too many, in the second as in the first.
    CHECK(answer(with_slots(deep_program("a", 9, 0, ends) + deep_program("b", 1, 1, ends))).find("more than 8 functions deep") !=
          std::string::npos);
    CHECK(answer(with_slots(deep_program("a", 5, 0, ends) + deep_program("b", 9, 1, ends))).find("more than 8 functions deep") !=
          std::string::npos);
    // Beside a deep frame there is nothing.
    const std::string past =
        answer(with_slots(deep_program("a", 8, 0, ends) + deep_program("b", 8, 1, "*(u64 *)(r10 - 520) = 1\nr0 = 0\nexit\n")));
    CHECK(past.find("8 bytes before the start of the stack of frame 14") != std::string::npos);
}

TEST_CASE("emulator: a packet's byte that isn't there ends the function that asked for it") {
    CHECK(answer("call sub\nr0 += 99\nexit\n.function sub\nr0 = *(u32 *)skb[10000]\nr0 = 5\nexit\n") == "99");
    CHECK(answer("r0 = *(u8 *)skb[10000]\nr0 = 5\nexit\n") == "0");
    const std::string callback =
        "r1 = 2\nr2 = cb ll\nr3 = 0\nr4 = 0\ncall bpf_loop\nexit\n.function cb\nr6 = r1\nr0 = *(u8 *)skb[9999]\nr0 = 1\nexit\n";
    CHECK(answer(callback) == "2");
    CHECK(stepped(test::spec_from(callback)) == "2");
}

TEST_CASE("emulator: helpers' work is counted against the limit") {
    for (const char *loop :
         {".bss big u8[1000000]\nl: r1 = big ll\nr2 = 1000000\nr3 = big ll\ncall bpf_probe_read_kernel\ngoto l\n",
          ".map e perf_event_array key 4 value 4 entries 1\n.bss big u8[1000000]\nl: r1 = r10\nr2 = e ll\nr3 = 0\nr4 = big "
          "ll\nr5 = 1000000\ncall "
          "bpf_perf_event_output\ngoto l\n",
          ".rodata f \"text\"\nl: r1 = f ll\nr2 = 5\ncall bpf_trace_printk\ngoto l\n",
          ".rodata f \"%y\"\nl: r1 = f ll\nr2 = 3\ncall bpf_trace_printk\ngoto l\n",
          ".map m lpm_trie key 260 value 8 entries 4 flags 1\n.bss k u8[260]\nl: r2 = k ll\n*(u32 *)(r2 + 0) = 2048\nr1 = m "
          "ll\ncall "
          "bpf_map_lookup_elem\ngoto l\n"}) {
        INFO(loop);
        CHECK(answer(test::spec_from(loop), {.limit = 1'000'000}).find("counts as 1000000 instructions") != std::string::npos);
    }
    // Timers count on where the program ended.
    CHECK(
        answer(test::spec_from(
                   ".map m array key 4 value 16 entries 1\n*(u32 *)(r10 - 4) = 0\nr1 = m ll\nr2 = r10\nr2 += -4\ncall "
                   "bpf_map_lookup_elem\n"
                   "r7 = r0\nr1 = r7\nr2 = m ll\nr3 = 1\ncall bpf_timer_init\nr1 = r7\nr2 = cb ll\ncall bpf_timer_set_callback\n"
                   "r1 = r7\nr2 = 1\nr3 = 0\ncall bpf_timer_start\nr0 = 0\nexit\n.function cb\nl: goto l\n"),
               {.limit = 1'000'000})
            .find("stopped after 1000000 instructions") != std::string::npos);
}

TEST_CASE("emulator: what is recorded has room for so much") {
    const std::string full = answer(".map e perf_event_array key 4 value 4 entries 1\n.bss big u8[1000000]\nr6 = 0\n"
                                    "l: r1 = r10\nr2 = e ll\nr3 = 0\nr4 = big ll\nr5 = 1000000\ncall bpf_perf_event_output\n"
                                    "if r0 != 0 goto o\nr6 += 1\nif r6 < 1000 goto l\nr0 = 1\no: r0 = r6\nexit\n");
    CHECK(full == std::to_string((64 << 20) / (1000000 + 64)));
    std::string open = ".map m ringbuf entries 65536\nr6 = 0\nl: r1 = m ll\nr2 = 8\nr3 = 0\ncall bpf_ringbuf_reserve\nif r0 == 0 "
                       "goto o\nr6 += 1\ngoto "
                       "l\no: r0 = r6\nexit\n";
    CHECK(answer(open).find("1024 records of map m are reserved at the same time") != std::string::npos);
}

TEST_CASE("emulator: records of a ring buffer of every size, released in any order") {
    CHECK(answer(".map m ringbuf entries 4096\nr1 = m ll\nr2 = 0\nr3 = 0\ncall bpf_ringbuf_reserve\nr6 = r0\nr1 = m ll\nr2 = "
                 "16\nr3 = 0\n"
                 "call bpf_ringbuf_reserve\nr7 = r0\nr1 = m ll\nr2 = 0\nr3 = 0\ncall bpf_ringbuf_reserve\nr8 = r0\n*(u64 *)(r7 + "
                 "8) = 5\n"
                 "r1 = r6\nr2 = 0\ncall bpf_ringbuf_submit\nr9 = *(u64 *)(r7 + 8)\nr1 = r8\nr2 = 0\ncall bpf_ringbuf_discard\n"
                 "r1 = r7\nr2 = 0\ncall bpf_ringbuf_submit\nr0 = r9\nexit\n") == "5");
    CHECK(answer(".map m ringbuf entries 4096\nr1 = m ll\nr2 = 0\nr3 = 0\ncall bpf_ringbuf_reserve\nr6 = r0\nr0 = *(u8 *)(r6 + "
                 "0)\nexit\n")
              .find("can't read 1 byte") != std::string::npos);
}

TEST_CASE("emulator: no value or key is reached from its neighbour") {
    for (const char *map : {"array key 4 value 8 entries 4", "hash key 4 value 8 entries 4", "array key 4 value 5 entries 100000",
                            "hash key 4 value 12 entries 1000000", "array key 4 value 4096 entries 50"})
        for (int off : {-8, -1, 12, 16, 4096}) {
            const std::string found =
                format(".map m {}\n*(u32 *)(r10 - 4) = 0\n*(u64 *)(r10 - 16) = 0\n", map) +
                (std::string_view(map).starts_with("hash")
                     ? "r1 = m ll\nr2 = r10\nr2 += -4\nr3 = m ll\nr3 = r10\nr3 += -16\nr4 = 0\ncall bpf_map_update_elem\n"
                     : "") +
                format("r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\nr0 = *(u8 *)(r0 + {})\nexit\n", off);
            const bool inside = off == 16   ? std::string_view(map).find("4096") != std::string_view::npos
                                : off == 12 ? std::string_view(map).find("4096") != std::string_view::npos
                                            : false;
            CAPTURE(found);
            if (!inside) CHECK(answer(found).find("can't read 1 byte") != std::string::npos);
        }
}

TEST_CASE("emulator: timers end with their values, in maps of every kind; ten thousand of them run") {
    const std::string start =
        "r7 = r0\nr1 = r7\nr2 = m ll\nr3 = 1\ncall bpf_timer_init\nr1 = r7\nr2 = cb ll\ncall bpf_timer_set_callback\n"
        "r1 = r7\nr2 = 1000\nr3 = 0\ncall bpf_timer_start\n";
    const std::string key = "*(u32 *)(r10 - 4) = 0\n*(u64 *)(r10 - 16) = 0\n*(u64 *)(r10 - 24) = 0\n";
    const std::string update = "r1 = m ll\nr2 = r10\nr2 += -4\nr3 = r10\nr3 += -24\nr4 = 0\ncall bpf_map_update_elem\n";
    for (const char *kind : {"array", "hash", "lru_hash"})
        CHECK_MESSAGE(answer(format(".map m {} key 4 value 16 entries 4\n", kind) + key + update +
                             "r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n" + start + update +
                             "r0 = 5\nexit\n.function cb\nr0 = 77\nexit\n") == "5",
                      kind);
    CHECK(answer(".map m array key 4 value 16 entries 10000\n.bss n u64\nr6 = 0\nl: *(u32 *)(r10 - 4) = r6\nr1 = m ll\nr2 = "
                 "r10\nr2 += -4\n"
                 "call bpf_map_lookup_elem\n" +
                 start +
                 "r6 += 1\nif r6 < 10000 goto l\nr0 = 7\nexit\n"
                 ".function cb\nr2 = n ll\nr1 = *(u64 *)(r2 + 0)\nr1 += 1\n*(u64 *)(r2 + 0) = r1\nr0 = 0\nexit\n") == "7");
    // A callback that would wait for itself.
    CHECK(answer(
              ".map m array key 4 value 16 entries 1\n" + key + "r1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n" +
              start +
              "r0 = 5\nexit\n.function cb\nr1 = r3\ncall bpf_timer_cancel\nif r0 == -35 goto +2\nr0 = 9\nexit\nr0 = 0\nexit\n") ==
          "5");
}

TEST_CASE("emulator: maps that no kernel takes, and those that take too much") {
    for (const char *map : {"hash key 4 value 0 entries 4", "array key 4 value 0 entries 4", "queue key 4 value 8 entries 4",
                            "stack value 0 entries 4", "ringbuf key 4 entries 4096", "ringbuf value 8 entries 4096",
                            "lru_hash key 4 value 8 entries 4 flags 1", "lpm_trie key 8 value 0 entries 4 flags 1"})
        CHECK_MESSAGE(answer(format(".map m {}\nr0 = 1\nexit\n", map)).starts_with("map m: "), map);
    CHECK(answer(".map m hash key 4 value 8 entries 200000000\nr0 = 1\nexit\n").find("the emulator has 1024 MiB for all maps") !=
          std::string::npos);
}
