"""Waits: the formats and options of `profile --off-cpu`, whose waits are counted, and their stacks; of many threads none is lost."""
import os
import re
import shutil
import subprocess
import xml.dom.minidom

from harness import *


@test
def waits_off_the_cpu():
    off = ("profile", "--off-cpu")
    bad(2, r"--min-wait is about waits.*\n.*add --off-cpu", "profile", "--min-wait", "1ms", "--", "true")
    for words, why in (("-F 99", "uses no clock"), ("--hw", "either of events or of waits"), ("-e page-faults", "either of events"), ("--max-cpu 1", "uses no clock"),
                       ("-C 0", "on no CPU"), ("-I", "never waits"),
                       ("--live", "shows samples, not waits"), ("--record x", "holds samples, not waits"), ("--otlp env", "makes spans from samples"),
                       ("--object own.bpf.o", "needs rawbpf's own BPF program"), ("-f folded-ext", "-f json has each wait"), ("-f firefox", "-f json has each wait"),
                       ("--min-wait soon", "soon")):
        bad(2, why, *off, *words.split(), "--", "true")
    naps = ("--", "sh", "-c", "sleep 0.3; sleep 0.3")
    r = run(*off, "-f", "folded", "-o", path("off.folded"), *naps)
    if r.code == 3:
        raise Skip(r.err.strip().splitlines()[0])
    assert r.code == 0 and re.search(r"rawbpf profile: [\d,]+ waits? in", r.err) and " a switch in BPF" in r.err, r.err
    # The kernel follows what the command starts: both sleeps are there, and the shell that waits for them; in microseconds.
    us = {}
    for line in read("off.folded").splitlines():
        stack, n = line.rsplit(" ", 1)
        us[stack.split(";")[0]] = us.get(stack.split(";")[0], 0) + int(n)
    assert us.get("sleep", 0) > 300_000 and us.get("sh", 0) > 300_000 and set(us) <= {"sleep", "sh"}, us
    assert re.search(r"^sleep;.*nanosleep.*;__schedule[^;]*_\[k\] \d{6}", read("off.folded"), re.M), read("off.folded")
    top = good(*off, "-f", "top", *naps).out
    assert "LONGEST STACKS" in top and re.search(r"\d m?s +\d", top), top
    svg = good(*off, "-f", "svg", "--min-wait", "100ms", *naps).out
    assert "Off-CPU flame graph" in svg and " waits" in svg and xml.dom.minidom.parseString(svg), svg[:300]
    table = good(*off, "--min-wait", "100ms", *naps).out.splitlines()
    assert table[0].endswith("WAITED_us") and len(table) >= 3 and all(float(l.split()[-1]) >= 100_000 for l in table[1:]), table
    if not has_json():
        return
    good(*off, "--min-wait", "100ms", "--json", "-o", path("off.json"), *naps)
    objects = rows("off.json")
    led = ledger_of(objects)
    waits = [o for o in objects if o["type"] == "sample"]
    assert len(waits) == led["shown"] and all(o["weight"] >= 100_000_000 for o in waits), waits
    assert led["waits"]["too_short"] <= led["filtered"] and led["waits"]["children_not_followed"] == 0, led
    # One that waits when the end comes counts up to there. The children of a process belong to it, unless it is said otherwise.
    target = subprocess.Popen(["sh", "-c", "while :; do sleep 0.2; done"])
    try:
        good(*off, "-p", str(target.pid), "--no-children", "-d", "1", "--json", "-o", path("off.json"))
        objects = rows("off.json")
        assert {o["pid"] for o in objects if o["type"] == "sample"} <= {target.pid} and ledger_of(objects)["waits"]["still_waiting"] <= 1, objects
        good(*off, "-p", str(target.pid), "-d", "1", "--json", "-o", path("off.json"))
        assert {o["comm"] for o in rows("off.json") if o["type"] == "sample"} == {"sh", "sleep"}, rows("off.json")
    finally:
        target.kill()
        target.wait()
    folder = path("off-board")
    os.mkdir(folder)
    alone = os.path.join(folder, "rawbpf-board")
    shutil.copy(os.path.realpath(RB), alone)
    good(*off, "-q", "-o", "/dev/null", "--", "true", binary=alone)

# They sleep long, so that two cores have time for others.
THREADS = r"""
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>
int main(int, char **words) {
    std::vector<std::thread> all;
    const int rounds = atoi(words[2]);
    for (int i = atoi(words[1]); i-- > 0;)
        all.emplace_back([=] {
            for (int round = 0; round < rounds; ++round) std::this_thread::sleep_for(std::chrono::milliseconds(400));
        });
    for (std::thread &thread : all) thread.join();
}
"""


@test
def off_cpu_has_room_for_thousands_of_threads():
    program = compile_program("many_threads", THREADS, "-pthread")
    for threads, rounds in ((1000, 3), (5000, 5)):
        r = good("profile", "--off-cpu", "-f", "folded", "--", "timeout", "30", program, str(threads), str(rounds))
        fired, lost = (int(re.search(rf"^  {word} +([\d,]+)", r.err, re.M)[1].replace(",", "")) for word in ("fired", "lost"))
        # Each sleep is a wait, and lasts.
        assert fired >= threads * rounds and lost == 0, r.err
        slept = sum(int(line.rsplit(" ", 1)[1]) for line in r.out.splitlines() if line.startswith("many_threads;"))
        assert slept >= threads * rounds * 400_000, (slept, r.err)


FIRST = r"""
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
__attribute__((noinline)) int nap_at_once() { usleep(250000); asm volatile("" ::: "memory"); return 1; }
__attribute__((noinline)) int begins() { return nap_at_once() + 1; }
__attribute__((noinline)) int child_begins() { return nap_at_once() + 2; }
}
int main() {
    int sum = begins();
    for (int i = 0; i < 4; ++i) {
        const pid_t child = fork();
        if (child == 0) _exit(child_begins() == 0);
        waitpid(child, nullptr, 0);
    }
    return sum == 0;
}
"""


@test
def off_cpu_first_waits_have_whole_stacks():
    """What a command waits for first, and each of its children: before anybody can know what they have mapped."""
    if os.uname().machine != "x86_64":
        raise Skip("arm64's compilers keep frame pointers where a function calls")
    program = compile_program("first_waits", FIRST, "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    good("profile", "--off-cpu", "--json", "-q", "-o", path("first"), "--", "sh", "-c", f"{program}; {program}")
    waits = [r for r in rows("first") if r["type"] == "sample" and r["weight"] >= 200_000_000]
    naps = [w for w in waits if "nap_at_once" in stack_names(w)]
    assert len(naps) == 10, [(w["comm"], w["weight"], stack_names(w)) for w in waits]
    for caller, count in (("begins", 2), ("child_begins", 8)):
        assert sum({caller, "main"} <= set(stack_names(w)) for w in naps) == count, [stack_names(w) for w in naps]
    # The shell's own first wait is for the program, and most of the run.
    time = sum(w["weight"] for w in waits)
    rooted = sum(w["weight"] for w in waits if w.get("user_end") == "root")
    assert rooted >= 0.99 * time, [(w["comm"], w["weight"], w.get("user_end"), stack_names(w)) for w in waits]
