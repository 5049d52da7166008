// One record of the ring, taken apart. The bytes come from our own program in the kernel, but they are checked all the same: the
// same function reads records in tests and whatever else claims to be one.
#pragma once

#include <optional>
#include <span>

#include "programs/profile/record.h"
#include "programs/unwind/walk.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::profile {

/// A view of a record; valid as long as the bytes are.
struct RawSample {
    ProfileRecord head{};
    std::span<const uint64_t> kernel, user; ///< addresses, leaf first
    std::optional<unwind::StackCopy> copy;  ///< to make the user stack of
};

/// nullopt when the sizes in the record don't fit its bytes. `record` must be aligned to 8 (the ring's records are).
[[nodiscard]] inline std::optional<RawSample> parse_record(Bytes record) {
    if (record.size() < sizeof(ProfileRecord)) return std::nullopt;
    RawSample out;
    out.head = load<ProfileRecord>(record.data());
    out.head.comm[sizeof out.head.comm - 1] = '\0';
    const auto usable = [](int32_t bytes) { return bytes > 0 ? static_cast<size_t>(bytes) : size_t{0}; };
    const size_t kernel = usable(out.head.kernel_bytes), user = usable(out.head.user_bytes);
    if (kernel % 8 != 0 || user % 8 != 0 || kernel + user > record.size() - sizeof(ProfileRecord)) return std::nullopt;
    const auto *frames = reinterpret_cast<const uint64_t *>(record.data() + sizeof(ProfileRecord));
    out.kernel = {frames, kernel / 8};
    out.user = {frames + kernel / 8, user / 8};
    if (out.head.flags & PROFILE_STACK_COPIED) {
        out.copy = unwind::read_copy(record.subspan(sizeof(ProfileRecord) + kernel + user));
        if (!out.copy) return std::nullopt;
    }
    return out;
}

} // namespace rawbpf::inline v0::profile
