// Where a thread of a Go program has its goroutine, and where that has its number and the labels of runtime/pprof.
//
//      thread's pointer + distance --> g --m--> m --curg--> the goroutine: number, labels; its m leads back
//
// The distances change with each version of Go. Code of its runtime that is the same in all of them tells them, also in a
// stripped program: Go's own table has its functions.
//
//      runtime.systemstack               loads g, its m; at its end m's curg becomes g again
//      runtime/pprof.runtime_setProfLabel stores the labels in g; without it nobody can set any
//      runtime.printcreatedby            compares g's number with 1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/labels/layout.h"
#include "programs/languages/memory.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::labels {

inline constexpr std::string_view kGoroutineId = "goroutine"; ///< the key of a goroutine's number

/// What a file says of it.
struct GoRuntime {
    std::string why_not;              ///< half a sentence: its goroutines can't be had; else empty
    uint64_t distance = 0;            ///< of g, from the thread's pointer; unless
    std::optional<uint64_t> word;     ///< the dynamic linker writes it down: where, in the file
    uint32_t m = 0, curg = 0;         ///< of g; of m
    uint32_t number = 0, labels = 0;  ///< of g; 0: not known; the program never sets any
    std::vector<elf::Segment> code{}; ///< the file's executable parts

    /// "g at -8 from the thread's pointer, its m at 48 ...": for -v.
    [[nodiscard]] std::string describe() const;
};

/// `bytes`: the whole file. nullopt: no Go program's. PURE.
[[nodiscard]] std::optional<GoRuntime> go_runtime(const elf::Elf &file, Bytes bytes);

/// In a process that has the file mapped at `bias`. nullopt: `why` says what is missing (half a sentence); it may be there later.
[[nodiscard]] std::optional<LabelProcess> locate(const GoRuntime &runtime, uint64_t bias, languages::Memory &memory,
                                                 std::string &why);

} // namespace rawbpf::inline v0::labels
