// The place in the C++ source that an instruction comes from: std::source_location, or the same interface over builtins for
// clang before 16, which lacks it.
#pragma once

#include <cstdint>

#if defined(__has_include) && __has_include(<source_location>)
#include <source_location>
#endif

namespace rawbpf::inline v0 {

#if defined(__cpp_lib_source_location)
using Where = std::source_location;
#else
class Where {
  public:
    [[nodiscard]] static constexpr Where current(const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
        Where where;
        where.file_ = file;
        where.line_ = line;
        return where;
    }
    [[nodiscard]] constexpr const char *file_name() const { return file_; }
    [[nodiscard]] constexpr uint_least32_t line() const { return line_; }
    [[nodiscard]] constexpr uint_least32_t column() const { return 0; }

  private:
    const char *file_ = "";
    unsigned line_ = 0;
};
#endif

} // namespace rawbpf::inline v0
