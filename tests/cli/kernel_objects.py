"""What tests of the running kernel's objects need: an object that stays loaded while others look at it, and what bpftool says of it."""
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess

from bpftool_fields import *
from harness import *


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


def held_by(pid):
    """The programs, maps and links that a process has open: kind and number of each."""
    found = set()
    for file in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(file, encoding="ascii", errors="replace") as f: # closed meanwhile
            found |= {(what, int(number)) for what, number in re.findall(r"^(prog|map|link)_id:\t(\d+)$", f.read(), re.M)}
    return found


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
