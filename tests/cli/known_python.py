"""Python programs that say where they are, and whether what rawbpf says of them is the same. Needs nothing of the harness: tests/vm/python
runs them in a guest."""


def frames_of(language, sample):
    """The frames of a sample that are functions of the language, leaf first: "CPython", "PHP", "Ruby"."""
    return [f for f in sample["user"] if (f["module"] or "").startswith(language)]


# Generators, a C function that calls back, methods, names that aren't ASCII; then it spins in a known place.
SPINS = '''
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
    end = time.monotonic() + float((sys.argv[1:] or ["1.5"])[0])
    while time.monotonic() < end:
        pass
    raise SystemExit


def main():
    for value in généré(2):
        print(value)


main()
'''
# It says where it is; then it waits, as deep as it takes to learn where frames are, and after that it asks again and again.
ASKS = '''
import os, sys, time, traceback


class Tree:
    def __init__(self, depth):
        self.depth = depth

    def walk(self):
        if self.depth == 0:
            return ask()
        return Tree(self.depth - 1).walk()


def by_key(v):
    if v == 2:
        return Tree(
            3).walk() or v
    return v


def ask():
    if not asking:
        for frame in traceback.extract_stack():
            print(frame.lineno, frame.name, flush=True)
    elif call: call(7, 0)
    else: os.getpriority(os.PRIO_PROCESS, 0)


def main():
    sorted([3, 1, 2], key=lambda v: by_key(v))


def rest(depth):
    rest(depth - 1) if depth else time.sleep(0.005)


asking = False
call = __import__("ctypes").CDLL(sys.argv[1]).called if sys.argv[1:] else None
for turn in range(240):
    asking = turn > 0
    main() if turn == 0 or turn > 160 else None
    rest(3)
'''
# Three interpreters in one thread, one in another.
SEVERAL = r"""
import time
try:
    import _interpreters as interpreters # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters

INNER = '''
import time
def spin():
    end = time.process_time() + 2
    while time.process_time() < end:
        pass
def inner():
    spin()
inner()
'''
BETWEEN = f'''
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
def between():
    interpreters.run_string(interpreters.create(), {INNER!r})
between()
'''


def outer(depth):
    if depth:
        return outer(depth - 1)
    interpreters.run_string(interpreters.create(), BETWEEN)


outer(2)
"""


def said_by(out):
    """What such a program printed: [(function, line)], root first."""
    return [(name, int(line)) for line, name in (line.split(" ", 1) for line in out.splitlines() if line[:1].isdigit())]


def line_of(program, text):
    return program[:program.index(text)].count("\n") + 1


def named(frames):
    """[(function, line)] of a stack's frames of Python, root first."""
    return [(frame["symbol"].split(".")[-1], frame["line"]) for frame in reversed(frames)]


def spinning(lines):
    """Of a profile of SPINS, in JSON: the Python frames of each sample that is in spin(), and not in what it calls to say where it is."""
    stacks = [frames_of("CPython", sample) for sample in lines if sample["type"] == "sample"]
    return [frames for frames in stacks if frames and (frames[0]["symbol"] or "").endswith("spin")]


def spins_as_said(frames, said, script):
    """All functions, files and lines; the leaf's line is that of a loop behind the one that asked."""
    ours = named(frames)
    return [name for name, _ in ours] == [name for name, _ in said] and ours[:-1] == said[:-1] and {f["file"] for f in frames} == {script}


def assert_asks(stacks, said, script, asks="os.getpriority"):
    """All of them: functions, files and lines. What Python said was said from another line of ask() than what `asks`."""
    assert {"walk", "by_key", "<lambda>", "main", "<module>"} <= {name for name, _ in said}, said
    for frames in stacks:
        ours = named(frames)
        assert [name for name, _ in ours] == [name for name, _ in said], (ours, said)
        assert ours[:-1] == said[:-1] and ours[-1][1] == line_of(ASKS, asks), (ours, said)
        assert {f["file"] for f in frames} == {script}, frames


def stacks_once_learnt(lines, language="CPython"):
    """The language's frames of each event; those before the layout was learnt, which have none, are few."""
    stacks = []
    for line in lines:
        user = line["stack"] if "stack" in line else line
        if "user" in user:
            stacks.append(frames_of(language, user))
    first = next((i for i, frames in enumerate(stacks) if frames), len(stacks))
    assert len(stacks) - first >= 40 and first <= len(stacks) // 3, (len(stacks), first)
    return stacks[first:]


def assert_several(lines):
    """Of a profile of SEVERAL: until it was seen that there are others, stacks are native; then each has all functions in their order."""
    stacks = [frames_of("CPython", sample) for sample in lines if sample["type"] == "sample"]
    stacks = stacks[next(i for i, frames in enumerate(stacks) if len(frames) > 4):]
    stacks = [[frame["symbol"] for frame in reversed(frames)] for frames in stacks if frames and frames[0]["symbol"] == "spin"]
    assert len(stacks) >= 40, len(stacks)
    whole = ["<module>", "outer", "outer", "outer", "<module>", "between", "<module>", "inner", "spin"]
    wrong = [names for names in stacks if names != whole]
    assert not wrong, (len(wrong), len(stacks), wrong[0])
    ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
    assert ledger["astray"] <= 0.2 * sum(ledger.values()), ledger
    return f"{len(stacks)} samples"
