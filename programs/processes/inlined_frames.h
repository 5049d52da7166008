// What is known of places in code that was made at run time, Java's and JavaScript's: functions with files and lines, one for
// each that was inlined there. Kept by numbers, which stacks have in the place of a layer (runtime/symbols/compiled_code.h) or a
// script's position: code is freed and moved, but not these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "programs/processes/source_lines.h"

namespace rawbpf::inline v0::processes {

class InlinedFrames {
  public:
    /// `first`: the first number, and above all that others give for such places.
    explicit InlinedFrames(uint64_t first) : first_(first) {}
    /// A function at one of its lines.
    struct Frame {
        uint32_t name, file; ///< what text() gave for them
        uint32_t line;       ///< 0: unknown
        uint32_t column = 0; ///< likewise
        [[nodiscard]] bool operator==(const Frame &other) const = default;
    };
    struct Entry {
        std::optional<uint64_t> layer; ///< whose code it is; nullopt: the interpreter's, or it is told elsewhere
        std::vector<Frame> frames;     ///< innermost first
    };
    [[nodiscard]] bool is_number(uint64_t layer) const { return layer >= first_; }

    [[nodiscard]] uint32_t text(std::string_view text);
    /// The number of a place; 0: more can't be kept.
    [[nodiscard]] uint64_t number(Entry &&entry);

    /// nullptr: nobody has given such a number.
    [[nodiscard]] const Entry *find(uint64_t number) const {
        return is_number(number) && number - first_ < entries_.size() ? entries_[number - first_] : nullptr;
    }
    /// As ModuleLines::find() has it.
    [[nodiscard]] std::vector<SourceFrame> source(uint64_t number) const;
    [[nodiscard]] size_t size() const { return entries_.size(); }

  private:
    struct Hash {
        size_t operator()(const Entry &entry) const;
    };
    struct Same {
        bool operator()(const Entry &a, const Entry &b) const;
    };
    uint64_t first_;
    std::unordered_map<std::string, uint32_t> text_numbers_;
    std::vector<const std::string *> texts_; // keys of text_numbers_
    std::unordered_map<Entry, uint64_t, Hash, Same> numbers_;
    std::vector<const Entry *> entries_; // keys of numbers_
};

} // namespace rawbpf::inline v0::processes
