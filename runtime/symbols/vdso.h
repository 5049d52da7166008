// SPDX-License-Identifier: MIT
// The vdso: code that the kernel maps into every process, so that reading the clock needs no system call.
#pragma once

#include "runtime/base/result.h"
#include "runtime/symbols/elf_symbols.h"

namespace rawbpf::inline v0::symbols {

/// The symbols of the running kernel's vdso, read from this very process's own copy: it is the same image everywhere (but for
/// 32-bit processes, whose addresses then have no name). Offsets are from the start of the "[vdso]" region.
/// not_found when this process has none (vdso=0 on the kernel's command line, or some emulators).
[[nodiscard]] Result<ElfSymbols> load_vdso();
/// The image itself: it stays where it is as long as this process. Errors: not_found, as above.
[[nodiscard]] Result<Bytes> vdso_image();

} // namespace rawbpf::inline v0::symbols
