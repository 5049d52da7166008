// The assembler and the disassembler beside LLVM's: the same 200,000 instructions, of every kind that LLVM 19 knows, as text and
// as an object. Ours is timed in this process, LLVM's tools as processes, by their user and system time: starting up is 20 ms of
// 200.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "asm/assemble.h"
#include "asm/encode.h"
#include "asm/print.h"
#include "tests/bench/bench.h"

using namespace rawbpf;

extern char **environ;

namespace {

constexpr size_t kInsns = 200'000;
constexpr int kRounds = 7;

/// Instructions of all rows that LLVM knows by the same words.
std::vector<Insn> sample() {
    std::vector<Insn> out;
    uint64_t state = 88172645463325252;
    auto next = [&] { // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    };
    while (out.size() < kInsns) {
        const Form &form = isa::kForms[next() % isa::kFormCount];
        const bool pseudo = form.shape == Shape::load_wide && form.src != 0;
        if (form.cpu > 4 || pseudo || form.shape == Shape::call_local || form.shape == Shape::call_kfunc ||
            form.shape == Shape::call_reg || form.shape == Shape::packet_ind || form.shape == Shape::packet_abs)
            continue;
        Operands operands;
        const uint8_t fields = form.fields();
        if (fields & kDst) operands.dst = static_cast<int>(next() % 10);
        if (fields & kSrc) operands.src = static_cast<int>(next() % 10);
        if (fields & kOff) operands.off = static_cast<int64_t>(next() % 200) - 100;
        if (fields & kImm) operands.imm = static_cast<int64_t>(1 + next() % 31);
        const Encoded encoded = encode(form, operands);
        if (!encoded) continue;
        out.push_back(encoded.insn);
        if (is_wide(encoded.insn)) out.push_back(encoded.second);
    }
    return out;
}

std::string text_of(const std::vector<Insn> &insns) {
    std::string out;
    for (size_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1) {
        append_insn(out, std::span(insns).subspan(i), {.hex = true});
        out += '\n';
    }
    return out;
}

/// Time that this process was given: others' use of the machine is no news about us.
double own_cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// User and system time of a command, in ns; 0 when it can't be run.
double cpu_ns(const std::vector<std::string> &command) {
    std::vector<char *> words;
    for (const std::string &word : command) words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int started = ::posix_spawnp(&pid, words[0], &files, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (started != 0) return 0;
    int status = 0;
    rusage usage{};
    if (::wait4(pid, &status, 0, &usage) != pid || status != 0) return 0;
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

std::string find_tool(const std::string &name) {
    for (const char *version : {"-22", "-21", "-20", "-19"})
        if (cpu_ns({name + version, "--version"}) > 0) return name + version;
    return {};
}

} // namespace

int main() {
    const std::vector<Insn> insns = sample();
    const std::string text = text_of(insns);
    const double count = static_cast<double>(insns.size());
    AssembleOptions options;
    options.lines = false;
    if (!assemble(text, options)) return std::printf("%s", assemble(text, options).report().c_str()), 1;
    auto assembling = [&] {
        const double start = own_cpu_ns();
        const Assembled made = assemble(text, options);
        return (own_cpu_ns() - start) / count + (made ? 0 : 1e9);
    };
    auto printing = [&] {
        const double start = own_cpu_ns();
        const std::string out = text_of(insns);
        return (own_cpu_ns() - start) / count + (out.size() == text.size() ? 0 : 1e9);
    };

    char folder[] = "/tmp/rawbpf-bench-XXXXXX";
    if (!::mkdtemp(folder)) return 1;
    const std::string source = std::string(folder) + "/a.s", object = std::string(folder) + "/a.o";
    if (FILE *file = std::fopen(source.c_str(), "w")) {
        std::fwrite(text.data(), 1, text.size(), file);
        std::fclose(file);
    }
    const std::string mc = find_tool("llvm-mc"), objdump = find_tool("llvm-objdump");
    const std::vector<std::string> assemble_there = {mc, "-triple=bpfel", "-mcpu=v4", "-filetype=obj", source, "-o", object};
    const std::vector<std::string> print_there = {objdump, "-d", "--no-show-raw-insn", object};
    for (int which : {0, 1}) {
        const std::string name = which == 0 ? "assembler, time an instruction" : "disassembler, time an instruction";
        const auto &there = which == 0 ? assemble_there : print_there;
        auto ours = [&] { return which == 0 ? assembling() : printing(); };
        bench::row(name, "ns", bench::repeat(kRounds, ours), bench::Mark::at_most, 100);
        if ((which == 0 ? mc : objdump).empty() || cpu_ns(there) == 0) {
            bench::skipped(name + ", beside LLVM", "needs LLVM 19 or newer");
            continue;
        }
        auto [a, b] = bench::in_turns(kRounds, ours, [&] { return cpu_ns(there) / count; });
        bench::row(name + ", beside LLVM", "ns", a, b, bench::Mark::at_most, 0.1);
    }
    ::unlink(source.c_str());
    ::unlink(object.c_str());
    ::rmdir(folder);
    return 0;
}
