// Parameters marked as the context get the type that kernels before 6.8 know it by.
#include "runtime/kernel/context_arguments.h"

#include <linux/bpf.h>

#include "runtime/btf/btf.h"
#include "tests/support/test.h"

using namespace rawbpf;
using btf::Kind;
using btf::TypeId;

namespace {

struct Object {
    btf::Writer writer;
    TypeId number = writer.add_int("int", 4, true);
    TypeId anything = writer.add_ptr(0);
    ProgramSpec program;

    TypeId function(std::string_view name, TypeId context, uint32_t linkage = 1) {
        const TypeId out =
            writer.add_func(name, writer.add_func_proto(number, {{"n", number}, {"ctx", context}, {"more", anything}}), linkage);
        program.func_info.push_back({static_cast<uint32_t>(program.func_info.size()) * 8, out});
        return out;
    }
    Result<std::optional<ContextArguments>> typed(uint32_t type) {
        program.type = type;
        return type_context_arguments(writer.finish(), program);
    }
};

} // namespace

TEST_CASE("context arguments: a second description of the function, with the type of the program's context") {
    Object o;
    const TypeId entry = o.function("entry", o.anything), sub = o.function("sub", o.anything);
    o.writer.add_decl_tag("arg:ctx", sub, 1);
    o.writer.add_decl_tag("arg:nonnull", sub, 2);
    const std::vector<std::byte> before = o.writer.finish();
    std::optional<ContextArguments> typed = o.typed(BPF_PROG_TYPE_XDP).value();
    REQUIRE(typed);
    const btf::Btf types = btf::Btf::parse(typed->btf, "typed").value(), old = btf::Btf::parse(before, "before").value();
    for (TypeId id = 1; id < old.end_id(); ++id) CHECK(types.type(id).value().name == old.type(id).value().name);
    REQUIRE(typed->func_info.size() == 2);
    CHECK(typed->func_info[0].type == entry);
    CHECK(typed->func_info[1].insn == 8);
    REQUIRE(typed->func_info[1].type >= old.end_id());
    const btf::Type function = types.type(typed->func_info[1].type).value();
    CHECK(function.kind == Kind::func);
    CHECK(function.name == "sub");
    CHECK(function.vlen == 1);
    const btf::Type prototype = types.type(function.size_or_type).value();
    REQUIRE(prototype.vlen == 3);
    CHECK(prototype.size_or_type == o.number);
    CHECK(types.param(prototype, 0).value().type == o.number);
    CHECK(types.param(prototype, 1).value().name == "ctx");
    CHECK(types.param(prototype, 2).value().type == o.anything);
    const btf::Type pointer = types.type(types.param(prototype, 1).value().type).value();
    CHECK(pointer.kind == Kind::ptr);
    CHECK(types.type(pointer.size_or_type).value().name == "xdp_md");
    CHECK(types.type(pointer.size_or_type).value().kind == Kind::struct_);
    const btf::Type tag = types.type(types.end_id() - 1).value();
    CHECK(tag.kind == Kind::decl_tag);
    CHECK(tag.name == "arg:ctx");
    CHECK(tag.size_or_type == function.id);
    CHECK(types.decl_tag_component(tag) == 1);
    // The same object as another type of program; and one whose context has no name.
    typed = o.typed(BPF_PROG_TYPE_KPROBE).value();
    REQUIRE(typed);
    CHECK(btf::Btf::parse(typed->btf, "typed").value().find("bpf_user_pt_regs_t", Kind::struct_));
    CHECK(!o.typed(BPF_PROG_TYPE_TRACEPOINT).value());
    CHECK(!o.typed(BPF_PROG_TYPE_TRACING).value());
}

TEST_CASE("context arguments: what needs no type is left alone") {
    auto needs = [](uint32_t type, auto make) {
        Object o;
        const TypeId context = make(o.writer);
        o.writer.add_decl_tag("arg:ctx", o.function("f", context), 1);
        return o.typed(type).value().has_value();
    };
    auto named = [](std::string_view name) {
        return [name](btf::Writer &w) { return w.add_ptr(w.add_modifier(Kind::const_, w.add_struct(name, 8, {}))); };
    };
    CHECK(!needs(BPF_PROG_TYPE_XDP, named("xdp_md")));
    CHECK(!needs(BPF_PROG_TYPE_XDP, named("something_else"))); // the author's own idea; the verifier will say
    CHECK(needs(BPF_PROG_TYPE_KPROBE, named("pt_regs")));
    CHECK(needs(BPF_PROG_TYPE_PERF_EVENT, named("user_pt_regs")));
    CHECK(needs(BPF_PROG_TYPE_KPROBE,
                [](btf::Writer &w) { return w.add_ptr(w.add_typedef("bpf_user_pt_regs_t", w.add_struct("pt_regs", 8, {}))); }));
    auto u64 = [](btf::Writer &w) { return w.add_ptr(w.add_typedef("u64", w.add_int("long", 8, false))); };
    CHECK(needs(BPF_PROG_TYPE_RAW_TRACEPOINT, u64));
    CHECK(!needs(BPF_PROG_TYPE_XDP, u64));
    CHECK(!needs(BPF_PROG_TYPE_XDP, [](btf::Writer &w) { return w.add_int("long", 8, false); }));

    Object o; // static functions, other programs' functions, and tags that lead nowhere
    o.writer.add_decl_tag("arg:ctx", o.function("local", o.anything, 0), 1);
    const TypeId other = o.function("other", o.anything);
    o.program.func_info.pop_back();
    o.writer.add_decl_tag("arg:ctx", other, 1);
    const TypeId sub = o.function("sub", o.anything);
    o.writer.add_decl_tag("arg:ctx", sub, 3);
    o.writer.add_decl_tag("arg:ctx", sub, -1);
    o.writer.add_decl_tag("arg:ctx", o.number, 0);
    CHECK(!o.typed(BPF_PROG_TYPE_XDP).value());
    o.program.func_info.push_back({80, 4711});
    CHECK(!o.typed(BPF_PROG_TYPE_XDP).value());
    o.writer.add_decl_tag("arg:ctx", 4711, 0);
    CHECK(!o.typed(BPF_PROG_TYPE_XDP)); // a type that doesn't exist
}

TEST_CASE("context arguments: BTF that is cut or flipped") {
    Object o;
    o.writer.add_decl_tag("arg:ctx", o.function("sub", o.anything), 1);
    o.program.type = BPF_PROG_TYPE_XDP;
    const std::vector<std::byte> bytes = o.writer.finish();
    for (size_t size = 0; size < bytes.size(); ++size) (void)type_context_arguments(Bytes(bytes).first(size), o.program);
    for (size_t at = 0; at < bytes.size(); ++at)
        for (unsigned char bits : {0x01, 0x40, 0xff}) {
            std::vector<std::byte> flipped = bytes;
            flipped[at] ^= std::byte{bits};
            if (auto typed = type_context_arguments(flipped, o.program); typed && *typed)
                CHECK(btf::Btf::parse((*typed)->btf, "typed"));
        }
}
