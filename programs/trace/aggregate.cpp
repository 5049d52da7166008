// What --by, --sum, --hist and the like ask for, read from the command line. What the names stand for is known when the places
// are (aggregate_program.cpp). PURE.
//
//      --by 'comm,file->f_inode->i_ino,arg2 / 4096'        --lhist duration,0,10ms,500us
#include "programs/trace/aggregate.h"

#include <algorithm>

#include "programs/trace/emit.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint32_t kLog2Words = 66; // less than 0, 0, and a bucket for each bit

struct KindRow {
    Measure::Kind kind;
    std::string_view word;
};
constexpr KindRow kKinds[] = {
    {Measure::Kind::sum, "sum"},  {Measure::Kind::average, "avg"}, {Measure::Kind::least, "min"},
    {Measure::Kind::most, "max"}, {Measure::Kind::log2, "hist"},   {Measure::Kind::linear, "lhist"},
};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// A number as in expressions, with its unit, perhaps negative.
Result<int64_t> number(std::string_view text, std::string_view what) {
    const Expression read = TRY(parse_expression(text));
    const Node *node = &read.nodes[read.root];
    const bool negative = node->kind == Node::Kind::unary && node->op == Operator::negate;
    if (negative) node = &read.nodes[node->left];
    if (node->kind != Node::Kind::number || node->number > INT64_MAX)
        return Unexpected(read.complaint(0, format("{} is a number", what), "X,FROM,TO,STEP: --lhist ret,0,1000,100"));
    return negative ? -static_cast<int64_t>(node->number) : static_cast<int64_t>(node->number);
}

} // namespace

uint32_t Measure::words() const {
    if (kind == Kind::log2) return kLog2Words;
    if (kind != Kind::linear) return 1;
    const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    return static_cast<uint32_t>(range / step + (range % step != 0)) + 2;
}

std::string_view Measure::word() const {
    for (const KindRow &row : kKinds)
        if (row.kind == kind) return row.word;
    return {};
}
std::string Measure::name() const { return format("{}({})", word(), value.source); }

Measure::Bucket Measure::bucket(uint32_t index) const {
    Bucket out;
    const uint32_t last = words() - 1;
    if (kind == Kind::log2) {
        out.has_least = index != 0;
        out.least = index < 2 ? 0 : static_cast<Int128>(1) << (index - 2);
        out.most = index == 0 ? -1 : index == 1 ? 0 : 2 * out.least - 1;
        return out;
    }
    out.has_least = index != 0;
    out.has_most = index != last;
    out.least = index == last ? to : from + static_cast<Int128>(step) * (static_cast<Int128>(index) - 1);
    out.most = index == 0 ? from - static_cast<Int128>(1) : std::min<Int128>(to, out.least + step) - 1;
    return out;
}

bool AggregateOptions::mentions(std::string_view name) const {
    const auto in = [&](const Expression &expression) { return trace::mentions(expression, name); };
    return std::any_of(by.begin(), by.end(), [&](const GroupKey &key) { return in(key.expression); }) ||
           std::any_of(measures.begin(), measures.end(), [&](const Measure &measure) { return in(measure.value); });
}

bool AggregateOptions::by_stack() const {
    return std::any_of(by.begin(), by.end(), [](const GroupKey &key) { return key.kind == GroupKey::Kind::stack; });
}

Result<std::vector<GroupKey>> parse_group_keys(std::string_view list) {
    std::vector<GroupKey> out;
    for (std::string_view rest = list;;) {
        const size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view text = trimmed(rest.substr(0, comma));
        if (text.empty())
            return Unexpected(make_error(Errc::invalid_argument, format("`{}` has an empty key", list),
                                         "keys are separated by single commas: comm,pid,arg0"));
        GroupKey key;
        if (text == "function" || text == "probe" || text == "stack") {
            key.kind = text == "stack" ? GroupKey::Kind::stack : GroupKey::Kind::function;
            key.expression.source = text;
        } else {
            key.expression = TRY(parse_expression(text));
        }
        const auto same = [&](const GroupKey &other) { return other.name() == key.name(); };
        if (std::any_of(out.begin(), out.end(), same)) return fail(Errc::invalid_argument, "`{}` is there twice", text);
        out.push_back(std::move(key));
        if (comma == rest.size()) return out;
        rest.remove_prefix(comma + 1);
    }
}

Result<Measure> parse_measure(Measure::Kind kind, std::string_view text) {
    Measure out;
    out.kind = kind;
    if (kind == Measure::Kind::linear) {
        std::string_view parts[3];
        for (size_t i = 3; i-- > 0;) {
            const size_t comma = text.rfind(',');
            if (comma == std::string_view::npos)
                return Unexpected(make_error(Errc::invalid_argument, format("`{}` doesn't say which buckets", text),
                                             "X,FROM,TO,STEP: --lhist ret,0,1000,100"));
            parts[i] = trimmed(text.substr(comma + 1));
            text = text.substr(0, comma);
        }
        out.from = TRY(number(parts[0], "where the buckets begin"));
        out.to = TRY(number(parts[1], "where the buckets end"));
        const int64_t step = TRY(number(parts[2], "how wide a bucket is"));
        if (step <= 0) return fail(Errc::invalid_argument, "a bucket is at least 1 wide, not {}", step);
        if (out.to <= out.from) return fail(Errc::invalid_argument, "the buckets begin at {} and end at {}", out.from, out.to);
        out.step = static_cast<uint64_t>(step);
        const uint64_t range = static_cast<uint64_t>(out.to) - static_cast<uint64_t>(out.from);
        if (range / out.step > kMostBuckets - 1)
            return fail(Errc::invalid_argument, "{} buckets from {} to {} are too many: {} at most", range / out.step, out.from,
                        out.to, kMostBuckets);
    }
    out.value = TRY(parse_expression(trimmed(text)));
    return out;
}

} // namespace rawbpf::inline v0::trace
