// What a process says of itself to whoever observes it: OpenTelemetry's process context (OTEP 4719).
//
//      /proc/PID/maps: a mapping named OTEL_CTX
//        +------------+---------+------------------+-----------------+----------------+
//        | "OTEL_CTX" | version | bytes of payload | published at ns | payload's      |        published at 0: it is being changed
//        | 8 bytes    | u32: 2  | u32              | u64             | address u64    |
//        +------------+---------+------------------+-----------------+----------------+
//                                                                       |
//      ProcessContext { 1: Resource { 1: KeyValue ... }, 2: KeyValue ... } in protobuf
//
// The attributes threadlocal.* say how a thread's context (OTEP 4947) is read: its schema, and the keys by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/languages/memory.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::labels {

inline constexpr size_t kMostPayload = 256 << 10; ///< bytes that are read; the specification expects some KB
inline constexpr size_t kMostKeys = 256;          ///< a key's number is a byte
inline constexpr size_t kMostValue = 1024;        ///< bytes of a value; what is longer is cut

/// What a process published.
struct ProcessContext {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    uint64_t published_ns = 0;     ///< another number for each update
    Pairs attributes;              ///< of the resource, then the others; lists and maps are left out
    std::string schema;            ///< threadlocal.schema_version; empty: threads have no context
    std::vector<std::string> keys; ///< threadlocal.attribute_key_map: a thread's keys by their numbers

    /// Whether threads have a context that is read here.
    [[nodiscard]] bool has_threads() const;
    /// nullptr: there is no such attribute. Of two of one name the first counts.
    [[nodiscard]] const std::string *find(std::string_view key) const;
};

/// Where mappings of that name begin, by the text of /proc/PID/maps. PURE.
[[nodiscard]] std::vector<uint64_t> context_mappings(std::string_view maps);

/// When what is at `address` was published; 0: it is being changed. `pages`: the process's memory as it is now. Errors:
/// bad_input, where there is no header of this version.
[[nodiscard]] Result<uint64_t> published_at(languages::Pages &pages, uint64_t address);

/// Reads the context at `address`, whole: between two looks at its time that are the same. Errors: bad_input; busy, where it
/// changed whenever it was read.
[[nodiscard]] Result<ProcessContext> read_context(languages::Pages &pages, uint64_t address);

/// The payload. PURE. Errors: bad_input, with the offset.
[[nodiscard]] Result<ProcessContext> parse_context(Bytes payload);

/// The first of a process's mappings of that name which has a context, as read_context(). Errors: not_found, where there is no
/// such mapping; those of reading the process.
struct FoundContext {
    uint64_t address = 0;
    ProcessContext context;
};
[[nodiscard]] Result<FoundContext> find_context(uint32_t pid);

} // namespace rawbpf::inline v0::labels
