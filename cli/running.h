// What commands share that run until they are told to stop: profile, trace.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/lines.h"
#include "cli/options.h"
#include "programs/processes/scripts.h"
#include "programs/session/session.h"
#include "programs/unwind/choice.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

/// How many signals of sys::kEndingSignals came after stop_on_signals().
extern volatile std::sig_atomic_t stop_wanted;
/// When the first of them came, by sys::monotonic_ns(); 0: none has.
[[nodiscard]] uint64_t first_stop_ns();
/// The first Ctrl-C, or any signal of sys::kEndingSignals, ends the run with all its output, the second leaves out what is still
/// to be printed; a third one, while something hangs, ends the program. SIGHUP stays ignored if it was (nohup).
void stop_on_signals();
/// Asked while what waits is printed at the end of a run, with how much that is: says so where it takes a while, and whether to
/// go on. `what`: "events".
class PrintingRest {
  public:
    PrintingRest(std::string who, std::string_view what, bool quiet)
        : who_(std::move(who)), what_(what), quiet_(quiet), before_(stop_wanted) {}
    [[nodiscard]] bool go_on(uint64_t waiting);

  private:
    std::string who_;
    std::string_view what_;
    bool quiet_, told_ = false;
    int before_;
};

/// What is wrong with a command line as a whole; what is wrong with one option its table says.
[[nodiscard]] Unexpected wrong_usage(std::string text, std::string hint = {});
/// Of kNativeOption and kLanguageOption.
[[nodiscard]] inline processes::ScriptView language_view(const Arguments &a, Id native, Id language) {
    return a.has(native)     ? processes::ScriptView::native
           : a.has(language) ? processes::ScriptView::language
                             : processes::ScriptView::both;
}
/// --label of a command that takes stacks or shows events. `what` has labels; `more`: a further sentence, ". ...", or "".
#define RAWBPF_LABEL_HELP(what, more)                                                                                            \
    what "; once for each key. KEY is trace_id or span_id (of the request that the thread works on), a key of its attributes "   \
         "(http_route), or an attribute of the process (service.name). Programs publish these for observers as OpenTelemetry "   \
         "specifies it (process context and thread context). Of a Go program KEY is a label that its goroutine has by "          \
         "runtime/pprof, or goroutine, the goroutine's number (each has another one, so fewer stacks are equal). rawbpf doctor " \
         "-p PID shows which keys a process has" more
constexpr Option label_option(std::string_view help) {
    return {.name = "label", .kind = OptionKind::text, .repeatable = true, .argument = "KEY", .help = help, .part = Part::labels};
}
[[nodiscard]] std::vector<std::string> label_keys(const Arguments &a, Id label);
/// Keys without a name, and formats that have no place for labels.
[[nodiscard]] Result<void> check_labels(const Arguments &a, Id label, std::string_view format);
/// --as-root without a COMMAND.
[[nodiscard]] Result<void> check_as_root(const Arguments &a, Id as_root);
/// What COMMAND has as its standard output; -1: ours.
struct CommandOutput {
    Fd file; ///< one that was opened for it
    int fd = -1;
};
/// Where a command's table has the rows that say what is written where.
struct OutputIds {
    Id command_output, format, output;
    std::optional<Id> record = {}; ///< where it has one
};
template <size_t N> consteval OutputIds output_ids(const Option (&table)[N]) {
    return {find(table, "command-output"), find(table, "format"), find(table, "output"), find(table, "record")};
}
/// Where COMMAND's standard output goes, by --command-output or by what else stands on ours: results for machines, or a
/// recording. Errors: invalid_argument without a COMMAND, and those of open(2).
[[nodiscard]] Result<CommandOutput> place_command_output(const Arguments &a, const OutputIds &ids);
/// --record of a terminal.
[[nodiscard]] Result<void> check_record_place(const Arguments &a, Id record);
/// --record of a tool that shows nothing then, and looks up no names.
[[nodiscard]] Result<void> check_record(const Arguments &a, const OutputIds &ids, const LinesIds &names);
/// --ready-fd of a descriptor that isn't open: later its number may be that of a file or a map of ours.
[[nodiscard]] Result<void> check_ready_fd(const Arguments &a, Id ready_fd);

/// "64M", "65536K", "1G", "67108864": bytes. Errors: invalid_argument, with the option's name and the bounds.
[[nodiscard]] Result<uint64_t> parse_size(std::string_view text, std::string_view option, uint64_t least, uint64_t most);

/// How much may wait to be shown.
inline constexpr Option kBacklogOption{
    .name = "backlog",
    .kind = OptionKind::text,
    .argument = "SIZE",
    .help = "the most memory for events that come faster than rawbpf can write them and therefore wait: 64M, 2G; at least 1M. By "
            "default an eighth of the memory of the machine or of the container. Names of interpreters' functions may take 16 "
            "MiB more"};
/// It in bytes, or the default that its help states. Errors: invalid_argument.
[[nodiscard]] Result<uint64_t> backlog_bytes(const Arguments &a, Id backlog);
/// --ring in bytes, a power of two; 0: it isn't given. Errors: invalid_argument, for a size that is none.
[[nodiscard]] Result<uint32_t> ring_bytes(const Arguments &a, Id ring);
/// The status for an error in the options: 2, wrong usage; 3 where this machine can't do what they ask for.
[[nodiscard]] inline int options_status(const Error &error) { return error.kind == Errc::unsupported ? 3 : 2; }
/// What -v says of the memory that a run may take: "rawbpf trace: of 64.0 MB of memory: a ring of 1.0 MB, unwind tables up to 4.0
/// MB, events to be written up to 8.0 MB". Without a backlog: 0.
[[nodiscard]] std::string memory_text(std::string_view who, std::string_view ring, const UnwindChoice &unwind, uint64_t backlog);
/// --no-children without --pid. `also`: a command of its own may be meant, too.
[[nodiscard]] Result<void> check_no_children(const Arguments &a, Id no_children, Id pid, bool also);

/// Where a command's table has the options of unwinding.
struct UnwindIds {
    Id unwind, memory, depth;
};
template <size_t N> consteval UnwindIds unwind_ids(const Option (&table)[N]) {
    return {find(table, "unwind"), find(table, "unwind-memory"), find(table, "depth")};
}
/// What they ask for. Errors: invalid_argument, for a size that is none.
[[nodiscard]] Result<UnwindChoice> unwind_choice(const Arguments &a, const UnwindIds &ids);

/// Where a command's table has the options that say whom it observes.
struct ObservedIds {
    Id as_root, pid, duration, ready_fd;
};
template <size_t N> consteval ObservedIds observed_ids(const Option (&table)[N]) {
    return {find(table, "as-root"), find(table, "pid"), find(table, "duration"), find(table, "ready-fd")};
}
/// COMMAND, or the processes of --pid; Ctrl-C ends the run (stop_on_signals()). `command_output`: COMMAND's standard output; -1:
/// ours.
[[nodiscard]] session::Observed observed(const Arguments &a, const ObservedIds &ids, int command_output);
/// What Session::end() has said, if anything: "rawbpf trace: sh exited with status 3".
void say_ending(std::string_view who, const Arguments &a, std::string_view ending);

} // namespace rawbpf::inline v0::cli
