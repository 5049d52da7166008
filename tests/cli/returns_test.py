"""Calls and their returns: which belong together, and what is said of those that are alone."""
import signal

from harness import *

DEEP = r"""
#include <cstdlib>
#include <unistd.h>
extern "C" __attribute__((noinline)) int deep(int n) {
    const int inner = n ? deep(n - 1) + 1 : 0;
    asm volatile("");
    return inner;
}
extern "C" __attribute__((noinline)) int leave(int status) { _exit(status); }
extern "C" __attribute__((noinline)) int rest(int seconds) { return static_cast<int>(sleep(seconds)) + 1; }
int main(int count, char **words) {
    const int n = std::atoi(words[1]);
    for (int i = 0; i < 3; ++i) deep(n);
    if (count > 2) rest(60);
    leave(0);
}
"""


@test
def returns_of_a_deep_recursion_are_their_own_calls():
    program = compile_program("deep_returns", DEEP, "-fno-optimize-sibling-calls")
    for depth in (10, 100):
        r = good("trace", "-r", f"uprobe:{program}:deep", "--sig", "int (int n)", "--json", "--", program, str(depth))
        objects = [json.loads(line) for line in r.out.splitlines()]
        returns = [o for o in objects if o["type"] == "return"]
        # deep(n) returns n, and is at depth - n.
        assert len(returns) == 3 * min(64, depth + 1), len(returns)
        for o in returns:
            assert o["depth"] == depth - o["ret"], o
        unseen = 3 * max(0, depth + 1 - 64)
        assert ledger_of(objects)["degraded"] == ({"nested_too_deep": unseen} if unseen else {}), objects[-1]


REPLACED = r"""
#include <thread>
#include <unistd.h>
extern "C" __attribute__((noinline)) int leap(const char *to) { return execl("/bin/sh", "sh", "-c", to, nullptr) + 1; }
int main(int, char **words) {
    if (words[2]) std::thread([&] { leap(words[1]); }).join();
    leap(words[1]);
}
"""


@test
def calls_that_begin_another_program_say_so():
    """Whether that one has ended when the trace does, or goes on; also from a thread, which takes the process's number then."""
    program = compile_program("leap", REPLACED, "-pthread")
    for arguments in (["exit 0"], ["exit 0", "in a thread"]):
        r = good("trace", "-r", f"uprobe:{program}:leap", "--json", "--allow-unwind-risk", "--", program, *arguments)
        assert ledger_of([json.loads(line) for line in r.out.splitlines()])["degraded"] == {"began_another_program": 1}, r.out
    p = subprocess.Popen([RB, "trace", "-r", f"uprobe:{program}:leap", "--json", "-q", "--allow-unwind-risk", "--", program,
                          "echo here >&2; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stderr.readline() == b"here\n"
    p.send_signal(signal.SIGINT)
    rows = [json.loads(line) for line in p.communicate(timeout=30)[0].splitlines()]
    assert ledger_of(rows)["degraded"] == {"began_another_program": 1}, rows


@test
def calls_without_a_return_say_why():
    program = compile_program("deep_returns", DEEP, "-fno-optimize-sibling-calls")
    r = good("trace", "-r", f"uprobe:{program}:leave", "--json", "--", program, "1")
    assert ledger_of([json.loads(line) for line in r.out.splitlines()])["degraded"] == {"thread_ended_in_call": 1}, r.out
    p = subprocess.Popen([RB, "trace", "-r", f"uprobe:{program}:rest", "--json", "--", program, "1", "rest"], stdout=subprocess.PIPE)
    lines = []
    while '"function":"rest"' not in (lines[-1] if lines else ""):
        lines.append(p.stdout.readline().decode())
        assert lines[-1], lines
    p.send_signal(signal.SIGINT)
    lines += p.communicate(timeout=30)[0].decode().splitlines()
    assert ledger_of([json.loads(line) for line in lines if line])["degraded"] == {"call_goes_on": 1}, lines[-1]
