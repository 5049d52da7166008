// The kernel's names for its numbers, for messages and for the narrator. Numbers newer than the tables come out as digits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::sys {

[[nodiscard]] std::string command_name(uint32_t command);  ///< "BPF_MAP_CREATE"
[[nodiscard]] std::string map_type_name(uint32_t type);    ///< "BPF_MAP_TYPE_HASH"
[[nodiscard]] std::string prog_type_name(uint32_t type);   ///< "BPF_PROG_TYPE_KPROBE"
[[nodiscard]] std::string attach_type_name(uint32_t type); ///< "BPF_TRACE_FENTRY"
[[nodiscard]] std::string link_type_name(uint32_t type);   ///< "BPF_LINK_TYPE_PERF_EVENT"

/// One bit or a mask with its name.
struct FlagName {
    uint64_t value;
    std::string_view name;
};
/// "A|B|0x100": the names of the bits that are set, the rest as a number; "0" when there are none.
[[nodiscard]] std::string flag_names(uint64_t flags, std::span<const FlagName> names);

[[nodiscard]] std::string map_flag_names(uint64_t flags);    ///< BPF_MAP_CREATE's map_flags
[[nodiscard]] std::string update_flag_names(uint64_t flags); ///< BPF_MAP_UPDATE_ELEM's flags
[[nodiscard]] std::string prog_flag_names(uint64_t flags);   ///< BPF_PROG_LOAD's prog_flags

} // namespace rawbpf::inline v0::sys
