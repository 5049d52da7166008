"""What is said: refused programs, and what else people read when something isn't as they thought."""
from harness import *

NULL_ASM = """.map counts hash key u32 value u64 entries 1
.program count "tracepoint/syscalls/sys_enter_openat"
    *(u32 *)(r10 - 4) = 0
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    r1 = *(u64 *)(r0 + 0)
    r0 = 0
    exit
"""


def written(name, text):
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


@test
def load_takes_assembly():
    """`load prog.asm` assembles it first; whatever refuses it names the line of the text."""
    ok = written("ok.asm", '.program ok "socket"\n    r0 = 0\n    exit\n')
    if run("load", ok).code == 3:
        raise Skip("programs can't be loaded here")
    assert "ok socket" in good("load", ok).out
    named_else = written("source.txt", ".map m hash key u32 value u64 entries 1\n" + read("ok.asm"))
    assert "ok socket" in good("load", named_else).out
    assert "ok socket" in good("load", "-", input=read("ok.asm").encode()).out
    null = written("null.asm", NULL_ASM)
    assert re.search(r"null.asm:8\b", bad(1, "(?i)null", "load", null).err)
    wrong = written("wrong.asm", '.program ok "socket"\n    r0 = 0\n    exti\n')
    assert "did you mean `exit`" in bad(1, r"wrong.asm:3:5: there is no instruction", "load", wrong).err
    bad(1, "(?i)elf", "load", written("prog.c", "int x;\n"))  # C is no assembly
    bad(1, "(?i)empty", "load", written("empty.asm", ""))
