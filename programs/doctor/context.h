// What a process tells observers of itself: its OpenTelemetry context (programs/labels).
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0::doctor {

/// A line behind append_process_text()'s: the attributes, and the keys that its threads may use. Nothing of a process without a
/// context.
void append_context_text(std::string &out, uint32_t pid);
/// {"type":"context",...}, likewise.
void append_context_json(std::string &out, uint32_t pid);

} // namespace rawbpf::inline v0::doctor
