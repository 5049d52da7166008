// Entries come in portions and leave as text at once. JSON has each entry twice, as bpftool does: bytes in hexadecimal, and what
// they mean where the map has types.
//
//      {"type":"entry","key":["0x07","0x00","0x00","0x00"],"value":["0x2a",...],"formatted":{"key":7,"value":42}}
//
// Hash maps are shown in the kernel's order, which is none: to sort a map, all of it would have to be held.
#include "programs/running/dump.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <linux/bpf.h>

#include "asm/print.h"
#include "programs/load/entry_text.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/map_entries.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0::running {
namespace {

using btf::ValueStyle;
using load_tool::EntryText;
using load_tool::EntryTypes;

bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

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

class Dump {
  public:
    Dump(const Map &map, const sys::MapInfo &info, Names &names, const DumpOptions &options, render::Writer &out)
        : map_(map), info_(info), names_(names), options_(options),
          out_(out), types_{names.btf_of(info), info.btf_key_type_id, info.btf_value_type_id},
          text_(map, types_, options.json ? ValueStyle::json : ValueStyle::c) {}

    void heading() {
        if (options_.json) return;
        render::append_line(out_.text(), format("map {} ({}): key {} B, value {} B, {} entries at most",
                                                labelled(info_.id, name_text(info_.name)), map_kind_name(info_.type),
                                                info_.key_size, info_.value_size, info_.max_entries));
    }
    Result<bool> see(const Map::Entries &some) {
        const size_t key_size = map_.key_size(), value_size = map_.lookup_size();
        for (size_t i = 0; i < some.count; ++i)
            entry(Bytes(some.keys).subspan(i * key_size, key_size), Bytes(some.values).subspan(i * value_size, value_size));
        TRY(out_.flush());
        return true;
    }
    void one(Bytes key, Bytes value) { entry(key, value); }
    void end() {
        if (options_.json) {
            render::JsonLine(out_.text(), "map_contents")
                .text("map", name_text(info_.name))
                .text("map_type", sys::map_type_name(info_.type))
                .number("entries", entries_)
                .number("zero", 0)
                .null("reason");
            return;
        }
        std::string rest;
        if (zero_ != 0) rest = format("; {} more {} zero (--all shows them)", render::grouped(zero_), zero_ == 1 ? "is" : "are");
        render::append_line(out_.text(), format("{} {}{}", render::grouped(entries_), entries_ == 1 ? "entry" : "entries", rest));
    }

  private:
    void entry(Bytes key, Bytes value) {
        if (options_.json) {
            ++entries_;
            return entry_json(key, value);
        }
        const bool array = info_.type == BPF_MAP_TYPE_ARRAY || info_.type == BPF_MAP_TYPE_PERCPU_ARRAY;
        if (array && !options_.all && all_zero(value)) {
            ++zero_;
            return;
        }
        ++entries_;
        if (types_.btf && types_.value != 0 && info_.max_entries == 1 && variables(value)) return;
        line_.assign("  ");
        text_.key(line_, key);
        line_ += " = ";
        if (!reference(value)) text_.value(line_, value);
        render::append_line(out_.text(), line_);
    }
    /// Ids in place of what a map refers to, with their names.
    bool reference(Bytes value) {
        if (value.size() < 4) return false;
        const uint32_t id = load<uint32_t>(value.data());
        if (info_.type == BPF_MAP_TYPE_PROG_ARRAY)
            append(line_, "program {}", names_.labelled_program(id));
        else if (info_.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || info_.type == BPF_MAP_TYPE_HASH_OF_MAPS)
            append(line_, "map {}", names_.labelled_map(id));
        else
            return false;
        return true;
    }
    /// The global variables of an object: a line each.
    bool variables(Bytes value) {
        return load_tool::each_variable(*types_.btf, types_.value, value,
                                        [&](std::string_view name, btf::TypeId type, Bytes part) {
                                            line_ = format("  {} = ", name);
                                            EntryText(map_, {types_.btf, 0, type}, ValueStyle::c).one_value(line_, part);
                                            render::append_line(out_.text(), line_);
                                        });
    }
    void entry_json(Bytes key, Bytes value) {
        std::string &out = out_.text();
        render::JsonLine line(out, "entry");
        append_bytes(line.raw("key"), key);
        if (map_.per_cpu()) {
            each_cpu_json(line.raw("values"), value, [&](Bytes one) { append_bytes(out, one); });
        } else {
            append_bytes(line.raw("value"), value);
        }
        if (!types_.btf || (types_.key == 0 && types_.value == 0)) {
            line.null("formatted");
            return;
        }
        render::JsonObject formatted(line.raw("formatted"));
        text_.key(formatted.raw("key"), key);
        if (map_.per_cpu())
            each_cpu_json(formatted.raw("values"), value, [&](Bytes one) { text_.one_value(out, one); });
        else if (!variables_json(formatted, value))
            text_.one_value(formatted.raw("value"), value);
    }
    template <class Write> void each_cpu_json(std::string &out, Bytes value, Write write) {
        out += '[';
        text_.each_cpu(value, [&](size_t cpu, Bytes one) {
            if (cpu != 0) out += ',';
            render::JsonObject object(out);
            (void)object.number("cpu", cpu).raw("value");
            write(one);
        });
        out += ']';
    }
    /// {".bss":[{"ticks":4711}]}
    bool variables_json(render::JsonObject &formatted, Bytes value) {
        if (info_.max_entries != 1) return false;
        const Result<btf::Type> section = types_.btf->type(types_.value);
        if (!section || section->kind != btf::Kind::datasec) return false;
        std::string &out = formatted.raw("value");
        render::JsonObject named(out);
        named.key(section->name) += '[';
        bool first = true;
        (void)load_tool::each_variable(
            *types_.btf, types_.value, value, [&](std::string_view name, btf::TypeId type, Bytes part) {
                if (!std::exchange(first, false)) out += ',';
                render::JsonObject one(out);
                EntryText(map_, {types_.btf, 0, type}, ValueStyle::json).one_value(one.key(name), part);
            });
        out += ']';
        return true;
    }

    const Map &map_;
    const sys::MapInfo &info_;
    Names &names_;
    const DumpOptions &options_;
    render::Writer &out_;
    EntryTypes types_;
    EntryText text_;
    std::string line_;
    uint64_t entries_ = 0, zero_ = 0;
};

} // namespace

Result<void> dump_map(const Map &map, Names &names, const DumpOptions &options, render::Writer &out) {
    const sys::MapInfo info = TRY_IN(sys::map_info(map.fd()), "asking what the map is");
    if (const std::string_view why = load_tool::why_unreadable(info.type); !why.empty())
        return fail(Errc::invalid_argument, "map {} ({}): its contents can't be listed: {}",
                    labelled(info.id, name_text(info.name)), map_kind_name(info.type), why);
    Dump dump(map, info, names, options, out);
    dump.heading();
    TRY(each_entry(map, false, [&](const Map::Entries &some) { return dump.see(some); }));
    dump.end();
    return out.flush();
}

Result<void> dump_entry(const Map &map, Names &names, const DumpOptions &options, Bytes key, Bytes value, render::Writer &out) {
    const sys::MapInfo info = TRY_IN(sys::map_info(map.fd()), "asking what the map is");
    Dump(map, info, names, options, out).one(key, value);
    return out.flush();
}

} // namespace rawbpf::inline v0::running
