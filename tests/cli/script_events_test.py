"""Interpreters' own functions in the stacks of events: those that a program says of itself, in each event, and in recordings."""
from harness import *
from known_python import ASKS, assert_asks, said_by, stacks_once_learnt
from languages import RUBYS_STACK, learnt, said_by_ruby

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
for ($turn = 0; $turn < 220; $turn++) {
    $asking = $turn > 0;
    if ($turn == 0 || $turn > 160) main();
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
    %s
    STDOUT.flush
  end
end

def main
  [1, 2, 3].sort_by { |v| by_key(v) }
end

def rest(depth)
  depth == 0 ? sleep(0.005) : rest(depth - 1)
end

220.times do |turn|
  $asking = turn > 0
  main if turn == 0 || turn > 160
  rest(3)
end
''' % RUBYS_STACK
PERL = '''use strict;
my $asking = 0;
sub by_key { my $v = shift; ask() if $v == 2; $v }
sub ask {
    return said() if !$asking;
    getpriority 0, 0;
}
sub said { for (my $i = 0; my @c = caller $i; ++$i) { print "$c[2] $c[3]\\n" } }
sub named { by_key($a) <=> by_key($b) }
sub main {
    my @sorted = sort named 1, 2, 3;
}
sub rest { my $depth = shift; $depth ? rest($depth - 1) : select undef, undef, undef, 0.005 }
$| = 1;
for my $turn (0 .. 219) {
    $asking = $turn > 0;
    main() if $turn == 0 || $turn > 160;
    rest(3);
}
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


@test
def events_have_the_functions_that_python_says():
    script = script_of("asks.py", ASKS)
    for words in (("trace", "syscall:getpriority", "--stack"), ("trace", f"uprobe:{ASKED}", "--stack"), ("custom", ASKED),
                  ("profile", "-e", "tracepoint:syscalls:sys_enter_getpriority", "-c", "1")):
        out = path("asks.json")
        r = learnt(run(*words, "-v", "-f", "json", "-o", out, "--", "/usr/bin/python3", script))
        lines = rows("asks.json")
        assert_asks(stacks_once_learnt(lines), said_by(r.out), script)
        ledger = lines[-1]
        assert sum(ledger["languages"].values()) == ledger["languages"]["merged"] + ledger["languages"]["one_more"], (words, ledger)
        assert "CPython" in r.err and "learnt from" in r.err, r.err # -v


@test
def probes_that_python_calls_have_its_functions():
    script, library = script_of("asks.py", ASKS), path("called.so")
    include = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "programs", "include")
    if not shutil.which(CXX):
        raise Skip("this machine has no compiler")
    compile_program("called.so", CALLED, "-shared", "-fPIC", "-I", include)
    for words in (("usdt", "trace", f"{library}:known:asked", "--stack"), ("custom", f"{library}:called"), ("trace", f"uprobe:{library}:called", "--stack", "-r")):
        r = learnt(run(*words, "-v", "-f", "json", "-o", path("called.json"), "--", "/usr/bin/python3", script, library))
        lines = rows("called.json")
        assert_asks(stacks_once_learnt(lines), said_by(r.out), script, "elif call")
        if words[0] == "custom":
            traces = [line for line in lines if "context" in line][20:]
            assert {int(t["context"], 16) for t in traces} == {7} and len({t["hash"] for t in traces}) <= 2, traces[0]


@test
def counted_stacks_have_pythons_functions():
    script = script_of("asks.py", ASKS)
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
    script = script_of("asks.py", ASKS)
    for words in (("trace", f"uprobe:{ASKED}", "--stack"), ("custom", ASKED)):
        script = script_of("asks.py", ASKS)
        r = learnt(run(*words, "-v", "--record", path("asks.rbpf"), "--", "/usr/bin/python3", script))
        said = said_by(r.out)
        os.remove(script)
        good("report", path("asks.rbpf"), "-f", "json", "-o", path("report.json"))
        assert_asks(stacks_once_learnt(rows("report.json")), said, script)


@test
def events_have_phps_functions():
    if not shutil.which("php"):
        raise Skip("this machine has no php")
    script = script_of("asks.php", PHP)
    r = learnt(run("trace", "syscall:getpid", "--stack", "-v", "-f", "json", "-o", path("php.json"), "--", "php", script))
    said = [line.split(" ", 1) for line in r.out.splitlines() if line[:1].isdigit()]
    names, places = [name for _, name in said] + ["asks.php"], [int(line) for line, _ in said]
    assert {"ask", "by_key", "array_map", "main"} <= set(names), said
    for frames in stacks_once_learnt(rows("php.json"), "PHP"):
        assert [f["symbol"] for f in frames] == ["getmypid"] + names, (frames, said)
        # PHP says of each function where it was called: a function's own line is its callee's.
        assert [(f.get("line") or 0) for f in frames[2:]] == places and frames[1]["line"] == 8, (frames, said)


@test
def events_have_rubys_functions():
    if not shutil.which("ruby"):
        raise Skip("this machine has no ruby")
    script = script_of("asks.rb", RUBY)
    r = learnt(run("trace", "syscall:getpriority", "--stack", "-v", "-f", "json", "-o", path("ruby.json"), "--", "ruby", script))
    said = [(name, line) for line, name in said_by_ruby(r.out, {"sort_by", "each", "times"})]
    assert {"ask", "by_key", "block in main", "main"} <= {name for name, _ in said}, said
    for frames in stacks_once_learnt(rows("ruby.json"), "Ruby"):
        ours = [(f["symbol"], f["line"]) for f in frames]
        assert ours[1:] == said[1:] and ours[0] == ("ask", 9), (ours, said)
        assert {f["file"] for f in frames if f["symbol"] != "times"} == {script}, frames # Ruby's own from 3.3 on


@test
def events_have_perls_functions():
    script = script_of("asks.pl", PERL)
    for words in (("trace", "syscall:getpriority", "--stack"), ("custom", ASKED)):
        r = learnt(run(*words, "-v", "-f", "json", "-o", path("perl.json"), "--", "perl", script))
        said = [line.split(" ", 1) for line in r.out.splitlines() if line[:1].isdigit()]
        said = said[1:next(i for i, (_, name) in enumerate(said) if name == "main::main") + 1] # of the first comparison
        names, places = [name for _, name in said] + ["asks.pl"], [int(line) for line, _ in said]
        assert names == ["main::ask", "main::by_key", "main::named", "main::main", "asks.pl"], said
        for frames in stacks_once_learnt(rows("perl.json"), "Perl"):
            # Perl says of each function where it was called: a function's own line is its callee's.
            assert [f["symbol"] for f in frames] == names and [f["line"] for f in frames] == [6] + places, (frames, said)
            assert {f["file"] for f in frames} == {script}, frames
