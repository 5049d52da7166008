// Groups as text, JSON, CSV and in Prometheus's exposition format.
//
//      text          comm   arg0   count      sum(ret)        a table; with histograms a block for each group:
//                    cat       0     250         1,000        comm cat, arg0 0: 250 events
//                                                               [4, 8)     10 |#####     |
//      json          {"type":"group","by":{"comm":"cat","arg0":0},"count":250,"sum":{"ret":1000},
//                     "hist":{"ret":[{"least":4,"most":7,"count":10} ...]}}
//      csv           a line a group, or where there are histograms a line a bucket
//      prometheus    rawbpf_group_events_total{comm="cat",arg0="0"} 250
#include <algorithm>
#include <cstring>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/trace/aggregate.h"
#include "programs/trace/decode.h"
#include "programs/trace/histogram.h"
#include "programs/trace/stack_text.h"
#include "runtime/base/bytes.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kBar = 40;
constexpr int64_t kExactInJson = int64_t{1} << 53;

bool is_time(const Measure &m) { return m.value.source == "duration"; }

class Output {
  public:
    Output(std::string &out, const GroupView &view, const std::vector<GroupRow> &rows)
        : out_(out), v_(view), o_(view.options), rows_(rows), shown_(std::min(view.top, rows.size())) {}

    // --- Text

    void text() {
        if (v_.interval && rows_.empty()) return;
        if (v_.interval) append(out_, "{}\n", render::rfc3339(v_.interval->wall_ns));
        if (has_histograms() || o_.by_stack())
            for (size_t i = 0; i < shown_; ++i) block(rows_[i]);
        else
            table();
        if (shown_ < rows_.size()) append(out_, "{} more: {} events\n", rows_.size() - shown_, render::grouped(left_events()));
        if (v_.interval) out_ += '\n';
    }

    // --- JSON

    void json() {
        for (size_t i = 0; i < shown_; ++i) json_row(rows_[i]);
        if (shown_ == rows_.size()) return;
        render::JsonLine line(out_, "more_groups");
        interval(line);
        line.number("groups", rows_.size() - shown_).number("count", left_events());
    }

    // --- CSV (RFC 4180)

    void csv() {
        if (v_.first) {
            std::string head;
            if (v_.interval) head += "time,";
            for (const GroupKey &key : o_.by) render::append_csv(head, key.name()), head += ',';
            head += "count";
            for (const Measure &m : o_.measures)
                if (!m.is_histogram()) head += ',', render::append_csv(head, m.name());
            if (has_histograms()) head += ",histogram,bucket_least,bucket_most,bucket_count";
            append(out_, "{}\r\n", head);
        }
        for (size_t i = 0; i < shown_; ++i) csv_row(rows_[i]);
    }

    // --- Prometheus

    void prometheus() {
        samples("events_total", "counter", "events", [&](const GroupRow &row) { out_ += std::to_string(row.count); });
        for (size_t i = 0; i < o_.measures.size(); ++i) {
            const Measure &m = o_.measures[i];
            const std::string name = metric_name(m, has_sign(i));
            if (m.is_histogram())
                buckets(i, name);
            else
                samples(name, m.kind == Measure::Kind::sum && !has_sign(i) ? "counter" : "gauge", m.name(),
                        [&](const GroupRow &row) { number(out_, row, i, true); });
        }
    }

  private:
    [[nodiscard]] bool has_histograms() const {
        return std::any_of(o_.measures.begin(), o_.measures.end(), [](const Measure &m) { return m.is_histogram(); });
    }
    [[nodiscard]] uint64_t left_events() const {
        uint64_t out = 0;
        for (size_t i = shown_; i < rows_.size(); ++i) out += rows_[i].count;
        return out;
    }
    /// Whether the table has a column of how many.
    [[nodiscard]] bool with_count() const { return v_.count || o_.measures.empty(); }

    // --- A value of a key

    struct KeyText {
        std::string text;
        bool readable = true;
    };
    [[nodiscard]] uint64_t number_at(const GroupRow &row, size_t i) const {
        return load<uint64_t>(reinterpret_cast<const std::byte *>(row.key.data()) + v_.layout.parts[i].offset);
    }
    [[nodiscard]] KeyText key_text(const GroupRow &row, size_t i) const {
        const GroupLayout::Part &part = v_.layout.parts[i];
        const char *at = row.key.data() + part.offset;
        KeyText out;
        if (part.text) {
            out.readable = static_cast<unsigned char>(at[0]) != kUnreadableText;
            if (out.readable) out.text.assign(at, strnlen(at, part.bytes));
            return out;
        }
        const uint64_t raw = number_at(row, i);
        if (part.kind == GroupKey::Kind::stack)
            out.text = folded(v_.stack(raw));
        else if (part.kind == GroupKey::Kind::function)
            out.text = raw < v_.functions.size() ? v_.functions[raw] : format("{}", raw);
        else
            value(out.text, part, raw, false);
        return out;
    }
    void value(std::string &out, const GroupLayout::Part &part, uint64_t raw, bool json) const {
        Type type = part.type;
        constexpr Show kAsTheyAre[] = {Show::integer, Show::boolean, Show::character, Show::enumeration, Show::address};
        if (std::find(std::begin(kAsTheyAre), std::end(kAsTheyAre), type.show) == std::end(kAsTheyAre))
            type.show = type.show == Show::descriptor ? Show::integer : Show::address;
        bool unreadable = false;
        append_value(out, type, raw, nullptr, {}, v_.kernel, json, unreadable);
    }

    // --- A measure that is one number

    [[nodiscard]] bool has_sign(size_t i) const { return v_.layout.cells[i].is_signed; }
    [[nodiscard]] double average(const GroupRow &row, size_t i) const {
        const uint64_t sum = row.cells[i][0];
        if (row.count == 0) return 0;
        return (has_sign(i) ? static_cast<double>(static_cast<int64_t>(sum)) : static_cast<double>(sum)) /
               static_cast<double>(row.count);
    }
    void number(std::string &out, const GroupRow &row, size_t i, bool plain) const {
        const Measure &m = o_.measures[i];
        const uint64_t raw = row.cells[i][0];
        if (row.count == 0 && m.kind != Measure::Kind::sum) return void(out += plain ? "NaN" : "-");
        const bool negative = has_sign(i) && static_cast<int64_t>(raw) < 0;
        if (m.kind == Measure::Kind::average) {
            const double mean = average(row, i);
            if (!plain && is_time(m)) return append_duration(out, static_cast<uint64_t>(mean));
            return append(out, "{:.3f}", mean);
        }
        if (!plain && is_time(m)) return append_duration(out, raw);
        if (negative) out += '-';
        const uint64_t magnitude = negative ? -raw : raw;
        out += plain ? std::to_string(magnitude) : render::grouped(magnitude);
    }

    // --- Text

    void table() {
        std::vector<std::vector<std::string>> lines(1);
        for (const GroupKey &key : o_.by) lines[0].push_back(render::printable(key.name()));
        if (with_count()) lines[0].emplace_back("count");
        for (const Measure &m : o_.measures) lines[0].push_back(render::printable(m.name()));
        for (size_t i = 0; i < shown_; ++i) {
            const GroupRow &row = rows_[i];
            std::vector<std::string> &line = lines.emplace_back();
            for (size_t k = 0; k < o_.by.size(); ++k) line.push_back(shown_key(row, k));
            if (with_count()) line.push_back(render::grouped(row.count));
            for (size_t m = 0; m < o_.measures.size(); ++m) number(line.emplace_back(), row, m, false);
        }
        std::vector<size_t> widths(lines[0].size());
        for (const auto &line : lines)
            for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], render::columns(line[c]));
        for (const auto &line : lines) {
            std::string text;
            for (size_t c = 0; c < line.size(); ++c) {
                const std::string gap(widths[c] - render::columns(line[c]), ' ');
                const bool left = c < o_.by.size() && (v_.layout.parts[c].text || o_.by[c].kind == GroupKey::Kind::function);
                if (c > 0) text += "  ";
                text += left ? line[c] + gap : gap + line[c];
            }
            text.resize(text.find_last_not_of(' ') + 1);
            append(out_, "{}\n", text);
        }
    }
    [[nodiscard]] std::string shown_key(const GroupRow &row, size_t i) const {
        const KeyText key = key_text(row, i);
        return key.readable ? render::printable(key.text) : "?";
    }

    void block(const GroupRow &row) {
        std::string head;
        for (size_t i = 0; i < o_.by.size(); ++i)
            if (o_.by[i].kind != GroupKey::Kind::stack)
                append(head, "{}{} {}", head.empty() ? "" : ", ", render::printable(o_.by[i].name()), shown_key(row, i));
        append(out_, "{}{}{} event{}", head, head.empty() ? "" : ": ", render::grouped(row.count), row.count == 1 ? "" : "s");
        for (size_t i = 0; i < o_.measures.size(); ++i) {
            if (o_.measures[i].is_histogram()) continue;
            append(out_, ", {} ", render::printable(o_.measures[i].name()));
            number(out_, row, i, false);
        }
        out_ += '\n';
        for (size_t i = 0; i < o_.by.size(); ++i)
            if (o_.by[i].kind == GroupKey::Kind::stack) stack(v_.stack(number_at(row, i)));
        for (size_t i = 0; i < o_.measures.size(); ++i)
            if (o_.measures[i].is_histogram()) histogram(row, i);
        out_ += '\n';
    }

    void stack(const NamedStack &stack) {
        if (stack.kernel.empty() && stack.user.empty() && !stack.user_error) return void(out_ += "        [unknown]\n");
        append_stack_lines(out_, stack);
    }

    void histogram(const GroupRow &row, size_t index) {
        const Measure &m = o_.measures[index];
        const std::vector<uint64_t> &buckets = row.cells[index];
        append(out_, "  {}\n", render::printable(m.name()));
        const auto is_filled = [](uint64_t n) { return n != 0; };
        const auto first = static_cast<size_t>(std::find_if(buckets.begin(), buckets.end(), is_filled) - buckets.begin());
        size_t end = buckets.size();
        while (end > first && buckets[end - 1] == 0) --end;
        uint64_t highest = 1;
        size_t width = 10;
        std::vector<std::string> labels;
        for (size_t i = first; i < end; ++i) {
            highest = std::max(highest, buckets[i]);
            labels.push_back(label(m, static_cast<uint32_t>(i)));
            width = std::max(width, labels.back().size());
        }
        for (size_t i = first; i < end; ++i) {
            const uint64_t n = buckets[i];
            const auto bar = static_cast<size_t>(static_cast<long double>(n) * kBar / static_cast<long double>(highest));
            append(out_, "  {:<{}} {:>10} |{:<{}}|\n", labels[i - first], width, render::grouped(n),
                   std::string(n ? std::max<size_t>(bar, 1) : 0, '#'), kBar);
        }
    }

    static std::string edge(const Measure &m, Int128 value) {
        const bool negative = value < 0;
        const auto magnitude = static_cast<Uint128>(negative ? -value : value);
        if (is_time(m) && !negative && magnitude <= UINT64_MAX) return duration(static_cast<uint64_t>(magnitude));
        std::string out = negative ? "-" : "";
        if (m.kind == Measure::Kind::log2 && magnitude >= 1024) {
            constexpr std::string_view kUnits = "KMGTPEZ";
            size_t unit = 0;
            Uint128 shown = magnitude / 1024;
            while (shown >= 1024 && unit + 1 < kUnits.size()) shown /= 1024, ++unit;
            return format("{}{}{}", out, static_cast<uint64_t>(shown), kUnits[unit]);
        }
        return out + std::to_string(static_cast<uint64_t>(magnitude));
    }
    static std::string label(const Measure &m, uint32_t index) {
        const Measure::Bucket bucket = m.bucket(index);
        if (bucket.has_least && bucket.has_most && bucket.least == bucket.most && m.kind == Measure::Kind::log2)
            return format("[{}]", edge(m, bucket.least));
        return format("{}{}, {})", bucket.has_least ? "[" : "(", bucket.has_least ? edge(m, bucket.least) : "...",
                      bucket.has_most ? edge(m, bucket.most + 1) : "...");
    }

    // --- JSON

    void interval(render::JsonLine &line) const {
        if (!v_.interval) return;
        line.text("time", render::rfc3339(v_.interval->wall_ns)).number("t_ns", v_.interval->t_ns);
        line.number("interval", v_.interval->number);
    }
    static void json_number(std::string &out, Int128 value) {
        const bool negative = value < 0;
        const auto magnitude = static_cast<uint64_t>(negative ? -value : value);
        const bool quoted = magnitude > static_cast<uint64_t>(kExactInJson);
        append(out, "{0}{1}{2}{0}", quoted ? "\"" : "", negative ? "-" : "", magnitude);
    }
    void json_row(const GroupRow &row) {
        render::JsonLine line(out_, "group");
        interval(line);
        {
            render::JsonObject by(line.raw("by"));
            for (size_t i = 0; i < o_.by.size(); ++i) {
                const GroupLayout::Part &part = v_.layout.parts[i];
                const KeyText key = key_text(row, i);
                std::string &out = by.key(o_.by[i].name());
                if (!key.readable)
                    out += "null";
                else if (part.kind == GroupKey::Kind::stack)
                    append_json_stack(out, v_.stack(number_at(row, i)));
                else if (part.text || part.kind == GroupKey::Kind::function)
                    render::append_json(out, key.text);
                else
                    value(out, part, number_at(row, i), true);
            }
        }
        line.number("count", row.count);
        constexpr Measure::Kind kKinds[] = {Measure::Kind::sum,  Measure::Kind::average, Measure::Kind::least,
                                            Measure::Kind::most, Measure::Kind::log2,    Measure::Kind::linear};
        for (const Measure::Kind kind : kKinds) {
            const auto of_kind = [&](const Measure &m) { return m.kind == kind; };
            const auto found = std::find_if(o_.measures.begin(), o_.measures.end(), of_kind);
            if (found == o_.measures.end()) continue;
            render::JsonObject all(line.raw(found->word()));
            for (size_t i = 0; i < o_.measures.size(); ++i)
                if (of_kind(o_.measures[i])) json_measure(all.key(o_.measures[i].value.source), row, i);
        }
    }
    void json_measure(std::string &out, const GroupRow &row, size_t i) const {
        const Measure &m = o_.measures[i];
        if (!m.is_histogram()) {
            const uint64_t raw = row.cells[i][0];
            if (row.count == 0 && m.kind != Measure::Kind::sum) return void(out += "null");
            if (m.kind == Measure::Kind::average) return append(out, "{:.3f}", average(row, i));
            return json_number(out, has_sign(i) ? static_cast<Int128>(static_cast<int64_t>(raw)) : raw);
        }
        out += '[';
        bool first = true;
        for (uint32_t b = 0; b < row.cells[i].size(); ++b) {
            if (row.cells[i][b] == 0) continue;
            const Measure::Bucket bucket = m.bucket(b);
            out += first ? "{\"least\":" : ",{\"least\":";
            first = false;
            bucket.has_least ? json_number(out, bucket.least) : void(out += "null");
            out += ",\"most\":";
            bucket.has_most ? json_number(out, bucket.most) : void(out += "null");
            append(out, ",\"count\":{}}}", row.cells[i][b]);
        }
        out += ']';
    }

    // --- CSV

    static void csv_number(std::string &out, Int128 value) {
        const bool negative = value < 0;
        append(out, "{}{}", negative ? "-" : "", static_cast<uint64_t>(negative ? -value : value));
    }
    void csv_row(const GroupRow &row) {
        std::string line;
        if (v_.interval) append(line, "{},", render::rfc3339(v_.interval->wall_ns));
        for (size_t i = 0; i < o_.by.size(); ++i) render::append_csv(line, key_text(row, i).text), line += ',';
        append(line, "{}", row.count);
        for (size_t i = 0; i < o_.measures.size(); ++i)
            if (!o_.measures[i].is_histogram()) line += ',', number(line, row, i, true);
        if (!has_histograms()) return append(out_, "{}\r\n", line);
        for (size_t i = 0; i < o_.measures.size(); ++i) {
            const Measure &m = o_.measures[i];
            for (uint32_t b = 0; m.is_histogram() && b < row.cells[i].size(); ++b) {
                if (row.cells[i][b] == 0) continue;
                const Measure::Bucket bucket = m.bucket(b);
                append(out_, "{},", line);
                render::append_csv(out_, m.name());
                out_ += ',';
                if (bucket.has_least) csv_number(out_, bucket.least);
                out_ += ',';
                if (bucket.has_most) csv_number(out_, bucket.most);
                append(out_, ",{}\r\n", row.cells[i][b]);
            }
        }
    }

    // --- Prometheus

    // Letters, digits and _ are what names have.
    static std::string as_name(std::string_view text) {
        std::string out;
        for (const char c : text) {
            const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
            if (fits)
                out += c;
            else if (!out.empty() && out.back() != '_')
                out += '_';
        }
        while (!out.empty() && out.back() == '_') out.pop_back();
        return out.empty() || (out[0] >= '0' && out[0] <= '9') ? '_' + out : out;
    }
    static std::string metric_name(const Measure &m, bool is_signed) {
        const bool grows = m.kind == Measure::Kind::sum && !is_signed;
        return format("{}_{}{}", as_name(m.value.source), m.word(), grows ? "_total" : "");
    }
    void labels(const GroupRow &row, std::string_view le = {}) {
        if (o_.by.empty() && le.empty()) return;
        out_ += '{';
        for (size_t i = 0; i < o_.by.size(); ++i) {
            append(out_, "{}{}=", i ? "," : "", as_name(o_.by[i].name()));
            render::append_label(out_, key_text(row, i).text);
        }
        if (!le.empty()) append(out_, "{}le=\"{}\"", o_.by.empty() ? "" : ",", le);
        out_ += '}';
    }
    void head(std::string_view name, std::string_view type, std::string_view what) {
        append(out_, "# HELP rawbpf_group_{} {} of each group\n# TYPE rawbpf_group_{} {}\n", name, render::printable(what), name,
               type);
    }
    template <class Value> void samples(std::string_view name, std::string_view type, std::string_view what, Value &&value) {
        head(name, type, what);
        for (size_t i = 0; i < shown_; ++i) {
            append(out_, "rawbpf_group_{}", name);
            labels(rows_[i]);
            out_ += ' ';
            value(rows_[i]);
            out_ += '\n';
        }
    }
    void buckets(size_t index, std::string_view name) {
        const Measure &m = o_.measures[index];
        head(name, "histogram", m.name());
        for (size_t i = 0; i < shown_; ++i) {
            const std::vector<uint64_t> &buckets = rows_[i].cells[index];
            uint64_t so_far = 0;
            for (uint32_t b = 0; b < buckets.size(); ++b) {
                so_far += buckets[b];
                const Measure::Bucket bucket = m.bucket(b);
                if (!bucket.has_most || (m.kind == Measure::Kind::log2 && buckets[b] == 0)) continue;
                std::string most;
                csv_number(most, bucket.most);
                append(out_, "rawbpf_group_{}_bucket", name);
                labels(rows_[i], most);
                append(out_, " {}\n", so_far);
            }
            append(out_, "rawbpf_group_{}_bucket", name);
            labels(rows_[i], "+Inf");
            append(out_, " {}\nrawbpf_group_{}_count", so_far, name);
            labels(rows_[i]);
            append(out_, " {}\n", so_far);
        }
    }

    std::string &out_;
    const GroupView &v_;
    const AggregateOptions &o_;
    const std::vector<GroupRow> &rows_;
    size_t shown_;
};

} // namespace

void append_groups(std::string &out, GroupFormat format, const GroupView &view, const std::vector<GroupRow> &rows) {
    Output output(out, view, rows);
    switch (format) {
    case GroupFormat::text: return output.text();
    case GroupFormat::json: return output.json();
    case GroupFormat::csv: return output.csv();
    case GroupFormat::prometheus: return output.prometheus();
    }
}

} // namespace rawbpf::inline v0::trace
