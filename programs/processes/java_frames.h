// What is known of places in Java's code: methods with files and lines, one for each function that was inlined there. Kept by
// numbers, which stacks have in the place of a layer (runtime/symbols/compiled_code.h): code is freed and moved, but not these.
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

class JavaFrames {
  public:
    /// A method at one of its lines.
    struct Frame {
        uint32_t name, file; ///< what text() gave for them
        uint32_t line;       ///< 0: unknown
    };
    struct Entry {
        std::optional<uint64_t> layer; ///< whose code it is; nullopt: the interpreter's
        std::vector<Frame> frames;     ///< innermost first
    };
    [[nodiscard]] static bool is_number(uint64_t layer) { return layer >= kFirst; }

    [[nodiscard]] uint32_t text(std::string_view text);
    /// The number of a place; 0: more can't be kept.
    [[nodiscard]] uint64_t number(Entry &&entry);

    /// nullptr: nobody has given such a number.
    [[nodiscard]] const Entry *find(uint64_t number) const {
        return is_number(number) && number - kFirst < entries_.size() ? entries_[number - kFirst] : nullptr;
    }
    /// As ModuleLines::find() has it.
    [[nodiscard]] std::vector<SourceFrame> source(uint64_t number) const;
    [[nodiscard]] size_t size() const { return entries_.size(); }

  private:
    static constexpr uint64_t kFirst = 1ull << 40; // numbers of CompiledCode's layers are below
    struct Hash {
        size_t operator()(const Entry &entry) const;
    };
    struct Same {
        bool operator()(const Entry &a, const Entry &b) const;
    };
    std::unordered_map<std::string, uint32_t> text_numbers_;
    std::vector<const std::string *> texts_; // keys of text_numbers_
    std::unordered_map<Entry, uint64_t, Hash, Same> numbers_;
    std::vector<const Entry *> entries_; // keys of numbers_
};

} // namespace rawbpf::inline v0::processes
