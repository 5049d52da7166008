// An expression as BPF.
//
// Values are worked out in r0, r1 beside it; what has to wait lies on the stack. Conditions don't become numbers: `a && b` is two
// jumps to the same place, and `a || b` a jump over the second. So the usual filter, a comparison or two, is a load and a jump
// each.
//
//      arg2 > 4096 && comm == "cat"          r0 = *(u64 *)(r6 + 96)
//                                            if r0 <= 4096 goto filtered
//                                            r0 = *(u32 *)(comm)          "cat\0"
//                                            if r0 != 0x746163 goto filtered
#include <cstring>
#include <optional>

#include "programs/trace/emit.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kLongestText = 62; // compared on the stack
constexpr size_t kLongestComm = 15;
constexpr uint32_t kMostWaiting = 8; // values on the stack at once

bool is_comparison(Operator op) { return op >= Operator::equal && op <= Operator::greater_equal; }
bool is_truth(const Node &node) {
    if (node.kind == Node::Kind::unary) return node.op == Operator::not_;
    return node.kind == Node::Kind::binary &&
           (is_comparison(node.op) || node.op == Operator::or_else || node.op == Operator::and_then);
}

class Compiler {
  public:
    Compiler(const Emitting &e, const Expression &expression) : e_(e), expression_(expression), kernel_(e.shared.kernel) {}

    Result<void> number() { return value(expression_.root); }

    // --- Conditions

    Result<void> unless(uint32_t index, Label to) { return condition(index, to, false); }

  private:
    [[nodiscard]] const Node &node(uint32_t index) const { return expression_.nodes[index]; }
    [[nodiscard]] Unexpected complain(const Node &at, std::string_view message, std::string hint = {}) const {
        return Unexpected(expression_.complaint(at.column, message, std::move(hint)));
    }

    // Jumps to `to` when the truth of the node is `when`.
    Result<void> condition(uint32_t index, Label to, bool when) {
        const Node &n = node(index);
        if (n.kind == Node::Kind::unary && n.op == Operator::not_) return condition(n.left, to, !when);
        if (n.kind == Node::Kind::binary && (n.op == Operator::and_then || n.op == Operator::or_else)) {
            if ((n.op == Operator::or_else) == when) { // either one is enough to jump
                TRY(condition(n.left, to, when));
                return condition(n.right, to, when);
            }
            const Label over = e_.f.label("over");
            TRY(condition(n.left, over, !when));
            TRY(condition(n.right, to, when));
            e_.f.bind(over);
            return {};
        }
        if (n.kind == Node::Kind::binary && is_comparison(n.op)) {
            if (is_text(n.left) || is_text(n.right)) return compare_text(n, to, when);
            return compare(n, to, when);
        }
        if (n.kind == Node::Kind::text) return complain(n, "a text alone is no condition");
        TRY(value(index));
        if (when)
            e_.f.jump_if(r0 != 0, to);
        else
            e_.f.jump_if(r0 == 0, to);
        return {};
    }

    Result<void> compare(const Node &n, Label to, bool when) {
        const bool with_sign = TRY(is_signed(n.left)) || TRY(is_signed(n.right));
        Condition condition = r0 == 0;
        const Node &right = node(n.right);
        int64_t number = 0;
        if (constant(right, number) && number >= INT32_MIN && number <= INT32_MAX) {
            TRY(value(n.left));
            condition = make(n.op, with_sign, runtime(number));
        } else {
            TRY(both(n));
            condition = make(n.op, with_sign, Value64(r1));
        }
        e_.f.jump_if(when ? condition : !condition, to);
        return {};
    }
    static Condition make(Operator op, bool with_sign, Value64 right) {
        std::string_view symbol = operator_text(op);
        if (with_sign) {
            switch (op) {
            case Operator::less: symbol = "s<"; break;
            case Operator::less_equal: symbol = "s<="; break;
            case Operator::greater: symbol = "s>"; break;
            case Operator::greater_equal: symbol = "s>="; break;
            default: break;
            }
        }
        return {symbol, Reg(r0), right};
    }

    // --- Texts

    [[nodiscard]] bool is_text(uint32_t index) const {
        const Node &n = node(index);
        if (n.kind == Node::Kind::text) return true;
        if (n.kind != Node::Kind::name) return false;
        Result<Value> found = resolve_value(expression_, n, e_.place, kernel_);
        return found && found->from == Value::From::comm;
    }

    Result<void> compare_text(const Node &n, Label to, bool when) {
        const bool literal_left = node(n.left).kind == Node::Kind::text;
        const Node &literal = node(literal_left ? n.left : n.right), &other = node(literal_left ? n.right : n.left);
        if (literal.kind != Node::Kind::text || other.kind != Node::Kind::name)
            return complain(n, "a text is only compared with a text", "as in comm == \"cat\"");
        if (n.op != Operator::equal && n.op != Operator::not_equal) return complain(n, "texts are only compared by == and !=");
        const Value found = TRY(resolve_value(expression_, other, e_.place, kernel_));
        TRY(available(other, found));
        const std::string &text = literal.text;
        const Label differ = e_.f.label("differ");
        const bool jump_if_equal = (n.op == Operator::equal) == when;
        if (found.from == Value::From::comm) {
            if (text.size() > kLongestComm) return complain(literal, format("a comm has at most {} bytes", kLongestComm));
            equal_bytes(e_.comm, text, jump_if_equal ? differ : to);
        } else {
            if (!found.is_text() && found.type.show != Show::address)
                return complain(other, format("{} is no text, but {}", other.text, found.type.name));
            if (text.size() > kLongestText)
                return complain(literal, format("texts of more than {} bytes aren't compared", kLongestText));
            read_text(e_, found, text_slot(), static_cast<uint32_t>(text.size() + 2));
            e_.f.jump_if(r0 != runtime(text.size() + 1), jump_if_equal ? differ : to);
            equal_bytes(text_slot(), text, jump_if_equal ? differ : to);
        }
        if (jump_if_equal) {
            e_.f.jump(to);
            e_.f.bind(differ);
        }
        return {};
    }
    Slot text_slot() {
        if (!text_) text_ = e_.f.stack(64, 8, "text");
        return *text_;
    }
    // Goes on where the bytes in the slot are the text and its zero.
    void equal_bytes(Slot slot, const std::string &text, Label differ) {
        const size_t size = text.size() + 1;
        for (size_t at = 0; at < size;) {
            const size_t left = size - at, step = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
            uint64_t word = 0;
            std::memcpy(&word, text.c_str() + at, step);
            switch (step) {
            case 8: e_.f.load<uint64_t>(r0, slot + runtime(at)); break;
            case 4: e_.f.load<uint32_t>(r0, slot + runtime(at)); break;
            case 2: e_.f.load<uint16_t>(r0, slot + runtime(at)); break;
            default: e_.f.load<uint8_t>(r0, slot + runtime(at)); break;
            }
            if (word <= INT32_MAX) {
                e_.f.jump_if(r0 != runtime(word), differ);
            } else {
                e_.f.load_imm64(r1, word);
                e_.f.jump_if(r0 != r1, differ);
            }
            at += step;
        }
    }

    // --- Numbers

    // A number, or the negative of one.
    [[nodiscard]] bool constant(const Node &n, int64_t &out) const {
        if (n.kind == Node::Kind::number) return out = static_cast<int64_t>(n.number), n.number <= INT64_MAX;
        if (n.kind != Node::Kind::unary || n.op != Operator::negate || node(n.left).kind != Node::Kind::number) return false;
        return out = static_cast<int64_t>(-node(n.left).number), node(n.left).number <= INT64_MAX;
    }
    Result<bool> is_signed(uint32_t index) { return has_signed_value(expression_, index, e_.place, kernel_); }

    // r0 = the left, r1 = the right.
    Result<void> both(const Node &n) {
        const Node &right = node(n.right);
        if (right.kind == Node::Kind::number) {
            TRY(value(n.left));
            e_.f.load_imm64(r1, right.number);
            return {};
        }
        TRY(value(n.left));
        if (waiting_ == kMostWaiting) return complain(n, format("more than {} values wait for others here", kMostWaiting));
        if (waiting_ == slots_.size()) slots_.push_back(e_.f.stack<uint64_t>());
        const Slot slot = slots_[waiting_++];
        e_.f.store<uint64_t>(slot, r0);
        TRY(value(n.right));
        e_.f.mov(r1, r0);
        e_.f.load<uint64_t>(r0, slot);
        --waiting_;
        return {};
    }

    Result<void> value(uint32_t index) {
        const Node &n = node(index);
        Code &f = e_.f;
        if (n.kind == Node::Kind::text)
            return complain(n, "a text isn't a number", "texts are compared with names: comm == \"cat\"");
        if (n.kind == Node::Kind::number) {
            f.load_imm64(r0, n.number);
            return {};
        }
        if (n.kind == Node::Kind::name) {
            const Value found = TRY(resolve_value(expression_, n, e_.place, kernel_));
            if (found.from == Value::From::comm) return complain(n, "comm is a text", "compare it with one: comm == \"cat\"");
            if (found.type.show == Show::characters || found.type.show == Show::data_text)
                return complain(n, format("{} is a text", n.text), "compare it with one");
            TRY(available(n, found));
            load_value(e_, found);
            return {};
        }
        if (is_truth(n)) { // as a number: 0 or 1
            const Label no = f.label("no"), end = f.label("end");
            TRY(condition(index, no, false));
            f.mov(r0, 1);
            f.jump(end);
            f.bind(no);
            f.mov(r0, 0);
            f.bind(end);
            return {};
        }
        if (n.kind == Node::Kind::unary) {
            TRY(value(n.left));
            if (n.op == Operator::negate)
                f.neg(r0);
            else
                f.xor_(r0, -1);
            return {};
        }
        TRY(both(n));
        switch (n.op) {
        case Operator::bit_or: f.or_(r0, r1); break;
        case Operator::bit_xor: f.xor_(r0, r1); break;
        case Operator::bit_and: f.and_(r0, r1); break;
        case Operator::shift_left: f.lsh(r0, r1); break;
        case Operator::shift_right:
            if (TRY(is_signed(n.left)))
                f.arsh(r0, r1);
            else
                f.rsh(r0, r1);
            break;
        case Operator::add: f.add(r0, r1); break;
        case Operator::subtract: f.sub(r0, r1); break;
        case Operator::multiply: f.mul(r0, r1); break;
        default: divide(n.op, TRY(is_signed(n.left)) || TRY(is_signed(n.right)));
        }
        return {};
    }

    // Not everything is there at each end of a call.
    Result<void> available(const Node &n, const Value &value) const {
        const bool of_end = value.from == Value::From::result || value.from == Value::From::duration;
        if (of_end && !e_.is_result && !has_two_ends(e_.place.kind))
            return complain(n, "tracepoints and USDT probes are points in time: they have no results and no durations",
                            "syscall:NAME has both ends of a system call");
        if (value.from == Value::From::result && !e_.is_result)
            return complain(n, "a call has no result yet", "--graph and --returns show calls when they begin; leave them out");
        if (value.from == Value::From::duration && !e_.duration)
            return complain(n, e_.is_result ? "how long it took isn't known here" : "a call has not ended yet",
                            "--graph and --returns show calls when they begin; leave them out");
        if (value.from == Value::From::argument && !has_arguments(e_))
            return complain(n, "arguments aren't known when a function returns",
                            "probe both ends: kprobe:, uprobe:, fentry: or the bare name");
        if (value.from == Value::From::argument && e_.call && value.argument >= kRawArguments)
            return complain(n,
                            format("of a call that is kept until it returns, the first {} arguments are known", kRawArguments));
        return {};
    }

    // r0 = r0 / r1 or r0 % r1, as C rounds: to zero. BPF divides without signs (until 6.6), and by zero: to zero, or to the
    // number itself as remainder.
    void divide(Operator op, bool with_sign) {
        Code &f = e_.f;
        const auto magnitude = [&](WritableReg reg) { f.if_(as_signed(reg) < 0, [&] { f.neg(reg); }); };
        if (with_sign) { // r2: less than zero where the result is
            f.mov(r2, r0);
            if (op == Operator::divide) f.xor_(r2, r1);
            magnitude(r0);
            magnitude(r1);
        }
        if (op == Operator::divide)
            f.div(r0, r1);
        else
            f.mod(r0, r1);
        if (with_sign) f.if_(as_signed(r2) < 0, [&] { f.neg(r0); });
    }

    const Emitting &e_;
    const Expression &expression_;
    const btf::Btf *kernel_;
    std::vector<Slot> slots_;
    size_t waiting_ = 0;
    std::optional<Slot> text_;
};

} // namespace

Result<void> compile_filter(const Emitting &e, const Expression &expression, Label to) {
    return Compiler(e, expression).unless(expression.root, to);
}

Result<void> compile_value(const Emitting &e, const Expression &expression) { return Compiler(e, expression).number(); }

Result<bool> has_signed_value(const Expression &expression, uint32_t node, const ProbeSite &place, const btf::Btf *kernel) {
    const Node &n = expression.nodes[node];
    const auto is_signed = [&](uint32_t part) { return has_signed_value(expression, part, place, kernel); };
    switch (n.kind) {
    case Node::Kind::number:
    case Node::Kind::text: return false;
    case Node::Kind::name: {
        const Value found = TRY(resolve_value(expression, n, place, kernel));
        return found.type.is_signed;
    }
    case Node::Kind::unary: return n.op == Operator::negate || (n.op == Operator::complement && TRY(is_signed(n.left)));
    case Node::Kind::binary: return !is_truth(n) && (TRY(is_signed(n.left)) || TRY(is_signed(n.right)));
    }
    return false;
}

bool mentions(const Expression &expression, std::string_view name) {
    for (const Node &node : expression.nodes)
        if (node.kind == Node::Kind::name && node.text == name) return true;
    return false;
}

} // namespace rawbpf::inline v0::trace
