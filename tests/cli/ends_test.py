"""What is left when a command ends before its time: by a signal, or because what it printed could not be written."""
from harness import *

import os
import resource
import signal
import subprocess
import time

COUNTER = """.license "GPL"
.map seen array key u32 value u64 entries 1
.program on_exec "tracepoint/sched/sched_process_exec"
    r1 = seen ll
    r0 = 0
    exit
"""


def object_file():
    with open(path("ends.asm"), "w") as f:
        f.write(COUNTER)
    good("asm", path("ends.asm"), "-o", path("ends.o"))
    return path("ends.o")


def needs_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def bpf_folder(name):
    if os.statvfs("/sys/fs/bpf").f_bsize == 0 or run("stat", "-f", "-c", "%T", "/sys/fs/bpf", binary=None).out.strip() != "bpf_fs":
        raise Skip("no bpf file system at /sys/fs/bpf")
    return f"/sys/fs/bpf/rawbpf-ends-{os.getpid()}-{name}"


def run_into(sink, *args):
    with open(sink, "w") as out:
        p = subprocess.run([RB, *args], stdout=out, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, p.stderr.decode("utf-8", "replace")


@test
def pins_do_not_outlive_a_failure():
    needs_root()
    made, pins = object_file(), bpf_folder("full")
    code, said = run_into("/dev/full", "load", "--pin", pins, made)
    left = os.path.exists(pins)
    run("rm", "-rf", pins, binary=None)
    assert code == 1 and "ENOSPC" in said or "No space left" in said, (code, said)
    assert not left, "pins are left"
    # A list that was written makes them stay, and a second object that fails takes only its own away.
    r = run("load", "--pin", pins, made, path("no-such.o"))
    stays = os.path.exists(pins + "/on_exec")
    again = run("load", "--pin", pins, made)
    still = os.path.exists(pins + "/on_exec")
    run("rm", "-rf", pins, binary=None)
    assert r.code == 1 and stays, (r.code, r.err)
    assert again.code == 1 and "EEXIST" in again.err and still, (again.code, again.err)


@test
def links_that_were_pinned_do_not_either():
    needs_root()
    made, pins = object_file(), bpf_folder("links")
    for shape in ((), ("--json",)):
        code, said = run_into("/dev/full", "load", "--pin", pins, "--attach", *shape, made)
        left = os.path.exists(pins)
        run("rm", "-rf", pins, binary=None)
        assert code == 1, (code, said)
        assert not left, "pins are left"


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except OSError:  # gone, perhaps between open() and read()
        return False


class Tool:
    """A command that runs `sleep`, up to the moment at which it watches that."""

    def __init__(self, *words):
        self.words = words
        reading, writing = os.pipe()
        self.p = subprocess.Popen([RB, *words, "--ready-fd", str(writing), "--", "sleep", "1000"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, pass_fds=(writing,))
        os.close(writing)
        self.ready = reading

    def workload(self):
        told = os.read(self.ready, 1)
        os.close(self.ready)
        assert told, (self.words, self.p.communicate(timeout=20))
        for _ in range(500):  # it is told to go right after that
            with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children") as f:
                for pid in f.read().split():
                    with open(f"/proc/{pid}/comm") as comm:
                        if comm.read() == "sleep\n":
                            return int(pid)
            time.sleep(0.01)
        raise AssertionError(f"{self.words}: starts nothing")


@test
def a_limit_of_a_files_size_is_the_error_of_a_write():
    needs_root()
    # More than the command can fill before its shell has said its number: what is written comes from the shell's own work.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # noqa: E731
    loop = ["--", "sh", "-c", "echo $$ >&3; exec 3>&-; while :; do read x </dev/null; done"]
    for words in (["btf", "dump", "--format", "c", "-o", path("limited")], ["profile", "-F", "999", "--json", "-o", path("limited"), *loop],
                  ["trace", "syscall:read", "--json", "-o", path("limited"), *loop]):
        read, write = os.pipe()
        p = subprocess.Popen([RB, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: (limit(), os.dup2(write, 3)),
                             pass_fds=[3] if "--" in words else [])
        os.close(write)
        _, said = p.communicate(timeout=30)
        child = os.read(read, 32).strip()
        os.close(read)
        assert p.returncode == 1 and b"EFBIG" in said, (words, p.returncode, said)
        assert not child or not alive(int(child)), words
        assert bool(child) == ("--" in words), words


KINDS = [("profile", "-F", "19", "-f", "folded"), ("profile", "--off-cpu", "-f", "folded"), ("trace", "tracepoint:sched:sched_process_exec"),
         ("trace", "syscall:execve", "--count"), ("custom", "--sample", "19", "libc.so.6:getpid")]


@test
def returns_of_coroutines_are_refused():
    needs_root()
    with open(path("coroutines.c"), "w") as f:
        f.write("#include <ucontext.h>\nstatic ucontext_t a, b;\nstatic char stack[65536];\n"
                "__attribute__((noinline)) int leave(int n) { swapcontext(&b, &a); return n; }\nstatic void run(void) { for (;;) leave(1); }\n"
                "int main(void) { getcontext(&b); b.uc_stack.ss_sp = stack; b.uc_stack.ss_size = sizeof stack; makecontext(&b, run, 0);\n"
                "for (int i = 0; i < 9; i++) swapcontext(&a, &b); return 0; }\n")
    subprocess.run(["gcc", "-O1", "-w", "-o", path("coroutines"), path("coroutines.c")], check=True)
    place = f"uprobe:{path('coroutines')}:leave"
    bad(3, "swapcontext", "trace", "-r", place, "--", path("coroutines"))
    assert good("trace", place, "--", path("coroutines")).out.count("leave(") == 9
    good("trace", "-r", "--list", "uprobe:libc.so.6:getpid")  # which has the function, and doesn't call it


@test
def no_signal_leaves_the_command_that_was_started():
    needs_root()
    catchable = [s for s in signal.Signals if s not in (
        signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGCHLD, signal.SIGURG,
        signal.SIGWINCH, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT,
        signal.SIGTRAP, signal.SIGSYS)]
    assert len(catchable) >= 14 and signal.SIGUSR1 in catchable and signal.SIGRTMIN in catchable, catchable
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, and what is ignored stays so
    # Those that can be caught end the run as Ctrl-C does; the others end the child all the same.
    tries = [(KINDS[0], s, True) for s in catchable] + [(KINDS[0], s, False) for s in (signal.SIGKILL, signal.SIGSEGV, signal.SIGSYS)]
    tries += [(kind, s, s != signal.SIGKILL) for kind in KINDS[1:] for s in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGKILL)]
    for at in range(0, len(tries), 6):
        started = [(Tool(*kind), s, whole) for kind, s, whole in tries[at:at + 6]]
        children = [(tool, tool.workload(), s, whole) for tool, s, whole in started]
        for tool, _, s, _ in children:
            tool.p.send_signal(s)
        for tool, pid, s, whole in children:
            _, said = tool.p.communicate(timeout=30)
            what = (tool.words, s, tool.p.returncode, said[-300:])
            if whole:
                assert tool.p.returncode == 0 and b"SIGTERM" in said, what
            else:
                assert tool.p.returncode == -s, what
            for _ in range(300):
                if not alive(pid):
                    break
                time.sleep(0.01)
            assert not alive(pid), what


@test
def what_nohup_ignores_stays_ignored():
    needs_root()
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    p = subprocess.Popen([RB, "profile", "-q", "-F", "19", "-f", "folded", "-o", path("nohup.folded"), "--", "sh", "-c",
                          "kill -HUP $PPID; sleep 0.2; kill -HUP $$; exit 7"], stderr=subprocess.PIPE, preexec_fn=ignore)
    _, said = p.communicate(timeout=30)
    assert p.returncode == 0 and b"SIG" not in said, (p.returncode, said)
