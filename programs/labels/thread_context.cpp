// Attributes are packed; one that isn't whole ends them, and of two with one key the last counts, as writers append what changed.
#include "programs/labels/thread_context.h"

#include <algorithm>

#include "programs/labels/layout.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::labels {

std::optional<std::string_view> ThreadContext::find(size_t key) const {
    const auto at = std::find_if(attributes.rbegin(), attributes.rend(), [&](const auto &one) { return one.first == key; });
    return at == attributes.rend() ? std::nullopt : std::optional(at->second);
}

bool ThreadContext::has_above(size_t key) const {
    return std::any_of(attributes.begin(), attributes.end(), [&](const auto &one) { return one.first >= key; });
}

std::optional<ThreadContext> parse_thread_context(Bytes record) {
    if (record.size() < LABEL_HEAD_BYTES) return std::nullopt;
    ThreadContext out;
    out.goroutine = record[LABEL_VALID_AT] == std::byte{LABEL_GOROUTINE};
    if (!out.goroutine && record[LABEL_VALID_AT] != std::byte{1}) return std::nullopt;
    if (out.goroutine) {
        out.goroutine_id = load<uint64_t>(record.data());
    } else {
        out.trace_id = record.first(16);
        out.span_id = record.subspan(16, 8);
    }
    const size_t size = load<uint16_t>(record.data() + LABEL_SIZE_AT), sent = record.size() - LABEL_HEAD_BYTES;
    out.cut = size > sent;
    Bytes rest = record.subspan(LABEL_HEAD_BYTES, std::min(size, sent));
    while (rest.size() >= 2) {
        const size_t length = static_cast<size_t>(rest[1]);
        if (rest.size() - 2 < length) break;
        out.attributes.emplace_back(static_cast<uint8_t>(rest[0]),
                                    std::string_view(reinterpret_cast<const char *>(rest.data()) + 2, length));
        rest = rest.subspan(2 + length);
    }
    return out;
}

std::string hex_id(Bytes id) {
    std::string out;
    if (std::all_of(id.begin(), id.end(), [](std::byte byte) { return byte == std::byte{0}; })) return out;
    for (const std::byte byte : id) append(out, "{:02x}", static_cast<unsigned>(byte));
    return out;
}

} // namespace rawbpf::inline v0::labels
