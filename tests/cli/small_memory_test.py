"""Every command within an address space of 32 MB, as on a small board: it works, or it says in a sentence what it lacks."""
from harness import *

LIMIT = 32 << 20
PROGRAM = """.map calls array key u32 value u64 entries 1
.program p "tp/sched/sched_process_exec"
    r0 = 0
    exit
"""
EXPERIMENT = "asm {\nr0 = 7\nexit\n}\npacket 00\nexpect packet.result == 7\n"


@test
def commands_within_32_megabytes():
    with open(path("small.asm"), "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    with open(path("small.exp"), "w", encoding="utf-8") as file:
        file.write(EXPERIMENT)
    capture = path("small.rec")
    works = [("doctor",), ("load", path("small.asm")), ("load", "--attach", "-d", "0.2", path("small.asm")), ("prog", "list"), ("map", "list"), ("link", "list"),
             ("run", "--emulate", path("small.exp")), ("trace", "-d", "0.5", "tracepoint:sched:sched_process_exec"), ("profile", "-F", "99", "--", "true"),
             ("profile", "-F", "99", "--record", capture, "--", "true"), ("report", capture, "-f", "top"), ("help",), ("isa",), ("lab", "list"),
             ("asm", path("small.asm"), "-o", path("small.o")), ("disasm", path("small.o")), ("inspect", path("small.o")), ("bundle", path("small.o"), "-o", path("small.h")),
             ("exec", "--packet", path("small.asm"), "00")]
    says = [("profile", "-F", "99", "-d", "0.3", "-f", "top"), ("profile", "-F", "99", "-d", "0.3", "--record", capture), ("verify", path("small.asm")),
            ("btf", "dump", "vmlinux", "task_struct"), ("top", "-d", "0.3"), ("usdt", "list", "/bin/ls"), ("explain", path("small.asm")), ("draw", path("small.o"))]
    for command in works + says:
        if needs_root_for(command) and os.geteuid() != 0:
            continue
        r = run("sh", "-c", f'ulimit -v {LIMIT >> 10} && exec "$0" "$@"', RB, *command, binary=None)
        assert "internal error" not in r.err and r.code in (0, 1, 2, 3), (command, r.code, r.err[-300:])
        if command in works and command[:1] != ("exec",):
            assert r.code == 0, (command, r.code, r.err[-300:])
        elif r.code != 0:
            assert r.err.startswith("rawbpf "), (command, r.err)


@test
def a_large_program_does_not_take_the_last_of_the_memory():
    """Files that just fit into what is left, with so many symbols that the next thing needs memory."""
    if os.geteuid() != 0:
        raise Skip("profiles the whole machine")
    functions = "".join(f".type a_function_with_a_long_name_{i}, @function\na_function_with_a_long_name_{i}: nop\n" for i in range(40000))
    program = compile_program("many_symbols", f'__asm__(R"(.text\n{functions})");\nint main() {{ for (volatile long n = 0;; n = n + 1) {{}} }}\n')
    for megabytes in (6, 12, 14, 15, 16, 20):
        os.truncate(program, megabytes << 20)
        burner = subprocess.Popen([program])
        try:
            r = run("sh", "-c", f'ulimit -v {LIMIT >> 10} && exec "$0" profile -F 99 -d 0.3 -f top', RB, binary=None)
        finally:
            burner.kill()
            burner.wait()
        assert "out of memory" not in r.err and r.code in (0, 1), (megabytes, r.code, r.err)
        assert "many_symbols" in r.out + r.err, (megabytes, r.out, r.err)


def needs_root_for(command):
    return command[0] in ("load", "prog", "map", "link", "trace", "profile", "top", "verify", "btf")
