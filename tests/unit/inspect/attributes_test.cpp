// The words for union bpf_attr: none is missing, none is left over.
#include "programs/inspect/attributes.h"

#include <string>

#include "runtime/sys/names.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::inspect;

namespace {

bool is_version(std::string_view text) {
    const size_t point = text.find('.');
    return text == "-" ||
           (point != text.npos && point != 0 && point + 1 < text.size() && text.find_first_not_of("0123456789.") == text.npos);
}

const AttributeField *find(const std::vector<AttributeField> &fields, std::string_view name) {
    for (const AttributeField &field : fields)
        if (field.name == name) return &field;
    return nullptr;
}

} // namespace

TEST_CASE("attributes: every command and every field has its words") {
    REQUIRE(attribute_commands() == 39);
    for (uint32_t n = 0; n < attribute_commands(); ++n) {
        const AttributeCommand command = attribute_command(n);
        INFO(sys::command_name(n));
        CHECK(is_version(command.since));
        CHECK(!command.does.empty());
        uint32_t end = 0;
        const std::vector<AttributeField> fields = attribute_fields(n);
        CHECK(!fields.empty());
        for (const AttributeField &field : fields) {
            INFO(std::string(field.name));
            CHECK(is_version(field.since));
            CHECK(!field.meaning.empty());
            CHECK(!field.kind.empty());
            CHECK(field.offset % (field.size == 8 ? 8 : 4) == 0);
            if (field.name.find('.') == field.name.npos && n != 28) { // one behind the other; LINK_CREATE's are a union
                CHECK(field.offset >= end);
                end = field.offset + field.size;
            }
        }
        CHECK(attribute_words_left(n).empty());
    }
}

TEST_CASE("attributes: places as in the kernel's header") {
    const std::vector<AttributeField> load = attribute_fields(5), link = attribute_fields(28);
    REQUIRE(find(load, "expected_attach_type"));
    CHECK(find(load, "expected_attach_type")->offset == 68);
    CHECK(find(load, "expected_attach_type")->since == "4.17");
    CHECK(find(load, "prog_name")->size == 16);
    CHECK(find(load, "log_true_size")->offset == 140);
    REQUIRE(find(link, "kprobe_multi.cookies"));
    CHECK(find(link, "kprobe_multi.cookies")->offset == 40);
    CHECK(find(link, "target_ifindex")->offset == find(link, "target_fd")->offset);
}

TEST_CASE("attributes: commands by name and number") {
    CHECK(attribute_command_named("BPF_PROG_LOAD") == 5U);
    CHECK(attribute_command_named("prog_load") == 5U);
    CHECK(attribute_command_named("5") == 5U);
    CHECK(!attribute_command_named("05"));
    CHECK(!attribute_command_named("39"));
    CHECK(!attribute_command_named("BPF_PROG"));
    CHECK(!attribute_command_named(""));
}
