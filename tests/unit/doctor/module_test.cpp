// The doctor on files: how stacks go through them, and how that is said.
#include "programs/doctor/module.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using test::CfiElf;

namespace {

doctor::Module examine(const CfiElf &app) {
    const std::vector<std::byte> image = app.file();
    return doctor::examine_module(elf::Elf::parse(image, "app").value(), "/no such place/app", nullptr, {});
}

CfiElf with_functions(int with, int without) {
    CfiElf app;
    const uint64_t cie = app.eh.cie();
    uint64_t at = 0x10000;
    for (int i = 0; i < with; ++i, at += 16) app.eh.fde(cie, at, 16, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6});
    for (int i = 0; i < without; ++i, at += 16) app.eh.fde(cie, at, 16, {0x41, 0x0e, 16});
    app.eh.fde(cie, at, 16, {0x0c, 13, 0}); // odd
    return app;
}

} // namespace

TEST_CASE("doctor: a file's frame pointers, tables and names, and what a profile will show") {
    doctor::Module module = examine(with_functions(1, 3));
    CHECK(module.frame_pointers() == 25);
    CHECK(module.outlook() ==
          "A profile will show stacks that end in 20 % of its code, which has neither unwind tables nor frame pointers; "
          "its functions have no names, only addresses.");
    std::string text;
    doctor::append_module_text(text, module);
    CHECK(
        text.starts_with("/no such place/app: x86_64, no build-id\n"
                         "  frame pointers   25 %: 1 of the 4 functions that make a frame\n"
                         "  stacks           through 80 % of its code by unwind tables, 0 % by frame pointers, 20 % by neither\n"
                         "  unwind tables    5 functions, 11 rows, 52 bytes; 1 row too odd to be followed\n"
                         "  symbols          none\n"
                         "  debug info       none here\n"
                         "  USDT probes      0\n"
                         "  A profile will show "));
    text.clear();
    doctor::append_module_json(text, module, 0);
    CHECK(text.starts_with(
        "{\"type\":\"module\",\"pid\":null,\"path\":\"/no such place/app\",\"machine\":\"x86_64\",\"build_id\":null,"
        "\"functions\":5,\"framed\":4,\"frame_pointers\":1,\"rows\":11,\"bytes\":52,\"odd_rows\":1,"
        "\"bad_entries\":0,\"first_bad\":null,\"no_table\":null,\"code_bytes\":80,\"code_by_table\":64,"
        "\"code_by_frame_pointers\":0,\"code_by_neither\":16,\"go\":false,\"symbols\":0,"));

    // Where most of the code has no tables, they say little of it.
    module.code.by_pointers = 320;
    text.clear();
    doctor::append_module_text(text, module);
    CHECK(text.find("frame pointers   in its code without tables, and in 1 of the 4 functions with tables that make a frame\n") !=
          std::string::npos);
    text.clear();
    doctor::append_process_text(text, 7, {&module, 1}, 0, {});
    CHECK(text.find("\n    84 ") != std::string::npos); // (25 % of 64 bytes and all of 320) of 400

    module = examine(with_functions(20, 0));
    CHECK(module.frame_pointers() == 100);
    CHECK(module.outlook().find("by unwind tables or by frame pointers;") != std::string::npos);
    module.symbols_from = ".dynsym";
    CHECK(module.outlook().ends_with("; of its functions only those have names that it exports."));
    module.go = true; // it has names of its own for all
    CHECK(module.outlook().ends_with("; its functions have names."));
    module.symbols_from = ".symtab";
    module.bytes = 3806188;
    text.clear();
    doctor::append_module_text(text, module);
    CHECK(text.find(", 3.6 MiB;") != std::string::npos);
    module.debug_info = "/usr/lib/debug/app.debug";
    CHECK(module.outlook().ends_with("; its functions have names, and there are source lines for them."));
    CHECK(examine(with_functions(0, 20)).outlook().find("by frame pointers alone hardly any caller") != std::string::npos);

    module = examine({});
    CHECK(module.frame_pointers() == -1);
    CHECK(module.outlook().find("stacks that end in it, as it has neither unwind tables nor frame pointers") !=
          std::string::npos);
    module.go = true;
    CHECK(module.outlook().find("whole stacks through it by frame pointers") != std::string::npos);
    CfiElf other;
    other.target.machine = EM_S390;
    CHECK(examine(other).no_table ==
          "app: rawbpf can unwind only programs for x86_64, arm64 and riscv64, little-endian with 64 bits");
}

TEST_CASE("doctor: malformed entries and names that aren't text") {
    CfiElf app = with_functions(1, 0);
    app.eh.fde(0, 0x10100, 16, {0x3f});
    doctor::Module module = examine(app);
    module.path = "/tmp/\x1b[31mred\n";
    std::string text;
    doctor::append_module_text(text, module);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("; 1 malformed entry, first: app: .eh_frame: offset 0x") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 8);
}

TEST_CASE("doctor: a process is a table of its modules") {
    const std::vector<doctor::Module> modules = {examine(with_functions(20, 1)), examine({})};
    std::string text;
    doctor::append_process_text(text, 7, modules, 2, "3 functions in its perf map");
    CHECK(
        text ==
        "process 7\n"
        "  fp %     rows      bytes  odd  symbols debug probes  module\n"
        "    95       64        264    1        0     -      0  /no such place/app\n"
        "     ?        0          0    0        0     -      0  /no such place/app\n"
        "  and 2 regions of code that no file is behind (made at run time): stacks go through by frame pointers, or (x86-64) by "
        "a form that all its frames have, which a profile finds out\n"
        "  names of code made at run time: 3 functions in its perf map\n"
        "  A profile will show whole stacks through 1 of 2 modules, stacks that end in /no such place/app; 2 without any "
        "name.\n");
    text.clear();
    std::vector<doctor::Module> many(6, modules[1]);
    for (size_t i = 0; i < many.size(); ++i) many[i].path = format("/{}", i);
    doctor::append_process_text(text, 7, many, 0, {});
    CHECK(text.find("through 0 of 6 modules, stacks that end in /0, /1, /2, /3 and 2 more; 6 without") != std::string::npos);
    text.clear();
    doctor::append_process_text(text, 7, {}, 0, {});
    CHECK(text == "process 7\n  No file's code is mapped: a kernel thread, or it has ended.\n");
}
