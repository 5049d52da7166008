// The verification of one function. Private to this folder.
//
//      engine.cpp     the loop: takes up a state, looks at one instruction after the other, ends paths
//      numbers.cpp    arithmetic and moves          jumps.cpp      comparisons
//      access.cpp     loads and stores              stack.cpp      those of the stack
//      arguments.cpp  helpers' arguments            calls.cpp      calls of helpers and functions, returns
//      prune.cpp      states that were seen before
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "asm/helpers.h"
#include "asm/kinds.h"
#include "asm/map_types.h"
#include "asm/opcodes.h"
#include "runtime/base/format.h"
#include "runtime/verifier/arithmetic.h"
#include "runtime/verifier/attached.h"
#include "runtime/verifier/comparison.h"
#include "runtime/verifier/context.h"
#include "runtime/verifier/flow.h"
#include "runtime/verifier/kernel_walk.h"
#include "runtime/verifier/kfuncs.h"
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
    uint32_t loop = 0; ///< the checkpoint where the loop begins that it is a part of, from 1; 0: none
};

/// One of the checkpoints of an instruction: how often it spared a path, and how often it was compared for nothing.
struct Kept {
    uint32_t number; ///< of the checkpoint
    uint32_t hits = 0, misses = 0;
};

/// How two states, or values of them, are compared.
enum class Compared : uint8_t {
    useful, ///< what matters of the new one is allowed by the old one
    within, ///< all of the new one is, whether it matters or not: nobody knows yet what matters inside of a loop
    exact,  ///< they are the same
};

/// The kernel's BPF_F_RDONLY_PROG, without its header.
inline constexpr uint32_t kReadOnlyForPrograms = 1u << 7;

/// Which way an access is made, for messages.
enum class By : uint8_t { instruction, helper };

class Engine {
  public:
    Engine(const ObjectSpec &spec, const ProgramSpec &program, const VerifyOptions &options, const Types &types, Flow &flow,
           Verdict &verdict)
        : spec_(spec), program_(program), insns_(program.insns), options_(options), types_(types), flow_(flow), verdict_(verdict),
          walk_(verdict.walk), rules_(deductions_of(options.kernel)), attached_(attached_to(spec, program, options.kernel_types)),
          gpl_(is_gpl(spec.license)) {}

    /// Whether a license lets programs call everything: license_is_gpl_compatible() of the kernel.
    [[nodiscard]] static bool is_gpl(std::string_view license);
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
    bool symbol(const Insn &insn, const Fixup &fixup);
    bool cast(const Insn &insn);
    bool may_goto();
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
        std::vector<Room> rooms;     ///< what it writes
        ValueId ref = 0;             ///< the reference that an argument is
        ValueId released_dynptr = 0; ///< likewise `released`, of a dynptr
        uint32_t callback = 0;       ///< the function that it calls
        KernelPart part;             ///< the field that bpf_kptr_xchg() is about
        Value subject;               ///< the socket, the variable, the dynptr that it is about
    };
    bool argument(const HelperInfo &helper, const Prototype &prototype, unsigned number, Called &called);
    bool memory_argument(unsigned reg, int64_t size, bool write, bool may_be_empty, bool packet, Called &called);
    bool sized_argument(unsigned reg, unsigned size_reg, bool write, bool may_be_empty, bool packet, Called &called);
    bool fits_map(const HelperInfo &helper, const Called &called);
    bool filled_argument(unsigned reg, int64_t size);
    [[nodiscard]] bool may_change_sockets(bool takes_out) const;
    [[nodiscard]] bool may_pass_packet(bool helper_takes_it) const;

    // locks.cpp
    bool take_lock(unsigned reg, bool unlock);
    void lose_shared();
    [[nodiscard]] bool in_rcu() const;
    [[nodiscard]] bool may_sleep() const;
    [[nodiscard]] bool program_sleeps() const { return program_.sleepable || state_.sleeps; }
    bool nothing_held(std::string_view where);

    // objects.cpp
    [[nodiscard]] std::string object_name(const Value &value) const;
    std::optional<Value> object(std::string_view type, Trust trust, bool maybe_null);
    bool object_region(unsigned reg, const Value &base, int64_t off, unsigned size);
    bool object_access(unsigned reg, const Value &base, int64_t off, unsigned size, bool write, int value, const Value *stored);
    [[nodiscard]] std::optional<bool> may_write_object(std::string_view name, int64_t off, unsigned size) const;
    bool socket_load(unsigned reg, const Value &base, int64_t off, unsigned size, bool write);
    bool flow_keys_access(const Value &base, int64_t off, unsigned size);
    bool buffer_access(unsigned reg, const Value &base, int64_t off, int64_t size, bool write);
    bool object_argument(unsigned reg, const Value &value, const ObjectWord &wanted);
    bool socket_argument(unsigned reg, const Value &value, Argument wanted);
    bool constant_string(unsigned reg, const Value &value);
    bool map_part(unsigned reg, const Value &value, std::string_view name, Called &called);
    bool pointer_argument(unsigned reg, const Value &value, Argument wanted, Called &called);

    // kernel_pointers.cpp
    bool pointer_type(const KernelPart &part, btf::TypeId &type, bool &own);
    bool pointer_field(const Value &base, const KernelPart &part, int64_t off, int64_t size, By by);
    bool pointer_load(const KernelPart &part, Value &loaded);
    bool pointer_matches(unsigned reg, const Value &value, const KernelPart &part);
    bool pointer_store(unsigned reg, const Value &stored, const KernelPart &part, bool by_register);
    bool pointer_answer(const Called &called);

    // btf_context.cpp
    bool btf_context(int64_t off, unsigned size, bool write, Value &loaded);
    bool netfilter_context(int64_t off, unsigned size, bool write, Value &loaded);
    [[nodiscard]] bool stub_says_null(uint32_t number) const;

    // dynptr.cpp
    std::optional<int> slots_at(unsigned reg, std::string_view what, unsigned slots, bool quiet);
    bool no_dynptr(unsigned reg, unsigned number);
    const Value *dynptr_in(unsigned reg);
    bool overwrite(Frame &frame, int off);
    void forget_dynptr(Frame &frame, int first);
    bool make_dynptr(unsigned reg, DynptrKind kind, ValueId ref, bool read_only, std::optional<ValueId> parent);
    bool release_dynptr(ValueId ref);
    bool dynptr_argument(unsigned reg, Argument wanted, Called &called);
    void lose_packet_slices();

    // callbacks.cpp
    bool push_frame(State &state, uint32_t insn, CallKind kind, const std::array<Value, 6> &arguments);
    bool call_back(uint32_t insn, const std::array<Value, 6> &arguments);
    bool call_later(uint32_t insn, const std::array<Value, 6> &arguments, bool may_sleep);
    bool helper_calls(const HelperInfo &helper, const Called &called);
    bool callback_return();
    bool wrong_return(std::string_view where, std::string_view reg, const Value &r0, Range<int64_t> wanted);

    // iterators.cpp
    bool make_iterator(unsigned reg, uint32_t type, unsigned slots, bool in_rcu_only, std::string_view name);
    Value *iterator_in(unsigned reg, uint32_t type, unsigned slots);
    bool iterate(unsigned reg, uint32_t type, unsigned slots, const Value &element);
    bool destroy_iterator(unsigned reg, uint32_t type, unsigned slots);
    [[nodiscard]] const State *before(const State &state, bool own) const;
    void widen_values(const State &old, State &state);
    void widen(State &state, bool own);
    void widen_from_before();

    // kfunc_calls.cpp, kfunc_arguments.cpp
    struct KernelCall {
        std::string name;
        const KernelFunction *row = nullptr;
        btf::Type prototype;
        bool iterator_slots = false;   ///< its first argument is an iterator
        ValueId ref = 0, released = 0; ///< as in Called
        uint64_t constant = 0;         ///< the argument that is one
        uint32_t answer_size = 0;      ///< r0: bytes of memory
        bool answer_read_only = false, owning = false;
        uint32_t object = 0; ///< the type of the program's own object
        uint32_t callback = 0;
        int map = -1;
        Value dynptr;
        uint32_t node_type = 0, node_off = 0; ///< of a list or a tree
        ValueId given = 0;                    ///< what it owns from now on
        uint32_t iterator_type = 0;
        Trust iterator_trust = Trust::plain;
    };
    // graph.cpp
    const KernelPart *part_at(const Value &value, int64_t off, std::string_view name);
    bool graph_root(KernelCall &call, uint32_t number, bool list);
    bool graph_node(KernelCall &call, uint32_t number, bool list);
    Value graph_answer(const KernelCall &call, bool shared);
    void give_away(ValueId ref);
    [[nodiscard]] bool in_tree_callback() const;
    bool compare_nodes(const KernelCall &call);

    bool find_call(KernelCall &call);
    bool kernel_call(bool &ended);
    [[nodiscard]] unsigned iterator_slots(uint32_t type) const;
    bool kernel_sections(const KernelCall &call);
    bool kernel_answer(KernelCall &call, Value &answer, bool &has_answer);
    bool irq_argument(KernelCall &call, uint32_t number);
    [[nodiscard]] bool is_trusted(const Value &value) const;
    bool kernel_memory(unsigned reg, int64_t size);
    bool kernel_buffer(unsigned reg, const KernelCall &call);
    bool kernel_argument(KernelCall &call, uint32_t number, bool &takes_two);
    bool own_argument(KernelCall &call, uint32_t number, const Value &value);
    bool same_struct(const KernelCall &call, uint32_t number, const Value &value, const btf::Type &wanted);
    bool kernel_dynptr(KernelCall &call, uint32_t number, bool made_here);
    bool kernel_iterator(KernelCall &call, uint32_t number, const btf::Type &of);

    // calls.cpp
    bool helper_call(const Insn &insn);
    bool function_call(const Insn &insn);
    bool global_call(uint32_t target, const GlobalFunction &function);
    bool function_return();
    bool fits_program(const HelperInfo &helper);
    [[nodiscard]] bool moves_packet(uint32_t insn) const;
    bool throw_exception();
    bool helper_answer(const HelperInfo &helper, const Prototype &prototype, const Called &called, std::optional<uint64_t> key);
    void forget_caller_saved();
    void lose_packets();
    bool release(ValueId ref);
    bool references_left(std::string_view where);

    // prune.cpp
    bool known_before(bool &pruned);
    [[nodiscard]] bool covers(const State &old, const State &now, Compared how);
    bool covers_value(const Value &old, const Value &now, Compared how);
    bool covers_slot(const Slot *old, const Slot *now, Compared how);
    [[nodiscard]] bool calls_back(uint32_t insn) const;
    [[nodiscard]] bool goes_on(uint32_t insn) const;
    void join_loop(uint32_t entry);
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
    Attached attached_;
    std::string unsure_;                ///< what isn't known although the kernel knows it: refusals may be wrong
    std::vector<KernelPart> parts_;     ///< of part_at()
    const KernelPart *field_ = nullptr; ///< the pointer that an access of a map's value has hit
    bool gpl_;

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
/// Of a pointer that must be as it was given: "dereference of modified ctx ptr R1 off=8 disallowed".
[[nodiscard]] std::string moved_pointer(std::string_view word, unsigned reg, int64_t off);
/// "(0x0; 0xff)"
[[nodiscard]] std::string bits_text(Tnum bits);

} // namespace rawbpf::inline v0::verifier
