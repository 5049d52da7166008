"""rawbpf asm and disasm: objects made of text, and text of objects."""
import json
import os
import re
import shutil

from harness import *
from bpf_objects import VMLINUX
from instructions import engines
from kernel_objects import json_rows

ASM = """.license "GPL"
.struct event
    pid u32
    tgid u32
.end
.map counts hash key u32 value u64 entries 64
.map events ringbuf entries 4096
.rodata text "hello"
.program on_exec "raw_tp/sched_process_exec"
    r1 = events ll
    r2 = sizeof(event)
    r3 = 0
    call bpf_ringbuf_reserve
    if r0 == 0 goto out
    r6 = r0
    call bpf_get_current_pid_tgid
    *(u32 *)(r6 + event.pid) = r0
    r0 >>= 32
    *(u32 *)(r6 + event.tgid) = r0
    r1 = r6
    r2 = 0
    call bpf_ringbuf_submit
    call count
out:
    r0 = 0
    exit
.function count
    *(u32 *)(r10 - 4) = 7
    *(u64 *)(r10 - 16) = 1
    r1 = counts ll
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    r0 = 0
    exit
"""


@test
def asm_makes_objects_that_others_read_and_load():
    obj = path("asm.o")
    good("asm", written("prog.asm", ASM), "-o", obj)
    listing = good("disasm", obj).out
    assert "r1 = events ll" in listing and "call count" in listing and ".function count" in listing, listing
    assert good("asm", "--hex", written("five.asm", "r0 = 5\nexit\n")).out == "b7 00 00 00 05 00 00 00 95 00 00 00 00 00 00 00\n"
    assert good("exec", path("five.asm")).out == "5\n"
    objdump = next((n for n in ("llvm-objdump-19", "llvm-objdump") if shutil.which(n)), None)
    if objdump:
        theirs = run("-dr", obj, binary=objdump).out
        assert "<on_exec>:" in theirs and "R_BPF_64_64\tevents" in theirs and "R_BPF_64_32\tcount" in theirs, theirs
    if os.geteuid() != 0:
        raise Skip("all but loading: needs root")
    good("load", obj)
    if not shutil.which("bpftool"):
        raise Skip("all but their loading: needs bpftool")
    pin = f"/sys/fs/bpf/rawbpf-asm-{os.getpid()}"
    os.mkdir(pin)
    try:
        r = run("prog", "loadall", obj, pin, binary="bpftool")
        assert r.code == 0, r.err
        shown = json.loads(run("-j", "prog", "show", "pinned", pin + "/on_exec", binary="bpftool").out)
        assert shown.get("btf_id"), shown
        loaded = good("disasm", "--prog", str(shown["id"]), "--source").out
        assert "# prog.asm:14: if r0 == 0 goto out" in loaded and ".function count" in loaded and "r1 = events ll" in loaded, loaded
    finally:
        shutil.rmtree(pin)


KSYMS = """
.license "GPL"
.program count "socket"
    call kfunc bpf_rcu_read_lock
    r1 = r10
    r1 += -8
    r2 = 1
    r3 = 4
    call kfunc bpf_iter_num_new
    r6 = 0
next:
    r1 = r10
    r1 += -8
    call kfunc bpf_iter_num_next
    if r0 == 0 goto out
    r1 = *(s32 *)(r0 + 0)
    r6 *= 10
    r6 += r1
    goto next
out:
    r1 = r10
    r1 += -8
    call kfunc bpf_iter_num_destroy
    call kfunc bpf_rcu_read_unlock
    r0 = r6
    exit
"""


@test
def asm_declares_what_the_kernel_has_to_provide():
    source, obj = written("ksyms.asm", KSYMS), path("ksyms.o")
    assert good("exec", source).out == "7b\n"
    if not os.path.exists(VMLINUX):
        raise Skip("needs a kernel with types")
    good("asm", source, "-o", obj)
    assert good("exec", obj).out == "7b\n"
    assert "call kfunc bpf_iter_num_new" in good("disasm", obj).out
    var = path("ksym.o")
    good("asm", written("ksym.asm", "r1 = ksym vfs_read ll\nr0 = 0\nexit\n"), "-o", var)
    assert "r1 = ksym vfs_read ll" in good("disasm", var).out
    objdump = next((n for n in ("llvm-objdump-19", "llvm-objdump") if shutil.which(n)), None)
    if objdump:
        theirs = run("-dr", obj, binary=objdump).out + run("-dr", var, binary=objdump).out
        assert "R_BPF_64_32\tbpf_iter_num_next" in theirs and "R_BPF_64_64\tvfs_read" in theirs, theirs
    bad(1, "the kernel has no function nobody_has_this", "asm", written("none.asm", "call kfunc nobody_has_this\nexit\n"), "-o", obj + "x")
    if shutil.which("bpftool"):
        types = run("btf", "dump", "file", obj, binary="bpftool").out
        assert "DATASEC '.ksyms'" in types and "FUNC 'bpf_iter_num_new' type_id" in types and "linkage=extern" in types, types
    if os.geteuid() != 0:
        raise Skip("all but loading: needs root")
    r = run("load", obj)
    if r.code:
        raise Skip("this kernel doesn't take bpf_iter_num in a socket filter: " + r.err[:200])
    if len(engines()) == 2:
        assert good("exec", "--diff", obj).out == "7b\n"
    if not shutil.which("bpftool"):
        raise Skip("all but their loading: needs bpftool")
    pin = f"/sys/fs/bpf/rawbpf-ksyms-{os.getpid()}"
    for made in (obj, var):
        try:
            r = run("prog", "load", made, pin, binary="bpftool")
            assert r.code == 0, r.err
        finally:
            if os.path.exists(pin):
                os.unlink(pin)


@test
def hex_is_read_the_same_way_everywhere():
    for text in ("b7000000 2a000000 95000000 00000000", "0xb70000002a000000\n0x9500000000000000", "b7 00 00 00 2a 00 00 00 95 0 0 0 0 0 0 0"):
        assert good("exec", written("p.hex", text)).out == "2a\n", text
        assert "r0 = 42" in good("disasm", path("p.hex")).out, text
    for command in ("exec", "disasm"):
        bad(1, "12 bytes; an instruction has 8, and the last one lacks 4", command, written("p.hex", "b7000000 2a000000 95000000"))


@test
def asm_points_at_mistakes():
    for text, message in (("r10 = 5", "can't be written"), ("r1 <<= 99", "a shift by 99"), ("r1 = 0x1ffffffff", "doesn't fit"),
                          ("r11 = 1", "no register r11"), ("goto nowhere", "no label"), ("call bpf_map_lookup_elen", "did you mean `bpf_map_lookup_elem`")):
        r = bad(1, message, "asm", written("bad.asm", text + "\nexit\n"), "--hex")
        assert "    | " in r.err and "^" in r.err and "bad.asm:1:" in r.err, r.err
    bad(1, "address only after it is loaded", "asm", path("prog.asm"), "--hex")
    bad(1, "absent_yet.asm` can't be read", "asm", written("inc.asm", '.include "absent_yet.asm"\n'))
    written("absent_yet.asm", "r0 = 7\nexit\n")
    good("asm", path("inc.asm"))
    bad(2, "either a file or --id", "disasm")
    bad(1, "7 bytes; an instruction has 8, and the last one lacks 1", "disasm", written("cut.hex", "b7 00 00 00 05 00 00"))


@test
def disasm_is_read_back_to_the_same_bytes():
    text = "r1 = 0x1122334455667788 ll\nw2 = w1\nr3 = (s16)r2\nlock *(u64 *)(r10 - 8) += r3\nif r0 s> -5 goto out\nr0 = bswap32 r0\nout: exit\n"
    first = good("asm", "--hex", written("a.asm", text)).out
    for dialect in ("llvm", "kernel", "conformance"):
        shown = good("disasm", path("a.asm"), "--dialect", dialect).out
        body = "\n".join(l for l in shown.splitlines() if not l.startswith((".license", "#")))
        assert good("asm", "--hex", written("b.asm", body)).out == first, shown
    assert good("asm", "--hex", written("b.asm", good("disasm", "-", "--bytes", input=first.encode()).out)).out == first
    assert good("disasm", path("a.asm"), "--cfg", "dot").out.startswith("digraph")
    rows = json_rows(RB, "disasm", "--json", path("a.asm"))
    assert json_rows(RB, "asm", "--json", path("a.asm")) == rows
    insns = [r for r in rows if r["type"] == "instruction"]
    assert rows[0]["type"] == "function" and {r["function"] for r in insns} == {r["name"] for r in rows if r["type"] == "function"}
    # Labels, texts and comments are the listing's; the bytes are those of --bytes.
    listing = good("disasm", path("a.asm"), "--bytes").out
    for r in insns:
        assert re.search(rf"^ *{r['index']}: +{' '.join(re.findall('..', r['bytes']))}\t{re.escape(r['text'])}( *# |$)", listing, re.M), (r, listing)
        assert r["label"] is None or f"\n{r['label']}:\n" in listing, r
    bad(2, "--cfg dot isn't JSON", "disasm", "--json", path("a.asm"), "--cfg", "dot")
