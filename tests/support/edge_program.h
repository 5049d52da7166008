// Random programs at the edge of what a verifier takes, as assembly text: about half of them are refused, for many reasons.
//
//      sections     socket, tc, xdp, cgroup_skb, raw tracepoint, tracepoint, perf_event
//      numbers      of every operation, from memory, compared with constants and with each other, spilled and filled in parts
//      pointers     to maps' values, the stack, the packet, a ring buffer's record: moved by numbers that are known a little
//
// What a register holds is followed roughly (Kind), so that a program isn't refused by its third line; now and then that is
// ignored on purpose. change() then alters instructions of a program that may have been right.
//
// The same seed gives the same program, on any machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "asm/insn.h"
#include "asm/opcodes.h"
#include "runtime/base/format.h"
#include "runtime/object/spec.h"

namespace rawbpf::test {

class EdgeProgram {
  public:
    explicit EdgeProgram(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x1234567) {
        for (int n = 0; n < 4; ++n) (void)below(2);
    }

    std::string make() {
        static constexpr const char *kSections[] = {
            "socket",     "tc", "xdp", "cgroup_skb/ingress", "raw_tp/sched_switch", "tp/sched/sched_switch",
            "perf_event", "tc", "xdp"};
        section_ = kSections[below(9)];
        tracing_ = section_[0] == 'r' || section_[0] == 'p' || section_.starts_with("tp");
        packets_ = section_ == "tc" || section_ == "xdp" || section_[0] == 'c';
        text_ = ".license \"GPL\"\n.map values array key 4 value 48 entries 4\n.map hash hash key 4 value 16 entries 8\n"
                ".map ring ringbuf entries 4096\n.bss data u64[8]\n.rodata limits u64[2] = 7, 100\n";
        append(text_, ".program main \"{}\"\nr6 = r1\n", section_);
        kinds_.fill(Kind::unset);
        kinds_[1] = kinds_[6] = Kind::context;
        slots_.fill(Kind::unset);
        for (int n = 2 + below(3); n > 0; --n) number_from_memory();
        for (int n = 4 + below(24); n > 0; --n) act(0);
        if (below(30) == 0) line("goto out");
        append(text_, "out: r0 = {}\nexit\n", below(2));
        if (function_)
            append(
                text_,
                ".function sub\nr0 = r1\nif r2 {} {} goto +1\nr0 {} r2\n*(u64 *)(r10 - 8) = r0\nr0 = *(u{} *)(r10 - 8)\nexit\n",
                pick("s<", "<", "==", "&"), constant(), pick("+=", "&=", "-=", "|="), pick("8", "16", "32", "64"));
        return std::move(text_);
    }

    /// Alters so many instructions.
    void change(ProgramSpec &program, int count) {
        for (; count > 0; --count) {
            const auto at = static_cast<size_t>(below(static_cast<int>(program.insns.size())));
            if (is_wide(program.insns[at]) || (at > 0 && is_wide(program.insns[at - 1]))) continue;
            Insn &insn = program.insns[at];
            switch (below(8)) {
            case 0: insn.dst = static_cast<uint8_t>(below(11)); break;
            case 1: insn.src = static_cast<uint8_t>(below(insn.code == 0x85 ? 1 : 11)); break;
            case 2: insn.off = static_cast<int16_t>(insn.off + pick_number(-8, -4, -1, 1, 2, 4, 8, 16)); break;
            case 3:
                if (insn.code != 0x85) insn.imm = pick_number(0, 1, -1, 8, 47, 48, 63, 0x7fffffff);
                break;
            case 4: insn.imm += pick_number(-8, -1, 1, 8); break;
            case 5: insn = {0x05, 0, 0, 0, 0}; break; // goes on: as if it weren't there
            case 6: insn.code ^= static_cast<uint8_t>(1 << below(8)); break;
            default: std::swap(insn, program.insns[static_cast<size_t>(below(static_cast<int>(at) + 1))]);
            }
        }
        // A swap must not tear a load of 64 bits from its second half, nor move one that a fixup names.
        for (const Fixup &fixup : program.fixups)
            if (!is_wide(program.insns[fixup.insn])) program.fixups.clear(), program.insns = {{0x95, 0, 0, 0, 0}};
    }

    int below(int n) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<int>((state_ * 0x2545f4914f6cdd1d >> 33) % static_cast<uint64_t>(n));
    }

  private:
    enum class Kind : uint8_t { unset, number, context, value, stack, packet, end, record };

    template <class... T> const char *pick(T... words) {
        const char *all[] = {words...};
        return all[below(sizeof...(T))];
    }
    template <class... T> int pick_number(T... numbers) {
        const int all[] = {numbers...};
        return all[below(sizeof...(T))];
    }
    template <class... Args> void line(fmt::format_string<Args...> text, Args &&...args) {
        text_ += format_from(text, fmt::make_format_args(args...)) + "\n";
    }
    int constant() {
        return below(2) ? below(64)
                        : pick_number(0, 1, -1, 2, 7, 8, 31, 32, 33, 40, 47, 48, 255, 256, -8, -48, 0x7fffffff, -0x7fffffff - 1,
                                      65535, -65536);
    }
    int reg() { return pick_number(0, 1, 2, 3, 4, 5, 7, 8, 9, 7, 8, 9); }
    /// One that holds that; any where there is none, or by mistake.
    int holding(Kind kind) {
        if (below(120) == 0) return below(11);
        int found[10], count = 0;
        for (int n = 0; n < 10; ++n)
            if (kinds_[static_cast<size_t>(n)] == kind) found[count++] = n;
        if (count) return found[below(count)];
        if (kind == Kind::number) {
            const int r = reg();
            line("r{} = {}", r, constant());
            return r;
        }
        return -1;
    }
    void holds(int r, Kind kind) {
        if (r < 10) kinds_[static_cast<size_t>(r)] = kind;
    }
    void call(std::string_view name) {
        line("call {}", name);
        for (size_t n = 0; n <= 5; ++n) kinds_[n] = Kind::unset;
        kinds_[0] = Kind::number;
    }
    /// r0 into one that survives calls.
    void keep(Kind kind) {
        const int r = 7 + below(3);
        line("r{} = r0", r);
        holds(0, kind);
        holds(r, kind);
    }

    void number_from_memory() {
        const int r = reg();
        switch (below(6)) {
        case 0: call("bpf_get_prandom_u32"); return keep(Kind::number);
        case 1:
            line("r{} = data + {} ll", r, 8 * below(8));
            line("r{} = *({} *)(r{} + {})", r, pick("u8", "u16", "u32", "u64", "s8", "s16", "s32"), r, 0);
            break;
        case 2:
            line("r{} = limits + {} ll", r, 8 * below(2));
            line("r{} = *(u64 *)(r{} + 0)", r, r);
            break;
        case 3:
            if (tracing_) {
                line("r{} = *(u64 *)(r6 + {})", r, 8 * (1 + below(4)));
                break;
            }
            [[fallthrough]];
        case 4:
            line("r{} = data ll", r);
            line("r{} = *(u64 *)(r{} + {})", r, r, 8 * below(8));
            if (below(2)) line("r{} &= {}", r, pick_number(1, 3, 7, 8, 15, 31, 32, 63, 255));
            break;
        default: line("r{} = {}", r, constant());
        }
        holds(r, Kind::number);
    }
    void compute() {
        const int r = holding(Kind::number), half = below(3) == 0;
        const char *which = half ? "w" : "r";
        switch (below(12)) {
        case 0: line("{}{} = -{}{}", which, r, which, r); break;
        case 1:
            line("{}{} = ({}){}{}", which, r, half ? pick("s8", "s16") : pick("s8", "s16", "s32"), which, holding(Kind::number));
            break;
        case 2: line("r{} = {}{} r{}", r, pick("be", "le", "bswap"), pick("16", "32", "64"), r); break;
        case 3:
        case 4: {
            const char *op = pick("<<=", ">>=", "s>>=");
            if (below(3))
                line("{}{} {} {}", which, r, op, below(half ? 32 : 64));
            else
                line("{}{} {} {}{}", which, r, op, which, holding(Kind::number));
            break;
        }
        case 5:
        case 6:
        case 7:
            line("{}{} {} {}{}", which, r, pick("+=", "-=", "*=", "&=", "|=", "^=", "/=", "%=", "s/=", "s%="), which,
                 holding(Kind::number));
            break;
        case 8: {
            const int to = reg();
            line("{}{} = {}{}", which, to, which, r);
            holds(to, Kind::number);
            break;
        }
        default: {
            const char *op = pick("+=", "-=", "*=", "&=", "|=", "^=", "/=", "%=");
            int n = constant();
            if (n == 0 && (op[0] == '/' || op[0] == '%')) n = 3;
            line("{}{} {} {}", which, r, op, n);
        }
        }
        holds(r, Kind::number);
    }
    std::string condition() {
        const int r = holding(Kind::number);
        const char *which = below(3) ? "r" : "w";
        const char *op = pick("==", "!=", "<", "<=", ">", ">=", "s<", "s<=", "s>", "s>=", "&");
        if (below(3) == 0) return format("if {}{} {} {}{} goto", which, r, op, which, holding(Kind::number));
        return format("if {}{} {} {} goto", which, r, op, constant());
    }
    void branch(int depth) {
        if (depth > 2 || below(3) == 0) return line("{} out", condition());
        const int label = labels_++;
        line("{} l{}", condition(), label);
        const auto kinds = kinds_;
        const auto slots = slots_;
        for (int n = 1 + below(4); n > 0; --n) act(depth + 1);
        merge(kinds, slots);
        append(text_, "l{}:\n", label);
        line("r1 = 0");
        holds(1, Kind::number);
    }
    void merge(const std::array<Kind, 10> &kinds, const std::array<Kind, 8> &slots) {
        for (size_t n = 0; n < 10; ++n)
            if (kinds_[n] != kinds[n]) kinds_[n] = Kind::unset;
        for (size_t n = 0; n < 8; ++n)
            if (slots_[n] != slots[n]) slots_[n] = Kind::unset;
    }
    void loop(int depth) {
        if (depth > 1) return;
        const int label = labels_++, counter = 7 + below(3);
        const bool up = below(2);
        if (below(6)) line("r{} = {}", counter, up ? 0 : 1 + below(9));
        holds(counter, Kind::unset); // so that nothing changes it
        append(text_, "l{}:\n", label);
        const auto kinds = kinds_;
        const auto slots = slots_;
        for (int n = 1 + below(3); n > 0; --n) act(depth + 1);
        for (size_t n = 0; n < 10; ++n) // what the next round finds has to be there
            if (kinds[n] == Kind::number && kinds_[n] != Kind::number) line("r{} = {}", n, constant());
        merge(kinds, slots);
        kinds_ = kinds;
        for (size_t n = 0; n < 10; ++n)
            if (kinds[n] != Kind::number && kinds[n] != Kind::context) kinds_[n] = Kind::unset;
        line("r{} {} 1", counter, up ? "+=" : "-=");
        line("if r{} {} {} goto l{}", counter, up ? pick("<", "s<", "!=") : "!=", up ? 1 + below(9) : 0, label);
        holds(counter, Kind::number);
    }
    void look_up() {
        const char *map = pick("values", "values", "hash");
        if (below(2))
            line("*(u32 *)(r10 - 4) = {}", below(6));
        else
            line("*(u32 *)(r10 - 4) = r{}", holding(Kind::number));
        slots_[0] = Kind::number;
        line("r1 = {} ll", map);
        line("r2 = r10");
        line("r2 += -4");
        call("bpf_map_lookup_elem");
        if (below(12)) line("if r0 {} 0 goto out", "==");
        keep(Kind::value);
    }
    /// A copy, moved by a number that is known a little, so that an access may fit.
    void moved(Kind kind, int size) {
        const int base = holding(kind), by = holding(Kind::number);
        if (base < 0) return;
        const int to = reg();
        if (to == by) return;
        if (below(4)) {
            const int limit = below(4) ? size - 8 : size;
            switch (below(4)) {
            case 0: line("r{} &= {}", by, pick_number(7, 15, 31, 32, 40, 8)); break;
            case 1: line("if r{} > {} goto out", by, limit); break;
            case 2:
                line("if r{} s< 0 goto out", by);
                line("if r{} s> {} goto out", by, limit);
                break;
            default:
                line("if w{} >= {} goto out", by, limit);
                if (below(2)) line("w{} = w{}", by, by);
            }
        }
        line("r{} = r{}", to, base);
        line("r{} {} r{}", to, below(8) ? "+=" : "-=", by);
        holds(to, kind);
        if (below(3) == 0) line("r{} += {}", to, pick_number(-8, -4, 1, 4, 8));
        if (below(2)) access(to, below(3) ? 0 : pick_number(-8, -1, 1, 2, 4, 8, 16, 32));
    }
    void access(int base, int off) {
        const char *size = pick("8", "16", "32", "64");
        switch (below(6)) {
        case 0: return line("*(u{} *)(r{} + {}) = {}", size, base, off, below(100));
        case 1: return line("*(u{} *)(r{} + {}) = r{}", size, base, off, holding(Kind::number));
        case 2: return line("lock *(u{} *)(r{} + {}) += r{}", pick("32", "64"), base, off, holding(Kind::number));
        default: {
            const int to = reg();
            line("r{} = *({}{} *)(r{} + {})", to, below(4) || size[0] == '6' ? "u" : "s", size, base, off);
            holds(to, Kind::number);
        }
        }
    }
    void stack() {
        const int slot = below(8), off = -8 * (slot + 1);
        const auto at = static_cast<size_t>(slot);
        switch (below(7)) {
        case 0:
            line("*(u64 *)(r10 - {}) = r{}", -off, holding(Kind::number));
            slots_[at] = Kind::number;
            return;
        case 1: {
            const int r = reg();
            const Kind kind = kinds_[static_cast<size_t>(r)];
            if (kind == Kind::unset) return;
            line("*(u64 *)(r10 - {}) = r{}", -off, r);
            slots_[at] = kind;
            return;
        }
        case 2: {
            const int size = 1 << below(4), in = below(8 / size) * size;
            line("*(u{} *)(r10 - {}) = {}", size * 8, -off - in, below(3) ? 0 : below(100));
            slots_[at] = slots_[at] == Kind::unset && size == 8 ? Kind::number : slots_[at];
            return;
        }
        case 3: {
            const int size = 1 << below(3), in = below(8 / size) * size;
            line("*(u{} *)(r10 - {}) = r{}", size * 8, -off - in, holding(Kind::number));
            if (slots_[at] != Kind::number) slots_[at] = Kind::unset;
            return;
        }
        case 4: {
            if (slots_[at] != Kind::number && below(10)) return;
            const int size = 1 << below(4), in = below(8 / size) * size, r = reg();
            line("r{} = *({}{} *)(r10 - {})", r, size == 8 || below(3) ? "u" : "s", size * 8, -off - in);
            holds(r, Kind::number);
            return;
        }
        case 5: {
            if (slots_[at] == Kind::unset && below(10)) return;
            const int r = reg();
            line("r{} = *(u64 *)(r10 - {})", r, -off);
            holds(r, slots_[at]);
            return;
        }
        default: {
            const int to = reg();
            line("r{} = r10", to);
            line("r{} += -64", to);
            holds(to, Kind::stack);
            moved(Kind::stack, 64);
            if (below(2)) return;
            holds(to, Kind::unset);
            for (Kind &kind : slots_) kind = kind == Kind::number ? Kind::number : Kind::unset;
        }
        }
    }
    void packet() {
        if (!packets_) return;
        const bool xdp = section_ == "xdp";
        const int start = 7 + below(3), end = 1 + below(5);
        line("r{} = *(u32 *)(r6 + {})", start, xdp ? 0 : 76);
        line("r{} = *(u32 *)(r6 + {})", end, xdp ? 4 : 80);
        holds(start, Kind::packet);
        holds(end, Kind::end);
        const int place = below(6), size = pick_number(1, 8, 14, 34, 48, 60);
        line("r{} = r{}", place, start);
        holds(place, Kind::packet);
        if (place == end || place == start) return;
        if (below(3) == 0) {
            const int by = holding(Kind::number);
            if (below(3)) line("r{} &= {}", by, pick_number(15, 255, 32, 65535));
            line("r{} += r{}", place, by);
        }
        const int base = below(2) ? start : pick_number(0, 3, 5);
        if (base != start && base != place && base != end) line("r{} = r{}", base, place), holds(base, Kind::packet);
        if (below(5)) line("r{} += {}", place, size);
        if (below(2))
            line("if r{} {} r{} goto out", place, pick(">", ">", ">", ">=", "<"), end);
        else
            line("if r{} {} r{} goto out", end, pick("<", "<", "<=", ">"), place);
        holds(place, Kind::unset);
        if (base != end) access(base, below(4) ? below(size) : below(70));
    }
    void helper() {
        switch (below(tracing_ ? 9 : 7)) {
        case 0:
            line("r1 = {} ll", pick("values", "hash"));
            line("r2 = r10\nr2 += -{}", pick_number(4, 8, 16, 64));
            line("r3 = r10\nr3 += -{}", pick_number(48, 16, 64, 64));
            line("r4 = {}", below(3));
            return call("bpf_map_update_elem");
        case 1: line("r1 = hash ll\nr2 = r10\nr2 += -{}", pick_number(4, 8, 24)); return call("bpf_map_delete_elem");
        case 2: {
            line("r1 = ring ll\nr2 = {}\nr3 = 0", pick_number(8, 16, 48));
            call("bpf_ringbuf_reserve");
            if (below(10)) line("if r0 == 0 goto out");
            holds(0, Kind::record);
            line("r{} = r0", 8);
            holds(8, Kind::record);
            if (below(3)) access(8, below(20));
            if (below(3) == 0) access(0, below(60));
            line("r1 = r8\nr2 = 0");
            if (below(12)) call(below(2) ? "bpf_ringbuf_submit" : "bpf_ringbuf_discard"), kinds_[0] = Kind::unset;
            if (below(10)) holds(8, Kind::unset);
            return;
        }
        case 3:
            line("r1 = r10\nr1 += -16\nr2 = {}", pick_number(0, 8, 16, 17));
            if (below(2)) line("r2 = r{}", holding(Kind::number)), line("r2 &= {}", pick_number(15, 31, 16));
            return call("bpf_get_current_comm");
        case 4:
            if (tracing_ || section_ == "xdp") return;
            line("r1 = r6\nr2 = r{}\nr3 = r10\nr3 += -{}\nr4 = {}", holding(Kind::number), pick_number(8, 16, 64),
                 pick_number(0, 8, 16));
            return call("bpf_skb_load_bytes");
        case 5: {
            if (function_ == false && below(2)) return;
            function_ = true;
            const int a = holding(Kind::number), b = holding(Kind::number);
            line("r1 = r{}", a);
            line("r2 = r{}", b == 1 ? 2 : b);
            return call("sub");
        }
        case 6: {
            const int value = holding(Kind::value);
            if (value < 0) return;
            line("r3 = r{}", value);
            line("r1 = {} ll\nr2 = r10\nr2 += -4\nr4 = 0", pick("values", "hash"));
            return call("bpf_map_update_elem");
        }
        default: {
            const int size = holding(Kind::number);
            if (below(3)) line("r{} &= {}", size, pick_number(7, 15, 31, 63, 64));
            line("r2 = r{}", size);
            line("r1 = r10\nr1 += -{}\nr3 = 0", pick_number(8, 16, 32, 64));
            return call(pick("bpf_probe_read_kernel", "bpf_probe_read_user", "bpf_probe_read_kernel_str"));
        }
        }
    }
    void act(int depth) {
        switch (below(16)) {
        case 0:
        case 1:
        case 2:
        case 3: return compute();
        case 4:
        case 5: return branch(depth);
        case 6: return loop(depth);
        case 7: return look_up();
        case 8: return moved(Kind::value, 48);
        case 9: return moved(below(2) ? Kind::value : Kind::record, 16);
        case 10:
        case 11: return stack();
        case 12: return packet();
        case 13: return helper();
        case 14: {
            const int base = holding(Kind::value);
            return base < 0 ? look_up() : access(base, below(3) ? 8 * below(6) : below(50));
        }
        default: return number_from_memory();
        }
    }

    uint64_t state_;
    std::string text_, section_;
    std::array<Kind, 10> kinds_{};
    std::array<Kind, 8> slots_{};
    int labels_ = 0;
    bool tracing_ = false, packets_ = false, function_ = false;
};

} // namespace rawbpf::test
