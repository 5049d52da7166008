// SPDX-License-Identifier: MIT
// The kernel's lists of types, all four, and names by number. Each list is in one place, a row a type: map_types.h,
// program_types.h, attach_types.h and link_types.h. The enum, the name, the version and everything else that is known of a type
// come from its row.
//
// The numbers are positions, as in include/uapi/linux/bpf.h (types are only added at the end). The headers of an old system lack
// the newer names, so the lists are our own. An empty version means that no release had the type when this was written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "asm/attach_types.h"
#include "asm/link_types.h"
#include "asm/map_types.h"
#include "asm/program_types.h"

namespace rawbpf::inline v0 {

/// The name without BPF_PROG_TYPE_ or the like in front: program_type_name(7) is "PERF_EVENT". "?" for a number that isn't in the
/// list.
///@{
[[nodiscard]] std::string_view program_type_name(uint32_t type);
[[nodiscard]] std::string_view attach_type_name(uint32_t type);
[[nodiscard]] std::string_view link_type_name(uint32_t type);
[[nodiscard]] std::string_view map_type_name(uint32_t type);
///@}
/// The same in small letters, as people and JSON have it: "perf_event"; "type 99" for a number that isn't in the list. Those of
/// map types: map_kind_name() in print.h.
///@{
[[nodiscard]] std::string program_type_word(uint32_t type);
[[nodiscard]] std::string attach_type_word(uint32_t type);
[[nodiscard]] std::string link_type_word(uint32_t type);
///@}
/// The kernel version that brought it: "5.8". Empty: no release yet, UNSPEC, or a number that isn't in the list.
///@{
[[nodiscard]] std::string_view program_type_since(uint32_t type);
[[nodiscard]] std::string_view attach_type_since(uint32_t type);
[[nodiscard]] std::string_view link_type_since(uint32_t type);
[[nodiscard]] std::string_view map_type_since(uint32_t type);
///@}

} // namespace rawbpf::inline v0
