// Object files into specs: on a synthetic object, its variations, and what hostile ones do to it.
#include "runtime/object/elf_object.h"

#include <algorithm>
#include <iterator>

#include "asm/kinds.h"
#include "runtime/base/format.h"
#include "runtime/object/sections.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"
#include "tests/unit/object/sample.h"

using namespace rawbpf;
using test::sample_object;
using test::SampleOptions;

namespace {

ObjectSpec parsed(const SampleOptions &options = {}) {
    auto spec = parse_object(sample_object(options), "dir/sample.bpf.o");
    if (!spec) FAIL(spec.error().message());
    return *spec;
}

std::vector<std::string> names(const std::vector<ProgramSpec::Subprogram> &list) {
    std::vector<std::string> out;
    out.reserve(list.size());
    for (const auto &item : list) out.push_back(format("{}@{}", item.name, item.insn));
    return out;
}

using Strings = std::vector<std::string>;

} // namespace

TEST_CASE("object: license, version, and maps in libbpf's order") {
    ObjectSpec spec = parsed();
    CHECK(spec.license == "GPL");
    CHECK(spec.kernel_version == 0x60c00);
    REQUIRE(spec.maps.size() == 7);
    const MapSpec &counts = spec.maps[0];
    CHECK(counts.name == "counts");
    CHECK(counts.type == uint32_t(MapType::HASH));
    CHECK(counts.key_size == 4);
    CHECK(counts.value_size == 8);
    CHECK(counts.max_entries == 64);
    CHECK(counts.key_type == 2);
    CHECK(counts.value_type == 3);
    const MapSpec &jumps = spec.maps[1];
    CHECK(jumps.name == "jumps");
    CHECK(jumps.value_size == 4);
    REQUIRE(jumps.slots.size() == 1);
    CHECK(jumps.slots[0].index == 1);
    CHECK(jumps.slots[0].target == "first");
    const MapSpec &nest = spec.maps[2];
    REQUIRE(nest.inner);
    CHECK(nest.inner->name == "nest.inner");
    CHECK(nest.inner->max_entries == 64);
    REQUIRE(nest.slots.size() == 1);
    CHECK(nest.slots[0].index == 0);
    CHECK(nest.slots[0].target == "counts");
}

TEST_CASE("object: data sections become maps with the kernel's names and flags") {
    ObjectSpec spec = parsed();
    MapSpec *data = spec.find_map(".data");
    REQUIRE(data);
    CHECK(data->name == "sample.data");
    CHECK(data->flags == 1u << 10); // mmapable: it has globals
    CHECK(data->value_size == 8);
    CHECK(!data->freeze);
    MapSpec *rodata = spec.find_map("sample.rodata");
    REQUIRE(rodata);
    CHECK(rodata->freeze);
    CHECK(rodata->flags == (1u << 10 | 1u << 7));
    MapSpec *bss = spec.find_map(".bss");
    REQUIRE(bss);
    CHECK(bss->flags == 0); // only static variables
    CHECK(bss->contents.empty());
    CHECK(bss->value_size == 16);
    MapSpec *strings = spec.find_map(".rodata.str1.1");
    REQUIRE(strings);
    CHECK(strings->value_type == 0);
    CHECK(strings->contents.size() == 3);
}

TEST_CASE("object: globals are found by name, and .bss gets bytes when asked for") {
    ObjectSpec spec = parsed();
    std::span<std::byte> seed = spec.find_global("seed");
    REQUIRE(seed.size() == 4);
    CHECK(load<uint32_t>(seed.data()) == 7);
    CHECK(load<uint32_t>(spec.find_global("limit").data()) == 9);
    CHECK(load<uint32_t>(spec.find_global("mask").data()) == 0xf0f0);
    CHECK(spec.find_global("ticks").size() == 8);
    CHECK(spec.find_map(".bss")->contents.size() == 16);
    CHECK(spec.find_global("nothing").empty());
}

TEST_CASE("object: DATASEC sizes and offsets are filled in and sorted") {
    ObjectSpec spec = parsed();
    auto types = btf::Btf::parse(spec.btf, "x");
    REQUIRE(types);
    auto data = types->type(*types->find(".data", btf::Kind::datasec));
    CHECK(data->size_or_type == 8);
    auto first = *types->secinfo(*data, 0), second = *types->secinfo(*data, 1);
    CHECK(types->type(first.type)->name == "limit");
    CHECK(first.offset == 0);
    CHECK(types->type(second.type)->name == "seed");
    CHECK(second.offset == 4);
    CHECK(types->type(*types->find(".bss", btf::Kind::datasec))->size_or_type == 16);
}

TEST_CASE("object: hidden functions and variables become static") {
    ObjectSpec spec = parsed({.hidden_leaf = true});
    auto types = btf::Btf::parse(spec.btf, "x");
    REQUIRE(types);
    CHECK(types->type(*types->find("leaf", btf::Kind::func))->vlen == 0);
    CHECK(types->type(*types->find("first", btf::Kind::func))->vlen == 1);
    CHECK(types->var_linkage(*types->type(*types->find("limit", btf::Kind::var))) == 0);
    CHECK(types->var_linkage(*types->type(*types->find("seed", btf::Kind::var))) == 1);
}

TEST_CASE("object: programs by section and place, with what the section's name says") {
    ObjectSpec spec = parsed();
    REQUIRE(spec.programs.size() == 3);
    CHECK(spec.programs[0].name == "first");
    CHECK(spec.programs[0].section == "kprobe/vfs_read");
    CHECK(spec.programs[0].type == uint32_t(ProgramType::KPROBE));
    CHECK(spec.programs[0].attach_target == "vfs_read");
    CHECK(spec.programs[0].autoload);
    CHECK(spec.programs[1].name == "second");
    CHECK(spec.programs[2].name == "drop");
    CHECK(spec.programs[2].section == "xdp");
    CHECK(!spec.programs[2].autoload);
    CHECK(spec.programs[2].expected_attach_type == uint32_t(AttachType::XDP));
    CHECK(spec.find_program("second") == &spec.programs[1]);
    CHECK(!spec.find_program("leaf"));
}

TEST_CASE("object: subprograms are appended when first called, and calls are aimed at them") {
    ObjectSpec spec = parsed();
    const ProgramSpec &first = spec.programs[0];
    CHECK(names(first.subprograms) == Strings{"first@0", "walk@11", "leaf@15"});
    CHECK(first.insns.size() == 17);
    CHECK(first.insns[1].imm == 11 - 1 - 1);   // first -> walk
    CHECK(first.insns[12].imm == 15 - 12 - 1); // walk -> leaf
    CHECK(first.insns[12].src == 1);
    const ProgramSpec &second = spec.programs[1];
    CHECK(names(second.subprograms) == Strings{"second@0", "walk@5", "leaf@9"});
    CHECK(second.insns[1].imm == 5 - 1 - 1);
    CHECK(second.insns[2].src == 4); // the address of leaf, BPF_PSEUDO_FUNC
    CHECK(second.insns[2].imm == 9 - 2 - 1);
    CHECK(spec.programs[2].insns.size() == 4);
}

TEST_CASE("object: references to maps and data become fixups") {
    ObjectSpec spec = parsed();
    const ProgramSpec &first = spec.programs[0];
    REQUIRE(first.fixups.size() == 4);
    CHECK(first.fixups[0].kind == Fixup::Kind::map_fd);
    CHECK(first.fixups[0].insn == 2);
    CHECK(spec.maps[first.fixups[0].map].name == "counts");
    CHECK(first.insns[2].src == 1);
    CHECK(first.fixups[1].kind == Fixup::Kind::map_value); // limit, by its symbol
    CHECK(spec.maps[first.fixups[1].map].data_section == ".data");
    CHECK(first.fixups[1].offset == 0);
    CHECK(first.insns[4].src == 2);
    CHECK(spec.maps[first.fixups[2].map].data_section == ".bss"); // ticks, by section and addend
    CHECK(first.fixups[2].offset == 8);
    CHECK(first.insns[7].imm == 8);
    CHECK(first.fixups[3].offset == 4); // seed
}

TEST_CASE("object: addresses in data are left as they are, and said so") {
    CHECK(parsed().notes.empty());
    ObjectSpec one = parsed({.pointers = 1});
    CHECK(one.notes ==
          Strings{
              ".data: rawbpf left an address, of seed, at offset 0x0, as it is in the file: data in a map can't hold pointers"});
    CHECK(parsed({.pointers = 2}).notes.at(0).starts_with(".data: rawbpf left 2 addresses, the first of seed, at"));
    CHECK(print_spec(one).find("\nnote: .data: rawbpf left an address") != std::string::npos);
    one.notes.clear();
    CHECK(print_spec(one) == print_spec(parsed())); // nothing else came of it
}

TEST_CASE("object: func_info, line_info and CO-RE relocations move with their functions") {
    for (uint32_t padding : {0u, 8u}) {
        CAPTURE(padding);
        ObjectSpec spec = parsed({.record_padding = padding});
        const ProgramSpec &second = spec.programs[1];
        auto types = btf::Btf::parse(spec.btf, "x");
        REQUIRE(types);
        REQUIRE(second.func_info.size() == 3);
        CHECK(second.func_info[0].insn == 0);
        CHECK(types->type(second.func_info[0].type)->name == "second");
        CHECK(second.func_info[1].insn == 5);
        CHECK(types->type(second.func_info[1].type)->name == "walk");
        CHECK(second.func_info[2].insn == 9);
        REQUIRE(second.line_info.size() == 4);
        CHECK(second.line_info[0].insn == 0);
        CHECK(second.line_info[1].insn == 5);
        CHECK(second.line_info[2].insn == 6);
        CHECK(*types->string(second.line_info[2].line) == "return leaf(x) + 1;");
        CHECK(*types->string(second.line_info[2].file) == "sample.c");
        CHECK(second.line_info[2].number_column == (2 << 10 | 9));
        CHECK(second.line_info[3].insn == 9);
        REQUIRE(second.core_relocations.size() == 1);
        CHECK(second.core_relocations[0].insn == 6);
        CHECK(second.core_relocations[0].kind == 9);
        const ProgramSpec &first = spec.programs[0];
        REQUIRE(first.core_relocations.size() == 2);
        CHECK(first.core_relocations[0].insn == 0);
        CHECK(first.core_relocations[0].access == "0:1");
        CHECK(types->type(first.core_relocations[0].type)->name == "task_struct");
        CHECK(first.core_relocations[1].insn == 12);
    }
}

TEST_CASE("object: one function without func_info leaves its programs without") {
    ObjectSpec spec = parsed({.info_for_leaf = false});
    CHECK(spec.programs[0].func_info.empty());
    CHECK(spec.programs[0].line_info.empty());
    CHECK(spec.programs[2].func_info.size() == 1);
    CHECK(parsed({.with_btf_ext = false}).programs[0].func_info.empty());
}

TEST_CASE("object: functions without sizes end where the next one starts") {
    CHECK(print_spec(parsed({.function_sizes = false})) == print_spec(parsed()));
}

TEST_CASE("object: externs are recorded and made digestible for the kernel") {
    ObjectSpec spec = parsed({.with_externs = true});
    REQUIRE(spec.externs.size() == 6);
    // .kconfig: big alignments first
    CHECK(spec.externs[0].name == "CONFIG_HZ");
    CHECK(spec.externs[0].offset == 0);
    CHECK(spec.externs[0].weak);
    CHECK(spec.externs[1].name == "LINUX_KERNEL_VERSION");
    CHECK(spec.externs[1].offset == 8);
    CHECK(spec.externs[2].name == "CONFIG_SMALL");
    CHECK(spec.externs[2].offset == 12);
    CHECK(spec.externs[3].name == "bpf_kfunc");
    CHECK(spec.externs[3].is_function);
    MapSpec *kconfig = spec.find_map(".kconfig");
    REQUIRE(kconfig);
    CHECK(kconfig->value_size == 13);
    CHECK(kconfig == &spec.maps.back());

    const ProgramSpec *program = spec.find_program("externs");
    REQUIRE(program);
    REQUIRE(program->fixups.size() == 4);
    CHECK(program->fixups[0].kind == Fixup::Kind::kfunc);
    CHECK(program->fixups[0].symbol == "bpf_kfunc");
    CHECK(program->fixups[0].weak);
    CHECK(program->insns[0].src == 2);
    CHECK(program->fixups[1].kind == Fixup::Kind::ksym);
    CHECK(program->fixups[1].type != 0);
    CHECK(program->fixups[2].symbol == "jiffies");
    CHECK(program->fixups[2].type == 0); // known by address only
    CHECK(program->fixups[3].kind == Fixup::Kind::map_value);
    CHECK(program->fixups[3].offset == 8);

    auto types = btf::Btf::parse(spec.btf, "x");
    REQUIRE(types);
    auto ksyms = types->type(*types->find(".ksyms", btf::Kind::datasec));
    CHECK(ksyms->size_or_type == 12);
    for (uint32_t i = 0; i < 3; ++i) {
        auto place = *types->secinfo(*ksyms, i);
        auto variable = types->type(place.type);
        CHECK(variable->kind == btf::Kind::var);
        CHECK(types->var_linkage(*variable) == 1);
        CHECK(place.offset == i * 4);
        CHECK(place.size == 4);
        CHECK(*types->size_of(place.type) == 4);
    }
    auto kfunc = types->type(*types->find("bpf_kfunc", btf::Kind::func));
    CHECK(kfunc->vlen == 1);
    CHECK(types->param(*types->type(kfunc->size_or_type), 0)->name == "dummy_ksym");
}

TEST_CASE("object: a function that nobody defines") {
    const auto spec = parse_object(sample_object({.undefined_call = true}), "x.o");
    REQUIRE(!spec);
    CHECK(spec.error().context == "x.o: sample.c:9: kprobe/vfs_read: offset 0x68: my_helper is defined nowhere: neither in this "
                                  "object nor declared __ksym or __kconfig");
    CHECK(spec.error().hint.find("rawbpf link") != std::string::npos);
}

TEST_CASE("object: an unknown section is kept, and explained") {
    auto spec = parse_object(test::bare_object("kprob/vfs_read", {{0x95, 0, 0, 0, 0}}), "x.o");
    REQUIRE(spec);
    REQUIRE(spec->programs.size() == 1);
    CHECK(spec->programs[0].type == 0);
    CHECK(spec->license.empty());
    CHECK(explain_unknown_section("cgroup/unknown").find("the nearest known are \"cgroup/") != std::string::npos);
    const std::string why = explain_unknown_section("kprob/vfs_read");
    CHECK(why.find("\"kprobe/...\"") != std::string::npos);
}

TEST_CASE("object: a call into the middle of a function is refused") {
    auto spec = parse_object(test::bare_object("xdp", {{0x85, 0, 1, 0, 0}, {0x95, 0, 0, 0, 0}}), "x.o");
    REQUIRE(!spec);
    CHECK(spec.error().kind == Errc::bad_input);
    CHECK(spec.error().context ==
          "x.o: function prog: instruction 0: calls instruction 1 of its section, where no function starts");
}

TEST_CASE("object: cut at every byte, it is refused or parsed, never read past the end") {
    const std::vector<std::byte> whole = sample_object({.with_externs = true});
    size_t refused = 0;
    for (size_t size = 0; size < whole.size(); ++size) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + size); // its own allocation: ASan sees every byte past it
        refused += !parse_object(cut, "cut.o");
    }
    CHECK(refused == whole.size()); // the section headers come last
}

TEST_CASE("object: any byte may lie") {
    const std::vector<std::byte> whole = sample_object({.with_externs = true});
    const unsigned values[] = {0x00, 0x7f, 0xff};
    for (size_t at = 0; at < whole.size(); ++at) {
        for (const unsigned value : values) {
            if (test::slow() && value != values[at % std::size(values)]) continue; // 22 s otherwise
            std::vector<std::byte> changed = whole;
            changed[at] = std::byte(value);
            auto spec = parse_object(changed, "changed.o");
            if (!spec) CHECK(!spec.error().context.empty());
        }
    }
}

TEST_CASE("object: legacy maps sections") {
    for (size_t words : {5, 7}) {
        CAPTURE(words);
        auto spec = parse_object(test::legacy_maps_object(words, 0), "old.o");
        REQUIRE(spec);
        REQUIRE(spec->maps.size() == 2);
        CHECK(spec->maps[1].name == "second");
        CHECK(spec->maps[1].type == uint32_t(MapType::ARRAY));
        CHECK(spec->maps[1].key_size == 4);
        CHECK(spec->maps[1].value_size == 16);
        CHECK(spec->maps[1].max_entries == 32);
        CHECK(spec->maps[1].flags == 64);
        REQUIRE(spec->programs[0].fixups.size() == 1);
        CHECK(spec->programs[0].fixups[0].map == 1);
    }
    auto spec = parse_object(test::legacy_maps_object(7, 2), "old.o"); // iproute2's pinning, or a numa node?
    REQUIRE(!spec);
    CHECK(spec.error().context.starts_with("old.o: maps: offset 0x18: map first uses a field beyond map_flags"));
}

TEST_CASE("object: a jump table is what its symbol covers, its places are the function's instructions") {
    auto spec = parse_object(test::jump_table_object({.entries = {24, 16}, .addend = 8}), "table.bpf.o");
    REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message()));
    const ProgramSpec &program = spec->programs.at(0);
    CHECK(program.jump_tables == std::vector<std::vector<uint32_t>>{{3, 2}});
    REQUIRE(program.fixups.size() == 1);
    CHECK(program.fixups[0].kind == Fixup::Kind::jump_table);
    CHECK(program.fixups[0].offset == 8);
    CHECK((program.insns[0].src == 2)); // BPF_PSEUDO_MAP_VALUE
    CHECK(program.insns[0].imm == 0);
    CHECK(program.insns[1].imm == 8);
    CHECK(print_spec(*spec).find("jump table+8: 3 2") != std::string::npos);

    auto problem = [](const test::TableOptions &options) {
        auto broken = parse_object(test::jump_table_object(options), "t.o");
        REQUIRE(!broken);
        CHECK(broken.error().kind == Errc::bad_input);
        return broken.error().message();
    };
    const std::string outside = "which isn't an instruction of the function";
    CHECK(problem({.entries = {16, 32}}).find("entry 1 of its jump table leads to byte 0x20") != std::string::npos);
    CHECK(problem({.entries = {20, 24}}).find(outside) != std::string::npos);
    CHECK(problem({.entries = {~uint64_t{7}, 24}}).find(outside) != std::string::npos);
    CHECK(problem({.size = 0}) == "t.o: socket: offset 0x0: BPF.JT.0.0 covers 0 bytes at 0x0 of .jumptables's 16, so it isn't a "
                                  "jump table with entries of 8 bytes");
    for (uint64_t size : {12, 24}) CHECK(problem({.size = size}).find("covers") != std::string::npos);
    CHECK(problem({.start = 8}).find("covers") != std::string::npos);
    CHECK(problem({.start = 4, .size = 8}).find("covers") != std::string::npos);
}

TEST_CASE("object: functions may share a place, but not overlap") {
    auto alias = parse_object(test::two_functions_object(0, 16), "x.o");
    REQUIRE(alias);
    CHECK(alias->programs.size() == 1);
    auto apart = parse_object(test::two_functions_object(16, 16), "x.o");
    REQUIRE(apart);
    CHECK(apart->programs.size() == 2);
    for (auto [start, size] : {std::pair(8, 8), std::pair(8, 16), std::pair(0, 8)}) {
        auto overlap = parse_object(test::two_functions_object(start, size), "x.o");
        REQUIRE(!overlap);
        CHECK(overlap.error().context.find("overlap") != std::string::npos);
    }
    CHECK(!parse_object(test::two_functions_object(16, 24), "x.o")); // past the end
    CHECK(!parse_object(test::two_functions_object(12, 8), "x.o"));  // not at an instruction
}

TEST_CASE("object: strings in .BTF may be long, but not endless") {
    CHECK(parse_object(sample_object({.long_string = 60'000}), "x.o"));
    auto spec = parse_object(sample_object({.long_string = 70'000}), "x.o");
    REQUIRE(!spec);
    CHECK(spec.error().context.find("has 70000 characters, and 65536 are the most") != std::string::npos);
}

TEST_CASE("object: another machine's object is named as such") {
    std::vector<std::byte> bytes = sample_object();
    bytes[18] = std::byte{62}; // EM_X86_64
    auto spec = parse_object(bytes, "x.o");
    REQUIRE(!spec);
    CHECK(spec.error().context == "x.o: it isn't a BPF object: it has x86_64 code");
    CHECK(spec.error().hint.find("clang --target=bpf") != std::string::npos);
    bytes[18] = std::byte{75}; // a VAX's
    CHECK(parse_object(bytes, "x.o").error().context == "x.o: it isn't a BPF object: it has code of machine 75, and BPF is 247");
}
