// An instruction with its bits, as JSON: what `encode`, `decode` and the page show.
#pragma once

#include <span>

#include "asm/insn.h"
#include "programs/render/json_line.h"

namespace rawbpf::inline v0::exec {

/// Adds "text" and "name" (null where the bytes are no instruction, "undefined" then says why), "bytes" and "fields" of one
/// instruction of one or two slots.
void append_instruction(render::JsonObject &out, std::span<const Insn> slots);

} // namespace rawbpf::inline v0::exec
