// The BTF reader, on its own and as the split part of a sound base; then all that asks it: finding, sizes, comparison for CO-RE,
// headers and listings.
#include <algorithm>
#include <cstdlib>

#include "runtime/btf/btf.h"
#include "runtime/btf/c_header.h"
#include "runtime/btf/compare.h"
#include "runtime/btf/print_c.h"
#include "runtime/btf/print_raw.h"

using namespace rawbpf;
using btf::Btf;

namespace {

uint64_t sum;

const Btf &base() {
    static const std::vector<std::byte> bytes = [] {
        btf::Writer w;
        (void)w.add_int("int", 4, true);
        (void)w.add_struct("task_struct", 8, {{"pid", 1, 0}, {"next", 3, 32}});
        (void)w.add_ptr(2);
        return w.finish();
    }();
    static const Btf btf = *Btf::parse(bytes, "base");
    return btf;
}

void read_type(const Btf &btf, const btf::Type &type) {
    for (char c : type.name) sum += static_cast<uint8_t>(c);
    for (uint32_t i = 0; i < std::min(type.vlen, 64u); ++i) {
        if (auto m = btf.member(type, i)) sum += m->name.size();
        if (auto v = btf.enum_value(type, i)) sum += v->name.size();
        if (auto p = btf.param(type, i)) sum += p->name.size();
        if (auto s = btf.secinfo(type, i)) sum += s->size;
    }
    sum += btf.array(type).count + btf.int_encoding(type).bits + btf.var_linkage(type);
    sum += static_cast<uint32_t>(btf.decl_tag_component(type));
}

void read_all(const Btf &btf) {
    const btf::TypeId end = std::min(btf.end_id(), btf.first_id() + 200);
    for (btf::TypeId id = btf.first_id(); id < end; ++id) {
        auto type = btf.type(id);
        (void)btf.size_of(id);
        (void)btf.resolve(id);
        if (!type) continue;
        read_type(btf, *type);
        sum += btf::describe(btf, id).size();
        if (id % 16 == 1)
            if (auto text = btf::print_c(btf, id, {.offsets = true, .tags = true}))
                for (char c : *text)
                    if (c != '\n' && (c < 0x20 || c > 0x7e)) std::abort(); // nothing that a terminal would obey
        if (id % 8 == 0 && !type->name.empty()) {
            auto found = btf.find(type->name, type->kind);
            // What was read must be found, and be the first of its name and kind unless the types claim to be sorted.
            if (!found || (*found > id && !btf.sorted())) std::abort();
            auto all = btf.find_all(type->name);
            if (!std::binary_search(all.begin(), all.end(), id)) std::abort();
            auto flavours = btf.find_flavours(btf::essential_name(type->name));
            if (!std::binary_search(flavours.begin(), flavours.end(), id)) std::abort();
        }
    }
    if (end > btf.first_id() + 1)
        for (btf::TypeId id = btf.first_id(); id < std::min(end, btf.first_id() + 4); ++id) {
            (void)btf::fields_compatible(btf, id, btf, end - 1);
            (void)btf::types_compatible(btf, id, btf, end - 1);
            (void)btf::types_match(btf, id, btf, end - 1);
        }
}

/// Whatever the names are, a header stays one: no line that a compiler or a terminal would take for something else.
void write_all(const Btf &btf) {
    if (auto text = btf::c_header(btf))
        for (char c : *text)
            if (c != '\n' && c != '\t' && (c < 0x20 || c > 0x7e)) std::abort();
    if (auto printer = btf::RawPrinter::make(btf)) {
        std::string out;
        const btf::TypeId end = std::min(btf.end_id(), btf.first_id() + 200);
        for (btf::TypeId id = 0; id < end; ++id) printer->append(out, id);
        for (char c : out)
            if (c != '\n' && c != '\t' && (c < 0x20 || c > 0x7e)) std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes bytes = std::as_bytes(std::span(data, size));
    if (auto btf = Btf::parse(bytes, "fuzz")) {
        read_all(*btf);
        write_all(*btf);
    }
    if (auto btf = Btf::parse(bytes, "split", &base())) {
        read_all(*btf);
        write_all(*btf);
    }
    return 0;
}
