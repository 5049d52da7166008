"""What is said: refused programs, and what else people read when something isn't as they thought."""
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
        assert {"cpu", "virtualization", "governor", "bpf_jit", "load", "mitigations"} <= set(machine), machine
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
    wanted = r"ns a run.*\(median of 20 parts, [0-9.]+ to [0-9.]+, mean [0-9.]+; an empty program [0-9.]+, so [0-9.]+ of its own\)"
    assert re.search(wanted, good("exec", "--repeat", "2000", "-", input=program).err)
    kernel = run("exec", "--kernel", "--repeat", "2000", "-", input=program)
    assert kernel.code == 3 or re.search(wanted, kernel.err), kernel.err
    once = good("exec", "-v", "-", input=program).err
    assert "ns a run" in once and "median" not in once


@test
def memory_stays_over_all_parts():
    """A counter in memory counts every run, however many parts they are measured in."""
    text = b"r3 = *(u64 *)(r1 + 0)\nr3 += 1\n*(u64 *)(r1 + 0) = r3\nr0 = r3\nexit\n"
    assert good("exec", "--repeat", "45", "-", "00" * 8, input=text).out == "2d\n"
    kernel = run("exec", "--kernel", "--repeat", "45", "-", "00" * 8, input=text)
    assert kernel.code == 3 or kernel.out == "2d\n", kernel.out


@test
def sections_that_are_near():
    def said(section):
        return bad(1, "says no program type", "load", written("s.asm", f'.program p "{section}"\n    r0 = 0\n    exit\n')).err
    assert 'SEC("xdp")' in said("xdp_router")
    assert '"kprobe/..."' in said("kprob/vfs_read")
    far = said("my_very_own_section")
    assert "none is near" in far and "the nearest" not in far, far


@test
def readme_says_a_size_once():
    text = open(os.path.join(HERE, "..", "..", "README.md")).read()
    sizes = re.findall(r"`rawbpf(?:-lab)?`[^.|]*?, ([0-9.]+) MB", text)
    assert len(sizes) == 2, sizes
    assert not re.search(r"[Oo]ne (?:binary|executable) of [0-9.]+ MB", text)  # it is said where the build is told
