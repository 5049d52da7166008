// The kernel's helpers, from the one table in helpers.def.
//
//      helper::get_stack           a value that the builder calls: its type knows how many arguments there are
//      find_helper(67)             the row of the table, for people: name, prototype, since when
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "asm/opcodes.h"

namespace rawbpf::inline v0 {

/// One row of helpers.def.
struct HelperInfo {
    uint16_t id;
    KernelVersion since;
    bool gpl_only;
    std::string_view name;      ///< without the "bpf_"
    std::string_view returns;   ///< C type
    std::string_view arguments; ///< "(void *map, const void *key)"
};

namespace detail {
/// Arguments in a C parameter list; for a variadic one those before the dots.
constexpr int count_arguments(std::string_view list) {
    if (list == "(void)") return 0;
    int n = 1;
    for (char c : list) n += c == ',';
    return list.find("...") == std::string_view::npos ? n : n - 1;
}
constexpr bool is_variadic(std::string_view list) { return list.find("...") != std::string_view::npos; }
} // namespace detail

/// A helper as a type, so that a call with the wrong number of arguments doesn't compile.
template <uint16_t Id, int Least, int Most> struct Helper {
    static constexpr uint16_t id = Id;
    static constexpr int least = Least;
    static constexpr int most = Most;
};

/// helper::map_lookup_elem, helper::get_stack ...: one value for each row of the table.
namespace helper {
#define RAWBPF_HELPER(id, name, major, minor, license, returns, arguments)                                                       \
    inline constexpr Helper<id, detail::count_arguments(#arguments),                                                             \
                            detail::is_variadic(#arguments) ? 5 : detail::count_arguments(#arguments)>                           \
        name{};
#include "asm/helpers.def"
} // namespace helper

/// All of them, by id.
[[nodiscard]] std::span<const HelperInfo> all_helpers();
/// The helper with this number, or this name (with or without "bpf_"); nullptr when there is none.
[[nodiscard]] const HelperInfo *find_helper(int64_t id);
[[nodiscard]] const HelperInfo *find_helper(std::string_view name);

} // namespace rawbpf::inline v0
