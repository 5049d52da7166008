#!/usr/bin/env python3
"""./dev corpus: objects that others wrote, through libbpf and through rawbpf, program by program.

    corpus.py compare  --rawbpf FILE --theirs FILE [--set NAME]... [--table FILE.json] [OBJECT...]
    corpus.py hostile  --check FILE --seconds N [--set NAME]...
    corpus.py list     (prints the objects)

Each object is loaded in a process of its own, by each loader, with a time limit. A program falls into one of four classes (both
load it, only they, only we, both refuse), and where both got as far as the kernel their final instructions are compared.
"Only they" must be empty but for the cases in argued.json, each with its reason; anything else ends in status 1.
"""
import argparse
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import build

LIMIT = 120  # seconds for one object in one loader
HERE = Path(__file__).resolve().parent


def lines_of(command):
    """The JSON lines that a command prints, and what went wrong otherwise."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return [], f"took more than {LIMIT} s"
    out = []
    for line in done.stdout.decode(errors="replace").splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            return out, f"no JSON: {line[:100]}"
    if done.returncode < 0:
        return out, f"ended by signal {-done.returncode}"
    return out, None


def loads_whole(*command):
    """Whether an object loads as a whole, and the last words otherwise; what it pins goes with a mount of its own."""
    script = 'mount -t bpf bpf /sys/fs/bpf && exec "$@"'
    try:
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *map(str, command)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"took more than {LIMIT} s"
    return done.returncode == 0, done.stdout.decode(errors="replace")[-400:]


def compare_object(job):
    set_name, path, rawbpf, theirs = job
    their_lines, their_trouble = lines_of([theirs, str(path)])
    our_lines, our_trouble = lines_of([rawbpf, "load", "--each", "--json", "-v", str(path)])
    ours = {l["program"]: l for l in our_lines if l.get("type") == "program"}
    their = {l["program"]: l for l in their_lines if "program" in l}
    unopened = next((l for l in their_lines if l.get("open") is False), None)
    unread = next((l for l in our_lines if l.get("type") == "object"), None)
    rows = []
    for name in list(dict.fromkeys([*their, *ours])):
        t, o = their.get(name), ours.get(name)
        they, we = bool(t and t["loaded"]), bool(o and o["loaded"])
        row = {"set": set_name, "object": path.name, "program": name, "section": (o or t)["section"], "they": they, "we": we,
               "class": {(1, 1): "both", (1, 0): "only they", (0, 1): "only we", (0, 0): "neither"}[they, we]}
        a, b = t and t["insn_hash"], o and o["tried_hash"]
        row["insns"] = "same" if a and a == b else "differ" if a and b else "not compared"
        row["their_insns"], row["our_insns"] = t and t["insns"], o and o["insns"]
        row["their_reason"] = (t or unopened or {}).get("reason", their_trouble) if not they else None
        row["our_reason"] = (o or unread or {}).get("reason", our_trouble) if not we else None
        row["their_errno"], row["our_errno"] = (t or {}).get("errno"), (o or {}).get("errno")
        rows.append(row)
    they_whole, their_words = loads_whole(theirs, "--whole", path)
    we_whole, our_words = loads_whole(rawbpf, "load", "-o", "/dev/null", path)
    opened = {"they_whole": they_whole, "we_whole": we_whole, "their_words": their_words, "our_words": our_words, "set": set_name, "object": path.name, "they_open": unopened is None and not their_trouble,
              "we_open": unread is None and not our_trouble, "their_reason": (unopened or {}).get("reason") or their_trouble,
              "our_reason": (unread or {}).get("reason") or our_trouble}
    return rows, opened, our_trouble


def table(rows, opened, argued):
    sets = list(dict.fromkeys(r["set"] for r in opened))
    head = ("set", "objects", "open: both", "only they", "only we", "whole: both", "only they", "only we", "programs", "both load", "only they", "only we", "both refuse",
            "same insns", "differ", "not compared")
    lines = [head]
    for name in [*sets, "all"]:
        mine = [r for r in rows if name in ("all", r["set"])]
        objects = [o for o in opened if name in ("all", o["set"])]
        classes = collections.Counter(r["class"] for r in mine)
        insns = collections.Counter(r["insns"] for r in mine)
        lines.append((name, len(objects), sum(o["they_open"] and o["we_open"] for o in objects),
                      sum(o["they_open"] and not o["we_open"] for o in objects),
                      sum(o["we_open"] and not o["they_open"] for o in objects),
                      sum(bool(o["they_whole"] and o["we_whole"]) for o in objects),
                      sum(bool(o["they_whole"] and not o["we_whole"]) for o in objects),
                      sum(bool(o["we_whole"] and not o["they_whole"]) for o in objects), len(mine), classes["both"], classes["only they"],
                      classes["only we"], classes["neither"], insns["same"], insns["differ"], insns["not compared"]))
    widths = [max(len(str(l[i])) for l in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(str(v).ljust(w) if i == 0 else str(v).rjust(w) for i, (v, w) in enumerate(zip(line, widths))))
    for name, why in build.SKIPPED.items():
        print(f"{name.ljust(widths[0])}  SKIPPED: {why}")
    print("\nBoth refuse, and instructions not compared where a loader gave up before the kernel saw the program.")
    bad = 0
    for row in rows:
        if row["class"] != "only they" and row["insns"] != "differ":
            continue
        what = "only they load" if row["class"] == "only they" else "instructions differ"
        why = argued["only they" if row["class"] == "only they" else "instructions"].get(row["object"])
        bad += not why
        print(f"{'argued' if why else 'OPEN'}: {what}: {row['set']}/{row['object']}: {row['program']}: {why or row['our_reason'] or ''}")
    for o in opened:
        if o["they_open"] and not o["we_open"]:
            bad += 1
            print(f"OPEN: only they open: {o['set']}/{o['object']}: {o['our_reason']}")
        if o["they_whole"] and not o["we_whole"]:
            why = argued["whole"].get(o["object"])
            bad += not why
            print(f"{'argued' if why else 'OPEN'}: only they load the whole of {o['set']}/{o['object']}: {why or o['our_words']}")
    return bad


def corpus(options):
    cache = Path(os.environ.get("RAWBPF_CORPUS", Path.home() / ".cache" / "rawbpf-corpus"))
    return build.build(cache, options.bpfcc, options.jobs, options.set)


def roundtrip(program, paths):
    """Every program through the disassembler and the assembler, and its text beside llvm-objdump's."""
    objdump = next((name for name in ("llvm-objdump-19", "llvm-objdump-20", "llvm-objdump-21") if shutil.which(name)), None)
    done = subprocess.run([program, *(["--objdump", objdump] if objdump else []), *map(str, paths)], stdout=subprocess.PIPE)
    print(done.stdout.decode(errors="replace") + ("" if objdump else "text not compared: no llvm-objdump 19 or newer\n"), end="")
    return int(done.returncode != 0)


def compare(options):
    argued = json.loads((HERE / "argued.json").read_text())
    objects = {"given": [Path(p) for p in options.objects]} if options.objects else corpus(options)
    jobs = [(name, path, options.rawbpf, options.theirs) for name, paths in objects.items() for path in paths]
    print(f"comparing {len(jobs)} objects", flush=True)
    rows, opened, broken = [], [], 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for (more, one, trouble), job in zip(pool.map(compare_object, jobs), jobs):
            rows += more
            opened.append(one)
            if trouble:
                broken += 1
                print(f"OPEN: rawbpf on {job[1]}: {trouble}")
    bad = table(rows, opened, argued) + broken
    if options.roundtrip:
        bad += roundtrip(options.roundtrip, [path for paths in objects.values() for path in paths])
    if options.table:
        Path(options.table).write_text(json.dumps({"programs": rows, "objects": opened}, indent=1))
        print(f"every program: {options.table}")
    return 1 if bad or not jobs else 0


def hostile(options):
    """Cuts and mutants of every object, through open and relocate only, in a build that watches memory (ASan, UBSan)."""
    paths = [p for paths in corpus(options).values() for p in paths]
    random.Random(options.seed).shuffle(paths)
    end = time.monotonic() + options.seconds
    done, bad = 0, 0
    def one(path):
        if time.monotonic() >= end:
            return None
        left = max(1, min(60, int(end - time.monotonic()) + 1))
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=0", UBSAN_OPTIONS="halt_on_error=1")
        try:
            return path, subprocess.run([options.check, str(options.seed), str(path)], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, timeout=left + 600, env=environment)
        except subprocess.TimeoutExpired:
            return path, None
    inputs = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for answer in pool.map(one, paths):
            if answer is None:
                continue
            path, result = answer
            done += 1
            text = result.stdout.decode(errors="replace") if result else "hangs"
            if result is None or result.returncode != 0:
                bad += 1
                print(f"FAIL {path}: {text[-2000:]}")
            else:
                inputs += int(text.split()[0])
    print(f"hostile: {done} of {len(paths)} objects, {inputs} inputs, {bad} objects with findings")
    return 1 if bad or not done else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["compare", "hostile", "list"])
    parser.add_argument("objects", nargs="*")
    parser.add_argument("--rawbpf")
    parser.add_argument("--theirs")
    parser.add_argument("--roundtrip")
    parser.add_argument("--check")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--bpfcc", default="", help="an unpacked bpfcc source tree, where the archive has none")
    parser.add_argument("--table", help="where to write every program's row, as JSON")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_intermixed_args()
    if options.command == "list":
        for paths in corpus(options).values():
            print("\n".join(map(str, paths)))
        return 0
    return compare(options) if options.command == "compare" else hostile(options)


if __name__ == "__main__":
    sys.exit(main())
