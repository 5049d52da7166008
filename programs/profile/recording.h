// What a capture has beside its samples: names that no report can find.
#pragma once

#include "programs/processes/live_symbols.h"
#include "programs/processes/namer.h"
#include "programs/processes/stacks.h"
#include "programs/profile/capture.h"

namespace rawbpf::inline v0::profile {

/// Of the kernel, of the vdso, of code made at run time, of files that no path leads to. Before the tree is cleared.
void write_names(CaptureWriter &writer, const processes::StackTree &tree, processes::Namer &namer,
                 const processes::ModuleTable &modules, const processes::LiveSymbols &symbols);

} // namespace rawbpf::inline v0::profile
