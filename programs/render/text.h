// Making text that somebody else chose (comms, symbols, paths) safe to stand in a line, a column or an XML document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::render {

/// A comm as one word: control characters, spaces, `\`, `;` and bytes that aren't UTF-8 as `\xNN`; "[unknown]" for an empty one.
void append_comm(std::string &out, std::string_view comm);

/// A symbol as one element of a `;`-separated list: `;` becomes `:` as in stackcollapse-perf, control characters and bytes that
/// aren't UTF-8 `\xNN`, and so does a space at either end. Other spaces stay (C++ names have them). "[unknown]" for an empty one.
void append_symbol(std::string &out, std::string_view symbol);

/// A frame's name: its symbol, or else its module in brackets ("[libc.so.6]"), as stackcollapse-perf has it; empty where neither
/// is known.
[[nodiscard]] std::string frame_label(const Frame &frame);

/// The same, where functions are told apart that have no name: "[libc.so.6+0x26d90]", by where the function begins in the file.
[[nodiscard]] std::string function_label(const Frame &frame);

/// Text for XML content or an attribute: & < > " ' escaped; bytes that aren't UTF-8, and characters that XML 1.0 forbids or
/// discourages (C1 controls), replaced by U+FFFD.
void append_xml(std::string &out, std::string_view text);

/// A text element of an SVG at (x, y), the left end of its base line unless the class `cls` says otherwise. Empty: no class.
void append_svg_text(std::string &out, int x, int y, std::string_view cls, std::string_view words);
/// How wide so many columns of a picture's text are at 12 px: in the widest of the monospaced fonts that its style names.
[[nodiscard]] constexpr int svg_width(size_t columns) { return static_cast<int>(columns * 724 / 100) + 1; }

/// How many bytes at the start of a text are printable ASCII: what nobody has to look at twice.
[[nodiscard]] size_t plain_start(std::string_view text);

/// Text in double quotes, as C writes it: \" \\ \n \t; other control characters and bytes that aren't UTF-8 as \xNN.
void append_quoted(std::string &out, std::string_view text);

/// The running request's labels in a line of text: {trace_id="a0a1", user="alice"}.
void append_labels(std::string &out, const Labels &labels);
/// And as the outermost frames of folded stacks: "trace_id=a0a1;user=alice;".
void append_folded_labels(std::string &out, const Labels &labels);

/// Text in double quotes, as a label's value in Prometheus's exposition format: \\ \" \n; bytes that aren't UTF-8 as U+FFFD.
void append_label(std::string &out, std::string_view value);

/// Text for a terminal: control characters (escape sequences among them), those that change the order of
/// text (U+202E and its like), and bytes that aren't UTF-8 replaced by U+FFFD.
void append_printable(std::string &out, std::string_view text);
[[nodiscard]] std::string printable(std::string_view text);
/// The same with an end of line behind it.
void append_line(std::string &out, std::string_view text);

/// Text as it is, but for bytes that aren't UTF-8: replaced by U+FFFD.
void append_utf8(std::string &out, std::string_view text);

/// At most `columns` characters of UTF-8 text; a longer one ends in `ellipsis`.
[[nodiscard]] std::string cut(std::string_view text, size_t columns, std::string_view ellipsis = "...");
/// Number of characters of UTF-8 text (each taken as one column).
[[nodiscard]] size_t columns(std::string_view text);

/// "/usr/lib/libc.so.6" -> "libc.so.6".
[[nodiscard]] std::string_view base_name(std::string_view path);
/// ": page-faults, one in 10", of a run that counts_events().
[[nodiscard]] std::string event_text(const RunInfo &run);
/// 1187 -> "1,187".
[[nodiscard]] std::string grouped(uint64_t number);
/// A cell of a CSV line (RFC 4180): in quotes where it has a comma, a quote or a line's end; what isn't UTF-8 is replaced.
void append_csv(std::string &out, std::string_view text);
/// Nanoseconds of Unix time as "2026-11-20T04:20:56.123456789Z" (RFC 3339, UTC).
[[nodiscard]] std::string rfc3339(uint64_t wall_ns);
/// A command line as a shell would take it: words with anything special in single quotes.
[[nodiscard]] std::string shell_words(const std::vector<std::string> &words);

} // namespace rawbpf::inline v0::render
