"""--record of every tool that takes it, and rawbpf report: what the live run shows, the report shows; cut anywhere, through a pipe, on a full disk."""
import json
import os
import re
import shutil
import subprocess

from harness import *
from protobuf import decoded_pprof
from reporter import SOURCE_CUSTOM, custom
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
        line = re.sub(r"^(\S+) +\d+ \[", r"\1 PID [", line) # perf-script's column: 9999 in one run, 10000 in the other
        line = re.sub(r"^PID: \d+, TID: \d+, CPU: \d+$", "PID", line)
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
def recorded_custom_traces_are_shown_as_the_live_ones():
    reporter = path("reporter")
    target = reporter + ":report_trace"
    custom(target, "-q", "--", reporter)
    for unwind in ("auto", "fp"):  # with the caller that a walk by frame pointers leaves out
        words = ["custom", target, "--unwind", unwind]
        agree(words, [reporter], ["text", "folded"])
        if has_json():
            agree(words, [reporter], ["json"])  # the hashes, too
    words = ["custom", target]
    agree(words, [reporter], ["svg", "top", "perf-script"], numbers_aside)
    if has_json():
        agree(words, [reporter], ["speedscope"], lambda text: [json.dumps([json.loads(text)["shared"]["frames"], [[p["samples"], p["weights"]] for p in json.loads(text)["profiles"]]])])
        agree(words, [reporter], ["firefox"], lambda text: [json.dumps([[len(t["samples"]["data"]), t["stringArray"] if "stringArray" in t else t["stringTable"]] for t in json.loads(text)["threads"]])])
    for weight in ("context", "count"):
        live = good(*words, "--arg", "1", "-f", "folded", "--weight", weight, "-q", "--", reporter)
        good(*words, "--arg", "1", "-q", "--record", path("weights.rbpf"), "--", reporter)
        assert live.out == good("report", path("weights.rbpf"), "-f", "folded", "--weight", weight, "-q").out and live.out.strip(), live.out
    if shutil.which("protoc") and not lacks("gzip"):
        found = []
        for command in ([*words, "-f", "pprof", "-o", path("traces.pb.gz"), "--", reporter], ["report", path("weights.rbpf"), "-f", "pprof", "-o", path("traces.pb.gz")]):
            good(*command, "-q")
            p = decoded_pprof("traces.pb.gz")
            strings = p["string_table"]
            found.append((len(p["sample"]), sorted(s for s in strings if not re.search(r"\d|rawbpf", s)), [strings[int(k["type"][0])] for k in p["sample_type"]]))
        assert found[0][1:] == found[1][1:], found
    # Without -q: totals and the ledger.
    live, report = custom(target, "--", reporter), good("report", path("weights.rbpf"))
    for said in ("Traces - Total: 5, Custom: 5, Sampling: 0", "  fired             5\n  shown             5  100.0 %"):
        assert said in live.err and said in report.err, (live.err, report.err)


@test
def recorded_samples_and_waits_are_in_the_report():
    reporter = path("reporter")
    custom(reporter + ":report_trace", "-q", "--", reporter)
    sleeper = compile_program("sleeper", SOURCE_CUSTOM.replace("return", "for (int i = 0; i < 5; i++) usleep(20000); return").replace(
        "#include <stdint.h>", "#include <stdint.h>\n#include <unistd.h>"))
    r = custom(sleeper + ":report_trace", "--off-cpu", "--freq", "999", "--record", path("waits.rbpf"), "--", "sh", "-c", f"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; {sleeper}")
    told = re.search(r"^Traces - Total: (\d+), Custom: 5, Sampling: (\d+), Off-CPU: (\d+)$", r.err, re.M)
    assert told and int(told[2]) > 5 and int(told[3]) >= 4, r.err
    report = good("report", path("waits.rbpf"))
    assert told[0] in report.err, report.err
    for origin, count in (("CUSTOM", 5), ("SAMPLING", int(told[2])), ("OFF_CPU", int(told[3]))):
        assert report.out.count(f"=== {origin} Trace #") == count, (origin, count)
    assert sum(int(ns) >= 15_000_000 for ns in re.findall(r"^Off-CPU Time: [0-9.]+ [mun]?s \((\d+) ns\)$", report.out, re.M)) >= 4, report.out
    assert re.search(r" schedule\+0x[0-9a-f]+ \[vmlinux\]", report.out), report.out  # names of the kernel came along
    folded = good("report", path("waits.rbpf"), "-q", "-f", "folded").out
    assert all(name in folded for name in ("[custom]", "[sampling]", "[off_cpu]")), folded
    bad(2, "samples have no context", "report", path("waits.rbpf"), "-f", "folded", "--weight", "off-cpu")
    good("custom", sleeper + ":report_trace", "--off-cpu", "-q", "--record", path("waits.rbpf"), "--", sleeper)
    folded = good("report", path("waits.rbpf"), "-q", "-f", "folded", "--weight", "off-cpu").out
    assert sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines()) >= 75_000_000 and "[custom]" not in folded, folded


@test
def recorded_custom_traces_are_named_by_the_report():
    reporter = path("reporter")
    custom(reporter + ":report_trace", "-q", "--", reporter)
    root = path("elsewhere")
    os.makedirs(root + os.path.dirname(reporter), exist_ok=True)
    moved = path("moved_reporter")
    shutil.copy(reporter, moved)
    good("custom", moved + ":report_trace", "--unwind", "fp", "-q", "--record", path("moved.rbpf"), "--", moved)
    whole = good("report", path("moved.rbpf"), "-q", "-f", "folded").out
    assert ";main;report_trace 5" in whole, whole
    shutil.move(moved, root + moved)  # now it is only below --symfs
    r = run("report", path("moved.rbpf"), "-q", "-f", "folded")
    assert r.code == 0 and "report_trace" not in r.out and "isn't here" in r.err, (r.code, r.out, r.err)
    assert good("report", path("moved.rbpf"), "-q", "-f", "folded", "--symfs", root).out == whole


@test
def a_recording_says_what_it_cant_be_asked():
    program = traced()
    leaf = f"uprobe:{program}:leaf"
    for words, said in ((["-f", "json"], "--record shows nothing"), (["-o", "x"], "--record shows nothing"), (["--by", "comm", "--count"], "groups"),
                        (["--spans"], "not spans"), (["--stack", "--lines"], "looks up no names"), (["--list"], "attaches nothing")):
        bad(2, said, "trace", leaf, "--record", path("no.rbpf"), *words)
        assert not os.path.exists(path("no.rbpf"))
    custom(path("reporter") + ":report_trace", "-q", "--record", path("traces.rbpf"), "--", path("reporter"))
    for words, said in ((["-f", "json"], "--record shows nothing"), (["-o", "x"], "--record shows nothing"), (["--weight", "context"], "--record shows nothing"),
                        (["--lines"], "looks up no names"), (["--inline"], "looks up no names")):
        bad(2, said, "custom", path("reporter") + ":report_trace", "--record", path("no.rbpf"), *words)
        assert not os.path.exists(path("no.rbpf"))
    for words, said in ((["-f", "table"], "shows samples"), (["-f", "chrome"], "shows calls"), (["--ps"], "table of samples"), (["--per-thread"], "--per-thread"),
                        (["--weight", "context"], "folded, svg and top, not text"), (["-f", "svg", "--weight", "off-cpu"], "needs --off-cpu"),
                        (["--diff", path("traces.rbpf"), "--weight", "context"], "--diff compares profiles")):
        bad(2, said, "report", path("traces.rbpf"), *words)
    bad(1, "recorded by rawbpf custom, not by rawbpf profile", "report", path("traces.rbpf"), "--diff", path("traces.rbpf"))
    good("profile", "-q", "--record", path("samples.rbpf"), "--", "true")
    bad(2, "recordings of rawbpf custom", "report", path("samples.rbpf"), "--weight", "context", "-f", "svg")


def cut_anywhere(whole, least, shown_by, most):
    """Every byte near the beginning, then some: shown up to there, status 1, and a sentence."""
    shown = 0
    for size in [0, 1, 7, 8, 16, 40, 100, *range(200, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
        with open(path("cut.rbpf"), "wb") as f:
            f.write(whole[:size])
        r = run("report", path("cut.rbpf"), "-q")
        assert r.code == 1 and "cut.rbpf" in r.err, (size, r.code, r.err)
        lines = len(re.findall(shown_by, r.out, re.M))
        assert shown <= lines <= most, (size, shown, lines)
        shown = lines
        if size > least:
            assert f"the capture ends early, at byte {size}" in r.err, (size, r.err)
    assert shown == most, shown
    # Another version, another tool's, one more at the end, one that nobody knows, and none at all.
    header = 8 + 1 + len_with_size(whole[9:])
    for forged, said in ((whole[:7] + b"\2" + whole[8:], "or of a later version"), (b"RAWBPFX" + whole[7:], "not a capture"), (whole + b"\x18\0", "after the end"),
                         (whole[:header] + b"\x7f\0" + whole[header:], "a record of the unknown type 127")):
        with open(path("forged.rbpf"), "wb") as f:
            f.write(forged)
        bad(1, said, "report", path("forged.rbpf"))


def len_with_size(data):
    """Of a payload that stands behind its length, in LEB128."""
    size = 0
    for i, byte in enumerate(data):
        size |= (byte & 0x7f) << 7 * i
        if byte < 0x80:
            return i + 1 + size
    raise AssertionError("no length")


@test
def a_recording_of_a_trace_cut_anywhere():
    program = traced()
    good("trace", f"uprobe:{program}:leaf", "--sig", TRACED_SIG, "-r", "--stack", "-q", "--record", path("whole.rbpf"), "--", program)
    cut_anywhere(open(path("whole.rbpf"), "rb").read(), 400, r"\]: leaf\(", 12)
    good("profile", "-q", "--record", path("samples.rbpf"), "--", "true")
    bad(2, "a profile has samples", "report", path("samples.rbpf"), "-f", "text")


@test
def a_recording_of_custom_traces_cut_anywhere():
    custom(path("reporter") + ":report_trace", "-q", "--record", path("whole.rbpf"), "--", path("reporter"))
    whole = open(path("whole.rbpf"), "rb").read()
    cut_anywhere(whole, 200, "^=== CUSTOM Trace #", 5)
    for size in range(len(whole) - 1, len(whole) - 100, -7):
        with open(path("cut.rbpf"), "wb") as f:
            f.write(whole[:size])
        for shape in ("folded", "json"):
            assert run("report", path("cut.rbpf"), "-q", "-f", shape).code in (1, 3), (size, shape)


@test
def a_recording_through_a_pipe_and_on_a_full_disk():
    program = traced()
    leaf = f"uprobe:{program}:leaf"
    # What the command prints isn't in between.
    p = subprocess.run(f"{RB} trace {leaf} -q --record - -- sh -c 'echo printed; {program}' | {RB} report - -q", shell=True, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and p.stdout.count("]: leaf(") == 6 and "printed" not in p.stdout, p
    p = subprocess.run(f"{RB} profile -q --record - -- sh -c 'echo printed' | {RB} report - -q", shell=True, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and "capture" not in p.stderr, p
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    reports = [path("reporter") + ":report_trace"]
    p = subprocess.run(f"{RB} custom {reports[0]} -q --record - -- sh -c 'echo printed; {path('reporter')}' | {RB} report - -q", shell=True, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and p.stdout.count("=== CUSTOM Trace #") == 5 and "printed" not in p.stdout, p
    for words, command in ((["trace", leaf], program), (["profile"], program), (["custom", *reports], path("reporter"))):
        bad(1, "No space left on device", *words, "--record", "/dev/full", "--", command)
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
    # A custom trace of known stacks: its context and who it was of, too.
    busy = compile_program("busy_reporter", SOURCE_CUSTOM.replace("i < 5", "i < 3000"), "-Wl,--build-id=sha1")
    custom(busy + ":report_trace", "-q", "--record", path("traces.rbpf"), "--", busy)
    traces = good("report", path("traces.rbpf"), "-q").out
    frames, count = traces.count("\n  #"), traces.count("=== CUSTOM Trace #")
    size = os.path.getsize(path("traces.rbpf"))
    assert count == 3000 and size < 16 * frames and size < 20 * count, f"{size} bytes for {count} traces, {frames} frames"
