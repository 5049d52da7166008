// Functions that tests trace in their own process: with names that no other function has; not inlined, not merged, not cloned for
// constants.
#pragma once

#if defined(__clang__)
#define TRACED extern "C" [[gnu::noinline, gnu::used]]
#else
#define TRACED extern "C" [[gnu::noinline, gnu::noclone, gnu::used]]
#endif
