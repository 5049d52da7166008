// Warnings: code that can be assembled, but that can't be meant.
//
//      goto +100            where the function has 6 instructions
//      r0 = 1               and nothing behind it: no exit, no jump
//      r1 = *(u64 *)(r10 - 520)
//      r3 = r7              and nothing has written r7 (unset.cpp)
//
// Every verifier refuses each of these, whatever the rest of the program does. The text can still be assembled, because you
// may want to examine a program that a verifier refuses.
#include "asm/assembling.h"
#include "asm/effects.h"
#include "asm/lookup.h"

namespace rawbpf::inline v0::assembling {

namespace {

constexpr int kStack = 512; // MAX_BPF_STACK

/// Of an access, the register with the address; -1: it is none.
int base_of(const Form &form, const Insn &insn) {
    if (form.shape == Shape::load || form.shape == Shape::load_acquire) return insn.src;
    return stores(form.shape) ? insn.dst : -1;
}

} // namespace

void Assembler::check_insn(size_t n, const Form &form) {
    const Insn &insn = (*insns_)[n];
    int64_t distance = 0;
    switch (form.shape) {
    case Shape::jump:
    case Shape::may_jump:
    case Shape::branch_imm:
    case Shape::branch_reg: distance = insn.off; break;
    case Shape::jump_long: distance = insn.imm; break;
    default: {
        const int low = insn.off, high = low + static_cast<int>(form.bits / 8);
        if (base_of(form, insn) != 10 || (low >= -kStack && high <= 0)) return;
        const std::string place = std::string("r10 ") + (low < 0 ? "- " : "+ ") + std::to_string(low < 0 ? -low : low);
        return warn(places_[n], std::to_string(form.bits / 8) + " bytes at " + place +
                                    " are outside of the stack, which is r10 - " + std::to_string(kStack) + " to r10 - 1");
    }
    }
    const int64_t to = static_cast<int64_t>(n) + 1 + distance;
    if (to < 0 || to >= static_cast<int64_t>(insns_->size()))
        warn(places_[n], "the jump goes to instruction " + std::to_string(to) + ", and the function has 0 to " +
                             std::to_string(insns_->size() - 1));
    else if (to > 0 && is_wide((*insns_)[static_cast<size_t>(to) - 1]))
        warn(places_[n], "the jump goes into the middle of instruction " + std::to_string(to - 1) + ", which takes two places");
}

/// When labels have their places.
void Assembler::check_function() {
    if (!out_.complaints.empty()) return; // which come first
    Source *const current = source_;
    auto go_to = [&](const char *at) { // whose text a place is in
        for (const auto &source : sources_)
            if (at >= source->text.data() && at <= source->text.data() + source->text.size()) source_ = source.get();
    };
    Shape last = Shape::exit;
    size_t last_at = 0;
    for (size_t n = 0; n < insns_->size(); n += is_wide((*insns_)[n]) ? 2 : 1) {
        const Form *form = find_form((*insns_)[n]);
        last = Shape::exit;
        last_at = n;
        if (form == nullptr) continue; // .8byte: anything
        last = form->shape;
        if (form->fields() & (kOff | kImm)) {
            go_to(places_[n]);
            check_insn(n, *form);
        }
    }
    if (last != Shape::exit && last != Shape::jump && last != Shape::jump_long && last != Shape::jump_reg) {
        go_to(places_[last_at]);
        warn(places_[last_at], "the function `" + out_.unit.functions.back().name + "` ends here without an exit or a jump");
        source_ = current;
        return; // a part of something, whose registers another part may write
    }
    const Function &function = out_.unit.functions.back();
    for (const UnsetRead &read : unset_reads(*insns_, !function.section.empty())) {
        go_to(places_[read.insn]);
        warn(places_[read.insn],
             "r" + std::to_string(read.reg) +
                 " is read here, and nothing has been written to it, or not since a call, which loses r1 to r5: " +
                 "a verifier refuses that");
    }
    source_ = current;
}

} // namespace rawbpf::inline v0::assembling
