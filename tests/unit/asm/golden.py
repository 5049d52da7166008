#!/usr/bin/env python3
"""Makes golden.inc: for each row of forms and operands, the bytes that llvm-mc assembles and the text that it prints.

usage: golden.py < rows > golden.inc       rows: name, dst, src, off, imm and a text for llvm-mc, separated by tabs

Run by hand when the table in asm/opcodes.h grows; needs LLVM 19. The tests read golden.inc only. Rows that LLVM 19 doesn't know or
writes without the part that tells them apart are left out here, and written by hand in encode_test.cpp.
"""
import re
import subprocess
import sys

LLVM = ["llvm-mc-19", "-triple", "bpfel"]


def disassemble(code, extra):
    spaced = " ".join("0x" + code[i : i + 2] for i in range(0, len(code), 2))
    out = subprocess.run(LLVM + ["--disassemble"] + extra, input=spaced, capture_output=True, text=True)
    lines = [line.strip() for line in out.stdout.splitlines() if line.strip() and line.strip() != ".text"]
    return lines[0] if len(lines) == 1 and not out.stderr else None


def assemble(text):
    out = subprocess.run(LLVM + ["-mcpu=v4", "-show-encoding"], input=text + "\n", capture_output=True, text=True)
    found = re.search(r"encoding: \[([^\]]*)\]", out.stdout)
    return "".join(part[2:] for part in found.group(1).split(",")) if found and not out.stderr else None


left_out = []
for row in sys.stdin:
    name, dst, src, off, imm, text = row.rstrip("\n").split("\t")[:6]
    code = assemble(text)
    printed = [(disassemble(code, cpu), disassemble(code, cpu + ["--print-imm-hex"])) for cpu in ([], ["-mcpu=v4"])] if code else []
    printed = [pair for pair in printed if pair[0] == text]
    if not printed:
        left_out.append(name)
        continue
    print('{"%s", %s, %s, %s, %s, "%s", "%s", "%s"},' % (name, dst, src, off, imm, code, text, printed[0][1]))
print("left out: " + " ".join(sorted(set(left_out))), file=sys.stderr)
