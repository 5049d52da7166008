"""rawbpf prog run, dump and pin: of programs that are loaded, beside bpftool's answers."""
import json
import os
import re
import shutil
import subprocess

from harness import *
from kernel_objects import *

BPFFS = "/sys/fs/bpf"
FILTER = """.license "GPL"
.map passed array key u32 value u64 entries 1
.program prog_filter "xdp"
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r4 = r2
    r4 += 15
    r0 = 1
    if r4 > r3 goto out
    r5 = *(u8 *)(r2 + 14)
    r5 ^= 255
    *(u8 *)(r2 + 14) = r5
    *(u32 *)(r10 - 4) = 0
    r1 = passed ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
    r0 = 2
out:
    exit
.program prog_sum "raw_tp/sched_process_exec"
    r0 = *(u64 *)(r1 + 0)
    r2 = *(u64 *)(r1 + 8)
    r0 += r2
    exit
"""


class Pinned:
    def __enter__(self):
        needs_root()
        if not os.path.ismount(BPFFS):
            raise Skip(f"needs a bpf file system at {BPFFS}")
        self.folder = f"{BPFFS}/prog_test_{os.getpid()}"
        good("load", "--pin", self.folder, written("prog_filter.asm", FILTER))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def __getattr__(self, name):
        return f"{self.folder}/prog_{name}"


@test
def prog_run_runs_a_loaded_program_with_its_maps():
    with Pinned() as p:
        assert re.fullmatch(r"2 \(0x2\)(, [\d,]+ ns)?\n", good("prog", "run", p.filter).out)
        assert good("prog", "run", p.filter, "--input", "00" * 14).out.startswith("1 (0x1)")
        run_, = json_rows(RB, "prog", "run", "--json", p.filter, "--input", "00" * 14 + "0f" + "00" * 5, "--repeat", "1000")
        assert run_["type"] == "run" and run_["retval"] == 2 and run_["repeat"] == 1000, run_
        assert run_["data_out"] == "00" * 14 + "0f" + "00" * 5, run_  # turned an even number of times
        assert good("map", "get", f"{p.folder}/maps/passed", "0").out == "  0 = 1001\n"
        good("prog", "run", p.filter, "--packet-file", path("after.bin"))
        with open(path("after.bin"), "rb") as f:
            assert f.read() == bytes(14) + b"\xff" + bytes(49)
        assert good("prog", "run", p.sum, "--context", "05 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00").out.startswith("12 (0xc)")
        if shutil.which("bpftool"):
            theirs, = bpftool_rows("bpftool", "-j", "prog", "run", "pinned", p.filter, "data_in", path("after.bin"))
            assert theirs["retval"] == 2, theirs


@test
def prog_run_says_what_is_wrong():
    with Pinned() as p:
        bad(1, r"a packet of 3 bytes: it has an Ethernet header, 14 bytes at least", "prog", "run", p.filter, "--input", "000000")
        bad(1, r"programs of type raw_tracepoint take no packet", "prog", "run", p.sum, "--input", "00")
        bad(1, r"runs programs of type raw_tracepoint once a call", "prog", "run", p.sum, "--repeat", "2")
        bad(2, r"--input: `x`", "prog", "run", p.filter, "--input", "xy")
        bad(2, r"are the same packet", "prog", "run", p.filter, "--input", "00", "--input-file", path("prog_filter.asm"))
        bad(1, r"running program \d+: ", "prog", "run", p.sum)
    bad(1, r"no program has the id 4294967295", "prog", "run", "4294967295")
    bad(1, r"no program called prog_nobody", "prog", "run", "prog_nobody")
    needs_root()
    with Attached(COUNT % {"name": "prog_probed", "section": "tracepoint/sched/sched_process_exec", "value": 0}) as _:
        r = run("prog", "run", "prog_probed")
        assert r.code == 3 and "hint: the kernel runs socket, XDP" in r.err, (r.code, r.err)


@test
def prog_dump_has_the_bytes_that_bpftool_has():
    with Pinned() as p:
        for what, flag, theirs in (("machine", "--machine", "jited"), ("translated", "--translated", "xlated")):
            mine, other = path(f"{what}.bin"), path(f"{theirs}.bin")
            r = run("prog", "dump", p.filter, flag, "-f", "binary", "-o", mine)
            if r.code == 3 and what == "machine":
                assert "the kernel interprets it" in r.err, r.err
                continue
            assert r.code == 0, r.err
            if what == "machine":
                text = good("prog", "dump", p.filter, flag).out
                assert re.match(r"\w+ at 0x[0-9a-f]+: \d+ bytes\n +0:  ([0-9a-f]{2} ?){16}\n +10: ", text), text
                with open(mine, "rb") as a:
                    code = a.read()
                assert bytes.fromhex("".join(re.findall(r"^ *[0-9a-f]+:  (.*)$", text, re.M)).replace(" ", "")) == code
                assert len(code) == json_rows(RB, "prog", "show", "--json", p.filter)[0]["bytes_jited"]
            if shutil.which("bpftool"):
                r = run("bpftool", "prog", "dump", theirs, "pinned", p.filter, "file", other, binary=None)
                if "JIT disassembl" in r.err + r.out or what == "machine" and not os.path.exists(other):
                    continue  # this bpftool was built without a disassembler, and refuses the bytes, too
                with open(mine, "rb") as a, open(other, "rb") as b:
                    assert a.read() == b.read(), what
        text = good("prog", "dump", p.filter).out
        assert "r1 = passed ll" in text and "exit" in text, text
        assert text == good("disasm", "--prog", str(json_rows(RB, "prog", "show", "--json", p.filter)[0]["id"])).out
        rows = json_rows(RB, "prog", "dump", "--json", p.filter)
        with open(path("translated.bin"), "rb") as whole:
            assert bytes.fromhex("".join(r["bytes"] for r in rows if r["type"] == "instruction")) == whole.read()
        assert [r["text"] for r in rows if r["type"] == "instruction" and r["text"] in text], rows
        if os.path.exists(path("machine.bin")):
            rows = json_rows(RB, "prog", "dump", "--json", "--machine", p.filter)
            with open(path("machine.bin"), "rb") as whole:
                assert bytes.fromhex("".join(r["code"] for r in rows if r["type"] == "machine_function")) == whole.read()
        bad(2, r"-f binary isn't for --profile", "prog", "dump", "--profile", "-f", "binary", p.filter)
        good("prog", "pin", p.filter, f"{p.folder}/again")
        assert good("prog", "dump", f"{p.folder}/again").out == text
        bad(1, r"pinning it at /proc/x", "prog", "pin", p.filter, "/proc/x")
        bad(2, r"--machine.*--translated|--translated.*--machine", "prog", "dump", "--machine", "--translated", p.filter)
        bad(2, r"pin: PATH is missing", "prog", "pin", p.filter)
        bad(1, r"isn't a program, but anon_inode:bpf-map", "prog", "dump", f"{p.folder}/maps/passed")
    bad(1, r"no program has the id 4294967295", "prog", "dump", "4294967295")
