"""`rawbpf explain`: as nobody; the kernel's log; bad logs; the lines below a refusal of `load`."""
import re

from harness import *
from bpf_objects import compile_bpf, needs_kernel_btf

NULL = """.map counts hash key 4 value 8 entries 16
.program count "tracepoint/syscalls/sys_enter_openat"
    *(u32 *)(r10 - 4) = 0
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    r7 = r0
    r1 = *(u64 *)(r7 + 0)
    r0 = 0
    exit
"""
CAUSE = r"cause: null\.asm:7: r0 is what bpf_map_lookup_elem\(\) returned: a pointer to a value of map counts, or NULL; it comes here in 1 step; r7 was never compared with 0"
REMEDY = "remedy: in front of null.asm:8, leave where there is nothing: if r0 != 0 goto +2; r0 = 0; exit"


@test
def explain_as_nobody():
    written("null.asm", NULL)
    r = as_nobody("explain", path("null.asm"))
    assert r.code == 1 and not r.err, (r.code, r.err)
    assert "so: r7 was never compared with 0 on this path" in r.out and REMEDY in r.out and "instructions: 7 of 10 looked at" in r.out, r.out
    r = as_nobody("explain", "--short", path("null.asm"))
    assert re.match(CAUSE, r.out) and len(r.out.splitlines()) == 3, r.out
    rows = [json.loads(line) for line in as_nobody("explain", "--json", path("null.asm")).out.splitlines()]
    verdict = next(row for row in rows if row["type"] == "verdict")
    assert (verdict["verdict"], verdict["class"], verdict["insn"], verdict["remedy"]["line"]) == ("refused", "null", 7, 8), verdict
    assert [row["insn"] for row in rows if row["type"] == "cause"] == [5, 6, 7], rows
    page = as_nobody("explain", "-f", "html", path("null.asm")).out
    assert page.startswith("<!doctype html>") and page.count("</script>") == 2 and "src=" not in page and "http://" not in page.replace("http://www.w3.org/2000/svg", ""), page[:300]


# What beginners write, and what must stand in the answer.
COUNT = '.map m array key u32 value u64 entries 4\n.program p "socket"\n*(u32 *)(r10 - 4) = 1\nr1 = m ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n{}\nr0 = 0\nexit\n'
MISTAKES = (
    (COUNT.format("if r0 != 0 goto out\nr1 = *(u64 *)(r0 + 0)\nout:"), "on this path it is NULL", "is the test the wrong way round?"),
    (COUNT.format("r0 += 1"), "null-check it first", "compare it with NULL first; to change what it points to, use *(u64 *)(r0 + 0)"),
    ('.program f "xdp"\nr2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr0 = 2\nr2 += 14\nif r2 > r3 goto out\nr5 = *(u16 *)(r2 + 12)\nout:\nexit\n',
     "14 bytes are missing", "R2 is 14 bytes into the packet here, so compare a copy of it"),
    ("61 10 00 00 00 00 00 00  # the length\n07 00 00 05 00 00 00 00\n95 00 00 00 00 00 00 00\n", "instruction 1: BPF_ALU uses reserved fields", "a number that begins at the wrong byte"),
)


@test
def beginners_mistakes_have_their_own_hints():
    for text, reason, hint in MISTAKES:
        r = run("verify", "-", input=text.encode())
        assert r.code == 1 and reason in r.err and hint in r.err.splitlines()[-1], (text, r.err)


@test
def a_path_that_ended_is_no_way_that_is_never_taken():
    """The second way of both comparisons ends where the first has been: known before."""
    solved = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs/labs/lessons/04-bounds/solution/lab.asm")
    out = good("explain", solved).out
    assert "known before" in out and "never jumps" not in out, out


@test
def explain_remedy_loads():
    written("null.asm", NULL)
    remedy = next(json.loads(line) for line in good_or_refused("explain", "--json", path("null.asm")).out.splitlines() if '"verdict"' in line[:20])["remedy"]
    lines = NULL.splitlines()
    lines[remedy["line"] - 1:remedy["line"] - 1] = remedy["lines"]
    written("mended.asm", "\n".join(lines) + "\n")
    good("verify", path("mended.asm"))
    if run("load", "--json", "-", input=b"r0 = 0\nexit\n").code == 3:
        raise Skip("programs can't be loaded here")
    good("load", path("mended.asm"))


def good_or_refused(*words):
    r = run(*words)
    assert r.code in (0, 1), (r.code, r.err)
    return r


@test
def explain_the_kernels_log():
    written("null.asm", NULL)
    r = run("load", "-v", path("null.asm"))
    if r.code == 3 and "EPERM" in r.err:
        raise Skip("programs can't be loaded here")
    assert re.search(CAUSE, r.err) and REMEDY in r.err.splitlines()[-1], r.err
    written("kernel.log", r.err)
    told = run("explain", path("null.asm"), "--log", path("kernel.log"))
    assert told.code == 1 and "by the kernel, refused at instruction 7" in told.out and REMEDY in told.out, (told.out, told.err)
    each = run("load", "--each", path("null.asm")).out
    assert re.search("^" + CAUSE, each, re.M), each


@test
def explain_bad_input():
    written("null.asm", NULL)
    written("other.log", "0: (b7) r0 = 0\n1: (95) exit\nprocessed 2 insns\n")
    bad(1, "the log is not of program count: 2 of its 2 instructions differ, the first is .*\n.*--prog NAME", "explain", path("null.asm"), "--log", path("other.log"))
    written("empty.log", "")
    bad(1, "no instruction and no verdict", "explain", path("null.asm"), "--log", path("empty.log"))
    written("two.asm", '.program a "socket"\nr0 = 0\nexit\n.program b "socket"\nr0 = 0\nexit\n')
    bad(2, "2 programs, and a page is about one\nhint: --prog NAME", "explain", "-f", "html", path("two.asm"))
    bad(2, "2 programs, and a log is about one", "explain", "--log", path("other.log"), path("two.asm"))
    bad(1, "No such file", "explain", path("nothing.asm"))


@test
def asm_verify_reads_like_verify():
    written("null.asm", NULL)
    r = run("asm", "--verify", path("null.asm"), "-o", path("null.o"))
    assert r.code == 1 and "null.asm:9" in r.err and "R7 invalid mem access" in r.err and not os.path.exists(path("null.o")), (r.code, r.err)
    refused = run("verify", path("null.asm"))
    assert refused.code == 1 and refused.err.replace("rawbpf verify", "rawbpf asm") == r.err, (refused.err, r.err)
    written("good.asm", "r0 = 0\nexit\n")
    r = good("asm", "--verify", path("good.asm"), "-o", path("good.o"))
    assert r.err == good("verify", path("good.asm")).out and "accepted: 2 instructions" in r.err and os.path.exists(path("good.o")), r.err
    written("other.asm", '.program main "lsm/file_open"\nr0 = 0\nexit\n')
    r = run("verify", path("other.asm"))
    if r.code == 3:  # not decided: written all the same
        assert "not decided" in good("asm", "--verify", path("other.asm"), "--hex").err


@test
def exec_warns_of_what_a_kernel_refuses():
    r = good("exec", "-", input=b"r0 = *(u64 *)(r10 - 8)\nr0 = 2\nif r0 > r3 goto out\nout: exit\n")
    assert r.out == "2\n", r.out
    assert re.search(r"rawbpf exec: warning: a kernel would refuse this program at instruction 2 \(if r0 > r3 goto \+0\), standard input:3: R3 !read_ok\n", r.err), r.err
    assert good("exec", "-", "0102", input=b"r0 = *(u8 *)(r1 + 1)\nif r2 != 2 goto out\nr0 += r2\nout: exit\n").err == ""  # as it is run: with memory
    assert "at instruction 0 (r0 = *(u32 *)(r1 + 0)), standard input:1: " in run("exec", "-", "0102", input=b"r0 = *(u32 *)(r1 + 0)\nexit\n").err


@test
def verify_and_explain_experiments():
    written("bad.exp", """on kprobe:vfs_read { @reads[comm] = count() }
asm {
.program broken "socket"
    r0 = *(u64 *)(r2 + 0)
    exit
}
wait 1ms
""")
    r = run("verify", path("bad.exp"))
    assert r.code == 1 and "broken" in r.err and "R2 !read_ok" in r.err, (r.code, r.out, r.err)
    r = run("explain", path("bad.exp"), "--prog", "broken")
    assert r.code == 1 and "broken (socket): refused at instruction 0" in r.out, (r.out, r.err)
    written("wrong.exp", "on kprobe:vfs_read { @x[ }\n")
    bad(1, "1 mistake, nothing was done", "verify", path("wrong.exp"))
    bad(1, "no program nowhere|there is no program nowhere", "verify", path("bad.exp"), "--prog", "nowhere")


@test
def stacks_that_add_up_are_named():
    written("stacks.asm", """.program p "tc"
    *(u64 *)(r10 - 400) = 0
    call f
    r0 = 0
    exit
.function f
    r2 = r10
    r2 += -304
    *(u64 *)(r2 + 0) = 0
    r0 = 0
    exit
""")
    r = run("verify", path("stacks.asm"))
    assert r.code == 1 and "combined stack size of 2 calls is 704" in r.err, r.err
    assert "stacks.asm:3:5: p() uses 400 of the 704 bytes, and calls f() here" in r.err and "note: f() uses 304 of the 704 bytes" in r.err, r.err


@test
def verify_relocates_optional_programs():
    needs_kernel_btf()
    obj = compile_bpf("optional.bpf.o", """#include <rawbpf/bpf.h>
LICENSE("GPL");
struct task_struct { char far[4000]; int tgid; } __attribute__((preserve_access_index));
SEC("?raw_tp/sys_enter") int relocated(void *ctx) { struct task_struct *task = 0; return (long)&task->tgid; }
""")
    good("verify", obj)
    text = good("explain", "--prog", "relocated", obj).out
    assert re.search(r"= \d+", text) and "4000" not in text, text # the kernel's offset, not the object's
