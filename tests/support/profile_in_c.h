// The lesson profile.bpf.c as an object, where this build has a clang.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "runtime/object/elf_object.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {
/// Made by programs/profile/meson.build; without clang nothing defines it.
extern const std::span<const std::byte> profile_object __attribute__((weak));
} // namespace rawbpf::inline v0

namespace rawbpf::test {
/// nullopt: not in this build. A file that can't be parsed is an empty spec, which fails whoever runs it.
inline std::optional<ObjectSpec> profile_in_c() {
    if (&profile_object == nullptr) return std::nullopt;
    return parse_object(profile_object, "profile.bpf.o").value_or(ObjectSpec{});
}
} // namespace rawbpf::test
