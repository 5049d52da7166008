// The names of the lists in kinds.h, as arrays: position = number.
#include "asm/kinds.h"

#include <array>
#include <cstddef>

namespace rawbpf::inline v0 {

namespace {

struct Entry {
    std::string_view name, since;
};
#define RAWBPF_ENTRY(name, since) Entry{#name, since},
constexpr Entry kPrograms[] = {RAWBPF_PROGRAM_TYPES(RAWBPF_ENTRY)};
constexpr Entry kAttaches[] = {RAWBPF_ATTACH_TYPES(RAWBPF_ENTRY)};
constexpr Entry kLinks[] = {RAWBPF_LINK_TYPES(RAWBPF_ENTRY)};
#undef RAWBPF_ENTRY

// Anchors: a line dropped or doubled in a list would shift every number after it.
static_assert(uint32_t(ProgramType::PERF_EVENT) == 7 && uint32_t(ProgramType::NETFILTER) == 32);
static_assert(uint32_t(AttachType::XDP) == 37 && uint32_t(AttachType::TRACE_UPROBE_SESSION) == 57);
static_assert(uint32_t(LinkType::PERF_EVENT) == 7 && uint32_t(LinkType::NETKIT) == 13);

template <size_t N> Entry at(const Entry (&list)[N], uint32_t index) { return index < N ? list[index] : Entry{"?", ""}; }

} // namespace

std::string_view program_type_name(uint32_t type) { return at(kPrograms, type).name; }
std::string_view program_type_since(uint32_t type) { return at(kPrograms, type).since; }
std::string_view map_type_name(uint32_t type) { return map_type_row(type).name; }
std::string_view map_type_since(uint32_t type) { return map_type_row(type).since; }
std::string_view attach_type_name(uint32_t type) { return at(kAttaches, type).name; }
std::string_view attach_type_since(uint32_t type) { return at(kAttaches, type).since; }
std::string_view link_type_name(uint32_t type) { return at(kLinks, type).name; }
std::string_view link_type_since(uint32_t type) { return at(kLinks, type).since; }

} // namespace rawbpf::inline v0
