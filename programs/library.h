// Functions of a shared library that only some runs need: zlib for a pprof file, liblzma for a file with .gnu_debugdata.
//
// An executable that is linked with a library maps and relocates it at each start; these two were a fifth of the processor time
// of `rawbpf version`. So a library is loaded when somebody asks for its first function, and stays. A static executable has it
// inside.
#pragma once

namespace rawbpf::inline v0 {

/// `library`: its soname. nullptr: this system doesn't have it.
[[nodiscard]] void *function_of(const char *library, const char *name);

} // namespace rawbpf::inline v0

#ifdef RAWBPF_LOADS_LIBRARIES
#define RAWBPF_FUNCTION_OF(library, function) reinterpret_cast<decltype(&function)>(::rawbpf::function_of(library, #function))
#else
#define RAWBPF_FUNCTION_OF(library, function) (&function)
#endif
