// The emulator's speed: nanoseconds an instruction, on two loops of some 8,000 instructions.
//
//      arithmetic      six operations on registers, and the loop's two
//      memory          two loads and two stores among them, bounds-checked
//
// Peers: a switch over undecoded instructions without any checks, as a beginner's interpreter is; the kernel's JIT, where
// the kernel lets us.
#include "tests/bench/bench.h"

#include "asm/encode.h"
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "runtime/kernel/test_run.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

using namespace rawbpf;

namespace {

struct Loop {
    const char *name;
    std::vector<Insn> insns;
    double executed;
};

/// The processor time of this process: other processes' turns don't count.
double spent_ns() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

Insn insn(std::string_view name, Operands operands) {
    const Encoded encoded = encode(name, operands);
    if (!encoded) std::abort();
    return encoded.insn;
}

Loop arithmetic() {
    Loop loop{"arithmetic", {}, 0};
    auto &code = loop.insns;
    code = {insn("mov", {.dst = 0, .imm = 1}), insn("mov", {.dst = 3, .imm = 1000})};
    code.push_back(insn("mov_reg", {.dst = 4, .src = 0}));
    code.push_back(insn("add", {.dst = 0, .imm = 7}));
    code.push_back(insn("mul", {.dst = 4, .imm = 3}));
    code.push_back(insn("xor_reg", {.dst = 0, .src = 4}));
    code.push_back(insn("rsh", {.dst = 4, .imm = 5}));
    code.push_back(insn("add32_reg", {.dst = 0, .src = 4}));
    code.push_back(insn("sub", {.dst = 3, .imm = 1}));
    code.push_back(insn("jne", {.dst = 3, .off = -8}));
    code.push_back(insn("exit", {}));
    loop.executed = 2 + 8 * 1000 + 1;
    return loop;
}

Loop memory() {
    Loop loop{"memory", {}, 0};
    auto &code = loop.insns;
    code = {insn("mov", {.dst = 0, .imm = 1}), insn("mov", {.dst = 3, .imm = 1000}), insn("stdw", {.dst = 10, .off = -8})};
    code.push_back(insn("ldxdw", {.dst = 4, .src = 10, .off = -8}));
    code.push_back(insn("add_reg", {.dst = 0, .src = 4}));
    code.push_back(insn("stxw", {.dst = 1, .src = 0, .off = 4}));
    code.push_back(insn("ldxb", {.dst = 5, .src = 1, .off = 5}));
    code.push_back(insn("xor_reg", {.dst = 0, .src = 5}));
    code.push_back(insn("stxdw", {.dst = 10, .src = 0, .off = -8}));
    code.push_back(insn("sub", {.dst = 3, .imm = 1}));
    code.push_back(insn("jne", {.dst = 3, .off = -8}));
    code.push_back(insn("exit", {}));
    loop.executed = 3 + 8 * 1000 + 1;
    return loop;
}

/// A switch, a register file, no checks: as much as the two loops need.
[[gnu::noinline]] uint64_t plain(const Insn *insns, uint8_t *memory) {
    uint8_t stack[512];
    uint64_t r[11] = {};
    r[1] = reinterpret_cast<uintptr_t>(memory);
    r[10] = reinterpret_cast<uintptr_t>(stack + sizeof stack);
    for (const Insn *i = insns;; ++i) {
        uint64_t &d = r[i->dst];
        const uint64_t s = r[i->src], imm = static_cast<uint64_t>(int64_t{i->imm});
        auto *at = reinterpret_cast<uint8_t *>(d + static_cast<uint64_t>(int64_t{i->off}));
        const auto *from = reinterpret_cast<const uint8_t *>(s + static_cast<uint64_t>(int64_t{i->off}));
        switch (i->code) {
        case 0xb7: d = imm; break;
        case 0xbf: d = s; break;
        case 0x07: d += imm; break;
        case 0x0f: d += s; break;
        case 0x0c: d = static_cast<uint32_t>(d + s); break;
        case 0x17: d -= imm; break;
        case 0x27: d *= imm; break;
        case 0xaf: d ^= s; break;
        case 0x77: d >>= imm & 63; break;
        case 0x79: std::memcpy(&d, from, 8); break;
        case 0x71: d = *from; break;
        case 0x7a: std::memcpy(at, &imm, 8); break;
        case 0x7b: std::memcpy(at, &s, 8); break;
        case 0x63: std::memcpy(at, &s, 4); break;
        case 0x55:
            if (d != imm) i += i->off;
            break;
        case 0x95: return r[0];
        default: std::abort();
        }
    }
}

/// Else the kernel interprets, too.
bool jit_is_on() {
    const Result<std::string> text = sys::read_file("/proc/sys/net/core/bpf_jit_enable");
    return !text || !text->starts_with('0'); // without the file it is always on
}

ObjectSpec spec_of(const Loop &loop) {
    ObjectSpec spec;
    spec.name = loop.name;
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    program.insns = loop.insns;
    return spec;
}

} // namespace

int main() {
    constexpr int kRounds = 61, kRuns = 200;
    for (const Loop &loop : {arithmetic(), memory()}) {
        const ObjectSpec spec = spec_of(loop);
        std::vector<std::byte> bytes(64);
        auto machine = emulator::Machine::create(spec);
        if (!machine || !(*machine)->set_memory(bytes)) return 1;
        uint64_t r0 = 0, expected = 0;
        auto ours = [&] {
            const double begin = spent_ns();
            for (int n = 0; n < kRuns; ++n) {
                auto entered = (*machine)->enter(0);
                auto result = (*machine)->run();
                r0 = entered && result ? *result : ~uint64_t{0};
            }
            return (spent_ns() - begin) / (kRuns * loop.executed);
        };
        auto peer = [&] {
            const double begin = spent_ns();
            for (int n = 0; n < kRuns; ++n) expected = plain(loop.insns.data(), reinterpret_cast<uint8_t *>(bytes.data()));
            return (spent_ns() - begin) / (kRuns * loop.executed);
        };
        const auto [emulated, switched] = bench::in_turns(kRounds, ours, peer);
        if (r0 != expected) {
            std::fprintf(stderr, "%s: r0 %#lx, expected %#lx\n", loop.name, r0, expected);
            return 1;
        }
        const std::string name = format("emulator, {} loop", loop.name);
        bench::row(name, "ns/insn", emulated, bench::Mark::at_most, 1.0);
        bench::row(name + ", to a plain switch without checks", "ns/insn", emulated, switched, bench::Mark::at_most, 1.0);

        TestRunOptions options;
        options.memory = bytes;
        Result<TestRun> ran = test_run(spec, 0, options);
        if (!ran || !jit_is_on()) {
            bench::skipped(name + ", to the kernel's JIT",
                           ran ? "/proc/sys/net/core/bpf_jit_enable is 0" : ran.error().message());
            continue;
        }
        if (ran->r0 != expected) return 1;
        // In turns with the emulator and by the same clock: what the kernel says of its runs is the time on the wall, in which
        // others had the processor.
        std::vector<std::byte> packet(64);
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(ran->object.find_program("main")->fd.get());
        attr.data_in = sys::reg(packet.data());
        attr.data_size_in = static_cast<uint32_t>(packet.size());
        attr.repeat = kRuns;
        bool failed = false;
        auto jitted = [&] {
            const double begin = spent_ns();
            failed = !sys::prog_test_run(attr) || failed;
            return (spent_ns() - begin) / (kRuns * loop.executed);
        };
        const auto [again, jit] = bench::in_turns(kRounds, ours, jitted);
        if (failed) return 1;
        bench::row(name + ", to the kernel's JIT", "ns/insn", again, jit, bench::Mark::at_most, 20);
    }
    return 0;
}
