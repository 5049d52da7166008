// JSON lines without a library: one object a line, its "type" first. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::inspect {

/// A string in quotes; what isn't valid UTF-8, and control characters, replaced by U+FFFD.
void append_json_string(std::string &out, std::string_view text);

/// One object. Closed, with a newline, when it is dropped.
class JsonLine {
  public:
    JsonLine(std::string &out, std::string_view type);
    ~JsonLine();
    JsonLine(const JsonLine &) = delete;
    JsonLine &operator=(const JsonLine &) = delete;

    JsonLine &text(std::string_view name, std::string_view value);         ///< a string, empty ones too
    JsonLine &text_or_null(std::string_view name, std::string_view value); ///< null where it is empty
    JsonLine &number(std::string_view name, uint64_t value);
    JsonLine &signed_number(std::string_view name, int64_t value);
    JsonLine &truth(std::string_view name, bool value);
    JsonLine &null(std::string_view name);
    /// A value that may pass 2^53: a string, "0x1000".
    JsonLine &hex(std::string_view name, uint64_t value);
    /// Puts the name; what is appended to the text next is its value.
    std::string &raw(std::string_view name);

  private:
    std::string &out_;
};

/// The line that every NDJSON output begins with.
void append_header(std::string &out, const RunInfo &run);

} // namespace rawbpf::inline v0::inspect
