// Numbers. Conditions don't become numbers: `a && b` is two jumps to the same place, `a || b` a jump over the second. What is
// known while the program is made is worked out there, so `$pid == 0 || pid == $pid` costs nothing where $pid is 0.
// Over 600 lines: one function a kind of expression, and each calls the others.
#include <algorithm>

#include "asm/nearest.h"
#include "programs/experiment/compiling.h"
#include "programs/usdt/fetch.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

using trace::Operator;
using trace::ProbeKind;

namespace {

constexpr int kDeepest = 64;

enum class Builtin : uint8_t { pid, tid, uid, gid, cpu, nsecs, cgroup, ppid, task, random };
struct BuiltinRow {
    std::string_view name;
    Builtin what;
};
constexpr BuiltinRow kBuiltins[] = {
    {"pid", Builtin::pid},   {"tid", Builtin::tid},       {"uid", Builtin::uid},       {"gid", Builtin::gid},
    {"cpu", Builtin::cpu},   {"nsecs", Builtin::nsecs},   {"cgroup", Builtin::cgroup}, {"ppid", Builtin::ppid},
    {"task", Builtin::task}, {"random", Builtin::random},
};
const BuiltinRow *find_builtin(std::string_view name) {
    for (const BuiltinRow &row : kBuiltins)
        if (row.name == name) return &row;
    return nullptr;
}

// Functions that say how a number is shown, or change it.
constexpr std::string_view kFunctions[] = {"str", "kstr", "cast", "int", "swap16", "swap32", "comm"};
constexpr std::string_view kAggregates[] = {"count", "sum", "avg", "min", "max", "stats", "hist", "lhist"};

bool named(const trace::ProbeSite &site, std::string_view name) {
    for (const trace::Parameter &parameter : site.signature.parameters)
        if (parameter.name == name) return true;
    return false;
}

// A pointer to a struct, in the kernel's types; 0: there is none.
btf::TypeId pointer_to(const btf::Btf &types, std::string_view name) {
    if (name.starts_with("struct ")) name.remove_prefix(7);
    while (name.ends_with('*') || name.ends_with(' ')) name.remove_suffix(1);
    const std::optional<btf::TypeId> target = types.find(name, btf::Kind::struct_);
    if (!target) return 0;
    for (btf::TypeId id = types.first_id(); id < types.end_id(); ++id) {
        const Result<btf::Type> type = types.type(id);
        if (type && type->kind == btf::Kind::ptr && type->size_or_type == *target) return id;
    }
    return 0;
}

std::optional<int64_t> fold(Operator op, int64_t a, int64_t b) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (op) {
    case Operator::or_else: return a || b;
    case Operator::and_then: return a && b;
    case Operator::bit_or: return a | b;
    case Operator::bit_xor: return a ^ b;
    case Operator::bit_and: return a & b;
    case Operator::equal: return a == b;
    case Operator::not_equal: return a != b;
    case Operator::less: return a < b;
    case Operator::less_equal: return a <= b;
    case Operator::greater: return a > b;
    case Operator::greater_equal: return a >= b;
    case Operator::shift_left: return y > 63 ? std::optional<int64_t>() : static_cast<int64_t>(x << y);
    case Operator::shift_right: return y > 63 ? std::optional<int64_t>() : static_cast<int64_t>(x >> y);
    case Operator::add: return static_cast<int64_t>(x + y);
    case Operator::subtract: return static_cast<int64_t>(x - y);
    case Operator::multiply: return static_cast<int64_t>(x * y);
    case Operator::divide: return b == 0 || (a == INT64_MIN && b == -1) ? std::optional<int64_t>() : a / b;
    case Operator::remainder: return b == 0 || (a == INT64_MIN && b == -1) ? std::optional<int64_t>() : a % b;
    default: return {};
    }
}

} // namespace

bool ProbeCode::is_comparison(Operator op) { return op >= Operator::equal && op <= Operator::greater_equal; }
bool ProbeCode::is_truth(const Expr &e) {
    if (e.kind == Expr::Kind::unary) return e.op == Operator::not_;
    return e.kind == Expr::Kind::binary && (is_comparison(e.op) || e.op == Operator::or_else || e.op == Operator::and_then);
}
bool ProbeCode::is_aggregate(const Expr &value) {
    return value.kind == Expr::Kind::call &&
           std::find(std::begin(kAggregates), std::end(kAggregates), value.text) != std::end(kAggregates) &&
           !(value.text == "int");
}

std::optional<int64_t> ProbeCode::constant(const Expr &e, int depth) const {
    if (depth > kDeepest) return {};
    switch (e.kind) {
    case Expr::Kind::number: return static_cast<int64_t>(e.number);
    case Expr::Kind::unary: {
        const std::optional<int64_t> a = constant(e.args[0], depth + 1);
        if (!a) return {};
        return e.op == Operator::negate       ? static_cast<int64_t>(-static_cast<uint64_t>(*a))
               : e.op == Operator::complement ? ~*a
                                              : !*a;
    }
    case Expr::Kind::binary: {
        if (e.args[0].kind == Expr::Kind::text && e.args[1].kind == Expr::Kind::text) {
            if (e.op == Operator::equal) return e.args[0].text == e.args[1].text;
            if (e.op == Operator::not_equal) return e.args[0].text != e.args[1].text;
        }
        const std::optional<int64_t> a = constant(e.args[0], depth + 1), b = constant(e.args[1], depth + 1);
        if (e.op == Operator::and_then && ((a && !*a) || (b && !*b))) return 0;
        if (e.op == Operator::or_else && ((a && *a) || (b && *b))) return 1;
        if (!a || !b) return {};
        return fold(e.op, *a, *b);
    }
    default: return {};
    }
}

// ---- what it is ------------------------------------------------------------------------------------------------------------

// What the tracer's room says of a name, with its complaint as ours.
bool ProbeCode::resolve(const Expr &e, trace::Value &out, const trace::ProbeSite &site, std::string_view name, uint32_t column) {
    trace::Expression expression;
    expression.source = all_.source_line(e.at);
    trace::Node node;
    node.kind = trace::Node::Kind::name;
    node.text = name;
    node.steps = e.steps;
    node.column = column;
    Result<trace::Value> found = trace::resolve_value(expression, node, site, all_.surroundings().kernel);
    if (found) {
        out = std::move(*found);
        return true;
    }
    // "message", the line, and a caret below it
    const std::string &text = found.error().context;
    const size_t end = text.find('\n'), last = text.rfind('\n');
    Place at = e.at;
    if (last != std::string::npos && text.ends_with('^') && text.size() - last >= 4)
        at.column = static_cast<uint32_t>(text.size() - last - 3);
    return fail(at, text.substr(0, end), found.error().hint);
}

bool ProbeCode::resolve_name(const Expr &e, trace::Value &out) {
    if (const auto local = locals_.find(e.text); local != locals_.end() && !e.steps.empty()) {
        if (local->second.type.pointee == 0)
            return fail(e.at, format("the members of {} aren't known", e.text),
                        "cast(x, \"struct NAME\") says what it points to");
        return through(e, local->second.type.pointee, out);
    }
    if (e.text == "task" && !named(site_, "task")) {
        const btf::Btf *kernel = all_.surroundings().kernel;
        const btf::TypeId type = kernel ? pointer_to(*kernel, "task_struct") : 0;
        if (type == 0) return fail(e.at, "this kernel has no types (BTF) that say what a task is");
        return through(e, type, out);
    }
    return resolve(e, out, site_, e.text, e.at.column - 1);
}

bool ProbeCode::through(const Expr &e, btf::TypeId type, trace::Value &out) {
    trace::ProbeSite site;
    site.signature.known = true;
    trace::Parameter parameter;
    parameter.name = "value";
    parameter.type.id = type;
    site.signature.parameters.push_back(std::move(parameter));
    return resolve(e, out, site, "value", e.at.column - 1);
}

bool ProbeCode::cast_type(const Expr &e, btf::TypeId &out) {
    if (e.args.size() != 2 || e.args[1].kind != Expr::Kind::text)
        return fail(e.at, "cast takes a value and the name of a struct: cast(x, \"struct sock\")");
    const btf::Btf *kernel = all_.surroundings().kernel;
    if (!kernel) return fail(e.at, "this kernel has no types (BTF)");
    out = pointer_to(*kernel, e.args[1].text);
    if (out == 0) return fail(e.args[1].at, format("this kernel has no {}, or no pointer to one", e.args[1].text));
    return true;
}

bool ProbeCode::infer(const Expr &e, Typed &out, int depth) {
    if (depth > kDeepest) return fail(e.at, "values are nested too deep");
    out = {};
    switch (e.kind) {
    case Expr::Kind::number: return true;
    case Expr::Kind::text: return text_type(e, out);
    case Expr::Kind::unary:
        if (!infer(e.args[0], out, depth + 1)) return false;
        if (out.text) return fail(e.at, "a text isn't a number");
        if (e.op == Operator::negate) out.is_signed = true, out.show = Show::signed_number;
        if (e.op == Operator::not_) out = {};
        return true;
    case Expr::Kind::binary: {
        if (is_truth(e)) return true;
        Typed a, b;
        if (!infer(e.args[0], a, depth + 1) || !infer(e.args[1], b, depth + 1)) return false;
        if (a.text || b.text) return fail(e.at, "a text isn't a number", "texts are compared by == and !=");
        out.is_signed = a.is_signed || b.is_signed;
        out.show = a.show == Show::hex || b.show == Show::hex ? Show::hex : out.is_signed ? Show::signed_number : Show::number;
        return true;
    }
    case Expr::Kind::map: {
        UsedMap *map = nullptr;
        if (!use_map(e, map)) return false;
        if (!map->known && !all_.make_map(*map, e.at)) return false; // a number, until somebody writes something else
        out = map->value;
        if (!e.steps.empty())
            return fail(e.at, "the members of what a map holds aren't known", "cast(@m[k], \"struct NAME\")->member");
        if (map->view.figures != Figures::plain)
            return fail(e.at, format("@{} is for user space to read: a program can't", e.text));
        return true;
    }
    case Expr::Kind::call: {
        Show show;
        if (e.text == "str" || e.text == "kstr" || e.text == "ip6") return text_type(e, out);
        if (e.text == "cast") {
            btf::TypeId type = 0;
            if (!cast_type(e, type)) return false;
            Typed inner;
            if (!infer(e.args[0], inner, depth + 1)) return false;
            out.show = Show::hex;
            out.pointee = type;
            if (e.steps.empty()) return true;
            trace::Value value;
            if (!through(e, type, value)) return false;
            out = {};
            out.is_signed = value.type.is_signed;
            out.show = value.type.show == trace::Show::address ? Show::hex : out.is_signed ? Show::signed_number : Show::number;
            if (value.type.show == trace::Show::characters) return text_type(e, out);
            if (value.type.show == trace::Show::address) out.pointee = value.type.id;
            return true;
        }
        if (is_aggregate(e)) return fail(e.at, format("{}() is what a map is set to: @m[key] = {}(...)", e.text, e.text));
        if (!e.steps.empty()) return fail(e.at, format("what {}() gives has no members", e.text));
        if (e.text == "int") {
            if (e.args.size() != 1) return fail(e.at, "int takes one value");
            out.is_signed = true;
            out.show = Show::signed_number;
            return infer(e.args[0], out, depth + 1) &&
                   (out = {.show = Show::signed_number, .text = false, .size = 8, .is_signed = true, .pointee = 0}, true);
        }
        if (e.text == "swap16" || e.text == "swap32") {
            if (e.args.size() != 1) return fail(e.at, format("{} takes one value", e.text));
            Typed inner;
            return infer(e.args[0], inner, depth + 1);
        }
        if (show_named(e.text, show)) {
            if (e.args.size() != 1) return fail(e.at, format("{} takes one value", e.text));
            if (!infer(e.args[0], out, depth + 1)) return false;
            if (out.text && show != Show::ip) return fail(e.args[0].at, "a text isn't a number");
            const bool is_signed = out.is_signed;
            out = {};
            out.show = show;
            out.is_signed = is_signed || show == Show::error;
            return true;
        }
        Nearest near(e.text);
        for (std::string_view known : kFunctions) near.offer(known);
        for (std::string_view known : kAggregates) near.offer(known);
        for (std::string_view known : show_names()) near.offer(known);
        return fail(e.at, format("there is no function {}", e.text), near.hint());
    }
    case Expr::Kind::name: break;
    }
    if (const auto local = locals_.find(e.text); local != locals_.end() && e.steps.empty()) {
        out = local->second.type;
        return true;
    }
    if (e.keyed) return fail(e.at, format("a map is written with @ in a probe: @{}[...]", e.text));
    if (e.steps.empty() && !named(site_, e.text) && locals_.find(e.text) == locals_.end()) {
        if (e.text == "comm" || e.text == "probe") return text_type(e, out);
        if (const BuiltinRow *row = find_builtin(e.text)) {
            if (row->what == Builtin::task) {
                out.show = Show::hex;
                out.pointee = all_.surroundings().kernel ? pointer_to(*all_.surroundings().kernel, "task_struct") : 0;
            }
            return true;
        }
    }
    trace::Value value;
    if (!resolve_name(e, value)) return false;
    if (value.type.show == trace::Show::characters || value.type.show == trace::Show::data_text) return text_type(e, out);
    out.is_signed = value.type.is_signed;
    switch (value.type.show) {
    case trace::Show::address:
    case trace::Show::text:
    case trace::Show::file:
    case trace::Show::path:
    case trace::Show::dentry:
    case trace::Show::sockaddr:
    case trace::Show::go_slice:
    case trace::Show::counted:
        out.show = Show::hex;
        out.is_signed = false;
        out.pointee = value.type.id;
        break;
    case trace::Show::boolean: out.show = Show::flag; break;
    case trace::Show::nothing: return fail(e.at, format("{} has no value", e.text));
    case trace::Show::unavailable: return fail(e.at, format("no program can fetch {}", e.text));
    default: out.show = out.is_signed ? Show::signed_number : Show::number; break;
    }
    return true;
}

// ---- working it out --------------------------------------------------------------------------------------------------------

void ProbeCode::extend(uint32_t size, bool is_signed) {
    if (size >= 8) return;
    const auto bits = static_cast<int64_t>(64 - 8 * size);
    f_.lsh(r0, runtime(bits));
    if (is_signed)
        f_.arsh(r0, runtime(bits));
    else
        f_.rsh(r0, runtime(bits));
}

bool ProbeCode::argument(const trace::Value &value, Place at) {
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
        if (value.argument >= (kHostArch == Arch::arm64 ? 8u : 6u))
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
    if (!value(e.args[0])) return false;
    const Space space(*this, 8);
    f_.store<uint64_t>(space.slot(), r0);
    if (!value(e.args[1])) return false;
    f_.mov(r1, r0);
    f_.load<uint64_t>(r0, space.slot());
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
    const Label no = f_.label("no"), end = f_.label("end");
    if (!condition(e, no, false)) return false;
    f_.mov(r0, 1);
    f_.jump(end);
    f_.bind(no);
    f_.mov(r0, 0);
    f_.bind(end);
    return true;
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
    if (!value(e.args[0])) return false;
    const Space space(*this, 8);
    f_.store<uint64_t>(space.slot(), r0);
    if (!value(e.args[1])) return false;
    f_.mov(r1, r0);
    f_.load<uint64_t>(r0, space.slot());
    const Condition question(symbol, Reg(r0), Value64(r1));
    f_.jump_if(when ? question : !question, to);
    return true;
}

} // namespace rawbpf::inline v0::experiment
