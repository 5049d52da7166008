// A run in the emulator beside what the verifier knows: whether a number leaves its range.
#pragma once

#include <cstring>
#include <linux/bpf.h>
#include <string>
#include <utility>
#include <vector>

#include "programs/exec/input.h"
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "runtime/verifier/follow.h"
#include "runtime/verifier/print.h"

namespace rawbpf::test {

/// What a run showed.
struct Ranged {
    std::string mistake;     ///< empty: none
    uint64_t compared = 0;   ///< numbers that were known a little, and were looked at
    uint64_t steps = 0;      ///< of the run
    bool to_the_end = false; ///< followed to the program's end
};

namespace ranges {

inline std::string register_mistake(const verifier::State &known, const emulator::Cpu &cpu, const ObjectSpec &spec, Ranged &out) {
    for (unsigned n = 0; n < 10; ++n) {
        const verifier::Value &value = known.reg(n);
        if (!value.is_number()) continue;
        out.compared += value.bounds != verifier::Bounds{};
        if (!value.bounds.holds(cpu.r[n]))
            return format("r{} is {:#x}, known: {}", n, cpu.r[n], verifier::value_text(value, spec));
    }
    return {};
}

inline std::string stack_mistake(const verifier::State &known, const emulator::Machine &machine, const ObjectSpec &spec,
                                 Ranged &out) {
    for (uint32_t depth = 0; depth < known.frames.size(); ++depth) {
        const verifier::Frame &frame = known.frames[depth];
        const uint8_t *bytes = machine.memory().frame(depth);
        for (size_t n = 0; n < frame.stack.size(); ++n) {
            const verifier::Slot &slot = frame.stack[n];
            const size_t at = emulator::kFrameBytes - 8 * (n + 1);
            for (size_t i = 0; i < 8; ++i)
                if (slot.bytes[i] == verifier::Byte::zero && bytes[at + i] != 0)
                    return format("the byte at fp{}-{} is {:#x}, known: 0", depth, emulator::kFrameBytes - at - i, bytes[at + i]);
            if (!slot.holds_value() || slot.value_bytes() != 8 || !slot.value.is_number()) continue;
            uint64_t number = 0;
            std::memcpy(&number, bytes + at, 8);
            ++out.compared;
            if (!slot.value.bounds.holds(number))
                return format("fp{}-{} is {:#x}, known: {}", depth, 8 * (n + 1), number, verifier::value_text(slot.value, spec));
        }
    }
    return {};
}

} // namespace ranges

/// Runs a program that the verifier accepts, with those bytes as packet or memory, and looks at each step at every number.
inline Ranged run_in_ranges(const ObjectSpec &spec, size_t number, std::vector<std::byte> bytes,
                            const verifier::VerifyOptions &options = {}) {
    constexpr uint64_t kMost = 20'000; // steps
    Ranged out;
    Result<std::unique_ptr<emulator::Machine>> made = emulator::Machine::create(spec, {.limit = kMost, .stepping = true});
    if (!made) return out;
    emulator::Machine &machine = **made;
    const ProgramSpec &program = spec.programs[number];
    const bool given = options.memory || !exec::takes_packet(program);
    const Result<void> set =
        given ? machine.set_memory(bytes) : machine.set_packet(bytes, program.type == static_cast<uint32_t>(BPF_PROG_TYPE_XDP));
    if (!set || !machine.enter(number)) return out;
    verifier::Follower follower(spec, number, options);
    using Standing = verifier::Follower::Standing;
    while (!machine.ended() && out.steps < kMost) {
        const verifier::State *known = follower.state();
        if (!known) {
            if (follower.standing() == Standing::impossible || follower.standing() == Standing::refused)
                out.mistake = format("step {}: {}", out.steps, follower.reason());
            return out;
        }
        const size_t at = machine.pc();
        std::string mistake = ranges::register_mistake(*known, machine.cpu(), spec, out);
        if (mistake.empty()) mistake = ranges::stack_mistake(*known, machine, spec, out);
        if (!mistake.empty()) {
            out.mistake = format("step {}, before instruction {}: {}", out.steps, at, mistake);
            return out;
        }
        if (Result<bool> stepped = machine.step(); !stepped) return out; // a context that isn't there, or a limit
        ++out.steps;
        if (machine.ended()) break;
        follower.advance(static_cast<uint32_t>(machine.pc()), machine.cpu().depth, machine.cpu().r,
                         &machine.program() != &program || machine.cpu().in_timer);
    }
    out.to_the_end = machine.ended();
    return out;
}

} // namespace rawbpf::test
