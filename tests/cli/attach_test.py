"""rawbpf attach: programs that are loaded already; rawbpf map watch; rawbpf prog dump --profile."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import *
from kernel_objects import *

BPFFS = "/sys/fs/bpf"


class Loaded:
    """A program, pinned and attached to nothing."""

    def __init__(self, section, value=0, name="adopted"):
        self.text = COUNT % {"name": name, "section": section, "value": value}
        self.name = name

    def __enter__(self):
        needs_root()
        if not os.path.ismount(BPFFS):
            raise Skip(f"needs a bpf file system at {BPFFS}")
        self.folder = f"{BPFFS}/attach_test_{os.getpid()}"
        good("load", "--pin", self.folder, written(f"{self.name}.asm", self.text))
        self.pin, self.map = f"{self.folder}/{self.name}", f"{self.folder}/maps/{self.name}_m"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def count(self):
        return int(good("map", "get", self.map, "0").out.split("=")[1])


@test
def attach_runs_a_program_that_was_loaded_before():
    with Loaded("raw_tp/sched_process_exec") as p:
        assert p.count() == 0
        for place in ("raw_tp:sched_process_exec", "raw_tp/sched_process_exec"):
            before = p.count()
            a = subprocess.Popen([RB, "attach", p.pin, place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                assert a.stderr.readline() == "rawbpf attach: attached: raw_tp sched_process_exec\n"
                for _ in range(5):
                    subprocess.run(["/bin/true"], check=True)
            finally:
                interrupt(a)
                out, err = a.communicate(timeout=20)
            assert a.returncode == 0, err
            runs = int(re.fullmatch(r"adopted ran ([\d,]+) times, \d+ ns each\n", out)[1].replace(",", ""))
            assert runs >= 5 and p.count() - before == runs, (runs, before, p.count())
        # By name and by id; in JSON the link and the runs.
        number = json_rows(RB, "prog", "show", "--json", p.pin)[0]["id"]
        rows = json_rows(RB, "attach", str(number), "raw_tp:sched_process_exec", "-d", "0.1", "--json")
        assert [r["type"] for r in rows] == ["link", "runs"] and rows[0]["what"] == "raw_tp sched_process_exec", rows
        assert not [l for l in json_rows(RB, "link", "list", "--json") if l["prog_id"] == number]


@test
def attach_pins_a_link_that_stays():
    with Loaded("raw_tp/sched_process_exec") as p:
        link = f"{p.folder}/link"
        good("attach", p.pin, "raw_tp:sched_process_exec", "--pin", link)
        row, = json_rows(RB, "link", "show", "--json", link)
        assert row["prog_name"] == "adopted" and row["pinned"] == [link], row
        before = p.count()
        subprocess.run(["/bin/true"], check=True)
        assert p.count() > before
        bad(1, r"File exists|EEXIST", "attach", p.pin, "raw_tp:sched_process_exec", "--pin", link)
        bad(3, r"bpf file system", "attach", p.pin, "raw_tp:sched_process_exec", "--pin", path("no_bpffs"))
        assert [l["pinned"] for l in json_rows(RB, "link", "list", "--json") if l.get("prog_name") == "adopted"] == [[link]]


@test
def attach_says_what_is_wrong():
    with Loaded("raw_tp/sched_process_exec") as p:
        bad(1, r"program \d+ adopted is of type raw_tracepoint, and xdp takes programs of type xdp\nhint: places for it: .*raw_tp", "attach", p.pin, "xdp")
        bad(1, r"section name .raw_tq/x. doesn't say which type of program it holds", "attach", p.pin, "raw_tq/x")
        bad(1, r"raw_tp doesn't say where to attach program \d+ adopted\nhint: give a target: raw_tp/TARGET", "attach", p.pin, "raw_tp")
        bad(1, r"sched_process_exce.*\n?.*sched_process_exec", "attach", p.pin, "raw_tp:sched_process_exce")
        bad(2, r"-d and --pin exclude each other", "attach", p.pin, "raw_tp:x", "--pin", "/x", "-d", "1")
        bad(1, r"nosuch0", "attach", p.pin, "xdp", "-i", "nosuch0")
        bad(2, r".", "attach", p.pin)
    bad(1, r"no program has the id 4294967295", "attach", "4294967295", "xdp")
    with Loaded("xdp", 2, "adopted_xdp") as p:
        bad(1, r"nothing was attached\nhint: xdp: --interface", "attach", p.pin, "xdp")


@test
def map_watch_tells_what_changes():
    with Loaded("raw_tp/sched_process_exec") as p:
        good("map", "set", p.map, "2", "7")
        w = subprocess.Popen([RB, "map", "watch", p.map, "--every", "0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert re.fullmatch(r"map \d+ adopted_m \(array\): key 4 B, value 8 B, 4 entries at most\n", w.stdout.readline())
            assert w.stdout.readline() == "     0.0s  + 2 = 7\n"  # zeros of an array aren't told
            good("map", "set", p.map, "3", "9")
            assert re.fullmatch(r" +\d+\.\ds  ~ 3 = 0 -> 9\n", w.stdout.readline())
            good("map", "set", p.map, "2", "0")
            assert re.fullmatch(r" +\d+\.\ds  ~ 2 = 7 -> 0\n", w.stdout.readline())
        finally:
            interrupt(w)
            out, err = w.communicate(timeout=20)
        assert w.returncode == 0 and out == "", (out, err)
        assert re.fullmatch(r"rawbpf map watch: \d+ looks: 0 added, 2 changed, 0 removed since the first\n", err), err


@test
def map_watch_of_keys_that_come_and_go():
    needs_root()
    if not os.path.ismount(BPFFS):
        raise Skip(f"needs a bpf file system at {BPFFS}")
    folder = f"{BPFFS}/watch_test_{os.getpid()}"
    text = COUNT % {"name": "watched", "section": "xdp", "value": 2}
    good("load", "--pin", folder, written("watched.asm", text.replace("array key", "hash key")))
    pin = f"{folder}/maps/watched_m"
    try:
        good("map", "set", pin, "5", "1")
        w = subprocess.Popen([RB, "map", "watch", pin, "--every", "0.05", "--changes", "--json", "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            head, about = (json.loads(w.stdout.readline()) for _ in range(2))
            assert head["type"] == "header" and (about["type"], about["name"], about["map_type"]) == ("map", "watched_m", "hash"), (head, about)
            time.sleep(0.5)  # the first look is over: what it held isn't told
            for words, what, before, after in ((("set", pin, "6", "2"), "added", None, 2), (("set", pin, "6", "4"), "changed", 2, 4),
                                               (("delete", pin, "6"), "removed", 4, None)):
                good("map", *words)
                row = json.loads(w.stdout.readline())
                assert (row["type"], row["what"]) == ("change", what) and row["seconds"] > 0, row
                for side, value in (("before", before), ("after", after)):
                    assert (row[side] is None) == (value is None), row
                    if value is not None:
                        assert row[side]["key"] == ["0x06", "0x00", "0x00", "0x00"] and row[side]["value"][0] == f"0x{value:02x}", row
                        assert row[side]["formatted"] == {"key": 6, "value": value}, row
        finally:
            interrupt(w)
            assert w.wait(timeout=20) == 0 and w.stderr.read() == ""
        bad(2, r"--every is 1ms at least", "map", "watch", pin, "--every", "0.0001")
        bad(2, r"--max-memory", "map", "watch", pin, "--max-memory", "1")
        bad(2, r".", "map", "watch")
        bad(1, r"no map called watched_nobody", "map", "watch", "watched_nobody")
    finally:
        shutil.rmtree(folder)


@test
def a_map_larger_than_its_copy_may_be_is_refused():
    needs_root()
    if not os.path.ismount(BPFFS):
        raise Skip(f"needs a bpf file system at {BPFFS}")
    folder = f"{BPFFS}/watch_large_{os.getpid()}"
    text = COUNT % {"name": "large", "section": "xdp", "value": 2}
    good("load", "--pin", folder, written("large.asm", text.replace("entries 4", "entries 200000")))
    try:
        bad(1, r"map \d+ large_m holds more than 1 MB, the limit for a copy of it", "map", "watch", f"{folder}/maps/large_m", "--max-memory", "1M")
    finally:
        shutil.rmtree(folder)


@test
def prog_dump_profile_finds_the_loop():
    """A program that runs a long loop, by prog run: nearly all samples are there."""
    needs_root()
    text = """.license "GPL"
.program busy "xdp"
    r2 = 0
again:
    r2 += 1
    if r2 < 200000 goto again
    r0 = 2
    exit
"""
    if not os.path.ismount(BPFFS):
        raise Skip(f"needs a bpf file system at {BPFFS}")
    folder = f"{BPFFS}/profile_test_{os.getpid()}"
    r = run("load", "--pin", folder, written("busy.asm", text))
    if r.code != 0:
        raise Skip("the verifier walks no such loop here: " + r.err[-200:])
    try:
        runner = subprocess.Popen([RB, "prog", "run", f"{folder}/busy", "--repeat", "100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            r = run("prog", "dump", f"{folder}/busy", "--profile", "-d", "1.5", "-f", "json")
            text = run("prog", "dump", f"{folder}/busy", "--profile", "-d", "1.5")
        finally:
            runner.send_signal(signal.SIGKILL)
            runner.wait()
        if r.code == 3 or "has no machine code" in r.err or "permission" in r.err.lower():
            raise Skip(r.err.splitlines()[-1])
        assert r.code == 0, r.err
        rows = [json.loads(line) for line in r.out.splitlines()]
        code, total = [o for o in rows if o["type"] == "code"], rows[-1]
        assert total["type"] == "code_samples" and total["samples"] == sum(o["samples"] for o in code) > 50, rows[-1]
        assert all(o["function"] == "busy" and o["offset"] >= 0 and int(o["address"], 16) > 0 for o in code), code
        # The assembler's lines are those of the source: the loop's two have nearly all.
        loop = sum(o["samples"] for o in code if o["text"] and ("r2 += 1" in o["text"] or "r2 < 200000" in o["text"]))
        assert loop > 0.9 * total["samples"], (loop, total, code)
        assert re.match(r"busy at 0x[0-9a-f]+: \d+ bytes, [\d,]+ samples, 100.0 %\n", text.out), text.out
        assert re.search(r"of [\d,]+ samples of the kernel were in the program", text.err), text.err
        bad(2, r"-f binary isn't for --profile", "prog", "dump", f"{folder}/busy", "--profile", "-f", "binary")
        bad(2, r"--machine.*--profile|--profile.*--machine", "prog", "dump", f"{folder}/busy", "--profile", "--machine")
    finally:
        shutil.rmtree(folder)
