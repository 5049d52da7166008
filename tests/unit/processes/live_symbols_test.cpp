// Names of code made at run time, of a process that tells of none.
#include "programs/processes/live_symbols.h"

#include "runtime/sys/clock.h"
#include "runtime/sys/process.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::processes;

TEST_CASE("live symbols: a process that tells nothing of its code is asked again, without a warning") {
    LiveSymbols symbols;
    const auto pid = static_cast<uint32_t>(sys::own_pid());
    constexpr uint64_t kAddress = 0x7000'0000'1000;
    for (int round = 0; round < 3; ++round) { // names are asked for between samples
        CHECK_FALSE(symbols.in_memory(pid, kAddress, 0));
        CHECK(symbols.code_layer(pid, kAddress, sys::monotonic_ns()) == 0);
    }
    CHECK(symbols.warnings().empty());
    CHECK_FALSE(symbols.unread());
}
