"""rawbpf run: experiments, carried out and refused."""
import glob
import shutil
import time

from harness import *
from kernel_objects import *

EXPERIMENTS = os.path.join(HERE, "../../programs/experiment")
COUNTER = """map counts array key u32 value u64 entries 4
.data limit u64 = 5
asm {
.program on_packet "xdp"
    *(u32 *)(r10 - 4) = 1
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 2
    exit
}
"""


def experiment(name, text, *options, code=0, **kw):
    r = run("run", *options, written(name + ".exp", text), **kw)
    assert r.code == code, f"{name}: exit {r.code}, wanted {code}: {r.out[-600:]}{r.err[-1200:]}"
    return r


def objects():
    """The programs, maps and links that this machine has: kind and number of each."""
    return {(what, row["id"]) for what in ("prog", "map", "link") for row in json_rows(RB, what, "list", "--json")}


def released(before):
    """Nothing is left of what a run had, which has ended. The kernel frees objects some time after nobody refers to them; what an earlier test had goes meanwhile.
    The tests that ask run alone: another's objects would be taken for these."""
    left, end = objects() - before, time.monotonic() + 20
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left &= objects() # what comes later isn't of this run
    assert not left, left


@test
def experiments_observe_a_workload():
    needs_root()
    text = """# Reads of dd
param times = 100
on tracepoint:syscalls:sys_enter_read if workload { @reads[comm] = count(); @bytes[comm] = hist(count) }
workload dd if=/dev/zero of=/dev/null bs=64k count=$times status=none
wait workload
print reads
print bytes
print "{reads["dd"]:>6} reads"
measure reads_of_dd = reads["dd"]
expect reads["dd"] >= $times && workload.status == 0
expect reads["dd"] < $times + 20
"""
    r = experiment("observe", text)
    assert re.search(r"^comm +reads\ndd +1\d\d\n", r.out, re.M), r.out
    assert re.search(r"\[64K, 128K\) +1\d\d \|####", r.out), r.out
    r = experiment("observe", text, "--json", "--set", "times=7")
    rows_ = [json.loads(line) for line in r.out.splitlines()]
    entry = [o for o in rows_ if o["type"] == "entry" and o["map"] == "reads"]
    assert entry[0]["key"] == {"comm": "dd"} and 7 <= entry[0]["value"] < 27, rows_
    measure, = [o for o in rows_ if o["type"] == "measure"]
    assert measure == {"type": "measure", "name": "reads_of_dd", "value": entry[0]["value"]}, measure
    assert [o["holds"] for o in rows_ if o["type"] == "expectation"] == [True, True], rows_
    assert rows_[-1]["type"] == "summary" and rows_[-1]["measures"] == {"reads_of_dd": measure["value"]}, rows_
    r = experiment("observe", text, "--csv")
    assert r.out.startswith("map,comm,count\r\nreads,dd,1"), r.out


@test
def experiments_say_which_expectation_failed():
    needs_root()
    text = """on tracepoint:syscalls:sys_enter_read if workload { @reads[comm] = count() }
workload dd if=/dev/zero of=/dev/null bs=64k count=10 status=none
wait workload
expect reads["dd"] > 1000
expect events.lost == 0
"""
    r = experiment("fails", text, code=4)
    assert re.search(r'fails.exp:4: expected otherwise\n +4 \| expect reads\["dd"\] > 1000\n +\| \^ reads\["dd"\] is 1\d\n', r.err), r.err
    assert "1 of 2 expectations failed" in r.err, r.err


@test(alone=True)
def experiments_send_packets_through_assembly():
    needs_root()
    before = objects()
    text = COUNTER + """attach on_packet nowhere
set limit = 9
set counts[3] = 70
packet 00112233445566778899aabbccdd to on_packet times 6
print counts
expect counts[1] == 6 && counts[3] == 70 && packet.result == 2 && limit == 9
clear counts
expect counts[1] == 0
"""
    r = experiment("packets", text)
    assert re.search(r"^key +counts\n +3 +70\n +1 +6\n", r.out, re.M), r.out
    released(before)


@test
def experiments_run_in_the_emulator():
    text = COUNTER + """map log ringbuf entries 4096
set limit = 9
packet 00112233445566778899aabbccdd to on_packet times 6
packet 0011223344556677 to on_packet
run on_packet
run on_packet 0102 times 2
expect counts[1] == 10 && packet.result == 2 && run.instructions == 11 && limit == 9
clear counts
set counts[2] = 8
print counts
"""
    r = (as_nobody if os.geteuid() == 0 else run)("run", "--emulate", "-v", written("emulated.exp", text))
    assert r.code == 0, r.err
    assert re.search(r"^key +counts\n +2 +8\n", r.out, re.M), r.out
    assert "on_packet isn't attached: in the emulator" in r.err, r.err
    r = experiment("emulated_rejection", COUNTER + 'expect rejected "R1"\n', "--emulate", code=3)
    assert "it has no verifier" in r.err, r.err
    r = experiment("emulated_fault", 'asm {\n.program p "xdp"\n    r0 = *(u64 *)(r10 + 8)\n    exit\n}\nrun p\n', "--emulate", code=1)
    assert "emulated_fault.exp:6: run p" in r.err and "instruction 0" in r.err, r.err
    r = experiment("emulated_endless", 'asm {\n.program p "xdp"\nagain:\n    goto again\n    exit\n}\nrun p\n', "--emulate", code=1)
    assert "100000000" in r.err.replace(",", ""), r.err


@test
def experiments_expect_rejections():
    needs_root()
    bad_program = 'asm {\n.program p "xdp"\n    r0 = *(u64 *)(r1 + 4096)\n    exit\n}\n'
    experiment("rejected", bad_program + 'expect rejected "invalid bpf_context access"\n')
    r = experiment("rejected_else", bad_program + 'expect rejected "R7 invalid"\n', code=4)
    assert "the kernel refused it for another reason" in r.err and "invalid bpf_context access" in r.err, r.err
    r = experiment("taken", 'asm {\n.program p "xdp"\nr0 = 2\nexit\n}\nexpect rejected "anything"\n', code=4)
    assert "the kernel took it" in r.err, r.err
    r = experiment("refused", bad_program + "wait 1s\n", code=1)
    assert "rejected.exp" not in r.err and "refused.exp:3" in r.err and "the verifier refused" in r.err, r.err


@test
def experiments_show_events():
    needs_root()
    text = """on tracepoint:sched:sched_process_exec if workload && comm == "true" { emit exec pid, comm, file = filename }
format exec "{pid:7} {comm:6} {file}"
workload sh -c 'for i in 1 2 3; do env true; done'
events until 3
expect events.exec >= 3 && events.lost == 0
"""
    r = experiment("events", text)
    assert len(re.findall(r"^\d+ +true +/\S*true$", r.out, re.M)) == 3, r.out
    r = experiment("events", text, "--json")
    events = [o for o in map(json.loads, r.out.splitlines()) if o["type"] == "event"]
    assert len(events) == 3 and events[0]["fields"]["comm"] == "true" and events[0]["t_ns"] > 0, events


@test
def experiments_load_objects_and_c():
    needs_root()
    if not shutil.which("clang"):
        raise Skip("needs clang")
    text = """c {
#define SEC(name) __attribute__((section(name), used))
unsigned long long seen = 0;
const volatile int add = 1;
SEC("xdp") int count(void *ctx) { __sync_fetch_and_add(&seen, add); return 1; }
char _license[] SEC("license") = "GPL";
}
attach count nowhere
set add = 5
packet 00112233445566778899aabbccdd times 3
expect seen == 15 && packet.result == 1
"""
    experiment("with_c", text)
    r = experiment("bad_c", text.replace("return 1", "retrun 1"), code=1)
    assert "bad_c.exp:5:" in r.err and "retrun" in r.err and "doesn't compile it" in r.err, r.err
    env = {**os.environ, "PATH": "/nowhere"}
    r = experiment("no_clang", text, code=1, env=env)
    assert re.search(r"no_clang.exp:1:3: programs in C need clang, and there is none here\n +1 \| c \{\n", r.err), r.err
    subprocess.run(["clang", "--target=bpf", "-O2", "-g", "-x", "c", "-", "-c", "-o", path("lib.bpf.o")], check=True,
                   input=text[text.index("#"):text.index("\n}\n")].encode())
    experiment("with_object", "object lib.bpf.o\n" + text[text.index("attach"):])


@test(alone=True)
def experiments_are_repeated_with_several_values():
    """In the emulator, so that the figures are the same each time, and in the kernel; each run's objects are gone when the next begins."""
    text = "param times = 1\n" + COUNTER + """packet 00112233445566778899aabbccdd to on_packet times $times
measure passed = counts[1]
expect passed < 4
"""
    r = experiment("series", text, "--emulate", "--set", "times=1,3", "--repeat", "6")
    assert [line.split() for line in r.out.splitlines()] == [
        ["variant", "figure", "values", "minimum", "median", "95", "%", "interval", "MAD"],
        ["times=1", "passed", "6", "1", "1", "1", "to", "1", "0"], ["times=3", "passed", "6", "3", "3", "3", "to", "3", "0"]], r.out
    rows = [json.loads(line) for line in experiment("series", text, "--emulate", "--set", "times=1,2", "--repeat", "2", "--json").out.splitlines()]
    assert [(row["type"], row.get("variant"), row.get("values")) for row in rows] == [
        ("header", None, None), ("figure", "times=1", [1, 1]), ("figure", "times=2", [2, 2])], rows
    assert experiment("series", text, "--emulate", "--set", "times=2", "--repeat", "1", "--csv").out == "variant,figure,values,minimum,median,low,high,mad\n,passed,1,2,2,,,0\n"
    r = experiment("series", text, "--emulate", "--set", "times=2,4", code=4)
    assert "this was with times=4" in r.err and "1 of 2 expectations failed" in r.err and "times=4" in r.out, r.err
    bad(2, "given twice", "run", "--set", "times=1", "--set", "times=2", path("series.exp"))
    bad(2, "value", "run", "--set", "times=1,", path("series.exp"))
    bad(1, "has no figures to compare", "run", "--emulate", "--repeat", "2", written("nothing.exp", COUNTER + "packet 00112233445566778899aabbccdd to on_packet\n"))
    if os.getuid() == 0:
        before = objects()
        r = experiment("series", text, "--set", "times=1,3", "--repeat", "2")
        assert re.search(r"^times=3 +passed +2 +3 +3 ", r.out, re.M), r.out
        released(before)
        # What got lost in a run is told as without --repeat.
        full = """on tracepoint:syscalls:sys_enter_read if workload { @n[nsecs] = 1 }
workload dd if=/dev/zero of=/dev/null bs=1 count=30000 status=none
wait workload
measure status = workload.status
"""
        assert "times a map had no room for one more element" in experiment("full", full, "--repeat", "1").err


@test(alone=True)
def experiments_release_everything_when_interrupted():
    needs_root()
    steps = ("wait", "wait 100s", "events", "workload sleep 100\nwait workload", "every 1s { print n }", "every 1us { print n }",
             "every 10s times 5 { print n }")
    for number, step in enumerate(steps):
        before = objects()
        name = written(f"interrupted{number}.exp", f"on tracepoint:syscalls:sys_enter_read {{ @n = count(); emit e pid }}\n{step}\nexpect n >= 0\n")
        p = subprocess.Popen([RB, "run", "-v", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        for line in p.stderr:
            said += line
            if "attached:" in line:
                break
        assert any(what == "prog" for what, _ in objects() - before), (step, said)
        try:
            interrupt(p)
            err = p.communicate(timeout=20)[1]
        finally:
            p.kill()
        # What was to wait without end has ended as it should; anything else was interrupted.
        endless = step in ("wait", "events", "every 1s { print n }", "every 1us { print n }")  # the last one's body takes longer than 1 us: it never sleeps
        assert p.returncode == (0 if endless else 1), (step, p.returncode, err)
        assert ("were not judged" in err) == (not endless), (step, err)
        released(before)
    # A late one sees the end of its workload, too.
    experiment("late", "on tracepoint:syscalls:sys_enter_read { @n = count() }\nworkload dd if=/dev/zero of=/dev/null bs=1 count=2000\n"
                       "every 1us { print n }\nexpect n >= 2000\n")
    p = subprocess.Popen([RB, "run", "-v", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in p.stderr:
        if "attached:" in line:
            break
    p.kill()
    p.wait()
    released(before)


@test
def experiments_tell_mistakes():
    golden = (
        ("this is no experiment\n", "g.exp:1:1: `this` begins no line of an experiment\n  1 | this is no experiment\n    | ^\n"),
        ("on tracepoint:sched:sched_swich { @a = 1 }\n", "g.exp:1:4: "),
        ("on tracepoint:sched:sched_switch { @a[prev_pidd] = 1 }\n", "hint: did you mean prev_pid?"),
        ("on tracepoint:sched:sched_switch { @a[prev_pid] = count() }\nprint b\n", "g.exp:2:7: there is no map b\n  2 | print b\n    |       ^\n  hint: there are a\n"),
        ("on tracepoint:sched:sched_switch { @a = conut() }\n", "hint: did you mean `count`?"),
        ("object none.o\n", "g.exp:1:8: "),
        ('asm {\n.program p "xdp"\n    r0 = r11\n    exit\n}\n', "g.exp:3:"),
        ("attach p kprobe:f\nwait 1s\n", "g.exp:1:8: there is no program p\n"),
        ("wait 1s\nexpect foo > 1\n", "g.exp:2:8: there is no map, variable or measure foo\n"),
    )
    for text, says in golden:
        name = written("g.exp", text)
        r = bad(1, re.escape(says), "run", "--check", "g.exp", cwd=WORK)
        assert re.search(r"1 mistakes?, nothing was done", r.err), r.err
    bad(1, "there is no file and no experiment execsnop", "run", "execsnop")
    bad(1, "no-such-file.exp", "run", "./no-such-file.exp")
    bad(2, "no experiment was given", "run")
    bad(2, "expected NAME=VALUE", "run", "--set", "x", name)
    bad(1, "there is no parameter x", "run", "--set", "x=1", name)
    bad(1, "packet", "run", written("binary.exp", "\0\1\2packet\n"))


@test
def workload_is_what_the_experiment_started():
    """Others of the same name don't count; what outlives its parent does; so it is in a pid namespace of its own."""
    needs_root()
    text = """# Who ended
on tracepoint:sched:sched_process_exit if comm == "true" && tid == pid {
    @all = count()
    @by[workload] = count()
    if workload { @mine = count() }
}
param flag = none
workload sh -c "/bin/true; (sleep 0.2; /bin/true; touch $flag) & :"
wait workload
workload sh -c "/bin/true; /bin/true; while [ ! -e $flag ]; do sleep 0.05; done"
wait workload
print by
expect mine == 4 && all > 4
"""
    name = written("own.exp", text)
    other = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
    try:
        r = good("run", "--json", "--set", "flag=" + path("orphan"), name)
    finally:
        other.kill()
        other.wait()
    rows_ = [json.loads(line) for line in r.out.splitlines()]
    by = {o["key"]["workload"]: o["value"] for o in rows_ if o["type"] == "entry"}
    assert by[True] == 4 and by[False] > 0, rows_
    if shutil.which("unshare"):
        inside = written("space.exp", text.replace("all > 4", "all >= 4"))
        r = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", RB, "run", "--set", "flag=" + path("orphan-inside"), inside],
                           capture_output=True, text=True, timeout=300)
        assert r.returncode == 0, (r.returncode, r.stdout, r.stderr)
    # The copy of rawbpf that becomes the command isn't the command, and the exec is.
    calls = """on tracepoint:raw_syscalls:sys_enter if workload { @calls[comm] = count() }
on tracepoint:sched:sched_process_exec if workload { @execs[comm] = count() }
workload no-slash-so-that-folders-are-searched
"""
    os.symlink("/bin/true", path("no-slash-so-that-folders-are-searched"))
    searched = calls + "wait workload\nexpect entries(calls) == 1 && entries(execs) == 1 && max(execs) == 1\n"
    r = run("run", "--json", written("calls.exp", searched), env={"PATH": "/no/such/folder:/nor/this:" + WORK})
    assert r.code == 0, (r.out, r.err)


@test
def experiments_of_this_tree_are_right():
    """Each is read, compiled, and what it names is looked up; where this kernel lacks the probes, it says which ones."""
    folder = os.path.join(EXPERIMENTS, "tools")
    names = sorted(os.listdir(folder))
    assert len(names) >= 20, names
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            lines = f.read().splitlines()
        assert len(lines) <= 40 and lines[0].startswith("# "), (name, len(lines))
        r = run("run", "--check", os.path.join(folder, name))
        assert r.code == 0 or re.search(r"this kernel has (none|no )|no types|there is no tracepoint|isn't traceable", r.err), (name, r.err)
    listed = good("run", "--list").out
    assert all(re.search(rf"^{name[:-4]} +\w", listed, re.M) for name in names), listed


@test
def experiments_of_the_lessons_hold():
    """Each lesson is carried out, and what it expects comes true; those that need no probes also in the emulator."""
    needs_root()
    folder = os.path.join(EXPERIMENTS, "lessons")
    names = sorted(os.listdir(folder))
    assert len(names) >= 20, names
    emulated = 0
    for name in names:
        file = os.path.join(folder, name)
        with open(file, encoding="utf-8") as f:
            text = f.read()
        if "\nc {" in text and not shutil.which("clang"):
            continue
        r = run("run", file)
        assert r.code == 0, (name, r.code, r.out[-500:], r.err[-1500:])
        if re.search("^(packet|run) ", text, re.M) and "packet.ns" not in text and "random" not in text:
            r = run("run", "--emulate", file)
            assert r.code == 0, (name, "emulated", r.code, r.out[-500:], r.err[-1500:])
            emulated += 1
    assert emulated >= 4, emulated


def language_words():
    """Each word that begins a line or is a function, from the parser's own tables."""
    text = ""
    for name in sorted(glob.glob(os.path.join(EXPERIMENTS, "parse*.cpp")) + glob.glob(os.path.join(EXPERIMENTS, "compile*.cpp")) + [os.path.join(EXPERIMENTS, "views.cpp")]):
        with open(name, encoding="utf-8") as f:
            text += f.read()
    words = re.findall(r'^    \{"(\w+)", "a |\{"(\w+)", Kind::|\{"(\w+)", Builtin::|\{"(\w+)", Show::', text, re.M)
    words = {word for group in words for word in group if word}
    for table in re.findall(r"constexpr std::string_view k(?:Functions|Aggregates)\[\] = \{([^}]*)\}", text):
        words |= set(re.findall(r'"(\w+)"', table))
    assert len(words) > 40, words
    return words


@test
def experiments_language_is_documented():
    """Each of its words is on the page, in help and as a man page."""
    page = good("help", "experiment").out
    missing = [word for word in sorted(language_words()) if not re.search(rf"\b{word}\b", page)]
    assert not missing, missing
    assert good("man", "experiment").out.startswith('.TH RAWBPF\\-EXPERIMENT 5 ')


@test
def experiments_have_colours_in_editors():
    """Each word of the language is in vim's syntax and in the TextMate grammar, and no line of our experiments begins with a word that isn't."""
    editors = os.path.join(EXPERIMENTS, "editors")
    with open(os.path.join(editors, "vim/syntax/rawbpf_experiment.vim"), encoding="utf-8") as f:
        vim = f.read()
    with open(os.path.join(editors, "vscode/experiment.tmLanguage.json"), encoding="utf-8") as f:
        grammar = f.read()
    for name, text in (("vim", vim), ("vscode", grammar)):
        missing = [word for word in sorted(language_words()) if not re.search(rf"(?<![A-Za-z0-9_]){word}(?![A-Za-z0-9_])", text)]
        assert not missing, (name, missing)
    grammar = json.loads(grammar)
    with open(os.path.join(editors, "vscode/package.json"), encoding="utf-8") as f:
        assert json.load(f)["contributes"]["grammars"][0]["scopeName"] == grammar["scopeName"]
    known = set(grammar["repository"])
    included = set(re.findall(r'"#(\w+)"', json.dumps(grammar)))
    assert included <= known, included - known
    begins = [re.compile(grammar["repository"][name].get("match") or grammar["repository"][name]["begin"]) for name in ("line", "command", "assembly", "c")]
    seen = 0
    for file in sorted(glob.glob(os.path.join(EXPERIMENTS, "*/*.exp"))):
        with open(file, encoding="utf-8") as f:
            depth = 0
            for line in f.read().splitlines():
                if depth == 0 and re.match(r"[a-z]", line) and not line.startswith("c "):
                    assert any(begin.match(line) for begin in begins), (file, line)
                    seen += 1
                bare = re.sub(r'"(\\.|[^"\\])*"|#.*', "", line)
                depth += bare.count("{") - bare.count("}")
    assert seen > 200, seen


RECORDED = """param times = 50
on tracepoint:syscalls:sys_enter_read if workload { @reads[comm] = count(); @bytes[comm] = hist(count); emit read bytes = count }
format read "{bytes:>8} bytes"
workload dd if=/dev/zero of=/dev/null bs=64k count=$times status=none
wait workload
events for 10ms
every 10ms times 2 { print "{sum(reads)} reads" }
print reads
print bytes
measure of_dd = reads["dd"]
expect reads["dd"] >= $times && workload.status == 0
"""


@test
def experiments_are_replayed_without_a_kernel():
    needs_root()
    tape = path("run.rec")
    live = experiment("recorded", RECORDED, "--record", tape)
    os.chmod(tape, 0o644)
    again = good("run", "--replay", tape)
    assert again.out == live.out and " bytes\n" in live.out, (live.out, again.out)
    assert as_nobody("run", "--replay", tape).out == live.out
    lines = [json.loads(line) for line in good("run", "--replay", tape, "--json").out.splitlines()]
    assert lines[1]["type"] == "recording" and lines[1]["kernel"] == os.uname().release, lines[:2]
    count = next(l["value"] for l in lines if l["type"] == "measure")
    assert len([l for l in lines if l["type"] == "event"]) == count and lines[-1]["type"] == "summary" and lines[-1]["failed"] == 0, lines
    # Another experiment over the same recording: a map that was printed in another form, other expectations; names are checked.
    edited = written("edited.exp", RECORDED.replace("print bytes", "print bytes as json\nprint \"{reads[\"dd\"]} of dd\"").replace(">= $times", "> 100000"))
    r = run("run", "--replay", tape, edited)
    assert r.code == 4 and f"{count} of dd" in r.out and f'reads["dd"] is {count}' in r.err, (r.code, r.out, r.err)
    bad(1, r"edited2.exp:\d+:\d+: there is no map rads", "run", "--replay", tape, written("edited2.exp", RECORDED.replace("print reads", "print rads")))
    # Interrupted is interrupted again.
    stopped = path("stopped.rec")
    p = subprocess.Popen([RB, "run", "--record", stopped, written("stopped.exp", "on tracepoint:syscalls:sys_enter_read { @n = count() }\nprint \"begins\"\nwait 60s\nprint n\nexpect sum(n) < 0\n")],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "begins\n"
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 1 and "1 expectations were not judged" in err, (p.returncode, err)
    r = run("run", "--replay", stopped)
    assert r.code == 1 and r.out == "begins\n" + out and "1 expectations were not judged" in r.err, (r.code, r.out, out, r.err)
    # What the kernel refuses, it refuses again.
    text = 'asm {\n.program p "xdp"\n    r0 = *(u64 *)(r1 + 4096)\n    exit\n}\nexpect rejected "invalid bpf_context access"\n'
    experiment("refused_recorded", text, "--record", path("refused.rec"))
    assert as_nobody("run", "--replay", tape).code == 0 and good("run", "--replay", path("refused.rec")).err == "rawbpf run: the expectation holds\n"


@test
def recordings_that_are_none_are_refused():
    file = written("plain.exp", "wait 1us\n")
    bad(1, r"plain.exp is no recording\n.*--record", "run", "--replay", file)
    bad(1, r"nowhere.rec", "run", "--replay", path("nowhere.rec"))
    good("run", "--emulate", "--record", path("empty.rec"), file)
    good("run", "--replay", path("empty.rec"))
    with open(path("empty.rec"), "rb") as f:
        whole = f.read()
    for end in (0, 7, 8, 20, len(whole) - 1):
        with open(path("cut.rec"), "wb") as f:
            f.write(whole[:end])
        bad(1, r"cut.rec", "run", "--replay", path("cut.rec"))
    bad(2, r"--record records one run", "run", "--record", path("x.rec"), "--repeat", "2", file)
    bad(2, r"--replay repeats one recorded run", "run", "--replay", path("empty.rec"), "--repeat", "2")
    bad(2, r"--record.*--replay|--replay.*--record", "run", "--record", path("x.rec"), "--replay", path("empty.rec"))
    bad(1, r"x.rec|No such file", "run", "--record", path("none/x.rec"), file)
    assert not os.path.exists(path("x.rec"))


@test
def experiments_say_what_a_program_returned_as_an_int():
    text = """asm {
.program minus "socket"
    r0 = -1
    exit
}
packet 0102030405060708090a0b0c0d0e0f10 to minus
print "{packet.result} {int(packet.result & 0xffffffff)}"
expect packet.result == -1 && int(4294967295) == packet.result
expect packet.result == 4294967295
"""
    for where in [("--emulate",)] + ([()] if os.geteuid() == 0 else []):
        r = experiment("minus", text, *where, code=4)
        assert re.search(r"^-1 -1$", r.out, re.M), r.out
        assert "packet.result is -1" in r.out + r.err and "18446744073709551615" not in r.out + r.err, r.out + r.err
    bad_text = text.replace("int(4294967295)", "kstr(4294967295)")
    r = run("run", "--emulate", written("minus.exp", bad_text))
    assert r.code != 0 and "kstr() only works in probes" in r.err and "int(X)" in r.err, r.err
