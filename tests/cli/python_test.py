"""Python's own functions in a profile: as many and the same as Python says, with their lines."""
from harness import *
from languages import frames_of, learnt

# Generators, a C function that calls back, methods, names that aren't ASCII; then it spins in a known place.
PROGRAM = '''
import sys, time, traceback

class Tree:
    def __init__(self, depth):
        self.depth = depth

    def walk(self):
        if self.depth == 0:
            return spin()
        return Tree(self.depth - 1).walk()


def généré(n):
    for i in range(n):
        yield sum(sorted([3, 1, 2],
                         key=lambda v: by_key(v)))


def by_key(v):
    if v == 2:
        return Tree(
            3).walk()
    return v


def spin():
    for frame in traceback.extract_stack():
        print(frame.lineno, frame.name, flush=True)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
    raise SystemExit


def main():
    for value in généré(2):
        print(value)


main()
'''


def pythons():
    """Those of the machine; RAWBPF_TEST_PYTHONS names others."""
    found = {}
    for name in os.environ.get("RAWBPF_TEST_PYTHONS", "").split() + ["/usr/bin/python3"] + [f"python3.{minor}" for minor in range(8, 16)]:
        where = shutil.which(name)
        if not where:
            continue
        asked = run(where, "-c", "import sys; print(sys.implementation.name, sys.executable)", binary=None) # it may be a script that picks one
        if asked.code == 0 and asked.out.startswith("cpython "):
            found.setdefault(os.path.realpath(asked.out.split(" ", 1)[1].strip()), where)
    return found.values()


def script_frames(sample):
    return frames_of("CPython", sample)


@test
def python_functions_and_lines_are_those_that_python_says():
    script = path("known.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    seen = 0
    for python in pythons():
        out = path("known.json")
        r = learnt(run("profile", "-F", "199", "-f", "json", "-o", out, "--", python, script))
        said = [line.split(" ", 1) for line in r.out.splitlines() if line[:1].isdigit()]
        lines, records = [json.loads(line) for line in open(out, encoding="utf-8")], []
        for sample in lines:
            frames = script_frames(sample) if sample["type"] == "sample" else []
            if frames and (frames[0]["symbol"] or "").endswith("spin"): # not what it calls to say where it is
                records.append(frames)
        assert len(records) >= 25, (python, len(records), r.err)
        right = 0
        for frames in records:
            names = [f["symbol"].split(".")[-1] for f in reversed(frames)]
            files = {f["file"] for f in frames}
            right += names == [name for _, name in said] and [f["line"] for f in reversed(frames)][:-1] == [int(line) for line, _ in said][:-1] and files == {script}
        assert right == len(records), (python, right, len(records), [[(f["symbol"], f["line"]) for f in record] for record in (records[0], records[-1])], said)
        ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
        # While it starts, it imports: native and Python's stacks change between two instructions.
        assert ledger["merged"] + ledger["one_more"] >= 0.95 * sum(ledger.values()), ledger
        seen += 1
    assert seen


@test
def one_side_of_pythons_stacks_alone():
    script = path("known.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    for option, has, hasnt in (("--native", "_PyEval_EvalFrameDefault", "by_key"), ("--language", "by_key", "list_sort")):
        r = run("profile", option, "-F", "199", "-f", "folded", "--command-output", "stderr", "--", "/usr/bin/python3", script)
        assert r.code == 0, r.err
        hot = max((line for line in r.out.splitlines() if line), key=lambda line: int(line.rsplit(" ", 1)[1]))
        assert (has in hot or option == "--native" and "by_key" not in hot) and hasnt not in hot, (option, hot)
    r = run("profile", "--native", "--language", "--", "true")
    assert r.code == 2 and "--language" in r.err, r.err


# One that waits for the lock of the interpreter, one that sleeps, by name.
WAITS = '''
import threading, time


def nap(depth):
    if depth:
        return nap(depth - 1)
    time.sleep(0.01)


def spinner():
    while time.monotonic() < end:
        sum(range(1000))


def waiter():
    while time.monotonic() < end:
        nap(3)


def starter():
    for body in (spinner, spinner, waiter):
        thread = threading.Thread(target=body)
        thread.start()
        threads.append(thread)


threads, end = [], time.monotonic() + 2.5
starter()
for thread in threads:
    thread.join()
'''


@test
def pythons_waits_have_its_functions():
    script = path("waits.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(WAITS)
    out = path("waits.json")
    r = learnt(run("profile", "--off-cpu", "-f", "json", "-o", out, "--", "/usr/bin/python3", script))
    sleeps, locks = [], []
    for wait in rows("waits.json"):
        if wait["type"] != "sample" or not script_frames(wait):
            continue
        names = [frame["symbol"] for frame in script_frames(wait)]
        if "waiter" in names and any("nanosleep" in (frame["symbol"] or "") for frame in wait["user"]):
            sleeps.append(names)
            assert [(f["file"], f["line"]) for f in script_frames(wait)][0] == (script, 8), wait
        if names[0] == "spinner":
            locks.append(names)
    thread = ["Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"]
    assert len(sleeps) > 20 and all(names == ["nap"] * 4 + ["waiter"] + thread for names in sleeps), (r.err, sleeps[:2])
    assert len(locks) > 10 and all(names == ["spinner"] + thread for names in locks), (r.err, locks[:2])


@test
def a_capture_has_pythons_names():
    script, capture = path("known.py"), path("known.rbpf")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    r = run("profile", "-F", "199", "--record", capture, "--", "/usr/bin/python3", script)
    assert r.code == 0, r.err
    os.remove(script)
    r = run("report", capture, "-f", "folded")
    assert r.code == 0 and ";main;" in r.out and "Tree.walk" in r.out, (r.err, r.out[-2000:])
