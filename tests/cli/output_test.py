"""Where output goes: pipes and files that fail, descriptors that are closed, and terminals."""
import os
import re
import shutil
import signal
import subprocess

from harness import *
from workloads import SPLIT


@test
def a_closed_pipe_ends_it_quietly():
    p = subprocess.Popen([RB, "profile", "-q", "--freq", "999", "--", SPLIT, "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    p.stdout.close()
    err = p.stderr.read().decode()
    p.wait(timeout=20)
    assert p.returncode in (0, 1, -signal.SIGPIPE) and "terminate" not in err and "Sanitizer" not in err, (p.returncode, err)


def running(program):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().split(b"\0")[0] == program.encode():
                    return True
        except OSError:
            pass  # it has ended meanwhile
    return False


@test
def a_failed_output_ends_the_command_too():
    for name, sink in (("ends-a", subprocess.PIPE), ("ends-b", open("/dev/full", "w"))):
        program = path(name)
        shutil.copy(SPLIT, program)
        p = subprocess.Popen([RB, "profile", "-q", "--freq", "999", "--", program, "20"], stdout=sink, stderr=subprocess.PIPE)
        if p.stdout:
            p.stdout.readline()
            p.stdout.close()
        p.stderr.read()
        assert p.wait(timeout=15) == (0 if sink == subprocess.PIPE else 1)
        assert not running(program), "the command runs on, and nobody watches it"


@test
def closed_standard_descriptors_are_no_files_of_ours():
    script = '"$0" profile --freq 299 -f folded -o "$1" -- "$2" 0.3 2>&-'
    p = run("sh", "-c", script, RB, path("closed.folded"), SPLIT, binary=None)
    assert p.code == 0, p.code
    lines = read("closed.folded").splitlines()
    assert lines and all(re.search(r" \d+$", line) and "rawbpf" not in line for line in lines), lines
    p = run("sh", "-c", '"$0" profile -q -f folded -- "$1" 0.1 >&-', RB, SPLIT, binary=None)
    assert p.code == 1 and "EBADF" in p.err, (p.code, p.err)


@test
def a_ready_descriptor_has_to_be_open():
    for number in ("3", "9"):
        bad(2, rf"{number}.*isn't open", "profile", "-f", "folded", "-o", path("ready.folded"), "--ready-fd", number, "--", SPLIT, "0.1")
    assert not os.path.exists(path("ready.folded"))


@test
def an_output_is_tried_first_and_kept_until_the_run_starts():
    with open(path("kept.svg"), "w") as f:
        f.write("the last result")
    bad(1, r"999999", "profile", "-p", "999999", "-f", "svg", "-o", path("kept.svg"))
    assert read("kept.svg") == "the last result"
    bad(1, r"999999", "profile", "-p", "999999", "-f", "svg", "-o", path("never.svg"))
    assert not os.path.exists(path("never.svg")), "a run that never started left a file"
    with open(path("kept.rbpf"), "w") as f:
        f.write("the last capture")
    bad(1, r"999999", "profile", "-p", "999999", "--record", path("kept.rbpf"))
    assert read("kept.rbpf") == "the last capture"
    bad(2, r"same file", "profile", "--record", path("kept.rbpf"), "-f", "json", "-o", path("kept.rbpf"), "-d", "1")
    good("profile", "-q", "--record", path("kept.rbpf"), "--", SPLIT, "0.1")
    good("report", "-q", "-f", "top", path("kept.rbpf"))
    bad(1, r"/dev/full.*ENOSPC", "profile", "-q", "-f", "folded", "-o", "/dev/full", "--", SPLIT, "0.3")
    bad(1, r"no-such-dir", "profile", "--record", "/no-such-dir/rec", "-d", "1")
    bad(2, r"standard output", "profile", "--record", "-", "-f", "json", "-d", "1")
    bad(1, r"(?i)permission", "profile", "-q", "--record", path("rec.not"), "--", "/etc/passwd")


@test
def a_garbled_sudo_is_no_way_to_root():
    if os.geteuid() != 0:
        raise Skip("needs root")
    for uid, gid in (("nobody", "1000"), ("1000", "")):
        r = run("profile", "-q", "-d", "2", "--", "id", env={**os.environ, "SUDO_UID": uid, "SUDO_GID": gid})
        assert r.code == 1 and "SUDO_UID" in r.err and "uid=" not in r.out, (r.code, r.out, r.err)
    r = good("profile", "-q", "-f", "folded", "--as-root", "--", "id", "-u", env={**os.environ, "SUDO_UID": "nobody", "SUDO_GID": "x"})
    assert r.err.startswith("0\n"), r.err  # what the command says goes there, as the profile goes to standard output


@test
def progress_only_on_a_terminal():
    if not shutil.which("script"):
        raise Skip("needs script(1)")
    command = f"{RB} profile -f folded -o /dev/null -d 0.8"
    p = subprocess.run(["script", "-qc", command, "/dev/null"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert re.search(r"\d+ s  [\d,]+ samples?  \d+ process", p.stdout), p.stdout
    assert "\x1b[K" not in good("profile", "-f", "folded", "-o", "/dev/null", "-d", "0.3").err
