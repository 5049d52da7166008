// A table by runtime, and one by reason. Code that a compiler writes at run time has no unwind tables, so its frames are walked
// by frame pointers, if it keeps any; which option makes it keep them, and which makes it tell the names of its functions, is
// known of each. Which runtime it was, the files say that the process has mapped.
//
//      //anon, libjvm.so mapped  -->  Java: -XX:+PreserveFramePointer ...
//      a file, no rule or stuck  -->  its compiler's options, or --unwind fp
//
// Sources: the JDK's "java" and "jcmd" manuals; node's --v8-options; CPython's "Python support for the Linux perf profiler";
// zend_jit.h (opcache.jit_debug); Ruby's doc/yjit/yjit.md; "erl" of Erlang/OTP; .NET's "runtime configuration options for
// debugging and profiling"; LuaJIT's "Running LuaJIT".
#include "programs/processes/advice.h"

#include <algorithm>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::processes {
namespace {

constexpr uint64_t kLeast = 10;     // stacks, before a share says anything
constexpr uint64_t kTolerated = 20; // one in so many may end early
constexpr size_t kMostPlaces = 4;

constexpr std::string_view kNode =
    "on x86-64 functions are shown, with lines, of a node that has v8dbg_ symbols (doctor -p PID says so) and is run without a "
    "flag; "
    "of others node --perf-basic-prof --interpreted-frames-native-stack tells the names, of the interpreted ones too";

constexpr RuntimeAdvice kRuntimes[] = {
    {"libjvm.so", true, "Java",
     "java -XX:+PreserveFramePointer keeps frame pointers; profile --jvm-perfmap asks for the names of functions (JDK 17)"},
    {"node", true, "node", kNode},
    {"libnode.so", false, "node", kNode},
    {"python3", false, "Python",
     "python3 -X perf (3.12) has a frame for each function of Python; a Python compiled with -fno-omit-frame-pointer "
     "-mno-omit-leaf-frame-pointer lets them be walked"},
    {"libpython3", false, "Python",
     "python3 -X perf (3.12) has a frame for each function of Python; a Python compiled with -fno-omit-frame-pointer "
     "-mno-omit-leaf-frame-pointer lets them be walked"},
    {"opcache.so", true, "PHP",
     "php -d opcache.jit=disable runs without code that keeps no frame pointers; -d opcache.jit_debug=16 tells its names"},
    {"ruby", false, "Ruby", "ruby --yjit-perf (3.3) keeps frame pointers and tells the names of functions"},
    {"libruby", false, "Ruby", "ruby --yjit-perf (3.3) keeps frame pointers and tells the names of functions"},
    {"libcoreclr.so", true, ".NET", "DOTNET_PerfMapEnabled=1 in its environment tells the names of functions"},
    {"beam.smp", true, "Erlang",
     "erl +JPperf true (OTP 25) keeps frame pointers and tells the names of functions; stacks end at an Erlang process's first "
     "function, which is not the thread's"},
    {"libluajit", false, "LuaJIT", "luajit -joff interprets, as compiled code keeps no frame pointers"},
    {"luajit", false, "LuaJIT", "luajit -joff interprets, as compiled code keeps no frame pointers"},
};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_of(const RuntimeAdvice &runtime, std::string_view path) {
    const std::string_view name = base_name(path);
    return runtime.whole ? name == runtime.file : name.starts_with(runtime.file);
}

// Code in no file on disk that no runtime wrote; nullptr: it may have been one.
const RuntimeAdvice *elsewhere(std::string_view path) {
    static constexpr RuntimeAdvice kSlots{
        "[uprobes]", true, "the page where the kernel runs probed instructions, and returns to",
        "a profile of the whole machine, or with -p PID begun while the process is probed, walks on "
        "from there"};
    static constexpr RuntimeAdvice kMemory{
        "/memfd:", false, "",
        "it is a file in memory: a program started from a file on disk has unwind tables and names; "
        "code made at run time may have an option that keeps frame pointers"};
    if (path == kSlots.file) return &kSlots;
    return path.starts_with(kMemory.file) ? &kMemory : nullptr;
}

std::string_view by_reason(uint32_t reason) {
    switch (reason) {
    case UNWIND_ENDED_DEPTH: return "--depth says how many frames are walked, 255 at most; these stacks have more";
    case UNWIND_ENDED_NO_PROCESS:
        return "rawbpf hadn't heard of the process yet: those of -p PID and the program of -- COMMAND have their tables from the "
               "first sample, what they start some milliseconds after its start (sooner with nice -n -10 rawbpf)";
    case UNWIND_ENDED_NO_TABLE:
        return "--unwind-memory 256M makes room for more tables; warnings say which file couldn't be read";
    case UNWIND_ENDED_NO_REGS: return "a newer kernel tells a thread's registers (5.15)";
    case UNWIND_ENDED_UNREADABLE:
    case UNWIND_ENDED_FROZEN: return ""; // nothing that a user could do
    default:
        return "compiled with -fasynchronous-unwind-tables it has all its tables; if it was compiled with "
               "-fno-omit-frame-pointer, "
               "--unwind fp walks it";
    }
}

// 32-bit ARM's kernel follows the frames of the old procedure call standard, which begin with the registers fp, sp, lr and pc
// (arch/arm/kernel/perf_callchain.c, struct frame_tail). No compiler makes them in Thumb code, and no code made at run time has
// any.
constexpr std::string_view kArmFrames =
    "32-bit ARM's kernel walks the frames of code compiled with -marm -mapcs-frame; those of Thumb code it doesn't know";
constexpr std::string_view kArmMadeAtRunTime =
    "32-bit ARM's kernel doesn't know its frames, and no option of what made it changes that";

std::string for_frame_pointers(std::string_view remedy) {
    if (remedy.empty()) return "compiled with -fno-omit-frame-pointer it can be walked by frame pointers";
    return format("{} walks it by its unwind tables; compiled with -fno-omit-frame-pointer it can be walked by frame pointers",
                  remedy);
}

uint64_t sum(const ModuleEnds &module) {
    uint64_t all = module.by_frame_pointers;
    for (const uint64_t count : module.early) all += count;
    return all;
}

} // namespace

const RuntimeAdvice *runtime_of(std::string_view path) {
    const auto found =
        std::find_if(std::begin(kRuntimes), std::end(kRuntimes), [&](const RuntimeAdvice &one) { return is_of(one, path); });
    return found == std::end(kRuntimes) ? nullptr : &*found;
}

std::vector<render::StackAdvice> advice_on(std::span<const ModuleEnds> modules, std::span<const std::string_view> mapped,
                                           const Remedy &remedy) {
    std::vector<const ModuleEnds *> poor;
    for (const ModuleEnds &module : modules)
        if (const uint64_t early = sum(module); early >= kLeast && early * kTolerated > module.stacks) poor.push_back(&module);
    std::sort(poor.begin(), poor.end(), [](const ModuleEnds *a, const ModuleEnds *b) {
        return sum(*a) != sum(*b) ? sum(*a) > sum(*b) : a->path < b->path;
    });
    std::vector<render::StackAdvice> out;
    const auto say = [&](const ModuleEnds &module, std::string_view what, std::string_view text) {
        if (text.empty() || out.size() >= kMostPlaces) return;
        const uint64_t early = sum(module);
        out.push_back({std::string(what), std::max(module.stacks, early), early, std::string(text)});
    };
    std::vector<std::string_view> told; // runtimes
    for (const ModuleEnds *module : poor) {
        if (const RuntimeAdvice *other = module->anonymous ? elsewhere(module->path) : nullptr) {
            say(*module, other->whole ? format("{} ({})", other->name, module->path) : std::string(module->path), other->advice);
            continue;
        }
        if (remedy.arch == Arch::arm) {
            if (module->anonymous)
                say(*module, "code made at run time", kArmMadeAtRunTime);
            else
                say(*module, base_name(module->path), kArmFrames);
            continue;
        }
        const auto most = std::max_element(module->early.begin(), module->early.end());
        if (!module->anonymous && module->by_frame_pointers > *most) {
            say(*module, base_name(module->path), for_frame_pointers(remedy.by_tables));
            continue;
        }
        bool known = false;
        for (const RuntimeAdvice &runtime : kRuntimes) {
            const bool here = is_of(runtime, module->path);
            const bool mapped_here = module->anonymous && std::any_of(mapped.begin(), mapped.end(), [&](std::string_view path) {
                                         return is_of(runtime, path);
                                     });
            // A runtime's own file is C or C++ like any other, unless its code at run time is poor, too: that came first, or
            // will.
            if (!here && !mapped_here) continue;
            known = true;
            if (std::find(told.begin(), told.end(), runtime.name) != told.end()) continue;
            told.push_back(runtime.name);
            say(*module,
                module->anonymous ? format("code that {} made at run time", runtime.name) : std::string(base_name(module->path)),
                runtime.advice);
        }
        if (known) continue;
        if (module->anonymous) {
            say(*module, "code made at run time", "an option of what made it may keep frame pointers");
            continue;
        }
        say(*module, base_name(module->path), by_reason(static_cast<uint32_t>(most - module->early.begin())));
    }
    return out;
}

} // namespace rawbpf::inline v0::processes
