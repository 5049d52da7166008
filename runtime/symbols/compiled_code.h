// SPDX-License-Identifier: MIT
// Functions that a runtime made while it ran, by address and by time.
//
// A just-in-time compiler uses its memory again: what lies at an address now may have been another function when a sample was
// taken. So functions are kept in the order in which they were told of, with the time since when each was there:
//
//      address  0x1000 ........ 0x1100        layer_at(0x1010, t < 5 s) = that of fib
//      fib      [=============]  since 0      layer_at(0x1010, t >= 5 s) = that of draw
//      draw     [====]           since 5 s    find(0x1010, layer) = the name, whenever it is asked for
//
// Whoever takes a sample asks for the layer at once, and for the name when it is needed. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/symbols/name.h"

namespace rawbpf::inline v0::symbols {

/// What is known of an address in such a function.
struct CompiledName {
    Name name;         ///< the function, and how far into it the address lies
    std::string file;  ///< of the source; empty: unknown
    uint32_t line = 0; ///< 0: unknown
};

/// "JS:*fib /app/a.js:3:10" (V8) and "py::fib:/app/a.py" (CPython) have the file in the name, V8 also the line where the function
/// begins: name.symbol is the whole text, demangled and cut to kLongestName.
[[nodiscard]] CompiledName read_compiled_name(std::string_view text);

/// All that is known of a process's functions of that kind.
class CompiledCode {
  public:
    /// Where a line's code begins.
    struct Line {
        uint32_t offset; ///< bytes from the function's start
        uint32_t line;   ///< its number
        uint32_t file;   ///< what name_file() gave for it
    };
    static constexpr uint32_t kNoFile = 0; ///< that of the function's name

    /// A function of `size` bytes (1 to 2^32 - 1), there since `since_ns` (CLOCK_MONOTONIC; 0: before anybody looked). `lines`
    /// are sorted. Told after the others: where it lies over them, it is what is there. Passed over: what wraps, has no name, or
    /// is more than can be held. settle() has to follow before anything is asked.
    void add(uint64_t start, uint64_t size, std::string_view name, uint64_t since_ns, std::vector<Line> &&lines = {});
    /// The number of a source file, for Line::file.
    [[nodiscard]] uint32_t name_file(std::string_view path);
    /// After the last add() of a round.
    void settle();

    /// What lay at the address at that time: a number for find(). 0: the first function that was ever told of there, or none.
    [[nodiscard]] uint64_t layer_at(uint64_t address, uint64_t at_ns) const;
    /// Whether a function was told of there, at whatever time.
    [[nodiscard]] bool knows(uint64_t address) const;
    /// The last layer of an address.
    [[nodiscard]] uint64_t last_layer(uint64_t address) const { return layer_at(address, UINT64_MAX); }
    /// The function of that layer; nullopt: there is none.
    [[nodiscard]] std::optional<CompiledName> find(uint64_t address, uint64_t layer) const;
    /// Where the function begins that is last at an address; nullopt: there is none.
    [[nodiscard]] std::optional<std::string_view> raw_name_at(uint64_t start) const;

    [[nodiscard]] size_t size() const { return functions_.size(); } ///< functions told of
    [[nodiscard]] size_t memory() const;                            ///< bytes held

  private:
    struct Function {
        uint64_t start, since_ns;
        uint32_t size;
        uint32_t name;        ///< offset in names_
        uint32_t lines, more; ///< the first of lines_, and how many
    };
    [[nodiscard]] std::string_view text(uint32_t at) const;
    template <class Each> void covering(uint64_t address, Each &&each) const;

    std::vector<Function> functions_; ///< in the order they were told of
    std::vector<uint32_t> by_start_;  ///< of functions_, by start, then by order
    std::vector<Line> lines_;
    std::string names_;              ///< each ended by a newline, which none has
    std::vector<uint32_t> files_{0}; ///< by number: offsets in names_; the first stands for none
    uint32_t last_file_ = 0;         ///< that name_file() gave
    size_t settled_ = 0;
};

} // namespace rawbpf::inline v0::symbols
