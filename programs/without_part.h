// What a build without a part says where somebody wants it: the same for all parts, and how to have it.
#pragma once

#include <string_view>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

/// unsupported: "USDT probes: this build leaves out the part usdt (-Dparts)". `what`: in the place of "the part usdt (-Dparts)".
[[nodiscard]] inline Error without_part(std::string_view wanted, std::string_view part, std::string_view what = {}) {
    return make_error(
        Errc::unsupported,
        format("{}: this build leaves out {}", wanted, what.empty() ? format("the part {} (-Dparts)", part) : std::string(what)),
        format("build rawbpf with -Dparts=...,{}, or without -Dparts and -Dprofile: then it has all parts", part));
}

} // namespace rawbpf::inline v0
