// A project around an experiment: a question that can be swept, repeated and compared, and that runs also without privileges.
// Nothing is built: `make` checks the text.
#include "programs/starter/starter.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::starter {
namespace {

constexpr std::string_view kHead = R"(# What does adding up numbers in a loop cost?
param n = 100                      # how many numbers: --set n=100,1000 measures both

)";
constexpr std::string_view kText = R"(map sums array key u32 value u64 entries 1

asm {
.program add_up "xdp"
    r6 = 0                         # the sum
    r7 = 0
again:
    r7 += 1
    r6 += r7
    if r7 < $n goto again
    *(u32 *)(r10 - 4) = 0          # the key, on the stack
    r1 = sums ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem       # r0: the address of the value, or 0
    if r0 == 0 goto out
    *(u64 *)(r0 + 0) = r6
out:
    r0 = 2                         # XDP_PASS
    exit
}
)";
constexpr std::string_view kC = R"(c {
#include <rawbpf/bpf.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} sums SEC(".maps");

SEC("xdp")
int add_up(struct xdp_md *packet)
{
    (void)packet;
    __u64 sum = 0;
    __u32 key = 0;
    for (__u64 i = 1; i <= $n; i++) {
        sum += i;
        __asm__ volatile("" : "+r"(sum)); // clang knows the formula, and would measure it
    }
    __u64 *place = bpf_map_lookup_elem(&sums, &key);
    if (place)
        *place = sum;
    return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
}
)";
constexpr std::string_view kTail = R"(attach add_up nowhere              # it runs when a step says so

packet 00112233445566778899aabbccdd to add_up times 1000
print "the sum is {sums[0]}"
measure ns = packet.ns
expect sums[0] == $n * ($n + 1) / 2
expect packet.result == 2
)";

constexpr std::string_view kMakefile = R"make(RAWBPF ?= rawbpf

check:
	$(RAWBPF) run --check @NAME@.exp

run:
	$(RAWBPF) run @NAME@.exp

# Each value twenty times, in turn; then what differs beyond noise.
sweep:
	$(RAWBPF) run --set n=100,200 --repeat 20 --json -o sweep.json @NAME@.exp
	$(RAWBPF) compare sweep.json

test: check
	RAWBPF="$(RAWBPF)" sh ./test.sh

clean:
	rm -f sweep.json

.PHONY: check run sweep test clean
)make";
constexpr std::string_view kTest = R"sh(#!/bin/sh
# Exit status 0: what the experiment expects holds. Without root, only in the emulator.
set -eu
rawbpf=${RAWBPF:-rawbpf}
fail() { echo "FAIL: $*"; exit 1; }
"$rawbpf" run --emulate --set n=10 @NAME@.exp | grep -q "the sum is 55" || fail "the sum of 1 to 10 isn't 55"
"$rawbpf" run --emulate @NAME@.exp >/dev/null || fail "what it expects doesn't hold in the emulator"
[ "$(id -u)" = 0 ] || { echo "PASS (in the emulator; run it as root to ask the kernel)"; exit 0; }
"$rawbpf" run @NAME@.exp >/dev/null || fail "what it expects doesn't hold in the kernel"
echo PASS
)sh";
constexpr std::string_view kReadme = R"(# @NAME@

An experiment that measures what a loop costs.

```
make         # is the text right?
make test    # does what it expects hold?
make run     # carries it out (as root; sudo make run)
make sweep   # with two values of its parameter, twenty times each, and what differs
```

`rawbpf run --emulate @NAME@.exp` needs no privileges. `rawbpf help experiment` describes the language, and `rawbpf run --list` names experiments to learn
from.
)";

} // namespace

Result<std::vector<File>> experiment_files(Language language) {
    if (language == Language::dsl)
        return Unexpected(make_error(Errc::invalid_argument, "an experiment is text, not C++",
                                     "--asm and --c write one with a program in assembly or in C"));
    const std::string source(language == Language::c ? kC : kText);
    return std::vector<File>{{"@NAME@.exp", std::string(kHead) + source + std::string(kTail)},
                             {"Makefile", std::string(kMakefile)},
                             {"test.sh", std::string(kTest), true},
                             {"README.md", std::string(kReadme)}};
}

} // namespace rawbpf::inline v0::starter
