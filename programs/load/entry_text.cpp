// Keys and values are bytes; BTF says what they are. Where it doesn't, or says something that the bytes can't be, they are shown
// as numbers and hexadecimal digits.
//
//      per CPU:    [ value cpu 0 |pad][ value cpu 1 |pad] ...     each padded to 8 bytes
#include "programs/load/entry_text.h"

#include <algorithm>

#include "asm/map_types.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::load_tool {
namespace {

bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

} // namespace

std::string_view why_unreadable(uint32_t map_type) {
    switch (map_type_row(map_type).contents) {
    case MapContents::entries: break;
    case MapContents::ring: return "a ring is read by its reader, as records come";
    case MapContents::taken: return "reading it would take out what is in it";
    case MapContents::asked: return "a bloom filter can be asked, not listed";
    case MapContents::owned: return "its values belong to sockets, inodes, tasks or cgroups, and are found by those only";
    case MapContents::kernels: return "a struct of the kernel's, registered by its link";
    case MapContents::memory: return "an arena is memory, without entries";
    }
    return {};
}

void EntryText::one(std::string &out, btf::TypeId type, Bytes bytes) const {
    if (types_.btf && type != 0 && btf::append_value(out, *types_.btf, type, bytes, style_)) return;
    btf::append_untyped(out, bytes, style_);
}

void EntryText::each_cpu(Bytes value, const std::function<void(size_t, Bytes)> &see) const {
    const size_t size = map_.value_size();
    if (!map_.per_cpu()) return see(0, value.first(std::min(value.size(), size)));
    const size_t stride = (size + 7) & ~size_t{7};
    for (size_t at = 0, cpu = 0; at + stride <= value.size(); at += stride, ++cpu) see(cpu, value.subspan(at, size));
}

void EntryText::value(std::string &out, Bytes value) const {
    if (!map_.per_cpu()) return one_value(out, value.first(std::min<size_t>(value.size(), map_.value_size())));
    const bool json = style_ == btf::ValueStyle::json;
    if (json) out += '[';
    bool first = true;
    each_cpu(value, [&](size_t cpu, Bytes bytes) {
        if (!json && all_zero(bytes)) return;
        if (!first) out += json ? "," : ", ";
        first = false;
        if (!json) append(out, "[cpu {}] ", cpu);
        one_value(out, bytes);
    });
    if (json)
        out += ']';
    else if (first)
        out += "0 on every CPU";
}

bool each_variable(const btf::Btf &btf, btf::TypeId section, Bytes bytes,
                   const std::function<void(std::string_view, btf::TypeId, Bytes)> &see) {
    const Result<btf::Type> type = btf.type(section);
    if (!type || type->kind != btf::Kind::datasec) return false;
    for (uint32_t i = 0; i < type->vlen; ++i) {
        const Result<btf::VarSecinfo> place = btf.secinfo(*type, i);
        if (!place || place->offset > bytes.size() || place->size > bytes.size() - place->offset) continue;
        const Result<btf::Type> variable = btf.type(place->type);
        if (!variable) continue;
        see(variable->name, variable->size_or_type, bytes.subspan(place->offset, place->size));
    }
    return true;
}

} // namespace rawbpf::inline v0::load_tool
