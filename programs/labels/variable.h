// Where the threads of a process have the variable otel_thread_ctx_v1, which points at their context.
//
//      program                     a fixed distance from the thread's pointer, which its segments say
//      library, from the start     a fixed distance, too, which the dynamic linker chose
//      library, by dlopen(3)       in a block of the library's, which each thread gets when it first needs it
//
// What the dynamic linker chose, it wrote into words of the library that relocations name: whoever uses the variable reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "asm/machines.h"
#include "programs/labels/layout.h"
#include "programs/languages/memory.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::labels {

/// What a file says of it.
struct ThreadVariable {
    enum class Kind : uint8_t {
        descriptor, ///< two words: who resolves it, and the distance or where module and offset are (TLSDESC)
        module,     ///< the library's number
        distance,   ///< from the thread's pointer
    };
    struct Word {
        uint64_t address; ///< in the file
        Kind kind;
        uint64_t offset; ///< in the library's block: what it leads to
    };
    uint64_t offset = 0;              ///< in the file's block
    std::optional<uint64_t> distance; ///< of a program: from the thread's pointer
    std::vector<Word> words;          ///< of a library
    std::vector<elf::Segment> code;   ///< the file's executable parts
};

/// nullopt: the file doesn't export it. PURE.
[[nodiscard]] std::optional<ThreadVariable> exported_variable(const elf::Elf &file);

/// In a process that has the file mapped at `bias`. nullopt: `why` says what is missing (half a sentence); it may be there later.
[[nodiscard]] std::optional<LabelProcess> locate(const ThreadVariable &variable, uint64_t bias, languages::Memory &memory,
                                                 Arch arch, std::string &why);

} // namespace rawbpf::inline v0::labels
