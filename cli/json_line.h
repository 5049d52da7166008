// One JSON object, built field by field: for commands whose lines are flat. Text is escaped, and made valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {

/// `text` in quotes, escaped.
void append_json_text(std::string &out, std::string_view text);

class JsonLine {
  public:
    /// "type" comes first in every object.
    explicit JsonLine(std::string_view type) { text("type", type); }

    JsonLine &text(std::string_view name, std::string_view value) {
        key(name);
        append_json_text(out_, value);
        return *this;
    }
    JsonLine &number(std::string_view name, int64_t value) { return raw(name, format("{}", value)); }
    JsonLine &boolean(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    JsonLine &null(std::string_view name) { return raw(name, "null"); }
    /// JSON made elsewhere.
    JsonLine &raw(std::string_view name, std::string_view json) {
        key(name);
        out_ += json;
        return *this;
    }
    /// The line with its end.
    [[nodiscard]] std::string finish() const { return out_ + "}\n"; }

  private:
    void key(std::string_view name) {
        out_ += out_.empty() ? '{' : ',';
        append_json_text(out_, name);
        out_ += ':';
    }
    std::string out_;
};

/// The line that every output begins with: schema, command, version, kernel, machine, time.
[[nodiscard]] std::string json_header(std::string_view command, const std::vector<std::string> &words);

} // namespace rawbpf::inline v0::cli
