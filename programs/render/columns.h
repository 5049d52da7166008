// Rows of text in aligned columns, for listings.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rawbpf::inline v0::render {

/// One column. Numbers stand at the right.
struct Column {
    std::string_view title;
    bool right = false;
};

/// Collects rows, and writes them as wide as they need to be. Cells are made printable. The last column is never padded.
class Columns {
  public:
    Columns(std::initializer_list<Column> columns) : columns_(columns) {}
    explicit Columns(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// One cell a column; missing ones are empty.
    void row(std::vector<std::string> cells);
    [[nodiscard]] size_t rows() const { return rows_.size(); }
    /// The titles and all rows; two spaces between columns.
    void append_to(std::string &out) const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// Nanoseconds as people say them: "350 ns", "12.5 us", "3.2 s", "5 m", "2 h", "4 d".
[[nodiscard]] std::string duration_text(uint64_t ns);

} // namespace rawbpf::inline v0::render
