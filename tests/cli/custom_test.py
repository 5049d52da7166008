"""rawbpf custom: traces that a program asks for: their stacks, formats, arguments and weights."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.dom.minidom

from harness import *
from draw import needs_lines
from kernel_objects import bpftool_rows, held_by
from protobuf import decoded_pprof, one
from reporter import CustomRun, SOURCE_CUSTOM, custom


@test
def custom_five_calls_are_five_traces():
    target = path("reporter") + ":report_trace"
    hashes = []
    for _ in range(2):
        r = custom(target, "--json", "-o", path("custom.json"), "--", path("reporter"))
        objects = rows("custom.json")
        traces = [o for o in objects if o["type"] == "trace"]
        assert [int(t["context"], 16) for t in traces] == list(range(4096, 4101)), traces
        assert all(stack_names(t)[:2] == ["report_trace", "main"] and t["origin"] == "custom" and t["kernel"] == [] for t in traces), traces[0]
        hashes.append({t["hash"] for t in traces})
        assert all(re.fullmatch(r"[0-9a-f]{32}", t["hash"]) for t in traces)
        led = ledger_of(objects)
        assert led["fired"] == led["shown"] == 5, led
    assert hashes[0] == hashes[1] and len(hashes[0]) == 1, hashes
    text = custom(target, "--", path("reporter"), "x")
    assert re.search(r"=== CUSTOM Trace #5 \(Hash: [0-9a-f]{32}\) ===\nContext Value: 4100 \(0x1004\)\nPID: \d+, TID: \d+, CPU: \d+\n"
                     r"Stack trace \(\d+ frames\):\n  #0: report_trace \[reporter\+0x[0-9a-f]+\]\n  #1: main \[reporter\+0x", text.out), text.out
    assert "Traces - Total: 5, Custom: 5, Sampling: 0" in text.err and "exited with status 3" in text.err, text.err


SOURCE_CUSTOM_BARE = r"""
#include <stdint.h>
#include <unistd.h>
extern "C" __attribute__((noinline)) void report_trace(uint64_t id) { asm volatile("" :: "r"(id) : "memory"); }
#define CALLS(name, callee) extern "C" __attribute__((noinline)) void name(uint64_t id) { callee(id + 1); asm volatile("" ::: "memory"); }
CALLS(bare_c, report_trace)
CALLS(bare_b, bare_c)
CALLS(bare_a, bare_b)
int main() { for (int i = 0; i < 40; i++) { bare_a(i); usleep(50000); } return 0; }
"""


@test
def custom_stacks_need_no_frame_pointers():
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    bare = compile_program("bare", SOURCE_CUSTOM_BARE, "-O2", "-fomit-frame-pointer")
    r = custom(bare + ":report_trace", "--json", "-o", path("custom.json"), "--", bare)
    objects = rows("custom.json")
    led = ledger_of(objects)
    traces = [o for o in objects if o["type"] == "trace"]
    assert len(traces) == led["shown"] == 40, led
    if "stack_ends" not in led:
        assert "user stacks are walked by frame pointers" in r.err, r.err
        raise Skip("needs bpf_loop, 5.17")
    assert sum(led["stack_ends"].values()) == 40 and led["stack_ends"]["root"] >= 1, led
    assert_ends_are_the_ledgers([t["user_end"] for t in traces], led)
    # Until the process's tables are there stacks are short; two seconds later they are long there.
    chain = ["report_trace", "bare_c", "bare_b", "bare_a", "main"]
    assert stack_names(traces[-1])[:5] == chain and len(traces[-1]["user"]) > 5, traces[-1]
    assert len({t["hash"] for t in traces if stack_names(t)[:5] == chain}) == 1
    assert re.search(r"^  stack ends  (.*, )?root \d+", r.err, re.M), r.err
    custom(bare + ":report_trace", "--unwind", "fp", "--json", "-o", path("custom.json"), "--", bare)
    objects = rows("custom.json")
    assert "stack_ends" not in ledger_of(objects)
    custom(bare + ":report_trace", "--depth", "2", "--json", "-o", path("custom.json"), "--", bare)
    led, last = ledger_of(rows("custom.json")), [o for o in rows("custom.json") if o["type"] == "trace"][-1]
    assert stack_names(last) == chain[:2] and led["stack_ends"]["depth"] >= 1 and led["degraded"]["stack_truncated"] >= 1, (last, led)
    bad(2, "--unwind-memory", "custom", bare + ":report_trace", "--unwind-memory", "1", "--", bare)
    bad(2, "--depth", "custom", bare + ":report_trace", "--depth", "0", "--", bare)
    bad(2, "gdb", "custom", bare + ":report_trace", "--unwind", "gdb", "--", bare)


@test
def custom_traces_in_other_tools_formats():
    target = path("reporter") + ":report_trace"

    def shown(name, *options):
        return custom(target, "-f", name, "-q", *options, "--", path("reporter")).out

    top = shown("top")
    assert re.search(r"^100\.0 % 100\.0 %  report_trace ", top, re.M) and re.search(r"100\.0 %  main ", top), top
    top = custom(target, "-f", "top", "--arg", "1", "--weight", "context", "-q", "--", path("reporter")).out
    assert re.search(r"^ *1,000  100\.0 %  report_trace$", top, re.M), top
    twice = custom(target, "-f", "top", "--arg", "1", "--weight", "context", "-q", "--", "sh", "-c", f"{path('reporter')}; {path('reporter')}").out
    assert re.search(r"^ *2,000  100\.0 %  report_trace\n +main\n", twice, re.M), twice # programs that nobody knew would be run
    perf = shown("perf-script")
    assert len(re.findall(r"^reporter +\d+ \[\d+\] \d+\.\d{6}: +1 custom: $", perf, re.M)) == 5, perf
    assert len(re.findall(r"^\t *[0-9a-f]+ report_trace\+0x0 \(.*/reporter\)\n\t *[0-9a-f]+ main\+", perf, re.M)) == 5, perf
    bad(2, "--weight is for -f folded, svg and top, not pprof", "custom", target, "-f", "pprof", "--weight", "context", "--", path("reporter"))
    bad(2, "pproff", "custom", target, "-f", "pproff", "--", path("reporter"))
    if shutil.which("protoc") and not lacks("gzip"):
        for options in ((), ("--off-cpu",)):
            shown("pprof", "-o", path("custom.pb.gz"), *options)
            p = decoded_pprof("custom.pb.gz")
            strings = p["string_table"]
            kinds = [(strings[one(k, "type")], strings[one(k, "unit")]) for k in p["sample_type"]]
            assert kinds == [("traces", "count")] + [("off_cpu", "nanoseconds")] * len(options), kinds
            functions = {one(f, "id"): strings[one(f, "name")] for f in p["function"]}
            names = {one(l, "id"): functions[one(l["line"][0], "function_id")] if l.get("line") else "" for l in p["location"]}
            contexts = []
            for sample in p["sample"]:
                labels = {strings[one(l, "key")]: strings[one(l, "str")] or one(l, "num") for l in sample["label"]}
                if labels["origin"] == "off_cpu":
                    assert "context" not in labels and sample["value"][1] > 0, sample
                    continue
                assert labels["origin"] == "custom" and labels["comm"] == "reporter", labels
                assert [names[i] for i in sample["location_id"]][:2] == ["report_trace", "main"], sample
                contexts += [labels["context"]] * sample["value"][0]
            assert sorted(contexts) == list(range(4096, 4101)), contexts
            assert any(strings[c].startswith("traces: fired") for c in p["comment"])
    if not has_json():
        raise Skip("this build writes no JSON")
    speedscope = json.loads(shown("speedscope"))
    frames = [f["name"] for f in speedscope["shared"]["frames"]]
    assert sum(sum(p["weights"]) for p in speedscope["profiles"]) == 5, speedscope
    assert all(frames[i] == "report_trace" for p in speedscope["profiles"] for i in (sample[-1] for sample in p["samples"]))
    gecko = json.loads(shown("firefox"))
    assert sum(len(t["samples"]["data"]) for t in gecko["threads"]) == 5, gecko


@test
def custom_traces_know_their_lines():
    draw = needs_lines()
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    lined = compile_program("lined", SOURCE_CUSTOM, "-g")
    text = custom(lined + ":report_trace", "--lines", "-q", "--", lined).out
    assert len(re.findall(r"^  #1: main \[lined\+0x[0-9a-f]+\] \S*<stdin>:6$", text, re.M)) == 5, text
    inlined = compile_program("inlined", SOURCE_CUSTOM.replace("int main(int argc, char **argv) {", """static inline __attribute__((always_inline)) void within(int i) {
        report_trace(i, i);
        asm volatile("" ::: "memory");
    }
    int main(int argc, char **argv) {""").replace("report_trace(0x1000 + i, 100 * i)", "within(i)"), "-g")
    hashes = set()
    for options, chain in (((), ["report_trace", "main"]), (("--inline",), ["report_trace", "within", "main"])):
        custom(inlined + ":report_trace", *options, "--json", "-o", path("custom.json"), "-q", "--", inlined)
        traces = [o for o in rows("custom.json") if o["type"] == "trace"]
        assert len(traces) == 5 and all([n.split("(")[0] for n in stack_names(t)][:len(chain)] == chain for t in traces), traces[0]
        hashes |= {t["hash"] for t in traces}
    assert len(hashes) == 1, "inlined functions changed the hash"


@test
def custom_arguments_weights_and_samples():
    target = path("reporter") + ":report_trace"
    folded = custom(target, "--arg", "1", "-f", "folded", "--weight", "context", "-q", "--", path("reporter")).out
    assert sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines()) == 1000 and ";main;report_trace" in folded, folded
    svg = custom(target, "-f", "svg", "-q", "--", path("reporter")).out
    assert xml.dom.minidom.parseString(svg) and "report_trace" in svg
    custom(target, "--sample", "999", "--json", "-o", path("custom.json"), "--", "sh", "-c",
           "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; " + path("reporter"))
    objects = rows("custom.json")
    origins = [o["origin"] for o in objects if o["type"] == "trace"]
    assert origins.count("custom") == 5 and origins.count("sampling") > 5, origins[:20]
    assert all(o["context"] is None for o in objects if o.get("origin") == "sampling")
    ledger_of(objects)


@test
def custom_waits():
    sleeper = compile_program("sleeper", SOURCE_CUSTOM.replace("return", "for (int i = 0; i < 5; i++) usleep(20000); return").replace(
        "#include <stdint.h>", "#include <stdint.h>\n#include <unistd.h>"))
    target = sleeper + ":report_trace"
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    custom(target, "--off-cpu", "--json", "-o", path("custom.json"), "--", sleeper)
    objects = rows("custom.json")
    # One of a command's first milliseconds may pass while rawbpf, which goes first then, has the CPU.
    waits = [o for o in objects if o.get("origin") == "off_cpu"]
    assert sum(o["off_cpu_ns"] >= 15_000_000 for o in waits) >= 4 and all(o["context"] is None for o in waits), waits
    assert all(o["comm"] in ("sleeper", "rawbpf") for o in waits), {o["comm"] for o in waits}
    assert any("main" in stack_names(o) or o["user"] for o in waits) and all(o["kernel"] for o in waits), waits[0]
    assert sum(o.get("origin") == "custom" for o in objects) == 5
    ledger_of(objects)
    folded = custom(target, "--off-cpu", "-f", "folded", "--weight", "off-cpu", "-q", "--", sleeper).out
    # What a thread slept is a little less than it wanted to where it was late to leave its CPU.
    assert sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines()) >= 75_000_000 and "[off_cpu]" in folded and "[custom]" not in folded, folded
    out = custom(target, "--off-cpu", "--", sleeper).out
    assert sum(int(ns) >= 15_000_000 for ns in re.findall(r"^Off-CPU Time: [0-9.]+ [mun]?s \((\d+) ns\)$", out, re.M)) >= 4, out


# Threads that begin, do something and end, and then as many that wait at the same time.
MANY_WAIT = r"""
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>
extern "C" __attribute__((noinline)) void mark(long) { asm volatile("" ::: "memory"); }
int main(int, char **words) {
    for (long i = atol(words[1]); i-- > 0;) std::thread([=] { mark(i); }).join();
    std::vector<std::thread> all;
    for (long i = atol(words[2]); i-- > 0;) all.emplace_back([] { std::this_thread::sleep_for(std::chrono::seconds(2)); });
    for (std::thread &thread : all) thread.join();
}
"""


@test(long=True)
def custom_waits_of_thousands_of_threads():
    """Of the whole machine, threads that have ended take no room; of a command, there is room for more than 4,096 at a time."""
    program = compile_program("many_wait", MANY_WAIT, "-pthread")
    watching, _ = until_ready("custom", program + ":mark", "--off-cpu", "--json", "-o", path("ended.json"), stderr=subprocess.PIPE, text=True)
    try:
        subprocess.run([program, "17000", "0"], check=True, timeout=60)
    finally:
        watching.send_signal(signal.SIGINT)
        err = watching.communicate(timeout=60)[1]
    ledger = ledger_of(rows("ended.json"))
    assert watching.returncode == 0 and ledger["lost"].get("too_many_threads_off_cpu", 0) == 0, (ledger, err)
    custom(program + ":mark", "--off-cpu", "--json", "-o", path("ended.json"), "--", program, "1", "6000")
    ledger = ledger_of(rows("ended.json"))
    assert ledger["fired"] > 4096 and ledger["lost"].get("too_many_threads_off_cpu", 0) == 0, ledger


@test
def custom_programs_of_ones_own():
    here = os.path.join(HERE, "../..")
    source = os.path.join(here, "programs/custom/example/example_tailcall.bpf.c")
    if not shutil.which("clang"):
        raise Skip("needs clang")
    target = path("reporter") + ":report_trace"
    arch = "x86" if os.uname().machine == "x86_64" else "arm64"
    for flags, name in (([], "by_thread.o"), (["-DPER_CPU"], "per_cpu.o")):
        subprocess.run(["clang", "--target=bpf", f"-D__TARGET_ARCH_{arch}", "-O2", "-g", "-I", os.path.join(here, "programs/include"), *flags,
                        "-c", source, "-o", path(name)], check=True)
        r = custom(target, "--object", path(name), "-v", "--json", "-o", path("custom.json"), "--", path("reporter"))
        objects = rows("custom.json")
        led = ledger_of(objects)
        assert led["fired"] == 5 and led["shown"] + led["lost"].get("no_context_of_its_thread", 0) == 5, led
        assert set(int(o["context"], 16) for o in objects if o["type"] == "trace") <= set(range(4096, 4101))
        for step in ("loaded custom__generic (program descriptor", "is ours", "put custom__generic into prog_array, slot 0", "attached uprobe"):
            assert step in r.err, (step, r.err)
        assert re.search(r"^rawbpf custom: a tail call takes (less than )?[0-9.]+ ns here$", r.err, re.M), r.err
    subprocess.run(["clang", "--target=bpf", f"-D__TARGET_ARCH_{arch}", "-O2", "-g", "-I", os.path.join(here, "programs/include"), "-c",
                    os.path.join(here, "programs/custom/example/example_subprogram.bpf.c"), "-o", path("subprogram.o")], check=True)
    custom(target, "--object", path("subprogram.o"), "--json", "-o", path("custom.json"), "--", path("reporter"))
    objects = rows("custom.json")
    traces = [o for o in objects if o["type"] == "trace"]
    assert [int(t["context"], 16) for t in traces] == list(range(4096, 4101)), traces
    assert all(stack_names(t)[:2] == ["report_trace", "main"] for t in traces), traces[0]
    assert ledger_of(objects)["fired"] == 5 and not ledger_of(objects)["degraded"]
    deep = compile_program("deep", SOURCE_CUSTOM.replace("int main(int argc, char **argv) {", """__attribute__((noinline)) void deeper(int n) {
        if (n) deeper(n - 1); else report_trace(7, 7);
        asm volatile("" ::: "memory");
    }
    int main(int argc, char **argv) {
        deeper(60);"""))
    custom(deep + ":report_trace", "--object", path("subprogram.o"), "--json", "-o", path("custom.json"), "--", deep)
    assert ledger_of(rows("custom.json"))["degraded"] == {"stack_truncated": 1}, rows("custom.json")[-1]
    with open(source, encoding="utf-8") as f:
        wrong = f.read().replace("__uint(max_entries, 10240)", "__uint(max_entries, 16)")
    with open(path("wrong.bpf.c"), "w", encoding="utf-8") as f:
        f.write(wrong)
    subprocess.run(["clang", "--target=bpf", f"-D__TARGET_ARCH_{arch}", "-O2", "-g", "-I", os.path.join(here, "programs/include"),
                    "-c", path("wrong.bpf.c"), "-o", path("wrong.o")], check=True)
    bad(1, "has 10240 entries, the programs were compiled for 16 entries", "custom", "--object", path("wrong.o"), target, "--", path("reporter"))
    bad(1, "its section doesn't say where it belongs", "custom", "--object", path("by_thread.o"), "-d", "0.1")


@test
def custom_requests_over_threads():
    here = os.path.join(HERE, "../../programs/custom/example/")
    subprocess.run([os.environ.get("CC", "cc").split()[0], "-O1", "-fno-omit-frame-pointer", "-pthread", "-o", path("requests"), here + "requests.c"],
                   check=True)
    r = custom(path("requests") + ":on_request", "--json", "-q", "--", path("requests"))
    lines = subprocess.run([sys.executable, here + "correlate.py"], input=r.out, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 6 and all(re.match(rf"request {0x100 + i:#x}: [0-9.]+ ms, 3 threads: \d+ -.* ms-> \d+ -.* ms-> \d+$", lines[i])
                                   for i in range(6)), lines


SOURCE_CUSTOM_WEIGHTS = r"""
#include <stdint.h>
#include <unistd.h>
extern "C" __attribute__((noinline)) void report_trace(uint64_t id, uint64_t size) { asm volatile("" :: "r"(id), "r"(size) : "memory"); }
extern "C" __attribute__((noinline)) void often() { for (int i = 0; i < 3; i++) report_trace(i, 10); asm volatile("" ::: "memory"); }
extern "C" __attribute__((noinline)) void seldom() { for (int i = 0; i < 2; i++) report_trace(i, 1000); asm volatile("" ::: "memory"); }
extern "C" __attribute__((noinline)) void naps() { for (int i = 0; i < 3; i++) usleep(10000); asm volatile("" ::: "memory"); }
extern "C" __attribute__((noinline)) void sleeps() { for (int i = 0; i < 2; i++) usleep(100000); asm volatile("" ::: "memory"); }
int main() { often(); seldom(); naps(); sleeps(); asm volatile("" ::: "memory"); return 0; }
"""


def svg_weights(text):
    """function -> the weights of its frames"""
    found = {}
    for group in xml.dom.minidom.parseString(text).getElementsByTagName("g"):
        if not group.hasAttribute("data-w"):
            continue
        titles = [t.firstChild.data for t in group.getElementsByTagName("title") if t.firstChild]
        if titles:
            found.setdefault(titles[0].splitlines()[0], []).append(int(group.getAttribute("data-w")))
    return found


def waits_twice(check):
    """Beside compilers the kernel tells nobody of one switch in a thousand (its own trace of sched_switch hasn't it either), and a wait that
    begins or ends with it is missing: twice in a row is ours."""
    try:
        check()
    except AssertionError as first:
        flaky(f"a wait is missing: {first}")
        check()


@test
def custom_weights_are_right_to_the_number():
    target = compile_program("weights", SOURCE_CUSTOM_WEIGHTS) + ":report_trace"

    def folded(*options):
        out = {}
        for line in custom(target, *options, "-f", "folded", "-q", "--", path("weights")).out.splitlines():
            stack, weight = line.rsplit(" ", 1)
            for function in ("often", "seldom"):
                if f";{function};" in stack:
                    out[function] = out.get(function, 0) + int(weight)
        return out

    assert folded() == {"often": 3, "seldom": 2}, folded()
    assert folded("--weight", "count") == {"often": 3, "seldom": 2}
    assert folded("--weight", "context") == {"often": 0 + 1 + 2, "seldom": 0 + 1}
    assert folded("--arg", "1", "--weight", "context") == {"often": 30, "seldom": 2000}

    def waited():
        r = custom(target, "--off-cpu", "-f", "folded", "--weight", "off-cpu", "--", path("weights"))
        total = sum(int(line.rsplit(" ", 1)[1]) for line in r.out.splitlines())
        custom(target, "--off-cpu", "--json", "-o", path("custom.json"), "--", path("weights"))
        # Who doesn't sleep waits for the CPU only, where a probe's trap came to a switch: none of the sleeps is its.
        waits = [o for o in rows("custom.json") if o.get("origin") == "off_cpu" and o["comm"] == "weights"]
        sleeps = [o for o in waits if any("nanosleep" in (f["symbol"] or "") for f in o["kernel"])]
        assert len(sleeps) >= 3 and not any({"often", "seldom"} & set(stack_names(o)) for o in sleeps), waits
        long = sorted(o["off_cpu_ns"] for o in sleeps)[-4:]
        # A nap in a command's first milliseconds may pass while rawbpf, which goes first then, has the CPU: that one is no wait.
        assert 200_000_000 <= total and all(ns >= 75_000_000 for ns in long[-2:]) and all(7_500_000 <= ns for ns in long[:-2]), (total, long)

    waits_twice(waited)
    # Above main is what the walk found there: a command's first stacks may have been walked by frame pointers, the others by tables.
    svg = svg_weights(custom(target, "--arg", "1", "--weight", "context", "-f", "svg", "-q", "--", path("weights")).out)
    sums = {name: sum(weights) for name, weights in svg.items()}
    assert sums["often"] == 30 and sums["seldom"] == 2000 and sums["main"] == sums["report_trace"] == 2030, svg
    svg = svg_weights(custom(target, "-f", "svg", "-q", "--", path("weights")).out)
    sums = {name: sum(weights) for name, weights in svg.items()}
    assert sums["often"] == 3 and sums["seldom"] == 2 and sums["main"] == 5, svg

    def drawn():
        svg = svg_weights(custom(target, "--off-cpu", "--weight", "off-cpu", "-f", "svg", "-q", "--", path("weights")).out)
        assert sum(svg["[off_cpu]"]) >= 200_000_000, svg

    waits_twice(drawn)


@test
def custom_what_is_lost_is_counted():
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    target = path("reporter") + ":report_trace"
    # A jump that leads nowhere: the array is emptied while it runs.
    if shutil.which("bpftool"):
        with CustomRun(target) as it:
            maps = bpftool_rows("bpftool", "-j", "map", "list")
            arrays = {m["id"] for m in maps if m["type"] == "prog_array" and m.get("name", "").startswith("custom_progr")}
            own = held_by(it.p.pid) # other tests have such arrays, too
            emptied = [number for number in arrays if ("map", number) in own]
            assert emptied, (maps, own)
            for number in emptied:
                subprocess.run(["bpftool", "map", "delete", "id", str(number), "key", "0", "0", "0", "0"], check=True)
            subprocess.run([path("reporter")], check=True)
        led = ledger_of(it.ended())
        assert led["fired"] == 5 and led["shown"] == 0 and led["lost"]["tail_call_failed"] == 5, led
        assert re.search(r"^ +lost +5 .*tail call failed 5", it.err, re.M), it.err
    # Nobody reads, and so the ring fills up.
    many = compile_program("many", SOURCE_CUSTOM.replace("i < 5", "i < 150000"))
    with CustomRun(many + ":report_trace") as it:
        it.p.send_signal(signal.SIGSTOP)
        subprocess.run([many], check=True)
    objects = it.ended()
    led = ledger_of(objects)
    shown = [int(o["context"], 16) for o in objects if o["type"] == "trace"]
    assert led["fired"] == 150_000 and led["shown"] == len(shown) > 1000 and led["lost"]["ring_full"] == 150_000 - len(shown) > 0, led
    assert shown == list(range(4096, 4096 + len(shown))), "what came first is what was kept"
    # A process that was there before, and isn't any more when its traces are read.
    waits = compile_program("waits", SOURCE_CUSTOM.replace("int main(int argc, char **argv) {", "int main(int argc, char **argv) { getchar();").replace(
        "#include <stdint.h>", "#include <stdint.h>\n#include <stdio.h>"))
    early = subprocess.Popen([waits], stdin=subprocess.PIPE)
    with CustomRun(waits + ":report_trace") as it:
        it.p.send_signal(signal.SIGSTOP)
        early.communicate(b"\n")
    objects = it.ended()
    led = ledger_of(objects)
    traces = [o for o in objects if o["type"] == "trace"]
    assert led["shown"] == 5 and led["degraded"].get("process_unknown") == 5, led
    assert [int(t["context"], 16) for t in traces] == list(range(4096, 4101)) and all(t["user"] and not any(stack_names(t)) for t in traces), traces
    assert "process unknown 5" in it.err, it.err


@test
def custom_bad_input():
    if run("custom", "--help").code != 0:
        raise Skip("this build has no custom traces (-Dparts)")
    bad(2, "TARGET:FUNCTION is missing", "custom")
    bad(2, "--weight is for -f folded", "custom", "/bin/true:main", "--weight", "context")
    bad(2, "samples have no context", "custom", "/bin/true:main", "--weight", "context", "-f", "svg", "--sample", "9")
    bad(2, "needs --off-cpu", "custom", "/bin/true:main", "--weight", "off-cpu", "-f", "svg")
    bad(2, "waits have no context", "custom", "/bin/true:main", "--weight", "context", "-f", "svg", "--off-cpu")
    bad(2, "arg", "custom", "/bin/true:main", "--arg", "99")
    bad(2, "", "custom", "/bin/true:main", "--arg", "1", "--object", "x.o")
    if os.geteuid() != 0:
        raise Skip("the rest needs root")
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    bad(1, "is not of the form FILE:FUNCTION", "custom", "nothing", "-d", "0.1")
    bad(1, "no_such_function", "custom", path("reporter") + ":no_such_function", "-d", "0.1")
    bad(1, "/nowhere", "custom", "/nowhere:main", "-d", "0.1")
    bad(1, "isn't on a bpf file system", "custom", "--pin", path("pins"), "-d", "0.1")
    assert not os.path.exists(path("pins"))
    bad(1, "no-such.o", "custom", "--object", path("no-such.o"), "/bin/true:main")
