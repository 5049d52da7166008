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
