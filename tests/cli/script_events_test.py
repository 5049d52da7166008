"""Interpreters' own functions in the stacks of events: those that a program says of itself, in each event, and in recordings."""
from harness import *
from languages import frames_of, learnt

# It says where it is; then it waits, as deep as it takes to learn where frames are, and after that it asks again and again.
PYTHON = '''
import ctypes, os, sys, time, traceback


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
call = ctypes.CDLL(sys.argv[1]).called if sys.argv[1:] else None
for turn in range(140):
    asking = turn > 0
    main() if turn == 0 or turn > 60 else None
    rest(3)
'''
PHP = '''<?php
function by_key($v) {
    if ($v == 2) ask();
    return $v;
}
function ask() {
    global $asking;
    if ($asking) return getmypid();
    foreach (debug_backtrace() as $f) echo ($f['line'] ?? 0), ' ', $f['function'], "\\n";
}
function main() {
    array_map(fn($v) => by_key($v), [1, 2, 3]);
}
function rest($depth) { $depth ? rest($depth - 1) : usleep(5000); }
$asking = false;
for ($turn = 0; $turn < 120; $turn++) {
    $asking = $turn > 0;
    if ($turn == 0 || $turn > 60) main();
    rest(3);
}
'''
RUBY = '''
def by_key(v)
  ask if v == 2
  v
end

def ask
  if $asking
    Process.getpriority(Process::PRIO_PROCESS, 0)
  else
    caller_locations(0).each { |l| puts "#{l.lineno} #{l.label}" }
    STDOUT.flush
  end
end

def main
  [1, 2, 3].sort_by { |v| by_key(v) }
end

def rest(depth)
  depth == 0 ? sleep(0.005) : rest(depth - 1)
end

120.times do |turn|
  $asking = turn > 0
  main if turn == 0 || turn > 60
  rest(3)
end
'''
# What Python calls by ctypes: with a probe of ours, and a call into the kernel that a tracepoint sees.
CALLED = '''
#include <rawbpf/usdt.h>
#include <sys/resource.h>
extern "C" __attribute__((noinline)) int called(int number, int who) {
    RAWBPF_USDT(known, asked, number);
    return getpriority(PRIO_PROCESS, who);
}
'''
ASKED = "libc.so.6:getpriority"


def script_of(name, text):
    return written(name, text)


def stacks_of(lines, language):
    """The language's frames of each event; those before the layout was learnt, which have none, are few."""
    stacks = []
    for line in lines:
        user = line["stack"] if "stack" in line else line
        if "user" in user:
            stacks.append(frames_of(language, user))
    first = next((i for i, frames in enumerate(stacks) if frames), len(stacks))
    assert len(stacks) - first >= 40 and first <= len(stacks) // 3, (len(stacks), first)
    return stacks[first:]


def python_says(out):
    return [(name, int(line)) for line, name in (line.split(" ", 1) for line in out.splitlines() if line[:1].isdigit())]


def line_of(program, text):
    return program[:program.index(text)].count("\n") + 1


def assert_pythons(stacks, said, script, asks="os.getpriority"):
    """All of them: functions, files and lines. What Python said was said from another line of ask() than what `asks`."""
    assert {"walk", "by_key", "<lambda>", "main", "<module>"} <= {name for name, _ in said}, said
    for frames in stacks:
        ours = [(f["symbol"].split(".")[-1], f["line"]) for f in reversed(frames)]
        assert [name for name, _ in ours] == [name for name, _ in said], (ours, said)
        assert ours[:-1] == said[:-1] and ours[-1][1] == line_of(PYTHON, asks), (ours, said)
        assert {f["file"] for f in frames} == {script}, frames


@test
def events_have_the_functions_that_python_says():
    script = script_of("asks.py", PYTHON)
    for words in (("trace", "syscall:getpriority", "--stack"), ("trace", f"uprobe:{ASKED}", "--stack"), ("custom", ASKED),
                  ("profile", "-e", "tracepoint:syscalls:sys_enter_getpriority", "-c", "1")):
        out = path("asks.json")
        r = learnt(run(*words, "-v", "-f", "json", "-o", out, "--", "/usr/bin/python3", script))
        lines = rows("asks.json")
        assert_pythons(stacks_of(lines, "CPython"), python_says(r.out), script)
        ledger = lines[-1]
        assert sum(ledger["languages"].values()) == ledger["languages"]["merged"] + ledger["languages"]["one_more"], (words, ledger)
        assert "CPython" in r.err and "learnt from" in r.err, r.err # -v


@test
def probes_that_python_calls_have_its_functions():
    script, library = script_of("asks.py", PYTHON), path("called.so")
    include = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "programs", "include")
    if not shutil.which(CXX):
        raise Skip("this machine has no compiler")
    compile_program("called.so", CALLED, "-shared", "-fPIC", "-I", include)
    for words in (("usdt", "trace", f"{library}:known:asked", "--stack"), ("custom", f"{library}:called"), ("trace", f"uprobe:{library}:called", "--stack", "-r")):
        r = learnt(run(*words, "-v", "-f", "json", "-o", path("called.json"), "--", "/usr/bin/python3", script, library))
        lines = rows("called.json")
        assert_pythons(stacks_of(lines, "CPython"), python_says(r.out), script, "elif call")
        if words[0] == "custom":
            traces = [line for line in lines if "context" in line][20:]
            assert {int(t["context"], 16) for t in traces} == {7} and len({t["hash"] for t in traces}) <= 2, traces[0]


@test
def counted_stacks_have_pythons_functions():
    script = script_of("asks.py", PYTHON)
    whole = ";<module>;main;", ";main.<locals>.<lambda>;by_key;Tree.walk;Tree.walk;Tree.walk;Tree.walk;ask;"
    for words in (("trace", "syscall:getpriority", "--stack"), ("custom", ASKED)):
        for option in ((), ("--native",), ("--language",)):
            r = learnt(run(*words, *option, "-v", "-f", "folded", "-o", path("asks.folded"), "--", "/usr/bin/python3", script))
            hot = max(folded_stacks(read("asks.folded")).items(), key=lambda one: one[1])[0]
            native = "_PyEval_EvalFrameDefault" in hot and "by_key" not in hot
            wanted = native if option == ("--native",) else all(part in hot for part in whole) if not option else \
                ";<module>;main;main.<locals>.<lambda>;by_key;" in hot and "_PyFunction_Vectorcall" not in hot
            assert wanted, (words, option, hot, r.err)
    r = learnt(run("trace", "syscall:getpriority", "--count", "--by", "stack", "-v", "--", "/usr/bin/python3", script))
    assert "Tree.walk" in r.out and "by_key" in r.out, (r.out, r.err)
    for words in (("trace", "syscall:getpriority", "--stack"), ("custom", ASKED)):
        r = run(*words, "--native", "--language", "--", "true")
        assert r.code == 2 and "--language" in r.err, r.err
    r = run("trace", "syscall:getpriority", "--native", "--", "true")
    assert r.code == 2 and "--native is about stacks" in r.err, r.err


@test
def recordings_of_events_have_pythons_functions():
    script = script_of("asks.py", PYTHON)
    for words in (("trace", f"uprobe:{ASKED}", "--stack"), ("custom", ASKED)):
        script = script_of("asks.py", PYTHON)
        r = learnt(run(*words, "-v", "--record", path("asks.rbpf"), "--", "/usr/bin/python3", script))
        said = python_says(r.out)
        os.remove(script)
        good("report", path("asks.rbpf"), "-f", "json", "-o", path("report.json"))
        assert_pythons(stacks_of(rows("report.json"), "CPython"), said, script)


@test
def events_have_phps_functions():
    if not shutil.which("php"):
        raise Skip("this machine has no php")
    script = script_of("asks.php", PHP)
    r = learnt(run("trace", "syscall:getpid", "--stack", "-v", "-f", "json", "-o", path("php.json"), "--", "php", script))
    said = [line.split(" ", 1) for line in r.out.splitlines() if line[:1].isdigit()]
    names, places = [name for _, name in said] + ["asks.php"], [int(line) for line, _ in said]
    assert {"ask", "by_key", "array_map", "main"} <= set(names), said
    for frames in stacks_of(rows("php.json"), "PHP"):
        assert [f["symbol"] for f in frames] == ["getmypid"] + names, (frames, said)
        # PHP says of each function where it was called: a function's own line is its callee's.
        assert [(f.get("line") or 0) for f in frames[2:]] == places and frames[1]["line"] == 8, (frames, said)


@test
def events_have_rubys_functions():
    if not shutil.which("ruby"):
        raise Skip("this machine has no ruby")
    script = script_of("asks.rb", RUBY)
    r = learnt(run("trace", "syscall:getpriority", "--stack", "-v", "-f", "json", "-o", path("ruby.json"), "--", "ruby", script))
    said = [line.split(" ", 1) for line in r.out.splitlines() if line[:1].isdigit()]
    said = [(name, int(line)) for line, name in said if name not in {"sort_by", "each", "times"}] # methods in C are native
    assert {"ask", "by_key", "block in main", "main"} <= {name for name, _ in said}, said
    for frames in stacks_of(rows("ruby.json"), "Ruby"):
        ours = [(f["symbol"], f["line"]) for f in frames]
        assert ours[1:] == said[1:] and ours[0] == ("ask", 9), (ours, said)
        assert {f["file"] for f in frames} == {script}, frames
