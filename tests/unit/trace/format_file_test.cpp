// Tracepoints' records, as tracefs describes them.
#include "programs/trace/format_file.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

TEST_CASE("trace format: fields, without the common ones") {
    Result<Fields> fields = parse_format("name: sys_enter_openat\n"
                                         "ID: 700\n"
                                         "format:\n"
                                         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                                         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
                                         "\n"
                                         "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
                                         "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
                                         "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n"
                                         "\tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n"
                                         "\tfield:char comm[16];\toffset:48;\tsize:16;\tsigned:0;\n"
                                         "\tfield:__data_loc char[] name;\toffset:64;\tsize:4;\tsigned:0;\n"
                                         "\tfield:pid_t prev_pid;\toffset:68;\tsize:4;\tsigned:1;\n"
                                         "\nprint fmt: \"dfd: 0x%08lx\", REC->dfd\n",
                                         "t");
    REQUIRE(fields);
    REQUIRE(fields->fields.size() == 6);
    const auto check = [&](size_t i, std::string_view name, Show show, uint8_t size, uint16_t offset) {
        CHECK(fields->fields[i].name == name);
        CHECK(fields->fields[i].type.show == show);
        CHECK(fields->fields[i].type.size == size);
        CHECK(fields->offsets[i] == offset);
    };
    check(0, "dfd", Show::descriptor, 4, 16);
    CHECK(fields->fields[0].type.is_signed);
    check(1, "filename", Show::text, 8, 24);
    check(2, "mode", Show::integer, 8, 40);
    check(3, "comm", Show::characters, 8, 48);
    CHECK(fields->fields[3].type.length == 16);
    check(4, "name", Show::data_text, 4, 64);
    check(5, "prev_pid", Show::integer, 4, 68);
}

TEST_CASE("trace format: a damaged one names the line") {
    CHECK(parse_format("format:\n\tfield:int a", "t").error().context == "t: format: line 2: no end of the field");
    CHECK(parse_format("\tfield:int a;\toffset:x;\n", "t").error().context == "t: format: line 1: no offset and size");
    CHECK(parse_format("", "t")->fields.empty());
}
