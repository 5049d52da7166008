// Dead code, found as the verifier finds it.
//
// A program for many kernels asks before it accesses: at load time bpf_core_field_exists() becomes a number, 0 or 1, which
// decides the branch on it. The code behind the branch may be poisoned, because the verifier never reaches it:
//
//      r1 = 0                    relocated: the field doesn't exist here
//      if r1 == 0 goto +2        always taken
//      call poison               not reachable: guarded
//
// So this file walks from the entry, keeps the number in each register if it is the same on all paths, and follows only the
// side of a branch that can be taken. Where paths meet, registers that differ become unknown; a register can become unknown
// only once at each meeting point, so the walk ends. The verifier itself examines paths one by one and knows more (ranges, the
// stack, frozen maps).
#include "programs/inspect/reach.h"

#include <optional>
#include <unordered_map>

namespace rawbpf::inline v0::inspect {

namespace {

constexpr int kRegisters = 11;
constexpr uint32_t kPoison = 195896080; // core.h's kPoisonHelper

struct State {
    uint32_t known = 0; // one bit a register
    uint64_t value[kRegisters] = {};

    void set(unsigned reg, uint64_t number) {
        if (reg >= kRegisters) return;
        known |= 1u << reg;
        value[reg] = number;
    }
    void forget(unsigned reg) { known &= ~(1u << reg); }
    [[nodiscard]] std::optional<uint64_t> get(unsigned reg) const {
        if (reg >= kRegisters || !(known >> reg & 1)) return std::nullopt;
        return value[reg];
    }
    /// Keeps what both agree on; whether something was lost.
    bool meet(const State &other) {
        const uint32_t before = known;
        for (unsigned reg = 0; reg < kRegisters; ++reg)
            if (known >> reg & 1)
                if (!(other.known >> reg & 1) || other.value[reg] != value[reg]) forget(reg);
        return known != before;
    }
};

std::optional<uint64_t> compute(uint8_t op, uint64_t a, uint64_t b, bool wide) {
    const unsigned mask = wide ? 63 : 31;
    if (!wide) {
        a = static_cast<uint32_t>(a);
        b = static_cast<uint32_t>(b);
    }
    uint64_t out;
    switch (op) {
    case 0x00: out = a + b; break;
    case 0x10: out = a - b; break;
    case 0x20: out = a * b; break;
    case 0x40: out = a | b; break;
    case 0x50: out = a & b; break;
    case 0x60: out = a << (b & mask); break;
    case 0x70: out = a >> (b & mask); break;
    case 0xa0: out = a ^ b; break;
    case 0xb0: out = b; break;
    case 0xc0:
        out = wide ? static_cast<uint64_t>(static_cast<int64_t>(a) >> (b & mask))
                   : static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int32_t>(a) >> (b & mask)));
        break;
    default: return std::nullopt;
    }
    return wide ? out : static_cast<uint32_t>(out);
}

std::optional<bool> decide(uint8_t op, uint64_t a, uint64_t b, bool wide) {
    if (!wide) {
        a = static_cast<uint32_t>(a);
        b = static_cast<uint32_t>(b);
    }
    const int64_t x = wide ? static_cast<int64_t>(a) : static_cast<int32_t>(a);
    const int64_t y = wide ? static_cast<int64_t>(b) : static_cast<int32_t>(b);
    switch (op) {
    case 0x10: return a == b;
    case 0x20: return a > b;
    case 0x30: return a >= b;
    case 0x40: return (a & b) != 0;
    case 0x50: return a != b;
    case 0x60: return x > y;
    case 0x70: return x >= y;
    case 0xa0: return a < b;
    case 0xb0: return a <= b;
    case 0xc0: return x < y;
    case 0xd0: return x <= y;
    default: return std::nullopt;
    }
}

class Reaching {
  public:
    explicit Reaching(std::span<const Insn> insns) : insns_(insns), reached_(insns.size()) {}

    std::vector<bool> run() {
        go(0, State{});
        while (!work_.empty() && !lost_) {
            const auto [at, state] = work_.back();
            work_.pop_back();
            follow(at, state);
        }
        if (lost_) reached_.assign(insns_.size(), true);
        return std::move(reached_);
    }

  private:
    /// A place to go on from: where paths may meet.
    void go(int64_t to, const State &state) {
        if (to < 0 || to >= static_cast<int64_t>(insns_.size())) return;
        auto [at, fresh] = met_.try_emplace(static_cast<uint32_t>(to), state);
        if (fresh || at->second.meet(state)) work_.push_back({static_cast<uint32_t>(to), at->second});
    }

    void follow(uint32_t at, State state) {
        for (bool first = true; at < insns_.size(); first = false) {
            if (!first)
                if (auto met = met_.find(at); met != met_.end()) return go(at, state); // runs into a place known already
            // Without a place of its own, straight code is walked again only when its beginning has changed.
            reached_[at] = true;
            const Insn &insn = insns_[at];
            switch (insn.code & 0x07) {
            case 0x00:
                state.forget(is_wide(insn) ? insn.dst : 0); // packet loads answer in r0
                if (is_wide(insn)) {
                    if (at + 1 >= insns_.size()) return;
                    reached_[at + 1] = true;
                    const uint64_t high = static_cast<uint32_t>(insns_[at + 1].imm);
                    if (insn.src == 0) state.set(insn.dst, high << 32 | static_cast<uint32_t>(insn.imm));
                    if (insn.src == 4) go(int64_t{at} + 1 + insn.imm, State{}); // the address of a callback
                    ++at;
                }
                break;
            case 0x01: state.forget(insn.dst); break;
            case 0x02: break;
            case 0x03:
                if ((insn.code & 0xe0) == 0xc0) { // atomics answer in a register
                    state.forget(insn.src);
                    state.forget(insn.dst);
                    state.forget(0);
                }
                break;
            case 0x04:
            case 0x07: arithmetic(insn, state); break;
            default:
                if (!jump(insn, at, state)) return;
                break;
            }
            ++at;
        }
    }

    static void arithmetic(const Insn &insn, State &state) {
        const bool wide = (insn.code & 0x07) == 0x07;
        const uint8_t op = insn.code & 0xf0;
        const std::optional<uint64_t> b =
            insn.code & 0x08 ? state.get(insn.src) : std::optional<uint64_t>(static_cast<uint64_t>(int64_t{insn.imm}));
        const std::optional<uint64_t> a = op == 0xb0 ? std::optional<uint64_t>(0) : state.get(insn.dst);
        const std::optional<uint64_t> out = a && b && insn.off == 0 ? compute(op, *a, *b, wide) : std::nullopt;
        out ? state.set(insn.dst, *out) : state.forget(insn.dst);
    }

    /// Whether the walk goes on behind it.
    bool jump(const Insn &insn, uint32_t at, State &state) {
        const bool wide = (insn.code & 0x07) == 0x05;
        const uint8_t op = insn.code & 0xf0;
        const int64_t target = int64_t{at} + 1 + insn.off;
        switch (op) {
        case 0x00:
            if (insn.code & 0x08) { // gotox: anywhere
                lost_ = true;
                return false;
            }
            go(wide ? target : int64_t{at} + 1 + insn.imm, state);
            return false;
        case 0x80:
            if (insn.src == 1) go(int64_t{at} + 1 + insn.imm, State{});
            if (insn.src == 0 && static_cast<uint32_t>(insn.imm) == kPoison) return false;
            for (unsigned reg = 0; reg <= 5; ++reg) state.forget(reg);
            return true;
        case 0x90: return false;
        case 0xe0: go(target, state); return true; // may_goto
        default: break;
        }
        const std::optional<uint64_t> a = state.get(insn.dst);
        const std::optional<uint64_t> b =
            insn.code & 0x08 ? state.get(insn.src) : std::optional<uint64_t>(static_cast<uint64_t>(int64_t{insn.imm}));
        const std::optional<bool> taken = a && b ? decide(op, *a, *b, wide) : std::nullopt;
        if (taken != false) {
            State there = state;
            if (op == 0x10 && wide && b) there.set(insn.dst, *b);
            go(target, there);
        }
        if (taken == true) return false;
        if (op == 0x50 && wide && b) state.set(insn.dst, *b);
        return true;
    }

    std::span<const Insn> insns_;
    std::vector<bool> reached_;
    std::unordered_map<uint32_t, State> met_; // by instruction
    std::vector<std::pair<uint32_t, State>> work_;
    bool lost_ = false;
};

} // namespace

std::vector<bool> reachable(std::span<const Insn> insns) { return Reaching(insns).run(); }

} // namespace rawbpf::inline v0::inspect
