// The verifier at work on one function. Private to the room.
//
//      engine.cpp     the loop: takes up a state, looks at one instruction after the other, ends paths
//      numbers.cpp    arithmetic and moves          jumps.cpp      comparisons
//      access.cpp     loads and stores              stack.cpp      those of the stack
//      arguments.cpp  helpers' arguments            calls.cpp      calls of helpers and functions, returns
//      prune.cpp      what was known before
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "asm/helpers.h"
#include "asm/opcodes.h"
#include "runtime/base/format.h"
#include "runtime/verifier/arithmetic.h"
#include "runtime/verifier/comparison.h"
#include "runtime/verifier/context.h"
#include "runtime/verifier/flow.h"
#include "runtime/verifier/prototypes.h"
#include "runtime/verifier/rules.h"
#include "runtime/verifier/state.h"
#include "runtime/verifier/types.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::verifier {

/// A state that was kept to compare others with.
struct Checkpoint {
    State state;
    uint32_t parent;   ///< the checkpoint before it on its path, from 1; 0: none
    uint32_t open = 1; ///< paths from here that haven't ended
};

/// One of the checkpoints of an instruction: how often it spared a path, and how often it was compared for nothing.
struct Kept {
    uint32_t number; ///< of the checkpoint
    uint32_t hits = 0, misses = 0;
};

/// Which way an access is made, for messages.
enum class By : uint8_t { instruction, helper };

class Engine {
  public:
    Engine(const ObjectSpec &spec, const ProgramSpec &program, const VerifyOptions &options, const Types &types, Flow &flow,
           Verdict &verdict)
        : spec_(spec), program_(program), insns_(program.insns), options_(options), types_(types), flow_(flow), verdict_(verdict),
          walk_(verdict.walk), rules_(deductions_of(options.kernel)) {}

    /// Walks a function, entered with `entry`. False: the verdict is made.
    bool run(State entry);

  private:
    friend class Follower;
    // The verdict. Both return false.
    template <class... Args> bool refuse(fmt::format_string<Args...> text, Args &&...args) {
        return refuse_text(format_from(text, fmt::make_format_args(args...)));
    }
    bool refuse_text(std::string reason);
    bool undecided(std::string what);

    [[nodiscard]] bool rule(Rule r) const { return holds(r, options_.kernel); }
    [[nodiscard]] uint32_t node(uint32_t a = kNoNode, uint32_t b = kNoNode) {
        walk_.nodes.push_back({step_, a, b});
        return static_cast<uint32_t>(walk_.nodes.size() - 1);
    }
    [[nodiscard]] ValueId new_id() { return ++last_id_; }

    // engine.cpp
    bool one(bool &ended);
    void begin_step();
    void end_step();
    void end_path(StepEnd how);
    bool take_up();
    /// Says that a register or the slot at an offset has changed.
    void touch(int place) { touched_.emplace_back(static_cast<uint8_t>(state_.frames.size() - 1), static_cast<int16_t>(place)); }
    void touch(uint8_t frame, int place) { touched_.emplace_back(frame, static_cast<int16_t>(place)); }
    void record(State &state);
    void set(unsigned reg, Value value) {
        state_.reg(reg) = std::move(value);
        touch(static_cast<int>(reg));
    }
    bool readable(unsigned reg);
    bool writable(unsigned reg);
    bool wide(const Insn &insn);
    bool leave(bool &ended);
    bool at_end();

    // numbers.cpp
    bool arithmetic(const Insn &insn, const Form &form);
    bool move(const Insn &insn, const Form &form);
    bool pointer_arithmetic(Op op, const Value &pointer, const Value &offset, unsigned dst);
    bool sane_offset(const Value &value, Sort sort, bool result);
    void link_sum(const Insn &insn, Value &result, const Value &before);

    // jumps.cpp
    bool jump(const Insn &insn, const Form &form);
    [[nodiscard]] std::optional<bool> which_way(Compare op, bool half, const Value &a, const Value &b);
    void refine_values(State &state, Compare op, bool half, bool truth, unsigned dst, int src, const Value &constant, bool other);
    void learn_linked(State &state, const Value &known, bool other);
    void settle_null(State &state, const Value &pointer, bool null, bool other);
    void compare_packets(const Insn &insn, Compare op, State &taken, State &falls, const Value &a, const Value &b);
    void good_packet(State &state, const Value &pointer, bool exclusive, bool other);

    // access.cpp
    bool load(const Insn &insn, const Form &form);
    bool store(const Insn &insn, const Form &form);
    bool atomic(const Insn &insn, const Form &form);
    bool packet_load(const Insn &insn, const Form &form);
    bool aligned(unsigned reg, int64_t off, unsigned size);
    /// Any access through a register. `value`: the register that is read into or written; -1: none.
    bool access(unsigned reg, int64_t off, unsigned size, bool write, int value, bool extends_sign, const Value *stored);
    bool region(unsigned reg, const Value &base, int64_t off, int64_t size, uint64_t room, bool may_be_empty);
    bool fixed_region(unsigned reg, const Value &base, int64_t off, int64_t size, uint64_t room, bool may_be_empty);
    bool map_region(unsigned reg, const Value &base, int64_t off, int64_t size, bool write, bool may_be_empty, By by);
    bool packet_region(unsigned reg, const Value &base, int64_t off, int64_t size, bool may_be_empty);
    bool may_use_packet(bool write);
    bool constant_map_load(const Value &base, int64_t off, unsigned size, bool extends_sign, int value);

    // stack.cpp
    bool stack_bounds(unsigned reg, const Value &base, int64_t off, int64_t size, bool write, By by);
    bool stack_store(unsigned reg, const Value &base, int64_t off, unsigned size, const Value *stored);
    bool stack_load(unsigned reg, const Value &base, int64_t off, unsigned size, int value);
    /// A helper that reads memory, or one that fills it (`write`).
    bool stack_range(unsigned reg, const Value &base, int64_t size, bool write, bool may_be_empty, By by);
    void fill_bytes(Frame &frame, int64_t begin, int64_t end, Byte byte);

    // arguments.cpp
    struct Called {
        int map = -1; ///< the map that it is about
        uint32_t map_reg = 0;
        ValueId released = 0;
        uint64_t fixed = 0; ///< the constant argument
        uint64_t most = 0;  ///< bytes of the last buffer, at most
        struct Room {
            unsigned reg;
            int64_t size;
        };
        std::vector<Room> rooms; ///< what it writes
    };
    bool argument(const HelperInfo &helper, const Prototype &prototype, unsigned number, Called &called);
    bool memory_argument(unsigned reg, int64_t size, bool write, bool may_be_empty, bool packet, Called &called);
    bool sized_argument(unsigned reg, unsigned size_reg, bool write, bool may_be_empty, bool packet, Called &called);
    bool fits_map(const HelperInfo &helper, const Called &called);
    bool take_lock(unsigned reg, bool unlock);

    // calls.cpp
    bool helper_call(const Insn &insn);
    bool function_call(const Insn &insn);
    bool global_call(uint32_t target, const GlobalFunction &function);
    bool function_return();
    bool kernel_call();
    void forget_caller_saved();
    void lose_packets();
    bool release(ValueId ref);
    bool references_left(std::string_view where);

    // prune.cpp
    bool known_before(bool &pruned);
    [[nodiscard]] bool covers(const State &old, const State &now, bool exact);
    bool covers_value(const Value &old, const Value &now, bool exact);
    bool covers_slot(const Slot *old, const Slot *now, bool exact);
    bool same_id(ValueId old, ValueId now);
    void need_as(const State &old, const State &now);

    const ObjectSpec &spec_;
    const ProgramSpec &program_;
    const std::vector<Insn> &insns_;
    const VerifyOptions &options_;
    const Types &types_;
    Flow &flow_;
    Verdict &verdict_;
    Walk &walk_;
    Deductions rules_;

    State state_;
    uint32_t step_ = 0;
    ValueId last_id_ = 0;
    std::vector<State> pending_;
    std::deque<Checkpoint> checkpoints_;                      ///< number n is at n - 1
    std::unordered_map<uint32_t, std::vector<Kept>> at_insn_; ///< checkpoints by instruction
    std::vector<std::pair<uint8_t, int16_t>> touched_;        ///< of this step: frame and place
    uint64_t jumps_ = 0, jumps_then_ = 0, insns_then_ = 0;
    std::vector<std::pair<ValueId, ValueId>> ids_; ///< of one comparison: old and new
};

/// What the whole program is asked before any path is walked. False: the verdict is made.
[[nodiscard]] bool check_whole(const ObjectSpec &spec, const ProgramSpec &program, const Types &types, const Flow &flow,
                               Verdict &verdict);
/// What is known where a program begins.
[[nodiscard]] State entry_of_program(const VerifyOptions &options);

/// Words for messages, as the kernel has them: "map_value", "fp", "scalar".
[[nodiscard]] std::string_view sort_word(Sort sort);
/// With "_or_null", "ringbuf_" and the like: "map_value_or_null".
[[nodiscard]] std::string type_word(const Value &value);
/// "(0x0; 0xff)"
[[nodiscard]] std::string bits_text(Tnum bits);

} // namespace rawbpf::inline v0::verifier
