// Lab 5.1: a function call tracer. The README beside this file is the lesson; this is the program that it talks about.
//
//      Step 1  which machine is this
//      Step 2  maps: the ring buffer for events, the hash for counters
//      Step 3  for each function: a program, loaded, attached
//      Step 4  the functions are called: events, as they come
//      Step 5  how often each was called
//      Step 6  everything is closed, which detaches
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "asm/machines.h"
#include "event.h"
#include "handler.h"
#include "runtime/base/fail.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/map.h"
#include "runtime/link/attach.h"
#include "runtime/sys/clock.h"
#include "workload.h"

using namespace rawbpf;
using namespace lab;

namespace {

constexpr const char *kUsage =
    R"(usage: function-tracer [options] [-- COMMAND...]

Traces vfs_read, vfs_write and vfs_open while a child of its own, or COMMAND, calls them.

  --user         trace user_read, user_write and user_open of the child instead: functions of a program, by uprobes
  --calls N      how often the child calls each of them (3)
  --returns      experiment 1: what the functions returned, too
  --pid PID      experiment 2: the calls of that process only (with --seconds)
  --everyone     the calls of all processes but this one (with --seconds)
  --seconds S    how long, without a child (5)
  --strings      experiment 3: texts that arguments point at
  --work N       no tracing: only what the child does, N times, for other tracers to look at
)";

struct Function {
    const char *name;
    int text_argument; ///< this one points at a text, for experiment 3
};
constexpr Function kKernelFunctions[] = {{"vfs_read", -1}, {"vfs_write", 1}, {"vfs_open", -1}};
constexpr Function kUserFunctions[] = {{"user_read", -1}, {"user_write", 1}, {"user_open", 0}};
constexpr uint32_t kFunctions = 3; // their ids are 1, 2 and 3
constexpr const char *kLine = "──────────────────────────────────────────────────────";

struct Options {
    bool user = false, returns = false, strings = false, everyone = false;
    uint64_t calls = 3, work = 0;
    uint32_t pid = 0;
    double seconds = 5;
    std::vector<std::string> command;
};

volatile std::sig_atomic_t stop_wanted = 0;

// ---- The command line

bool number(const char *text, double least, double most, double &out) {
    char *end = nullptr;
    out = text ? strtod(text, &end) : 0;
    return text && end != text && *end == 0 && out >= least && out <= most;
}

bool parse(int argc, char **argv, Options &o) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        double value = 0;
        if (word == "--user")
            o.user = true;
        else if (word == "--returns")
            o.returns = true;
        else if (word == "--strings")
            o.strings = true;
        else if (word == "--everyone")
            o.everyone = true;
        else if (word == "--calls" && number(argv[++i], 0, 1e9, value))
            o.calls = static_cast<uint64_t>(value);
        else if (word == "--work" && number(argv[++i], 1, 1e9, value))
            o.work = static_cast<uint64_t>(value);
        else if (word == "--pid" && number(argv[++i], 1, INT32_MAX, value))
            o.pid = static_cast<uint32_t>(value);
        else if (word == "--seconds" && number(argv[++i], 0, 1e6, value))
            o.seconds = value;
        else if (word == "--" && i + 1 < argc) {
            o.command.assign(argv + i + 1, argv + argc);
            break;
        } else {
            return false;
        }
    }
    const int who = (o.pid != 0) + o.everyone + !o.command.empty();
    return who <= 1 && !(o.user && (o.everyone || !o.command.empty())); // nobody else has the functions of our child
}

// ---- One event, as text

std::string timestamp(uint64_t time) {
    // The kernel's clock counts from the start of the machine; the calendar needs the difference.
    static const int64_t offset = sys::realtime_offset_ns();
    const uint64_t wall = time + static_cast<uint64_t>(offset);
    const auto seconds = static_cast<time_t>(wall / 1'000'000'000);
    struct tm parts {};
    gmtime_r(&seconds, &parts);
    return format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                  parts.tm_hour, parts.tm_min, parts.tm_sec, wall / 1'000'000 % 1000);
}

// Whatever bytes a process has put there: nothing of it may steer the terminal.
std::string printable(std::string_view bytes) {
    std::string out;
    for (char c : bytes.substr(0, bytes.find('\0'))) out += c >= ' ' && c <= '~' ? c : '.';
    return out;
}

void show(const Event &event, const EventWithText *text, const Function *functions) {
    std::string line = format("[{}] {}[{}]: {}", timestamp(event.time), printable({event.comm, sizeof event.comm}),
                              event.ids >> 32, functions[event.function - 1].name);
    if (event.kind == kReturn)
        append(line, " = {}", static_cast<int64_t>(event.args[0]));
    else if (!text)
        append(line, "({:#x}, {:#x}, {:#x}, ...)", event.args[0], event.args[1], event.args[2]);
    else if (text->text_length < 0) // an address that isn't there, or whose page isn't in memory yet
        append(line, "({:#x}, {:#x}, {:#x}, ...) <fault>", event.args[0], event.args[1], event.args[2]);
    else
        append(line, "({:#x}, {:#x}, {:#x}, ...) \"{}\"", event.args[0], event.args[1], event.args[2],
               printable({text->text, kTextBytes}));
    puts(line.c_str());
}

std::string grouped(uint64_t n) { // 1,234,567
    std::string out = std::to_string(n);
    for (size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
    return out;
}

// ---- The lab

class Lab {
  public:
    explicit Lab(const Options &options) : o_(options), functions_(options.user ? kUserFunctions : kKernelFunctions) {}

    Result<void> run() {
        printf("=== Lab 5.1: Function Call Tracer ===\n\n");
        printf("Step 1: Initializing...\n");
        printf("Architecture: %s\n", kHostArch == Arch::x86_64 ? "x86-64" : std::string(kHost.uname).c_str());
        TRY(create_maps());
        if (!o_.command.empty())
            workload_ = Workload::command(o_.command);
        else if (o_.pid == 0 && !o_.everyone)
            workload_ = Workload::calls(o_.calls);
        const bool child = o_.pid == 0 && !o_.everyone;
        if (child && workload_.pid() < 0) return fail(Errc::internal, "no child process could be started");

        printf("\nStep 3: Setting up function tracers...\n");
        size_t attached = 0;
        for (uint32_t id = 1; id <= kFunctions; ++id) attached += attach(id);
        if (attached == 0) return fail(Errc::unsupported, "none of the functions can be traced");
        printf("\n✓ Attached to %zu functions\n", attached);

        printf("\nStep 4: Live events:\n%s\n", kLine);
        TRY(watch());
        printf("%s\n", kLine);

        printf("\nStep 5: Function call statistics:\n%s\n", kLine);
        TRY(statistics());

        printf("\nStep 6: Cleanup...\n");
        objects_.clear(); // each program's descriptor is closed as its object goes
        printf("✓ Programs closed\n");
        ring_.reset();
        counts_ = {};
        events_ = {};
        printf("✓ Maps closed\n");
        if (child && workload_.status() != 0) printf("ℹ The traced process ended with status %d\n", workload_.status());
        printf("\n=== Lab 5.1 Complete! ===\n");
        return {};
    }

  private:
    Result<void> create_maps() {
        printf("\nStep 2: Creating maps...\n");
        MapSpec events; // max_entries is the ring's size in bytes
        events.name = "events";
        events.type = BPF_MAP_TYPE_RINGBUF;
        events.max_entries = kRingBytes;
        events_ = TRY(Map::create(events));
        ring_.emplace(TRY(RingBuffer::open(events_.fd(), kRingBytes)));
        printf("✓ Events ring buffer created (FD: %d)\n", events_.fd());
        MapSpec counts; // function id -> calls
        counts.name = "counts";
        counts.type = BPF_MAP_TYPE_HASH;
        counts.key_size = sizeof(uint32_t);
        counts.value_size = sizeof(uint64_t);
        counts.max_entries = kMostFunctions;
        counts_ = TRY(Map::create(counts));
        printf("✓ Counts map created (FD: %d)\n", counts_.fd());
        for (uint32_t id = 1; id <= kFunctions; ++id) TRY(counts_.put(id, uint64_t{0}));
        return {};
    }

    /// Both ends, where returns are wanted. True when the function's calls are traced.
    bool attach(uint32_t id) {
        const Function &function = functions_[id - 1];
        printf("\nAttaching to function: %s\n", function.name);
        for (const bool at_return : {false, true}) {
            if (at_return && !o_.returns) continue;
            Result<void> done = attach_end(id, function, at_return);
            if (done) continue;
            const Error &error = done.error();
            printf("✗ Failed to attach to %s: %s\n", function.name, error.message().c_str());
            if (!error.hint.empty()) printf("  %s\n", error.hint.c_str());
            return false;
        }
        return true;
    }

    Result<void> attach_end(uint32_t id, const Function &function, bool at_return) {
        HandlerOptions handler;
        const char *kind = o_.user ? (at_return ? "uretprobe" : "uprobe") : (at_return ? "kretprobe" : "kprobe");
        handler.section = format("{}/{}{}", kind, o_.user ? "/proc/self/exe:" : "", function.name);
        handler.function_id = id;
        handler.at_return = at_return;
        handler.own_pid = static_cast<uint32_t>(getpid());
        handler.only_pid = workload_.pid() > 0 ? static_cast<uint32_t>(workload_.pid()) : o_.pid;
        handler.text_argument = o_.strings && !at_return ? function.text_argument : -1;
        struct stat ns {};
        if (stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino != 0xeffffffc) { // PROC_PID_INIT_INO: the machine's own
            handler.pidns_device = uint64_t{major(ns.st_dev)} << 20 | minor(ns.st_dev);
            handler.pidns_inode = ns.st_ino;
        }
        ObjectSpec spec = TRY(create_trace_handler(handler));
        const size_t instructions = spec.programs[0].insns.size();
        LoadOptions load_options; // the maps of step 2, for the two that the handler speaks of
        load_options.replace_maps = {{"events", events_.fd()}, {"counts", counts_.fd()}};
        LoadedObject object = TRY(load(spec, load_options));
        printf("✓ Program loaded (FD: %d, %zu instructions)\n", object.programs[0].fd.get(), instructions);
        Link link = TRY(attach_program(spec, object, object.programs[0]));
        printf("✓ Attached: %s\n", link.what().c_str());
        for (const std::string &note : link.notes()) printf("ℹ %s\n", note.c_str());
        links_.push_back(std::move(link));
        objects_.push_back(std::move(object));
        return {};
    }

    void see(Bytes record) {
        EventWithText with{};
        if (record.size() < sizeof(Event)) return;
        memcpy(&with, record.data(), std::min(record.size(), sizeof with));
        const Event &event = with.event;
        if (event.function < 1 || event.function > kFunctions) return;
        if (event.kind == kCall) ++shown_;
        show(event, record.size() >= sizeof with ? &with : nullptr, functions_);
    }

    Result<void> watch() {
        const uint64_t end = sys::monotonic_ns() + static_cast<uint64_t>(o_.seconds * 1e9);
        const bool child = workload_.pid() > 0;
        if (child) workload_.go();
        for (;;) {
            const bool over = stop_wanted || (child ? workload_.ended() : sys::monotonic_ns() >= end);
            ring_->consume([&](Bytes record) { see(record); });
            fflush(stdout);
            if (over) break;
            TRY(ring_->wait(20));
        }
        links_.clear(); // detached: from here on no new events; those that are still in the ring come now
        while (ring_->consume([&](Bytes record) { see(record); }) > 0) continue;
        return {};
    }

    Result<void> statistics() {
        uint64_t all = 0;
        for (uint32_t id = 1; id <= kFunctions; ++id) {
            const uint64_t count = TRY((counts_.get<uint32_t, uint64_t>(id)));
            all += count;
            printf("%-20s: %s calls\n", functions_[id - 1].name, grouped(count).c_str());
        }
        if (all != shown_)
            printf("ℹ %s calls were counted but not shown: the ring buffer was full\n", grouped(all - shown_).c_str());
        return {};
    }

    const Options &o_;
    const Function *functions_;
    Map events_, counts_;
    std::optional<RingBuffer> ring_;
    Workload workload_;
    std::vector<LoadedObject> objects_;
    std::vector<Link> links_;
    uint64_t shown_ = 0;
};

} // namespace

int main(int argc, char **argv) {
    Options options;
    if (!parse(argc, argv, options)) return fputs(kUsage, stderr), 2;
    if (options.work != 0) return call_them(options.work, open("/dev/null", O_WRONLY)) ? 0 : 1;
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stop_wanted = 1; });
    Lab lab(options);
    Result<void> done = lab.run();
    if (done) return 0;
    fflush(stdout);
    fprintf(stderr, "\n✗ Error: %s\n", done.error().message().c_str());
    if (!done.error().hint.empty()) fprintf(stderr, "  %s\n", done.error().hint.c_str());
    if (done.error().kind == Errc::unsupported && !options.user)
        fprintf(stderr, "ℹ The same lesson with functions of a program, which needs no kprobes: %s --user\n", argv[0]);
    return 1;
}
