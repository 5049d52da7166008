"""What is said: refused programs, and what else people read when something isn't as they thought."""
import subprocess

from harness import *

GOLDEN = os.path.join(HERE, "../unit/object/golden/golden-clang14.o")
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


def commands():
    listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", good("--help").out, re.M)
    assert {"profile", "load", "version"} <= set(listed), listed
    return listed


@test
def help_says_each_heading_once():
    for command in commands():
        headings = re.findall(r"^([A-Z][A-Za-z ]*):$", good(*command.split(), "--help").out, re.M)
        assert len(headings) == len(set(headings)), f"{command}: {headings}"


@test
def commands_output_and_ours():
    """COMMAND's own lines never stand between those of a format for machines."""
    if run("trace", "syscall:openat", "-q", "--", "true").code == 3:
        raise Skip("no tracing here")
    for command in (("profile", "-d", "5", "-q"), ("trace", "syscall:openat", "-q")):
        r = good(*command, "--json", "--", "sh", "-c", "echo {not' 'json; exit 0")
        assert all(json.loads(line)["type"] for line in r.out.splitlines()) and "{not json" in r.err, r.out[:300]
        assert "{not json" in good(*command, "--", "sh", "-c", "echo {not' 'json").out  # for people, as ever
        assert "{not json" in good(*command, "--json", "-o", path("rows"), "--", "sh", "-c", "echo {not' 'json").out  # nothing to mix
        r = good(*command, "--json", "--command-output", "null", "--", "sh", "-c", "echo {not' 'json")
        assert "{not json" not in r.out + r.err
        good(*command, "--json", "--command-output", path("said"), "--", "sh", "-c", "echo {not' 'json")
        assert read("said") == "{not json\n"
        assert "{not json" in good(*command, "--json", "--command-output", "stdout", "--", "sh", "-c", "echo {not' 'json").out
        bad(2, "--command-output", *command, "--command-output", "/no/such/folder/x", "--", "true")
    bad(2, "there is none", "profile", "-d", "0.1", "--command-output", "null")


@test
def json_says_machine_and_cost():
    for command in (("profile", "-d", "5"), ("trace", "syscall:openat")):
        r = run(*command, "--json", "-q", "--", "true")
        if r.code == 3:
            raise Skip("no tracing here")
        lines = [json.loads(line) for line in r.out.splitlines()]
        machine, ledger = lines[0]["environment"], lines[-1]
        assert {"cpu", "virtualization", "governor", "clock", "bpf_jit", "load", "mitigations"} <= set(machine), machine
        assert isinstance(machine["unread"], dict), machine
        assert len(machine["load"]) == 3 and all(isinstance(n, (int, float)) for n in machine["load"]), machine
        if os.uname().machine == "x86_64":
            assert machine["cpu"] in open("/proc/cpuinfo").read()
        assert ledger["type"] == "ledger" and ledger["duration_ns"] > 0 and ledger["cost"]["cpu_ns"] > 0, ledger
        rate = ledger["fired"] * 1e9 / ledger["duration_ns"]
        assert abs(ledger["per_second"] - rate) <= 0.06 + rate / 1000, ledger
    header = json.loads(good("inspect", "--json", GOLDEN).out.splitlines()[0])  # the same place fills every tool's
    assert "environment" in header


@test
def repeated_runs_have_a_spread():
    program = b"b7 00 00 00 2a 00 00 00 95 00 00 00 00 00 00 00"
    wanted = (r"ns a run.*\(median of 20 parts, [0-9.]+ to [0-9.]+, mean [0-9.]+; an empty program [0-9.]+, "
              r"so [0-9.]+ of its own, [0-9.]+ to [0-9.]+\)")
    assert re.search(wanted, good("exec", "--repeat", "2000", "-", input=program).err)
    longer = b"b7 00 00 00 2a 00 00 00 " * 40 + b"95 00 00 00 00 00 00 00"
    r = good("exec", "--repeat", "2000", "-", input=longer)
    assert re.search(r"41 instructions .*own, [0-9.]+ to [0-9.]+: [0-9.]+ ns each instruction more, [0-9.]+ to [0-9.]+\)", r.err), r.err
    if has_json():
        for how in ([], ["--in-kernel"]):
            r = run("exec", "--json", *how, "--repeat", "2000", "-", "0102", input=longer)
            if how and r.code == 3:
                continue
            header, line = (json.loads(line) for line in r.out.splitlines())
            assert header["type"] == "header" and line["r0"] == "0x2a" and line["runs"] == 2000 and line["memory"] == "0102", line
            assert line["parts"] == 20 and line["ns"]["least"] <= line["ns"]["median"] <= line["ns"]["most"], line
            assert line["own_ns"]["median"] <= line["ns"]["median"] and line["empty_ns"]["least"] > 0, line
            assert bool(line["ns_per_instruction"]) == (not how), line
            assert "ns a run" not in r.err
    kernel = run("exec", "--in-kernel", "--repeat", "2000", "-", input=program)
    assert kernel.code == 3 or re.search(wanted, kernel.err), kernel.err
    once = good("exec", "-v", "-", input=program).err
    assert "ns a run" in once and "median" not in once


@test
def memory_stays_over_all_parts():
    """A counter in memory counts every run, however many parts they are measured in."""
    text = b"r3 = *(u64 *)(r1 + 0)\nr3 += 1\n*(u64 *)(r1 + 0) = r3\nr0 = r3\nexit\n"
    assert good("exec", "--repeat", "45", "-", "00" * 8, input=text).out == "2d\n"
    kernel = run("exec", "--in-kernel", "--repeat", "45", "-", "00" * 8, input=text)
    assert kernel.code == 3 or kernel.out == "2d\n", kernel.out


@test
def sections_that_are_near():
    def said(section):
        return bad(1, "doesn't say which type of program it holds", "load", written("s.asm", f'.program p "{section}"\n    r0 = 0\n    exit\n')).err
    assert 'SEC("xdp")' in said("xdp_router")
    assert '"kprobe/..."' in said("kprob/vfs_read")
    far = said("my_very_own_section")
    assert "no known name is similar" in far and "the nearest" not in far, far


@test
def readme_says_a_size_once():
    text = open(os.path.join(HERE, "..", "..", "README.md")).read()
    sizes = re.findall(r"`rawbpf` is one program of ([0-9.]+) MB|without any part \(`-Dparts=`\) it has ([0-9.]+) MB", text)
    assert len(sizes) == 2, sizes
    assert not re.search(r"[Oo]ne (?:binary|executable) of [0-9.]+ MB", text)  # it is said where the build is told


NARRATED = """.license "GPL"
.map counts hash key u32 value u64 entries 8
.rodata text "hello"
.program on_exec "raw_tp/sched_process_exec"
    *(u32 *)(r10 - 4) = 7
    *(u64 *)(r10 - 16) = 1
    r1 = counts ll
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    r1 = text ll
    r0 = 0
    exit
"""


@test
def narrated_calls_show_what_they_point_at():
    file = written("narrated.asm", NARRATED)
    load = run("load", "--attach", "-d", "0.01", "--syscalls", file)
    if load.code == 3:
        raise Skip("no programs here")
    commands = (load, run("exec", "--in-kernel", "--syscalls", "-", "0102", input=b"r0 = *(u8 *)(r1 + 1)\nexit\n"),
                run("profile", "-F", "99", "--syscalls", "-o", "/dev/null", "--", "true"),
                run("trace", "syscall:getppid", "--syscalls", "-d", "0.05"))
    for r in commands:
        calls = [line for line in r.err.splitlines() if line.startswith(("bpf(", "perf_event_open("))]
        assert calls, r.err
        # Where the kernel wrote nothing, or the address is no object's of ours, there is nothing else to show.
        left = [line for line in calls if re.search(r"=0x[0-9a-f]{7,}", line.split(" = ")[0]) and " = -1 " not in line
                and "batch" not in line and "probe_addr" not in line]
        assert not left, left[:3]
    for wanted in (r'insns=\[\*\(u32 \*\)\(r10 - 4\) = 7; .*\.\.\. 12 in all\]', r'map_name="counts"', r"prog_fd=\d+<on_exec>",
                   r"btf=\{types=\d+ bytes, strings=\d+ bytes\}", r'value="hello\\x00"', r'name="sched_process_exec"'):
        assert re.search(wanted, load.err), (wanted, load.err)
    assert "\x1b" not in load.err
    whole = good("load", "-v", "--syscalls", file).err
    assert re.search(r"\n +\d+: call bpf_map_update_elem\n +\d+: r1 = map_value \d+ ll\n +\d+: r0 = 0\n +\d+: exit\]", whole), whole


@test
def step_and_exec_name_labels_and_the_limit():
    loop = written("loop.asm", "    r0 = 0\nagain:\n    r0 += 1\n    if r0 != 3 goto again\n    goto out\nout:\n    exit\n")
    text = good("step", "--trace", loop).out
    assert "2: if r0 != 3 goto again\n" in text and "1: again: r0 += 1 " in text and "3: goto out" in text and "4: out: exit" in text, text
    called = written("called.asm", '.program p "socket"\n    call add\n    exit\n.function add\n    r0 = 1\nback:\n    r0 += 1\n'
                     "    if r0 < 3 goto back\n    exit\n")
    text = good("step", "--trace", called).out
    assert "goto back\n" in text and "back: r0 += 1" in text, text
    r = run("exec", "--limit", "1000", "-", input=b"again:\nr0 += 1\ngoto again\n")
    assert r.code == 1 and "stopped after 1000 instructions" in r.err and "hint: --limit N allows more; it is 1000 now" in r.err, r.err


@test
def root_is_a_user_like_any_other():
    shown = lambda uid: re.search(r"getppid *: (\d+) call", good("trace", "syscall:getppid", "--count", "--uid", uid, "--", "sh", "-c", ":").out).group(1)
    counts = {uid: int(shown(uid)) for uid in ("0", "root", "1,0", "4294967294", "nobody")}
    assert min(counts["0"], counts["root"], counts["1,0"]) > 0 and counts["4294967294"] == counts["nobody"] == 0, counts
    bad(2, r"--uid: 'nobdy' isn't a user id .*name of a user", "trace", "syscall:getppid", "--uid", "nobdy")


@test
def a_refused_helper_is_said_to_be_whose_it_is():
    r = run("load", written("override.asm", '.program p "xdp"\n.license "GPL"\n    call bpf_redirect_neigh\n    exit\n'))
    if r.code == 3:
        raise Skip("no programs here")
    assert r.code == 1 and "this kernel has bpf_redirect_neigh() for sched_cls, but not for programs of type BPF_PROG_TYPE_XDP" in r.err, r.err
    assert "this kernel has no" not in r.err
    # A number that is none's is no fault of this kernel's.
    for number, words in (("300", "no kernel has a helper 300: the last one is "), ("0", "no helper has the number 0")):
        r = run("load", written("none.asm", f'.program p "xdp"\n    call {number}\n    exit\n'))
        assert r.code == 1 and f"hint: {words}" in r.err and "this kernel has no" not in r.err, r.err


@test
def an_error_names_a_program_once():
    program = compile_program("once", "int main() { return 0; }")
    r = run("custom", f"{program}:nowhere", "--", program)
    assert r.code == 1 and r.err.count("custom_external") == 1 and "no function nowhere" in r.err, r.err


@test
def arguments_behind_the_registers_are_on_the_stack():
    with open(path("nine.c"), "w") as f:
        f.write("__attribute__((noinline, noclone)) long many(long a, long b, long c, long d, long e, long f, long g, int h, const char *i)\n"
                "{ __asm__ volatile(\"\"); return a + b + c + d + e + f + g + h + *i; }\n"
                "int main(void) { many(1, 2, 3, 4, 5, 6, -7, 8, \"nine\"); return 0; }\n")
    subprocess.run(["gcc", "-O1", "-o", path("nine"), path("nine.c")], check=True)
    sig = ["--sig", "long (long a, long b, long c, long d, long e, long f, long g, int h, const char *i)"]
    call = 'many(a=1, b=2, c=3, d=4, e=5, f=6, g=-7, h=8, i="nine")'
    for more in ([], ["-r"], ["--filter", "h == 8 && g == -7"]):
        assert call in good("trace", f"uprobe:{path('nine')}:many", *sig, *more, "--", path("nine")).out, more
    # Counted are calls, also where their returns are asked for.
    assert re.search(r"many +: 1 call\n", good("trace", "-c", "-r", f"uprobe:{path('nine')}:many", "--", path("nine")).out)
    # A call that is kept until its end has room for six, and says that there were more.
    out = good("trace", f"uprobe:{path('nine')}:many", *sig, "--min-duration", "1ns", "--", path("nine")).out
    assert "f=6, ...) = " in out, out
    bad(1, "the first 6 arguments are known", "trace", f"uprobe:{path('nine')}:many", *sig, "--min-duration", "1ns", "--filter", "h == 8", "--", path("nine"))
