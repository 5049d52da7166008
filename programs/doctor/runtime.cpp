// Two ways to a language's functions. An interpreter's frames are a list in its memory (programs/languages): whether a profile
// will find it is tried here and now, in the same way. Code that a compiler made at run time is on the native stack like any
// other; whether it has names depends on what the runtime tells (runtime/symbols/jit_dump.h, perf_map.h).
#include "programs/doctor/runtime.h"

#include <algorithm>
#include <cstring>

#include "programs/languages/hotspot/code.h"
#include "programs/languages/hotspot/vm_structs.h"
#include "programs/languages/memory.h"
#include "programs/languages/runtime.h"
#include "programs/languages/thread_pointer.h"
#include "programs/languages/v8/layout.h"
#include "programs/processes/advice.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/symbols/jit_dump.h"
#include "runtime/symbols/mapped_file.h"
#include "runtime/symbols/perf_map.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::doctor {
namespace {

constexpr int kTries = 20; // the process runs on, and a list that is read meanwhile leads astray

/// "CPython 3.11.2" of "CPython 3.11.2: thread state at ...".
std::string before_colon(const std::string &text) { return text.substr(0, text.find(':')); }

/// Learns as a profile does: twice the same, or once what the runtime says of itself, too.
void learn(Runtime &out, int pid, uint64_t bias, const languages::Interpreter &file) {
    sys::Because why("what a profile would learn of an interpreter at its first samples: where its functions' frames are");
    auto pages = languages::ProcessPages::open_mapped(static_cast<uint32_t>(pid));
    if (!pages) {
        out.how = format("its memory can't be read: {}", pages.error().message());
        return;
    }
    std::optional<uint64_t> thread;
    {
        languages::Memory memory(*pages, 1024);
        thread = languages::find_thread_pointer(memory, pages->maps(), kHostArch);
    }
    if (!thread) {
        out.functions = true;
        out.how = "a profile learns at its first samples where its frames are; it can't be tried here, as its first thread's "
                  "data wasn't found";
        return;
    }
    std::optional<languages::Layout> before;
    std::string missing;
    for (int i = 0; i < kTries; ++i) {
        languages::Memory memory(*pages);
        auto layout = file.runtime->learn(memory, {file, bias, kHostArch, *thread, {}}, missing);
        const bool twice = layout && before && std::memcmp(&before->process, &layout->process, sizeof layout->process) == 0;
        if (twice || (layout && layout->confirmed)) {
            const std::string told = file.runtime->describe(file, *layout);
            out.version = before_colon(told);
            out.functions = true;
            out.how =
                format("its functions are shown, with files and lines, between the native ones; learnt from its first thread "
                       "just now: {}",
                       told.size() > out.version.size() + 2 ? told.substr(out.version.size() + 2) : told);
            return;
        }
        before = std::move(layout);
    }
    out.functions = true;
    out.how =
        format("its functions are shown once a profile has learnt where their frames are, which failed just now: {}", missing);
}

/// Reads what a profile would read. False: `why` says what is missing.
bool learn_java(Runtime &out, int pid, uint64_t bias, const languages::Interpreter &file, std::string &why) {
    if (kHostArch != Arch::x86_64) {
        why = "how its frames are left is known on x86-64 only";
        return false;
    }
    sys::Because why_read("what a profile reads of a Java virtual machine: the tables of its own structures, its list of code");
    auto pages = languages::ProcessPages::open(static_cast<uint32_t>(pid));
    if (!pages) {
        why = format("its memory can't be read: {}", pages.error().message());
        return false;
    }
    languages::Memory memory(*pages, 1 << 16);
    const auto structs = languages::hotspot::VmStructs::read(memory, file, bias, why);
    const auto offsets = structs ? languages::hotspot::layout_of(*structs, why) : std::nullopt;
    if (!offsets) return false;
    const auto heaps = languages::hotspot::read_heaps(memory, *offsets);
    if (!heaps) {
        why = "it has no heaps of code yet";
        return false;
    }
    const size_t pieces = languages::hotspot::read_code(memory, *offsets, *heaps).size();
    out.functions = true;
    const bool lines = offsets->methods.lines && offsets->scopes;
    out.how =
        format("its functions are shown, compiled and interpreted ones, {}, and stacks are whole; no flag is needed. Read just "
               "now: {} pieces of code in {} heaps",
               lines ? "with files and lines, and those that were inlined"
                     : "without lines and those that were inlined (the "
                       "virtual machine doesn't tell of them)",
               pieces, heaps->size());
    if (lines && !languages::hotspot::has_flag(memory, *structs, "DebugNonSafepoints"))
        out.how += ". Where compiled code runs, and isn't calling, its line is one close by, unless java has "
                   "-XX:+UnlockDiagnosticVMOptions "
                   "-XX:+DebugNonSafepoints";
    return true;
}

} // namespace

std::optional<Runtime> examine_runtime(int pid, const symbols::Region &region, const elf::Elf &file, Bytes bytes) {
    Runtime out;
    out.path = region.file();
    if (const auto found = languages::recognise(file, bytes)) {
        const auto bias = languages::bias_of(*found, region.start, region.file_offset);
        if (!bias) return std::nullopt;
        out.language = found->runtime->language;
        if (found->why_not.empty())
            learn(out, pid, *bias, *found);
        else
            out.how = "its functions aren't shown: " + found->why_not;
        return out;
    }
    const processes::RuntimeAdvice *known = processes::runtime_of(out.path);
    std::string why_not;
    if (const auto v8 = languages::v8::recognise(file, bytes)) {
        out.language = known ? known->name : "JavaScript";
        if (v8->layout && kHostArch == Arch::x86_64) {
            out.functions = true;
            out.how = format(
                "its functions are shown, compiled and interpreted ones, with {}, by {} symbols that it has for debuggers",
                v8->layout->code ? "the lines that run and those that a compiler has inlined" : "the lines where they begin",
                v8->told);
            if (!v8->layout->code)
                out.how += format("; the lines that run, and those that a compiler has inlined, aren't: {}", v8->why_no_lines);
            else if (!v8->sizes)
                out.how += "; of baseline code the lines where they begin, as the sizes of bytecodes weren't found in it";
            return out;
        }
        why_not = v8->layout ? "V8's frames are known on x86-64 only" : v8->why;
    }
    if (!known) return std::nullopt;
    out.language = known->name;
    if (const auto found = languages::hotspot::recognise(file, bytes)) {
        const auto bias = languages::bias_of(*found, region.start, region.file_offset);
        if (bias && learn_java(out, pid, *bias, *found, why_not)) return out;
    }
    out.how = "its native functions are shown, and the code that it makes at run time";
    if (!why_not.empty()) out.how += "; its own functions aren't read: " + why_not;
    out.advice = known->advice;
    return out;
}

CompiledNames compiled_names(int pid, const symbols::ProcessMaps &maps, size_t anonymous) {
    sys::Because why("which names a just-in-time compiler has told of its code");
    for (const symbols::Region &region : maps.regions) {
        if (!symbols::is_jit_dump_name(region.path)) continue;
        const uint32_t whose = static_cast<uint32_t>(pid);
        const auto opened = symbols::open_mapped(region, std::span(&whose, 1));
        if (!opened) return {format("{} can't be read: {}", region.path, opened.error().message()), false};
        symbols::JitDump dump;
        const auto read = dump.read_more(opened->file, 0);
        return {format("{} functions, by time, in {}{}", dump.code().size(), region.path,
                       read ? std::string() : "; then: " + read.error().message()),
                true};
    }
    if (anonymous == 0) return {};
    const auto map = symbols::PerfMap::load(pid);
    if (!map) return {format("none: {}", map.error().message()), false};
    return {format("{} functions in its perf map", map->size()), true};
}

void settle_runtimes(std::vector<Runtime> &runtimes, bool named) {
    std::vector<Runtime> kept;
    for (const bool functions : {true, false})
        for (Runtime &runtime : runtimes) {
            const auto same = [&](const Runtime &other) { return other.language == runtime.language; };
            if (runtime.functions != functions || std::any_of(kept.begin(), kept.end(), same)) continue;
            if (named && !functions) runtime.advice.clear();
            kept.push_back(std::move(runtime));
        }
    runtimes = std::move(kept);
}

void append_runtime_text(std::string &out, const Runtime &runtime) {
    render::append_line(
        out, format("  {} ({}): {}.", runtime.version.empty() ? runtime.language : runtime.version, runtime.path, runtime.how));
    if (!runtime.advice.empty()) render::append_line(out, format("    {}.", runtime.advice));
}

void append_runtime_json(std::string &out, const Runtime &runtime, int pid) {
    render::JsonLine line(out, "runtime");
    line.number("pid", static_cast<uint64_t>(pid)).text("path", runtime.path).text("language", runtime.language);
    line.text_or_null("version", runtime.version).truth("functions", runtime.functions).text("how", runtime.how);
    line.text_or_null("advice", runtime.advice);
}

void append_compiled_json(std::string &out, int pid, size_t regions, std::string_view names) {
    render::JsonLine line(out, "compiled_code");
    line.number("pid", static_cast<uint64_t>(pid)).number("regions", regions).text_or_null("names", names);
}

} // namespace rawbpf::inline v0::doctor
