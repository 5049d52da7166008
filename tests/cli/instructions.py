"""Instructions as numbers and as text, and what the engines make of them."""
from harness import *


def hex_of(*insns):
    """(code, dst, src, off, imm) as the conformance suites write instructions: hex bytes on one line."""
    import struct
    return " ".join(f"{b:02x}" for i in insns for b in struct.pack("<BBhi", i[0], i[1] | i[2] << 4, i[3], i[4])) + "\n"


EXIT = (0x95, 0, 0, 0, 0)

MOV = lambda dst, imm: (0xb7, dst, 0, 0, imm)


def engines():
    """--kernel only where the kernel runs programs for us."""
    probe = run("exec", "--in-kernel", "-", input=hex_of(MOV(0, 1), EXIT).encode())
    return ["--emulate", "--in-kernel"] if probe.code == 0 else ["--emulate"]


SUM_ASM = """// sums the bytes at r1, r2 of them
    r0 = 0
    r3 = 0
loop:
    if r3 >= r2 goto out
    r4 = r1
    r4 += r3
    r4 = *(u8 *)(r4 + 0)
    r0 += r4
    *(u64 *)(r10 - 8) = r0
    r3 += 1
    goto loop
out:
    exit
"""


def sum_asm():
    with open(path("sum.asm"), "w") as f:
        f.write(SUM_ASM)
    return path("sum.asm")
