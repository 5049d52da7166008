"""rawbpf step: a program one instruction at a time, forwards and backwards."""
import json
import os
import re

from harness import *
from instructions import sum_asm
from kernel_objects import json_rows


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
    assert r.code == 1 and "r1 = 7" in r.out and "instruction 1" in r.err and "a null pointer plus 8" in r.err, (r.out, r.err)
    bad(1, "no instruction comes from line :99", "step", "--trace", "--break", ":99", sum_asm())
    bad(1, "no instruction, line or function nowhere", "step", "--trace", "--break", "nowhere", sum_asm())


@test
def step_json_says_what_the_text_says():
    text = good("step", "--trace", "--known", sum_asm(), "0102").out
    rows = json_rows(RB, "step", "--json", "--known", sum_asm(), "0102")
    steps = [row for row in rows if row["type"] == "step"]
    assert rows[-1] == {"type": "end", "r0": "0x3", "steps": 20, "ended": True, "fault": None, "verdict": "accepted"}, rows[-1]
    assert [row["step"] for row in steps] == list(range(1, 21)), steps
    shown = [line for line in text.splitlines() if re.match(r" *\d+: ", line)]
    assert len(shown) == len(steps), (len(shown), len(steps))
    for line, row in zip(shown, steps):
        assert line.strip().startswith(f"{row['insn']}: {row['text']}"), (line, row)
        for change in row["changes"]:
            if "register" in change:
                assert f"{change['register']} = " in line and (change["points_to"] or "") in line and f"{{{change['known']}}}" in line, (line, change)
                assert change["before"] != change["after"], change
            else:
                assert f"[{change['place']}] = {bytes.fromhex(change['after']).hex(' ')}" in line, (line, change)
    at = {row["source"] for row in steps}
    assert all(f"  {source}" in text for source in at), at
    watched = [row for row in json_rows(RB, "step", "--json", "--watch", "r4", sum_asm(), "0102") if row["type"] == "step"]
    assert watched and all(any(change.get("register") == "r4" for change in row["changes"]) for row in watched), watched
    assert "known" not in watched[0]["changes"][0], watched[0]
    r = run("step", "--json", "-", input=b"r1 = 7\nr0 = *(u8 *)(r1 + 1)\nexit\n")
    end = json.loads(r.out.splitlines()[-1])
    assert r.code == 1 and end["r0"] is None and not end["ended"] and "a null pointer plus 8" in end["fault"], r.out
    r = run("step", "--json", "--limit", "12", sum_asm(), "0102")
    assert r.code == 1 and json.loads(r.out.splitlines()[-1])["steps"] == 12, r.out


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

    def resize(self, rows, columns):
        import fcntl, struct, termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        return self.screen()

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
    assert "instruction 8, step 8" in s and re.search(r"stack +-8  01 00 00 00 00 00 00 00   1 ", s) and "| r3 += 1" in s, s
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


COUNT = """.map counts hash key 4 value 8 entries 16
.program count "socket"
    *(u32 *)(r10 - 4) = 7
    *(u64 *)(r10 - 16) = 3
    r1 = counts ll
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    r1 = 5
    call twice
    r6 = r0
    if r6 > 20 goto out
    r6 += 1
out:
    r0 = 0
    exit
.function twice
    r0 = r1
    r0 += r1
    exit
"""
UNCHECKED = """.map counts hash key 4 value 8 entries 16
.program count "socket"
    *(u32 *)(r10 - 4) = 0
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    r0 = *(u64 *)(r0 + 0)
    exit
"""


@test
def step_shows_what_the_verifier_knows():
    written("count.asm", COUNT)
    t = Terminal("step", path("count.asm"), rows=44, columns=120)
    s = t.screen()
    assert "verifier  accepted" in s and re.search(r"r1  .* ctx\(\)", s) and re.search(r"r10 .* fp0", s) and re.search(r" r3  0 +-$", s, re.M), s
    s = t.press("nn")
    assert re.search(r"stack +-8 .*\{4 of 8 bytes written\}", s) and re.search(r"-16  03 00 .*   3   \{3\}", s), s
    s = t.press("mc")  # the maps' panel; to the end
    assert "map counts: 1 of 16 entries" in s and "[07 00 00 00] = 03 00 00 00 00 00 00 00" in s and "17 steps; it has ended: r0 = 0x0" in s, s
    s = t.press("g12\r")
    assert "step 12, frame 1" in s and re.search(r"r1  5 +5$", s, re.M), s
    s = t.press("m")
    assert "calls   frame 1  twice: at instruction" in s and re.search(r"frame 0  count: returns to instruction 12 ", s), s
    s = t.press("g99\r")
    assert "the program ends after" in s, s
    s = t.press("gx\r")
    assert "x isn't a number of steps" in s, s
    s = t.press("g1\x1b")  # given up
    assert "go to step: 1" not in s, s
    s = t.press("hwr6\rc")
    assert re.search(r"watch   r6 = 10, since step 15 \(instruction 12\); before: 0", s), s
    s = t.press("c")
    assert "watch   r6 = 11" in s and re.search(r"r6  11 +11$", s, re.M), s
    s = t.press("wr6\rwx\r")
    assert "watch   r" not in s and "x isn't a register" in s, s
    s = t.press("v")
    assert "verifier" not in s.replace("v knows", "") and "ctx()" not in s, s
    s = t.press("?")
    assert "Keys of rawbpf step" in s and "a breakpoint; an instruction that the verifier refuses" in " ".join(s.split()) and "any key: back" in s, s
    s = t.press("n")
    assert "q quit" in s and "Keys of" not in s, s
    t.press("q")
    assert t.ended() == 0


@test
def step_on_any_size_of_terminal():
    written("unchecked.asm", UNCHECKED)
    t = Terminal("step", path("unchecked.asm"), rows=40, columns=100)
    s = t.screen()
    assert "verifier  refused at instruction 6: R0 invalid mem access 'map_value_or_null'" in s and re.search(r"x +6  r0 = ", s), s
    for rows, columns in ((24, 80), (12, 60), (6, 30), (3, 20), (50, 200)):
        s = t.resize(rows, columns)
        lines = s.split("\n")
        assert len(lines) <= rows and all(len(line) <= columns for line in lines), (rows, columns, s)
        assert ("q quit" in s or rows < 5 or columns < 45) and "n next" in s and (rows < 12 or re.search(r"> +x? *0  ", s)), (rows, columns, s)
    s = t.press("nnnnn")
    assert re.search(r"r0  0 +map_value_or_null\(.*map=counts", s), s
    s = t.press("n")
    assert "fault: " in s, s
    t.press("q")
    assert t.ended() == 0


@test
def step_traces_what_is_known_and_what_is_watched():
    written("count.asm", COUNT)
    text = good("step", "--trace", "--known", path("count.asm")).out
    assert re.search(r"r1 = 5 +; r1 = 5 \{5\}", text) and "verifier: accepted\n" in text, text
    text = good("step", "--trace", "--watch", "r6", path("count.asm")).out
    assert [line.split(":")[0].strip() for line in text.splitlines() if " r6 " in line and ";" in line[1:]] == ["12", "14"], text
    bad(2, "r11 isn't a register", "step", "--trace", "--watch", "r11", path("count.asm"))
    written("unchecked.asm", UNCHECKED)
    r = run("step", "--trace", "--known", path("unchecked.asm"))
    assert r.code == 1 and "{map_ptr(map=counts,ks=4,vs=8)}" in r.out and "verifier: refused at instruction 6" in r.out, (r.out, r.err)
