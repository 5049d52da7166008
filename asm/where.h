// SPDX-License-Identifier: MIT
// The place in the C++ source that an instruction comes from, as std::source_location has it.
//
// It is two words, passed by value. A std::source_location is a pointer to 24 bytes of data that the compiler makes for each
// call, with the caller's whole signature beside them: 100 KB for the two thousand instructions of rawbpf's own programs.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0 {

/// A line of C++ source. Default-made: no place, the file "" and line 0.
class Where {
  public:
    /// As a default argument: the place of the call. `file` must live for ever.
    [[nodiscard, gnu::always_inline]] static constexpr Where current(const char *file = __builtin_FILE(),
                                                                     uint_least32_t line = __builtin_LINE()) {
        Where where;
        where.file_ = file;
        where.line_ = line;
        return where;
    }
    /// As the compiler was given it, ended by a zero; "" where it isn't known.
    [[nodiscard]] constexpr const char *file_name() const { return file_; }
    /// 1-based; 0 where it isn't known.
    [[nodiscard]] constexpr uint_least32_t line() const { return line_; }

  private:
    const char *file_ = "";
    uint_least32_t line_ = 0;
};

} // namespace rawbpf::inline v0
