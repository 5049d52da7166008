// JSON lines: fields stand in the order they are given, and each object is closed when it is dropped, so that a line of any
// length needs no tree of values. Text is nlohmann-json's (json_text.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "programs/render/frame.h"
#include "programs/render/text.h"

namespace rawbpf::inline v0::render {

/// Whether this build writes JSON (-Djson). Where it doesn't, the command line refuses to be asked for it.
[[nodiscard]] bool writes_json();

/// A JSON string in quotes, valid whatever the bytes are: ASCII, everything else and controls as \uXXXX, so that it is harmless
/// on a terminal too; bytes that aren't UTF-8 are replaced by U+FFFD.
void append_json(std::string &out, std::string_view text);

/// An array of such strings.
template <class Texts> void append_json_texts(std::string &out, const Texts &texts) {
    out += '[';
    bool first = true;
    for (const auto &text : texts) {
        if (!first) out += ',';
        first = false;
        append_json(out, text);
    }
    out += ']';
}

/// One object within another, field by field.
class JsonObject {
  public:
    explicit JsonObject(std::string &out) : JsonObject(out, "}") {}
    ~JsonObject() { out_ += end_; }
    JsonObject(const JsonObject &) = delete;
    JsonObject &operator=(const JsonObject &) = delete;

    JsonObject &text(std::string_view name, std::string_view value);         ///< a string, empty ones too
    JsonObject &text_or_null(std::string_view name, std::string_view value); ///< null where it is empty
    JsonObject &number(std::string_view name, uint64_t value);
    JsonObject &signed_number(std::string_view name, int64_t value);
    JsonObject &truth(std::string_view name, bool value);
    JsonObject &null(std::string_view name);
    /// A value that may pass 2^53: a string, "0x1000".
    JsonObject &hex(std::string_view name, uint64_t value);
    /// Puts the name; what is appended to the text next is its value.
    std::string &raw(std::string_view name);
    /// The same for a name that somebody else chose: a function, a path.
    std::string &key(std::string_view name);

  protected:
    JsonObject(std::string &out, std::string_view end) : out_(out), end_(end) { out_ += '{'; }

  private:
    std::string &out_;
    std::string_view end_;
};

/// One object on a line of its own (NDJSON), its "type" first.
class JsonLine : public JsonObject {
  public:
    JsonLine(std::string &out, std::string_view type) : JsonObject(out, "}\n") { text("type", type); }
};

/// {"addr","symbol","symbol_offset","module","file_offset","build_id"}: unknown is null.
void append_json_frame(std::string &out, const Frame &frame);
/// An array of them.
void append_json_frames(std::string &out, const std::vector<FramePtr> &frames);

/// {KEY:value...}: the running request's.
void append_json_labels(std::string &out, const Labels &labels);

/// The line that every NDJSON output begins with. Schema 1: fields are added, never renamed.
void append_json_header(std::string &out, const RunInfo &run);
/// And the one that it ends with.
void append_json_ledger(std::string &out, const Ledger &ledger);

} // namespace rawbpf::inline v0::render
