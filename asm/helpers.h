// SPDX-License-Identifier: MIT
// The kernel's helpers, from the one table in helpers.def.
//
//      helper::get_stack           a value that the builder calls: its type knows how many arguments there are
//      find_helper(67)             the row of the table, for people: name, prototype, since when
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "asm/opcodes.h"

namespace rawbpf::inline v0 {

/// One row of helpers.def.
struct HelperInfo {
    uint16_t id;                ///< what `call` carries in imm: enum bpf_func_id of the kernel's uapi/linux/bpf.h, from 1
    KernelVersion since;        ///< the first kernel that has it
    bool gpl_only;              ///< only for programs whose license is GPL-compatible
    std::string_view name;      ///< without the "bpf_"
    std::string_view returns;   ///< C type of r0: "long", "void *"
    std::string_view arguments; ///< "(void *map, const void *key)"

    /// As in C: "void *bpf_map_lookup_elem(void *map, const void *key)".
    [[nodiscard]] std::string prototype() const;
    /// The n-th argument, counted from 1: "const void *key"; "" when there is none.
    [[nodiscard]] std::string_view argument(int n) const;
};

namespace detail {
/// Arguments in a C parameter list; for a variadic one those before the dots.
constexpr int count_arguments(std::string_view list) {
    if (list == "(void)") return 0;
    int n = 1;
    for (char c : list) n += c == ',';
    return list.find("...") == std::string_view::npos ? n : n - 1;
}
/// Whether a C parameter list ends in dots.
constexpr bool is_variadic(std::string_view list) { return list.find("...") != std::string_view::npos; }
} // namespace detail

/// helper::map_lookup_elem, helper::get_stack ...: one type, and one value of it, for each row of the table. So a call with the
/// wrong number of arguments doesn't compile, and the message is the helper's prototype.
namespace helper {
#define RAWBPF_HELPER(id_, name, major, minor, license, returns, arguments)                                                      \
    struct name##_type {                                                                                                         \
        using is_helper = void;                                                                                                  \
        static constexpr uint16_t id = id_;                                                                                      \
        static constexpr int least = detail::count_arguments(#arguments);                                                        \
        static constexpr int most = detail::is_variadic(#arguments) ? 5 : least;                                                 \
        template <int given> static constexpr void check() {                                                                     \
            static_assert(given >= least && given <= most,                                                                       \
                          "it is bpf_" #name #arguments ", which takes another number of arguments");                            \
        }                                                                                                                        \
    };                                                                                                                           \
    inline constexpr name##_type name{};
#include "asm/helpers.def"
} // namespace helper

/// One of the types in namespace helper.
template <class H>
concept Helper = requires {
    typename H::is_helper;
};

/// All rows, by id: the row of helper `id` is number id - 1. Valid for ever.
[[nodiscard]] std::span<const HelperInfo> all_helpers();
/// The helper with this number, or this name (with or without "bpf_"); nullptr when there is none. Valid for ever.
///@{
[[nodiscard]] const HelperInfo *find_helper(int64_t id);
[[nodiscard]] const HelperInfo *find_helper(std::string_view name);
///@}

} // namespace rawbpf::inline v0
