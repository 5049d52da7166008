// Stacks as a tree, and counting by number.
#include "programs/processes/stacks.h"

#include "tests/support/test.h"
#include "tests/unit/processes/fakes.h"

using namespace rawbpf;
using namespace rawbpf::test;

TEST_CASE("stacks: equal places and nodes get equal numbers, however many there are") {
    StackTree tree;
    std::vector<uint32_t> places;
    for (uint64_t i = 0; i < 5000; ++i) places.push_back(tree.intern_place(kernel_place(0xffff0000 + i)));
    for (uint64_t i = 0; i < 5000; ++i) REQUIRE(tree.intern_place(kernel_place(0xffff0000 + i)) == places[i]);
    CHECK(tree.places().size() == 5000);
    uint32_t node = kNone;
    std::vector<uint32_t> nodes;
    for (uint32_t place : places) nodes.push_back(node = tree.intern_node(node, place));
    node = kNone;
    for (size_t i = 0; i < places.size(); ++i) REQUIRE((node = tree.intern_node(node, places[i])) == nodes[i]);
    CHECK(tree.nodes().size() == 5000);
    CHECK(tree.intern_node(kNone, places[1]) != nodes[1]); // the same place with another caller
    std::vector<uint32_t> walked;
    tree.walk(nodes[2], [&](uint32_t place) { walked.push_back(place); });
    CHECK(walked == std::vector<uint32_t>{places[2], places[1], places[0]});
}

TEST_CASE("stacks: a leaf and a return address at the same place are two places") {
    StackTree tree;
    CHECK(tree.intern_place(kernel_place(1, false)) != tree.intern_place(kernel_place(1, true)));
}

TEST_CASE("stacks: places of one file offset are shared only when asked for") {
    FrameLocation here, there, lost;
    here.module = there.module = 3;
    here.file_offset = there.file_offset = 0x40;
    here.address = 0x1040;
    there.address = 0x2040;
    StackTree by_offset(Sharing::by_offset), by_address(Sharing::by_address);
    CHECK(by_offset.intern_place(here) == by_offset.intern_place(there));
    CHECK(by_address.intern_place(here) != by_address.intern_place(there));
    // Addresses in no mapping are one place when nobody shows addresses...
    lost.address = 1;
    const uint32_t one = by_offset.intern_place(lost);
    lost.address = 2;
    CHECK(by_offset.intern_place(lost) == one);
    // ...but a JIT's addresses mean something, and so do the kernel's.
    lost.pid = 7;
    const uint32_t jit = by_offset.intern_place(lost);
    lost.address = 3;
    CHECK(by_offset.intern_place(lost) != jit);
    CHECK(by_offset.intern_place(kernel_place(1)) != by_offset.intern_place(kernel_place(2)));
}

TEST_CASE("stacks: samples are counted by process, name and stacks") {
    CountTable counts;
    InternedSample sample;
    sample.pid = 1;
    sample.user = 5;
    std::strcpy(sample.comm, "a");
    counts.add(sample);
    sample.t_ns = 99;
    sample.cpu = 1;
    sample.tid = 4;
    counts.add(sample); // time, CPU and thread don't tell samples apart
    std::strcpy(sample.comm, "b");
    counts.add(sample);
    sample.user_bytes = -14; // nor is an unreadable stack an empty one
    counts.add(sample);
    sample.pid = 2;
    counts.add(sample);
    REQUIRE(counts.entries().size() == 4);
    CHECK(counts.entries()[0].count == 2);
    CHECK(counts.entries()[0].first.t_ns == 0);
    CHECK(counts.entries()[3].count == 1);
}

TEST_CASE("stacks: ten thousand deep stacks fit into a small part of 4 MB") {
    StackTree tree(Sharing::by_offset);
    CountTable counts;
    for (uint64_t i = 0; i < 10000; ++i) { // 40 frames, the outer 36 from few functions, the inner four from many
        uint32_t node = kNone;
        for (uint64_t depth = 0; depth < 40; ++depth)
            node = tree.intern_node(
                node, tree.intern_place(kernel_place(depth < 36 ? depth * 8 + i % 4 : (i >> (depth - 36)) % 700 + 9000)));
        InternedSample sample;
        sample.kernel = node;
        counts.add(sample);
    }
    CHECK(tree.memory() + counts.memory() < 2'500'000);
}

TEST_CASE("stacks: a module is its path and its inode") {
    ModuleTable modules;
    Module a{"/lib/x.so", 1, 10, ModuleKind::file, ""}, b{"/lib/x.so", 1, 11, ModuleKind::file, ""};
    const uint32_t first = modules.intern(a);
    CHECK(modules.intern(b) != first); // replaced on disk by a package upgrade
    CHECK(modules.intern(a) == first);
    CHECK(modules.all().size() == 2);
}
