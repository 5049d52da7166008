// The start of rawbpf: processor time and memory of commands that do nothing yet, beside true(1), which is what the kernel, the
// dynamic linker and the C library take.
//
//      rawbpf version          the whole way from exec to exit
//      rawbpf COMMAND --help   a little more, for every command: the worst is shown
//
// Memory is the most that the process has held (VmHWM of /proc/PID/status), asked when it stands before its exit: the ru_maxrss
// of wait4(2) counts what the parent held when it forked, too.
#include <csignal>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "tests/bench/bench.h"

using namespace rawbpf;
using namespace rawbpf::bench;

namespace {

using Words = std::vector<std::string>;

[[noreturn]] void become(const Words &words) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    std::vector<char *> argv;
    argv.reserve(words.size() + 1);
    for (const std::string &word : words) argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
}

void check(int status, const Words &words) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    std::fprintf(stderr, "%s: status %#x\n", words[0].c_str(), static_cast<unsigned>(status));
    std::exit(1);
}

double cpu_ms(const Words &words) {
    const pid_t child = fork();
    if (child == 0) become(words);
    int status = 0;
    rusage used{};
    wait4(child, &status, 0, &used);
    check(status, words);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

double held_mb(pid_t child) {
    FILE *file = std::fopen(format("/proc/{}/status", child).c_str(), "r");
    char line[256];
    unsigned long kb = 0;
    while (file && std::fgets(line, sizeof line, file))
        if (std::sscanf(line, "VmHWM: %lu", &kb) == 1) break;
    if (file) std::fclose(file);
    return static_cast<double>(kb) * 1024 / 1e6;
}

double memory_mb(const Words &words) {
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        become(words);
    }
    int status = 0;
    double out = 0;
    waitpid(child, &status, 0); // it stands behind its exec
    ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACEEXIT);
    while (WIFSTOPPED(status)) {
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) out = held_mb(child);
        ptrace(PTRACE_CONT, child, nullptr, nullptr);
        waitpid(child, &status, 0);
    }
    check(status, words);
    return out;
}

void show(const std::string &name, const char *unit, const Figure &ours, const Figure &peer, double limit) {
    print_row(name, shown(ours, unit), shown(peer, unit), format("{:.2f}", ours.median / peer.median),
              format("< {:.4g} {}", limit, unit), ours.median < limit ? "ok" : "MISSED");
}

} // namespace

int main() {
    const char *named = std::getenv("RAWBPF");
    const std::string rawbpf = named ? named : "rawbpf";
    const Words nothing = {"true"}, version = {rawbpf, "version"};
    const auto [ours, peer] = in_turns(
        201, [&] { return cpu_ms(version); }, [&] { return cpu_ms(nothing); });
    show("start: rawbpf version, CPU", "ms", ours, peer, 1.0);
    const auto [held, least] = in_turns(
        11, [&] { return memory_mb(version); }, [&] { return memory_mb(nothing); });
    show("start: rawbpf version, memory", "MB", held, least, 2.0);

    Figure slowest, largest;
    for (const char *command :
         {"profile",      "report", "trace",   "custom", "usdt list", "usdt validate", "usdt trace", "load",
          "exec",         "step",   "inspect", "relocs", "check",     "link",          "btf dump",   "btf min",
          "gen skeleton", "asm",    "disasm",  "isa",    "helper",    "doctor",        "completion"}) {
        Words words = {rawbpf};
        const std::string text = command;
        const size_t space = text.find(' ');
        words.push_back(text.substr(0, space));
        if (space != std::string::npos) words.push_back(text.substr(space + 1));
        words.emplace_back("--help");
        const Figure time = repeat(31, [&] { return cpu_ms(words); }), memory = repeat(3, [&] { return memory_mb(words); });
        if (time.median > slowest.median) slowest = time;
        if (memory.median > largest.median) largest = memory;
    }
    row("start: the slowest command's help, CPU", "ms", slowest, peer, Mark::at_most, 1.5);
    row("start: the largest command's help, memory", "MB", largest, least, Mark::at_most, 2.0);
}
