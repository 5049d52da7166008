// JSON has each entry twice, as bpftool does: bytes in hexadecimal, and what they mean where the map has types.
//
//      "key":["0x07","0x00","0x00","0x00"],"value":["0x2a",...],"formatted":{"key":7,"value":42}
#include "programs/running/map_text.h"

#include <cstring>
#include <functional>
#include <utility>

#include <linux/bpf.h>

#include "asm/print.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::running {

using btf::ValueStyle;
using load_tool::EntryText;

namespace {

/// ["0x01","0x02"]
void append_bytes(std::string &out, Bytes bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += '[';
    const size_t at = out.size();
    out.resize(at + bytes.size() * 7);
    char *to = out.data() + at;
    for (const std::byte b : bytes) {
        const auto value = static_cast<unsigned>(b);
        std::memcpy(to, "\"0x00\",", 7);
        to[3] = kDigits[value >> 4];
        to[4] = kDigits[value & 15];
        to += 7;
    }
    if (bytes.empty())
        out += ']';
    else
        out.back() = ']';
}

} // namespace

MapText::MapText(const Map &map, const sys::MapInfo &info, Names &names, bool json)
    : map_(map), info_(info), names_(names), types_{names.btf_of(info), info.btf_key_type_id, info.btf_value_type_id},
      text_(map, types_, json ? ValueStyle::json : ValueStyle::c) {}

std::string MapText::heading() const {
    return format("map {} ({}): key {} B, value {} B, {} entries at most", labelled(info_.id, name_text(info_.name)),
                  map_kind_name(info_.type), info_.key_size, info_.value_size, info_.max_entries);
}

void MapText::value(std::string &out, Bytes value) const {
    if (!reference(out, value)) text_.value(out, value);
}

bool MapText::has_variables() const {
    if (!types_.btf || types_.value == 0 || info_.max_entries != 1) return false;
    const Result<btf::Type> section = types_.btf->type(types_.value);
    return section && section->kind == btf::Kind::datasec;
}

bool MapText::each_variable(Bytes value, const std::function<void(std::string_view name, const std::string &text)> &see) const {
    if (!types_.btf || types_.value == 0 || info_.max_entries != 1) return false;
    return load_tool::each_variable(*types_.btf, types_.value, value, [&](std::string_view name, btf::TypeId type, Bytes part) {
        std::string text;
        EntryText(map_, {types_.btf, 0, type}, ValueStyle::c).one_value(text, part);
        see(name, text);
    });
}

// Ids in place of what a map refers to, with their names.
bool MapText::reference(std::string &out, Bytes value) const {
    if (value.size() < 4) return false;
    const uint32_t id = load<uint32_t>(value.data());
    if (info_.type == BPF_MAP_TYPE_PROG_ARRAY)
        append(out, "program {}", names_.labelled_program(id));
    else if (info_.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || info_.type == BPF_MAP_TYPE_HASH_OF_MAPS)
        append(out, "map {}", names_.labelled_map(id));
    else
        return false;
    return true;
}

void MapText::fields(render::JsonObject &object, std::string &out, Bytes key, Bytes value) const {
    append_bytes(object.raw("key"), key);
    if (map_.per_cpu())
        each_cpu_json(object.raw("values"), value, [&](Bytes one) { append_bytes(out, one); });
    else
        append_bytes(object.raw("value"), value);
    if (!types_.btf || (types_.key == 0 && types_.value == 0)) {
        object.null("formatted");
        return;
    }
    render::JsonObject formatted(object.raw("formatted"));
    text_.key(formatted.raw("key"), key);
    if (map_.per_cpu())
        each_cpu_json(formatted.raw("values"), value, [&](Bytes one) { text_.one_value(out, one); });
    else if (!variables_json(formatted, value))
        text_.one_value(formatted.raw("value"), value);
}

template <class Write> void MapText::each_cpu_json(std::string &out, Bytes value, Write write) const {
    out += '[';
    text_.each_cpu(value, [&](size_t cpu, Bytes one) {
        if (cpu != 0) out += ',';
        render::JsonObject object(out);
        (void)object.number("cpu", cpu).raw("value");
        write(one);
    });
    out += ']';
}

// {".bss":[{"ticks":4711}]}
bool MapText::variables_json(render::JsonObject &formatted, Bytes value) const {
    if (info_.max_entries != 1) return false;
    const Result<btf::Type> section = types_.btf->type(types_.value);
    if (!section || section->kind != btf::Kind::datasec) return false;
    std::string &out = formatted.raw("value");
    render::JsonObject named(out);
    named.key(section->name) += '[';
    bool first = true;
    (void)load_tool::each_variable(*types_.btf, types_.value, value, [&](std::string_view name, btf::TypeId type, Bytes part) {
        if (!std::exchange(first, false)) out += ',';
        render::JsonObject one(out);
        EntryText(map_, {types_.btf, 0, type}, ValueStyle::json).one_value(one.key(name), part);
    });
    out += ']';
    return true;
}

Result<void> check_listable(const sys::MapInfo &info) {
    if (const std::string_view why = load_tool::why_unreadable(info.type); !why.empty())
        return fail(Errc::invalid_argument, "map {} ({}): its contents can't be listed: {}",
                    labelled(info.id, name_text(info.name)), map_kind_name(info.type), why);
    return {};
}

} // namespace rawbpf::inline v0::running
