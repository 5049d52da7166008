// Naming and handing over: the same rules for live runs and reports.
#include "programs/profile/deliver.h"

#include <new>

#include "programs/processes/inlined_frames.h"
#include "programs/profile/sample.h"
#include "programs/recording/names.h"
#include "tests/support/test.h"
#include "tests/unit/profile/keep.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

/// A tree with one file module, and ways to make stacks in it.
struct Scene {
    StackTree tree;
    ModuleTable modules;
    FakeSymbols source;
    Namer namer{tree, modules, source};
    Keep sink;
    uint32_t file = modules.intern({"/bin/app", 0, 1, ModuleKind::file, ""});

    uint32_t user(std::vector<uint64_t> outermost_first) {
        uint32_t node = kNone;
        for (size_t i = 0; i < outermost_first.size(); ++i) {
            FrameLocation place;
            place.module = file;
            place.file_offset = place.address = outermost_first[i];
            place.caller = i + 1 < outermost_first.size();
            node = tree.intern_node(node, tree.intern_place(place));
        }
        return node;
    }
    uint32_t kernel(std::vector<uint64_t> outermost_first) {
        uint32_t node = kNone;
        for (size_t i = 0; i < outermost_first.size(); ++i)
            node = tree.intern_node(node, tree.intern_place(kernel_place(outermost_first[i], i + 1 < outermost_first.size())));
        return node;
    }
    InternedSample sample(uint32_t kernel, uint32_t user, uint64_t t = 1000) {
        InternedSample out;
        out.t_ns = t;
        out.pid = out.tid = 42;
        out.kernel = kernel;
        out.user = user;
        out.kernel_bytes = out.user_bytes = 8;
        std::strcpy(out.comm, "app");
        return out;
    }
};

uint64_t reason(const Deliverer &d, const std::string &name) {
    for (const auto &[key, count] : d.degraded())
        if (key == name) return count;
    FAIL("no such reason: " << name);
    return 0;
}

} // namespace

TEST_CASE("names: a return address belongs to the call before it, and shows itself") {
    Scene s;
    // 0x300 begins f_3, but as a return address it stands behind the last call of f_2.
    Deliverer d(s.tree, s.namer, Delivery::each, true, s.sink);
    d.add(s.sample(kNone, s.user({0x300, 0x300})));
    REQUIRE(d.finish());
    REQUIRE(s.sink.each.size() == 1);
    const NamedSample &sample = s.sink.each[0];
    CHECK(text(sample.user) == "f_3;f_2");
    CHECK(sample.user[0]->symbol_offset == 0);
    CHECK(sample.user[1]->symbol_offset == 0x100);
    CHECK(sample.user[1]->address == 0x300);
    CHECK(sample.user[1]->module == "/bin/app");
    CHECK(sample.user[1]->build_id == "cafe");
}

TEST_CASE("names: lines and inlined functions, each where it was asked for") {
    Scene s;
    const std::vector<SourceFrame> there{
        {"times", "/src/a.h", 3, 5, 0}, {"square", "/src/a.h", 9, 0, 0}, {"area", "/src/a.cpp", 40, 0, 0x22}};
    s.source.source[0x200] = there;
    const auto delivered = [&](SourceDetail detail) {
        s.namer.~Namer();
        new (&s.namer) Namer(s.tree, s.modules, s.source, detail);
        s.sink.each.clear();
        s.source.asked_source.clear();
        Deliverer d(s.tree, s.namer, Delivery::each, true, s.sink);
        d.add(s.sample(s.kernel({0x10000}), s.user({0x210, 0x450})));
        REQUIRE(d.finish());
        return s.sink.each[0];
    };
    NamedSample plain = delivered({});
    CHECK(text(plain.user) == "f_4;f_2");
    CHECK(plain.user[1]->line == 0);
    CHECK(s.source.asked_source.empty());

    NamedSample lines = delivered({.lines = true});
    CHECK(text(lines.user) == "f_4;f_2");
    CHECK(lines.user[0]->file.empty());
    CHECK(lines.user[1]->file == "/src/a.cpp"); // the function's own line, where the code of others begins
    CHECK(lines.user[1]->line == 40);
    CHECK(s.source.asked_source == std::vector<uint64_t>{0x450, 0x20f}); // of a caller, the call

    NamedSample inlined = delivered({.inlined = true});
    CHECK(text(inlined.user) == "f_4;times;square;f_2");
    CHECK(inlined.user[1]->inlined);
    CHECK(inlined.user[1]->address == inlined.user[3]->address);
    CHECK(inlined.user[1]->module == "/bin/app");
    CHECK(inlined.user[1]->file.empty());
    CHECK(!inlined.user[3]->inlined);
    CHECK(inlined.user[3]->symbol_offset == 0x10);

    NamedSample both = delivered({.lines = true, .inlined = true});
    CHECK(text(both.user) == "f_4;times;square;f_2");
    CHECK(both.user[1]->line == 3);
    CHECK(both.user[1]->column == 5);
    CHECK(both.user[2]->line == 9);
    CHECK(both.user[3]->line == 40);
    CHECK(both.kernel[0]->file.empty());

    s.source.special[0x200] = ""; // no symbol: debug info's name, with its own offset
    NamedSample named = delivered({.lines = true});
    CHECK(named.user[1]->symbol == "area");
    CHECK(named.user[1]->symbol_offset == 0x23);
}

TEST_CASE("names: code made at run time has the lines and inlined functions that its runtime tells, unasked") {
    Scene s;
    FrameLocation place;
    place.module = s.modules.intern({"//anon", 0, 0, ModuleKind::anonymous, ""});
    place.address = 0x7010;
    place.pid = 42;
    place.caller = true;
    place.file_offset = 5;
    s.source.made[5] = {{"App.inner", "App.java", 7}, {"App.outer", "App.java", 9}};
    std::vector<FramePtr> frames;
    s.namer.add_frames(s.tree.intern_place(place), frames);
    REQUIRE(frames.size() == 2);
    CHECK((frames[0]->symbol == "App.inner" && frames[0]->line == 7 && frames[0]->inlined && frames[0]->address == 0x7010));
    CHECK((frames[1]->symbol == "jit_42" && frames[1]->file == "App.java" && frames[1]->line == 9 && !frames[1]->inlined));
    place.file_offset = 6; // nothing more is known of it
    frames.clear();
    s.namer.add_frames(s.tree.intern_place(place), frames);
    CHECK((frames.size() == 1 && frames[0]->symbol == "jit_42" && frames[0]->line == 0));
}

TEST_CASE("names: those that a recording brings along, with inlined functions, and recordings that lie") {
    Scene s;
    const auto brought = [&](uint64_t address, const std::vector<std::pair<std::string, bool>> &names) {
        FrameLocation place;
        place.module = s.modules.intern({"//anon", 0, 0, ModuleKind::anonymous, ""});
        place.address = address;
        place.pid = 42;
        const uint32_t number = s.tree.intern_place(place);
        recording::BroughtNames all;
        for (const auto &[name, inlined] : names) {
            Frame frame;
            frame.symbol = name;
            frame.inlined = inlined;
            all.add(number, std::move(frame));
        }
        all.give_place(s.namer, number);
        std::vector<FramePtr> frames;
        s.namer.add_frames(number, frames);
        std::string out;
        for (const FramePtr &frame : frames) out += frame->symbol + (frame->inlined ? "_[i] " : " ");
        return out;
    };
    CHECK(brought(1, {{"inner", true}, {"middle", true}, {"outer", false}}) == "inner_[i] middle_[i] outer ");
    CHECK(brought(2, {{"outer", false}}) == "outer ");
    CHECK(brought(3, {{"outer", false}, {"other", false}}) == "other ");
    CHECK(brought(4, {{"inner", true}, {"middle", true}}) == "inner_[i] middle "); // it was cut
    CHECK(brought(5, {}) == "jit_42 ");
    std::vector<std::pair<std::string, bool>> many(100000, {"x", true});
    many.push_back({"outer", false});
    CHECK(brought(6, many).size() < 2000);
}

TEST_CASE("names: places in code that was made at run time keep their number, and equal ones have one") {
    InlinedFrames frames(1ull << 40);
    const InlinedFrames::Frame a{frames.text("A.a"), frames.text("A.java"), 3}, b{frames.text("A.b"), a.file, 4};
    CHECK(frames.text("A.a") == a.name);
    const uint64_t first = frames.number({7, {a, b}});
    CHECK(frames.is_number(first));
    CHECK(frames.number({7, {a, b}}) == first);
    CHECK(frames.number({8, {a, b}}) != first);
    CHECK(frames.number({7, {b, a}}) != first);
    CHECK(frames.number({std::nullopt, {a, b}}) != first);
    CHECK(frames.size() == 4);
    const auto source = frames.source(first);
    REQUIRE(source.size() == 2);
    CHECK((source[0].function == "A.a" && source[0].file == "A.java" && source[0].line == 3 && source[1].function == "A.b"));
    CHECK(frames.source(first + 100).empty());
    CHECK((frames.source(7).empty() && frames.find(7) == nullptr && !frames.is_number(7)));
}

TEST_CASE("names: kernel frames of many samples are found in one pass") {
    Scene s;
    Deliverer d(s.tree, s.namer, Delivery::each, true, s.sink);
    d.set_clock({400, 1'000'000});
    for (uint64_t i = 0; i < 50; ++i) d.add(s.sample(s.kernel({0x10000 + i * 0x100, 0x20000 + i * 0x100}), kNone, 1000 + i));
    REQUIRE(d.flush(2000));
    CHECK(s.source.kernel_passes == 1);
    REQUIRE(s.sink.each.size() == 50);
    CHECK(text(s.sink.each[1].kernel) == "kernel_201;kernel_100");
    CHECK(s.sink.each[1].kernel[0]->kernel);
    CHECK(s.sink.each[1].kernel[0]->module == "vmlinux");
    CHECK(s.sink.each[1].t_ns == 601);
    CHECK(s.sink.each[1].wall_ns == 1'000'601);
    d.add(s.sample(s.kernel({0x10000, 0x20000}), kNone, 3000)); // known by now
    REQUIRE(d.flush(3000));
    CHECK(s.source.kernel_passes == 1);
    CHECK(s.sink.each.size() == 51);
}

TEST_CASE("names: counted stacks are named once, module by module, at the end") {
    Scene s;
    Deliverer d(s.tree, s.namer, Delivery::counted, true, s.sink);
    const uint32_t a = s.user({0x100, 0x200}), b = s.user({0x100, 0x900});
    for (int i = 0; i < 3; ++i) d.add(s.sample(kNone, a));
    d.add(s.sample(kNone, b));
    REQUIRE(d.flush(1u << 30));
    CHECK(s.sink.calls == 0);
    REQUIRE(d.finish());
    REQUIRE(s.sink.counted.size() == 2);
    CHECK(s.sink.counted[0].count == 3);
    CHECK(text(s.sink.counted[0].sample.user) == "f_2;f_0");
    CHECK(s.sink.counted[1].count == 1);
    CHECK(s.sink.counted[0].sample.user[1] == s.sink.counted[1].sample.user[1]); // one Frame, shared
    CHECK(d.shown() == 4);
    CHECK(s.source.done == std::vector<uint32_t>{s.file});
    REQUIRE(d.finish());
    CHECK(s.sink.counted.size() == 2); // nothing twice
}

TEST_CASE("names: without names samples carry sizes only") {
    Scene s;
    Deliverer d(s.tree, s.namer, Delivery::each, false, s.sink);
    InternedSample sample = s.sample(kNone, kNone);
    sample.user_bytes = 176;
    sample.kernel_bytes = -14;
    d.add(sample);
    REQUIRE(d.flush(1));
    REQUIRE(s.sink.each.size() == 1);
    CHECK(s.sink.each[0].user_bytes == 176);
    CHECK(s.sink.each[0].kernel_bytes == 0);
    CHECK(s.sink.each[0].kernel_missed);
    CHECK(s.source.kernel_passes == 0);
}

TEST_CASE("ledger: why walks by tables ended, and where those did that ended early") {
    Scene s;
    Deliverer d(s.tree, s.namer, Delivery::each, true, s.sink);
    CHECK(d.stack_ends().empty()); // nothing is known of it
    InternedSample sample = s.sample(kNone, s.user({0x100, 0x200}));
    sample.ending = UNWIND_ENDED_ROOT;
    d.add(sample);
    d.add(sample);
    sample.ending = UNWIND_ENDED_NO_RULE;
    d.add(sample);
    sample.ending = UNWIND_ENDED_NO_PROCESS; // by frame pointers
    d.add(sample);
    sample.ending = UNWIND_ENDED_DEPTH; // however few frames that is
    d.add(sample);
    REQUIRE(d.finish());
    const auto ends = d.stack_ends();
    REQUIRE(ends.size() == UNWIND_ENDINGS);
    CHECK(ends[0] == std::pair<std::string, uint64_t>{"root", 2});
    CHECK(ends[UNWIND_ENDED_NO_RULE] == std::pair<std::string, uint64_t>{"no_rule", 1});
    CHECK(ends[UNWIND_ENDED_DEPTH] == std::pair<std::string, uint64_t>{"depth", 1});
    CHECK(reason(d, "stack_truncated") == 1);
    CHECK(reason(d, "user_stack_ended_early") == 2);
    REQUIRE(d.early_ends().list().size() == 2);
    const std::string module = d.early_ends().list()[0].first;
    CHECK(d.early_ends().list()[1].first == module + " (no rule)");
}

TEST_CASE("ledger: what is incomplete is counted by reason") {
    Scene s;
    Deliverer d(s.tree, s.namer, Delivery::counted, true, s.sink);
    InternedSample sample = s.sample(kNone, kNone);
    sample.user_bytes = RAWBPF_STACK_BYTES;
    d.add(sample);
    sample.user_bytes = -14;
    d.add(sample);
    sample.kernel_thread = true; // has none to miss
    d.add(sample);
    sample.kernel_bytes = -14;
    d.add(sample);
    CHECK(reason(d, "stack_truncated") == 1);
    CHECK(reason(d, "user_stack_unreadable") == 1);
    CHECK(reason(d, "kernel_stack_unreadable") == 1);
    CHECK(d.shown() == 4);
}

TEST_CASE("ledger: a walk that went astray, and was cut to less, ended early and isn't truncated") {
    Scene s;
    Deliverer d(s.tree, s.namer, Delivery::each, true, s.sink);
    InternedSample sample = s.sample(kNone, s.user({0x900, 0x1000}));
    sample.user_bytes = RAWBPF_STACK_BYTES;
    d.add(sample);
    REQUIRE(d.finish());
    CHECK(reason(d, "stack_truncated") == 0);
    CHECK(reason(d, "user_stack_ended_early") == 1);
    CHECK(s.sink.each.at(0).user_bytes == RAWBPF_STACK_BYTES);
}

TEST_CASE("ledger: stacks that end before a thread's first function are told by module") {
    Scene s;
    s.source.special[0x1000] = "_start";
    s.source.special[0x1100] = "main";
    s.source.special[0x1800] = "__libc_start_main@@GLIBC_2.34";
    const uint32_t libc = s.modules.intern({"/lib/libc.so.6", 0, 2, ModuleKind::file, ""});
    Deliverer d(s.tree, s.namer, Delivery::each, true, s.sink);
    d.add(s.sample(kNone, s.user({0x1010, 0x1110, 0x2000}))); // _start, main, f
    d.add(s.sample(kNone, s.user({0x1110, 0x2000})));         // main, f
    d.add(s.sample(kNone, s.user({0x5000, 0x1110, 0x2000}))); // an unnamed one above main
    d.add(s.sample(kNone, s.user({0x1780, 0x6000, 0x2000}))); // right before __libc_start_main: the one that calls main
    CHECK(s.sink.each.empty());
    s.file = libc;
    d.add(s.sample(kNone, s.user({0x7000})));
    d.add(s.sample(kNone, s.user({0x7000, 0x2000})));
    // A walk off the rails: the last frame in a known module is the one to name.
    FrameLocation garbage;
    garbage.address = 0xdead;
    garbage.caller = true;
    const uint32_t outer = s.tree.intern_node(kNone, s.tree.intern_place(garbage));
    FrameLocation inner;
    inner.module = libc;
    inner.file_offset = 0x9000;
    d.add(s.sample(kNone, s.tree.intern_node(outer, s.tree.intern_place(inner))));
    REQUIRE(d.finish());
    CHECK(reason(d, "user_stack_ended_early") == 3);
    REQUIRE(d.early_ends().list().size() == 1);
    CHECK(d.early_ends().list()[0] == std::pair<std::string, uint64_t>{"/lib/libc.so.6", 3});
}

TEST_CASE("names: where threads and processes begin") {
    for (const char *name : {"main", "_start", "clone3", "__clone3", "start_thread", "clone@@GLIBC_2.2.5", "runtime.goexit.abi0"})
        CHECK_MESSAGE(begins_thread(name), name);
    for (const char *name : {"", "mainly", "cloned", "domain", "start_thread_pool"}) CHECK_MESSAGE(!begins_thread(name), name);
}
