"""Bursts: what comes faster than it can be written waits, in a bounded backlog, and the ledger has the rest by its reason."""
import glob
import re
import signal
import threading
import time

from harness import *

BURST = r"""
#include <stdlib.h>
extern "C" __attribute__((noinline)) long leaf(long a) {
    long b;
    asm volatile("" : "=r"(b) : "0"(a));
    return b;
}
int main(int count, char **words) {
    const long all = count > 1 ? atol(words[1]) : 400000;
    for (long i = 0; i < all; ++i) leaf(i);
    return 0;
}
"""


def burst():
    out = path("burst")
    return out if os.path.exists(out) else compile_program("burst", BURST)


def adds_up(led):
    assert led["fired"] == led["shown"] + led["filtered"] + led["sampled_out"] + sum(led["lost"].values()), led


@test(long=True)
def trace_prints_a_burst_whole():
    program = burst()
    for form in ("text", "json"):
        r = good("trace", f"uprobe:{program}:leaf", "-f", form, "-o", path("burst." + form), "--", program)
        lines = [line for line in read("burst." + form).splitlines() if " leaf(" in line or '"function":"leaf"' in line]
        assert len(lines) == 400_000, f"{form}: {len(lines)} of 400,000; {r.err}"
        assert "lost              0" in r.err, r.err
        # In their order, each with its own argument.
        for at in (0, 1, 2, 199_999, 399_999):
            wanted = f"arg0={at:#x}," if form == "text" else f'"name":"arg0","type":null,"value":"{at:#x}"'
            assert wanted in lines[at], lines[at]


@test
def trace_counts_the_stacks_of_a_burst_in_the_kernel():
    program = burst()
    r = good("trace", f"uprobe:{program}:leaf", "--stack", "-f", "folded", "-v", "--ring", "1M", "--", program)
    counts = [line.rsplit(" ", 1) for line in r.out.splitlines()]
    assert sum(int(count) for _, count in counts) == 400_000, (r.out, r.err)
    assert re.search(r"shown +400,000 .*\n +filtered +0 .*\n +lost +0 ", r.err), r.err
    counted = re.search(r"([\d,]+) events were counted in the kernel", r.err)
    if not counted and "not counted in the kernel" in r.err:
        raise Skip(r.err)
    assert int(counted[1].replace(",", "")) > 200_000, r.err


def unread(calls, *args):
    """A trace of so many calls, which are over, and whose lines nobody has read yet."""
    over = path("over")
    if os.path.exists(over):
        os.remove(over)
    program = burst()
    p = subprocess.Popen([RB, "trace", f"uprobe:{program}:leaf", "--json", *args, "--", "sh", "-c", f"{program} {calls}; >{over}; exec sleep 60"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not os.path.exists(over) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)  # for what is in the ring yet
    return p


def rest_of(p):
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    objects = [json.loads(line) for line in out.splitlines()]
    led = ledger_of(objects)
    adds_up(led)
    assert sum(o["type"] == "call" for o in objects) == led["shown"], led
    return led


@test(long=True)
def a_reader_that_waits_costs_no_event():
    p = unread(150_000)
    p.send_signal(signal.SIGINT)
    led = rest_of(p)
    assert led["shown"] == led["fired"] == 150_000, led


@test
def a_full_backlog_is_a_reason_of_its_own():
    p = unread(150_000, "--backlog", "1M", "--ring", "32M")
    p.send_signal(signal.SIGINT)
    led = rest_of(p)
    program = burst()
    assert led["fired"] == 150_000 and led["lost"]["ring_full"] == 0, led
    assert led["lost"]["backlog_full"] > 50_000 and led["shown"] > 5_000, led
    bad(2, "--backlog: '1X' is no size", "trace", f"uprobe:{program}:leaf", "--backlog", "1X", "--", program)
    bad(2, "--backlog: 4K isn't between|isn't between 1M", "trace", f"uprobe:{program}:leaf", "--backlog", "4K", "--", program)


@test
def a_second_interrupt_leaves_out_what_waits():
    p = unread(150_000)
    interrupt(p)
    p.send_signal(signal.SIGINT)
    led = rest_of(p)
    assert led["fired"] == 150_000 and led["lost"]["stopped_by_signal"] > 50_000, led


@test
def custom_has_all_of_a_burst():
    program = burst()
    r = good("custom", f"{program}:leaf", "--arg", "0", "-f", "folded", "-o", path("burst.folded"), "--", program, "150000")
    assert re.search(r"shown +150,000", r.err) and re.search(r"lost +0 ", r.err), r.err


REPLACED = r"""
#include <unistd.h>
extern "C" __attribute__((noinline)) void leaf(int n) { asm volatile("" : : "r"(__builtin_frame_address(0))); asm volatile("" : : "r"(n)); }
extern "C" __attribute__((noinline)) void deep(int depth) {
  if (depth) deep(depth - 1); else for (int i = 0; i < 20000; ++i) leaf(i);
  asm volatile("" : : "r"(__builtin_frame_address(0)));
}
int main() {
  deep(12); // with 18 frames an event the names of most were missing in one of some runs, with fewer in none
  execl("/bin/sleep", "sleep", "1000", nullptr);
}
"""


@test
def stacks_from_before_an_exec_have_the_names_of_then():
    """To read the names of a file with many takes longer than the program needs for its calls: most are read after it has executed another."""
    labels = "".join(f'asm(".globl s{i}\\ns{i}:");\n' for i in range(300_000))
    program = compile_program("replaced", REPLACED + labels)
    for _ in range(3):
        tool = subprocess.Popen([RB, "trace", f"uprobe:{program}:leaf", "--stack", "--json", "-q", "--ring", "32M", "--", program], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        children = lambda: read(f"/proc/{tool.pid}/task/{tool.pid}/children").split()  # noqa: E731
        until(lambda: any(read(f"/proc/{child}/comm") == "sleep\n" for child in children()), tool.poll, 60)  # nobody reads meanwhile
        threading.Timer(1, os.kill, (int(children()[0]), signal.SIGKILL)).start()
        out, err = tool.communicate(timeout=60)
        assert tool.returncode == 0, err
        stacks = [stack_names(o["stack"]) for o in map(json.loads, out.splitlines()) if o["type"] == "call"]
        wrong = [names for names in stacks if names[:1] != ["leaf"] or "main" not in names]
        assert len(stacks) == 20_000 and not wrong, (len(stacks), len(wrong), wrong[:1], out.splitlines()[-1])


AT_ONCE = 15 # 16 KB each: they begin in one chunk of the backlog and end in the next. It has four, of which one may be being read

# Functions of one body, each with a long table of lines: what the program sends of one that it meets is 16 KB.
MANY = r"""
import os, sys, time

body = "def f():\n" + "    x = 0; y = 1\n" * 1500 + "    os.getpriority(which, 0)\n"
made = compile(body, "many.py", "exec").co_consts[0]
functions = []
for i in range(1500):
    function = type(lambda: 0)(made.replace(co_name=f"f{i}", co_qualname=f"f{i}"), globals())
    functions.append(function)

def wait_for(name):
    while not os.path.exists(name): rest(3)

def warm():
    os.getpriority(which, 0)

def rest(depth):
    rest(depth - 1) if depth else (time.sleep(pause), warm())

which, pause = 0, 0.002
wait_for(sys.argv[1] + ".fill")
for i in range(60000): os.getpriority(0, 0)
for function in functions: function()
open(sys.argv[1] + ".filled", "w").close()
which, pause = 1, 0.02 # seldom enough that a busy machine's reader keeps up
wait_for(sys.argv[1] + ".again")
which = 2
for i, function in enumerate(functions, 1):
    function()
    if i % AT_ONCE == 0: # not before who reads has these: then none of them is lost
        which = 1
        wait_for(f"{sys.argv[1]}.read{i}")
        which = 2
""".replace("AT_ONCE", str(AT_ONCE))


def of_python(event):
    return [frame["symbol"] for frame in (event.get("stack") or {}).get("user") or [] if (frame["module"] or "").startswith("CPython")]


def which(event):
    return event["args"][0]["value"] if event["type"] == "call" else None


@test
def names_of_functions_survive_a_full_backlog():
    python = "/usr/bin/python3"
    if run(python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))", binary=None).code != 0:
        raise Skip("the program takes CPython 3.11")
    script, at = path("many.py"), path("many")
    with open(script, "w") as file:
        file.write(MANY)
    for old in glob.glob(f"{at}.[far]*"):
        os.remove(old)
    p = subprocess.Popen([RB, "trace", "syscall:getpriority", "--stack", "-f", "json", "--backlog", "1M", "--", python, script, at],
                         stdout=subprocess.PIPE, stderr=open(path("many.err"), "w"), text=True)
    lines, named = [], 0
    while named < 20: # its layout is known
        lines.append(json.loads(p.stdout.readline() or "{}"))
        assert lines[-1], read("many.err")
        named += "warm" in of_python(lines[-1])
        if len(lines) > 20_000 or lines[-1]["type"] == "ledger":
            raise Skip("interpreters' functions aren't shown here: " + read("many.err")[-400:])
    touch = lambda step: open(f"{at}.{step}", "w").close()
    touch("fill")
    deadline = time.monotonic() + 60
    while not os.path.exists(at + ".filled") and time.monotonic() < deadline: # nobody reads meanwhile
        time.sleep(0.02)
    calm = again = 0
    deadline = time.monotonic() + 120
    for line in p.stdout:
        lines.append(json.loads(line))
        calm += '"warm"' in line and which(lines[-1]) == 1
        if calm == 100: # what waited has been read, and a tick has passed
            touch("again")
        if which(lines[-1]) == 2:
            again += 1
            if again % AT_ONCE == 0:
                touch(f"read{again}")
        elif time.monotonic() > deadline: # one was lost, and both wait
            for i in range(AT_ONCE, 1501, AT_ONCE):
                touch(f"read{i}")
            deadline += 60
    assert p.wait(timeout=60) == 0, read("many.err")
    led = ledger_of(lines)
    adds_up(led)
    assert led["lost"]["backlog_full"] > 0, led
    last = [of_python(event) for event in lines if which(event) == 2]
    assert len(last) == 1500, (len(last), led)
    wrong = [i for i, names in enumerate(last) if f"f{i}" not in names]
    assert not wrong, (len(wrong), wrong[:5], last[wrong[0]])
