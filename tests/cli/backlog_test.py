"""Bursts: what comes faster than it can be written waits, in a bounded backlog, and the ledger has the rest by its reason."""
import re
import signal
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
    p = unread(150_000, "--backlog", "1M")
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
