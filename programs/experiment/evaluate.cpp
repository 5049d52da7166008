// An expectation is C's arithmetic over real numbers: `reads / seconds > 0.5` is what one means by it. Keys are compared as they
// are shown, so counts["cat"], hits["10.0.0.1"] and calls["openat"] are elements, and numbers as numbers.
#include "programs/experiment/evaluate.h"

#include <algorithm>
#include <cmath>

#include "asm/nearest.h"
#include "programs/experiment/compile.h"
#include "programs/experiment/show.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::experiment {

using trace::Operator;

namespace {

constexpr std::string_view kTotals[] = {"entries", "sum", "max", "min"};
constexpr std::string_view kParts[] = {"count", "sum", "avg", "min", "max"};
/// What is done with a number's low bits, here as in probes.
struct NumberFunction {
    std::string_view name;
    Number (*of)(uint64_t bits);
};
constexpr NumberFunction kNumberFunctions[] = {
    {"int", [](uint64_t bits) { return static_cast<Number>(static_cast<int32_t>(bits)); }},
    {"swap16", [](uint64_t bits) { return static_cast<Number>(__builtin_bswap16(static_cast<uint16_t>(bits))); }},
    {"swap32", [](uint64_t bits) { return static_cast<Number>(__builtin_bswap32(static_cast<uint32_t>(bits))); }},
};
const NumberFunction *find_number_function(std::string_view name) {
    for (const NumberFunction &each : kNumberFunctions)
        if (each.name == name) return &each;
    return nullptr;
}
bool is_total(std::string_view name) { return std::find(std::begin(kTotals), std::end(kTotals), name) != std::end(kTotals); }

std::string dotted(const Expr &expr) {
    std::string out = expr.text;
    for (const trace::Step &step : expr.steps)
        if (!step.member.empty()) (out += '.') += step.member;
    return out;
}

// The keys of an element; `m[3]` is read as a step of a name.
std::vector<Expr> keys_of(const Expr &expr) {
    if (expr.keyed) return expr.args;
    std::vector<Expr> out;
    if (expr.steps.empty() || !expr.steps[0].member.empty()) return out;
    Expr &key = out.emplace_back();
    key.number = expr.steps[0].index;
    key.at = expr.at;
    return out;
}
const trace::Step *member_of(const Expr &expr) {
    for (const trace::Step &step : expr.steps)
        if (!step.member.empty()) return &step;
    return nullptr;
}

// As fmod(3), exactly, and without libm: long division in binary. Doubling and halving lose no bit.
Number remainder(Number a, Number b) {
    Number left = std::abs(a);
    const Number by = std::abs(b);
    if (!(by > 0) || !std::isfinite(left)) return 0;
    if (!std::isfinite(by)) return a;
    Number multiple = by;
    while (multiple <= left / 2) multiple *= 2;
    for (; multiple >= by; multiple /= 2)
        if (left >= multiple) left -= multiple;
    return a < 0 ? -left : left;
}

class Evaluation {
  public:
    Evaluation(Facts &facts, std::vector<std::pair<std::string, Number>> *parts) : facts_(facts), parts_(parts) {}

    Result<Number> value(const Expr &e) {
        switch (e.kind) {
        case Expr::Kind::number: return static_cast<Number>(e.number);
        case Expr::Kind::text: return Number{0};
        case Expr::Kind::name:
        case Expr::Kind::map: {
            const Number out = RAWBPF_TRY(element(e));
            if (parts_) parts_->emplace_back(text_of(e), out);
            return out;
        }
        case Expr::Kind::call: {
            if (const NumberFunction *function = find_number_function(e.text); function && e.args.size() == 1)
                return function->of(bits(RAWBPF_TRY(value(e.args[0]))));
            const Number out = RAWBPF_TRY(total(e));
            if (parts_) parts_->emplace_back(text_of(e), out);
            return out;
        }
        case Expr::Kind::unary: {
            const Number a = RAWBPF_TRY(value(e.args[0]));
            return e.op == Operator::negate ? -a
                   : e.op == Operator::not_ ? static_cast<Number>(a == 0)
                                            : static_cast<Number>(~static_cast<int64_t>(a));
        }
        case Expr::Kind::binary: break;
        }
        const Number a = RAWBPF_TRY(value(e.args[0])), b = RAWBPF_TRY(value(e.args[1]));
        return apply(e.op, a, b);
    }

  private:
    static uint64_t bits(Number x) { return x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x); }
    static Number apply(Operator op, Number a, Number b) {
        switch (op) {
        case Operator::or_else: return a != 0 || b != 0;
        case Operator::and_then: return a != 0 && b != 0;
        case Operator::bit_or: return static_cast<Number>(bits(a) | bits(b));
        case Operator::bit_xor: return static_cast<Number>(bits(a) ^ bits(b));
        case Operator::bit_and: return static_cast<Number>(bits(a) & bits(b));
        case Operator::equal: return a == b;
        case Operator::not_equal: return a != b;
        case Operator::less: return a < b;
        case Operator::less_equal: return a <= b;
        case Operator::greater: return a > b;
        case Operator::greater_equal: return a >= b;
        case Operator::shift_left: return b < 0 || b > 63 ? Number{0} : static_cast<Number>(bits(a) << bits(b));
        case Operator::shift_right: return b < 0 || b > 63 ? Number{0} : static_cast<Number>(bits(a) >> bits(b));
        case Operator::add: return a + b;
        case Operator::subtract: return a - b;
        case Operator::multiply: return a * b;
        case Operator::divide: return b == 0 ? 0 : a / b;
        case Operator::remainder: return remainder(a, b);
        default: return 0;
        }
    }

    bool matches(const FigureTable &table, const FigureRow &row, const std::vector<Expr> &keys,
                 const std::vector<Number> &numbers, const btf::Btf *types) {
        if (keys.size() != table.view.key.size()) return false;
        for (size_t i = 0; i < keys.size(); ++i) {
            const Column &column = table.view.key[i];
            if (keys[i].kind == Expr::Kind::text) {
                if (cell(column, bytes_of(row.key), types, nullptr) != keys[i].text) return false;
                continue;
            }
            const std::optional<int64_t> own = integer(column, bytes_of(row.key));
            if (!own) return false;
            const Number wanted = numbers[i];
            if (static_cast<uint64_t>(*own) != bits(wanted)) return false;
        }
        return true;
    }

    static Number part(const FigureTable &table, const FigureRow &row, const trace::Step *member) {
        const auto real = [&](int64_t x) {
            return table.is_signed ? static_cast<Number>(x) : static_cast<Number>(static_cast<uint64_t>(x));
        };
        const MapView &view = table.view;
        if (!member) {
            if (view.figures == Figures::sum) return real(row.sum);
            if (view.figures == Figures::plain && !view.value.empty())
                if (const std::optional<int64_t> whole = integer(view.value[0], bytes_of(row.value)))
                    return view.value[0].show == Show::signed_number || view.value[0].show == Show::error
                               ? static_cast<Number>(*whole)
                               : static_cast<Number>(static_cast<uint64_t>(*whole));
            return table.main_number(row).value_or(0);
        }
        if (view.figures == Figures::plain) {
            for (const Column &column : view.value)
                if (column.name == member->member)
                    if (const std::optional<int64_t> whole = integer(column, bytes_of(row.value)))
                        return column.show == Show::signed_number ? static_cast<Number>(*whole)
                                                                  : static_cast<Number>(static_cast<uint64_t>(*whole));
            return 0;
        }
        const std::string &name = member->member;
        if (name == "count") return static_cast<Number>(row.count);
        if (name == "sum") return real(row.sum);
        if (name == "min") return real(row.least);
        if (name == "max") return real(row.most);
        return row.count == 0 ? 0 : real(row.sum) / static_cast<Number>(row.count);
    }

    Result<Number> element(const Expr &e) {
        const FigureTable *table = RAWBPF_TRY(facts_.map(e.text));
        if (!table) return facts_.number(dotted(e)).value_or(0);
        const std::vector<Expr> keys = keys_of(e);
        std::vector<Number> numbers;
        std::vector<std::pair<std::string, Number>> *const parts = std::exchange(parts_, nullptr);
        for (const Expr &key : keys) numbers.push_back(RAWBPF_TRY(value(key)));
        parts_ = parts;
        const btf::Btf *types = facts_.types(e.text);
        for (const FigureRow &row : table->rows)
            if (matches(*table, row, keys, numbers, types)) return part(*table, row, member_of(e));
        return Number{0};
    }

    Result<Number> total(const Expr &e) {
        if (e.args.empty()) return Number{0};
        const FigureTable *table = RAWBPF_TRY(facts_.map(e.args[0].text));
        if (!table) return Number{0};
        if (e.text == "entries") return static_cast<Number>(table->rows.size());
        Number out = 0;
        bool first = true;
        for (const FigureRow &row : table->rows) {
            const Number one = part(*table, row, member_of(e.args[0]));
            if (e.text == "sum")
                out += one;
            else if (first || (e.text == "max" ? one > out : one < out))
                out = one;
            first = false;
        }
        return out;
    }

    Facts &facts_;
    std::vector<std::pair<std::string, Number>> *parts_;
};

class Check {
  public:
    Check(const KnownNames &known, const std::vector<std::string> &lines, Mistakes &mistakes)
        : known_(known), lines_(lines), mistakes_(mistakes) {}
    void value(const Expr &e) {
        switch (e.kind) {
        case Expr::Kind::number: return;
        case Expr::Kind::text: return fail(e.at, "a text isn't a number", "texts are keys: counts[\"cat\"]");
        case Expr::Kind::unary:
        case Expr::Kind::binary:
            for (const Expr &each : e.args) value(each);
            return;
        case Expr::Kind::call: return call(e);
        case Expr::Kind::name:
        case Expr::Kind::map: break;
        }
        const MapView *view = find(e.text);
        if (!view) return name(e);
        element(e, *view);
    }

  private:
    void fail(TextPlace at, std::string message, std::string hint = {}) {
        mistakes_.add(lines_, at, std::move(message), std::move(hint));
    }
    const MapView *find(std::string_view name) const {
        for (const MapView *view : known_.maps)
            if (view->map == name) return view;
        return nullptr;
    }
    void name(const Expr &e) {
        const std::string whole = dotted(e);
        if (e.kind == Expr::Kind::name && !e.keyed &&
            std::find(known_.names.begin(), known_.names.end(), whole) != known_.names.end())
            return;
        Nearest near(whole);
        for (const std::string &each : known_.names) near.offer(each);
        for (const MapView *view : known_.maps) near.offer(view->map);
        std::string hint = near.hint();
        if (hint.empty()) {
            for (const MapView *view : known_.maps) (hint += hint.empty() ? "there are " : ", ") += view->map;
            for (const std::string &each : known_.names) (hint += hint.empty() ? "there are " : ", ") += each;
        }
        fail(e.at, format("there is no map, variable or measure {}", whole), std::move(hint));
    }
    void member(const Expr &e, const MapView &view) {
        const trace::Step *member = member_of(e);
        if (!member) return;
        Nearest near(member->member);
        if (view.figures == Figures::plain) {
            for (const Column &column : view.value) {
                if (column.name == member->member) return;
                near.offer(column.name);
            }
        } else {
            for (std::string_view each : kParts) {
                if (each == member->member) return;
                near.offer(each);
            }
        }
        fail({e.at.line, member->column + 1}, format("the values of {} have no member {}", view.map, member->member),
             near.hint());
    }
    void element(const Expr &e, const MapView &view) {
        member(e, view);
        const std::vector<Expr> keys = keys_of(e);
        if (keys.size() != view.key.size()) {
            if (view.key.empty()) return fail(e.at, format("{} has one element, without a key", view.map));
            std::string form = view.map + "[";
            for (const Column &column : view.key) (form += form.ends_with('[') ? "" : ", ") += column.name;
            return fail(
                e.at,
                format("an element of {} has a key of {} part{}", view.map, view.key.size(), view.key.size() == 1 ? "" : "s"),
                format("{}], or a total: sum({})", form, view.map));
        }
        for (size_t i = 0; i < keys.size(); ++i)
            if (keys[i].kind != Expr::Kind::text) value(keys[i]);
    }
    void call(const Expr &e) {
        if (!find_number_function(e.text)) return total(e);
        if (e.args.size() != 1) return fail(e.at, format("{} takes one value", e.text));
        if (!e.steps.empty()) return fail(e.at, format("the value of {}() has no members", e.text));
        value(e.args[0]);
    }
    void total(const Expr &e) {
        if (!is_total(e.text) && is_probe_function(e.text))
            return fail(
                e.at, format("{}() only works in probes", e.text),
                "elsewhere there are int(X), swap16(X), swap32(X), and totals of a map: entries(MAP), sum(MAP), max(MAP), "
                "min(MAP)");
        if (!is_total(e.text)) {
            Nearest near(e.text);
            for (std::string_view each : kTotals) near.offer(each);
            for (const NumberFunction &each : kNumberFunctions) near.offer(each.name);
            return fail(e.at, format("there is no function {} here", e.text),
                        near.hint().empty() ? "there are entries(MAP), sum(MAP), max(MAP), min(MAP), int(X), swap16(X), swap32(X)"
                                            : near.hint());
        }
        const MapView *view = e.args.size() == 1 ? find(e.args[0].text) : nullptr;
        if (view && !e.args[0].keyed) return member(e.args[0], *view);
        if (e.args.size() == 1 && (e.args[0].kind == Expr::Kind::name || e.args[0].kind == Expr::Kind::map) && !view) {
            Nearest near(e.args[0].text);
            for (const MapView *each : known_.maps) near.offer(each->map);
            return fail(e.args[0].at, format("there is no map {}", e.args[0].text), near.hint());
        }
        fail(e.at, format("{} takes a map: {}(counts)", e.text, e.text));
    }

    const KnownNames &known_;
    const std::vector<std::string> &lines_;
    Mistakes &mistakes_;
};

} // namespace

Result<Number> evaluate(const Expr &expr, Facts &facts, std::vector<std::pair<std::string, Number>> *parts) {
    return Evaluation(facts, parts).value(expr);
}

void check_value(const Expr &expr, const KnownNames &known, const std::vector<std::string> &lines, Mistakes &mistakes) {
    Check(known, lines, mistakes).value(expr);
}

std::string text_of(const Expr &expr) {
    switch (expr.kind) {
    case Expr::Kind::number: return format("{}", expr.number);
    case Expr::Kind::text: return format("\"{}\"", expr.text);
    case Expr::Kind::unary:
        return format("{}{}", expr.op == Operator::negate ? "-" : expr.op == Operator::not_ ? "!" : "~", text_of(expr.args[0]));
    case Expr::Kind::binary:
        return format("{} {} {}", text_of(expr.args[0]), trace::operator_text(expr.op), text_of(expr.args[1]));
    default: break;
    }
    std::string out = expr.text;
    if (expr.keyed || expr.kind == Expr::Kind::call) {
        out += expr.keyed ? '[' : '(';
        for (size_t i = 0; i < expr.args.size(); ++i) (out += i == 0 ? "" : ", ") += text_of(expr.args[i]);
        out += expr.keyed ? ']' : ')';
    }
    for (const trace::Step &step : expr.steps)
        step.member.empty() ? append(out, "[{}]", step.index) : append(out, ".{}", step.member);
    return out;
}

std::string number_text(Number value) {
    if (is_whole(value) && value >= 0 && value < 18446744073709551616.0L) return format("{}", static_cast<uint64_t>(value));
    if (is_whole(value) && value < 0 && value >= -9223372036854775808.0L) return format("{}", static_cast<int64_t>(value));
    return number_text(static_cast<double>(value));
}

} // namespace rawbpf::inline v0::experiment
