"""rawbpf bench: variants of a program side by side; and the verifier's figures, which load shows, too."""
import json
import os
import re
import shutil
import subprocess

from harness import *

LOOP = """r0 = 0
r1 = 0
again:
    r0 += r1
    r0 *= 3
    r1 += 1
    if r1 < {count} goto again
    exit
"""


def variant(name, count):
    return written(name, LOOP.replace("{count}", str(count)))


def engines():
    """What bench measures here."""
    return ("kernel", "emulator") if os.geteuid() == 0 and run("exec", "--in-kernel", "-", input=b"r0 = 1\nexit\n").code == 0 else ("emulator",)


def benched(*args):
    flags = () if len(engines()) == 2 else ("--emulate",)
    r = good("bench", "--json", *flags, *args)
    lines = [json.loads(line) for line in r.out.splitlines()]
    assert lines[0]["type"] == "header" and lines[0]["environment"], lines[0]
    return ([l for l in lines if l["type"] == "variant"],
            {(l["to"], l["engine"]): l for l in lines if l["type"] == "difference"})


def assert_interval(interval):
    assert interval["low"] <= interval["median"] <= interval["high"], interval


@test
def bench_tells_ten_rounds_of_a_loop_from_a_thousand():
    short, same, long = variant("short.asm", 10), variant("same.asm", 10), variant("long.asm", 1000)
    variants, differences = benched("--repeat", "3000", short, same, long)
    assert [v["file"] for v in variants] == [short, same, long], variants
    for v in variants:
        assert v["program"] == "main" and v["insns"] == 7, v
        for engine in engines():
            figures = v[engine]
            assert figures["reason"] is None and figures["runs"] == 3000, figures
            assert_interval(figures["ns"])
            assert_interval(figures["own_ns"])
            assert figures["own_ns"]["median"] < figures["ns"]["median"], figures
    for engine in engines():
        d = differences[(long, engine)]
        assert d["from"] == short and d["beyond_noise"] and d["ns"]["low"] > 0, d
        assert_interval(d["ns"])
    assert [v["emulator"]["instructions"] for v in variants] == [43, 43, 4003], variants
    assert variants[0]["emulator"]["r0"] == variants[1]["emulator"]["r0"] != variants[2]["emulator"]["r0"], variants
    if len(engines()) == 2:
        assert [v["kernel"]["r0"] for v in variants] == [v["emulator"]["r0"] for v in variants], variants
        assert all(v["bytes_xlated"] == 56 and v["verified_insns"] >= 43 for v in variants), variants


@test
def bench_shows_a_table():
    short, long = variant("short.asm", 10), variant("long.asm", 1000)
    r = good("bench", "--emulate", "--repeat", "600", short, long)
    lines = r.out.splitlines()
    assert re.match(r"VARIANT +NS IN THE KERNEL +NS EMULATED +EXECUTED +INSNS +TRANSLATED +MACHINE CODE", lines[0]), r.out
    assert re.match(re.escape(short) + r" +- +-?[\d.]+ \(-?[\d.]+ to -?[\d.]+\) +43 +7 +-", lines[1]), r.out
    assert re.match(re.escape(long) + r" emulated: [\d.]+ ns slower than " + re.escape(short) + r" \([\d.]+ to [\d.]+\)$", lines[3]), r.out
    if len(engines()) < 2:
        raise Skip("all but the kernel: it doesn't run programs for us")
    r = good("bench", "--repeat", "600", short)
    assert len(r.out.splitlines()) == 2 and re.search(r" 56 B +\d+ B +\d+ +\d+ +\d+ B +\d+ us$", r.out.splitlines()[1]), r.out


@test
def bench_gives_programs_their_memory():
    text = written("first.asm", "r0 = *(u8 *)(r1 + 0)\nexit\n")
    packet = written("packet.asm", '.program p "xdp"\nr2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr4 = r2\nr4 += 15\nr0 = 1\n'
                     'if r4 > r3 goto out\nr0 = *(u8 *)(r2 + 14)\nout: exit\n')
    with open(path("memory.bin"), "wb") as f:
        f.write(bytes(range(7, 40)))
    for engine in engines():
        flags = ("--emulate",) if engine == "emulator" else ()
        for file, expected in ((text, "0x7"), (packet, "0x15")):
            v = [json.loads(l) for l in good("bench", "--json", "--repeat", "60", *flags, "--input-file", path("memory.bin"), file).out.splitlines()][1]
            assert v[engine]["r0"] == expected, v
    v = [json.loads(l) for l in good("bench", "--json", "--emulate", "--repeat", "60", "--input", "2a 00", text).out.splitlines()][1]
    assert v["emulator"]["r0"] == "0x2a", v


@test
def bench_says_what_it_cannot_measure():
    fine = variant("short.asm", 10)
    bad(2, r"(?i)operand|FILE", "bench")
    bad(1, r"no-such.asm", "bench", fine, "no-such.asm")
    bad(1, r"broken.asm:1:1: there is no register r11(.|\n)*rawbpf bench: \S*broken.asm: 1 mistake", "bench", "--emulate", fine, written("broken.asm", "r11 = 3\nexit\n"))
    bad(1, r"--input: `x` is no hex digit", "bench", "--input", "xyz", fine)
    bad(2, r"--input and --input-file are the same memory", "bench", "--input", "00", "--input-file", fine, fine)
    bad(2, r"--repeat.*6", "bench", "--repeat", "3", fine)
    endless = written("endless.asm", "again: goto again\n")
    r = run("bench", "--emulate", "--limit", "1000", "--repeat", "6", fine, endless)
    assert r.code == 1 and re.search(r"rawbpf bench: .*endless.asm: in the emulator: .*1000", r.err), r.err
    assert fine in r.out and not re.search(r"endless.asm emulated:", r.out), r.out
    if len(engines()) < 2:
        raise Skip("all but the kernel: it doesn't run programs for us")
    r = run("bench", "--repeat", "60", written("sysctl.asm", '.license "GPL"\n.program k "cgroup/sysctl"\nr0 = 1\nexit\n'))
    assert r.code == 0 and re.search(r"sysctl.asm: in the kernel: program k: BPF_PROG_TEST_RUN: ", r.err), (r.code, r.err)
    assert re.search(r"sysctl.asm +- +-?[\d.]+ \(", r.out), r.out


def figures_of(log):
    found = re.findall(r"processed (\d+) insns \(limit \d+\) max_states_per_insn (\d+) total_states (\d+) peak_states (\d+)", log)
    stack = re.findall(r"stack depth ([\d+]+)", log)
    assert len(found) == 1, log
    most, total, peak = map(int, found[0][1:])
    return {"verified_insns": int(found[0][0]), "max_states_per_insn": most, "total_states": total, "peak_states": peak,
            "stack_depth": stack[0] if stack else None}


@test
def load_has_the_verifiers_figures_as_bpftool_sees_them():
    if os.geteuid() != 0:
        raise Skip("needs root to load programs")
    source = written("figures.asm", '.license "GPL"\n.program sum "socket"\n*(u64 *)(r10 - 24) = 5\n' +
                     LOOP.replace("{count}", "100").replace("r0 = 0\n", "r0 = *(u64 *)(r10 - 24)\n", 1))
    obj = path("figures.o")
    good("asm", source, "-o", obj)
    [p] = [l for l in map(json.loads, good("load", "--json", obj).out.splitlines()) if l["type"] == "program"]
    assert p["verified_insns"] > 400 and p["stack_depth"].split("+")[0] == "24" and p["verification_time_us"] > 0, p
    assert list(p)[10:16] == ["verified_insns", "total_states", "peak_states", "max_states_per_insn", "verification_time_us", "stack_depth"], p
    text = good("load", "--stats", obj).out
    assert re.search(r"^  %d instructions verified in [\d,]+ us, %d states? \(" % (p["verified_insns"], p["total_states"]), text, re.M), text
    assert "verified" not in good("load", obj).out
    [v] = [l for l in map(json.loads, good("bench", "--json", "--repeat", "60", obj).out.splitlines()) if l["type"] == "variant"]
    same = ("verified_insns", "total_states", "peak_states", "max_states_per_insn", "stack_depth")
    assert [v[name] for name in same] == [p[name] for name in same], (v, p)
    if not shutil.which("bpftool") or not os.path.ismount("/sys/fs/bpf"):
        raise Skip("all but the comparison: no bpftool, or no bpf file system")
    pin = f"/sys/fs/bpf/rawbpf-bench-{os.getpid()}"
    theirs = subprocess.run(["bpftool", "-d", "prog", "load", obj, pin], capture_output=True, text=True, check=False)
    assert theirs.returncode == 0, theirs.stderr
    try:
        shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show", "pinned", pin], capture_output=True, text=True, check=True).stdout)
    finally:
        os.unlink(pin)
    assert {name: p[name] for name in same} == figures_of(theirs.stderr + theirs.stdout), (p, theirs.stderr[-600:])
    assert (v["bytes_xlated"], v["bytes_jited"]) == (shown["bytes_xlated"], shown.get("bytes_jited", 0)), (v, shown)


@test
def load_has_no_figures_of_a_refused_program():
    if os.geteuid() != 0:
        raise Skip("needs root to load programs")
    r = run("load", "--each", "--json", written("refused.asm", "r0 = *(u64 *)(r9 + 0)\nexit\n"))
    [p] = [l for l in map(json.loads, r.out.splitlines()) if l["type"] == "program"]
    assert not p["loaded"] and p["verified_insns"] is None and p["stack_depth"] is None, p
