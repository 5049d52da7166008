// `rawbpf usdt list` and `usdt validate`: the USDT probes of programs, read from their files. They need no kernel, and no
// privileges except for other users' processes.
#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "programs/render/text.h"
#include "programs/usdt/print.h"
#include "runtime/base/fail.h"
#include "runtime/link/user_functions.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Option kOptions[] = {
    pids_option("show the probes of this process: those of its program and of every library that it has mapped. Paths are those "
                "that the process itself sees"),
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    {.name = "explain", .help = "show the specification of each argument, what it means, and the BPF instructions that fetch it"},
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

enum class What : uint8_t { list, validate };

struct Run {
    const Arguments &a;
    What what;
    std::string_view who;
    std::string text = {};
    usdt::Tally tally = {};
    size_t files = 0;
    std::vector<Error> problems = {};

    [[nodiscard]] bool json() const { return a.text(option("format")) == "json"; }
    [[nodiscard]] usdt::Explain explain() const { return a.has(option("explain")) ? usdt::explain_argument : nullptr; }

    Result<void> show(const usdt::Binary &binary, const usdt::Target &target) {
        const std::vector<usdt::Probe> probes = TRY(binary.probes(target, problems));
        ++files;
        if (what == What::list)
            json() ? append_list_json(text, binary, probes, explain()) : append_list_text(text, binary, probes, explain());
        else
            json() ? append_check_json(text, binary, probes, explain(), tally)
                   : append_check_text(text, binary, probes, explain(), tally);
        return {};
    }
    Result<void> file(std::string_view operand) {
        const usdt::Target target = usdt::parse_target(operand);
        std::string path = target.file;
        if (path.empty())
            return Unexpected(
                make_error(Errc::invalid_argument, format("\"{}\" names no file", operand),
                           "write FILE, FILE:PROVIDER or FILE:PROVIDER:NAME; with -p PID, the file may be left out"));
        if (path.find('/') == std::string::npos && !sys::exists(path))
            if (Result<std::string> found = find_binary(path)) path = *found;
        return show(TRY(usdt::Binary::open(path, path)), target);
    }
    // Most mapped files have no probes. So this is an error only if none of them has any that match; it then names the nearest
    // probe.
    Result<void> process(int pid, const usdt::Target &target) {
        const symbols::ProcessMaps maps = TRY_IN(symbols::read_maps(pid), "process {}", pid);
        std::optional<Error> nearest;
        const size_t before = files;
        for (const symbols::Region &region : usdt::mapped_files(maps)) {
            const std::string file = region.file();
            if (!target.file.empty() && file != target.file && render::base_name(file) != target.file) continue;
            Result<usdt::MappedBinary> binary = usdt::open_mapped(pid, region);
            if (!binary) {
                if (binary.error().kind != Errc::bad_input) problems.push_back(std::move(binary).error()); // else: no ELF file
                continue;
            }
            Result<void> shown = show(binary->binary, target);
            const bool has_some = binary->binary.elf().find_section(".note.stapsdt") != nullptr;
            if (!shown && has_some && !nearest) nearest = std::move(shown).error();
        }
        if (files != before) return {};
        if (nearest) return Unexpected(std::move(*nearest));
        return Unexpected(
            make_error(Errc::not_found, target.file.empty()
                                            ? format("process {} has mapped no file with USDT probes", pid)
                                            : format("process {} has mapped no file {} with USDT probes", pid, target.file)));
    }
};

int run_usdt(const Arguments &a, What what, std::string_view who) {
    const std::vector<int> pids = a.pids(option("pid"));
    if (pids.empty() && a.operands().empty())
        return complain(who, make_error(Errc::invalid_argument, "give a FILE, or a process with -p PID"), 2);
    Run run{a, what, who};
    if (run.json()) append_json_header(run.text, a);
    // After an error it goes on with the next target.
    int status = 0;
    const auto note = [&](Result<void> done) {
        if (!done) status = std::max(status, complain(who, done.error(), done.error().kind == Errc::permission ? 3 : 1));
    };
    for (int pid : pids) {
        if (a.operands().empty()) note(run.process(pid, {}));
        for (std::string_view operand : a.operands()) note(run.process(pid, usdt::parse_target(operand)));
    }
    if (pids.empty())
        for (std::string_view operand : a.operands()) note(run.file(operand));
    for (const Error &problem : run.problems) status = std::max(status, complain(who, problem, 1));
    if (what == What::validate && run.files != 0) {
        run.json() ? append_tally_json(run.text, run.tally) : append_tally_text(run.text, run.tally);
        if (run.tally.bad != 0) status = std::max(status, 1);
    }
    if (run.files == 0 && status != 0) return status;
    const int written = write_result(who, a.text(option("output")), run.text);
    return std::max(status, written);
}

int run_list(const Arguments &a) { return run_usdt(a, What::list, "rawbpf usdt list"); }
int run_validate(const Arguments &a) { return run_usdt(a, What::validate, "rawbpf usdt validate"); }

constexpr Example kListExamples[] = {
    {"rawbpf usdt list /usr/lib/postgresql/15/bin/postgres",
     "the probes of a program, their addresses, and where their arguments are"},
    {"rawbpf usdt list libstdc++.so.6:libstdcxx:throw --explain",
     "one probe, with the BPF instructions that fetch its arguments"},
    {"sudo rawbpf usdt list -p 1234", "all probes of a process and of its libraries"},
    {"rawbpf usdt list './postgres:postgresql:query__*' --json", "the probes that match a pattern, one JSON object per site"},
};
constexpr Example kValidateExamples[] = {
    {"rawbpf usdt validate ./server", "check whether every probe can be traced; exit status 1 if one can't"},
    {"rawbpf usdt validate ./server --json | jq -c 'select(.ok == false)'", "show only the probes that can't be traced, and why"},
};

} // namespace

const Command kUsdtList{
    .name = "usdt list",
    .summary = "list the USDT probes of a file or a process",
    .description =
        "Lists the USDT probes of a program or library (made with <sys/sdt.h>, dtrace, Go and others): provider and name, the "
        "address of each site, its semaphore, and the location and type of each argument. TARGET is FILE, FILE:PROVIDER or "
        "FILE:PROVIDER:NAME, with * and ? as in a shell. If FILE has no slash, rawbpf searches for it as the dynamic linker or "
        "the shell does. With -p, you can leave out TARGET, or its FILE (:PROVIDER:NAME).\n\n"
        "A file may be for any machine, 32- or 64-bit, of either byte order; rawbpf decodes arguments for x86_64, i386, arm64, "
        "riscv64, 32-bit ARM and s390x. An argument that no BPF program can fetch (one in a floating point register, for "
        "example) has a "
        "question mark, or in JSON a null location and a problem; the other arguments keep their numbers. If a note is damaged, "
        "the command says which one, and the exit status is 1.",
    .options = kOptions,
    .examples = kListExamples,
    .operand = "TARGET...",
    .least_operands = 0,
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_list,
};

const Command kUsdtValidate{
    .name = "usdt validate",
    .summary = "check that every USDT probe can be traced",
    .description = "Checks each probe of a file: the site has a nop (and of which kind); the site is in an executable segment, "
                   "and the semaphore in a writable one; the names can be written as PROVIDER:NAME; a BPF program can fetch each "
                   "argument (and in how many instructions; --explain shows them). TARGET is written as in rawbpf usdt list.\n\n"
                   "The exit status is 1 if a probe fails a check. The command traces nothing and needs no privileges.",
    .options = kOptions,
    .examples = kValidateExamples,
    .operand = "TARGET...",
    .least_operands = 0,
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_validate,
};

} // namespace rawbpf::inline v0::cli
