// Loops. There are three implementations, each with its cost:
//
//      while_, loop    jumps backwards; the verifier walks through every round                       5.3
//      bpf_loop        the body becomes a function, called by a helper; verified once                5.17
//      may_loop        an instruction that counts down in the frame; verified until nothing is new   6.9
//
//          top:   if !condition goto end
//                 body            continue_: goto next        break_: goto end
//          next:  counter += 1
//                 goto top
//          end:
#include "asm/builder.h"

namespace rawbpf::inline v0 {

void Code::begin_while(const Condition &condition, Where where) {
    const Label top = label("while", where), end = label("end of while", where);
    loops_.push_back({top.index_, top.index_, end.index_});
    bind(top, where);
    jump_if(!condition, end, where);
}

void Code::begin_may(Where where) {
    const Label top = label("loop", where), end = label("end of loop", where);
    loops_.push_back({top.index_, top.index_, end.index_});
    bind(top, where);
    may_goto(end, where);
}

void Code::end_while(Where where) {
    const Loop loop = loops_.back();
    loops_.pop_back();
    if (reachable_) jump(Label(this, loop.top), where);
    place(loop.end, true);
}

void Code::begin_count(WritableReg counter, Value64 rounds, Where where) {
    if (rounds.is_register && rounds.reg == counter.number())
        complain(where, "the loop counts in r" + std::to_string(rounds.reg) + ", which holds the number of rounds as well");
    const Label top = label("loop", where), next = label("next round", where), end = label("end of loop", where);
    mov(counter, 0, where);
    loops_.push_back({top.index_, next.index_, end.index_});
    bind(top, where);
    jump_if(counter >= rounds, end, where);
}

void Code::end_count(WritableReg counter, Where where) {
    place(loops_.back().next, true);
    if (reachable_) add(counter, 1, where);
    end_while(where);
}

Code &Code::begin_round(Where where) {
    Code &round = builder_.function(function_.name + "_round" + std::to_string(++rounds_made_), 2, where);
    const Label next = round.label("next round", where), end = round.label("end of loop", where);
    round.loops_.push_back({next.index_, next.index_, end.index_});
    return round;
}

void Code::end_round(Code &round, const Arg &rounds, const Arg &context, Where where) {
    const Loop loop = round.loops_.back();
    round.loops_.pop_back();
    round.place(loop.next, true);
    if (round.reachable_) round.ret(0, where); // another round
    round.place(loop.end, true);
    if (round.reachable_) round.ret(1, where);
    call(helper::loop, rounds, round, context, 0, where);
}

void Code::break_(Where where) {
    if (loops_.empty()) return complain(where, "break_ is outside of a loop");
    jump(Label(this, loops_.back().end), where);
}

void Code::continue_(Where where) {
    if (loops_.empty()) return complain(where, "continue_ is outside of a loop");
    jump(Label(this, loops_.back().next), where);
}

} // namespace rawbpf::inline v0
