// Names by number, from the rows of map_types.h, program_types.h, attach_types.h and link_types.h.
#include "asm/kinds.h"

namespace rawbpf::inline v0 {

namespace {

/// A type may be newer than the list: then its number is all there is to say.
std::string word(std::string_view name, uint32_t type) {
    if (name == "?") return "type " + std::to_string(type);
    std::string out(name);
    for (char &c : out) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    return out;
}

/// Every link type comes of some attach type: the probes find it by that.
constexpr bool all_links_are_made() {
    for (uint32_t link = 1; link < kLinkTypeCount; ++link)
        if (first_attach_type(LinkType{link}) == kAttachTypeCount) return false;
    return true;
}
static_assert(all_links_are_made(), "a link type needs an attach type with it: attach_types.h");

} // namespace

std::string_view program_type_name(uint32_t type) { return program_type_row(type).name; }
std::string_view program_type_since(uint32_t type) { return program_type_row(type).since; }
std::string program_type_word(uint32_t type) { return word(program_type_name(type), type); }
std::string_view map_type_name(uint32_t type) { return map_type_row(type).name; }
std::string_view map_type_since(uint32_t type) { return map_type_row(type).since; }
std::string_view attach_type_name(uint32_t type) { return attach_type_row(type).name; }
std::string_view attach_type_since(uint32_t type) { return attach_type_row(type).since; }
std::string attach_type_word(uint32_t type) { return word(attach_type_name(type), type); }
std::string_view link_type_name(uint32_t type) { return link_type_row(type).name; }
std::string_view link_type_since(uint32_t type) { return link_type_row(type).since; }
std::string link_type_word(uint32_t type) { return word(link_type_name(type), type); }

} // namespace rawbpf::inline v0
