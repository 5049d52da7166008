"""rawbpf top: what programs did in an interval; and rawbpf attr, bpf(2) in words."""
import json
import os
import re
import shutil
import subprocess
import time

from harness import *
from kernel_objects import *


def programs_of(rows):
    rows = list(rows)
    return [r for r in rows if r["type"] == "prog_activity"], [r for r in rows if r["type"] == "interval"]


@test
def top_counts_runs_as_the_program_does():
    needs_root()
    name = f"top_{os.getpid() % 10000}"
    with Attached(COUNT % {"name": name, "section": "raw_tp/sched_process_exec", "value": 0}) as _:
        p = subprocess.Popen([RB, "top", "--every", "60", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            header = json.loads(p.stdout.readline())  # written after the first look
            assert header["type"] == "header", header
            before = int(good("map", "get", f"{name}_m", "0").out.split("=")[1])
            for _ in range(25):
                subprocess.run(["/bin/true"], check=True)
            after = int(good("map", "get", f"{name}_m", "0").out.split("=")[1])
            interrupt(p)
            out, err = p.communicate(timeout=30)
            assert p.returncode == 0, err
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
    programs, [interval] = programs_of(map(json.loads, out.splitlines()))
    [mine] = [r for r in programs if r["name"] == name]
    assert 25 <= after - before <= mine["runs"], (before, after, mine)
    assert mine["prog_type"] == "raw_tracepoint" and mine["ns"] > 0 and mine["run_cnt"] >= mine["runs"], mine
    assert abs(mine["mean_ns"] - mine["ns"] / mine["runs"]) < 1 and mine["worst_mean_ns"] == mine["mean_ns"], mine
    assert abs(mine["runs_per_s"] * interval["seconds"] - mine["runs"]) < 1, (mine, interval)
    assert [h["comm"] for h in mine["pids"]] == [os.path.basename(RB)[:15]] and interval["active"] >= 1 and interval["programs"] >= interval["active"], (mine, interval)


@test
def top_is_a_table_of_each_interval():
    needs_root()
    name = f"idle_{os.getpid() % 10000}"
    with Attached(COUNT % {"name": name, "section": "raw_tp/sched_process_exec", "value": 0}) as _:
        out = good("top", "-d", "1.2", "--every", "0.4", "--all").out
        heads = re.findall(r"^(\d+) of (\d+) programs? ran in ([\d.]+) s, ([\d.]+) % of a CPU$", out, re.M)
        assert 2 <= len(heads) <= 4, out
        assert re.search(rf"^ *ID +TYPE +NAME +RUNS/S +CPU +MEAN +WORST +RUNS +SINCE +HELD BY\n", out, re.M), out
        assert re.search(rf"^ *\d+ +raw_tracepoint +{name} +[\d,]+ +[\d.]+ % +.* rawbpf\[\d+\]", out, re.M), out
        assert len(good("top", "-d", "0.1", "--every", "0.1", "--all", "--top", "1").out.splitlines()) <= 6
        assert " --" not in out and "\x1b" not in out


@test
def top_redraws_a_terminal_and_gives_it_back():
    needs_root()
    if not shutil.which("script"):
        raise Skip("needs script")
    r = run("script", "-qec", f"stty rows 10 cols 60; {RB} top -d 1.2 --every 0.4 --all", "/dev/null", binary=None, env={**os.environ, "TERM": "xterm"})
    assert r.code == 0, r.out
    assert r.out.count("\x1b[?1049h") == r.out.count("\x1b[?1049l") == 1 and r.out.count("\x1b[H") >= 2, repr(r.out)
    assert all(len(re.sub(r"\x1b\[[?\d]*[a-zA-Z]", "", line)) < 60 for line in re.split(r"\r*\n", r.out)), repr(r.out)


@test
def top_says_what_is_wrong():
    bad(2, r"--every is 10ms at least", "top", "--every", "0.001")
    bad(2, r"--every", "top", "--every", "soon")
    bad(2, r"--top", "top", "--top", "0")
    bad(1, r"/no/such", "top", "-d", "0.1", "-o", "/no/such/file")
    bad(2, r".", "top", "42")
    if shutil.which("setpriv") and os.geteuid() == 0:
        r = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", RB, "top", "-d", "0.1", binary=None)
        assert r.code == 3 and "rawbpf top: " in r.err and not r.out, (r.code, r.err)


@test
def attr_explains_bpf():
    out = good("attr").out.splitlines()
    assert len(out) == 40 and re.match(r" *5 +3.18 +BPF_PROG_LOAD +verifies a program", out[6]), out
    page = good("attr", "BPF_PROG_LOAD").out
    assert page.startswith("BPF_PROG_LOAD, 5: verifies a program") and re.search(r"^ +68 +4 +expected_attach_type +enum +4.17 +how it will be attached", page, re.M), page
    assert good("attr", "prog_load").out == good("attr", "5").out == page
    rows = [json.loads(line) for line in good("attr", "--json", "link_create").out.splitlines()]
    assert [r["type"] for r in rows[:3]] == ["header", "command", "field"] and len(rows) > 30, rows[:3]
    bad(1, r"bpf\(2\) has no command PROG_LAOD\nhint: did you mean BPF_PROG_LOAD\?", "attr", "PROG_LAOD")
    bad(1, r"bpf\(2\) has no command 39\n", "attr", "39")
    bad(2, r".", "attr", "5", "6")


@test
def attr_has_the_places_of_the_systems_header():
    """Every field of each command that this machine's <linux/bpf.h> has: offset and size, by the compiler."""
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    member = {"BPF_OBJ_GET_INFO_BY_FD": "info", "BPF_PROG_QUERY": "query", "BPF_RAW_TRACEPOINT_OPEN": "raw_tracepoint", "BPF_TASK_FD_QUERY": "task_fd_query",
              "BPF_LINK_CREATE": "link_create", "BPF_LINK_UPDATE": "link_update", "BPF_LINK_DETACH": "link_detach", "BPF_ITER_CREATE": "iter_create",
              "BPF_ENABLE_STATS": "enable_stats", "BPF_PROG_BIND_MAP": "prog_bind_map", "BPF_PROG_TEST_RUN": "test", "BPF_TOKEN_CREATE": "token_create",
              "BPF_PROG_STREAM_READ_BY_FD": "prog_stream_read", "BPF_PROG_ASSOC_STRUCT_OPS": "prog_assoc_struct_ops"}
    checked, missing = 0, 0
    with open("/usr/include/linux/bpf.h") as f:
        header = f.read()
    lines = []
    for command in [json.loads(line) for line in good("attr", "--json").out.splitlines()[1:]]:
        if command["name"] not in header:
            continue
        prefix = "batch" if command["name"].endswith("_BATCH") else member.get(command["name"], "")
        for field in [json.loads(line) for line in good("attr", "--json", command["name"]).out.splitlines()[2:]]:
            name = field["name"].split(".")[-1]
            if not re.search(rf"\b{name}\b", header) or field["name"].split(".")[0] not in header:
                missing += 1
                continue
            lines.append((command["name"], ".".join(filter(None, (prefix, field["name"]))), field["offset"], field["size"]))
    body = "".join(f'C({path}, {offset}, {size}, "{command}")\n' for command, path, offset, size in lines)
    source = ("#include <linux/bpf.h>\n#include <stddef.h>\n"
              "#define C(f, o, s, c) _Static_assert(offsetof(union bpf_attr, f) == (o) && sizeof(((union bpf_attr *)0)->f) == (s), c \" \" #f);\n" + body)
    r = subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-x", "c", "-"], input=source, capture_output=True, text=True, check=False)
    wrong = [line for line in r.stderr.splitlines() if "error" in line and "has no member" not in line and "not an integer" not in line]
    assert not wrong, wrong[:10]
    checked = len(lines) - r.stderr.count("has no member")
    assert checked >= 100, (checked, len(lines), missing, r.stderr[:1500])


@test
def sync_kernel_prints_the_rows_that_a_header_has_more():
    script, header = os.path.join(HERE, "../../asm/sync_kernel"), "/usr/include/linux/bpf.h"
    r = run(script, header, binary=None)
    assert r.code == 0 and r.out.endswith("nothing is missing here\n"), (r.code, r.out, r.err)
    with open(header) as f:
        text = f.read()
    for old, new in (("\tBPF_MAP_TYPE_BLOOM_FILTER,", "\tBPF_MAP_TYPE_TREE,"), ("\tBPF_PROG_BIND_MAP,", "\tBPF_FLY,")):
        assert old in text
        text = text.replace(old, old + "\n" + new, 1)
    r = run(script, written("newer.h", text), "7.4", binary=None)
    assert r.code == 4 and 'X(TREE, "7.4", ' in r.out and "\n    FLY\n" in r.out and r.out.endswith("2 rows are missing here\n"), (r.code, r.out)
    for word, says in (("/etc/passwd", "it has no enum bpf_cmd"), ("/nope", "no such file"), ("6.99", "no headers of Linux 6.99")):
        r = run(script, word, binary=None)
        assert r.code == 1 and says in r.err and not r.out, (word, r.code, r.err)
