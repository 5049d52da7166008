// The language of `rawbpf run`, as a page: `rawbpf help experiment`, rawbpf-experiment(5). The parser has the words themselves
// (programs/experiment/parse*.cpp); a test compares the two lists.
#include "cli/built.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Topic::Row kRows[] = {
    {"", "What there is"},
    {"param NAME = VALUE",
     "a parameter: $NAME and ${NAME} are its value anywhere in the text, $$ is one $; --set NAME=VALUE sets another value"},
    {"on PROBE, PROBE if CONDITION { STATEMENTS }",
     "a program at each place; A | B is B where this kernel has no A. Probes are those of rawbpf trace (kprobe:vfs_read, "
     "uprobe:FILE:FUNCTION, "
     "tracepoint:sched:sched_switch, usdt:FILE:PROVIDER:NAME ...), and profile:HZ, a clock on each CPU"},
    {"map NAME TYPE key u32 value u64 entries N",
     "a map, as the assembler's .map; .struct, .data, .rodata and .bss stand for themselves"},
    {"asm { ... }", "programs in assembly, up to a line that has only a }"},
    {"c { ... }, c FILE", "a program in C, compiled by the clang that is installed; <rawbpf/bpf.h> is found"},
    {"object FILE.bpf.o", "an object file; paths count from the folder of the experiment"},
    {"license \"TEXT\"", "the license of the probes and of the assembly; by default \"Dual MIT/GPL\""},
    {"attach PROGRAM PLACE",
     "where a program is attached, if its section doesn't say so: a probe (kprobe:vfs_read), interface NAME "
     "[egress], cgroup DIR, netns FILE, every HZ, nowhere"},
    {"format EVENT \"{pid:7} {bytes:>8} {file}\"", "how an event is shown: fields with a width, > at the right; format RING as "
                                                   "STRUCT \"...\" is for a ring buffer of assembly, C or an object"},
    {"", "What is done, in the order of the lines"},
    {"workload COMMAND", "starts COMMAND; words and quotes as in a shell, without expansion"},
    {"wait [TIME | workload]", "waits for a time (2s, 500ms, 1m), or until all workloads have ended; without an argument, until "
                               "Ctrl-C, the end of the workloads, or the time of -d"},
    {"events [until N] [for TIME]", "shows events as they come"},
    {"every TIME [times N] { STEPS }", "carries out the steps repeatedly"},
    {"print MAP [as table|hist|log2|json] [top N]", "prints what a map holds, largest first"},
    {"print \"n = {sum(reads):>8}\"", "prints a text with values"},
    {"clear MAP, MAP", "empties maps"},
    {"set NAME = VALUE",
     "sets a variable of assembly, C or an object. Before all other steps, it sets the initial value, also of constants"},
    {"set MAP[KEY] = VALUE", "sets an element of a map"},
    {"trigger LIBRARY:FUNCTION [NUMBER]...",
     "calls a function of a shared library in rawbpf itself; trigger.result is what it returns"},
    {"packet FILE|HEX [to PROGRAM] [times N]",
     "sends a packet through a program (BPF_PROG_TEST_RUN); packet.result is what it returns, packet.ns how long it took"},
    {"run PROGRAM [FILE|HEX] [times N]",
     "runs a program on these bytes. In the kernel, they are its context (for syscall, raw_tp, fentry and other types that the "
     "kernel runs on request); in the emulator, r1 points to them. Sets run.result and run.ns"},
    {"measure NAME = VALUE", "a figure of this experiment"},
    {"expect CONDITION", "a condition that must hold; if it doesn't, rawbpf shows the values in it, and the exit status is 4"},
    {"expect rejected \"TEXT\"", "expects that the verifier refuses the programs, with this text in its log"},
    {"", "Statements of a probe"},
    {"@MAP[KEY, KEY] = VALUE",
     "sets an element, and adds it if it isn't there; also +=, -=, |=, ++. A map without a key has one element"},
    {"@MAP[KEY] = count()", "an aggregate, kept for each CPU: count(), sum(x), avg(x), min(x), max(x), stats(x) (all of these), "
                            "hist(x) (powers of two), lhist(x, from, to, step)"},
    {"delete @MAP[KEY]", "removes an element"},
    {"let NAME = VALUE", "a variable of this run of the probe; NAME = VALUE sets it again"},
    {"if CONDITION { } else { }", "also else if"},
    {"emit EVENT FIELD, FIELD = VALUE", "an event for user space"},
    {"return", "ends this run of the probe"},
    {"", "Values"},
    {"arg0, ret, FIELD",
     "arguments, what a function returned, and fields of the probe; ->member and [n] through pointers, by the kernel's types"},
    {"pid tid ppid uid gid cpu comm nsecs cgroup random task probe", "the current process, thread, user, CPU and time. If "
                                                                     "the probe has a field of the same name, it is that field"},
    {"workload",
     "1 in a command that the experiment has started (`workload`, or `-- COMMAND`), and in all that it starts (up to 65,536 "
     "threads at a time), from its exec to its exit; 0 elsewhere"},
    {"str(p), str(p, 128), kstr(p)", "a text in the memory of the process (str) or of the kernel (kstr)"},
    {"words(p, end), words(p, end, 200)", "the text between two addresses in the memory of the process, with zeros shown as "
                                          "spaces: its arguments lie from task->mm->arg_start to arg_end"},
    {"cast(x, \"struct sock\")->member", "what x points to"},
    {"hex(x) ip(x) ip6(x) syscall(x) ksym(x) errno(x) signal(x)", "how a number is shown"},
    {"int(x) swap16(x) swap32(x)", "int: as a signed number of 32 bits; swap: with its bytes in the other order"},
    {"10ms 4k 0x1f 'a' \"text\"", "times are nanoseconds (ns us ms s), sizes are bytes (k m g)"},
    {"", "Values of expect, measure and print"},
    {"MAP[KEY], MAP[KEY].MEMBER",
     "an element; 0 if there is none. Keys are written as they are shown: counts[\"cat\"], calls[\"openat\"]"},
    {"sum(MAP) max(MAP) min(MAP) entries(MAP)", "over all elements"},
    {"events.count events.lost events.NAME", "how many events came, were lost, came of one kind"},
    {"maps.full", "how often a map had no room for one more element"},
    {"workload.status workload.seconds seconds", "of the workload that ended last; seconds since the start"},
    {"packet.result packet.ns run.result run.ns trigger.result", "of the last one"},
    {"packet.instructions run.instructions", "with --emulate: how many the program executed"},
    {"NAME", "a variable of a program, or an earlier measure"},
};

} // namespace

const Topic kExperimentTopic{
    .name = "experiment",
    .summary = "the language of experiments, which rawbpf run carries out",
    .description =
        "An experiment is one text file: what to observe, what to run, what to expect. rawbpf run loads its programs, attaches "
        "them, carries out its steps in the order of the lines, and then releases everything, also after an error.\n\n"
        "A line begins with a word that says what it is; a # begins a comment, and the first comment is the experiment's title. "
        "Programs are probes in a small language, assembly, C, or object files. They share a map only if they use the same name "
        "for it.",
    .rows = kRows,
    .example = "# Reads by size\n"
               "param pid = 0\n"
               "\n"
               "on tracepoint:syscalls:sys_enter_read if $pid == 0 || pid == $pid {\n"
               "    @reads[comm] = count()\n"
               "    @bytes[comm] = hist(count)\n"
               "}\n"
               "workload dd if=/dev/zero of=/dev/null bs=64k count=100\n"
               "wait workload\n"
               "print reads top 10\n"
               "print bytes\n"
               "expect reads[\"dd\"] >= 100\n",
};

const Topic *find_topic(std::span<const std::string_view> words) {
    const bool built = has(Part::manual) && has(Part::experiments) && has(Part::trace);
    return built && words.size() == 1 && (words[0] == kExperimentTopic.name || words[0] == "experiments") ? &kExperimentTopic
                                                                                                          : nullptr;
}

} // namespace rawbpf::inline v0::cli
