"""System calls by number: one program at each end, whatever the pattern."""
import os
import re
import subprocess
import sys

from harness import *

CALLS = "/sys/kernel/tracing/events/syscalls"


def events_of(*args):
    good("trace", *args[:args.index("--")], "--json", "-q", "-o", path("calls"), *args[args.index("--"):])
    seen = rows("calls")
    return [e for e in seen if e["type"] in ("call", "return")], ledger_of(seen)


@test
def system_calls_by_number_need_two_attachments_for_all_of_them():
    if not os.path.isdir(CALLS):
        raise Skip("needs tracefs with system calls")
    r = good("trace", "syscall:*", "--count", "--syscalls", "-d", "0.05", "--", "sleep", "0.1")
    assert r.err.count("BPF_RAW_TRACEPOINT_OPEN") <= 2, r.err.count("BPF_RAW_TRACEPOINT_OPEN")
    # Calls that are newer than the table, and the two tracepoints that follow forks.
    assert r.err.count("perf_event_open") < 40, r.err.count("perf_event_open")


@test
def tracepoints_of_system_calls_need_two_attachments_for_all_of_them():
    """One for each would be taken down one after the other by the kernel, 35 ms each, whatever the trace was about."""
    if not os.path.isdir(CALLS):
        raise Skip("needs tracefs with system calls")
    unknown = 20  # calls that are newer than the table
    for pattern, most in ("sys_enter_*", 1), ("sys_exit_*", 1), ("*", 2):
        for how in ["--count"], ["--stack", "-f", "folded"], []:
            r = good("trace", f"tracepoint:syscalls:{pattern}", *how, "--syscalls", "-o", "/dev/null", "--", "true")
            shared = r.err.count('BPF_RAW_TRACEPOINT_OPEN, {name="sys_')
            assert 1 <= shared <= most, (pattern, how, shared)
            own = r.err.count("perf_event_open({type=PERF_TYPE_TRACEPOINT")
            assert own < 2 * unknown + 2, (pattern, how, own)  # and the two that follow forks


@test
def tracepoints_of_system_calls_show_the_same_by_number_and_by_their_own():
    """Beside `syscall:NAME` the tracepoints of that call are attached by themselves: both ways show names, types and values alike."""
    if not os.path.isdir(CALLS):
        raise Skip("needs tracefs with system calls")
    script = ("import os; fd = os.open('/etc/passwd', os.O_RDONLY | os.O_CLOEXEC); os.pread(fd, 3, 4); os.lseek(fd, 5, 1);"
              "os.umask(0o22)\ntry: os.rmdir('/nonexistent/xyz')\nexcept OSError: pass")
    calls = ["pread64", "umask", "rmdir", "openat", "lseek"]
    tracepoints = [f"tracepoint:syscalls:sys_{end}_{call}" for call in calls for end in ("enter", "exit")]
    ways = {}
    for way, also in ("by number", []), ("by their own", [f"syscall:{call}" for call in calls]):
        r = good("trace", *tracepoints, *also, "--json", "-q", "--stack", "--syscalls", "-o", path("calls"), "--", sys.executable, "-S",
                 "-c", script)
        own = r.err.count("perf_event_open({type=PERF_TYPE_TRACEPOINT")
        assert own <= 2 if not also else own >= len(tracepoints), (way, own)  # two follow forks
        seen = [e for e in rows("calls") if e["type"] == "call" and e["probe"].startswith("tracepoint:")]
        last = {e["function"]: e for e in seen}
        arguments = {name: [(a["name"], a["type"], a["value"], a.get("text")) for a in e["args"]] for name, e in last.items()}
        opened = [[(a["name"], a["value"], a.get("text")) for a in e["args"]] for e in seen if e["function"] == "sys_enter_openat"]
        opened = [args for args in opened if args[1][1] == "/etc/passwd"]
        assert opened[0][0] == ("dfd", -100, "AT_FDCWD") and opened[0][2][2] == "O_RDONLY|O_CLOEXEC", (way, opened)
        assert [a[0] for a in arguments["sys_enter_lseek"]] == ["fd", "offset", "whence"], (way, arguments["sys_enter_lseek"])
        assert arguments["sys_exit_rmdir"][0][2] == -2 and arguments["sys_enter_umask"][0][2] == 0o22, (way, arguments)
        assert arguments["sys_exit_pread64"][0][2] == 3, (way, arguments["sys_exit_pread64"])
        event = last["sys_exit_umask"]
        assert event["ret"] is None and event["depth"] is None and event["stack"]["user"], event
        stack = [f["symbol"] for f in event["stack"]["kernel"] if not (f["symbol"] or "").startswith("perf_")]
        assert not any("bpf_" in (symbol or "") for symbol in stack), (way, stack)
        ways[way] = [arguments[f"sys_{end}_{call}"] for call in ("umask", "rmdir") for end in ("enter", "exit")], opened, stack
    assert ways["by number"] == ways["by their own"], ways


@test
def system_calls_by_number_have_their_own_names_arguments_and_results():
    script = ("import os; fd = os.open('/etc/passwd', os.O_RDONLY | os.O_CLOEXEC); os.read(fd, 77); os.lseek(fd, 5, 1);"
              "os.getppid(); os.umask(0o22)\ntry: os.rmdir('/nonexistent/xyz')\nexcept OSError: pass")
    command = ["--", sys.executable, "-c", script]
    for pattern in (["syscall:*"], ["syscall:openat", "syscall:read", "syscall:lseek", "syscall:getppid", "syscall:rmdir",
                                    "syscall:umask"]):
        seen, ledger = events_of(*pattern, "-r", *command)
        ours = {}
        for e in seen:
            ours.setdefault((e["type"], e["function"]), []).append(e)
        opened = [e for e in ours["call", "openat"] if e["args"][1]["value"] == "/etc/passwd"]
        assert opened and opened[0]["args"][2]["text"].startswith("O_RDONLY|O_CLOEXEC"), opened
        read_ = [e for e in ours["call", "read"] if e["args"][2]["value"] == 77]
        assert len(read_) == 1 and read_[0]["args"][0]["target"] == "/etc/passwd", read_
        assert [e["args"][1]["value"] for e in ours["call", "lseek"] if e["args"][2]["value"] == 1][-1] == 5
        assert [e["args"][0]["value"] for e in ours["call", "umask"]] == [0o22]
        assert ours["return", "getppid"][-1]["ret"] > 0
        assert [e["ret"] for e in ours["return", "rmdir"]] == [-2], ours["return", "rmdir"]
        assert ledger["functions"]["rmdir"]["shown"] == 2, ledger["functions"]["rmdir"]


@test
def paths_behind_descriptors_end_where_there_is_no_more_room():
    if not os.path.isdir(CALLS):
        raise Skip("needs tracefs with system calls")
    deep = [f"x{i}" for i in range(40)]  # more than the walk has steps
    long = ["a" * 200, "b" * 100, "c" * 200]  # more than there is room for, and than a name may have
    files = [os.path.join(path("folders"), *names, "f") for names in (["near"], deep, long)]
    for file in files:
        os.makedirs(os.path.dirname(file))
        open(file, "w").close()
    script = f"import os\nfor f in {files!r}: os.pread(os.open(f, os.O_RDONLY), 77, 0)\nr, w = os.pipe()\ntry: os.pread(r, 77, 0)\nexcept OSError: pass"
    seen, _ = events_of("syscall:pread64", "--filter", "count == 77", "--", sys.executable, "-S", "-c", script)
    targets = [e["args"][0].get("target") for e in seen]
    assert targets[0] == os.path.realpath(files[0]), targets
    assert targets[1] == ".../" + "/".join([*deep[-31:], "f"]), targets
    assert targets[2] == ".../" + "/".join(["a" * 127, "b" * 100, "c" * 127, "f"]), targets
    assert targets[3].startswith("pipefs:"), targets


@test
def system_calls_of_a_command_begin_with_its_exec():
    """What rawbpf's copy does for it before, and the wait for its start, are rawbpf's."""
    if not os.path.isdir(CALLS):
        raise Skip("needs tracefs with system calls")
    command = ["--", "true"]  # somewhere in PATH
    for how in [], ["-r"]:
        seen, ledger = events_of("syscall:*", *how, *command)
        assert (seen[0]["type"], seen[0]["function"]) == ("call", "execve"), seen[:3]
        calls = [e for e in seen if e["type"] == "call"]
        assert sum(e["function"] == "execve" for e in calls) == 1, calls[:5]
        assert [e["function"] for e in seen if e["comm"] == seen[0]["comm"]] == ["execve"], seen[:5]
        assert "call_missed" not in ledger["degraded"], ledger["degraded"]
        if how:
            assert [(e["ret"], e["depth"]) for e in seen if e["function"] == "execve" and e["type"] == "return"] == [(0, 0)], seen[:4]
    # Neither does it count as one of so many.
    for most in 1, 5:
        seen, _ = events_of("syscall:*", "-r", "--max-events", str(most), "--", "sleep", "60")
        assert len(seen) == most and seen[0]["function"] == "execve", seen
    seen, _ = events_of("syscall:write", "syscall:read", "-r", "--", sys.executable, "-S", "-c", "import os; os.write(1, b'abc')")
    assert all(e["duration_ns"] for e in seen if e["type"] == "return"), [e for e in seen if e["type"] == "return"][:2]


@test
def system_calls_by_number_are_filtered_paired_and_counted():
    script = "import os\nfor i in range(50):\n  os.umask(i)\nfor i in range(7):\n  try: os.rmdir('/nonexistent/%d' % i)\n  except OSError: pass"
    command = ["--", sys.executable, "-c", script]
    seen, _ = events_of("syscall:umask", "syscall:rmdir", "--filter", "arg0 < 10", *command)
    assert sum(e["function"] == "umask" for e in seen) == 10
    seen, _ = events_of("syscall:*", "--errors", *command)
    failed = [e for e in seen if e["function"] == "rmdir"]
    assert len(failed) == 7 and failed[3]["args"][0]["value"] == "/nonexistent/3" and failed[3]["duration_ns"] > 0, failed
    r = good("trace", "syscall:*", "--count", *command)
    assert re.search(r"umask +: 50 calls", r.out) and re.search(r"rmdir +: 7 calls", r.out), r.out[:600]
    r = good("trace", "syscall:umask", "syscall:rmdir", "--latency", *command)
    assert "umask: 50 calls" in r.out and "rmdir: 7 calls" in r.out, r.out[-600:]


@test
def system_calls_of_32_bit_programs_are_not_taken_for_others():
    source = "int main(void) { for (int i = 0; i < 9; ++i) __asm__ volatile(\"int $0x80\" : : \"a\"(39)); return 0; }"
    if os.uname().machine != "x86_64":
        raise Skip("int $0x80 is x86's")
    program = compile_program("compat", source)
    if subprocess.run([program]).returncode != 0:
        raise Skip("this kernel runs no 32-bit system calls")
    seen, _ = events_of("syscall:getpid", "syscall:mkdir", "--", program)  # 39: getpid here, mkdir there
    assert not seen, seen[:2]


@test
def system_call_numbers_are_those_of_the_headers():
    table = os.path.join(HERE, "../../programs/trace/system_calls.cpp")
    rows_ = re.findall(r'\{"(\w+)", (-?\d+), (-?\d+)\}', open(table).read())
    assert len(rows_) > 350
    defined = subprocess.run([CXX, "-dM", "-E", "-x", "c", "-"], input="#include <asm/unistd.h>\n", capture_output=True, text=True).stdout
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)\n", defined)}
    column = {"x86_64": 1, "aarch64": 2}[os.uname().machine]
    other = {"newstat": "stat", "newfstat": "fstat", "newlstat": "lstat", "sendfile64": "sendfile", "newuname": "uname",
             "umount": "umount2", "sysctl": "_sysctl", "fadvise64_64": "fadvise64", "arm64_personality": "personality"}
    checked = 0
    for row in rows_:
        name = row[0] if row[0] in numbers else other.get(row[0], row[0])
        if name in numbers and int(row[column]) >= 0:
            assert numbers[name] == int(row[column]), (row, numbers[name])
            checked += 1
    assert checked > 290, checked
    if os.path.isdir(CALLS):
        known = {row[0] for row in rows_ if int(row[column]) >= 0}
        unknown = [n[10:] for n in os.listdir(CALLS) if n.startswith("sys_enter_") and n[10:] not in known]
        assert len(unknown) < 20, unknown


@test
def paths_end_at_the_root_of_the_process():
    if os.geteuid() != 0:
        raise Skip("needs root")
    os.makedirs(path("a-root/etc"))
    with open(path("a-root/etc/inside"), "w") as f:
        f.write("x" * 100)
    script = (f"import os; os.read(os.open('{path('a-root/etc/inside')}', 0), 71); os.chroot('{path('a-root')}'); os.chdir('/');"
              "fd = os.open('/etc/inside', 0); os.read(fd, 72); os.fchdir(os.open('/', os.O_RDONLY))")
    seen, _ = events_of("syscall:read", "syscall:fchdir", "--", sys.executable, "-c", script)
    found = {e["args"][2]["value"]: e["args"][0].get("target") for e in seen if e["function"] == "read"}
    assert found.get(71) == path("a-root/etc/inside") and found.get(72) == "/etc/inside", found
    assert [e["args"][0].get("target") for e in seen if e["function"] == "fchdir"] == ["/"], seen
