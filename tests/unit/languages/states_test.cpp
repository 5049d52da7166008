// Thread states of several interpreters, in memory that a test makes.
#include "programs/languages/cpython/states.h"

#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

constexpr uint64_t kBase = test::MadeMemory::kBase, kThread = kBase + 0x8000, kRuntime = kBase + 0x1000, kBias = 0x400,
                   kSlot = 0x318, kHead = 40, kNextInterpreter = 7560, kFirst = 7600, kThreadOf = 152;

/// A state {before, next, interpreter}, of the thread with that pointer.
void put_state(test::MadeMemory &memory, uint64_t at, uint64_t before, uint64_t next, uint64_t interpreter, uint64_t thread) {
    memory.put(at, before);
    memory.put(at + 8, next);
    memory.put(at + 16, interpreter);
    memory.put(at + kThreadOf, thread);
}

constexpr uint64_t kMain = kBase + 0x10000, kSub = kBase + 0x14000, kOurs = kBase + 0x20000, kTheirs = kBase + 0x21000,
                   kInner = kBase + 0x22000;

/// The main interpreter has two threads, of which ours is the older one; `less`: what its states have is so much less.
void build(test::MadeMemory &memory, bool several, uint64_t less = 0) {
    memory.put(kRuntime + kHead, several ? kSub : kMain);
    memory.put(kRuntime + kHead + 8, kMain);
    memory.put(kSub + kNextInterpreter, kMain);
    memory.put(kSub + kFirst, kInner);
    memory.put(kMain + kNextInterpreter, uint64_t{0});
    memory.put(kMain + kFirst, kTheirs);
    put_state(memory, kTheirs, 0, kOurs, kMain, kThread + 0x5000 - less);
    put_state(memory, kOurs, kTheirs, 0, kMain, kThread - less);
    put_state(memory, kInner, 0, 0, kSub, kThread - less);
    memory.put(kThread + kSlot, kOurs);
}

bool learnt(test::MadeMemory &pages, Layout &layout, Arch arch = Arch::x86_64) {
    Memory memory(pages);
    Interpreter file;
    file.exports["_PyRuntime"] = kRuntime - kBias;
    layout = {};
    layout.process.start = kSlot;
    return cpython::learn_others(memory, {file, kBias, arch, kThread, {}}, layout);
}

} // namespace

TEST_CASE("thread states: of several interpreters, where the words that lead to them are") {
    Layout layout;
    test::MadeMemory memory;
    build(memory, true);
    REQUIRE(learnt(memory, layout));
    CHECK(layout.process.others == kRuntime + kHead);
    CHECK(layout.process.other_next == kNextInterpreter);
    CHECK(layout.process.other_first == kFirst);
    CHECK(layout.process.state_next == 8);
    CHECK(layout.process.state_thread == kThreadOf);
    CHECK(layout.process.thread_less == 0);
    build(memory, true, 0x740);
    CHECK_FALSE(learnt(memory, layout)); // not on this machine
    REQUIRE(learnt(memory, layout, Arch::arm64));
    CHECK(layout.process.state_thread == kThreadOf);
    CHECK(layout.process.thread_less == 0x740);
}

TEST_CASE("thread states: one interpreter, lists that lie, missing memory") {
    Layout layout;
    {
        test::MadeMemory memory;
        build(memory, false);
        CHECK_FALSE(learnt(memory, layout));
    }
    const std::pair<uint64_t, uint64_t> lies[] = {
        {kInner + 16, kMain},               // a state of another interpreter's
        {kInner, kOurs},                    // the first has one in front
        {kMain + kNextInterpreter, kSub},   // a circle of interpreters
        {kTheirs + 8, kTheirs},             // a circle of states, without ours
        {kThread + kSlot, uint64_t{3}},     // no address
        {kSub + kNextInterpreter, kThread}, // no interpreter
    };
    for (const auto &[at, value] : lies) {
        test::MadeMemory memory;
        build(memory, true);
        memory.put(at, value);
        CHECK_FALSE(learnt(memory, layout));
    }
    test::MadeMemory nothing;
    nothing.bytes().clear();
    CHECK_FALSE(learnt(nothing, layout));
}
