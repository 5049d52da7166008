// The commands, and which part of the build each belongs to (parts.h). A command that this build leaves out is a row without a
// pointer: nothing refers to its table, so nothing of it is linked.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "cli/built.h"
#include "cli/commands.h"

namespace rawbpf::inline v0::cli {
namespace {

struct Row {
    const Command *command; ///< nullptr: left out
    std::string_view name;
    Part part;
};

/// A row whose command is there if the build has its part, and those that it needs `also`. One that was left out is of the first
/// part that is missing.
consteval Row row(std::string_view name, const Command &command, Part part = Part::core, std::initializer_list<Part> also = {}) {
    if (!has(part)) return {nullptr, name, part};
    for (const Part each : also)
        if (!has(each)) return {nullptr, name, each};
    return {&command, name, part};
}

// In the order of the help.
constexpr Row kRows[] = {
    row("profile", kProfile),
    row("report", kReport, Part::report),
    row("trace", kTrace, Part::trace),
    row("custom", kCustom, Part::custom),
    row("usdt list", kUsdtList, Part::usdt),
    row("usdt validate", kUsdtValidate, Part::usdt),
    row("usdt trace", kUsdtTrace, Part::usdt, {Part::trace}),
    row("run", kRun, Part::experiments, {Part::trace}),
    row("load", kLoad),
    row("attach", kAttach, Part::running),
    row("verify", kVerify, Part::verifier),
    row("explain", kExplain, Part::verifier),
    row("draw", kDraw, Part::verifier),
    row("exec", kExec, Part::emulator),
    row("step", kStep, Part::emulator),
    row("bench", kBench, Part::emulator),
    row("compare", kCompare, Part::compare, {Part::experiments}),
    row("lab list", kLabList, Part::lessons, {Part::experiments, Part::verifier, Part::assembler, Part::emulator, Part::trace}),
    row("lab start", kLabStart, Part::lessons, {Part::experiments, Part::verifier, Part::assembler, Part::emulator, Part::trace}),
    row("lab check", kLabCheck, Part::lessons, {Part::experiments, Part::verifier, Part::assembler, Part::emulator, Part::trace}),
    row("lab grade", kLabGrade, Part::lessons, {Part::experiments, Part::verifier, Part::assembler, Part::emulator, Part::trace}),
    row("top", kTop, Part::running),
    row("prog list", kProgList, Part::running),
    row("prog show", kProgShow, Part::running),
    row("prog dump", kProgDump, Part::running),
    row("prog run", kProgRun, Part::running),
    row("prog pin", kProgPin, Part::running),
    row("map list", kMapList, Part::running),
    row("map show", kMapShow, Part::running),
    row("map dump", kMapDump, Part::running),
    row("map watch", kMapWatch, Part::running),
    row("map get", kMapGet, Part::running),
    row("map set", kMapSet, Part::running),
    row("map delete", kMapDelete, Part::running),
    row("map pin", kMapPin, Part::running),
    // In front of `link`, which takes files: those two words are no file's name.
    row("net list", kNetList, Part::running),
    row("link list", kLinkList, Part::running),
    row("link show", kLinkShow, Part::running),
    row("inspect", kInspect, Part::objects),
    row("relocs", kRelocs, Part::objects),
    row("check", kCheck, Part::objects),
    row("link", kLink, Part::objects),
    row("btf list", kBtfList, Part::running),
    row("btf show", kBtfShow, Part::running),
    row("btf dump", kBtfDump, Part::objects),
    row("btf min", kBtfMin, Part::objects),
    row("gen skeleton", kGenSkeleton, Part::objects),
    row("bundle", kBundle, Part::objects),
    row("asm", kAsm, Part::assembler),
    row("disasm", kDisasm, Part::assembler),
    row("encode", kEncode, Part::assembler),
    row("decode", kDecode, Part::assembler),
    row("isa", kIsa, Part::assembler),
    row("helper", kHelper, Part::assembler),
    row("attr", kAttr, Part::objects),
    row("new", kNew, Part::assembler),
    row("vm bundle", kVmBundle, Part::guests),
    row("vm", kVm, Part::guests),
    row("doctor", kDoctor, Part::doctor),
    row("completion", kCompletion, Part::manual),
    row("help", kHelp),
    row("version", kVersion),
    row("man", kMan, Part::manual),
    row("words", kWords, Part::manual),
};

} // namespace

std::span<const Command *const> all_commands() {
    constexpr size_t count = std::ranges::count_if(kRows, [](const Row &r) { return r.command != nullptr; });
    static constexpr auto present = [] {
        std::array<const Command *, count> out{};
        size_t n = 0;
        for (const Row &r : kRows)
            if (r.command) out[n++] = r.command;
        return out;
    }();
    return present;
}

std::optional<Error> left_out_command(std::span<const std::string_view> words) {
    if (words.empty()) return {};
    const std::string first(words[0]), both = words.size() > 1 ? first + " " + std::string(words[1]) : first;
    for (const Row &r : kRows)
        if (r.name == both || r.name == first) return r.command ? std::optional<Error>() : left_out(r.part, r.name);
    // `btf` alone was left out if all of its commands were.
    const Row *of_group = nullptr;
    for (const Row &r : kRows) {
        if (!r.name.starts_with(first + " ")) continue;
        if (r.command) return {};
        of_group = &r;
    }
    return of_group ? left_out(of_group->part, first) : std::optional<Error>();
}

} // namespace rawbpf::inline v0::cli
