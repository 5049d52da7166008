// What a tracepoint's record holds, from tracefs/events/CATEGORY/NAME/format. PURE.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "programs/trace/signature.h"

namespace rawbpf::inline v0::trace {

struct Fields {
    std::vector<Parameter> fields;
    std::vector<uint16_t> offsets; ///< of each, in bytes from the record's start
};

/// Reads the text of a format file; the fields that all tracepoints share (common_*) and __syscall_nr are left out. Errors:
/// bad_input with the line.
[[nodiscard]] Result<Fields> parse_format(std::string_view text, std::string_view name);

} // namespace rawbpf::inline v0::trace
