// The stacks of a record, found by its head. The bytes come from our own programs in the kernel, or from another tool's program
// that takes their place; in both cases they are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "programs/capture/record_head.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// Views of a record; valid as long as its bytes are.
struct RecordStacks {
    std::span<const uint64_t> kernel, user; ///< addresses, leaf first
    Bytes rest;                             ///< what follows them, but for
    std::span<const uint64_t> language;     ///< an interpreter's frames (programs/languages/layout.h), and
    Bytes labels;                           ///< the running request's (programs/labels/layout.h)
};

/// The stacks' bytes that a head says; an error's count as none.
struct StackBytes {
    size_t kernel, user, language, labels;
    [[nodiscard]] size_t all() const { return kernel + user + language + labels; }
};
[[nodiscard]] inline StackBytes stack_bytes(const RecordHead &head) {
    const auto usable = [](int32_t bytes) { return bytes > 0 ? static_cast<size_t>(bytes) : size_t{0}; };
    return {usable(head.kernel_bytes), usable(head.user_bytes), size_t{RAWBPF_LANGUAGE_WORDS(head.ending)} * 8,
            size_t{RAWBPF_LABEL_WORDS(head.ending)} * 8};
}

/// `fixed`: bytes before the addresses. nullopt where the sizes in the head don't fit the record, which must be aligned to 8 (the
/// ring's records are) and have `fixed` bytes at least.
[[nodiscard]] inline std::optional<RecordStacks> stacks_of(const RecordHead &head, Bytes record, size_t fixed) {
    const StackBytes bytes = stack_bytes(head);
    const auto [kernel, user, listed, labels] = bytes;
    if (kernel % 8 != 0 || user % 8 != 0 || bytes.all() > record.size() - fixed) return std::nullopt;
    const auto *frames = reinterpret_cast<const uint64_t *>(record.data() + fixed);
    RecordStacks out{{frames, kernel / 8}, {frames + kernel / 8, user / 8}, record.subspan(fixed + kernel + user), {}, {}};
    if (listed + labels == 0) return out;
    if (record.size() % 8 != 0) return std::nullopt;
    out.labels = record.last(labels);
    out.language = {reinterpret_cast<const uint64_t *>(record.data() + record.size() - labels - listed), listed / 8};
    out.rest = out.rest.first(out.rest.size() - listed - labels);
    return out;
}

} // namespace rawbpf::inline v0
