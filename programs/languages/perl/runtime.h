// Perl as an entry of the table of runtimes.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::perl {

extern const Runtime kRuntime;

} // namespace rawbpf::inline v0::languages::perl
