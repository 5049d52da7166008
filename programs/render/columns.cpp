// Aligned columns: every cell is measured before the first is written.
#include "programs/render/columns.h"

#include <algorithm>
#include <cstdint>

#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {

void Columns::row(std::vector<std::string> cells) {
    for (std::string &cell : cells)
        if (plain_start(cell) != cell.size()) cell = printable(cell);
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

void Columns::append_to(std::string &out) const {
    std::vector<size_t> widths;
    for (const Column &column : columns_) widths.push_back(column.title.size());
    for (const auto &row : rows_)
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
    const auto line = [&](auto &&cell) {
        const size_t from = out.size();
        for (size_t i = 0; i < columns_.size(); ++i) {
            const std::string_view text = cell(i);
            const size_t pad = widths[i] - columns(text);
            if (i != 0) out += "  ";
            if (columns_[i].right) out.append(pad, ' ');
            out += text;
            if (!columns_[i].right) out.append(pad, ' ');
        }
        while (out.size() > from && out.back() == ' ') out.pop_back();
        out += '\n';
    };
    line([&](size_t i) { return columns_[i].title; });
    for (const auto &row : rows_) line([&](size_t i) { return std::string_view(row[i]); });
}

std::string duration_text(uint64_t ns) {
    constexpr uint64_t kSecond = 1'000'000'000;
    if (ns < 1000) return format("{} ns", ns);
    if (ns < 1'000'000) return format("{:.1f} us", static_cast<double>(ns) / 1e3);
    if (ns < kSecond) return format("{:.1f} ms", static_cast<double>(ns) / 1e6);
    if (ns < 60 * kSecond) return format("{:.1f} s", static_cast<double>(ns) / 1e9);
    if (ns < 3600 * kSecond) return format("{} m", ns / (60 * kSecond));
    if (ns < 48 * 3600 * kSecond) return format("{} h", ns / (3600 * kSecond));
    return format("{} d", ns / (24 * 3600 * kSecond));
}

} // namespace rawbpf::inline v0::render
