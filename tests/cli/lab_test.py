"""rawbpf lab: lessons are copied without what is hidden, checks say what is wrong where, and whatever a student hands in, the terminal comes back.

tests/labs/lessons runs the lessons' own commands and solutions.
"""
import json
import os
import shutil
import time

from harness import *

ROOT = os.path.dirname(os.path.dirname(HERE))
LESSONS = os.path.join(ROOT, "programs/labs/lessons")
GIVEN = ("--lessons", LESSONS)
MAP = ".map counts array key u32 value u64 entries 4\n"


def started(name, lesson="3", lessons=LESSONS):
    folder = path(name)
    good("lab", "start", "--lessons", lessons, lesson, folder)
    return folder


def hand_in(folder, text, name="lab.asm"):
    for old in os.listdir(folder):
        if old.startswith("lab."):
            os.unlink(os.path.join(folder, old))
    with open(os.path.join(folder, name), "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def check(folder, code, pattern, lessons=LESSONS, seconds=20):
    begun = time.monotonic()
    r = run("lab", "check", "--lessons", lessons, folder)
    took = time.monotonic() - begun
    assert r.code == code and re.search(pattern, r.out + r.err), f"{code} /{pattern}/: status {r.code}: {r.out}{r.err}"
    assert took < seconds, f"{took:.1f} s: {r.out}"
    return r


def own_lesson(name, check_text, script=False, exercise="r0 = 1\nexit\n", ending="asm"):
    """A lecturer's: the folder with the one lesson."""
    lessons = path(name + "-lessons")
    lesson = os.path.join(lessons, "01-own")
    for folder in ("exercise", "check"):
        os.makedirs(os.path.join(lesson, folder))
    for file, text in (("lesson.md", "# 1 · My own\n"), ("exercise/lab." + ending, exercise), ("check/check." + ("sh" if script else "exp"), check_text)):
        with open(os.path.join(lesson, file), "w", encoding="utf-8") as f:
            f.write(text)
    return lessons


@test
def lab_lists_and_starts():
    rows_ = good("lab", "list", *GIVEN).out.splitlines()
    numbers = [int(row.split()[0]) for row in rows_]
    assert len(rows_) >= 12 and numbers == sorted(set(numbers)), rows_
    assert good("lab", "list").out == "\n".join(rows_) + "\n"
    told = [json.loads(line) for line in good("lab", "list", "--json", *GIVEN).out.splitlines()[1:]]
    assert [f"{t['number']:>2}  {t['name']:<16} {t['title']}" for t in told] == rows_ and {t["type"] for t in told} == {"lesson"}
    folder = started("lab-start", "maps")
    assert sorted(os.listdir(folder)) == ["counting.exp", "lab.asm", "lesson.md"], os.listdir(folder)
    bad(2, "is there already", "lab", "start", *GIVEN, "3", folder)
    os.mkdir(path("lab-empty"))
    assert good("lab", "start", *GIVEN, "3", path("lab-empty")).out.startswith(path("lab-empty") + ":")
    bad(2, "is there already, and isn't empty", "lab", "start", *GIVEN, "3", path("lab-empty"))
    bad(2, "lab start: DIR is missing", "lab", "start", *GIVEN, "1")
    bad(1, "no lesson 99", "lab", "start", *GIVEN, "99", path("lab-99"))
    os.mkdir(path("lab-none"))
    bad(1, "no lessons are installed", "lab", "list", "--lessons", path("lab-none"))
    assert not os.path.exists(path("lab-99"))


@test
def lab_check_without_a_lesson():
    bad(1, "isn't the folder of a lesson", "lab", "check", *GIVEN, WORK)
    bad(1, "isn't the folder of a lesson", "lab", "check", *GIVEN, path("lab-absent"))
    folder = started("lab-nothing")
    os.unlink(os.path.join(folder, "lab.asm"))
    check(folder, 1, "has no file lab")
    hand_in(folder, "exit\n")
    with open(os.path.join(folder, "lab.hex"), "w", encoding="utf-8"):
        pass
    check(folder, 1, "lab.asm and lab.hex: which")


@test
def lab_check_of_whatever_a_student_hands_in():
    folder = started("lab-odd")
    for text, said in (("", "is empty"), ("# only\n// comments\n\n", "is empty"), (b"\0" * 3_000_000, "3000000 bytes"),
                       (b"\xff\x1b[31m\0" * 2000, r"lab\.asm:1:1"), ("r0 = foo\n", r"lab\.asm:1:6: there is no map, variable"),
                       ("# Lesson 2: sum\nr0 = 0\nexit\n", "of lesson 2, and this folder is of lesson 3"),
                       (MAP, "it has no instructions"), ('.program count "socket"\nr0 = 0\nexit\n', "no map, variable or measure counts, and the check needs it"),
                       (MAP + '.program count "socket"\nagain:\ngoto again\n', r"lab\.asm:4:1: infinite loop"),
                       (MAP + ".map big array key u32 value u64 entries 400000000\nr0 = 0\nexit\n", "3052 MiB")):
        hand_in(folder, text)
        r = check(folder, 4, said)
        assert "\x1b" not in r.out and r.out.endswith("not solved yet\n") and not r.err, r.out
    os.unlink(os.path.join(folder, "lab.asm"))
    os.mkfifo(os.path.join(folder, "lab.asm"))
    check(folder, 4, "no regular file")
    os.unlink(os.path.join(folder, "lab.asm"))
    os.symlink("/dev/zero", os.path.join(folder, "lab.asm"))
    check(folder, 4, "no regular file")


@test
def lab_check_ends_what_does_not_end():
    endless = own_lesson("lab-endless", "# verify: no\nrun main\nexpect run.result == 1\n", exercise="again:\ngoto again\nexit\n")
    check(started("lab-endless", "1", endless), 4, r"failed: main: stopped after 100000000 instructions.*\nhint: a loop without an end", endless)
    many = own_lesson("lab-many", "# verify: no\npacket 00112233445566778899aabb0800 times 2000000000\nexpect packet.result == 1\n",
                      exercise="r1 = 10000\nagain:\nr1 += -1\nif r1 != 0 goto again\nexit\n")
    check(started("lab-many", "1", many), 4, "didn't end within 10 s and was stopped", many)


@test
def lab_expectations_say_why_and_where():
    lessons = own_lesson("lab-why", "run main\n# why 1: one is not enough\n# at: r0 =\nexpect run.result == 2\nexpect run.result > 5\n")
    folder = started("lab-why", "1", lessons)
    r = check(folder, 4, "", lessons)
    assert r.out == ("run.result: expected 2, got 1: one is not enough, lab.asm:1\nexpected run.result > 5: run.result is 1\n"
                     "rawbpf lab check: lesson 1 is not solved yet: 2 of 2 expectations failed\n"), r.out
    r = run("lab", "check", "--json", "--lessons", lessons, folder)
    header, first, second, result = [json.loads(line) for line in r.out.splitlines()]
    assert r.code == 4 and header["type"] == "header", r.out
    assert first == {"type": "finding", "kind": "expectation", "file": "lab.asm", "line": 1, "message": "run.result: expected 2, got 1",
                     "why": "one is not enough", "hint": None}, first
    assert second["line"] is None and second["why"] is None, second
    assert result == {"type": "result", "lesson": 1, "name": "01-own", "passed": False, "findings": 2, "expectations": 2, "failed": 2}, result
    hand_in(folder, "r0 = foo\nexit\n")
    r = run("lab", "check", "--json", "--lessons", lessons, folder)
    finding = json.loads(r.out.splitlines()[1])
    assert r.code == 4 and finding["kind"] == "assembly" and finding["line"] == 1, finding
    hand_in(folder, "b7 00 00 00 06 00 00 00\n95 00 00 00 00 00 00 00\n", "lab.hex")
    r = check(folder, 4, "expected 2, got 6, or|expected 2, got 6\n", lessons)
    assert "1 of 2" in r.out, r.out


@test
def lab_what_a_check_may_ask_for():
    refused = own_lesson("lab-refused", "# verify: refused infinite loop\n", exercise="r0 = 1\nexit\n")
    folder = started("lab-refused", "1", refused)
    check(folder, 4, "the verifier accepts lab.asm; the task is a program that it refuses: infinite loop", refused)
    hand_in(folder, "again:\ngoto again\n")
    check(folder, 0, "solved", refused)
    wrong = own_lesson("lab-wrong-check", "expct run.result == 1\n")
    check(started("lab-wrong-check", "1", wrong), 1, "the check has mistakes:\ncheck.exp:1:1", wrong)
    kernel = own_lesson("lab-kernel", "# needs: kernel\npacket 00112233445566778899aabb0800\nexpect packet.result == 2\n", exercise='.program p "xdp"\nr0 = 2\nexit\n')
    folder = started("lab-kernel", "1", kernel)
    r = run("lab", "check", "--lessons", kernel, folder)
    assert (r.code == 0 and "solved: 1 expectation holds" in r.out) or r.code == 3, (r.code, r.out, r.err)
    if os.geteuid() == 0:
        for folder_, _, files in os.walk(kernel):
            os.chmod(folder_, 0o755)
        r = as_nobody("lab", "check", "--lessons", kernel, folder)
        assert r.code == 3 and r.err and not r.out, (r.code, r.out, r.err)


@test
def lab_checks_by_script():
    slow = f"1{os.getpid()}"  # of nobody else
    script = ('[ -x "$RAWBPF" ] && [ -d "$WORK" ] && [ -d "$CHECK" ] || exit 1\n'
              'case $(cat "$LAB") in\n good) exit 0;;\n here) echo "not here"; exit 3;;\n long) yes;;\n slow) sleep ' + slow + ';;\nesac\necho "it says $(cat "$LAB")"; exit 1\n')
    lessons = own_lesson("lab-script", script, script=True, exercise="bad\n", ending="sh")
    folder = started("lab-script", "1", lessons)
    check(folder, 4, "^it says bad\nrawbpf lab check", lessons)
    for word, code, said in (("good", 0, r"solved\n"), ("here", 3, "not here"), ("slow", 4, "didn't end within")):
        hand_in(folder, word + "\n", "lab.sh")
        check(folder, code, said, lessons)
    runs = lambda: [p for p in os.listdir("/proc") if p.isdigit() and read_command(p) == f"sleep\0{slow}\0"]  # noqa: E731
    until(lambda: not runs(), lambda: "something runs on", 5)  # what was killed may not have had a processor yet to end on
    hand_in(folder, "long\n", "lab.sh")
    check(folder, 4, "wrote more than|didn't end within", lessons)


def read_command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""
