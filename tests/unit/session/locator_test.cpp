// A record's addresses to nodes, and which frames of a user stack are worth keeping.
#include "programs/session/locator.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::session;
using namespace rawbpf::test;

namespace {

/// As stacks are written down here: an address, and whether it is code.
struct Seen {
    uint64_t address;
    bool code;
};

size_t kept(const std::vector<Seen> &frames) {
    std::vector<FrameLocation> places;
    for (const Seen &frame : frames) {
        FrameLocation &place = places.emplace_back();
        place.address = frame.address;
        if (frame.code) place.module = 0;
    }
    return frames_to_keep(places);
}

struct Located {
    FakeMaps proc;
    ProcessTable table{proc};
    Unwinding unwinding{table};
    StackTree tree;
    Locator locator{table, unwinding, tree};

    Located() { proc.processes[7] = {region(0x1000, 0x3000, "/bin/a")}; }
    LocatedStacks locate(const std::vector<uint64_t> &user, uint32_t ending = 0, const std::vector<uint64_t> &kernel = {}) {
        return locator.locate({{7, 100, ending, user, std::nullopt}, kernel});
    }
    std::vector<FrameLocation> places(uint32_t node) {
        std::vector<FrameLocation> out;
        tree.walk(node, [&](uint32_t place) { out.push_back(tree.places()[place]); });
        return out;
    }
};

} // namespace

TEST_CASE("locator: of a walk that went astray the first address that is no code is kept") {
    CHECK(kept({{0x1000, true}, {0x2000, true}}) == 2);
    CHECK(kept({{0x1000, true}, {0x9000, false}, {0x9100, false}, {0x9200, false}}) == 2);
    CHECK(kept({{0x1000, true}, {0x9000, false}, {0x2000, true}, {0x9200, false}}) == 4); // code again: it wasn't astray
    CHECK(kept({}) == 0);
}

TEST_CASE("locator: an address where nothing is ever mapped is the chain's end, not a stray frame") {
    CHECK(kept({{0x1000, true}, {0, false}}) == 1);
    CHECK(kept({{0x1000, true}, {0xfff, false}, {0x9000, false}}) == 1);
    CHECK(kept({{0x1000, true}, {0x1000000, false}}) == 2);
}

TEST_CASE("locator: where nothing is known to be code all is kept but repetitions at the end") {
    CHECK(kept({{0x9000, false}, {0x9100, false}}) == 2);
    CHECK(kept({{0x9000, false}, {0x9100, false}, {0x9100, false}, {0x9100, false}}) == 2);
    CHECK(kept({{0x9000, false}, {0x9000, false}}) == 1);
}

TEST_CASE("locator: a stack is cut at the depth of a walk by tables, else where as many frames are kept as there can be") {
    CHECK(is_cut(kNoEnding, 127, 127));
    CHECK_FALSE(is_cut(kNoEnding, 126, 127));
    CHECK(is_cut(UNWIND_ENDED_NO_PROCESS, 127, 127)); // by frame pointers
    CHECK(is_cut(UNWIND_ENDED_DEPTH, 20, 127));
    CHECK_FALSE(is_cut(UNWIND_ENDED_ROOT, 200, 127));
    CHECK(most_frames(1) == 1);
}

TEST_CASE("locator: both stacks become nodes, leaf first") {
    Located l;
    const LocatedStacks at = l.locate({0x1010, 0x2020, 0x9000, 0x9100}, 0, {0xffff8110, 0xffff8200});
    const std::vector<FrameLocation> user = l.places(at.user), kernel = l.places(at.kernel);
    REQUIRE(user.size() == 3);
    CHECK(user[0].file_offset == 0x10);
    CHECK_FALSE(user[0].caller);
    CHECK(user[1].file_offset == 0x1020);
    CHECK(user[1].caller);
    CHECK(user[2].module == kNone);
    REQUIRE(kernel.size() == 2);
    CHECK((kernel[0].kernel && !kernel[0].caller && kernel[1].caller));
    CHECK(at.user_frames == 3);
    CHECK(at.ending == kNoEnding);
    CHECK_FALSE(at.unknown);
    CHECK(l.locate({0x1010, 0x2020, 0x9000, 0x9200}).user == at.user); // what is dropped tells no stacks apart
}

TEST_CASE("locator: what a signal interrupted is no return address") {
    Located l;
    const std::vector<FrameLocation> user = l.places(l.locate({0x1010, 0x2020 | UNWIND_EXACT_PC}).user);
    REQUIRE(user.size() == 2);
    CHECK(user[1].address == 0x2020);
    CHECK_FALSE(user[1].caller);
}

TEST_CASE("locator: of a walk by tables each frame is kept, and its ending is told") {
    Located l;
    const std::vector<uint64_t> frames{0x1010, 0x9000, 0x9100};
    const LocatedStacks by_tables = l.locate(frames, UNWIND_TABLES | UNWIND_ENDED_NO_MAPPING);
    CHECK(by_tables.user_frames == 3);
    CHECK(by_tables.ending == UNWIND_ENDED_NO_MAPPING);
    const LocatedStacks not_yet = l.locate(frames, UNWIND_ENDED_NO_PROCESS);
    CHECK(not_yet.user_frames == 2);
    CHECK(not_yet.ending == UNWIND_ENDED_NO_PROCESS);
    CHECK(l.locate({}, UNWIND_ENDED_NO_PROCESS).ending == kNoEnding); // there is no stack
}

TEST_CASE("locator: a process that was gone before it was looked at is told") {
    Located l;
    const std::vector<uint64_t> frames{0x1010, 0x2020};
    CHECK(l.locator.locate({{8, 100, 0, frames, std::nullopt}, {}}).unknown);
    CHECK_FALSE(l.locate({}).unknown); // nothing to look at
}
