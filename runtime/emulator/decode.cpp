// Decodes: each instruction is checked and decoded once, however often it runs.
//
//      Insn   [ code | src:dst | off | imm ]                                 8 bytes
//      Op     [ handler | dst | src | off | jump | imm, sign-extended ]     24 bytes
//
// Op n is instruction n, where the second half of a wide instruction counts too, so that jumps keep their distance and a
// fault's number needs no table. Decoding checks everything that doesn't depend on values. That leaves three checks to the
// interpreter: memory, the depth of calls, and the target of a call through a register. A program is not verified: a program
// that the kernel refuses, because it might go wrong, runs here until it does.
#include "runtime/emulator/decode.h"

#include "asm/encode.h"
#include "asm/helpers.h"
#include "asm/opcodes.h"
#include "asm/print.h"
#include "runtime/base/fail.h"
#include "runtime/emulator/memory.h"
#include "runtime/object/core.h"

namespace rawbpf::inline v0::emulator {

namespace {

constexpr size_t kMostInsns = 1'000'000; // the kernel's limit

/// form -> what the interpreter does; kDoCount: nothing.
struct Plan {
    uint8_t of[isa::kFormCount];
};
constexpr Plan kPlan = [] {
    Plan plan{};
    constexpr std::string_view names[] = {
#define RAWBPF_EMULATED_NAME(name) #name,
        RAWBPF_EMULATED(RAWBPF_EMULATED_NAME)
#undef RAWBPF_EMULATED_NAME
    };
    for (size_t form = 0; form < isa::kFormCount; ++form) {
        plan.of[form] = kDoCount;
        for (size_t n = 0; n < kDoCount; ++n)
            if (isa::kForms[form].name == names[n]) plan.of[form] = static_cast<uint8_t>(n);
        switch (isa::kForms[form].shape) {
        case Shape::load_wide: plan.of[form] = kDo_lddw; break;
        case Shape::jump_long: plan.of[form] = kDo_ja; break;
        case Shape::call_kfunc: plan.of[form] = kDo_refuse; break;
        default: break;
        }
    }
    return plan;
}();
constexpr bool every_form_has_its_code() {
    for (size_t form = 0; form < isa::kFormCount; ++form) {
        if (kPlan.of[form] == kDoCount) return false;
    }
    return true;
}
static_assert(every_form_has_its_code(), "a row of asm/opcodes.h has no code in the emulator");

class Decoder {
  public:
    Decoder(std::span<const Insn> insns, bool stepping) : insns_(insns), stepping_(stepping) {}

    Result<std::vector<Op>> run() {
        if (insns_.empty()) return fail(Errc::bad_input, "the program has no instructions");
        if (insns_.size() > kMostInsns)
            return fail(Errc::bad_input, "the program has {} instructions; the kernel takes at most {}", insns_.size(),
                        kMostInsns);
        ops_.resize(op_index(insns_.size(), stepping_));
        if (stepping_)
            for (size_t n = 0; n < ops_.size(); n += 2) ops_[n].handler = handlers()[kDo_stop];
        for (size_t n = 0; n < insns_.size(); n += is_wide(insns_[n]) ? 2 : 1) TRY(one(n));
        return std::move(ops_);
    }

  private:
    [[nodiscard]] Unexpected refuse(size_t n, std::string_view why, Errc kind = Errc::bad_input) const {
        return fail(kind, "instruction {} ({}): {}", n, print(insns_.subspan(n)), why);
    }

    /// Whether the slot is the second half of a wide instruction. Found from the start of the program, once.
    bool second_half(size_t n) {
        if (halves_.empty()) {
            halves_.resize(insns_.size());
            for (size_t at = 0; at < insns_.size(); ++at)
                if (is_wide(insns_[at])) {
                    ++at;
                    if (at < insns_.size()) halves_[at] = true;
                }
        }
        return halves_[n];
    }

    Result<void> aim(size_t n, int64_t distance, Op &op, std::string_view what) {
        const int64_t target = static_cast<int64_t>(n) + 1 + distance;
        if (target < 0 || target >= static_cast<int64_t>(insns_.size()))
            return refuse(n,
                          format("{} instruction {}, and the program has instructions 0 to {}", what, target, insns_.size() - 1));
        if (second_half(static_cast<size_t>(target)))
            return refuse(n, format("{} instruction {}, which is the second half of a 16-byte instruction", what, target));
        // Step by step, a jump arrives at the stop before the instruction.
        op.jump = static_cast<int32_t>(stepping_ ? 2 * (distance + 1) - 1 : distance + 1);
        return {};
    }

    Result<void> one(size_t n) {
        const Insn &insn = insns_[n];
        const Form *form = find_form(insn);
        if (!form) {
            if (isa::kIndex.first[insn.code] < 0) return refuse(n, format("there is no opcode {:#04x}", insn.code));
            return refuse(
                n, format("opcode {:#04x} doesn't take these values in its register, offset and immediate fields", insn.code));
        }
        const uint8_t fields = form->fields();
        if ((fields & kDst && insn.dst > 10) || (fields & kSrc && insn.src > 10))
            return refuse(n, format("there is no register r{}", fields & kDst && insn.dst > 10 ? insn.dst : insn.src));
        if ((writes_dst(form->shape) && insn.dst == 10) || (writes_src(form->shape) && insn.src == 10))
            return refuse(n, "r10, the frame pointer, can't be written");

        const uint8_t what = kPlan.of[form - isa::kForms];
        if (form->shape == Shape::cast && insn.imm != 1 && insn.imm != 1 << 16)
            return refuse(n, "a cast must go from address space 0 (the kernel's) to 1 (an arena's), or back");
        Op &op = ops_[op_index(n, stepping_)];
        op.handler = handlers()[what];
        op.dst = insn.dst;
        op.src = insn.src;
        op.off = insn.off;
        op.imm = static_cast<uint64_t>(int64_t{insn.imm});
        bool ends = false;
        switch (form->shape) {
        case Shape::load_wide: TRY(wide(n, op)); break;
        case Shape::jump: ends = true; [[fallthrough]];
        case Shape::may_jump:
        case Shape::branch_imm:
        case Shape::branch_reg: TRY(aim(n, insn.off, op, "the jump goes to")); break;
        case Shape::jump_long:
            ends = true;
            TRY(aim(n, insn.imm, op, "the jump goes to"));
            break;
        case Shape::call_local: TRY(aim(n, insn.imm, op, "the call goes to")); break;
        case Shape::call_helper:
            if (insn.imm == kPoisonHelper)
                op.handler = handlers()[kDo_refuse]; // a CO-RE relocation that found nothing
            else if (!find_helper(int64_t{insn.imm}))
                return refuse(n, format("there is no helper {}", insn.imm));
            break;
        case Shape::jump_reg:
        case Shape::exit: ends = true; break;
        default: break;
        }
        const size_t next = n + (form->shape == Shape::load_wide ? 2 : 1);
        if (next == insns_.size() && !ends) return refuse(n, "the program ends here without an exit or a jump");
        return {};
    }

    Result<void> wide(size_t n, Op &op) {
        if (n + 1 >= insns_.size()) return refuse(n, "the second half is missing");
        const Insn &first = insns_[n], &second = insns_[n + 1];
        if (second.code || second.dst || second.src || second.off)
            return refuse(n, "the second half must be zero, except for its immediate");
        op.imm = static_cast<uint32_t>(first.imm) | static_cast<uint64_t>(static_cast<uint32_t>(second.imm)) << 32;
        op.jump = stepping_ ? 3 : 2;
        switch (static_cast<Wide>(first.src)) {
        case Wide::number: return {};
        case Wide::function: {
            Op target;
            TRY(aim(n, first.imm, target, "the address is that of"));
            op.imm = kCodeAddress + 8 * static_cast<uint64_t>(static_cast<int64_t>(n) + 1 + first.imm);
            return {};
        }
        case Wide::btf_id: return refuse(n, "the emulator has no kernel variables", Errc::unsupported);
        default: return refuse(n, "only the kernel knows maps by descriptor or index; use an object file, which names its maps");
        }
    }

    std::span<const Insn> insns_;
    bool stepping_;
    std::vector<Op> ops_;
    std::vector<bool> halves_;
};

} // namespace

Result<std::vector<Op>> decode(std::span<const Insn> insns, bool stepping) { return Decoder(insns, stepping).run(); }

} // namespace rawbpf::inline v0::emulator
