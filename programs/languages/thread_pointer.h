// Where a process's first thread keeps its own data, found without asking the kernel for its registers: a profiler's sample has
// that pointer; whoever only looks at a process (doctor) finds it by what is there.
//
// On x86-64 the pointer leads to a block whose first and third words are the pointer itself (the ELF TLS ABI wants the first,
// glibc and musl: the third or the first alone). On arm64 it leads to two words, of which glibc's first is the address of the
// table of the thread's blocks; that is what is found. ld.so puts the first thread's block into a small piece of anonymous
// memory, which may have become the end of a larger one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "asm/machines.h"
#include "programs/languages/memory.h"

namespace rawbpf::inline v0::languages {

/// `maps`: the text of /proc/PID/maps. nullopt: it wasn't found, or it isn't known what it leads to on this machine. PURE but for
/// what it reads of the memory.
[[nodiscard]] std::optional<uint64_t> find_thread_pointer(Memory &memory, std::string_view maps, Arch arch);

} // namespace rawbpf::inline v0::languages
