"""rawbpf step: a program one instruction at a time, forwards and backwards."""
import os
import re

from harness import *
from instructions import sum_asm


@test
def step_traces_without_a_terminal():
    text = good("step", "--trace", sum_asm(), "0102").out
    for wanted in (r"sum.asm:8 ", r"5: r4 = \*\(u8 \*\)\(r4 \+ 0\) +; r4 = 2\n", r"\[fp0-8\] = 03 00 00 00 00 00 00 00", r"r4 = 0x10000001 \(memory\+1\)", r"r0 = 3 after 20 steps\n$"):
        assert re.search(wanted, text), (wanted, text)
    text = good("step", "--trace", "--break", ":10", sum_asm(), "0102").out
    assert text.splitlines()[1].lstrip().startswith("7: *(u64 *)(r10 - 8) = r0"), text
    r = run("step", "--trace", "--limit", "12", sum_asm(), "010203")
    assert r.code == 1 and "stopped after 12 steps" in r.err and "11: " not in r.out, (r.out, r.err)
    r = run("step", "--trace", "-", input=b"r1 = 7\nr0 = *(u8 *)(r1 + 1)\nexit\n")
    assert r.code == 1 and "r1 = 7" in r.out and "instruction 1" in r.err and "a null pointer, and 8" in r.err, (r.out, r.err)
    bad(1, "no instruction comes from line :99", "step", "--trace", "--break", ":99", sum_asm())
    bad(1, "no instruction, line or function nowhere", "step", "--trace", "--break", "nowhere", sum_asm())


class Terminal:
    """A program on a terminal of its own; keys in, screens out."""

    def __init__(self, *args, rows=40, columns=110):
        import fcntl, pty, struct, termios
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(RB, [RB, *args])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.fd, keys.encode())
        return self.screen()

    def screen(self):
        import select
        seen = b""
        while select.select([self.fd], [], [], 0.5 if seen else 60)[0]:  # a busy machine's first word may take long
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                break
            if not more:
                break
            seen += more
        last = seen.decode("utf-8", "replace").rsplit("\x1b[H", 1)[-1]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).replace("\r", "")

    def ended(self):
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


@test
def step_walks_forwards_and_backwards_on_a_terminal():
    t = Terminal("step", sum_asm(), "01020304")
    first = t.screen()
    assert "instruction 0, step 0" in first and "q quit" in first and "01 02 03 04" in first, first
    s = t.press("nnnnnnnn")
    assert "instruction 8, step 8" in s and re.search(r"stack +-16 .* 01 00 00 00 00 00 00 00", s) and "| r3 += 1" in s, s
    s = t.press("b")
    assert "instruction 7, step 7" in s and "[fp0-8] = 00 00 00 00 00 00 00 00" in s, s
    s = t.press("\x1b[B\x1b[Btc")  # down, down, breakpoint at 9, run on
    assert "instruction 9, step 9" in s and "|>o" in s, s
    s = t.press("c")
    assert "instruction 9, step 17" in s, s
    s = t.press("C")
    assert "instruction 9, step 9" in s, s
    s = t.press("tc")
    assert "ended" in s and re.search(r"r0  10 ", s), s
    s = t.press("n")
    assert "it has ended: r0 = 0xa" in s, s
    s = t.press("h")
    assert "instruction 0, step 0" in s and "all zero" in s, s
    s = t.press("q")
    assert t.ended() == 0
    # A long message takes as many lines as it needs.
    with open(path("past.asm"), "w", encoding="utf-8") as f:
        f.write("r2 = 0\nr0 = *(u64 *)(r1 + 9)\nexit\n")
    t = Terminal("step", path("past.asm"), "0102030405060708090a0b0c", columns=70)
    t.screen()
    s = " ".join(t.press("nn").split())
    assert "fault: " in s and "which has 12 bytes" in s and s.endswith("q quit"), s
    t.press("q")
    assert t.ended() == 0
