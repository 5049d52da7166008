// What a build may leave out, part by part: Meson's option -Dparts names what stays (meson_options.txt).
//
//      meson setup small -Dparts=usdt,exec     these two, and what every build has: profile, report, load, doctor, ...
//      meson setup board -Dprofile=board       what a board needs: asm, experiments, running, trace; no optional library
//
// A part is some commands (command_list.cpp has the table), or what another command does with it: `load FILE.asm`, `-f pprof`.
// Every build compiles all sources. Nothing refers to the functions of a part that is left out, so the linker drops them. Who
// asks for such a part is told what is missing and which option brings it, with status 3: this build can't do it. What this
// build has: built.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace rawbpf::inline v0::cli {

/// `core` is in every build.
enum class Part : uint8_t {
    core,
    assembler,
    custom,
    emulator,
    experiments,
    formats,
    guests,
    lessons,
    objects,
    running,
    trace,
    usdt,
    verifier,
};

/// A part as -Dparts names it, and what people call it; in the order of Part.
struct PartRow {
    std::string_view name, what;
};
inline constexpr PartRow kParts[] = {
    {"", ""},
    {"asm", "the assembler"},
    {"custom", "custom traces"},
    {"exec", "the emulator"},
    {"experiments", "experiments"},
    {"formats", "the formats of other tools"},
    {"guests", "guests with other kernels"},
    {"lessons", "the course"},
    {"objects", "what examines, links and describes object files"},
    {"running", "what shows and changes the kernel's programs, maps and links"},
    {"trace", "the tracer"},
    {"usdt", "USDT probes"},
    {"verifier", "the verifier of our own"},
};

/// Whether a list of words has this one. PURE.
[[nodiscard]] constexpr bool has_word(std::string_view list, std::string_view word) {
    for (size_t at = 0; at <= list.size();) {
        const size_t end = list.find(' ', at) == std::string_view::npos ? list.size() : list.find(' ', at);
        if (list.substr(at, end - at) == word) return true;
        at = end + 1;
    }
    return false;
}

/// `asked`: what needs the part, as the message begins: "asm" or "-f pprof". PURE.
[[nodiscard]] Error left_out(Part part, std::string_view asked);

} // namespace rawbpf::inline v0::cli
