// What people see of a map:
//
//      comm            reads              cat
//      cat                99              [1, 2)         1 |####                |
//      sshd                3              [2, 4)        12 |####################|
//
// Columns are as wide as what is in them, numbers stand at the right. Texts come from other processes, so whatever would disturb
// a terminal is replaced.
#include "programs/experiment/show.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kBar = 40;

bool is_number(const Column &column) {
    return column.show == Show::number || column.show == Show::signed_number || column.show == Show::hex;
}
bool is_histogram(const MapView &view) { return view.figures == Figures::log2 || view.figures == Figures::linear; }

std::string whole(const FigureTable &table, int64_t value) {
    return table.is_signed ? format("{}", value) : format("{}", static_cast<uint64_t>(value));
}

struct Cell {
    std::string name, text;
    bool right = false;
};
// What is behind the key: a value's members, a sum, or what was asked of the stats.
std::vector<Cell> value_cells(const FigureTable &table, const FigureRow &row, const ShowOptions &options) {
    const MapView &view = table.view;
    std::vector<Cell> out;
    switch (view.figures) {
    case Figures::plain:
        for (const Column &column : view.value)
            out.push_back({column.name, cell(column, bytes_of(row.value), options.types, options.names), is_number(column)});
        break;
    case Figures::sum: out.push_back({view.figure.empty() ? "value" : view.figure, whole(table, row.sum), true}); break;
    case Figures::stats:
        if (view.figure == "stats") {
            out.push_back({"count", format("{}", row.count), true});
            out.push_back({"avg", number_text(table.average(row)), true});
            out.push_back({"min", whole(table, row.least), true});
            out.push_back({"max", whole(table, row.most), true});
            out.push_back({"sum", whole(table, row.sum), true});
        } else {
            out.push_back({view.figure, number_text(table.main_number(row).value_or(0)), true});
        }
        break;
    case Figures::log2:
    case Figures::linear: out.push_back({"count", format("{}", row.count), true}); break;
    }
    return out;
}

size_t shown(const FigureTable &table, const ShowOptions &options) {
    return options.top == 0 ? table.rows.size() : std::min<size_t>(table.rows.size(), options.top);
}

void append_columns(std::string &out, const std::vector<std::vector<Cell>> &lines) {
    std::vector<size_t> widths;
    for (const std::vector<Cell> &line : lines) {
        widths.resize(std::max(widths.size(), line.size()));
        for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], render::columns(line[i].text));
    }
    for (const std::vector<Cell> &line : lines) {
        std::string text;
        for (size_t i = 0; i < line.size(); ++i) {
            const std::string padding(widths[i] - render::columns(line[i].text), ' ');
            if (i != 0) text += "  ";
            text += line[i].right ? padding + line[i].text : line[i].text + padding;
        }
        while (text.ends_with(' ')) text.pop_back();
        (out += text) += '\n';
    }
}

std::string edge(int64_t value) {
    const auto magnitude = static_cast<uint64_t>(value < 0 ? -value : value);
    for (const auto &[letter, shift] : {std::pair('G', 30), std::pair('M', 20), std::pair('K', 10)})
        if (magnitude >= uint64_t{1} << shift && magnitude % (uint64_t{1} << shift) == 0)
            return format("{}{}{}", value < 0 ? "-" : "", magnitude >> shift, letter);
    return format("{}", value);
}
std::string bucket_text(const MapView &view, size_t bucket) {
    const BucketRange range = bucket_range(view, bucket);
    if (view.figures == Figures::log2 && bucket == 0) return view.is_signed ? "(..., 1)" : "[0]";
    if (range.has_least && range.has_most && range.least == range.most && view.figures == Figures::log2)
        return format("[{}]", range.least);
    const std::string least = view.figures == Figures::log2 ? edge(range.least) : format("{}", range.least);
    const std::string most = view.figures == Figures::log2 ? edge(range.most + 1) : format("{}", range.most + 1);
    return format("{}{}, {})", range.has_least ? "[" : "(", range.has_least ? least : "...", range.has_most ? most : "...");
}

void append_buckets(std::string &out, const MapView &view, const std::vector<uint64_t> &buckets) {
    const auto filled = [](uint64_t n) { return n != 0; };
    const size_t first = static_cast<size_t>(std::find_if(buckets.begin(), buckets.end(), filled) - buckets.begin());
    size_t end = buckets.size();
    while (end > first && buckets[end - 1] == 0) --end;
    uint64_t highest = 1;
    size_t width = 14;
    for (size_t i = first; i < end; ++i) {
        highest = std::max(highest, buckets[i]);
        width = std::max(width, bucket_text(view, i).size());
    }
    for (size_t i = first; i < end; ++i) {
        const auto bar = static_cast<size_t>(static_cast<double>(buckets[i]) * kBar / static_cast<double>(highest));
        append(out, "{:<{}} {:>9} |{:<{}}|\n", bucket_text(view, i), width, buckets[i], std::string(bar, '#'), kBar);
    }
}

// An array whose index is a bucket: of a program that counts so by itself.
void append_array_histogram(std::string &out, const FigureTable &table, Style style) {
    MapView view = table.view;
    view.figures = style == Style::log2 ? Figures::log2 : Figures::linear;
    view.step = 1;
    view.to = INT32_MAX;
    view.from = 1;
    view.buckets = UINT32_MAX;
    std::vector<uint64_t> buckets;
    for (const FigureRow &row : table.rows) {
        const int64_t index = view.key.empty() ? -1 : integer(view.key[0], bytes_of(row.key)).value_or(-1);
        const std::optional<double> number = table.main_number(row);
        if (index < 0 || index > 1000 || !number) continue;
        const auto at = static_cast<size_t>(index) + (style == Style::log2 ? 1 : 0);
        if (buckets.size() <= at) buckets.resize(at + 1);
        buckets[at] += static_cast<uint64_t>(*number);
    }
    if (style == Style::log2) return append_buckets(out, view, buckets);
    uint64_t highest = 1;
    for (uint64_t n : buckets) highest = std::max(highest, n);
    for (size_t i = 0; i < buckets.size(); ++i)
        if (buckets[i] != 0)
            append(out, "{:<14} {:>9} |{:<{}}|\n", i, buckets[i],
                   std::string(static_cast<size_t>(static_cast<double>(buckets[i]) * kBar / static_cast<double>(highest)), '#'),
                   kBar);
}

uint64_t word_of(Bytes bytes, size_t at) {
    uint64_t out = 0;
    if (at + 8 <= bytes.size()) std::memcpy(&out, bytes.data() + at, 8);
    return out;
}

} // namespace

std::string number_text(double value) {
    if (is_whole(value) && std::abs(value) < 1e18) return format("{}", static_cast<int64_t>(value));
    std::string text = format("{:.4g}", value);
    if (std::abs(value) >= 1000 && std::abs(value) < 1e15) text = format("{:.1f}", value);
    return text;
}

void append_table(std::string &out, const FigureTable &table, const ShowOptions &options) {
    if (table.rows.empty()) {
        append(out, "{}: nothing\n", table.view.map);
        return;
    }
    const MapView &view = table.view;
    if (is_histogram(view) && options.style != Style::table) {
    } else if (!is_histogram(view) && (options.style == Style::hist || options.style == Style::log2)) {
        return append_array_histogram(out, table, options.style);
    }
    if (is_histogram(view)) {
        for (size_t i = 0; i < shown(table, options); ++i) {
            std::string key;
            for (const Column &column : view.key)
                append(key, "{}{} = {}", key.empty() ? "" : ", ", column.name,
                       render::printable(cell(column, bytes_of(table.rows[i].key), options.types, options.names)));
            if (!key.empty()) append(out, "{}{}\n", i == 0 ? "" : "\n", key);
            append_buckets(out, view, table.rows[i].buckets);
        }
        return;
    }
    std::vector<std::vector<Cell>> lines;
    for (size_t i = 0; i < shown(table, options); ++i) {
        std::vector<Cell> line;
        for (const Column &column : view.key)
            line.push_back({column.name,
                            render::printable(cell(column, bytes_of(table.rows[i].key), options.types, options.names)),
                            is_number(column)});
        for (Cell &value : value_cells(table, table.rows[i], options)) {
            value.text = render::printable(value.text);
            if (value.name == "value" || view.value.size() <= 1)
                value.name = view.figures == Figures::stats && view.figure == "stats" ? value.name : view.map;
            line.push_back(std::move(value));
        }
        lines.push_back(std::move(line));
    }
    std::vector<Cell> heading;
    for (const Cell &each : lines[0]) heading.push_back({each.name, each.name, each.right});
    if (!view.key.empty() || heading.size() > 1)
        lines.insert(lines.begin(), std::move(heading));
    else
        lines[0].insert(lines[0].begin(), {view.map, view.map, false});
    append_columns(out, lines);
    if (shown(table, options) < table.rows.size()) append(out, "({} more)\n", table.rows.size() - shown(table, options));
}

void append_json_rows(std::string &out, const FigureTable &table, const ShowOptions &options) {
    const MapView &view = table.view;
    for (size_t i = 0; i < shown(table, options); ++i) {
        const FigureRow &row = table.rows[i];
        render::JsonLine line(out, "entry");
        line.text("map", view.map);
        {
            render::JsonObject key(line.raw("key"));
            for (const Column &column : view.key)
                key.key(column.name) += json_cell(column, bytes_of(row.key), options.types, options.names);
        }
        std::string &value = line.raw("value");
        switch (view.figures) {
        case Figures::plain:
            if (view.value.size() == 1) {
                value += json_cell(view.value[0], bytes_of(row.value), options.types, options.names);
            } else {
                render::JsonObject members(value);
                for (const Column &column : view.value)
                    members.key(column.name) += json_cell(column, bytes_of(row.value), options.types, options.names);
            }
            break;
        case Figures::sum: value += whole(table, row.sum); break;
        case Figures::stats: {
            render::JsonObject stats(value);
            stats.number("count", row.count);
            stats.raw("sum") += whole(table, row.sum);
            stats.raw("min") += whole(table, row.least);
            stats.raw("max") += whole(table, row.most);
            break;
        }
        case Figures::log2:
        case Figures::linear:
            value += '[';
            for (size_t b = 0, n = 0; b < row.buckets.size(); ++b) {
                if (row.buckets[b] == 0) continue;
                const BucketRange range = bucket_range(view, b);
                if (n++ != 0) value += ',';
                render::JsonObject bucket(value);
                range.has_least ? bucket.signed_number("least", range.least) : bucket.null("least");
                range.has_most ? bucket.signed_number("most", range.most) : bucket.null("most");
                bucket.number("count", row.buckets[b]);
            }
            value += ']';
            break;
        }
    }
}

void append_csv_rows(std::string &out, const FigureTable &table, const ShowOptions &options) {
    const MapView &view = table.view;
    for (size_t i = 0; i < shown(table, options); ++i) {
        const FigureRow &row = table.rows[i];
        const std::vector<Cell> values = value_cells(table, row, options);
        if (i == 0) {
            out += "map";
            for (const Column &column : view.key) render::append_csv(out += ',', column.name);
            if (is_histogram(view))
                out += ",least,most,count";
            else
                for (const Cell &each : values) render::append_csv(out += ',', each.name);
            out += "\r\n";
        }
        std::string begin = view.map;
        for (const Column &column : view.key)
            render::append_csv(begin += ',', cell(column, bytes_of(row.key), options.types, options.names));
        if (!is_histogram(view)) {
            out += begin;
            for (const Cell &each : values) render::append_csv(out += ',', each.text);
            out += "\r\n";
            continue;
        }
        for (size_t b = 0; b < row.buckets.size(); ++b) {
            if (row.buckets[b] == 0) continue;
            const BucketRange range = bucket_range(view, b);
            append(out, "{},{},{},{}\r\n", begin, range.has_least ? format("{}", range.least) : "",
                   range.has_most ? format("{}", range.most) : "", row.buckets[b]);
        }
    }
}

void append_event(std::string &out, const EventView &view, const Format *form, Bytes record, const ShowOptions &options) {
    std::string line;
    if (!form) {
        line = view.event;
        for (const Column &column : view.fields)
            append(line, " {}={}", column.name, cell(column, record, options.types, options.names));
        render::append_line(out, line);
        return;
    }
    for (const Piece &piece : form->pieces) {
        line += piece.words;
        if (!piece.has_value) continue;
        for (const Column &column : view.fields) {
            if (column.name != piece.field) continue;
            const std::string text = cell(column, record, options.types, options.names);
            const size_t columns = render::columns(text);
            const std::string padding(piece.width > columns ? piece.width - columns : 0, ' ');
            line += piece.right ? padding + text : text + padding;
        }
    }
    while (line.ends_with(' ')) line.pop_back();
    render::append_line(out, line);
}

void append_json_event(std::string &out, const EventView &view, Bytes record, const ShowOptions &options) {
    render::JsonLine line(out, "event");
    line.text("event", view.event);
    if (view.numbered) line.number("t_ns", word_of(record, 0));
    render::JsonObject fields(line.raw("fields"));
    for (const Column &column : view.fields) fields.key(column.name) += json_cell(column, record, options.types, options.names);
}

} // namespace rawbpf::inline v0::experiment
