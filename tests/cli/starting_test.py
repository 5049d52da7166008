"""A start that takes over a second says what it is at. This one is made so slow: it is stopped for a second in the middle."""
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
