// A follower (runtime/verifier/follow.h) beside the machine, and the verdict on the whole program.
#include "programs/exec/knowledge.h"

#include <array>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/verifier/follow.h"
#include "runtime/verifier/print.h"

namespace rawbpf::inline v0::exec {

namespace {

class Following : public Knowledge {
  public:
    Following(const ObjectSpec &spec, size_t number, const verifier::VerifyOptions &options)
        : spec_(spec), program_(spec.programs[number]), follower_(spec, number, options) {
        const verifier::Verdict said = verifier::verify(spec, number, options);
        switch (said.outcome) {
        case verifier::Outcome::accepted: verdict_ = "accepted"; break;
        case verifier::Outcome::refused: verdict_ = "refused"; break;
        case verifier::Outcome::undecided: verdict_ = "not decided"; break;
        }
        if (said.outcome == verifier::Outcome::accepted) return;
        if (said.placed) append(verdict_, " at instruction {}", said.insn);
        append(verdict_, ": {}", said.reason);
        if (said.placed && said.outcome == verifier::Outcome::refused) refused_at_ = said.insn;
    }

    void advance(const emulator::Machine &machine) override {
        const bool elsewhere = machine.ended() || &machine.program() != &program_ || machine.cpu().in_timer;
        follower_.advance(elsewhere ? 0 : static_cast<uint32_t>(machine.pc()), machine.cpu().depth, machine.cpu().r, elsewhere);
    }
    void back() override { follower_.back(); }

    std::string of_register(unsigned reg) override {
        const verifier::State *state = follower_.state();
        if (!state || state->reg(reg).sort == verifier::Sort::unset) return {};
        return verifier::value_text(state->reg(reg), spec_);
    }

    std::string of_slot(int offset) override {
        const verifier::State *state = follower_.state();
        const auto number = static_cast<size_t>((-offset - 1) / 8);
        if (!state || number >= state->frame().stack.size()) return {};
        const verifier::Slot &slot = state->frame().stack[number];
        if (slot.holds_value() && slot.value_bytes() == 8) return verifier::value_text(slot.value, spec_);
        std::array<unsigned, 4> count{};
        for (const verifier::Byte byte : slot.bytes) ++count[static_cast<size_t>(byte)];
        const unsigned unset = count[static_cast<size_t>(verifier::Byte::unset)],
                       zero = count[static_cast<size_t>(verifier::Byte::zero)];
        if (unset == 8) return {};
        if (zero == 8) return "0";
        return unset == 0 ? std::string("written") : format("{} of 8 bytes written", 8 - unset);
    }

    std::string why_not() override {
        using Standing = verifier::Follower::Standing;
        switch (follower_.standing()) {
        case Standing::follows: return {};
        case Standing::refused: return format("nothing: the verifier refuses the path of this run: {}", follower_.reason());
        case Standing::undecided: return format("nothing: not modelled: {}", follower_.reason());
        case Standing::impossible:
        case Standing::elsewhere:
        case Standing::too_far: break;
        }
        return format("nothing: {}", follower_.reason());
    }
    const std::string &verdict() const override { return verdict_; }
    int64_t refused_at() const override { return refused_at_; }

  private:
    const ObjectSpec &spec_;
    const ProgramSpec &program_;
    verifier::Follower follower_;
    std::string verdict_;
    int64_t refused_at_ = -1;
};

} // namespace

std::unique_ptr<Knowledge> knowledge_of(const ObjectSpec &spec, size_t program, const verifier::VerifyOptions &options) {
    return std::make_unique<Following>(spec, program, options);
}

} // namespace rawbpf::inline v0::exec
