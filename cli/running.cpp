// The first and last steps that the long-running commands share.
#include "cli/running.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <fcntl.h>

#include "cli/built.h"
#include "cli/console.h"
#include "programs/capture/memory_shares.h"
#include "programs/render/ledger.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {

volatile std::sig_atomic_t stop_wanted = 0;

namespace {
constexpr uint64_t kWorthTelling = 500'000; // a quarter of a second
std::atomic<uint64_t> first_stop{0};
static_assert(std::atomic<uint64_t>::is_always_lock_free); // a signal handler writes it
} // namespace

uint64_t first_stop_ns() { return first_stop; }

void stop_on_signals() {
    struct sigaction action {}; // without SA_RESTART: a wait ends at once
    action.sa_handler = [](int signal) {
        if (stop_wanted == 0) first_stop = sys::monotonic_ns();
        stop_wanted = stop_wanted + 1;
        if (stop_wanted >= 2) ::signal(signal, SIG_DFL);
    };
    for (int signal = 1; signal <= 64; ++signal) {
        if ((sys::kEndingSignals >> (signal - 1) & 1) == 0) continue;
        struct sigaction before {};
        if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(signal, &action, nullptr);
    }
}

bool PrintingRest::go_on(uint64_t waiting) {
    if (stop_wanted >= 2 || stop_wanted > before_) return false;
    if (!told_ && !quiet_ && waiting > kWorthTelling)
        say(format("{}: {} {} wait to be written; Ctrl-C leaves them out\n", who_, render::grouped(waiting), what_));
    told_ = true;
    return true;
}

Result<uint64_t> backlog_bytes(const Arguments &a, Id backlog) {
    if (a.has(backlog)) return parse_size(a.text(backlog), "--backlog", uint64_t{1} << 20, uint64_t{1} << 40);
    return memory_shares().backlog;
}

namespace {

// Of memory that the kernel can't swap out.
Result<uint64_t> locked_size(std::string_view text, std::string_view option) {
    const uint64_t bytes = TRY(parse_size(text, option, uint64_t{1} << 20, uint64_t{4} << 30));
    const MemoryShares shares = memory_shares();
    if (bytes <= shares.most_asked) return bytes;
    return Unexpected(
        make_error(Errc::unsupported,
                   format("{}: {} is more than a quarter of the {} of memory here, and none of it could be swapped out", option,
                          text, render::size_text(shares.memory)),
                   format("at most {}M; rawbpf doctor shows what is taken without {}", shares.most_asked >> 20, option)));
}

} // namespace

std::string memory_text(std::string_view who, std::string_view ring, const UnwindChoice &unwind, uint64_t backlog) {
    std::string text = format("{}: of {} of memory: {}", who, render::size_text(memory_shares().memory), ring);
    if (has(Part::unwind)) append(text, ", unwind tables up to {}", render::size_text(unwind.memory));
    if (backlog > 0) append(text, ", events to be written up to {}", render::size_text(backlog));
    return text + "\n";
}

Unexpected wrong_usage(std::string text, std::string hint) {
    return Unexpected(make_error(Errc::invalid_argument, std::move(text), std::move(hint)));
}

Result<uint64_t> parse_size(std::string_view text, std::string_view option, uint64_t least, uint64_t most) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    const int shift = unit.empty()                 ? 0
                      : unit == "K" || unit == "k" ? 10
                      : unit == "M" || unit == "m" ? 20
                      : unit == "G" || unit == "g" ? 30
                                                   : -1;
    if (error != std::errc() || shift < 0)
        return wrong_usage(format("{}: '{}' is no size", option, text), "a number with K, M or G behind it: 64M");
    if (value > most >> shift || value << shift < least)
        return wrong_usage(format("{}: {} isn't between {}M and {}M", option, text, least >> 20, most >> 20));
    return value << shift;
}

std::vector<std::string> label_keys(const Arguments &a, Id label) {
    const auto keys = a.all(label);
    return {keys.begin(), keys.end()};
}

Result<void> check_labels(const Arguments &a, Id label, std::string_view format) {
    if (!a.has(label)) return {};
    for (const std::string_view key : a.all(label))
        if (key.empty()) return wrong_usage("--label: a key has a name", "--label trace_id, --label service.name");
    if (format == "perf-script") return wrong_usage("-f perf-script has no place for labels", "-f json and -f pprof have them");
    return {};
}

Result<void> check_as_root(const Arguments &a, Id as_root) {
    if (a.has(as_root) && a.workload().empty())
        return wrong_usage("--as-root is about COMMAND, and there is none", "put it behind --");
    return {};
}

Result<CommandOutput> place_command_output(const Arguments &a, const OutputIds &ids) {
    const std::string_view format = a.text(ids.format), output = a.text(ids.output);
    std::string_view where = a.text(ids.command_output);
    if (a.workload().empty()) {
        if (!where.empty()) return wrong_usage("--command-output is about COMMAND, and there is none", "put it behind --");
        return CommandOutput();
    }
    const bool for_people = format.empty() || format == "text" || format == "table" || format == "top";
    const bool on_stdout = output.empty() || output == "-";
    const bool for_machines = (on_stdout && !for_people) || (ids.record && a.text(*ids.record) == "-");
    if (where.empty()) where = for_machines ? "stderr" : "stdout";
    if (where == "stdout") return CommandOutput();
    if (where == "stderr") return CommandOutput{Fd(), 2};
    const bool nowhere = where == "null"; // a file of that name isn't made where there is no such device
    const std::string path = nowhere ? "/dev/null" : std::string(where);
    Fd file = TRY_IN(sys::open(path, nowhere ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666), "--command-output {}", where);
    const int fd = file.get();
    return CommandOutput{std::move(file), fd};
}

Result<void> check_record_place(const Arguments &a, Id record) {
    if (a.text(record) != "-" || !is_terminal(1)) return {};
    return wrong_usage("--record -: a capture is binary, and standard output is a terminal",
                       "write it to a file, or pipe it to rawbpf report -");
}

Result<void> check_record(const Arguments &a, const OutputIds &ids, const LinesIds &names) {
    if (!ids.record || !a.has(*ids.record)) return {};
    if (a.has(ids.format) || a.has(ids.output))
        return wrong_usage(format("--record shows nothing, and -{} is about what is shown", a.has(ids.format) ? 'f' : 'o'),
                           "rawbpf report FILE has -f and -o");
    if (a.has(names.lines) || a.has(names.inlined)) {
        const std::string_view what = a.has(names.lines) ? "lines" : "inline";
        return wrong_usage(format("--record looks up no names, and --{} adds to them", what),
                           format("rawbpf report FILE has --{}", what));
    }
    return check_record_place(a, *ids.record);
}

Result<void> check_ready_fd(const Arguments &a, Id ready_fd) {
    if (a.has(ready_fd) && !is_open(static_cast<int>(a.count(ready_fd))))
        return wrong_usage(format("--ready-fd: descriptor {} isn't open", a.count(ready_fd)),
                           format("a shell opens it with {0}>FILE or {0}>&1", a.count(ready_fd)));
    return {};
}

Result<uint32_t> ring_bytes(const Arguments &a, Id ring) {
    if (!a.has(ring)) return 0;
    const uint64_t bytes = TRY(locked_size(a.text(ring), "--ring"));
    return static_cast<uint32_t>(std::min<uint64_t>(std::bit_ceil(bytes), uint64_t{1} << 31)); // the largest that the kernel has
}

Result<void> check_no_children(const Arguments &a, Id no_children, Id pid, bool also) {
    if (!a.has(no_children) || a.has(pid) || (also && !a.workload().empty())) return {};
    return wrong_usage("--no-children needs a process",
                       also ? "-p PID, or -- COMMAND" : "-p PID; without it, all processes are traced");
}

Result<UnwindChoice> unwind_choice(const Arguments &a, const UnwindIds &ids) {
    UnwindChoice out;
    const std::string_view how = a.text(ids.unwind);
    out.by = how == "fp" ? UnwindBy::fp : how == "dwarf" ? UnwindBy::tables : UnwindBy::automatic;
    out.memory = a.has(ids.memory) ? TRY(locked_size(a.text(ids.memory), "--unwind-memory")) : memory_shares().unwind_tables;
    out.depth = static_cast<uint32_t>(a.count(ids.depth));
    return out;
}

session::Observed observed(const Arguments &a, const ObservedIds &ids, int command_output) {
    session::Observed out;
    out.workload = a.workload();
    out.as_root = a.has(ids.as_root);
    out.workload_output = command_output;
    out.pids = a.pids(ids.pid);
    out.duration_s = a.seconds(ids.duration);
    if (a.has(ids.ready_fd)) out.ready_fd = static_cast<int>(a.count(ids.ready_fd));
    out.stop = &stop_wanted;
    return out;
}

void say_ending(std::string_view who, const Arguments &a, std::string_view ending) {
    if (ending.empty()) return;
    const bool command = !a.workload().empty();
    say(format("{}: {}{}{}\n", who, command ? a.workload()[0] : "", command ? " " : "", ending));
}

} // namespace rawbpf::inline v0::cli
