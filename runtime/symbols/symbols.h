// SPDX-License-Identifier: MIT
// Addresses to names.
//
// Three questions, three tables: which module does a user address lie in (/proc/PID/maps as it was), which symbol of that
// module (ELF tables, debug files, perf maps of JITs), and which kernel symbol (kallsyms, streamed: it is 5 to 10 MB of text).
//
//     user address --maps--> region, file offset --elf_symbols--> mangled name --demangle--> name
//                             no file: a JIT's  --perf_map------> name
//                             "[vdso]"          --vdso----------> name
//     kernel address --kallsyms--> name, module
//
// This header is the umbrella; each idea has a header of its own. process_symbols.h asks all of them.
#pragma once

#include "runtime/symbols/demangle.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/symbols/kallsyms.h"
#include "runtime/symbols/maps.h"
#include "runtime/symbols/perf_map.h"
#include "runtime/symbols/process_symbols.h"
#include "runtime/symbols/vdso.h"
