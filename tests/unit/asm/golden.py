#!/usr/bin/env python3
"""Golden bytes and texts of instructions, by LLVM.

usage: golden.py < rows > golden.inc       rows: name, dst, src, off, imm and a text for llvm-mc, separated by tabs
       golden.py --check golden.inc        does the newest LLVM assemble and print those rows, and newer ones, in the same way

The first is run by hand when the table in asm/opcodes.h grows. A row is asked of LLVM 19, and of the newest LLVM where 19 doesn't know
it or writes it without the part that tells it from another; what neither knows is left out, and written by hand in encode_test.cpp.
The tests read golden.inc only; the second is one of the command line's tests. The newest LLVM is $LLVM_MC, or the llvm-mc on PATH with
the highest version.
"""
import glob
import os
import re
import subprocess
import sys


def version(program):
    try:
        out = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return 0
    found = re.search(r"LLVM version (\d+)", out)
    return int(found.group(1)) if found and "bpfel" in out else 0


def newest():
    if os.environ.get("LLVM_MC"):
        return os.environ["LLVM_MC"]
    found = [p for d in os.environ["PATH"].split(":") for p in glob.glob(d + "/llvm-mc") + glob.glob(d + "/llvm-mc-[0-9]*")]
    return max(found, key=version, default=None)


def run(llvm, args, text):
    return subprocess.run([llvm, "-triple", "bpfel", *args], input=text, capture_output=True, text=True)


def spaced(code):
    return " ".join("0x" + code[i : i + 2] for i in range(0, len(code), 2))


def disassemble(llvm, code, args):
    out = run(llvm, ["--disassemble", *args], spaced(code))
    lines = [line.strip() for line in out.stdout.splitlines() if line.strip() and line.strip() != ".text"]
    return lines[0] if len(lines) == 1 and not out.stderr else None


def assemble(llvm, text):
    out = run(llvm, ["-mcpu=v4", "-show-encoding"], text + "\n")
    found = re.search(r"encoding: \[([^\]]*)\]", out.stdout)
    return "".join(part[2:] for part in found.group(1).split(",")) if found and not out.stderr else None


def golden(llvm, text):
    code = assemble(llvm, text)
    pairs = [(disassemble(llvm, code, cpu), disassemble(llvm, code, cpu + ["--print-imm-hex"])) for cpu in ([], ["-mcpu=v4"])] if code else []
    pairs = [pair for pair in pairs if pair[0] == text]
    return (code, pairs[0][1]) if pairs else None


OLDEST = 19  # which assembles all rows but the next ones
# What LLVM 19 doesn't know.
NEWER = [
    ("w1 = load_acquire((u8 *)(r2 + 4))", 20, "d321040000010000"),
    ("w1 = load_acquire((u16 *)(r2 + 4))", 20, "cb21040000010000"),
    ("w1 = load_acquire((u32 *)(r2 + 4))", 20, "c321040000010000"),
    ("r1 = load_acquire((u64 *)(r2 - 8))", 20, "db21f8ff00010000"),
    ("store_release((u8 *)(r1 + 4), w2)", 20, "d321040010010000"),
    ("store_release((u16 *)(r1 + 4), w2)", 20, "cb21040010010000"),
    ("store_release((u32 *)(r1 + 4), w2)", 20, "c321040010010000"),
    ("store_release((u64 *)(r10 - 8), r2)", 20, "db2af8ff10010000"),
]


def check(path):
    """All rows in one run of llvm-mc; each as a text, and back from its bytes."""
    llvm = newest()
    if llvm is None:
        print("SKIP: no llvm-mc with the target bpf")
        return 77
    if version(llvm) < OLDEST:
        print(f"SKIP: {llvm} is LLVM {version(llvm)}, and the rows are LLVM {OLDEST}'s: install llvm-{OLDEST}")
        return 77
    rows = []
    for line in open(path):
        strings = re.findall(r'"([^"]*)"', line)
        if len(strings) == 4:
            rows.append((strings[2], strings[1]))
    rows += [(text, code) for text, since, code in NEWER if version(llvm) >= since]
    out = run(llvm, ["-mcpu=v4", "-show-encoding"], "".join(text + "\n" for text, code in rows))
    codes = ["".join(part[2:] for part in found.split(",")) for found in re.findall(r"encoding: \[([^\]]*)\]", out.stdout)]
    bad = [] if len(codes) == len(rows) else [f"{len(codes)} of {len(rows)} rows were assembled: {out.stderr[:300]}"]
    # A jump by a number is a fixup in newer versions: its two bytes are letters.
    bad += [f"{text}: {theirs}, not {code}" for (text, code), theirs in zip(rows, codes) if theirs != code and re.fullmatch("[0-9a-f]*", theirs)]
    out = run(llvm, ["-mcpu=v4", "--disassemble"], "\n".join(spaced(code) for text, code in rows))
    texts = [line.strip() for line in out.stdout.splitlines() if line.strip() and line.strip() != ".text"]
    if len(texts) == len(rows):
        bad += [f"{code}: `{theirs}`, not `{text}`" for (text, code), theirs in zip(rows, texts) if theirs != text and not known(text, theirs)]
    else:
        bad += [f"{len(texts)} of {len(rows)} rows were printed: {out.stderr[:300]}"]
    print("\n".join(bad) or f"{len(rows)} rows are the same in LLVM {version(llvm)}")
    return 1 if bad else 0


def known(ours, theirs):
    """With -mcpu=v3 and newer, loads and stores below 64 bits are written with wN; the rows have rN, as -mcpu=v1 and v2 do."""
    return re.sub(r"\bw(\d)", r"r\1", theirs) == re.sub(r"\bw(\d)", r"r\1", ours)


def make():
    known_llvm = [llvm for llvm in ("llvm-mc-19", newest()) if llvm and version(llvm)]
    left_out = []
    for row in sys.stdin:
        name, dst, src, off, imm, text = row.rstrip("\n").split("\t")[:6]
        found = next((found for llvm in known_llvm if (found := golden(llvm, text))), None)
        if found is None:
            left_out.append(name)
            continue
        print('{"%s", %s, %s, %s, %s, "%s", "%s", "%s"},' % (name, dst, src, off, imm, found[0], text, found[1]))
    print("left out: " + " ".join(sorted(set(left_out))), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[2]) if sys.argv[1:2] == ["--check"] else make())
