"""rawbpf trace: counts, stacks, call graphs, latencies and formats of traced functions."""
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.dom.minidom

from harness import *
from protobuf import protobuf_text
from traced import TRACED_SIG, trace_events, traced


@test
def trace_counts_to_the_call():
    program = traced()
    (counts,), ledger = trace_events(*[f"uprobe:{program}:{f}" for f in ("leaf", "mid", "again", "gone")], "--count", "--", program)
    assert counts == {"type": "counts", "counts": {"leaf": 6, "mid": 3, "again": 6, "gone": 1}}, counts
    assert ledger["functions"]["leaf"] == {"fired": 6, "shown": 6, "filtered": 0, "sampled_out": 0, "lost": 0}, ledger
    text = good("trace", f"uprobe:{program}:leaf", f"uprobe:{program}:gone", "--count", "-v", "--", program)
    assert text.out == "leaf                : 6 calls\ngone                : 1 call\n", text.out
    assert re.search(r"function +fired +shown +filtered +sampled out +lost\n  leaf +6 +6 +0 +0 +0\n  gone +1 +1 +0 +0 +0\n", text.err), text.err
    assert "\x1b" not in text.out + text.err


@test
def trace_json_has_its_fields_in_order():
    program = traced()
    rows, _ = trace_events(f"uprobe:{program}:leaf", "--sig", TRACED_SIG, "-r", "--", program)
    fields = ["type", "time", "t_ns", "comm", "pid", "tid", "cpu", "probe", "function", "args", "ret", "duration_ns", "depth", "stack"]
    assert [r["type"] for r in rows] == ["call", "return"] * 6, rows
    for row in rows:
        assert list(row) == fields, list(row)
        assert row["probe"] == f"uprobe:{program}:leaf" and row["function"] == "leaf" and row["comm"] == "traced", row
        assert row["stack"] is None and row["depth"] == 0, row
    assert rows[0]["args"] == [{"name": "arg0", "type": "long", "value": 0}, {"name": "arg1", "type": "const char *", "value": "hello"}]
    assert rows[0]["ret"] is None and rows[0]["duration_ns"] is None and rows[1]["ret"] == 1 and rows[1]["duration_ns"] > 0, rows[:2]
    rows, ledger = trace_events(f"uprobe:{program}:leaf", "--sig", TRACED_SIG, "--filter", "arg0 == 2", "--", program)
    assert [r["args"][1]["value"] for r in rows] == ["world", "hello"] and ledger["filtered"] == 4, (rows, ledger)
    assert rows[0]["depth"] is None, rows[0]


@test
def trace_stacks_have_names():
    program = traced()
    rows, ledger = trace_events(f"uprobe:{program}:leaf", "--stack", "--", program)
    for row in rows:
        frames = row["stack"]["user"]
        assert [f["symbol"] for f in frames][0] == "leaf" and "work" in [f["symbol"] for f in frames], frames
        assert set(frames[0]) == {"addr", "symbol", "symbol_offset", "module", "file_offset", "build_id"}, frames[0]
        assert os.path.realpath(frames[0]["module"]) == os.path.realpath(program) and frames[0]["symbol_offset"] == 0, frames[0]
        assert isinstance(row["stack"]["kernel"], list)
    if "stack_ends" in ledger:
        assert_ends_are_the_ledgers([row["stack"].get("user_end") for row in rows], ledger)
    assert len(rows) == 6 and "user_stack_unreadable" not in ledger["degraded"], ledger
    text = good("trace", f"uprobe:{program}:leaf", "--stack", "-q", "--", program).out
    assert re.search(r"\]: leaf\(.*\)\n +[0-9a-f]+  leaf  \[traced\]\n(?: +[0-9a-f]+  mid\+0x[0-9a-f]+  \[traced\]\n)?"
                     r" +[0-9a-f]+  work\+0x[0-9a-f]+  \[traced\]\n", text), text
    # A system call's: the kernel's own frames, where it lets us read its symbols.
    rows, _ = trace_events("syscall:getpid", "--stack", "-n", "1", "--", sys.executable, "-c", "import os; os.getppid(); os.getpid()")
    if not rows:
        return  # a C library that remembers the number
    assert rows[0]["stack"]["kernel"], rows[0]


@test
def trace_functions_are_named_where_a_pointer_leads_to_one():
    program = traced()
    rows, _ = trace_events(f"uprobe:{program}:calls", "--sig", "long (void *f, long a)", "--", program)
    (f, a) = rows[0]["args"]
    assert f["name"] == "f" and re.fullmatch(r"0x[0-9a-f]+", f["value"]) and f["text"] == "again", f
    assert a == {"name": "a", "type": "long", "value": 1}, a
    assert "calls(f=again, a=1)" in good("trace", f"uprobe:{program}:calls", "--sig", "long (void *f, long a)", "-q", "--", program).out


@test
def trace_graph_shows_who_calls_whom():
    program = traced()
    functions = [f"uprobe:{program}:{f}" for f in ("work", "mid", "leaf", "again", "leaves", "gone")]
    r = good("trace", *functions, "--sig", "long", "--graph", "--", program)
    lines = [re.sub(r"  [\d.]+ [mun]?s", "  T", line.split("]: ", 1)[1]) for line in r.out.splitlines() if "]: " in line]
    assert sum(line.endswith(";") for line in lines) >= 4, lines
    # A leaf call that was interrupted for long takes two lines.
    lines = re.sub(r"(?m)^( *)(\w+)(\(.*\)) \{\n\1\} \2 = (\S+)  T$", r"\1\2\3 = \4  T;", "\n".join(lines)).split("\n")
    assert lines == [
        "work(arg0=3) {",
        "  mid(arg0=0) {", "    leaf(arg0=0) = 1  T;", "    leaf(arg0=1) = 2  T;", "  } mid = 3  T",
        "  mid(arg0=1) {", "    leaf(arg0=1) = 2  T;", "    leaf(arg0=2) = 3  T;", "  } mid = 5  T",
        "  mid(arg0=2) {", "    leaf(arg0=2) = 3  T;", "    leaf(arg0=3) = 4  T;", "  } mid = 7  T",
        "  again(arg0=3) {", "    again(arg0=2) {", "      again(arg0=1) {", "        again(arg0=0) = 0  T;",
        "      } again = 1  T", "    } again = 2  T", "  } again = 3  T",
        "  again(arg0=1) {", "    again(arg0=0) = 0  T;", "  } again = 1  T",
    ] + lines[23:], lines
    # longjmp() leaves gone() without a return: counted, and what is around it goes on as it should.
    assert re.fullmatch(r"  leaves\(arg0=-?\d+\) \{", lines[23]) and re.fullmatch(r"    gone\(arg0=-?\d+\) \{", lines[24]), lines[23:]
    assert [re.sub(r"= -?\d+", "= N", line) for line in lines[25:]] == ["  } leaves = N  T", "} work = N  T"], lines[25:]
    assert re.search(r"degraded +1 +return missed 1\n", r.err), r.err
    assert "leaf                : 6 calls\n" in r.out, r.out


@test
def trace_latency_by_function():
    program = traced()
    text = good("trace", f"uprobe:{program}:leaf", f"uprobe:{program}:mid", "--latency", "--", program).out
    assert re.search(r"\nleaf: 6 calls, [\d.]+ .s in all\n  least .*, median .*, 90 % .*, 99 % .*, 99.9 % .*, most .*\n +\d+ [mun]s \.\. \d+ [mun]s +\d+ \|#+ *\|\n", text), text
    assert len(re.findall(r"\]: leaf\(.*\) = \d+  [\d.]+ .s\n", text)) == 6, text
    rows, _ = trace_events(f"uprobe:{program}:leaf", "--latency", "--", program)
    (latency,) = [r for r in rows if r["type"] == "latency"]
    durations = sorted(r["duration_ns"] for r in rows if r["type"] == "return")
    assert latency["count"] == 6 and latency["sum_ns"] == sum(durations), (latency, durations)
    assert (latency["least_ns"], latency["most_ns"]) == (durations[0], durations[-1]), (latency, durations)


@test
def trace_chrome_opens_as_a_timeline():
    program = traced()
    text = good("trace", *[f"uprobe:{program}:{f}" for f in ("work", "mid", "leaf", "gone")], "--sig", "long", "-f", "chrome", "-r", "--", program).out
    trace = json.loads(text)
    events = trace["traceEvents"]
    names = {(e["name"], e["args"]["name"]) for e in events if e["ph"] == "M"}
    assert names == {("process_name", "traced"), ("thread_name", "traced")}, names
    calls = [e for e in events if e["ph"] == "X"]
    assert sorted(e["name"] for e in calls) == ["leaf"] * 6 + ["mid"] * 3 + ["work"], calls
    for e in events:
        assert e["pid"] == e["tid"], e
        assert e["ph"] == "M" or e["ts"] >= 0, e
    (work,) = [e for e in calls if e["name"] == "work"]
    for e in calls:  # each within the one around it
        assert work["ts"] <= e["ts"] + 0.001 and e["ts"] + e["dur"] <= work["ts"] + work["dur"] + 0.001, (work, e)
    assert [(e["args"]["arg0"], e["args"]["ret"]) for e in calls if e["name"] == "mid"] == [(0, 3), (1, 5), (2, 7)], calls
    instants = [e for e in events if e["ph"] == "i"]
    assert [(e["name"], e["s"], e["args"]["returned"]) for e in instants] == [("gone", "t", False)], instants
    # Without returns every call is a point in time.
    events = json.loads(good("trace", f"uprobe:{program}:leaf", "-f", "chrome", "--", program).out)["traceEvents"]
    assert [e["ph"] for e in events] == ["M", "M"] + ["i"] * 6, events


@test
def trace_errors_of_functions_without_a_signature():
    program = path("errors")
    if not os.path.exists(program):
        compile_program("errors", r"""
            extern "C" __attribute__((noinline)) int number(int n) { asm volatile(""); return n == 2 ? -22 : n; }
            extern "C" __attribute__((noinline)) unsigned long large(int n) { asm volatile(""); return 0xfffff000ul + n; }
            extern "C" __attribute__((noinline)) long wide(long n) { asm volatile(""); return n - 3; }
            int main() { long sum = 0; for (int n = 0; n < 5; ++n) sum += number(n) + large(n) + wide(n); return sum == 0; }
            """)
    traced()
    probes = [f"uprobe:{program}:{f}" for f in ("number", "large", "wide")]
    text = good("trace", *probes, "--errors", "-q", "--", program).out
    shown = re.findall(r"\]: (\w+)\(.*\) = (-?\d+)", text)
    assert sorted(shown) == sorted([("wide", "-3"), ("wide", "-2"), ("wide", "-1"), ("number", "-22")] +
                                   [("large", str(-4096 + n)) for n in range(1, 5)]), text
    text = good("trace", probes[1], "-r", "-q", "--sig", "unsigned long(int)", "--", program).out
    assert re.findall(r"= (-?\d+)", text) == [str(0xfffff000 + n) for n in range(5)], text
    text = good("trace", *probes, "--filter", "ret < -3", "-q", "--", program).out
    assert len(re.findall(r"\]: (?:number|large)\(", text)) == 5 and "wide" not in text, text


@test
def trace_ends_well_at_ctrl_c():
    program = traced()
    target = subprocess.Popen([program, "on"])
    try:
        for extra in (["-f", "chrome", "-r"], ["--json"], ["-f", "folded"], ["--count"]):
            p, is_ready = until_ready("trace", f"uprobe:{program}:leaf", "-p", str(target.pid), *extra, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
            assert is_ready, p.communicate(timeout=20)
            let_sleep(target.pid, 50)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=20)
            assert p.returncode == 0 and "fired" in err, (extra, p.returncode, err)
            if "chrome" in extra:
                assert any(e["ph"] == "X" for e in json.loads(out)["traceEvents"]), out[:400]
            elif "folded" in extra:
                assert re.fullmatch(r"traced;leaf \d+\n", out), out
            elif "--json" in extra:
                assert json.loads(out.splitlines()[-1])["type"] == "ledger", out[-400:]
    finally:
        target.kill()
        target.wait()


@test
def trace_ends_with_the_process_it_is_about():
    program = traced()
    target = subprocess.Popen([program, "on"])
    p, _ = until_ready("trace", f"uprobe:{program}:leaf", "-p", str(target.pid), "--count", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        let_sleep(target.pid, 50)
        target.kill()
        target.wait()
        out, err = p.communicate(timeout=20)
    finally:
        target.kill()
        p.kill()
    assert p.returncode == 0 and "the process has ended" in err and re.fullmatch(r"leaf +: [\d,]+ calls\n", out), (out, err)


@test
def trace_folded_is_each_functions_own_time():
    program = traced()
    text = good("trace", *[f"uprobe:{program}:{f}" for f in ("work", "mid", "leaf", "again")], "-f", "folded", "--", program).out
    times = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}
    assert list(times) == ["traced;work", "traced;work;again", "traced;work;again;again", "traced;work;again;again;again",
                           "traced;work;again;again;again;again", "traced;work;mid", "traced;work;mid;leaf"], text
    assert all(ns > 0 for ns in times.values()), text
    bad(2, r"folded needs the times of calls", "trace", f"uprobe:{program}:leaf", "-f", "folded", "--count", "--", program)
    bad(1, r"folded needs calls that return", "trace", "tracepoint:sched:sched_switch", "-f", "folded", "--", program)


@test
def trace_counts_stacks():
    program = traced()
    leaf, workload = f"uprobe:{program}:leaf", ("--", program)
    text = good("trace", leaf, "--stack", "-f", "folded", *workload).out
    # At its first instruction a function has no frame yet, and not every kernel knows.
    assert re.fullmatch(r"traced;(?:\S*;)?main;work;(?:mid;)?leaf 6\n", text), text
    svg = good("trace", leaf, "-f", "svg", *workload).out
    xml.dom.minidom.parseString(svg)
    assert f"Stacks at {leaf}" in svg and "leaf" in svg and "6 events" in svg, svg[:2000]
    top = good("trace", leaf, f"uprobe:{program}:mid", "-f", "top", *workload).out
    assert re.search(r"66\.7 .*leaf", top) and re.search(r"33\.3 .*mid", top), top
    # Of a program that nobody knew would be run, and that is over before its tables are there.
    r = good("trace", leaf, "-f", "top", "--", "sh", "-c", f"{program}; {program}")
    if "stack ends" in r.err:
        assert re.search(r"stack ends  root 12$", r.err, re.M), r.err
        assert re.search(r"^ *\d+ +\d+\.\d %  leaf\n +(?:mid|work)\n(?: +work\n)? +main\n", r.out, re.M), r.out
    if not lacks("gzip"):
        good("trace", leaf, "-f", "pprof", "-o", path("t.pb"), *workload)
        with open(path("t.pb"), "rb") as f:
            profile = gzip.decompress(f.read())
        assert b"leaf" in profile and b"work" in profile
    if has_json():  # other tools' formats of programs/render are a trace's, too
        frames = [f["name"] for f in json.loads(good("trace", leaf, "-f", "speedscope", *workload).out)["shared"]["frames"]]
        assert "leaf" in frames and "work" in frames, frames
        assert "leaf" in json.dumps(json.loads(good("trace", leaf, "-f", "firefox", *workload).out))
    text = good("trace", leaf, "-f", "perf-script", *workload).out
    assert sum(int(n) for n in re.findall(r"^traced +\d+ \[\d+\] [\d.]+: +(\d+) events: $", text, re.M)) == 6, text
    bad(2, r"-f svg counts stacks, and --count takes none", "trace", leaf, "-f", "svg", "--count", *workload)
    bad(2, r"--lines is about stacks", "trace", leaf, "--lines", *workload)


FRAMELESS_PROGRAM = r"""
#include <unistd.h>
#define FUNCTION extern "C" __attribute__((noinline))
FUNCTION long leaf(long a) { asm volatile("" : "+r"(a) : : "memory"); return a + 1; }
static inline __attribute__((always_inline)) long both(long a) { return leaf(a) + leaf(a + 1); }
FUNCTION long mid(long a) { long r = both(a); asm volatile("" : "+r"(r) : : "memory"); return r; }
FUNCTION long work(long a) { long r = mid(a); asm volatile("" : "+r"(r) : : "memory"); return r + 1; }
int main() { for (;;) { work(1); usleep(1000); } }
"""


@test
def trace_stacks_go_through_code_without_frame_pointers():
    traced()
    program = compile_program("frameless", FRAMELESS_PROGRAM, "-O2", "-g", "-fomit-frame-pointer", "-momit-leaf-frame-pointer",
                              "-fno-optimize-sibling-calls")
    leaf = f"uprobe:{program}:leaf"
    target = subprocess.Popen([program])

    def stacks(*args):
        """What main() and the functions below it are to each other, without what stands above it."""
        r = run("trace", *args, "--stack", "-f", "folded", "-p", str(target.pid), "-n", "40")
        assert r.code == 0, r.err
        assert "stack ends" in r.err, r.err
        return {re.sub(r"^frameless;(?:\S*;)?main", "main", line.rsplit(" ", 1)[0]) for line in r.out.splitlines()}, r.err
    try:
        r = run("trace", leaf, "--stack", "--unwind", "dwarf", "-p", str(target.pid), "-n", "1")
        if r.code == 3:
            raise Skip(f"stacks by tables: {r.err.strip()}")
        seen, err = stacks(leaf)
        assert seen == {"main;work;mid;leaf"} and re.search(r"stack ends  root 40", err), (seen, err)
        # While the kernel holds the address that a function returns to.
        seen, err = stacks(leaf, f"uretprobe:{program}:work", f"uretprobe:{program}:mid")
        assert seen == {"main;work;mid;leaf", "main;work", "main"} and re.search(r"stack ends  root 40", err), (seen, err)
        seen, err = stacks(leaf, "--depth", "2")
        assert seen == {"frameless;mid;leaf"} and re.search(r"stack ends  depth 40", err), (seen, err)
        if not lacks("lines (libdw)"):
            assert stacks(leaf, "--inline")[0] == {"main;work;mid;both_[i];leaf"}
    finally:
        target.kill()
        target.wait()
    bad(2, r"--depth is about stacks", "trace", leaf, "--depth", "5", "-d", "0.1")


@test
def trace_protobuf_is_what_protoc_reads():
    if not shutil.which("protoc"):
        raise Skip("needs protoc (protobuf-compiler)")
    program = traced()
    probes = [f"uprobe:{program}:leaf", "--sig", TRACED_SIG, "-r", "--stack"]
    good("trace", *probes, "-f", "protobuf", "-o", path("t.pb"), "--", program)
    with open(path("t.pb"), "rb") as f:
        data = f.read()
    whole = b""  # each record as field 1 of a Trace
    at = records = 0
    while at < len(data):
        length = shift = 0
        start = at
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        at += length
        assert at <= len(data), "the last record is cut"
        whole += b"\x0a" + data[start:at]
        records += 1
    folder = os.path.join(HERE, "../../programs/trace")
    r = subprocess.run(["protoc", "--decode=rawbpf.trace.Trace", "-I", folder, "trace.proto"], input=whole, capture_output=True, check=False)
    assert r.returncode == 0, r.stderr.decode()
    decoded = protobuf_text(r.stdout.decode())["record"]
    assert len(decoded) == records and not re.search(rb"^\s*\d+[:{ ]", r.stdout, re.M), "fields that the schema doesn't have"
    (header,) = decoded[0]["header"]
    assert header["schema"] == [1] and header["command"][:2] == ["rawbpf", "trace"], header
    theirs = [record["event"][0] for record in decoded[1:-1]]
    rows, ledger = trace_events(*probes, "--", program)
    assert len(rows) == len(theirs) == 12, (len(rows), len(theirs))
    for mine, row in zip(theirs, rows):
        assert mine.get("type", ["CALL"]) == [row["type"].upper()], (mine, row)
        assert mine["function"] == [row["function"]] and mine["probe"] == [row["probe"]] and mine["comm"] == ["traced"], (mine, row)
        assert mine["depth"] == [row["depth"]] and ("duration_ns" in mine) == (row["duration_ns"] is not None), (mine, row)
        values = [list(a.get("value", [{}])[0].values()) for a in mine.get("args", [])]
        for value, a in zip(values, row["args"]):
            assert value == [[a["value"]]], (value, a)
        assert [a["name"] for a in mine.get("args", [])] == [[a["name"]] for a in row["args"]], (mine, row)
        if row["type"] == "return":
            assert mine["ret"][0]["number"] == [row["ret"]], (mine, row)
        assert mine["stack"][0]["user"][0]["symbol"] == [row["stack"]["user"][0]["symbol"]], (mine, row)
        assert ("user_end" in mine["stack"][0]) == ("user_end" in row["stack"]), (mine, row)  # two runs: not always the same
    (last,) = decoded[-1]["ledger"]
    assert last["fired"] == [ledger["fired"]] and last["shown"] == [ledger["shown"]], (last, ledger)
    assert {f["key"][0]: f["value"][0]["fired"][0] for f in last["functions"]} == {"leaf": 12}, last


@test
def trace_constants_of_system_calls():
    traced()
    command = [sys.executable, "-S", "-c", "import os, mmap, socket; os.open('/etc/passwd', os.O_RDONLY | os.O_NOFOLLOW); "
               "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); os.kill(os.getpid(), 0); os.lseek(os.open('/etc/passwd', 0), 2, os.SEEK_END)"]
    rows, _ = trace_events("syscall:openat", "syscall:socket", "syscall:mmap", "syscall:lseek", "--", *command)

    def find(function, **values):
        for row in rows:
            args = {a["name"]: a for a in row["args"]}
            if row["function"] == function and all(args[k].get("text", args[k].get("target", args[k]["value"])) == v for k, v in values.items()):
                return args
        raise AssertionError(f"no {function} with {values}: {[r['args'] for r in rows if r['function'] == function]}")

    args = find("openat", filename="/etc/passwd", flags="O_RDONLY|O_NOFOLLOW|O_CLOEXEC", dfd="AT_FDCWD")
    assert args["flags"]["value"] == os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC and args["dfd"]["value"] == -100, args
    find("socket", family="AF_UNIX", type="SOCK_DGRAM|SOCK_CLOEXEC")
    find("mmap", prot="PROT_READ|PROT_WRITE", flags="MAP_PRIVATE|MAP_ANONYMOUS", fd=-1)
    find("lseek", whence="SEEK_END", fd="/etc/passwd")
    text = good("trace", "syscall:openat", "-q", "--", *command).out
    assert 'openat(dfd=AT_FDCWD, filename="/etc/passwd", flags=O_RDONLY|O_NOFOLLOW|O_CLOEXEC, mode=0' in text, text
    errors = run("trace", "syscall:openat", "--errors", "-q", "--", "/bin/cat", "/nonexistent/file")
    assert re.search(r'filename="/nonexistent/file".*\) = -2 \(ENOENT\)', errors.out), (errors.out, errors.err)


@test
def trace_counts_live_on_a_terminal():
    if not shutil.which("script"):
        raise Skip("needs script(1)")
    program = traced()
    target = subprocess.Popen([program, "on"])
    try:
        r = run("script", "-qec", f"{RB} trace uprobe:{program}:leaf -p {target.pid} --count -q -d 2.6", "/dev/null", binary=None)
    finally:
        target.kill()
        target.wait()
    drawn = r.out.replace("\r", "").split("\x1b[1A\x1b[J")
    # Twice, about, and then the last one; less often on a machine that is busy.
    assert 2 <= len(drawn) <= 4 and all(re.fullmatch(r"leaf +: [\d,]+ calls\n", one) for one in drawn), r.out
    counts = [int(re.sub(r"\D", "", one)) for one in drawn]
    assert 0 < counts[0] < counts[-1] and counts == sorted(counts), counts


@test
def trace_bad_input():
    program = traced()
    place = f"uprobe:{program}:leaf"
    shutil.copy(program, path("traced-stripped"))
    subprocess.run(["strip", path("traced-stripped")], check=True)
    bad(1, r"no function leef\nhint: did you mean leaf", "trace", f"uprobe:{program}:leef", "--", program)
    bad(1, r"no function matches \"zz\*\"", "trace", f"uprobe:{program}:zz*", "--", program)
    bad(1, r"no function leaf\nhint: the file is stripped; give an offset", "trace", f"uprobe:{path('traced-stripped')}:leaf", "--", program)
    bad(1, r"/nonexistent: No such file", "trace", "uprobe:/nonexistent:leaf", "--", program)
    bad(1, r"no such system call in this kernel\nhint: did you mean openat", "trace", "syscall:opennat", "--", program)
    bad(1, r"no such tracepoint in this kernel\nhint: did you mean sched:sched_switch", "trace", "tracepoint:sched:sched_swich", "--", program)
    bad(1, r"there is no kind of probe called foo\nhint: known are kprobe:GLOB", "trace", "foo:bar", "--", program)
    bad(1, r"--filter: `=` isn't a comparison\n  arg0 = 7\n       \^\nhint: did you mean `==`", "trace", place, "--filter", "arg0 = 7", "--", program)
    bad(1, r"has no foo\n  foo == 1\n  \^\nhint: known are arg0", "trace", place, "--filter", "foo == 1", "--", program)
    bad(1, r"--sig: type `strct` isn't known\n  int,strct foo\n      \^", "trace", place, "--sig", "int,strct foo", "--", program)
    bad(1, r"there is no process 4194305", "trace", place, "-p", "4194305")
    bad(1, r"there is no thread 4194305", "trace", place, "--tid", "4194305")
    bad(1, r"\./nonexistent: no such program", "trace", place, "--", "./nonexistent")
    bad(2, r"'xml' isn't one of text, json, csv, prometheus, chrome, protobuf, folded, svg, top, pprof, perf-script, speedscope, firefox", "trace", place, "-f", "xml", "--", program)
    bad(2, r"--graph is only for -f text, not for -f json", "trace", place, "--graph", "--json", "--", program)
    bad(2, r"PROBE is missing", "trace")
    if shutil.which("script"):
        r = run("script", "-qec", f"{RB} trace {place} -f protobuf -- {program}", "/dev/null", binary=None)
        assert r.code == 2 and "-f protobuf is binary, and standard output is a terminal" in r.out, (r.code, r.out)
    bad(2, r"--count keeps no times", "trace", place, "--count", "--latency", "--", program)
    for shape in ("text", "json", "chrome", "folded", "protobuf"):
        r = run("trace", place, "-f", shape, "-o", "/dev/full", "--", program)
        assert r.code == 1 and "/dev/full: write: No space left on device" in r.err, (shape, r.code, r.err)
    # A relative path is ours, also beside the process that it is about.
    target = subprocess.Popen([program, "on"])
    try:
        assert good("trace", "uprobe:./traced:leaf", "-p", str(target.pid), "-n", "1", "-q", cwd=WORK).out.count("leaf(") == 1
        # A reader that goes away ends the trace, in silence.
        p = subprocess.Popen([RB, "trace", place, "-p", str(target.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert "leaf(" in p.stdout.readline()
        p.stdout.close()
        assert p.wait(timeout=20) == 0 and "Broken pipe" not in p.stderr.read()
        p.stderr.close()
    finally:
        target.kill()
        target.wait()
