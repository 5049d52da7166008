"""What tests of the running kernel's objects need: an object that stays loaded while others look at it, and what bpftool says of it."""
import json
import os
import shutil
import subprocess

from harness import *

COUNT = """.license "GPL"
.map %(name)s_m array key u32 value u64 entries 4
.program %(name)s "%(section)s"
    *(u32 *)(r10 - 4) = 0
    r1 = %(name)s_m ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = %(value)d
    exit
"""


def needs_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


class Attached:
    """An object that rawbpf has attached, in a network namespace of its own, until the block ends."""

    def __init__(self, text, *options, name="object.asm"):
        self.options, self.file = options, written(name, text)

    def __enter__(self):
        self.process = subprocess.Popen(["unshare", "-n", RB, "load", "--attach", "-d", "120", *self.options, self.file],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = ""
        while "attached:" not in self.said:
            line = self.process.stderr.readline()
            if not line:
                status = self.process.wait()
                self.process.stderr.close()
                assert status == 3, f"not attached, status {status}: {self.said}"
                raise Skip("this kernel attaches no such program: " + self.said[-300:])
            self.said += line
        return self

    def __exit__(self, *_):
        interrupt(self.process)
        assert self.process.wait(timeout=20) == 0, self.process.stderr.read()
        self.process.stderr.close()

    def inside(self, *words):
        """A command's words, so that it runs in the network namespace of the object: interfaces have their names there."""
        return ["nsenter", "-t", str(self.process.pid), "-n", *words]


def json_rows(*words):
    """The objects that rawbpf prints, without the header."""
    r = run(*words, binary=None)
    assert r.code == 0, (words, r.err)
    rows = [json.loads(line) for line in r.out.splitlines()]
    assert rows[0]["type"] == "header", rows[:1]
    return rows[1:]


def bpftool_rows(*words):
    if not shutil.which("bpftool"):
        raise Skip("needs bpftool")
    r = run(*words, binary=None)
    assert r.code == 0, (words, r.err)
    answer = json.loads(r.out)
    return answer if isinstance(answer, list) else [answer]


# Times differ by the moment of the question.
LOOSE = {"loaded_at": 1, "run_cnt": None, "run_time_ns": None}


def compare(theirs, ours, kind):
    """Each field of bpftool's is among ours and says the same."""
    assert ours["type"] == kind, ours
    for field, value in theirs.items():
        name = f"{kind}_type" if field == "type" else field
        assert name in ours, (field, ours)
        mine = ours[name]
        if field.endswith("type") and isinstance(value, int) and isinstance(mine, str):
            continue  # newer than this bpftool, which has no word for it
        if field == "pids":
            assert {p["pid"] for p in value} <= {p["pid"] for p in mine}, (value, mine)
        elif field == "funcs":
            as_number = lambda v: int(v, 16) if isinstance(v, str) and v.startswith("0x") else v
            same = ("addr", "offset", "ref_ctr_offset", "cookie")
            assert [{k: f[k] for k in same if k in f} for f in value] == \
                   [{k: as_number(f[k]) for k in same if k in f and k in t} for t, f in zip(value, mine)], (value, mine)
        elif isinstance(mine, str) and mine.startswith("0x"):
            assert int(mine, 16) == value, (field, mine, value)
        elif field in LOOSE:
            assert LOOSE[field] is None or abs(mine - value) <= LOOSE[field], (field, mine, value)
        else:
            assert mine == value, (field, mine, value)
