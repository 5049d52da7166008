// What a build may leave out, part by part: Meson's option -Dparts names what stays (meson_options.txt).
//
//      meson setup small -Dparts=usdt,report   these two, and what every build has: profile --record, load, help, version
//      meson setup board -Dprofile=board       what a board needs: experiments, running, trace; no optional library
//
// A part is some commands (command_list.cpp has the table), some options (Option::part), or what a command does with it:
// `load FILE.asm`, `-f pprof`. Two ways lead to a file without it. Where only commands and options ask for its functions, nothing
// refers to them then, and the linker drops them. Where the tools themselves do (stacks by unwind tables), a file
// `..._absent.cpp` has the same functions, which say that there is nothing; meson.build of its folder chooses. Who asks for a
// part that isn't there is told what is missing and which option brings it, with status 3: this build can't do it. What this
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
    compare,
    custom,
    demangling,
    doctor,
    emulator,
    experiments,
    exporting,
    formats,
    go,
    guests,
    labels,
    languages,
    lessons,
    manual,
    objects,
    refusals,
    report,
    running,
    syscalls,
    trace,
    unwind,
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
    {"compare", "the comparison of an experiment's runs"},
    {"custom", "custom traces"},
    {"demangle", "C++ and Rust names as they were written"},
    {"doctor", "the examination of systems, files and processes"},
    {"exec", "the emulator"},
    {"experiments", "experiments"},
    {"export", "spans, and what sends them"},
    {"formats", "the formats of other tools"},
    {"go", "the arguments of Go's functions"},
    {"guests", "guests with other kernels"},
    {"labels", "the labels of running requests"},
    {"languages", "the functions of interpreters"},
    {"lessons", "the course"},
    {"manual", "manual pages and completions"},
    {"objects", "what examines, links and describes object files"},
    {"refusals", "what explains the verifier's refusals"},
    {"report", "what names and shows profiles and captures"},
    {"running", "what shows and changes the kernel's programs, maps and links"},
    {"syscalls", "the account of rawbpf's own system calls"},
    {"trace", "the tracer"},
    {"unwind", "unwind tables"},
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
