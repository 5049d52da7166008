// Records of the walk along interpreters' frames among a tool's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "programs/languages/layout.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// LANGUAGE_IS_...; 0: it is a tool's own.
[[nodiscard]] inline uint32_t language_record(Bytes record) {
    return record.size() < sizeof(RecordHead) ? 0 : language_record(load<RecordHead>(record.data()));
}

/// Whether later records need it for the names of their functions: it comes once.
[[nodiscard]] inline bool is_language_code(Bytes record) { return language_record(record) == LANGUAGE_IS_CODE; }

/// Of a code's record the number that it explains; nullopt: it is another one, or cut.
[[nodiscard]] inline std::optional<uint64_t> language_code_of(Bytes record) {
    if (!is_language_code(record) || record.size() < offsetof(LanguageCode, id) + sizeof(uint64_t)) return std::nullopt;
    return load<uint64_t>(record.data() + offsetof(LanguageCode, id));
}

} // namespace rawbpf::inline v0
