"""Python's own functions in a profile: as many and the same as Python says, with their lines."""
from harness import *
from known_python import SEVERAL, SPINS, assert_several, frames_of, said_by, spinning, spins_as_said
from languages import learnt


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
        file.write(SPINS)
    seen = 0
    for python in pythons():
        out = path("known.json")
        r = learnt(run("profile", "-F", "199", "-f", "json", "-o", out, "--", python, script))
        said, lines = said_by(r.out), rows("known.json")
        stacks = spinning(lines)
        assert len(stacks) >= 25, (python, len(stacks), r.err)
        wrong = [frames for frames in stacks if not spins_as_said(frames, said, script)]
        assert not wrong, (python, len(wrong), len(stacks), [(f["symbol"], f["line"]) for f in wrong[0]], said)
        ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
        # While it starts, it imports: native and Python's stacks change between two instructions.
        assert ledger["merged"] + ledger["one_more"] >= 0.95 * sum(ledger.values()), ledger
        seen += 1
    assert seen


@test
def interpreters_in_one_thread_are_one_stack():
    script = path("several.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SEVERAL)
    tried = 0
    for python in pythons():
        if run(python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))", binary=None).code != 0:
            continue # has no module for it
        r = learnt(run("profile", "-F", "199", "-f", "json", "-o", path("several.json"), "--", python, script))
        try:
            assert_several(rows("several.json"))
        except AssertionError as error:
            raise AssertionError(python, r.err[-600:]) from error
        tried += 1
    assert tried


# From Python to C and back, 40 times in one stack.
TURNS = """
import time
def turn(n):
    if n:
        return max([n], key=lambda _: turn(n - 1))
    end = time.process_time() + 1.5
    while time.process_time() < end:
        pass
turn(40)
"""


@test
def a_stack_turns_from_python_to_c_and_back_as_often_as_it_likes():
    script = path("turns.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(TURNS)
    learnt(run("profile", "-U", "-F", "199", "-f", "json", "-o", path("turns.json"), "--", "/usr/bin/python3", script))
    stacks = [[frame["symbol"].rsplit(".")[-1] for frame in reversed(script_frames(sample))] for sample in rows("turns.json") if sample["type"] == "sample"]
    stacks = [names for names in stacks if names and names[-1] == "turn"]
    whole = ["<module>", "turn"] + ["<lambda>", "turn"] * 40
    wrong = [names for names in stacks if names != whole]
    assert len(stacks) >= 40 and len(wrong) <= 0.02 * len(stacks), (len(stacks), len(wrong), wrong[:1])


# A service: a request of three milliseconds, then a pause, in which it has one function, and nothing is learnt from that.
SERVICE = """
import sys, time
def work(depth):
    if depth:
        return work(depth - 1)
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass
print("ready", flush=True)
end = time.monotonic() + 8
while time.monotonic() < end:
    work(3)
    time.sleep(0.1)
"""


@test
def a_service_that_waits_most_of_the_time_is_learnt():
    """It runs already: what Python does while it starts would be enough."""
    script = path("service.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SERVICE)
    with subprocess.Popen(["/usr/bin/python3", script], stdout=subprocess.PIPE) as service:
        try:
            service.stdout.readline()
            time.sleep(0.3)
            learnt(run("profile", "-U", "-F", "999", "-d", "4", "-f", "json", "-o", path("service.json"), "-p", str(service.pid)))
        finally:
            service.kill()
    stacks = [[frame["symbol"] for frame in script_frames(sample)] for sample in rows("service.json") if sample["type"] == "sample"]
    assert ["work"] * 4 + ["<module>"] in stacks, stacks[-20:]


@test
def one_side_of_pythons_stacks_alone():
    script = path("known.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SPINS)
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
        file.write(SPINS)
    r = run("profile", "-F", "199", "--record", capture, "--", "/usr/bin/python3", script)
    assert r.code == 0, r.err
    os.remove(script)
    r = run("report", capture, "-f", "folded")
    assert r.code == 0 and ";main;" in r.out and "Tree.walk" in r.out, (r.err, r.out[-2000:])
