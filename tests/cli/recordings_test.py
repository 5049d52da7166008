"""--record of every tool that takes it, and rawbpf report: what the live run shows, the report shows; cut anywhere, through a pipe, on a full disk."""
import json
import os
import re
import shutil
import subprocess

from harness import *
from ticker import needs_usdt_tracing, ticker
from traced import TRACED_SIG, traced

SETARCH = ["setarch", "-R"]  # so that addresses are the same in each run


def same_but_for_times(text):
    """What two runs of one kind have in common: without clocks, ids of processes, what a run cost and its own command line."""
    lines = []
    for line in text.splitlines():
        if line.startswith('{"type":"header"'):
            continue
        line = re.sub(r"^\[[^]]*\] ", "", line)
        line = re.sub(r"^(\S+)\[\d+\]:( \(\d+\))?", r"\1[PID]:", line)
        line = re.sub(r"  \d+(\.\d+)? (ns|us|ms|s)(;?)$", r"  TIME\3", line)
        line = re.sub(r',"cost":\{[^}]*\}', "", line)
        line = re.sub(r'"(time|ts)":"?[^,"}]*"?', r'"\1":0', line)
        line = re.sub(r'"(t_ns|pid|tid|cpu|duration_ns|per_second|dur|sum_ns|least_ns|p50_ns|p90_ns|p99_ns|p999_ns|most_ns|elapsed_ns)":-?[\d.]+', r'"\1":0', line)
        lines.append(line)
    return lines


def both(words, workload, shape, more=()):
    """The lines of the live run, and of a report of a recorded one."""
    live = good(*words, "-f", shape, *more, "-q", "--", *SETARCH, *workload)
    good(*words, *more, "-q", "--record", path("both.rbpf"), "--", *SETARCH, *workload)
    report = good("report", path("both.rbpf"), "-f", shape, "-q")
    return live.out, report.out


def agree(words, workload, shapes, normal=same_but_for_times, more=()):
    for shape in shapes:
        live, report = both(words, workload, shape, more)
        assert live.strip(), (words, shape)
        live, report = normal(live), normal(report)
        for a, b in zip(live, report):
            assert a == b, f"{words} -f {shape}:\nlive   {a}\nreport {b}"
        assert len(live) == len(report), (words, shape, len(live), len(report))


def numbers_aside(text):
    return [re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "N", line) for line in same_but_for_times(text) if not line.startswith(("<desc>", '],"displayTimeUnit"'))]  # the command line


@test
def a_recorded_trace_is_shown_as_the_live_one():
    program = traced()
    leaf, calls = f"uprobe:{program}:leaf", f"uprobe:{program}:calls"
    sig = ["--sig", TRACED_SIG]
    agree(["trace", leaf, *sig, "-r"], [program], ["text", "json"])
    agree(["trace", leaf, f"uprobe:{program}:mid", f"uprobe:{program}:gone", "-r"], [program], ["folded", "chrome"], numbers_aside)
    agree(["trace", leaf, f"uprobe:{program}:mid", f"uprobe:{program}:leaves", f"uprobe:{program}:gone", "--graph"], [program], ["text"], numbers_aside)
    agree(["trace", leaf, f"uprobe:{program}:again", "--latency"], [program], ["json"])
    agree(["trace", leaf, f"uprobe:{program}:again", f"uprobe:{program}:gone", "--count"], [program], ["text", "json"])
    agree(["trace", leaf, *sig, "--filter", "arg0 == 2", "--show", "comm", "-n", "2"], [program], ["text", "json"])
    live, report = both(["trace", calls, "--sig", "void*,long"], [program], "json")  # what a pointer leads to
    assert same_but_for_times(live) == same_but_for_times(report) and '"text":"again"' in report, (live, report)
    agree(["trace", "syscall:mprotect", "syscall:close", "-r"], ["true"], ["text"], numbers_aside)  # with names of constants
    # Without -q: the calls at the end, and the ledger.
    live = good("trace", leaf, "--", *SETARCH, program)
    good("trace", leaf, "--record", path("t.rbpf"), "--", *SETARCH, program)
    report = good("report", path("t.rbpf"), "-v")
    assert "Function call statistics" in report.out and same_but_for_times(live.out) == same_but_for_times(report.out), report.out
    assert re.search(r"rawbpf report: 6 events in .*\n  fired +6\n  shown +6 ", report.err) and re.search(r"^  leaf +6 +6 ", report.err, re.M), report.err


@test
def a_recorded_traces_stacks_are_named_by_the_report():
    program = traced()
    leaf = f"uprobe:{program}:leaf"
    agree(["trace", leaf, "--stack"], [program], ["text", "json", "folded"])
    agree(["trace", leaf, "--stack"], [program], ["svg", "top", "perf-script"], numbers_aside)
    agree(["trace", "syscall:openat", "--stack"], ["cat", "/etc/passwd"], ["folded"])
    good("trace", leaf, "-q", "--record", path("plain.rbpf"), "--", program)
    bad(2, "the recording has none", "report", path("plain.rbpf"), "-f", "svg")
    bad(2, "the recording has neither", "report", path("plain.rbpf"), "-f", "folded")
    bad(2, "this is a recording of calls", "report", path("plain.rbpf"), "-f", "table")


@test
def recorded_usdt_probes_are_shown_as_the_live_ones():
    needs_usdt_tracing()
    words = ["usdt", "trace", ticker(), "--types", path("ticker.types")]
    agree(words, [ticker(), "4"], ["text", "json"])
    agree([*words, "--stack"], [ticker(), "2"], ["folded"])
    agree([*words, "--count"], [ticker(), "2"], ["text"])


@test
def a_recording_says_what_it_cant_be_asked():
    program = traced()
    leaf = f"uprobe:{program}:leaf"
    for words, said in ((["-f", "json"], "--record shows nothing"), (["-o", "x"], "--record shows nothing"), (["--by", "comm", "--count"], "groups"),
                        (["--spans"], "not spans"), (["--stack", "--lines"], "looks up no names"), (["--list"], "attaches nothing")):
        bad(2, said, "trace", leaf, "--record", path("no.rbpf"), *words)
        assert not os.path.exists(path("no.rbpf"))


@test
def a_recording_of_a_trace_cut_anywhere():
    program = traced()
    good("trace", f"uprobe:{program}:leaf", "--sig", TRACED_SIG, "-r", "--stack", "-q", "--record", path("whole.rbpf"), "--", program)
    whole = open(path("whole.rbpf"), "rb").read()
    shown = 0
    for size in [0, 1, 7, 8, 16, 40, 100, *range(200, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
        with open(path("cut.rbpf"), "wb") as f:
            f.write(whole[:size])
        r = run("report", path("cut.rbpf"), "-q")
        assert r.code == 1 and "cut.rbpf" in r.err, (size, r.code, r.err)
        lines = r.out.count("]: leaf(")
        assert shown <= lines <= 12, (size, shown, lines)
        shown = lines
        if size > 400:
            assert f"the capture ends early, at byte {size}" in r.err, (size, r.err)
    assert shown == 12, shown
    # Another version, another tool's, and none at all.
    for forged, said in ((whole[:7] + b"\2" + whole[8:], "or of a later version"), (b"RAWBPFX" + whole[7:], "not a capture"), (whole + b"\x18\0", "after the end")):
        with open(path("forged.rbpf"), "wb") as f:
            f.write(forged)
        bad(1, said, "report", path("forged.rbpf"))
    good("profile", "-q", "--record", path("samples.rbpf"), "--", "true")
    bad(2, "a profile has samples", "report", path("samples.rbpf"), "-f", "text")


@test
def a_recording_through_a_pipe_and_on_a_full_disk():
    program = traced()
    leaf = f"uprobe:{program}:leaf"
    # What the command prints isn't in between.
    p = subprocess.run(f"{RB} trace {leaf} -q --record - -- sh -c 'echo printed; {program}' | {RB} report - -q", shell=True, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and p.stdout.count("]: leaf(") == 6 and "printed" not in p.stdout, p
    p = subprocess.run(f"{RB} profile -q --record - -- sh -c 'echo printed' | {RB} report - -q", shell=True, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and "capture" not in p.stderr, p
    for words in (["trace", leaf], ["profile"]):
        bad(1, "No space left on device", *words, "--record", "/dev/full", "--", program)
    if shutil.which("script"):
        p = subprocess.run(["script", "-qec", f"{RB} trace {leaf} --record - -d 0.2", "/dev/null"], capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
        assert p.returncode == 2 and b"terminal" in p.stdout and b"\0" not in p.stdout, (p.returncode, p.stdout[:200])


@test
def a_recording_of_a_trace_has_few_bytes_a_record():
    """What a slow line carries: under 16 bytes a frame, and for a system call without its stack under 32 bytes an event, all that comes once included."""
    program = traced()
    good("trace", f"uprobe:{program}:leaf", "--stack", "-q", "-n", "2000", "--record", path("dense.rbpf"), "--", program, "on")
    stacks = folded_stacks(good("report", path("dense.rbpf"), "-q", "-f", "folded").out)
    frames = sum(n * (stack.count(";") + 1) for stack, n in stacks.items())
    size = os.path.getsize(path("dense.rbpf"))
    assert frames > 4000 and size < 16 * frames, f"{size} bytes for {frames} frames"
    good("trace", "syscall:openat", "-q", "--record", path("opens.rbpf"), "--", "sh", "-c", "for i in $(seq 1500); do : </etc/passwd; done")
    events = good("report", path("opens.rbpf"), "-q").out.count("]: openat(")
    size = os.path.getsize(path("opens.rbpf"))
    assert events > 1500 and size < 32 * events, f"{size} bytes for {events} events"
