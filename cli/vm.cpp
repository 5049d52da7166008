// `rawbpf vm`: rawbpf, or any command, on another kernel; `rawbpf vm bundle`: a folder that can do that elsewhere. The script
// that guests.h names does the work; these commands exec it.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/guests.h"
#include "cli/object_file.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf vm";

constexpr Option kOptions[] = {
    {.name = "kernel",
     .letter = 'k',
     .kind = OptionKind::text,
     .argument = "NAME[,NAME...]",
     .help = "which kernels, one after the other: --list lists their names",
     .section = "Which guest",
     .fallback = "6.12"},
    {.name = "list", .help = "list the names of the kernels"},
    {.name = "json",
     .help = "--list: as JSON lines, with each kernel's architecture and series (null: the newest)",
     .only_with = "list"},
    {.name = "fetch", .help = "get the kernels, and boot nothing: afterwards they need no network"},
    {.name = "guest-memory",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "megabytes of the guest's memory",
     .fallback = "512",
     .was = "memory",
     .least = 32,
     .most = 1 << 20},
    {.name = "cpus",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "CPUs of the guest",
     .fallback = "1",
     .least = 1,
     .most = 64},
    {.name = "instruction-ns",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "with one CPU, the guest's clock counts its instructions: N nanoseconds for each, a power of two. The same command "
             "then takes the same time, whatever load the host has. 0: use the host's clock",
     .fallback = "4",
     .most = 1024},
    {.name = "timeout",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "end the guest after N seconds",
     .fallback = "120",
     .least = 1},
    {.name = "file",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "HOST[:GUEST]",
     .help =
         "a file or folder to take along, at the same absolute path or at GUEST; an executable's shared libraries come with it",
     .section = "What is in it"},
    {.name = "module",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "NAME",
     .help = "a module of the kernel to load first"},
    {.name = "directory",
     .kind = OptionKind::text,
     .argument = "PATH",
     .help = "where COMMAND runs, in the guest",
     .fallback = "/tmp"},
    {.name = "bare", .help = "a root that holds rawbpf and nothing else, and nothing mounted but /dev"},
    {.name = "append", .kind = OptionKind::text, .argument = "WORDS", .help = "more for the kernel's command line"},
    {.name = "quiet", .letter = 'q', .help = "print only the output of COMMAND, and errors", .section = "Other"},
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf vm -- rawbpf doctor", "what would work on Linux 6.12?"},
    {"rawbpf vm -k 5.10,6.12 -q --file a.o:/a.o -- rawbpf load --json /a.o >all.json",
     "verify an object on two kernels; rawbpf compare all.json says what differs"},
    {"rawbpf vm -- rawbpf run writes.exp", "an experiment of this folder, as root in the guest"},
    {"rawbpf vm --list", "which kernels there are"},
};

constexpr Option kBundleOptions[] = {
    {.name = "kernel",
     .letter = 'k',
     .kind = OptionKind::text,
     .argument = "NAME[,NAME...]",
     .help = "which kernels it has: rawbpf vm --list lists their names",
     .section = "What is in it",
     .fallback = "6.12"},
};
constexpr Id kBundleKernel = find(kBundleOptions, "kernel");
constexpr Example kBundleExamples[] = {
    {"dist/rawbpf-x86_64 vm bundle class", "the folder class: ./start in it is a student's first command"},
};

int run_bundle(const Arguments &a) {
    constexpr std::string_view who = "rawbpf vm bundle";
    Result<std::vector<std::string>> words = guest_command();
    if (!words) return complain(who, words.error());
    const Result<std::vector<std::string>> kernels = kernel_names(a.text(kBundleKernel));
    if (!kernels) return complain(who, kernels.error(), 2);
    words->insert(words->end(), kernels->begin(), kernels->end());
    words->push_back(format("--bundle={}", a.operands()[0]));
    const std::string program = words->front();
    return complain(who, sys::become(program, *words));
}

int run_vm(const Arguments &a) {
    Result<std::vector<std::string>> words = guest_command();
    if (!words) return complain(kWho, words.error());
    Result<std::vector<std::string>> kernels = kernel_names(a.text(option("kernel")));
    if (!kernels) return complain(kWho, kernels.error(), 2);
    if (a.workload().empty() && !a.has(option("list")) && !a.has(option("fetch")))
        return complain(kWho, make_error(Errc::invalid_argument, "no command was given", "rawbpf vm -- rawbpf doctor"), 2);
    if (a.has(option("json"))) {
        std::string header;
        append_json_header(header, a);
        if (const int status = write_result(kWho, "", header)) return status;
        words->emplace_back("--json");
    }
    if (!a.has(option("list"))) words->insert(words->end(), kernels->begin(), kernels->end());
    for (const char *flag : {"list", "fetch", "bare", "quiet"})
        for (size_t i = 0; i < std::size(kOptions); ++i)
            if (kOptions[i].name == flag && a.has({i})) words->push_back(format("--{}", flag));
    for (const char *name : {"guest-memory", "cpus", "instruction-ns", "timeout", "directory", "append"})
        for (size_t i = 0; i < std::size(kOptions); ++i)
            if (kOptions[i].name == name && !a.text({i}).empty()) words->push_back(format("--{}={}", name, a.text({i})));
    for (const std::string_view file : a.all(option("file"))) words->push_back(format("--file={}", file));
    for (const std::string_view module : a.all(option("module"))) words->push_back(format("--module={}", module));
    if (!a.workload().empty()) {
        words->emplace_back("--");
        words->insert(words->end(), a.workload().begin(), a.workload().end());
    }
    const std::string program = words->front();
    return complain(kWho, sys::become(program, *words));
}

} // namespace

const Command kVm{
    .name = "vm",
    .summary = "run rawbpf, or any command, on another kernel",
    .description =
        "Boots Debian's kernels under QEMU, without KVM and without root, and runs COMMAND in each: this rawbpf, busybox's "
        "programs, and what --file brings. Files that COMMAND names by a relative path come along to where it runs. rawbpf "
        "passes on its standard output, standard error and exit status, and ends the "
        "guest. rawbpf installs nothing on this machine: it downloads kernels and their modules from the package archive of this "
        "Debian, and keeps them in ~/.cache/rawbpf-vm (or the folder that RAWBPF_VM_CACHE names).\n\n"
        "The command needs python3, qemu-system-x86 and busybox-static, and apt to download a kernel. A guest of another "
        "architecture needs a static rawbpf for it, in the folder that RAWBPF_DIST_arm64 or RAWBPF_DIST_amd64 names. If a kernel "
        "isn't available, the exit status is 3.",
    .options = kOptions,
    .examples = kExamples,
    .workload = true,
    .run = run_vm,
};

const Command kVmBundle{
    .name = "vm bundle",
    .summary = "make a folder for a class: rawbpf, the lessons, a kernel, and what boots it",
    .description =
        "Makes the folder DIR, which works offline and without root on any Linux of this architecture: rawbpf as one static file "
        "for x86_64 and for arm64, the lessons, the kernels, QEMU and Python with their libraries, which are used where a system "
        "has none of its own. Its first command is ./start; README.md in it has the steps for Linux, WSL2, macOS and containers. "
        "At the end, rawbpf boots a guest with only the files in DIR, as a test.\n\n"
        "The command needs what rawbpf vm needs, and a static rawbpf. It takes the rawbpf that you run if that is static, the "
        "files rawbpf-x86_64 and rawbpf-arm64 in the same folder (./dev dist makes them), or those in the folders that "
        "RAWBPF_DIST_amd64 and RAWBPF_DIST_arm64 name. It also copies the pages from the folders that RAWBPF_PAGE and "
        "RAWBPF_SLIDES name.\n\n"
        "If something that DIR needs isn't available, rawbpf makes no DIR and the exit status is 3. If DIR exists already, the "
        "status is 2.",
    .options = kBundleOptions,
    .examples = kBundleExamples,
    .operand = "DIR",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_bundle,
};

} // namespace rawbpf::inline v0::cli
