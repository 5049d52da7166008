"""Waits of many threads: none is lost, whatever their number. They sleep long, so that two cores have time for others."""
from harness import *

THREADS = r"""
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>
int main(int, char **words) {
    std::vector<std::thread> all;
    const int rounds = atoi(words[2]);
    for (int i = atoi(words[1]); i-- > 0;)
        all.emplace_back([=] {
            for (int round = 0; round < rounds; ++round) std::this_thread::sleep_for(std::chrono::milliseconds(400));
        });
    for (std::thread &thread : all) thread.join();
}
"""


@test
def off_cpu_has_room_for_thousands_of_threads():
    program = compile_program("many_threads", THREADS, "-pthread")
    for threads, rounds in ((1000, 3), (5000, 5)):
        r = good("profile", "--off-cpu", "-f", "folded", "--", "timeout", "30", program, str(threads), str(rounds))
        fired, lost = (int(re.search(rf"^  {word} +([\d,]+)", r.err, re.M)[1].replace(",", "")) for word in ("fired", "lost"))
        # Each sleep is a wait, and lasts.
        assert fired >= threads * rounds and lost == 0, r.err
        slept = sum(int(line.rsplit(" ", 1)[1]) for line in r.out.splitlines() if line.startswith("many_threads;"))
        assert slept >= threads * rounds * 400_000, (slept, r.err)


FIRST = r"""
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
__attribute__((noinline)) int nap_at_once() { usleep(250000); asm volatile("" ::: "memory"); return 1; }
__attribute__((noinline)) int begins() { return nap_at_once() + 1; }
__attribute__((noinline)) int child_begins() { return nap_at_once() + 2; }
}
int main() {
    int sum = begins();
    for (int i = 0; i < 4; ++i) {
        const pid_t child = fork();
        if (child == 0) _exit(child_begins() == 0);
        waitpid(child, nullptr, 0);
    }
    return sum == 0;
}
"""


@test
def off_cpu_first_waits_have_whole_stacks():
    """What a command waits for first, and each of its children: before anybody can know what they have mapped."""
    if os.uname().machine != "x86_64":
        raise Skip("arm64's compilers keep frame pointers where a function calls")
    program = compile_program("first_waits", FIRST, "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
    good("profile", "--off-cpu", "--json", "-q", "-o", path("first"), "--", "sh", "-c", f"{program}; {program}")
    waits = [r for r in rows("first") if r["type"] == "sample" and r["weight"] >= 200_000_000]
    naps = [w for w in waits if "nap_at_once" in stack_names(w)]
    assert len(naps) == 10, [(w["comm"], w["weight"], stack_names(w)) for w in waits]
    for caller, count in (("begins", 2), ("child_begins", 8)):
        assert sum({caller, "main"} <= set(stack_names(w)) for w in naps) == count, [stack_names(w) for w in naps]
    # The shell's own first wait is for the program, and most of the run.
    time = sum(w["weight"] for w in waits)
    rooted = sum(w["weight"] for w in waits if w.get("user_end") == "root")
    assert rooted >= 0.99 * time, [(w["comm"], w["weight"], w.get("user_end"), stack_names(w)) for w in waits]
