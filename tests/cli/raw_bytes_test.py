"""Names and texts that others chose never reach a terminal or a text format raw: escape sequences, C1 controls, what isn't UTF-8."""
import os
import re
import shutil
import subprocess

from harness import *

NASTY = b"d\x1b[31m\x07\x9b2J\xff\xc2\x9b\x7f\n\xe2\x80\xae;e"

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
__attribute__((noinline)) long taken(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); return *text; }
int main(int argc, char **argv) {
    struct timespec now, end;
    prctl(PR_SET_NAME, argv[1]);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 150000000;
    do {
        for (int i = 0; i < 100; i++) taken(argv[1]);
        open(argv[1], O_RDONLY);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < 0);
    return 3;
}
"""


def raw(text):
    """The first byte that a terminal would obey or can't show, with what is around it; None: there is none."""
    try:
        found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text.decode())
        at = len(text.decode()[:found.start()].encode()) if found else None
    except UnicodeDecodeError as e:
        at = e.start
    return None if at is None else text[max(0, at - 60):at + 20]


@test
def nothing_that_others_chose_is_printed_raw():
    folder = os.fsencode(path("raw")) + b"/" + NASTY
    os.makedirs(folder, exist_ok=True)
    program, source, image, absent, broken = (folder + b"/" + name for name in (b"p", b"a.asm", b"a.o", b"absent", b"broken.o"))
    with open(path("raw.c"), "w") as f:
        f.write(PROGRAM)
    subprocess.run(["gcc", "-O1", "-w", "-o", path("raw-p"), path("raw.c")], check=True)
    shutil.copy(path("raw-p"), program)
    with open(source, "wb") as f:
        f.write(b"r0 = 0\nr1 = *(u64 *)(r2 + 0)\n" + NASTY.replace(b"\n", b"") + b"\nexit\n")
    with open(broken, "wb") as f:
        f.write(b"\x7fELF" + NASTY * 20)
    with open(path("raw-good.asm"), "wb") as f:
        f.write(b"r0 = 0\nexit\n")
    good("asm", path("raw-good.asm"), "-o", path("raw-good.o"))
    with open(path("raw-lines.asm"), "wb") as f:  # lines of the source go into the object
        f.write(b".program p \"socket\"\nr0 = 0 # " + NASTY.replace(b"\n", b"") + b"\nexit\n")
    good("asm", path("raw-lines.asm"), "-o", path("raw-lines.o"))
    with open(path("raw-lines.o"), "rb") as f:
        assert b"\xff\xc2\x9b" in f.read()
    shutil.copy(path("raw-good.o"), image)
    run_it = [b"--", program, NASTY]
    commands = [[command, file] for command in ("asm", "disasm", "load", "exec", "inspect", "link", "doctor", "report", "custom")
                for file in (source, image, absent, broken, program)]
    commands += [[*words, path("raw-lines.o")] for words in (["inspect", "-v"], ["disasm", "--source"], ["disasm", "--cfg"], ["step", "--trace"],
                                                             ["load", "-v"], ["exec"])]
    commands += [["btf", "dump", file] for file in (image, absent, program)] + [["usdt", "list", file] for file in (program, absent)]
    commands += [["link", "-o", folder + b"/none/out.o", image, image], ["profile", "-F", "999", "-o", folder + b"/none/x", *run_it],
                 [NASTY], ["profile", b"--" + NASTY], ["trace", b"uprobe:" + program + b":none"], ["trace", NASTY], ["helper", NASTY]]
    if has_json():
        for shape in ("text", "json", "chrome", "folded", "svg", "top"):
            commands.append(["trace", "-f", shape, "-r", b"uprobe:" + program + b":taken", "--sig", "long (const char *text)", *run_it])
        commands += [["trace", "syscall:openat", *run_it], ["trace", "--count", "syscall:openat", *run_it], ["trace", "--syscalls", "-q", "-o", "/dev/null",
                     b"uprobe:" + program + b":taken", *run_it]]
        commands += [["profile", "-F", "999", "-f", shape, *run_it] for shape in ("folded", "json", "svg", "top")]
        commands += [["profile", "--off-cpu", *run_it], ["profile", "-F", "999", "--record", path("raw.cap"), *run_it], ["report", path("raw.cap")]]
    bad, quiet = [], 0
    for command in commands:
        r = subprocess.run([RB, *command], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        assert r.returncode >= 0, (command, r.returncode)
        quiet += not r.stdout and not r.stderr
        for what, text in (("stdout", r.stdout), ("stderr", r.stderr)):
            if (found := raw(text)) is not None:
                bad.append(f"{b' '.join(w if isinstance(w, bytes) else w.encode() for w in command)!r}: {what}: {found!r}")
    assert not bad, "\n".join(bad)
    assert quiet < len(commands) / 4, f"{quiet} of {len(commands)} printed nothing"
