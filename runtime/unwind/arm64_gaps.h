// What arm64 instructions say (arm64_code.h) where a file's entries don't, or not exactly. Inside of this room; PURE.
#pragma once

#include <span>
#include <vector>

#include "runtime/elf/elf.h"
#include "runtime/unwind/cfi.h"
#include "runtime/unwind/functions.h"

namespace rawbpf::inline v0::unwind {

/// Of all code between `functions` (by start), as arm64_rules(). `text`: the file's executable sections. Nothing of a program
/// with megabytes of such code: it isn't one with some assembly.
[[nodiscard]] std::vector<Change> read_arm64_gaps(const elf::Elf &file, std::span<const elf::Section *const> text,
                                                  std::span<const Function> functions);

/// `changes`: what the entry of this function says. LLVM before version 15 says what is true between prologue and epilogue, and
/// nothing of these: a function that begins without a frame, whose last row has one, and no row before it has taken it away.
/// There the frame begins where the instructions have it.
void correct_arm64_function(const elf::Elf &file, std::span<const elf::Section *const> text, FunctionRange function,
                            std::vector<Change> &changes);

} // namespace rawbpf::inline v0::unwind
