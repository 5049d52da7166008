"""rawbpf load: each program of an object, attaching, maps, and what is wrong with a file."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import *

GOLDEN = os.path.join(HERE, "../unit/object/golden/golden-clang14.o")


@test
def load_each_program_with_a_hash_of_its_instructions():
    if os.geteuid() != 0:
        raise Skip("needs root to load programs")
    r = run("load", "--each", "--json", "-v", GOLDEN)
    lines = [json.loads(l) for l in r.out.splitlines()]
    assert lines[0]["type"] == "header" and lines[0]["schema"] == 1, lines[0]
    programs = [l for l in lines if l["type"] == "program"]
    assert len(programs) == 3, programs
    for p in programs:
        assert p["object"] == GOLDEN and p["prog_type"] == "raw_tracepoint", p
        assert list(p)[:10] == ["type", "object", "program", "section", "prog_type", "loaded", "errno", "reason", "insns", "insn_hash"], p
        if p["loaded"]:
            assert re.fullmatch("[0-9a-f]{16}", p["insn_hash"]) and p["errno"] is None and p["insns"] > 0, p
        else:
            assert p["insn_hash"] is None and p["reason"], p
    assert lines[-1] == {"type": "summary", "programs": 3, "loaded": sum(p["loaded"] for p in programs)}, lines[-1]
    again = [json.loads(l) for l in run("load", "--each", "--json", "-v", GOLDEN).out.splitlines()]
    assert [p["tried_hash"] for p in programs] == [p["tried_hash"] for p in again if p["type"] == "program"]
    if not all(p["loaded"] for p in programs):
        raise Skip("this kernel refuses a program of the sample: " + str([p["reason"] for p in programs]))
    assert r.code == 0, r.err
    whole = good("load", "--json", "--prog", programs[0]["program"], GOLDEN).out.splitlines()
    whole = [l for l in map(json.loads, whole) if l["type"] == "program"]
    assert [p["insn_hash"] for p in whole] == [programs[0]["insn_hash"]], whole


@test
def load_says_what_is_wrong():
    bad(1, r"no-such-file", "load", "no-such-file.o")
    bad(1, r"(?i)elf", "load", "/etc/passwd")
    bad(1, r"it has \w+ code", "load", RB)
    bad(2, r"(?i)operand|OBJECT", "load")
    bad(2, r"--pin", "load", "--each", "--pin", "/sys/fs/bpf/x", GOLDEN)
    bad(1, r"no program nobody", "load", "--prog", "nobody", GOLDEN)
    bad(1, r"no program nobody", "load", "--each", "--prog", "nobody", GOLDEN)


@test
def load_keeps_a_files_words_from_the_terminal():
    with open(GOLDEN, "rb") as f:
        sample = f.read()
    for section in (b".rodata", b".maps", b"license"):
        with open(path("hostile.o"), "wb") as f:
            f.write(sample.replace(b"\0" + section + b"\0", b"\0\x1b[2J" + section[4:] + b"\0"))
        for command in (("load",), ("load", "--each", "-v"), ("inspect",), ("relocs",)):
            r = run(*command, path("hostile.o"))
            assert "\x1b" not in r.err + r.out, (section, command, r.err)
    bad(1, r"no-such.btf", "load", "--btf", "no-such.btf", GOLDEN)


TICKS = """#include <rawbpf/bpf.h>
LICENSE("GPL");
struct key { int pid; char comm[16]; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, struct key); __type(value, __u64); } ticks SEC(".maps");
unsigned total;
SEC("uprobe/%s:tick") int on_tick(void *ctx __unused) {
    struct key key = {.pid = bpf_get_current_pid_tgid() >> 32};
    bpf_get_current_comm(key.comm, sizeof(key.comm));
    __u64 one = 1, *n = bpf_map_lookup_elem(&ticks, &key);
    if (n) __sync_fetch_and_add(n, 1); else bpf_map_update_elem(&ticks, &key, &one, 0);
    __sync_fetch_and_add(&total, 1);
    return 0;
}
SEC("xdp") int pass(void *ctx __unused) { return 2; }
"""


@test
def load_says_that_one_entry_is_zero():
    with open(path("zero.asm"), "w") as f:
        f.write('.license "GPL"\n.map m array key u32 value u64 entries 1\n.program p "raw_tp/sched_process_exec"\n'
                '    r1 = m ll\n    r0 = 0\n    exit\n')
    assert "m (BPF_MAP_TYPE_ARRAY): 0 entries, 1 more is zero\n" in good("load", "--attach", "-d", "0.01", path("zero.asm")).out


@test
def load_attaches_and_shows_the_maps():
    if not shutil.which("clang"):
        raise Skip("needs clang")
    program = compile_program("ticking", 'extern "C" __attribute__((noinline)) void tick() { asm volatile(""); }\n'
                              "int main() { for (int i = 0; i < 7; ++i) tick(); }")
    source, obj = path("ticks.bpf.c"), path("ticks.bpf.o")
    with open(source, "w", encoding="utf-8") as f:
        f.write(TICKS % program)
    subprocess.run(["clang", "--target=bpf", "-O2", "-g", "-I", os.path.join(HERE, "../../programs/include"), "-c", source, "-o", obj], check=True)
    if run("load", obj).code == 3:
        raise Skip("needs CAP_BPF")

    def attached(*args):
        """Starts it, runs the program when it says that it is attached, and ends it as a person would."""
        p = subprocess.Popen([RB, "load", "--attach", *args, obj], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = ""
        while "attached: uprobe" not in said:
            line = p.stderr.readline()
            assert line, f"it ended before it was attached: {said}"
            said += line
        ticking = subprocess.Popen([program])
        assert ticking.wait(timeout=20) == 0
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=20)
        assert p.returncode == 0, (p.returncode, said + err)
        assert "program pass (section xdp): not attached, needs a network interface" in said + err, said + err
        return ticking.pid, out

    pid, out = attached()
    assert f'  {{.pid = {pid}, .comm = "ticking"}} = 7\n' in out, out
    assert "  total = 7\n" in out, out
    assert re.search(r"^\w+ ran 7 times, \d+ ns each$", out, re.M) and "pass didn't run\n" in out, out
    pid, out = attached("--json")
    objects = [json.loads(line) for line in out.splitlines()]
    assert objects[0]["type"] == "header", objects[0]
    links = [o for o in objects if o["type"] == "link"]
    assert [(o["what"], o["places"]) for o in links] == [(f"uprobe {program}:tick", 1)], links
    entries = [o for o in objects if o["type"] == "entry" and o["map"] == "ticks"]
    assert entries == [{"type": "entry", "map": "ticks", "key": {"pid": pid, "comm": "ticking"}, "value": 7}], entries
    assert {"type": "variable", "map": "ticks.bss", "name": "total", "value": 7} in objects, objects
    runs = [(o["run_cnt"], o["mean_ns"] and abs(o["mean_ns"] * 7 - o["run_time_ns"]) < 1) for o in objects if o["type"] == "runs"]
    assert sorted(runs, key=str) == [(0, None), (7, True)], objects
    # A time ends it, too, and so does an interface that isn't there.
    start = time.time()
    good("load", "--attach", "-d", "0.3", "-p", str(os.getpid()), obj)
    assert 0.3 <= time.time() - start < 20
    bad(1, "nosuchif", "load", "--attach", "-i", "nosuchif", obj)
    bad(2, "--attach", "load", "-d", "1", obj)
    bad(2, "--each", "load", "--attach", "--each", obj)
    bad(2, "one object", "load", "--attach", obj, obj)
    bad(1, "cgroup|No such", "load", "--attach", "--cgroup", "/no/such/dir", obj)
