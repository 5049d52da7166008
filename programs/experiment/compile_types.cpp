// The type of a value: a number or a text, how many bytes it has, what it points to, and whether it is a constant.
#include <algorithm>

#include "asm/nearest.h"
#include "programs/experiment/compiling.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

using trace::Operator;

namespace {

constexpr int kDeepest = 64;

constexpr BuiltinRow kBuiltins[] = {
    {"pid", Builtin::pid},   {"tid", Builtin::tid},       {"uid", Builtin::uid},           {"gid", Builtin::gid},
    {"cpu", Builtin::cpu},   {"nsecs", Builtin::nsecs},   {"cgroup", Builtin::cgroup},     {"ppid", Builtin::ppid},
    {"task", Builtin::task}, {"random", Builtin::random}, {"workload", Builtin::workload},
};

// Functions that say how a number is shown, or change it.
constexpr std::string_view kFunctions[] = {"str", "kstr", "words", "cast", "int", "swap16", "swap32", "comm"};
constexpr std::string_view kAggregates[] = {"count", "sum", "avg", "min", "max", "stats", "hist", "lhist"};

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

const BuiltinRow *find_builtin(std::string_view name) {
    for (const BuiltinRow &row : kBuiltins)
        if (row.name == name) return &row;
    return nullptr;
}

bool is_probe_function(std::string_view name) {
    return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

bool named(const trace::ProbeSite &site, std::string_view name) {
    for (const trace::Parameter &parameter : site.signature.parameters)
        if (parameter.name == name) return true;
    return false;
}

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
    TextPlace at = e.at;
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
            return fail(e.at, format("a program can't read @{}: it is an aggregate, which only user space reads", e.text));
        return true;
    }
    case Expr::Kind::call: {
        Show show;
        if (e.text == "str" || e.text == "kstr" || e.text == "words" || e.text == "ip6") return text_type(e, out);
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
        if (is_aggregate(e))
            return fail(e.at, format("{}() can only be assigned to an element of a map: @m[key] = {}(...)", e.text, e.text));
        if (!e.steps.empty()) return fail(e.at, format("the value of {}() has no members", e.text));
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
            if (row->what == Builtin::workload) out.show = Show::flag;
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

} // namespace rawbpf::inline v0::experiment
