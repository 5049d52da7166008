"""What every test of the command line needs: the binary, a scratch folder, running a command, and the list of tests.

`tests/cli/run RAWBPF [NAME-PART...]` runs the tests of each tests/cli/*_test.py, in the order of the files' names. Such a file says
`from harness import *`, and `@test` (or `@test(long=True)`) in front of each of its tests; its name says which command or subject the
tests in it are about.
What several files need for one subject (a program to trace, say) is a module of its own beside this one.
"""
import concurrent.futures
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RB = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2:]
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix="rawbpf-cli-")
os.chmod(WORK, 0o755)
CXX = os.environ.get("CXX", "c++").split()[0]

# A shell's background job (`.ci/run &`) ignores SIGINT, and so would all that it starts: the tests interrupt, and expect what a terminal's user sees.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Skip(Exception):
    pass


notes = []  # why the running test is flaky
tests = []


def test(f=None, *, long=False, alone=False):
    """Puts a test on the list. A long one takes more than ten seconds; `./dev test` leaves it to `./dev test --full`. Beside one that runs
    alone there is no other: it counts what the whole machine has, or measures what others would disturb."""
    if f is None:
        return functools.partial(test, long=long, alone=alone)
    f.long, f.alone = long, alone
    tests.append(f)
    return f


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


def come_first():
    """In a child that is begun: it has the processor when it wants it. A profile learns of a program while that runs; beside compilers and
    other tests it would learn late, and what is judged is what it learns."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except PermissionError:
        pass


def run(*args, timeout=60, env=None, cwd=None, pass_fds=(), input=None, binary=RB):
    p = subprocess.run([binary, *args] if binary else list(args), capture_output=True, timeout=timeout, env=env, cwd=cwd,
                       pass_fds=pass_fds, input=input, preexec_fn=come_first if args[:1] == ("profile",) else None)
    return Run(p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace"))


def until_ready(*words, through=(), **how):
    """rawbpf in the background, up to the moment at which it has attached, and whether it has."""
    reading, told = os.pipe()
    at = words.index("--") if "--" in words else len(words)
    p = subprocess.Popen([*through, RB, *words[:at], "--ready-fd", str(told), *words[at:]], pass_fds=(told,), **how)
    os.close(told)
    with open(reading, "rb") as pipe:
        return p, pipe.read(1) == b"\0"


@functools.lru_cache(None)
def for_nobody():
    """The binary where nobody may run it: a checkout below /root is root's."""
    folder = path("for-nobody")
    os.makedirs(folder)
    for name in os.listdir(os.path.dirname(RB)):
        if re.fullmatch(r"rawbpf(-\w+\.so)?", name):
            shutil.copy(os.path.join(os.path.dirname(RB), name), folder)
    return os.path.join(folder, os.path.basename(RB))


def as_nobody(*words):
    p = subprocess.run([for_nobody(), *words], capture_output=True, timeout=30, user=65534, group=65534, extra_groups=[], cwd="/")
    return Run(p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace"))


def lacks(feature):
    """Whether this build was made without it: "gzip", "debuginfod", "lines (libdw)"."""
    return f"no {feature}" in good("version", "-v").out


def good(*args, **kw):
    r = run(*args, **kw)
    assert r.code == 0, f"{' '.join(args)}: exit {r.code}: {r.err[-800:]}"
    return r


def bad(code, pattern, *args, **kw):
    r = run(*args, **kw)
    assert r.code == code, f"{' '.join(args)}: exit {r.code}, wanted {code}: {r.err[-400:]}"
    assert re.search(pattern, r.err), f"{' '.join(args)}: message lacks /{pattern}/: {r.err[:400]}"
    assert not r.out, f"{' '.join(args)}: printed to stdout: {r.out[:200]}"
    return r


def flaky(reason):
    """The running test passes, if it does, as FLAKY: what it measured was wrong at first, and is measured again."""
    notes.append(" ".join(str(reason).split())[:400])


def path(name):
    return os.path.join(WORK, name)


def read(name):
    with open(path(name), encoding="utf-8", errors="replace") as f:
        return f.read()


def test_program(name):
    """What the build of the tests has made: the folder that RAWBPF_TEST_PROGRAMS names, or tests/ beside rawbpf."""
    program = os.path.join(os.environ.get("RAWBPF_TEST_PROGRAMS") or os.path.join(os.path.dirname(RB), "tests"), name)
    if not os.path.exists(program):
        raise Skip(f"there is no {program} (RAWBPF_TEST_PROGRAMS)")
    return program


def written(name, text):
    """A scratch file with this text."""
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


def on_all_cores(function, items):
    """What the function gives for each item, in their order: for compilers and other children that nobody measures."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


def compile_program(name, source, *flags):
    out = path(name)
    subprocess.run([CXX, "-O1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-x", "c++", "-", "-o", out, *flags],
                   input=source.encode(), check=True)
    return out


def rows(name):
    return [json.loads(line) for line in read(name).splitlines()]


def ledger_of(objects):
    led = objects[-1]
    assert led["type"] == "ledger", led
    total = led["shown"] + led["filtered"] + led["sampled_out"] + sum(led["lost"].values())
    assert led["fired"] == total, f"the ledger doesn't add up: {led}"
    return led


def assert_ends_are_the_ledgers(ends, ledger):
    """What each sample says of its user stack's end (None: it has none), counted, is what the ledger says of all."""
    counted = {name: ends.count(name) for name in ledger["stack_ends"]}
    assert counted == ledger["stack_ends"] and set(ends) <= {None, *counted}, (counted, ledger)


def stack_names(sample):
    return [f["symbol"] or "" for f in sample["user"]]


def folded_stacks(text):
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}


def interrupt(process):
    """Sends INT, and waits until it is taken: a second one that came before would be the same signal."""
    process.send_signal(signal.SIGINT)
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as status:
            pending = [int(line.split()[1], 16) for line in status if line.startswith(("SigPnd:", "ShdPnd:"))]
        if not any(mask >> signal.SIGINT - 1 & 1 for mask in pending):
            return
        time.sleep(0.01)


def until(is_so, why_not, seconds=20):
    """Waits until is_so(); where it isn't in so many seconds, why_not() says what is wrong."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, why_not()
        time.sleep(0.01)


def let_run(pid, seconds):
    """Waits until a process has had so much processor time more, not so much of the clock's: what it compiles, and when, is a matter of that."""
    def had():
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    before = had()
    until(lambda: had() >= before + seconds, lambda: f"process {pid} had {had() - before:.2f} of {seconds} s of processor time", 10 * seconds + 20)


def let_sleep(pid, times):
    """Waits until a process's first thread has slept so many times more: for one that does something, sleeps, and so on."""
    def had():
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])

    before = had()
    until(lambda: had() >= before + times, lambda: f"process {pid} slept {had() - before} of {times} times")


def has_json():
    return run("profile", "--json", "-d", "0.05", "-o", "/dev/null", "--", "true").code == 0
