// The running kernel's BTF, read by us and by bpftool: the same types, names and parts, every one of them.
#include "runtime/btf/btf.h"

#include <cstdio>
#include <map>

#include "runtime/base/format.h"
#include "runtime/btf/compare.h"
#include "runtime/btf/print_c.h"
#include "runtime/sys/file.h"
#include "tests/support/test.h"

using namespace rawbpf;
using btf::Btf;
using btf::Kind;

namespace {

constexpr char kPath[] = "/sys/kernel/btf/vmlinux";

std::string name_of(std::string_view name) { return name.empty() ? "'(anon)'" : format("'{}'", name); }

/// One type as `bpftool btf dump` writes it in its raw format, parts on lines of their own. Empty: a kind this doesn't know.
std::string as_bpftool(const Btf &b, const btf::Type &t) {
    static const std::map<Kind, std::string_view> kNames = {{Kind::int_, "INT"},
                                                            {Kind::ptr, "PTR"},
                                                            {Kind::array, "ARRAY"},
                                                            {Kind::struct_, "STRUCT"},
                                                            {Kind::union_, "UNION"},
                                                            {Kind::enum_, "ENUM"},
                                                            {Kind::fwd, "FWD"},
                                                            {Kind::typedef_, "TYPEDEF"},
                                                            {Kind::volatile_, "VOLATILE"},
                                                            {Kind::const_, "CONST"},
                                                            {Kind::restrict_, "RESTRICT"},
                                                            {Kind::func, "FUNC"},
                                                            {Kind::func_proto, "FUNC_PROTO"},
                                                            {Kind::var, "VAR"},
                                                            {Kind::datasec, "DATASEC"},
                                                            {Kind::float_, "FLOAT"},
                                                            {Kind::decl_tag, "DECL_TAG"},
                                                            {Kind::type_tag, "TYPE_TAG"},
                                                            {Kind::enum64, "ENUM64"}};
    auto kind = kNames.find(t.kind);
    if (kind == kNames.end()) return {};
    std::string out = format("[{}] {} {}", t.id, kind->second, name_of(t.name));
    switch (t.kind) {
    case Kind::int_: {
        btf::IntEncoding e = b.int_encoding(t);
        append(out, " size={} bits_offset={} nr_bits={} encoding={}", t.size_or_type, e.bit_offset, e.bits,
               e.is_bool     ? "BOOL"
               : e.is_char   ? "CHAR"
               : e.is_signed ? "SIGNED"
                             : "(none)");
        break;
    }
    case Kind::array: {
        btf::Array a = b.array(t);
        append(out, " type_id={} index_type_id={} nr_elems={}", a.element, a.index, a.count);
        break;
    }
    case Kind::struct_:
    case Kind::union_:
        append(out, " size={} vlen={}", t.size_or_type, t.vlen);
        for (uint32_t i = 0; i < t.vlen; ++i) {
            btf::Member m = *b.member(t, i);
            append(out, "\n\t{} type_id={} bits_offset={}", name_of(m.name), m.type, m.bit_offset);
            if (m.bit_size) append(out, " bitfield_size={}", m.bit_size);
        }
        break;
    case Kind::enum_:
    case Kind::enum64:
        append(out, " encoding={} size={} vlen={}", t.kind_flag ? "SIGNED" : "UNSIGNED", t.size_or_type, t.vlen);
        for (uint32_t i = 0; i < t.vlen; ++i) {
            btf::EnumValue v = *b.enum_value(t, i);
            std::string number = t.kind == Kind::enum64
                                     ? t.kind_flag ? format("{}LL", static_cast<int64_t>(v.value)) : format("{}ULL", v.value)
                                 : t.kind_flag ? format("{}", static_cast<int64_t>(v.value))
                                               : format("{}", v.value);
            append(out, "\n\t{} val={}", name_of(v.name), number);
        }
        break;
    case Kind::fwd: append(out, " fwd_kind={}", t.kind_flag ? "union" : "struct"); break;
    case Kind::func_proto:
        append(out, " ret_type_id={} vlen={}", t.size_or_type, t.vlen);
        for (uint32_t i = 0; i < t.vlen; ++i) {
            btf::Param p = *b.param(t, i);
            append(out, "\n\t{} type_id={}", name_of(p.name), p.type);
        }
        break;
    case Kind::func:
        append(out, " type_id={} linkage={}", t.size_or_type, t.vlen == 0 ? "static" : t.vlen == 1 ? "global" : "extern");
        break;
    case Kind::var:
        append(out, " type_id={}, linkage={}", t.size_or_type,
               b.var_linkage(t) == 0   ? "static"
               : b.var_linkage(t) == 1 ? "global"
                                       : "extern");
        break;
    case Kind::datasec:
        append(out, " size={} vlen={}", t.size_or_type, t.vlen);
        for (uint32_t i = 0; i < t.vlen; ++i) {
            btf::VarSecinfo v = *b.secinfo(t, i);
            append(out, "\n\ttype_id={} offset={} size={}", v.type, v.offset, v.size);
            if (auto var = b.type(v.type)) append(out, " ({} '{}')", var->kind == Kind::func ? "FUNC" : "VAR", var->name);
        }
        break;
    case Kind::float_: append(out, " size={}", t.size_or_type); break;
    case Kind::decl_tag: append(out, " type_id={} component_idx={}", t.size_or_type, b.decl_tag_component(t)); break;
    default: append(out, " type_id={}", t.size_or_type); break;
    }
    return out;
}

} // namespace

TEST_CASE("btf kernel: every type as bpftool reads it") {
    auto file = sys::read_into_mapping(kPath);
    if (!file) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF), 5.4");
    FILE *dump = popen("bpftool btf dump file /sys/kernel/btf/vmlinux 2>/dev/null", "r");
    REQUIRE(dump);
    std::string text;
    char buffer[65536];
    while (size_t n = fread(buffer, 1, sizeof buffer, dump)) text.append(buffer, n);
    pclose(dump);
    if (text.empty()) SKIP("needs bpftool");

    auto b = Btf::parse(file->bytes(), "vmlinux");
    REQUIRE(b);
    size_t at = 0;
    btf::TypeId id = 1;
    int different = 0;
    for (; at < text.size() && id < b->end_id() && different < 5; ++id) {
        size_t end = text.find("\n[", at);
        end = end == std::string::npos ? text.size() : end + 1;
        std::string theirs = text.substr(at, end - at);
        while (!theirs.empty() && theirs.back() == '\n') theirs.pop_back();
        at = end;
        auto type = b->type(id);
        REQUIRE(type);
        std::string ours = as_bpftool(*b, *type);
        if (ours != theirs) {
            ++different;
            CHECK(ours == theirs);
        }
    }
    CHECK(id == b->end_id());
    CHECK(at == text.size());
}

TEST_CASE("btf kernel: names are found as a plain search finds them") {
    auto file = sys::map_file(kPath);
    if (!file) file = sys::read_into_mapping(kPath); // before 6.16
    if (!file) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF), 5.4");
    auto b = Btf::parse(file->bytes(), "vmlinux");
    REQUIRE(b);
    CHECK(b->heap_size() < 40 * 1024);
    std::map<std::string_view, std::vector<btf::TypeId>> by_name;
    for (btf::TypeId id = 1; id < b->end_id(); ++id)
        if (auto type = b->type(id); type && !type->name.empty()) by_name[type->name].push_back(id);
    size_t number = 0;
    for (const auto &[name, ids] : by_name) {
        if (number++ % 401 != 0) continue; // some 200 names of 80,000
        CAPTURE(name);
        CHECK(b->find(name) == ids.front());
        CHECK(b->find_all(name) == ids);
        auto last = b->type(ids.back());
        auto same_kind = b->find(name, last->kind);
        REQUIRE(same_kind);
        CHECK(b->type(*same_kind)->kind == last->kind);
    }
    CHECK(!b->find("no_such_type_anywhere"));
}

TEST_CASE("btf kernel: every type has a size or says why, prints as C and agrees with itself") {
    auto file = sys::map_file(kPath);
    if (!file) file = sys::read_into_mapping(kPath); // before 6.16
    if (!file) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF), 5.4");
    auto b = Btf::parse(file->bytes(), "vmlinux");
    REQUIRE(b);
    size_t text = 0;
    for (btf::TypeId id = 1; id < b->end_id(); ++id) {
        auto type = b->type(id);
        REQUIRE(type);
        auto c = btf::print_c(*b, id);
        CAPTURE(id);
        REQUIRE(c);
        text += c->size();
        if (type->kind == Kind::struct_ || type->kind == Kind::union_) {
            CHECK(*b->size_of(id) == type->size_or_type);
            CHECK(*btf::types_compatible(*b, id, *b, id));
        }
    }
    CHECK(text > 1000000);
    auto task = b->find("task_struct", Kind::struct_);
    REQUIRE(task);
    CHECK(*btf::types_match(*b, *task, *b, *task));
    auto definition = btf::print_c(*b, *task);
    REQUIRE(definition);
    CHECK(definition->starts_with("struct task_struct {\n"));
    CHECK(definition->find("\n    struct mm_struct *mm;\n") != std::string::npos);
}
