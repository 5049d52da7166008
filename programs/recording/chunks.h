// The bytes that every recording is made of: numbers, texts, and chunks with a type and a length. PURE.
//
//      "RAWBPFC\1"  then chunks:  type u8 | length | payload
//
//       1 header   versions, command line, clocks, the tool    once, first
//       2 module   kind, device, inode, path, build-id         numbered in the order they come
//       3 place    flags, module, file offset, address, pid    the same, from zero again after a reset
//       4 node     caller, place                               the same
//       5 comm     a thread's name                             the same, never reset
//       6 sample, 10 weight                                    of rawbpf profile (programs/profile/capture.cpp)
//       7 name     place, symbol, offset, module; file, line;  for places that only the recording machine can name: functions
//                  inlined                                     inlined there first, the one whose code it is last
//       8 reset    the tree starts anew (keeps the memory of both sides bounded in long recordings)
//       9 end      ledger, cost, warnings                      once, last: a file without it was cut
//      11 labels   keys and values of a request: one set       numbered from 1 in the order they come, from 1 again after a reset
//      12 labelled the labels of what comes from here on       0: none, as before the first
//      16 to 28                                                of rawbpf trace (programs/trace/recording.h)
//      32 to 34                                                of rawbpf custom (programs/custom/recording.h)
//
// Numbers are LEB128 (seven bits a byte, low ones first), signed ones zigzag; references to "none" are 0 and all others one
// higher; texts have their length in front.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/processes/stacks.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::recording {

inline constexpr std::string_view kMagic{"RAWBPFC\1", 8};

/// Types of chunks that recordings of all tools have.
enum Chunk : uint8_t {
    kHeader = 1,
    kModule = 2,
    kPlace = 3,
    kNode = 4,
    kComm = 5,
    kName = 7,
    kReset = 8,
    kEnd = 9,
    kLabels = 11,
    kLabelled = 12
};

inline constexpr uint32_t kIsKernel = 1, kIsCaller = 2; ///< flags of a place

/// Frames of a stack: kernel.perf_event_max_stack is 127 unless raised, and records hold no more than that.
inline constexpr uint16_t kDeepest = 1024;

using Counted = std::vector<std::pair<std::string, uint64_t>>;

// Each appends to a payload what Cursor reads.
void put(std::string &out, uint64_t value);
void put_signed(std::string &out, int64_t value);
void put(std::string &out, std::string_view text);
void put_reference(std::string &out, uint32_t id);
void put_counts(std::string &out, const Counted &counts);

/// A payload that may be anything, read in order. Errors of all of these: bad_input, with the offset in the file.
struct Cursor {
    ByteReader in;

    [[nodiscard]] Result<uint64_t> number();
    [[nodiscard]] Result<uint32_t> number_32();
    [[nodiscard]] Result<int64_t> signed_number();
    /// Bytes of a stack's addresses; negative: an errno.
    [[nodiscard]] Result<int32_t> stack_bytes();
    /// Written again wherever it is shown, so a small file must not hold what makes gigabytes of output: it may come back
    /// shorter.
    [[nodiscard]] Result<std::string> text();
    /// As it is.
    [[nodiscard]] Result<Bytes> bytes();
    /// A number below `count`; `what` says of what.
    [[nodiscard]] Result<uint32_t> id(size_t count, std::string_view what);
    [[nodiscard]] Result<uint32_t> reference(size_t count, std::string_view what);
    [[nodiscard]] Result<Counted> counts();
    /// One byte that is 0 or 1.
    [[nodiscard]] Result<bool> truth();
    [[nodiscard]] bool done() const { return in.done(); }
};

} // namespace rawbpf::inline v0::recording
