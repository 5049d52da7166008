// Each line whole: what scripts read of instructions and of machine code.
#include "programs/inspect/instructions_json.h"

#include "asm/assemble.h"
#include "programs/render/json_line.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("inspect: instructions as JSON have the listing's labels, texts and comments, and the lines that they come from") {
    if (!render::writes_json()) SKIP("this build writes no JSON");
    Assembled made = assemble(
        ".program on_x \"xdp\"\nr1 = 0x1122334455667788 ll\nif r1 == 0 goto out\nr0 = 1\nout:\nexit\n.function below\nexit\n",
        {.name = "a.asm"});
    REQUIRE(made);
    Unit &unit = made.unit;
    unit.functions[0].notes = {"", "", "", "set here"};
    unit.functions[0].lines.resize(1); // of the first instruction, and so of all behind it
    CHECK(inspect::instructions_json(unit) ==
          R"({"type":"function","name":"on_x","section":"xdp"}
{"type":"instruction","function":"on_x","index":0,"bytes":"18010000887766550000000044332211","text":"r1 = 1234605616436508552 ll","label":null,"comment":null,"file":"a.asm","line":2,"source":"r1 = 0x1122334455667788 ll"}
{"type":"instruction","function":"on_x","index":2,"bytes":"1501010000000000","text":"if r1 == 0 goto L1","label":null,"comment":null,"file":"a.asm","line":2,"source":"r1 = 0x1122334455667788 ll"}
{"type":"instruction","function":"on_x","index":3,"bytes":"b700000001000000","text":"r0 = 1","label":null,"comment":"set here","file":"a.asm","line":2,"source":"r1 = 0x1122334455667788 ll"}
{"type":"instruction","function":"on_x","index":4,"bytes":"9500000000000000","text":"exit","label":"L1","comment":null,"file":"a.asm","line":2,"source":"r1 = 0x1122334455667788 ll"}
{"type":"function","name":"below","section":null}
{"type":"instruction","function":"below","index":0,"bytes":"9500000000000000","text":"exit","label":null,"comment":null,"file":"a.asm","line":8,"source":"exit"}
)");
    CHECK(inspect::instructions_json(Unit{}).empty());
}

TEST_CASE("inspect: machine code as JSON") {
    if (!render::writes_json()) SKIP("this build writes no JSON");
    std::vector<inspect::MachineFunction> functions(2);
    functions[0] = {.name = "on_x",
                    .address = 0xffffffffc0001000,
                    .code = {std::byte{0xf3}, std::byte{0x0f}},
                    .lines = {{.offset = 1, .file = "a.c", .text = "", .line = 7},
                              {.offset = 2, .file = "a.c", .text = "x = 1;", .line = 8}}};
    functions[1].name = "below";
    CHECK(
        inspect::machine_json(functions) ==
        R"({"type":"machine_function","name":"on_x","address":"0xffffffffc0001000","code":"f30f","lines":[{"offset":1,"file":"a.c","line":7,"source":null},{"offset":2,"file":"a.c","line":8,"source":"x = 1;"}]}
{"type":"machine_function","name":"below","address":null,"code":"","lines":[]}
)");
}
