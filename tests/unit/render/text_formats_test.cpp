// Golden outputs of the line formats, and what hostile names do to them.
#include <algorithm>

#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/text.h"
#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::render;
using namespace rawbpf::test;

TEST_CASE("render: the table has the seed's columns") {
    NamedSample plain = stack("node", {user_frame("main"), user_frame("hot_a(long)", "/usr/lib/libhot.so.1", 0x7f3a5c0e2b10)},
                              {kernel_frame("do_syscall_64")});
    NamedSample spaced = stack("split x\n", {}, {});
    spaced.user_missed = true;
    CHECK(rendered(Format::table, {{plain, 1}, {spaced, 1}}) ==
          "TIME                 COMM                 PID    CPUID   KStackSz  UStackSz\n"
          "1761659235300424689  node                 2133   4       8         16\n"
          "1761659235300424689  split\\x20x\\x0a       2133   4       0         0\n");
    CHECK(rendered(Format::table, {{plain, 1}, {spaced, 1}}, {.stacks = true}) ==
          "TIME                 COMM                 PID    CPUID   KStackSz  UStackSz\n"
          "1761659235300424689  node                 2133   4       8         16\n"
          "        0  ffffffff8112a0b4  do_syscall_64+0x64  [vmlinux]\n"
          "        1  00007f3a5c0e2b10  hot_a(long)+0x16  [libhot.so.1]\n"
          "        2  0000000000401136  main+0x16  [split]\n"
          "1761659235300424689  split\\x20x\\x0a       2133   4       0         0\n"
          "        [Missed User Stack]\n");
}

TEST_CASE("render: folded merges, sorts and marks as bcc does") {
    NamedSample a = stack("split", {user_frame("main"), user_frame("hot_a(long)")});
    NamedSample a_elsewhere = stack("split", {user_frame("main"), user_frame("hot_a(long)", "/usr/bin/split", 0x401200)});
    NamedSample b = stack("split", {user_frame("main"), user_frame("")}, {kernel_frame("sys_read"), kernel_frame("")});
    NamedSample missed = stack("cat", {}, {kernel_frame("vfs_read")});
    missed.user_missed = true;
    NamedSample kthread = stack("kworker/0:1", {}, {kernel_frame("worker_thread")});
    CHECK(rendered(Format::folded, {{a, 1}, {b, 2}, {a_elsewhere, 40}, {missed, 1}, {kthread, 3}}) ==
          "cat;[Missed User Stack];vfs_read_[k] 1\n"
          "kworker/0:1;worker_thread_[k] 3\n"
          "split;main;[split];sys_read_[k];[unknown]_[k] 2\n"
          "split;main;hot_a(long) 41\n");
    CHECK(rendered(Format::folded, {{b, 1}, {a, 1}}, {.delimiter = true}) == "split;main;[split];-;sys_read_[k];[unknown]_[k] 1\n"
                                                                             "split;main;hot_a(long) 1\n");
    CHECK(rendered(Format::folded, {}) == "");
}

TEST_CASE("render: inlined functions and places in the source") {
    NamedSample s =
        stack("draw", {source_frame("main", "/src/\x1b[draw.cpp", 0, false), source_frame("area", "shapes.cpp", 40, false),
                       source_frame("square", "/src/shapes.h", 12, true)});
    CHECK(rendered(Format::table, {{s, 1}}, {.stacks = true}) ==
          "TIME                 COMM                 PID    CPUID   KStackSz  UStackSz\n"
          "1761659235300424689  draw                 2133   4       0         24\n"
          "        0  0000000000401136  square (inlined) (shapes.h:12)  [split]\n"
          "        1  0000000000401136  area+0x16 (shapes.cpp:40)  [split]\n"
          "        2  0000000000401136  main+0x16 (\xef\xbf\xbd[draw.cpp)  [split]\n");
    // A function inlined here and called there is two frames of a stack.
    NamedSample called = stack(
        "draw", {source_frame("main", "", 0, false), source_frame("area", "", 0, false), source_frame("square", "", 0, false)});
    CHECK(rendered(Format::folded, {{s, 1}, {called, 2}}) == "draw;main;area;square 2\ndraw;main;area;square_[i] 1\n");
    CHECK(rendered(Format::folded_ext, {{s, 1}}).ends_with(" main;area;square_[i]\n"));
    CHECK(rendered(Format::top, {{s, 1}}).find("square_[i] ") != std::string::npos);
    CHECK(rendered(Format::svg, {{s, 1}}).find("<title>square_[i]\nuser, inlined, split\n1 sample") != std::string::npos);
}

TEST_CASE("render: folded-ext is one line a sample, never without frames") {
    NamedSample a =
        stack("split x", {user_frame("main"), user_frame("operator new(unsigned long)")}, {kernel_frame("page_fault")});
    NamedSample empty = stack("", {}, {});
    NamedSample missed = stack("c", {}, {kernel_frame("vfs_read")});
    missed.user_missed = true;
    CHECK(rendered(Format::folded_ext, {{a, 1}, {empty, 1}, {missed, 1}}) ==
          "1761659235300424689 split\\x20x 2133 2134 4 main;operator new(unsigned long);page_fault_[k]\n"
          "1761659235300424689 [unknown] 2133 2134 4 [unknown]\n"
          "1761659235300424689 c 2133 2134 4 [Missed User Stack];vfs_read_[k]\n");
    NamedSample nameless = stack("c", {user_frame("", "/lib/libc.so.6"), user_frame("", "[vdso]"), user_frame("", "")}, {});
    CHECK(rendered(Format::folded_ext, {{nameless, 1}}) == "1761659235300424689 c 2133 2134 4 [libc.so.6];[vdso];[unknown]\n");
}

TEST_CASE("render: labels stand at the root, and tell stacks apart") {
    NamedSample a = stack("shop", {user_frame("main")});
    NamedSample b = a, hostile = a;
    a.labels = std::make_shared<Labels>(Labels{{"route", "/a"}, {"user", "x"}});
    b.labels = std::make_shared<Labels>(Labels{{"route", "/b"}});
    hostile.labels = std::make_shared<Labels>(Labels{{"route", "/a;b\n"}});
    CHECK(rendered(Format::folded, {{a, 2}, {b, 3}, {a, 1}, {stack("shop", {user_frame("main")}), 4}, {hostile, 1}}) ==
          "route=/a:b\\x0a;shop;main 1\n"
          "route=/a;user=x;shop;main 3\n"
          "route=/b;shop;main 3\n"
          "shop;main 4\n");
    CHECK(rendered(Format::folded_ext, {{b, 1}}) == "1761659235300424689 shop 2133 2134 4 route=/b;main\n");
    CHECK(rendered(Format::table, {{hostile, 1}}).ends_with(" route=/a\\x3bb\\x0a\n"));
    if (writes_json())
        CHECK(rendered(Format::json, {{a, 1}}).find(R"(,"labels":{"route":"/a","user":"x"}})") != std::string::npos);
    const std::string top = rendered(Format::top, {{a, 2}});
    CHECK_MESSAGE(top.find("main") < top.find("route=/a"), top); // a label is no function
}

TEST_CASE("render: hostile names can't forge lines, fields or frames") {
    NamedSample s = stack("a b;c\\\t\x7f\xff", {user_frame("Lfoo;\nroot 9"), user_frame("x\x1b[31m")});
    CHECK(rendered(Format::folded, {{s, 1}}) == "a\\x20b\\x3bc\\x5c\\x09\\x7f\\xff;Lfoo:\\x0aroot 9;x\\x1b[31m 1\n");
    // Names that become equal by escaping are one stack.
    CHECK(rendered(Format::folded, {{stack("c", {user_frame("a;b")}), 1}, {stack("c", {user_frame("a:b")}), 2}}) == "c;a:b 3\n");
    // A reader that trims lines or splits on runs of spaces doesn't lose a name that is one, or begins or ends with one.
    NamedSample blank = stack("c", {user_frame(" "), user_frame(" a b  ")});
    CHECK(rendered(Format::folded, {{blank, 1}}) == "c;\\x20;\\x20a b \\x20 1\n");
    blank.user.resize(1);
    CHECK(rendered(Format::folded_ext, {{blank, 1}}).ends_with(" 4 \\x20a b \\x20\n"));
    // A terminal sees no escape sequences.
    std::string table = rendered(Format::table, {{s, 1}}, {.stacks = true});
    CHECK(table.find('\x1b') == std::string::npos);
    CHECK(std::count(table.begin(), table.end(), '\n') == 4);
}

TEST_CASE("render: top counts a recursive function once a sample") {
    NamedSample recursive = stack("r", {user_frame("main"), user_frame("f"), user_frame("f"), user_frame("g")});
    NamedSample plain = stack("r", {user_frame("main"), user_frame("f")}, {kernel_frame("sys_read")});
    NamedSample unnamed = stack("r", {user_frame("main"), user_frame("", "/lib/libc.so.6")});
    CHECK(rendered(Format::top, {{recursive, 2}, {plain, 1}, {unnamed, 1}}) ==
          "   SELF   TOTAL  FUNCTION\n"
          " 50.0 %  50.0 %  g                                                             split\n"
          " 25.0 %  25.0 %  [libc.so.6]\n"
          " 25.0 %  25.0 %  sys_read_[k]                                                  vmlinux\n"
          "  0.0 % 100.0 %  main                                                          split\n"
          "  0.0 %  75.0 %  f                                                             split\n"
          "\n"
          "SAMPLES           HOTTEST STACKS\n"
          "      2   50.0 %  g\n"
          "                  f\n"
          "                  f\n"
          "                  main\n"
          "                  process r\n"
          "      1   25.0 %  sys_read_[k]\n"
          "                  f\n"
          "                  main\n"
          "                  process r\n"
          "      1   25.0 %  [libc.so.6]\n"
          "                  main\n"
          "                  process r\n");
    CHECK(rendered(Format::top, {}) == "no samples\n");
}

TEST_CASE("render: a chain of frames without place and name is one frame in svg and top, all of them in folded") {
    FramePtr nowhere = user_frame("", "", 0x10);
    NamedSample broken =
        stack("b", {nowhere, nowhere, nowhere, user_frame("f"), nowhere, user_frame("", "/lib/libc.so.6"), nowhere});
    CHECK(rendered(Format::folded, {{broken, 1}}) == "b;[unknown];[unknown];[unknown];f;[unknown];[libc.so.6];[unknown] 1\n");
    std::string top = rendered(Format::top, {{broken, 1}});
    CHECK(top.substr(top.find("STACKS")) == "STACKS\n"
                                            "      1  100.0 %  [unknown]\n"
                                            "                  [libc.so.6]\n"
                                            "                  [unknown]\n"
                                            "                  f\n"
                                            "                  [unknown]\n"
                                            "                  process b\n");
}

TEST_CASE("render: text helpers") {
    CHECK(grouped(0) == "0");
    CHECK(grouped(999) == "999");
    CHECK(grouped(1000) == "1,000");
    CHECK(grouped(1234567) == "1,234,567");
    CHECK(rfc3339(1761659235300424689) == "2025-10-28T13:47:15.300424689Z");
    CHECK(rfc3339(1709164799999999999) == "2024-02-28T23:59:59.999999999Z");
    CHECK(rfc3339(1709164800000000000) == "2024-02-29T00:00:00.000000000Z");
    CHECK(rfc3339(0) == "1970-01-01T00:00:00.000000000Z");
    CHECK(base_name("/usr/lib/libc.so.6") == "libc.so.6");
    CHECK(base_name("[vdso]") == "[vdso]");
    CHECK(base_name("/") == "/");
    CHECK(shell_words({"./my split", "3", "", "it's", "a$b"}) == "'./my split' 3 '' 'it'\\''s' 'a$b'");
    CHECK(cut("abcdef", 4) == "a...");
    CHECK(cut("abcd", 4) == "abcd");
    CHECK(cut("ábcdé", 4, "…") == "ábc…");
    std::string xml;
    append_xml(xml, "<a & \"b'>\x01\xff\xc0\x80\xed\xa0\x80\xef\xbf\xbf\té\xf0\x9f\x98\x80\xf0\x9f");
    std::string gone = "\xef\xbf\xbd";
    CHECK(xml == "&lt;a &amp; &quot;b&#39;&gt;" + gone + gone + gone + gone + gone + gone + gone + gone +
                     "&#9;é\xf0\x9f\x98\x80" + gone + gone);
}

TEST_CASE("render: the ledger adds up in front of the reader") {
    Ledger ledger{.fired = 3057,
                  .shown = 2997,
                  .filtered = 57,
                  .lost = {{"ring_full", 2}, {"map_full", 1}, {"never", 0}},
                  .degraded = {{"user_stack_truncated", 12}}};
    RunInfo run = run_info();
    render::RunCost cost{
        .seconds = 3.004,
        .bpf_runs = 3057,
        .bpf_ns = 4891200,
        .cpu_seconds = 0.0482,
        .memory_bytes = 3040870,
        .ring_bytes = 524288,
        .ended_early = {
            {"/usr/lib/libstdc++.so.6", 44}, {"/usr/lib/libc_x86_64.so.6", 1203}, {"//anon", 7}, {"/opt/libstdc++.so.6", 6}}};
    CHECK(ledger_text("rawbpf profile", run, ledger, cost) ==
          "rawbpf profile: 2,997 samples in 3.0 s at 99 Hz\n"
          "  fired         3,057\n"
          "  shown         2,997   98.0 %\n"
          "  filtered         57    1.9 %\n"
          "  lost              3    0.1 %  ring full 2, map full 1\n"
          "  degraded         12           user stack truncated 12\n"
          "  cost        1.6 us a sample in BPF; rawbpf used 48.2 ms of CPU (1.6 %); 2.9 MB of memory and 512 KB of ring\n"
          "  ended early libc_x86_64.so.6 1,203, libstdc++.so.6 50, anon 7 (user stacks cut short: the kernel could not follow "
          "their frames)\n");
    CHECK(ledger_text("t", {}, {}, {}) ==
          "t: 0 samples\n  fired             0\n  shown             0\n  filtered          0\n  lost              0\n");
    run.frequency = 50'000;
    CHECK(ledger_text("t", run, {}, {}).starts_with("t: 0 samples at 50000 Hz\n"));
    ledger.shown = 1;
    CHECK(ledger_text("t", {}, ledger, {}).find("don't add up: fired should be 61") != std::string::npos);
    RunInfo events;
    events.event = "page-faults";
    events.period = 1;
    CHECK(ledger_text("t", events, {}, {}).starts_with("t: 0 samples: page-faults\n"));
    events.period = 1000;
    CHECK(ledger_text("t", events, {}, {}).starts_with("t: 0 samples: page-faults, one in 1,000\n"));
    CHECK(progress_text(12.3, 1187, 34) == "12 s  1,187 samples  34 processes");
    CHECK(progress_text(1, 1, 1) == "1 s  1 sample  1 process");
}
