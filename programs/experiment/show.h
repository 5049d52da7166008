// Rows and records as text for people, as JSON lines and as CSV. PURE.
#pragma once

#include <string>

#include "programs/experiment/experiment.h"
#include "programs/experiment/figures.h"

namespace rawbpf::inline v0::experiment {

struct ShowOptions {
    Style style = Style::table;
    uint64_t top = 0; ///< rows; 0: all
    const btf::Btf *types = nullptr;
    Names *names = nullptr;
};

/// Appends a table with a heading, or a histogram for each key. A map without entries says so.
void append_table(std::string &out, const FigureTable &table, const ShowOptions &options);
/// {"type":"entry","map","key":{...},"value"} for each row: a number, an object, or the buckets of a histogram.
void append_json_rows(std::string &out, const FigureTable &table, const ShowOptions &options);
/// A heading, then a line a row, or a line a bucket; RFC 4180.
void append_csv_rows(std::string &out, const FigureTable &table, const ShowOptions &options);

/// A record by its format, with the end of the line; without a format "name field=value field=value".
void append_event(std::string &out, const EventView &view, const Format *format, Bytes record, const ShowOptions &options);
/// {"type":"event","event","t_ns","fields":{...}}.
void append_json_event(std::string &out, const EventView &view, Bytes record, const ShowOptions &options);

/// A whole number as it is, others with four digits that count.
[[nodiscard]] std::string number_text(double value);

} // namespace rawbpf::inline v0::experiment
