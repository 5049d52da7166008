// The commands of bpf(2) and the fields of their attributes, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0::inspect {

/// A command of bpf(2).
struct AttributeCommand {
    std::string_view since; ///< "3.18"
    std::string_view does;  ///< one clause
};
/// A field of union bpf_attr, as one command uses it.
struct AttributeField {
    std::string_view name; ///< with the member of the union in front, where it is in one: "kprobe_multi.cnt"
    uint32_t offset = 0, size = 0;
    std::string_view kind;    ///< what its bytes are: "descriptor", "address", "number"
    std::string_view since;   ///< "4.15"
    std::string_view meaning; ///< one clause
};

/// How many commands there are: their numbers are below it.
[[nodiscard]] uint32_t attribute_commands();
/// PURE. `command` is below attribute_commands().
[[nodiscard]] AttributeCommand attribute_command(uint32_t command);
/// The fields that the command reads or writes, by offset; of BPF_LINK_CREATE those of all types of links. PURE.
[[nodiscard]] std::vector<AttributeField> attribute_fields(uint32_t command);
/// Names that have words, and no field: for a test, which wants none. PURE.
[[nodiscard]] std::vector<std::string_view> attribute_words_left(uint32_t command);
/// "BPF_PROG_LOAD", "prog_load", "5": its number. PURE.
[[nodiscard]] std::optional<uint32_t> attribute_command_named(std::string_view word);

} // namespace rawbpf::inline v0::inspect
