// Registers that are read before anything has written them.
//
//      r1 = 5
//      r3 = r7              r7: nobody has said what is in it
//      exit
//
// The verifier refuses such a read ("R7 !read_ok"). An emulator finds some number there, mostly 0, and the mistake stays
// unnoticed. So this file follows the registers that may have been written along every path: where paths meet, a register
// counts as written if one of them has written it. The reads that are reported come after a write on no path.
//
//      begin of a program   r1 (the context), r2 (a length, for those who run it on memory), r10
//      begin of a function  r1 to r5, r10
//      a call               r0 is written; r1 to r5 are lost
#include <deque>

#include "asm/assembling.h"
#include "asm/effects.h"
#include "asm/lookup.h"

namespace rawbpf::inline v0::assembling {

namespace {

using Set = RegisterSet;

constexpr Set bit(unsigned n) { return register_bit(n); }

} // namespace

std::vector<UnsetRead> unset_reads(std::span<const Insn> insns, bool program) {
    struct Reached {
        Set set = 0;
        bool seen = false;
    };
    std::vector<Reached> places(insns.size());
    std::deque<size_t> work;
    const auto reach = [&](int64_t to, Set set) {
        if (to < 0 || to >= static_cast<int64_t>(insns.size())) return; // another warning's
        Reached &place = places[static_cast<size_t>(to)];
        if (place.seen && (place.set | set) == place.set) return;
        place.seen = true;
        place.set |= set;
        work.push_back(static_cast<size_t>(to));
    };
    reach(0, static_cast<Set>(bit(10) | (program ? bit(1) | bit(2) : kArgumentRegisters)));
    while (!work.empty()) {
        const size_t n = work.front();
        work.pop_front();
        const Form *form = find_form(insns[n]);
        if (form == nullptr || form->shape == Shape::jump_reg) return {}; // leads nobody knows where
        const RegisterEffect effect = effect_of(*form, insns[n]);
        const Set after = static_cast<Set>((effect.call ? places[n].set & ~kArgumentRegisters : places[n].set) | effect.writes);
        const auto next = static_cast<int64_t>(n + (is_wide(insns[n]) ? 2 : 1));
        switch (form->shape) {
        case Shape::exit: break;
        case Shape::jump: reach(next + insns[n].off, after); break;
        case Shape::jump_long: reach(next + insns[n].imm, after); break;
        case Shape::may_jump:
        case Shape::branch_imm:
        case Shape::branch_reg: reach(next + insns[n].off, after); [[fallthrough]];
        default: reach(next, after);
        }
        // A label that is called: a function that was written without saying so.
        if (form->shape == Shape::call_local && insns[n].imm >= -next) reach(next + insns[n].imm, bit(10) | kArgumentRegisters);
    }
    std::vector<UnsetRead> out;
    Set told = 0;
    for (size_t n = 0; n < insns.size(); n += is_wide(insns[n]) ? 2 : 1) {
        const Form *form = find_form(insns[n]);
        if (form == nullptr || !places[n].seen) continue;
        const Set unset = static_cast<Set>(effect_of(*form, insns[n]).reads & ~places[n].set & ~told);
        for (int reg = 0; reg <= 9; ++reg)
            if (unset & bit(static_cast<unsigned>(reg))) out.push_back({n, reg});
        told |= unset;
    }
    return out;
}

} // namespace rawbpf::inline v0::assembling
