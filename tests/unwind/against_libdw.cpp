// Does the walker in the kernel agree with elfutils? Both look at the very same sample: a perf event's clock ticks, our program
// walks the stack, and because it returns 1 the event goes on to copy the registers and the stack's bytes for libdwfl.
//
//      tick --> our program: addresses --> ring ------------------+
//               |  returns 1                                      +--> same thread, same time --> same addresses?
//               +--> the event: registers, stack --> libdwfl -----+
//
//      against-libdw [--seconds N] [--frequency HZ] [--show N] -- COMMAND [ARGUMENT...]
//
// prints a line of JSON: how many samples there were, in how many both agree frame by frame, how many of ours reach the outermost
// frame, and why the others don't.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs/profile/program.h"
#include "programs/profile/sample.h"
#include "programs/unwind/live_tables.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "tests/support/unwinding.h"
#include "tests/unwind/dumps.h"

using namespace rawbpf;
using namespace rawbpf::unwind_test;
using rawbpf::test::kEndings;

namespace {

constexpr uint64_t kApartNs = 300'000;   // between our clock reading and the event's, in one tick
constexpr uint64_t kToldNs = 50'000'000; // after the walker got the last of a process's tables
constexpr uint32_t kStackBytes = 65528 & ~7u;
constexpr uint64_t kMostDumpBytes = 1ull << 30;

struct Ours {
    uint64_t t_ns;
    uint32_t pid, tid, flags;
    std::vector<uint64_t> user;
};

struct Counts {
    uint64_t samples = 0;                  ///< of which there are both
    uint64_t equal = 0;                    ///< frame by frame
    uint64_t ours_shorter = 0;             ///< we stopped, with a reason; up to there, equal
    uint64_t theirs_shorter = 0;           ///< they stopped
    uint64_t differ = 0;                   ///< neither
    uint64_t root = 0;                     ///< ours that reach the outermost frame
    uint64_t too_early = 0;                ///< before the walker had all tables of the process's mappings as they are now
    uint64_t not_compared = 0, alone = 0;  ///< the copy was too short or its process gone; nothing of the other side
    std::map<std::string, uint64_t> ended; ///< ours, by reason
};

[[noreturn]] void fail_with(const std::string &what) {
    fprintf(stderr, "against-libdw: %s\n", what.c_str());
    exit(1);
}
template <class T> T must(Result<T> result, const char *what) {
    if (!result) fail_with(std::string(what) + ": " + result.error().message());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Files final : public unwind::ModuleFiles {
  public:
    Result<Fd> open(uint32_t pid, const unwind::CodeMapping &mapping) override {
        char path[96];
        snprintf(path, sizeof path, "/proc/%u/map_files/%llx-%llx", pid, static_cast<unsigned long long>(mapping.start),
                 static_cast<unsigned long long>(mapping.end));
        return sys::open(path, O_RDONLY);
    }
    [[nodiscard]] std::string name(uint32_t module) const override { return names[module]; }
    uint32_t number(const symbols::Region &region) {
        const auto [at, added] = numbers.try_emplace({region.device, region.inode}, static_cast<uint32_t>(names.size()));
        if (added) names.push_back(region.path);
        return at->second;
    }

  private:
    std::map<std::pair<uint64_t, uint64_t>, uint32_t> numbers;
    std::vector<std::string> names;
};

std::map<uint32_t, uint64_t> told_ns; // by process, when it was last told

/// Tells the walker what a process has mapped, if that isn't what it was told last.
void tell(unwind::LiveTables &tables, Files &files, std::map<uint32_t, std::vector<symbols::Region>> &told, uint32_t pid) {
    const uint64_t as_of_ns = sys::monotonic_ns();
    auto maps = symbols::read_maps(static_cast<int>(pid));
    if (!maps || maps->regions.empty()) return;
    auto &before = told[pid];
    const auto same = [](const symbols::Region &a, const symbols::Region &b) {
        return a.start == b.start && a.end == b.end && a.file_offset == b.file_offset && a.inode == b.inode;
    };
    if (std::equal(before.begin(), before.end(), maps->regions.begin(), maps->regions.end(), same)) return;
    before = maps->regions;
    const auto code = test::code_mappings(before, [&](const symbols::Region &region) { return files.number(region); });
    // Some tables a call, and until the last the walker lacks mappings.
    while (!must(tables.update(pid, code, as_of_ns, sys::monotonic_ns()), "update")) {
    }
    if (!tables.published(pid)) return before.clear(); // it has executed a program meanwhile
    told_ns[pid] = sys::monotonic_ns();
}

/// The program's last words are `return 0`: now 1, so that the event writes its own record, too.
void let_through(ObjectSpec &spec) {
    for (ProgramSpec &program : spec.programs) {
        if (program.name != "profile") continue;
        const size_t end = program.subprograms.size() > 1 ? program.subprograms[1].insn : program.insns.size();
        for (size_t i = 0; i + 1 < end; ++i) {
            const bool zero = (program.insns[i].code == 0xb7 || program.insns[i].code == 0xb4) && program.insns[i].dst == 0 &&
                              program.insns[i].imm == 0;
            if (zero && program.insns[i + 1].code == 0x95) {
                program.insns[i].imm = 1;
                return;
            }
        }
    }
    fail_with("the profile program doesn't end with `return 0` any more");
}

} // namespace

int main(int argc, char **argv) {
    uint64_t seconds = 3, frequency = 499, show = 0;
    int at = 1;
    for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
        uint64_t *value = !strcmp(argv[at], "--seconds")     ? &seconds
                          : !strcmp(argv[at], "--frequency") ? &frequency
                          : !strcmp(argv[at], "--show")      ? &show
                                                             : nullptr;
        if (!value) fail_with(std::string("no option ") + argv[at]);
        *value = strtoull(argv[at + 1], nullptr, 10);
    }
    char **command = argv + at + 1;
    if (at + 1 >= argc) fail_with("a command is needed after --");

    int go[2];
    if (pipe(go) != 0) fail_with("pipe");
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        char byte;
        close(go[1]);
        if (read(go[0], &byte, 1) != 1) _exit(127);
        close(go[0]);
        execvp(command[0], command);
        _exit(127);
    }
    close(go[0]);

    profile::ProgramOptions options;
    options.config = {};
    options.config.want_user = 1;
    options.config.skip_idle = 1;
    options.config.wakeup_bytes = UINT32_MAX;
    options.ring_bytes = 32 << 20;
    options.cpus = static_cast<uint32_t>(must(possible_cpu_count(), "CPUs"));
    options.unwind = probe_unwind();
    options.unwind->depth = UNWIND_MAX_FRAMES;
    ObjectSpec spec = must(profile::program_spec(options), "the program");
    let_through(spec);
    LoadedObject object = must(load(spec), "loading");
    Files files;
    auto tables = must(unwind::LiveTables::create(object, files, {}), "tables");
    std::vector<RingBuffer> rings;
    for (uint32_t i = 0; i < std::min<uint32_t>(options.cpus, PROFILE_RINGS); ++i) {
        Map *map = object.find_map("profile_ring_" + std::to_string(i));
        rings.push_back(must(RingBuffer::open(map->fd(), map->max_entries()), "ring"));
    }

    std::string error;
    auto clock = DumpClock::on(child, frequency, kStackBytes, error);
    if (!clock) fail_with(error);
    for (int event : clock->events())
        if (ioctl(event, PERF_EVENT_IOC_SET_BPF, object.find_program("profile")->fd.get()) != 0)
            fail_with("PERF_EVENT_IOC_SET_BPF");
    if (write(go[1], "", 1) != 1) fail_with("the command can't be started");

    std::vector<Dump> dumps;
    std::vector<Ours> ours;
    std::map<uint32_t, std::vector<symbols::Region>> told;
    uint64_t bytes = 0, without_registers = 0;
    const auto gather = [&] {
        clock->read([&](Dump &&dump) {
            if (dump.registers.empty()) {
                ++without_registers;
                return;
            }
            bytes += dump.stack.size();
            if (bytes > kMostDumpBytes) fail_with("the copies take over 1 GiB: fewer seconds, or a lower frequency");
            told.try_emplace(dump.pid);
            dumps.push_back(std::move(dump));
        });
        for (RingBuffer &ring : rings)
            ring.consume([&](Bytes record) {
                if (auto sample = profile::parse_record(record))
                    ours.push_back({sample->head.t_ns,
                                    sample->head.pid,
                                    sample->head.tid,
                                    sample->head.ending,
                                    {sample->user.begin(), sample->user.end()}});
            });
    };
    const uint64_t start = sys::monotonic_ns();
    int status = 0;
    bool ended = false;
    while (sys::monotonic_ns() - start < seconds * 1'000'000'000 && !ended) {
        usleep(20'000);
        gather();
        std::vector<uint32_t> pids;
        for (auto &[pid, regions] : told) pids.push_back(pid);
        for (uint32_t pid : pids) tell(*tables, files, told, pid);
        ended = waitpid(child, &status, WNOHANG) == child;
    }
    kill(-child, SIGSTOP);
    usleep(50'000);
    gather();

    Counts counts;
    std::map<uint32_t, std::unique_ptr<Oracle>> oracles;
    std::multimap<std::pair<uint32_t, uint64_t>, const Ours *> by_time;
    for (const Ours &one : ours) by_time.emplace(std::pair{one.tid, one.t_ns}, &one);
    for (const Dump &dump : dumps) {
        const Ours *mine = nullptr;
        for (auto it = by_time.lower_bound({dump.tid, dump.t_ns - kApartNs}); it != by_time.end() && it->first.first == dump.tid;
             ++it) {
            if (it->first.second > dump.t_ns + kApartNs) break;
            mine = it->second;
        }
        if (!mine) {
            ++counts.alone;
            continue;
        }
        // Of a process, and of a library that it loads, the walker is told only after the first sample here.
        if (dump.t_ns < told_ns[dump.pid] + kToldNs || (PROFILE_ENDING(mine->flags)) == UNWIND_ENDED_NO_PROCESS) {
            ++counts.too_early;
            continue;
        }
        auto [oracle, fresh] = oracles.try_emplace(dump.pid);
        if (fresh) oracle->second = Oracle::of(dump.pid);
        Walk theirs;
        if (oracle->second) theirs = oracle->second->walk(dump);
        if (!oracle->second || theirs.dump_too_short) {
            ++counts.not_compared;
            continue;
        }
        ++counts.samples;
        const uint32_t ending = PROFILE_ENDING(mine->flags);
        ++counts.ended[ending < UNWIND_ENDINGS ? kEndings[ending] : "?"];
        counts.root += ending == UNWIND_ENDED_ROOT;
        std::vector<uint64_t> user;
        for (uint64_t address : mine->user) user.push_back(address & ~UNWIND_EXACT_PC);
        while (theirs.pcs.size() > user.size() && theirs.pcs.back() == 0) theirs.pcs.pop_back();
        size_t same = 0;
        while (same < user.size() && same < theirs.pcs.size() && user[same] == theirs.pcs[same]) ++same;
        const bool all_ours = same == user.size(), all_theirs = same == theirs.pcs.size();
        uint64_t &count = all_ours && all_theirs ? counts.equal
                          : all_ours             ? counts.ours_shorter
                          : all_theirs           ? counts.theirs_shorter
                                                 : counts.differ;
        ++count;
        if (&count == &counts.equal || show == 0) continue;
        --show;
        fprintf(stderr, "--- pid %u: %zu of ours, %zu of theirs, the first %zu are the same; ours ended: %s\n", dump.pid,
                user.size(), theirs.pcs.size(), same, kEndings[ending]);
        const auto where = [&](uint64_t pc) {
            for (const symbols::Region &region : told[dump.pid])
                if (pc >= region.start && pc < region.end) return region.path + "+" + std::to_string(region.offset_of(pc));
            return std::string("?");
        };
        for (size_t i = same > 2 ? same - 2 : 0; i < std::max(user.size(), theirs.pcs.size()) && i < same + 4; ++i)
            fprintf(stderr, "  %2zu  ours %-16llx %-50s theirs %-16llx %s\n", i,
                    static_cast<unsigned long long>(i < user.size() ? user[i] : 0), i < user.size() ? where(user[i]).c_str() : "",
                    static_cast<unsigned long long>(i < theirs.pcs.size() ? theirs.pcs[i] : 0),
                    i < theirs.pcs.size() ? where(theirs.pcs[i]).c_str() : "");
    }
    kill(-child, SIGKILL);
    if (!ended) waitpid(child, &status, 0);

    printf("{\"type\":\"unwind_compared\",\"samples\":%llu,\"equal\":%llu,\"ours_shorter\":%llu,\"theirs_shorter\":%llu,"
           "\"differ\":%llu,"
           "\"root\":%llu,\"too_early\":%llu,\"not_compared\":%llu,\"alone\":%llu,\"no_user_registers\":%llu,\"lost\":%llu,"
           "\"ended\":{",
           (unsigned long long)counts.samples, (unsigned long long)counts.equal, (unsigned long long)counts.ours_shorter,
           (unsigned long long)counts.theirs_shorter, (unsigned long long)counts.differ, (unsigned long long)counts.root,
           (unsigned long long)counts.too_early, (unsigned long long)counts.not_compared, (unsigned long long)counts.alone,
           (unsigned long long)without_registers, (unsigned long long)clock->lost());
    const char *comma = "";
    for (auto &[reason, n] : counts.ended) {
        printf("%s\"%s\":%llu", comma, reason.c_str(), (unsigned long long)n);
        comma = ",";
    }
    puts("}}");
    for (const std::string &warning : tables->warnings()) fprintf(stderr, "%s\n", warning.c_str());
    return 0;
}
