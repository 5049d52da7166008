// Numbers. Conditions don't become numbers: `a && b` is two jumps to the same place, `a || b` a jump over the second. What is
// known while the program is made is worked out there, so `$pid == 0 || pid == $pid` costs nothing where $pid is 0.
#include <algorithm>

#include "programs/experiment/compiling.h"
#include "programs/usdt/fetch.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

using trace::Operator;
using trace::ProbeKind;

void ProbeCode::extend(uint32_t size, bool is_signed) {
    if (size >= 8) return;
    const auto bits = static_cast<int64_t>(64 - 8 * size);
    f_.lsh(r0, runtime(bits));
    if (is_signed)
        f_.arsh(r0, runtime(bits));
    else
        f_.rsh(r0, runtime(bits));
}

bool ProbeCode::argument(const trace::Value &value, TextPlace at) {
    const trace::Type *type = nullptr;
    const std::vector<trace::Parameter> &parameters = site_.signature.parameters;
    if (value.from == trace::Value::From::result) {
        switch (site_.kind) {
        case ProbeKind::kretprobe:
        case ProbeKind::uretprobe: f_.return_value(r0, r6); break;
        case ProbeKind::fexit: // behind the arguments, as the trampoline lays them
            if (!site_.signature.known) return fail(at, "what this function takes and returns isn't known here");
            f_.load<uint64_t>(r0, r6 + runtime(8 * parameters.size()));
            break;
        default:
            return fail(at, "nothing has returned here",
                        "kretprobe, uretprobe and fexit see what a function returns; sys_exit tracepoints have a field ret");
        }
        type = &site_.signature.returns;
        if (site_.signature.known && value.reads.empty()) extend(std::clamp<uint32_t>(type->size, 1, 8), type->is_signed);
        return true;
    }
    if (value.from != trace::Value::From::argument) return fail(at, "this isn't known at a probe");
    if (value.argument < parameters.size()) type = &parameters[value.argument].type;
    switch (site_.kind) {
    case ProbeKind::tracepoint:
    case ProbeKind::syscall: {
        if (value.argument >= site_.offsets.size()) return fail(at, format("the tracepoint has {} fields", site_.offsets.size()));
        const Mem field = r6 + runtime(site_.offsets[value.argument]);
        const uint32_t size = type->show == trace::Show::data_text ? 4 : type->size;
        switch (size) {
        case 1: f_.load<uint8_t>(r0, field); break;
        case 2: f_.load<uint16_t>(r0, field); break;
        case 4: f_.load<uint32_t>(r0, field); break;
        default: f_.load<uint64_t>(r0, field); return true;
        }
        if (type->is_signed) extend(size, true);
        return true;
    }
    case ProbeKind::usdt:
        if (value.argument >= site_.arguments.size())
            return fail(at, format("the probe has {} arguments", site_.arguments.size()));
        usdt::emit_argument(f_, r0, r6, site_.arguments[value.argument]);
        return true;
    case ProbeKind::kretprobe:
    case ProbeKind::uretprobe:
        return fail(at, "when a function returns, its arguments are gone",
                    "keep them in a map when it is called: @arg[tid] = arg0");
    case ProbeKind::kprobe:
    case ProbeKind::uprobe:
        if (value.argument >= kHost.arguments)
            return fail(at, format("argument {} is on the stack: only those in registers are read", value.argument));
        break;
    default: break;
    }
    f_.argument(r0, r6, static_cast<int>(value.argument) + 1);
    if (type && value.reads.empty() && type->size < 8 && type->show != trace::Show::nothing)
        extend(std::clamp<uint32_t>(type->size, 1, 8), type->is_signed);
    return true;
}

bool ProbeCode::follow(const trace::Value &value) {
    for (size_t i = 0; i < value.reads.size(); ++i) {
        uint64_t offset = value.reads[i];
        if (offset > 0x7000) {
            f_.load_imm64(r1, offset);
            f_.add(r0, r1);
            offset = 0;
        }
        const Mem from = r0 + runtime(offset);
        if (i + 1 < value.reads.size()) {
            f_.read_kernel<uint64_t>(r0, from);
            continue;
        }
        const uint32_t size = value.bit_size != 0 && value.type.size == 0 ? 8 : value.type.size;
        switch (size) {
        case 1: f_.read_kernel<uint8_t>(r0, from); break;
        case 2: f_.read_kernel<uint16_t>(r0, from); break;
        case 4: f_.read_kernel<uint32_t>(r0, from); break;
        default: f_.read_kernel<uint64_t>(r0, from); break;
        }
        if (value.bit_size != 0) {
            f_.lsh(r0, runtime(64 - value.bit_offset - value.bit_size));
            if (value.type.is_signed)
                f_.arsh(r0, runtime(64 - value.bit_size));
            else
                f_.rsh(r0, runtime(64 - value.bit_size));
        } else if (value.type.is_signed) {
            extend(size, true);
        }
    }
    return true;
}

bool ProbeCode::call(const Expr &e) {
    if (e.text == "cast") {
        btf::TypeId type = 0;
        if (!cast_type(e, type) || !value(e.args[0])) return false;
        if (e.steps.empty()) return true;
        trace::Value through_it;
        return through(e, type, through_it) && follow(through_it);
    }
    if (e.text == "ip" && e.args.size() == 1 && e.args[0].kind == Expr::Kind::name) { // four bytes of a record
        trace::Value found;
        if (locals_.find(e.args[0].text) == locals_.end() && (named(site_, e.args[0].text) || !e.args[0].steps.empty())) {
            if (!resolve_name(e.args[0], found)) return false;
            if (found.type.length == 4 && found.type.show == trace::Show::address && found.reads.empty() &&
                found.from == trace::Value::From::argument && !site_.offsets.empty()) {
                const uint16_t offset = site_.offsets[found.argument];
                if (offset % 4 == 0) {
                    f_.load<uint32_t>(r0, r6 + runtime(offset));
                    return true;
                }
                f_.mov(r0, 0); // the verifier takes only aligned loads from a record
                for (int byte = 3; byte >= 0; --byte) {
                    f_.lsh(r0, 8);
                    f_.load<uint8_t>(r1, r6 + runtime(offset + byte));
                    f_.or_(r0, r1);
                }
                return true;
            }
        }
    }
    if (!value(e.args[0])) return false;
    if (e.text == "int") extend(4, true);
    if (e.text == "swap16") f_.to_be(r0, 16); // little-endian machines only
    if (e.text == "swap32") f_.to_be(r0, 32);
    return true;
}

bool ProbeCode::two_values(const Expr &e) {
    if (!value(e.args[0])) return false;
    const Space space(*this, 8);
    f_.store<uint64_t>(space.slot(), r0);
    if (!value(e.args[1])) return false;
    f_.mov(r1, r0);
    f_.load<uint64_t>(r0, space.slot());
    return true;
}

bool ProbeCode::operate(const Expr &e) {
    Typed left, right;
    if (!infer(e.args[0], left) || !infer(e.args[1], right)) return false;
    const bool is_signed = left.is_signed || right.is_signed;
    const std::optional<int64_t> number = constant(e.args[1]);
    const bool small = number && *number >= INT32_MIN && *number <= INT32_MAX;
    if ((e.op == Operator::divide || e.op == Operator::remainder) && number && *number == 0) return fail(e.at, "a division by 0");
    if ((e.op == Operator::shift_left || e.op == Operator::shift_right) && number && (*number < 0 || *number > 63))
        return fail(e.at, "a number is shifted by 0 to 63");
    if (small) {
        if (!value(e.args[0])) return false;
        switch (e.op) {
        case Operator::add: f_.add(r0, runtime(*number)); return true;
        case Operator::subtract: f_.sub(r0, runtime(*number)); return true;
        case Operator::multiply: f_.mul(r0, runtime(*number)); return true;
        case Operator::bit_and: f_.and_(r0, runtime(*number)); return true;
        case Operator::bit_or: f_.or_(r0, runtime(*number)); return true;
        case Operator::bit_xor: f_.xor_(r0, runtime(*number)); return true;
        case Operator::shift_left: f_.lsh(r0, runtime(*number)); return true;
        case Operator::shift_right: is_signed ? f_.arsh(r0, runtime(*number)) : f_.rsh(r0, runtime(*number)); return true;
        case Operator::divide:
        case Operator::remainder: {
            if (*number < 0) break;
            const bool divide = e.op == Operator::divide;
            if (!is_signed) {
                divide ? f_.div(r0, runtime(*number)) : f_.mod(r0, runtime(*number));
                return true;
            }
            // Signed division is an instruction since 6.6; its sign is kept aside.
            const Label positive = f_.label("positive"), end = f_.label("divided");
            f_.jump_if(as_signed(r0) >= 0, positive);
            f_.neg(r0);
            divide ? f_.div(r0, runtime(*number)) : f_.mod(r0, runtime(*number));
            f_.neg(r0);
            f_.jump(end);
            f_.bind(positive);
            divide ? f_.div(r0, runtime(*number)) : f_.mod(r0, runtime(*number));
            f_.bind(end);
            return true;
        }
        default: break;
        }
    }
    if (!two_values(e)) return false;
    switch (e.op) {
    case Operator::add: f_.add(r0, r1); break;
    case Operator::subtract: f_.sub(r0, r1); break;
    case Operator::multiply: f_.mul(r0, r1); break;
    case Operator::divide: f_.div(r0, r1); break;
    case Operator::remainder: f_.mod(r0, r1); break;
    case Operator::bit_and: f_.and_(r0, r1); break;
    case Operator::bit_or: f_.or_(r0, r1); break;
    case Operator::bit_xor: f_.xor_(r0, r1); break;
    case Operator::shift_left: f_.lsh(r0, r1); break;
    case Operator::shift_right: is_signed ? f_.arsh(r0, r1) : f_.rsh(r0, r1); break;
    default: return fail(e.at, "this operator makes no number");
    }
    return true;
}

bool ProbeCode::value(const Expr &e) {
    if (const std::optional<int64_t> number = constant(e)) {
        if (*number >= INT32_MIN && *number <= INT32_MAX)
            f_.mov(r0, runtime(*number));
        else
            f_.load_imm64(r0, static_cast<uint64_t>(*number));
        return true;
    }
    Typed type;
    if (!infer(e, type)) return false;
    if (type.text && !(e.kind == Expr::Kind::call && e.text == "ip"))
        return fail(e.at, "a text isn't a number", "texts are compared by == and !=, and stand in keys and events");
    switch (e.kind) {
    case Expr::Kind::map: return load_element(e);
    case Expr::Kind::call: return call(e);
    case Expr::Kind::unary:
        if (e.op != Operator::not_) {
            if (!value(e.args[0])) return false;
            e.op == Operator::negate ? f_.neg(r0) : f_.xor_(r0, -1);
            return true;
        }
        break;
    case Expr::Kind::binary:
        if (!is_truth(e)) return operate(e);
        break;
    case Expr::Kind::name: {
        if (const auto local = locals_.find(e.text); local != locals_.end()) {
            f_.load<uint64_t>(r0, local->second.slot);
            if (e.steps.empty()) return true;
            trace::Value found;
            return resolve_name(e, found) && follow(found);
        }
        const BuiltinRow *row = named(site_, e.text) ? nullptr : find_builtin(e.text);
        if (row && (e.steps.empty() || row->what == Builtin::task)) {
            switch (row->what) {
            case Builtin::pid:
                f_.call(helper::get_current_pid_tgid);
                f_.rsh(r0, 32);
                return true;
            case Builtin::tid:
                f_.call(helper::get_current_pid_tgid);
                extend(4, false);
                return true;
            case Builtin::uid:
                f_.call(helper::get_current_uid_gid);
                extend(4, false);
                return true;
            case Builtin::gid:
                f_.call(helper::get_current_uid_gid);
                f_.rsh(r0, 32);
                return true;
            case Builtin::cpu: f_.call(helper::get_smp_processor_id); return true;
            case Builtin::nsecs: f_.call(helper::ktime_get_ns); return true;
            case Builtin::cgroup: f_.call(helper::get_current_cgroup_id); return true;
            case Builtin::workload: return in_workload(e.at);
            case Builtin::random: f_.call(helper::get_prandom_u32); return true;
            case Builtin::ppid:
                f_.call(helper::get_current_task);
                f_.read_field<uint32_t>(r0, r0, "task_struct.real_parent->tgid");
                return true;
            case Builtin::task: {
                f_.call(helper::get_current_task);
                if (e.steps.empty()) return true;
                trace::Value found;
                return resolve_name(e, found) && follow(found);
            }
            }
        }
        trace::Value found;
        return resolve_name(e, found) && argument(found, e.at) && follow(found);
    }
    default: break;
    }
    const Label no = f_.label("no");
    if (!condition(e, no, false)) return false;
    one_unless(no);
    return true;
}

void ProbeCode::one_unless(Label no) {
    const Label end = f_.label("end");
    f_.mov(r0, 1);
    f_.jump(end);
    f_.bind(no);
    f_.mov(r0, 0);
    f_.bind(end);
}

// ---- conditions ------------------------------------------------------------------------------------------------------------

bool ProbeCode::condition(const Expr &e, Label to, bool when) {
    if (const std::optional<int64_t> number = constant(e)) {
        if ((*number != 0) == when) f_.jump(to);
        return true;
    }
    if (e.kind == Expr::Kind::unary && e.op == Operator::not_) return condition(e.args[0], to, !when);
    if (e.kind == Expr::Kind::binary && (e.op == Operator::and_then || e.op == Operator::or_else)) {
        const bool either = e.op == Operator::or_else;
        for (int side = 0; side < 2; ++side) // one side is known, and doesn't decide: the other does
            if (constant(e.args[static_cast<size_t>(side)])) return condition(e.args[static_cast<size_t>(1 - side)], to, when);
        if (either == when) { // one of them is enough to jump
            if (!condition(e.args[0], to, when)) return false;
            return condition(e.args[1], to, when);
        }
        const Label over = f_.label("over");
        if (!condition(e.args[0], over, !when) || !condition(e.args[1], to, when)) return false;
        f_.bind(over);
        return true;
    }
    if (e.kind == Expr::Kind::binary && is_comparison(e.op)) return compare(e, to, when);
    if (!value(e)) return false;
    f_.jump_if(when ? r0 != 0 : r0 == 0, to);
    return true;
}

bool ProbeCode::compare(const Expr &e, Label to, bool when) {
    Typed left, right;
    if (!infer(e.args[0], left) || !infer(e.args[1], right)) return false;
    if (left.text || right.text) return compare_texts(e, to, when);
    const bool is_signed = left.is_signed || right.is_signed;
    std::string_view symbol = trace::operator_text(e.op);
    if (is_signed) {
        switch (e.op) {
        case Operator::less: symbol = "s<"; break;
        case Operator::less_equal: symbol = "s<="; break;
        case Operator::greater: symbol = "s>"; break;
        case Operator::greater_equal: symbol = "s>="; break;
        default: break;
        }
    }
    const std::optional<int64_t> number = constant(e.args[1]);
    if (number && *number >= INT32_MIN && *number <= INT32_MAX) {
        if (!value(e.args[0])) return false;
        const Condition question(symbol, Reg(r0), Value64(runtime(*number)));
        f_.jump_if(when ? question : !question, to);
        return true;
    }
    if (!two_values(e)) return false;
    const Condition question(symbol, Reg(r0), Value64(r1));
    f_.jump_if(when ? question : !question, to);
    return true;
}

} // namespace rawbpf::inline v0::experiment
