"""A kernel that can't be seen: /sys covered, /proc covered or of processes only, no privileges. What isn't seen isn't said to be missing.

Each command runs as ever and then in mount namespaces of its own (and as nobody). What it says there of the kernel, it must say of the
same kernel that can be seen, or not at all.
"""
import functools
import os
import re
import shutil

from harness import *

# What nobody can know who can't see the kernel's files.
CLAIM = re.compile(r"this kernel (?:has no|was built without|has only|knows no|takes no|attaches to)[^;,.:(]*|"
                   r"(?:the kernel|this architecture) (?:(?:has|knows) no|doesn't know)[^;,.:(]*|not (?:built )?in(?:to)? this kernel|"
                   r"no such \w+(?: \w+)? in this kernel|no kernel function|no tracepoints[^;,.:(]*|is mounted nowhere|isn't in the kernel's BTF|no released kernel")
ROOT = os.geteuid() == 0

# What covers the kernel's files, as the shell does it in a mount namespace of its own.
COVERS = {
    "no /sys": "mount -t tmpfs none /sys",
    "no /sys/kernel": "mount -t tmpfs none /sys/kernel; mount -t tmpfs none /sys/bus; mount -t tmpfs none /sys/devices",
    "a /proc of processes": "mount -t proc -o subset=pid none /proc",
    "emptied files": "mount -t tmpfs none /proc/sys; for f in cpuinfo loadavg kallsyms; do mount --bind /dev/null /proc/$f; done",
}


@functools.lru_cache(None)
def without_mounts():
    """Why nothing can be covered here; None: it can. In a chroot, "/" is no mount."""
    if not ROOT:
        return "needs root"
    there = run("-m", "true", binary="unshare")
    return None if there.code == 0 else f"needs mounts of its own: {there.err.strip()}"


def covered(cover, *words):
    script = f"set -e; mount --make-rprivate /; {COVERS[cover]}; exec \"$@\""
    return run("-m", "sh", "-c", script, "sh", *words, binary="unshare", timeout=30)


def program(name, section):
    with open(path(name), "w") as f:
        f.write(f'.license "GPL"\n.program {name.split(".")[0]} "{section}"\n    r0 = 0\n    exit\n')
    return ["load", "--attach", "-d", "0.01", path(name)]


@functools.lru_cache(None)
def commands():
    true = shutil.which("true")
    sections = ("fentry/vfs_read", "kprobe/vfs_read", "kprobe.multi/vfs_read*", "uprobe.multi//bin/sh:*getpid*", "raw_tp/sched_switch",
                "tracepoint/sched/sched_switch", "iter/task", "lsm/file_open", "tp_btf/sched_switch", "ksyscall/getpid", "kprobe.session/vfs_read*")
    return [["helper", "bpf_loop"], ["btf", "dump", "vmlinux"], ["btf", "dump", "no_such_module"], ["exec", "--in-kernel", "-"],
            ["profile", "-d", "0.02", "-f", "folded"], ["profile", "--hw", "-d", "0.02"], ["profile", "-e", "tracepoint:sched:sched_switch", "-d", "0.02"],
            ["profile", "--off-cpu", "-d", "0.02", "-f", "folded"], ["trace", "tracepoint:sched:sched_switch", "-d", "0.02", "-q"],
            ["trace", "syscall:getppid", "-d", "0.02"], ["trace", "kprobe:vfs_read", "-d", "0.02"], ["trace", "vfs_read", "-d", "0.02"],
            ["trace", "uprobe:libc:getppid", "-d", "0.02"], ["trace", "--list", "tracepoint:sched:*"],
            ["custom", "/bin/sh:main", "-d", "0.02", "-f", "folded"], ["usdt", "list", true]] + [
                program(f"s{i}.asm", section) for i, section in enumerate(sections)]


def claims(r):
    return set(CLAIM.findall(r.out + r.err))


@functools.lru_cache(None)
def claims_in_the_open(words):
    return claims(run(*words))


def judge(where, words, there):
    said = claims(there) - claims_in_the_open(tuple(words))
    assert there.code >= 0 and there.code < 126, f"{where}: {' '.join(words)}: status {there.code}: {there.err[-300:]}"
    return [f"{where}: {' '.join(words)}: says {sorted(said)}: {there.err[-500:]}"] if said else []


def doctor_of(r):
    lines = [json.loads(line) for line in r.out.splitlines()]
    return lines[0]["environment"], {(line["group"], line["name"]): line for line in lines if line["type"] == "check"}


@functools.lru_cache(None)
def doctor_in_the_open():
    return doctor_of(run("doctor", "--json"))


MOUNTS = {("files", name) for name in ("/proc", "/sys", "tracefs", "bpffs")}


def judge_doctor(where, there, privileged):
    """What it says that isn't here wasn't here before; and the header's environment says what could not be read."""
    (environment, checks), (seen, known) = doctor_of(there), doctor_in_the_open()
    wrong = [line for key, line in checks.items() if line["ok"] is False and known[key]["ok"] is not False
             and key not in MOUNTS and (privileged or key[0] not in ("privileges", "policies"))]
    # A "?" of a kernel that is seen would be one, and a fix in the place of a fact one more.
    out = [f"{where}: doctor: {line}" for line in wrong]
    out += [f"{where}: environment: {field} is null, and nothing says why: {environment}" for field, value in environment.items()
            if value is None and seen[field] is not None and field not in environment["unread"]]
    out += [f"{where}: environment: {why}" for why in environment["unread"].values() if not why.strip()]
    return out


@test(long=True)
def what_is_covered_is_not_said_to_be_missing():
    if without_mounts():
        raise Skip(without_mounts())
    wrong = []
    for cover in COVERS:
        for words in commands():
            wrong += judge(cover, words, covered(cover, RB, *words))
        wrong += judge_doctor(cover, covered(cover, RB, "doctor", "--json"), True)
    assert not wrong, "\n".join([f"{len(wrong)}:"] + wrong)


@test
def what_nobody_may_see_is_not_said_to_be_missing():
    if not ROOT:
        raise Skip("needs root")
    wrong = []
    for words in commands():
        wrong += judge("nobody", words, as_nobody(*words))
    wrong += judge_doctor("nobody", as_nobody("doctor", "--json"), False)
    assert not wrong, "\n".join([f"{len(wrong)}:"] + wrong)


@test
def a_file_that_nobody_may_see_is_not_said_to_be_missing():
    if not ROOT:
        raise Skip("needs root")
    os.makedirs(path("locked"), mode=0o700)
    r = as_nobody("btf", "dump", path("locked/prog.o"))
    assert r.code != 0 and "Permission denied" in r.err and "there is no file" not in r.err, r.err


@test
def the_environment_says_what_could_not_be_read():
    if without_mounts():
        raise Skip(without_mounts())
    environment, _ = doctor_of(covered("emptied files", RB, "doctor", "--json"))
    assert environment["load"] is None and environment["cpu"] is None, environment
    assert environment["unread"]["load"] == "/proc/loadavg is empty" and "/proc/cpuinfo" in environment["unread"]["cpu"], environment
    assert "no procfs at /proc/sys" in environment["unread"]["bpf_jit"], environment
    environment, _ = doctor_of(covered("no /sys", RB, "doctor", "--json"))
    assert environment["mitigations"] is None and "no sysfs at /sys" in environment["unread"]["mitigations"], environment
    environment, _ = doctor_in_the_open()
    assert environment["mitigations"] is not None and len(environment["load"]) == 3, environment
