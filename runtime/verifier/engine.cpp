// The main loop of the verifier.
//
//      take up a state  ->  look at its next instruction  ->  the state after it  ->  the next instruction ...
//             ^                     |                                                        |
//             |                a comparison that may go both ways:                           exit, or known before:
//             |                one side goes on, the other waits                             this path is done
//             +------------------------------------------------------------------------------+
//
// A state is what the verifier knows about all registers and the stack. The verifier executes the program with such states
// instead of numbers: it follows every path, with all values that are possible on it. It accepts a program when every path has
// ended and no instruction on any path can do harm. Two things limit the number of paths: when a path comes to a state that an
// earlier one covers, the verifier doesn't follow it any further (prune.cpp), and after a million instructions the verifier gives
// up.
#include "runtime/verifier/engine.h"

#include <algorithm>

#include "asm/kinds.h"
#include "asm/map_types.h"

namespace rawbpf::inline v0::verifier {

bool Engine::refuse_text(std::string reason) {
    if (!unsure_.empty()) return undecided(unsure_); // what the kernel knows may rule this path out
    verdict_.outcome = Outcome::refused;
    verdict_.reason = std::move(reason);
    verdict_.insn = state_.insn;
    verdict_.placed = true;
    verdict_.step = step_;
    if (step_) walk_.steps[step_].end = StepEnd::refused;
    return false;
}

bool Engine::undecided(std::string what) {
    verdict_.outcome = Outcome::undecided;
    verdict_.reason = std::move(what);
    verdict_.insn = state_.insn;
    verdict_.placed = true;
    verdict_.step = step_;
    return false;
}

void Engine::begin_step() {
    Step step{state_.insn, state_.step};
    step.frame = static_cast<uint8_t>(state_.frames.size() - 1);
    walk_.steps.push_back(step);
    step_ = static_cast<uint32_t>(walk_.steps.size() - 1);
    state_.step = step_;
    ++walk_.visits[state_.insn];
    touched_.clear();
}

// What has changed, from the state as it is now.
void Engine::record(State &state) {
    Step &step = walk_.steps[state.step];
    step.changes = walk_.change_end();
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (auto [frame, place] : touched_) {
        if (frame >= state.frames.size()) continue;
        if (place >= 0) {
            walk_.add_change({place, frame, state.frames[frame].regs[static_cast<size_t>(place)]});
        } else {
            const Slot &slot = state.frames[frame].slot(place);
            Value value = slot.value;
            if (!slot.holds_value()) value = any_number(slot.node);
            walk_.add_change({place, frame, std::move(value)});
        }
        ++step.change_count;
    }
}

void Engine::end_step() { record(state_); }

// The path is done: so is every checkpoint that waited for nothing else.
void Engine::end_path(StepEnd how) {
    if (state_.step) walk_.steps[state_.step].end = how;
    for (uint32_t n = state_.checkpoint; n != 0; n = checkpoints_[n - 1].parent)
        if (--checkpoints_[n - 1].open != 0) break;
}

bool Engine::take_up() {
    if (pending_.empty()) return false;
    state_ = std::move(pending_.back());
    pending_.pop_back();
    return true;
}

bool Engine::run(State entry) {
    state_ = std::move(entry);
    step_ = 0;
    last_id_ = 0;
    state_.each_value([this](const Value &value) { last_id_ = std::max(last_id_, value.id); });
    // Members of structs of functions that the kernel takes no program for (st_ops->check_member()).
    const bool dummy =
        attached_.name.starts_with("bpf_dummy_ops.") && program_.sleepable && attached_.name != "bpf_dummy_ops.test_sleepable";
    if (attached_.name == "tcp_congestion_ops.get_info" || dummy) {
        const size_t dot = attached_.name.find('.');
        const std::string reason =
            format("attach to unsupported member {} of struct {}", attached_.name.substr(dot + 1), attached_.name.substr(0, dot));
        (void)refuse_text(reason);
        verdict_.placed = false;
        return false;
    }
    for (uint32_t i = 0; i < insns_.size(); ++i)
        if (calls_back(i) || goes_on(i)) flow_.meets[i] = true;
    for (;;) {
        step_ = state_.step;
        if (++verdict_.processed > options_.most_steps) {
            if (options_.most_steps < 1'000'000) return undecided(format("more than {} instructions", options_.most_steps));
            return refuse("BPF program is too large. Processed {} insn", verdict_.processed);
        }
        if (flow_.meets[state_.insn]) {
            bool pruned = false;
            if (!known_before(pruned)) return false;
            if (pruned) {
                end_path(StepEnd::pruned);
                if (!take_up()) return true;
                continue;
            }
        }
        begin_step();
        bool ended = false;
        if (!one(ended)) return false;
        if (!ended) continue;
        end_path(StepEnd::exit);
        if (!take_up()) return true;
    }
}

bool Engine::readable(unsigned reg) {
    if (state_.reg(reg).sort == Sort::unset) return refuse("R{} !read_ok", reg);
    return true;
}

bool Engine::writable(unsigned reg) {
    if (reg == 10) return refuse("frame pointer is read only");
    return true;
}

bool Engine::one(bool &ended) {
    const Insn insn = as_looked_at(insns_[state_.insn]);
    const Form *form = find_form(insn);
    if (!form || !at_least(options_.kernel, form->since) || form->since == isa::k_none)
        return refuse("{}", reserved_fields(insn)); // an opcode that doesn't exist was refused before
    if (insn.dst > 10 || insn.src > 10)
        return refuse("R{} is invalid", static_cast<unsigned>(insn.dst > 10 ? insn.dst : insn.src));
    bool good = true, goes_on = true;
    switch (form->shape) {
    case Shape::alu_imm:
    case Shape::alu_reg:
    case Shape::negate:
    case Shape::byte_swap:
    case Shape::sign_extend: good = arithmetic(insn, *form); break;
    case Shape::cast:
        if (!cast(insn)) return false;
        break;
    case Shape::load:
    case Shape::load_acquire: good = load(insn, *form); break;
    case Shape::store_imm:
    case Shape::store_reg:
    case Shape::store_release: good = store(insn, *form); break;
    case Shape::load_wide: good = wide(insn); break;
    case Shape::packet_abs:
    case Shape::packet_ind: good = packet_load(insn, *form); break;
    case Shape::atomic:
    case Shape::atomic_fetch:
    case Shape::exchange:
    case Shape::compare_swap: good = atomic(insn, *form); break;
    case Shape::jump:
    case Shape::jump_long:
        ++jumps_;
        state_.insn = static_cast<uint32_t>(ways_of(insns_, state_.insn).target);
        goes_on = false;
        break;
    case Shape::branch_imm:
    case Shape::branch_reg: ++jumps_; return jump(insn, *form);
    case Shape::may_jump: ++jumps_; return may_goto();
    case Shape::jump_reg: return undecided("gotox");
    case Shape::call_helper:
        ++jumps_;
        good = helper_call(insn);
        break;
    case Shape::call_local:
        ++jumps_;
        if (!function_call(insn)) return false;
        end_step();
        return true;
    case Shape::call_kfunc: return kernel_call(ended);
    case Shape::call_reg: return refuse("unknown opcode {:02x}", static_cast<unsigned>(insn.code));
    case Shape::exit: ++jumps_; return leave(ended);
    }
    if (!good) return false;
    if (goes_on) state_.insn += is_wide(insn) ? 2 : 1;
    end_step();
    return true;
}

// ld_imm64: a number, a map, an address in a map's value, a function.
bool Engine::wide(const Insn &insn) {
    if (!writable(insn.dst)) return false;
    for (const Fixup &fixup : program_.fixups) {
        if (fixup.insn != state_.insn) continue;
        switch (fixup.kind) {
        case Fixup::Kind::map_fd: {
            Value value = pointer(Sort::map, node());
            value.map = fixup.map;
            set(insn.dst, std::move(value));
            return true;
        }
        case Fixup::Kind::map_value: {
            const MapSpec &map = spec_.maps[fixup.map];
            if (map.type == uint32_t(MapType::ARENA)) { // an address in user space
                set(insn.dst, any_number(node()));
                return true;
            }
            if (map.type != uint32_t(MapType::ARRAY) || map.max_entries != 1)
                return refuse("unrecognized bpf_ld_imm64 insn"); // no direct addresses there
            Value value = pointer(Sort::map_value, node());
            value.map = fixup.map;
            value.off = static_cast<int32_t>(fixup.offset);
            // There is but one such value: every address of it has the same id.
            constexpr ValueId kDirect = ValueId(1) << 31;
            if (types_.lock_of(fixup.map) >= 0) value.id = kDirect + fixup.map;
            set(insn.dst, std::move(value));
            return true;
        }
        case Fixup::Kind::ksym: return symbol(insn, fixup);
        default: return undecided("jump tables");
        }
    }
    if (insn.src == static_cast<uint8_t>(Wide::function)) {
        Value value = pointer(Sort::function, node());
        value.type = static_cast<uint32_t>(int64_t(state_.insn) + 1 + insn.imm);
        set(insn.dst, std::move(value));
        return true;
    }
    if (insn.src != 0) return undecided("ld_imm64 of a descriptor or a kernel variable");
    const uint64_t number = static_cast<uint32_t>(insn.imm) | uint64_t(static_cast<uint32_t>(insns_[state_.insn + 1].imm)) << 32;
    set(insn.dst, known_number(number, node()));
    return true;
}

// A symbol of the kernel: its address, or, if its type is known, what is there.
bool Engine::symbol(const Insn &insn, const Fixup &fixup) {
    if (fixup.type == 0 && !fixup.function) {
        if (fixup.weak) unsure_ = "which symbols the kernel has";
        set(insn.dst, any_number(node()));
        return true;
    }
    if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
    const btf::Btf &types = *options_.kernel_types;
    if (fixup.function) return undecided("addresses of kernel functions");
    const std::optional<btf::TypeId> id = types.find(btf::essential_name(fixup.symbol), btf::Kind::var);
    if (!id) {
        if (!fixup.weak) return undecided(format("kernel variable {}, which isn't in {}", fixup.symbol, types.name()));
        set(insn.dst, known_number(0, node()));
        return true;
    }
    const Result<btf::Type> variable = types.type(*id);
    const Result<btf::Type> type = variable ? types.resolve(variable->size_or_type) : types.type(0);
    if (!variable || !type) return undecided(format("the type of {}", fixup.symbol));
    bool per_cpu = false;
    if (const std::optional<btf::TypeId> section = types.find(".data..percpu", btf::Kind::datasec)) {
        const Result<btf::Type> found = types.type(*section);
        for (uint32_t i = 0; found && i < found->vlen; ++i) {
            const Result<btf::VarSecinfo> one = types.secinfo(*found, i);
            per_cpu |= one && one->type == *id;
        }
    }
    Value value = pointer(Sort::object, node());
    value.type = type->id;
    value.per_cpu = per_cpu;
    if (!per_cpu && type->kind != btf::Kind::struct_ && type->kind != btf::Kind::union_) {
        const Result<uint64_t> bytes = types.size_of(type->id);
        if (!bytes) return undecided(format("the size of {}", fixup.symbol));
        value = pointer(Sort::memory, node());
        value.size = static_cast<uint32_t>(*bytes);
        value.read_only = true;
    }
    set(insn.dst, std::move(value));
    return true;
}

// Between the addresses that user space and the kernel have for the same place of an arena.
bool Engine::cast(const Insn &insn) {
    if (!readable(insn.src) || !writable(insn.dst)) return false;
    bool arena = false;
    for (const MapSpec &map : spec_.maps) arena |= map.type == uint32_t(MapType::ARENA);
    if (!arena) return refuse("addr_space_cast insn can only be used in a program that has an associated arena");
    constexpr int32_t kToKernel = 1; // from address space 1 to 0
    Value value = any_number(node(state_.reg(insn.src).node));
    if (insn.imm == kToKernel) value = pointer(Sort::arena, value.node);
    set(insn.dst, std::move(value));
    return true;
}

// may_goto: goes on, or, when the kernel has had enough of the loop, to its target.
bool Engine::may_goto() {
    if (insns_[state_.insn].off == 0 && !at_least(options_.kernel, {6, 18}))
        return refuse("invalid may_goto off 0 imm 0"); // 6.12
    State other = state_;
    other.insn = static_cast<uint32_t>(ways_of(insns_, state_.insn).target);
    const bool first = state_.step == 0;
    (void)first;
    walk_.steps[step_].end = StepEnd::split;
    walk_.steps.push_back({walk_.steps[step_].insn, walk_.steps[step_].parent});
    walk_.steps.back().end = StepEnd::split;
    walk_.steps.back().other = 1;
    walk_.steps.back().frame = walk_.steps[step_].frame;
    walk_.steps.back().changes = walk_.change_end();
    State stays = state_;
    ++stays.loops;
    stays.insn = state_.insn + 1;
    widen(stays, true);
    other.step = static_cast<uint32_t>(walk_.steps.size() - 1);
    if (other.checkpoint) ++checkpoints_[other.checkpoint - 1].open;
    if (pending_.size() >= 8192) return refuse("The sequence of {} jumps is too complex.", pending_.size() + 1);
    pending_.push_back(std::move(stays));
    std::swap(pending_.back().step, other.step);
    state_ = std::move(other);
    end_step();
    return true;
}

bool Engine::leave(bool &ended) {
    if (state_.frames.size() > 1) {
        if (!function_return()) return false;
        end_step();
        return true;
    }
    ended = true;
    return at_end();
}

bool Engine::at_end() {
    if (!nothing_held("BPF_EXIT instruction in main prog")) return false;
    if (state_.frame().kind == CallKind::later) {
        if (!readable(0)) return false;
        const Value &r0 = state_.reg(0);
        if (!r0.is_number()) return refuse("At async callback return the register R0 is not a known value ({})", type_word(r0));
        walk_.need(r0.node);
        if (r0.bounds.s64.least != 0 || r0.bounds.s64.most != 0)
            return wrong_return("At async callback return", "R0", r0, {0, 0});
        return true;
    }
    const GlobalFunction *global = types_.find_global(flow_.functions[state_.frame().function].begin);
    if (types_.catches && flow_.functions[state_.frame().function].begin == *types_.catches)
        global = nullptr; // as the program itself
    if (global && global->returns_nothing) return true;
    const bool nothing = attached_.known && attached_.prototype.size_or_type == 0 &&
                         (program_.type == uint32_t(ProgramType::STRUCT_OPS) || program_.type == uint32_t(ProgramType::LSM));
    if (nothing && !global) return true;
    if (!readable(0)) return false;
    const Value &r0 = state_.reg(0);
    if (global) {
        if (!r0.is_number()) return refuse("At subprogram exit the register R0 is not a scalar value ({})", type_word(r0));
        return true;
    }
    const std::optional<Range<int32_t>> wanted = returns_of(program_);
    if (!wanted || options_.memory) return true;
    if (!r0.is_number()) return refuse("At program exit the register R0 is not a known value ({})", type_word(r0));
    walk_.need(r0.node);
    if (r0.bounds.s32.least >= wanted->least && r0.bounds.s32.most <= wanted->most) return true;
    std::string known;
    if (r0.bounds.s64.least > INT64_MIN) append(known, "smin={} ", r0.bounds.s64.least);
    if (r0.bounds.s64.most < INT64_MAX) append(known, "smax={} ", r0.bounds.s64.most);
    return refuse("At program exit the register R0 has {}should have been in [{}, {}]",
                  known.empty() ? "unknown scalar value " : known, wanted->least, wanted->most);
}

namespace {

bool is_tracing(uint32_t type) {
    switch (static_cast<ProgramType>(type)) {
    case ProgramType::KPROBE:
    case ProgramType::TRACEPOINT:
    case ProgramType::PERF_EVENT:
    case ProgramType::TRACING:
    case ProgramType::RAW_TRACEPOINT_WRITABLE:
    case ProgramType::RAW_TRACEPOINT: return true;
    default: return false;
    }
}

// The stack of functions that call each other, all together; callers first, so that a chain is followed once.
bool stack_fits(const ProgramSpec &program, const Flow &flow, KernelVersion kernel, Verdict &verdict) {
    const bool private_stack =
        holds(Rule::private_stack, kernel) &&
        std::none_of(flow.functions.begin(), flow.functions.end(), [](const FunctionRange &f) { return f.tail_calls; }) &&
        is_tracing(program.type);
    struct Visit {
        uint32_t function, insn, depth, frames, from;
        bool callback = false; ///< it, or one of those that called it, is called back
    };
    std::vector<uint32_t> throws;
    for (const Fixup &fixup : program.fixups)
        if (fixup.kind == Fixup::Kind::kfunc && fixup.symbol == "bpf_throw") throws.push_back(fixup.insn);
    auto refuse = [&verdict](std::string reason, std::optional<uint32_t> at = {}) {
        verdict.outcome = Outcome::refused;
        verdict.reason = std::move(reason);
        verdict.placed = at.has_value();
        verdict.insn = at.value_or(0);
        verdict.step = 0;
        return false;
    };
    auto size_of = [&flow](uint32_t function) { return (std::max(flow.functions[function].depth, 1u) + 15) / 16 * 16; };
    constexpr uint32_t kPrivateFrom = 64; // BPF_PRIV_STACK_MIN_SIZE
    std::vector<Visit> todo = {{0, flow.functions[0].begin, 0, 1, 0}};
    for (uint32_t n = 0; n < flow.functions.size(); ++n)
        if (flow.functions[n].later || flow.functions[n].exceptions) todo.push_back({n, flow.functions[n].begin, 0, 1, 0});
    uint64_t looked_at = 0;
    while (!todo.empty()) {
        Visit at = todo.back();
        todo.pop_back();
        const FunctionRange &here = flow.functions[at.function];
        at.callback |= here.callback || here.later || here.exceptions;
        if (here.exceptions && at.frames > 1)
            return refuse(format("insn {} cannot call exception cb directly", at.from), at.from);
        const uint32_t own = size_of(at.function);
        if (flow.functions[at.function].tail_calls && at.depth >= 256 && at.frames > 1)
            return refuse(
                format("tail_calls are not allowed when call stack of previous frames is {} bytes. Too large", at.depth));
        if (!(private_stack && own >= kPrivateFrom)) at.depth += own;
        if (at.depth > kStackSize) return refuse(format("combined stack size of {} calls is {}. Too large", at.frames, at.depth));
        for (uint32_t i = flow.functions[at.function].begin; i < flow.functions[at.function].end;
             i += is_wide(program.insns[i]) ? 2 : 1) {
            if (at.callback && std::find(throws.begin(), throws.end(), i) != throws.end())
                return refuse(format("bpf_throw kfunc (insn {}) cannot be called from callback subprog {}", i, at.function), i);
            const Ways ways = ways_of(program.insns, i);
            if (!ways.calls) continue;
            // A function that is called later has a stack of its own.
            if (is_wide(program.insns[i]) && flow.functions[flow.function_of(static_cast<uint32_t>(ways.target))].later) continue;
            if (at.frames >= kMostFrames || ++looked_at > 1'000'000)
                return refuse(format("the call stack of {} frames is too deep !", at.frames));
            const uint32_t callee = flow.function_of(static_cast<uint32_t>(ways.target));
            todo.push_back({callee, static_cast<uint32_t>(ways.target), at.depth, at.frames + 1, i, at.callback});
        }
    }
    return true;
}

} // namespace

bool check_whole(const ObjectSpec &spec, const ProgramSpec &program, const Types &types, const Flow &flow, Verdict &verdict) {
    auto say = [&verdict](Outcome outcome, std::string reason) {
        verdict.outcome = outcome;
        verdict.reason = std::move(reason);
        return false;
    };
    if (std::string_view what = not_modelled(program); !what.empty())
        return say(Outcome::undecided, format("programs of type {}", what));
    if (program.type == uint32_t(ProgramType::STRUCT_OPS) && !Engine::is_gpl(spec.license))
        return say(Outcome::refused, "struct ops programs must have a GPL compatible license");
    if (!program.jump_tables.empty()) return say(Outcome::undecided, "jump tables");
    if (!flow.refusal.empty()) {
        verdict.insn = flow.refused_at;
        verdict.placed = flow.placed;
        return say(Outcome::refused, flow.refusal);
    }
    const auto type = static_cast<ProgramType>(program.type);
    const bool tracing = is_tracing(program.type) && type != ProgramType::TRACING;
    for (const Fixup &fixup : program.fixups) {
        if (fixup.kind != Fixup::Kind::map_fd && fixup.kind != Fixup::Kind::map_value) continue;
        if (fixup.map >= spec.maps.size()) return say(Outcome::undecided, "a map that isn't there");
        if (types.lock_of(fixup.map) >= 0 && (tracing || type == ProgramType::SOCKET_FILTER)) {
            verdict.insn = fixup.insn;
            verdict.placed = true;
            return say(Outcome::refused, tracing ? "tracing progs cannot use bpf_spin_lock yet"
                                                 : "socket filter progs cannot use bpf_spin_lock yet");
        }
        for (const KernelPart &part : types.parts[fixup.map]) {
            const bool list = part.name == "bpf_list_head" || part.name == "bpf_rb_root";
            if (!tracing || !(list || part.name == "bpf_timer" || part.name == "bpf_wq")) continue;
            verdict.insn = fixup.insn;
            verdict.placed = true;
            return say(Outcome::refused, format("tracing progs cannot use {} yet", list ? "bpf_{list_head,rb_root}" : part.name));
        }
    }
    return true;
}

namespace {

State entry_of(uint32_t insn, uint32_t function) {
    State state;
    Frame &frame = state.frames.emplace_back();
    frame.function = function;
    frame.regs[10] = pointer(Sort::stack, kNoNode);
    state.insn = insn;
    return state;
}

} // namespace

State entry_of_program(const VerifyOptions &options) {
    State out = entry_of(0, 0);
    if (!options.memory) {
        out.reg(1) = pointer(Sort::context, kNoNode);
    } else {
        out.reg(1) = *options.memory ? pointer(Sort::memory, kNoNode) : known_number(0, kNoNode);
        out.reg(1).size = *options.memory;
        out.reg(2) = known_number(*options.memory, kNoNode);
    }
    for (unsigned n = 0; n < 10; ++n)
        if (options.zeroed >> n & 1) out.reg(n) = known_number(0, kNoNode);
    return out;
}

Verdict verify(const ObjectSpec &spec, size_t program_index, const VerifyOptions &options) {
    Verdict verdict;
    const ProgramSpec &program = spec.programs[program_index];
    verdict.walk.visits.assign(program.insns.size(), 0);
    if (program.insns.empty()) {
        verdict.outcome = Outcome::refused;
        verdict.reason = "a program without instructions";
        return verdict;
    }
    const Types types = types_of(spec, program);
    std::vector<uint32_t> entries;
    for (const GlobalFunction &function : types.global) entries.push_back(function.insn);
    Flow flow = flow_of(program.insns, entries, options.kernel);
    if (types.many_catch) {
        verdict.outcome = Outcome::refused;
        verdict.reason = "multiple exception callback tags for main subprog";
        return verdict;
    }
    if (types.catches) {
        for (FunctionRange &function : flow.functions)
            if (function.begin == *types.catches) function.exceptions = true;
        const GlobalFunction *catches = types.find_global(*types.catches);
        auto refuse = [&verdict](std::string reason) {
            verdict.outcome = Outcome::refused;
            verdict.reason = std::move(reason);
        };
        if (catches && (catches->parameters.size() != 1 || catches->parameters[0] != GlobalFunction::Parameter::number)) {
            refuse("exception cb only supports single integer argument");
            return verdict;
        }
    }
    if (!check_whole(spec, program, types, flow, verdict)) return verdict;
    verdict.outcome = Outcome::accepted;

    if (!Engine(spec, program, options, types, flow, verdict).run(entry_of_program(options))) return verdict;
    for (const GlobalFunction &function : types.global) {
        State state = entry_of(function.insn, flow.function_of(function.insn));
        for (size_t i = 0; i < function.parameters.size() && i < 5; ++i) {
            switch (function.parameters[i]) {
            case GlobalFunction::Parameter::number: state.reg(static_cast<unsigned>(i + 1)) = any_number(kNoNode); break;
            case GlobalFunction::Parameter::context:
                state.reg(static_cast<unsigned>(i + 1)) = pointer(Sort::context, kNoNode);
                break;
            case GlobalFunction::Parameter::memory:
            case GlobalFunction::Parameter::memory_not_null: {
                Value &value = state.reg(static_cast<unsigned>(i + 1));
                value = pointer(Sort::memory, kNoNode);
                value.size = function.sizes[i];
                value.maybe_null = function.parameters[i] == GlobalFunction::Parameter::memory;
                if (value.maybe_null) value.id = static_cast<ValueId>(i + 1);
                break;
            }
            case GlobalFunction::Parameter::arena: state.reg(static_cast<unsigned>(i + 1)) = pointer(Sort::arena, kNoNode); break;
            case GlobalFunction::Parameter::other:
                verdict.outcome = Outcome::undecided;
                verdict.reason = format("arguments of the global function {}", function.name);
                verdict.insn = function.insn;
                verdict.placed = true;
                return verdict;
            }
        }
        if (!Engine(spec, program, options, types, flow, verdict).run(std::move(state))) return verdict;
    }
    if (!stack_fits(program, flow, options.kernel, verdict)) return verdict;
    return verdict;
}

} // namespace rawbpf::inline v0::verifier
