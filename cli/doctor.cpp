// `rawbpf doctor`: what this kernel and these privileges allow. It changes nothing, needs no privileges to start (it says what
// it couldn't ask), and succeeds whatever it finds. With files or processes it examines these instead (doctor_modules.cpp).
#include "programs/doctor/doctor.h"

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/doctor_modules.h"
#include "runtime/base/format.h"
#include "runtime/sys/shortage.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf doctor";

constexpr Option kOptions[] = {
    pids_option("what a profile of this process will show, for each module that it has mapped, as the process sees them"),
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    verbose_option("list every program, map, attach and link type and every helper"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf doctor", "what works here, and what would make the rest work"},
    {"sudo rawbpf doctor -v", "each type and helper too"},
    {"rawbpf doctor --json", "one JSON object a check, for scripts"},
    {"rawbpf doctor /usr/bin/python3",
     "frame pointers, unwind tables, symbols, debug info, probes: what a profile of it will show"},
    {"sudo rawbpf doctor -p 1234", "the same for a process and its libraries"},
};

int answer(const Arguments &a) {
    if (!a.operands().empty() || a.has(option("pid")))
        return examine_modules(a, {option("pid"), option("format"), option("output")});
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    RunInfo run = doctor::describe_run();
    run.command = own_command_line({"rawbpf", "doctor"}, a);
    run.version = RAWBPF_VERSION;
    std::vector<doctor::Check> checks = doctor::examine();

    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();
    bool json = a.text(option("format")) == "json";
    output->writer().write(json ? doctor::as_json(checks, run) : doctor::as_text(checks, run, a.has(option("verbose"))));
    Result<void> written = output->writer().flush();
    if (!written) return reader_gone(written.error()) ? 0 : complain(kWho, written.error(), 1);
    return 0;
}

// An answer that came of a shortage is none: EMFILE isn't "this kernel doesn't have it".
int run_doctor(const Arguments &a) {
    sys::Shortage shortage;
    const int status = answer(a);
    const std::string text = shortage.text();
    if (text.empty()) return status;
    say(format("rawbpf doctor: some of it may be wrong, since the machine was short of something: {}\n", text));
    return status == 0 ? 1 : status;
}

} // namespace

const Command kDoctor{
    .name = "doctor",
    .summary = "tell what this kernel and these privileges allow, or what a profile of a program will show",
    .description =
        "Asks the running kernel for everything that the tools may want: BTF, ring buffers, every type of program, map, "
        "attachment and link, every helper function, performance counters. It also looks at privileges, sysctls, lockdown, "
        "security modules and mounts. doctor asks the kernel; it never guesses from the version. If something is missing, doctor "
        "says what would help.\n\n"
        "doctor needs no privileges; where it lacks the privileges to ask, it answers with a question mark (null in JSON). The "
        "exit status is 0 whatever it finds.\n\n"
        "With FILE or -p, doctor examines programs instead: how many functions set up a frame pointer (according to the unwind "
        "tables), the tables and their memory, where names come from, debug info, USDT probes, and in one sentence what a "
        "profile will show. Of a process doctor also says which language's runtime it has, whether a profile shows the functions "
        "of that language (for Python, doctor learns from the process where its functions' frames are, as a profile does), and "
        "who "
        "names the code that was made at run time; if the process has published an OpenTelemetry context, its attributes "
        "and the keys that profile --label knows; and of a Go program whether its goroutines' labels can be had. doctor looks "
        "for a FILE without a slash as the dynamic linker or the shell "
        "would. The exit status is "
        "then 1 if a file couldn't be read, 3 if privileges are missing.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE...",
    .least_operands = 0,
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_doctor,
};

} // namespace rawbpf::inline v0::cli
