"""A start or an end that takes over a second says what it is at. These are made so slow: they are stopped for a second in the middle."""
import pty
import signal
import time

from harness import *


def slow_start(*args, stderr=subprocess.PIPE):
    """`syscall:* --stack` is dozens of programs: there is a middle. None: it was over before it could be stopped."""
    p = subprocess.Popen([RB, "trace", "syscall:*", "--stack", "-f", "top", "-n", "1", "-d", "0.2", "-o", "/dev/null", *args],
                         stdout=subprocess.DEVNULL, stderr=stderr)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and p.poll() is None:
        try:
            if "--quiet" in args or len(os.listdir(f"/proc/{p.pid}/task")) > 1:
                break
        except OSError:
            break
        time.sleep(0.001)
    else:
        p.wait()
        raise Skip("this build has one thread")
    p.send_signal(signal.SIGSTOP)
    time.sleep(1.1)
    p.send_signal(signal.SIGCONT)
    return p


PROGRESS = r"rawbpf trace: (?:starting|finding functions|loading|attaching)(?:: [\d,]+ of [\d,]+ \w+)?, \d+ s"


@test
def a_slow_start_says_what_it_is_at():
    p = slow_start()
    err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 0, err
    assert len(re.findall(f"^{PROGRESS}$", err, re.M)) == 1, err
    p = slow_start("--quiet")
    err = p.communicate(timeout=60)[1].decode()
    assert p.returncode == 0 and err == "", err


@test
def a_slow_start_is_a_line_that_goes_on_a_terminal():
    ours, theirs = pty.openpty()
    p = slow_start(stderr=theirs)
    os.close(theirs)
    err = b""
    try:
        while chunk := os.read(ours, 65536):
            err += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert p.wait(timeout=60) == 0, err
    err = err.decode()
    lines = re.findall(f"\r{PROGRESS}\x1b\\[K", err)
    assert lines and err.count("\r\x1b[K") == 1, repr(err)
    assert re.search(f"{re.escape(lines[-1])}\r\x1b\\[K(?!\r?{PROGRESS})", err), repr(err)


def held(pid, what):
    """How many descriptors of that kind a process has."""
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            n += what in os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:  # closed a moment ago
            pass
    return n


@test
def a_slow_end_counts_no_more_and_says_what_it_is_at():
    """The kernel takes down one tracepoint after the other: 35 ms each. Counting has ended, and the ledger is out, long before."""
    if run("trace", "tracepoint:sched:sched_switch", "-d", "0.05", "-o", "/dev/null").code == 3:
        raise Skip("no tracing here")
    for missed in range(5):
        p = subprocess.Popen([RB, "trace", "tracepoint:writeback:*", "--count", "-d", "0.3", "-o", "/dev/null"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        err = b""
        while line := p.stderr.readline():
            err += line
            if b" fired" in line:
                break
        # The line's second begins where the detaching does, after the ledger: so it is stopped when the first place is gone.
        try:
            whole = events = held(p.pid, "perf_event")
            while events == whole > 0:
                time.sleep(0.001)
                events = held(p.pid, "perf_event")
            p.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            events, links = held(p.pid, "perf_event"), held(p.pid, "bpf_link") + held(p.pid, "bpf-link")
        except OSError:
            events = 0
        if events < 5:  # it was over before anybody could look
            p.send_signal(signal.SIGCONT)
            p.communicate(timeout=60)
            continue
        time.sleep(1.1)
        p.send_signal(signal.SIGCONT)
        err += p.communicate(timeout=60)[1]
        err = err.decode()
        assert p.returncode == 0 and links == 0, (links, err)
        assert re.search(r"^rawbpf trace: detaching: \d+ of \d+ places, \d+ s$", err, re.M), err
        if missed:
            flaky(f"{missed} times it was over before anybody could look")
        return
    raise Skip("this kernel is done with it in no time")
