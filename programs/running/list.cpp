// Rows as text for people: a line each, or a line a property.
#include "programs/running/rows.h"

#include <algorithm>

#include "asm/kinds.h"
#include "asm/print.h"
#include "programs/render/columns.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0::running {
namespace {

using render::Columns;
using sys::ObjectKind;

constexpr size_t kFewHolders = 3, kFewMaps = 3;

std::string holder_text(const Holder &holder) {
    return format("{}[{}]{}{}", holder.comm, holder.pid, holder.via.empty() ? "" : ": ", holder.via);
}

void append_holders(std::string &out, const Around &around, ObjectKind kind, uint32_t id) {
    for (const Holder &holder : around.holders.of(kind, id))
        render::append_line(out, format("  held by    {}", holder_text(holder)));
    for (const std::string &path : around.pins.of(kind, id)) render::append_line(out, format("  pinned     {}", path));
}

std::string age(uint64_t load_time) {
    const uint64_t now = sys::boottime_ns();
    return load_time == 0 || load_time > now ? std::string() : render::duration_text(now - load_time);
}

std::string map_list(const std::vector<uint32_t> &maps, Names &names, size_t most) {
    std::string out;
    for (size_t i = 0; i < std::min(maps.size(), most); ++i) append(out, "{}{}", i ? ", " : "", names.labelled_map(maps[i]));
    if (maps.size() > most) append(out, ", {} more", maps.size() - most);
    return out;
}

void property(std::string &out, std::string_view name, const std::string &value) {
    if (!value.empty()) render::append_line(out, format("  {:<10} {}", name, value));
}

} // namespace

std::string held_by(const Around &around, ObjectKind kind, uint32_t id) {
    std::string out;
    size_t shown = 0, more = 0;
    const auto one = [&](const std::string &text) {
        if (shown == kFewHolders) {
            ++more;
            return;
        }
        append(out, "{}{}", shown++ ? ", " : "", text);
    };
    for (const Holder &holder : around.holders.of(kind, id)) one(holder_text(holder));
    for (const std::string &path : around.pins.of(kind, id)) one(path);
    if (more != 0) append(out, ", {} more", more);
    return out;
}

std::string as_list(const std::vector<ProgramRow> &rows, Around &around) {
    Columns columns({{"ID", true}, {"TYPE"}, {"NAME"}, {"INSNS", true}, {"JITED", true}, {"AGE", true}, {"MAPS"}, {"HELD BY"}});
    for (const ProgramRow &row : rows)
        columns.row({format("{}", row.info.id), row.orphaned ? std::string("orphaned") : program_type_word(row.info.type),
                     row.name, format("{}", row.info.xlated_prog_len / 8),
                     row.info.jited_prog_len ? format("{} B", row.info.jited_prog_len) : "no", age(row.info.load_time),
                     map_list(row.maps, around.names, kFewMaps), held_by(around, ObjectKind::program, row.info.id)});
    std::string out;
    columns.append_to(out);
    return out;
}

std::string as_list(const std::vector<MapRow> &rows, Around &around) {
    Columns columns({{"ID", true}, {"TYPE"}, {"NAME"}, {"KEY", true}, {"VALUE", true}, {"ENTRIES", true}, {"HELD BY"}});
    for (const MapRow &row : rows)
        columns.row({format("{}", row.info.id), map_kind_name(row.info.type), row.name, format("{} B", row.info.key_size),
                     format("{} B", row.info.value_size), format("{}", row.info.max_entries),
                     held_by(around, ObjectKind::map, row.info.id)});
    std::string out;
    columns.append_to(out);
    return out;
}

std::string as_list(const std::vector<LinkRow> &rows, Around &around) {
    Columns columns({{"ID", true}, {"TYPE"}, {"WHAT"}, {"PROGRAM"}, {"HELD BY"}});
    for (const LinkRow &row : rows) {
        const sys::LinkInfoTail &info = row.details.info;
        columns.row({format("{}", info.id), link_type_word(info.type), row.what,
                     info.prog_id ? labelled(info.prog_id, row.program) : std::string(),
                     held_by(around, ObjectKind::link, info.id)});
    }
    std::string out;
    columns.append_to(out);
    return out;
}

std::string as_list(const std::vector<BtfRow> &rows, Around &around) {
    Columns columns({{"ID", true}, {"NAME"}, {"SIZE", true}, {"USED BY"}, {"HELD BY"}});
    for (const BtfRow &row : rows) {
        std::string used;
        for (uint32_t id : row.programs) append(used, "{}prog {}", used.empty() ? "" : ", ", around.names.labelled_program(id));
        for (uint32_t id : row.maps) append(used, "{}map {}", used.empty() ? "" : ", ", around.names.labelled_map(id));
        columns.row({format("{}", row.info.id), row.name, format("{} B", row.info.btf_size), used,
                     held_by(around, ObjectKind::btf, row.info.id)});
    }
    std::string out;
    columns.append_to(out);
    return out;
}

void append_details(std::string &out, const ProgramRow &row, Around &around) {
    const sys::ProgInfo &info = row.info;
    render::append_line(out, format("program {} ({})", labelled(info.id, row.name), program_type_word(info.type)));
    property(out, "tag", hex_text(std::as_bytes(std::span(info.tag))));
    property(out, "target", row.target);
    property(out, "license", info.gpl_compatible & 1 ? "compatible with the GPL" : "not compatible with the GPL");
    if (const std::string ago = age(info.load_time); !ago.empty())
        property(out, "loaded", format("{} ago, by uid {}", ago, info.created_by_uid));
    property(out, "size",
             format("{} instructions ({} B translated), {}", info.xlated_prog_len / 8, info.xlated_prog_len,
                    info.jited_prog_len ? format("{} B of machine code", info.jited_prog_len) : "not jited"));
    if (info.verified_insns) property(out, "verified", format("{} instructions walked", info.verified_insns));
    if (row.memlock) property(out, "memory", format("{} B", *row.memlock));
    if (info.run_cnt)
        property(out, "runs",
                 format("{}, {} in all, {:.0f} ns each", render::grouped(info.run_cnt), render::duration_text(info.run_time_ns),
                        static_cast<double>(info.run_time_ns) / static_cast<double>(info.run_cnt)));
    if (info.recursion_misses) property(out, "missed", format("{} times, as it was running already", info.recursion_misses));
    property(out, "maps", map_list(row.maps, around.names, row.maps.size()));
    if (info.btf_id) property(out, "BTF", format("{}", info.btf_id));
    append_holders(out, around, ObjectKind::program, info.id);
}

void append_details(std::string &out, const MapRow &row, Around &around) {
    const sys::MapInfo &info = row.info;
    render::append_line(out, format("map {} ({})", labelled(info.id, row.name), map_kind_name(info.type)));
    property(out, "size", format("key {} B, value {} B, {} entries at most", info.key_size, info.value_size, info.max_entries));
    if (info.map_flags) property(out, "flags", sys::map_flag_names(info.map_flags));
    if (info.map_extra) property(out, "extra", format("{:#x}", info.map_extra));
    if (row.memlock) property(out, "memory", format("{} B", *row.memlock));
    if (row.frozen) property(out, "frozen", "read-only for user space");
    if (row.owner_type)
        property(out, "for",
                 format("programs of type {}{}", program_type_word(static_cast<uint32_t>(*row.owner_type)),
                        row.owner_jited.value_or(0) ? ", jited" : ""));
    if (info.btf_id) {
        property(out, "key type", around.names.type(info.btf_id, info.btf_key_type_id));
        property(out, "value type", around.names.type(info.btf_id, info.btf_value_type_id));
        property(out, "BTF", format("{}", info.btf_id));
    }
    append_holders(out, around, ObjectKind::map, info.id);
}

void append_details(std::string &out, const LinkRow &row, Around &around) {
    const sys::LinkInfoTail &info = row.details.info;
    render::append_line(out, format("link {} ({})", info.id, link_type_word(info.type)));
    property(out, "what", row.what);
    if (info.prog_id) property(out, "program", labelled(info.prog_id, row.program));
    for (size_t i = 0; i < row.details.places.size(); ++i) {
        const bool named = i < row.places.size() && !row.places[i].empty();
        property(out, "at",
                 format("{}{}", named ? row.places[i] : format("{:#x}", row.details.places[i]),
                        i < row.details.cookies.size() && row.details.cookies[i]
                            ? format(", cookie {:#x}", row.details.cookies[i])
                            : std::string()));
    }
    append_holders(out, around, ObjectKind::link, info.id);
}

void append_details(std::string &out, const BtfRow &row, Around &around) {
    render::append_line(out, format("BTF {}", labelled(row.info.id, row.name)));
    property(out, "size", format("{} B", row.info.btf_size));
    property(out, "of", row.info.kernel_btf ? "the kernel" : "");
    for (uint32_t id : row.programs) property(out, "program", around.names.labelled_program(id));
    property(out, "maps", map_list(row.maps, around.names, row.maps.size()));
    append_holders(out, around, ObjectKind::btf, row.info.id);
}

} // namespace rawbpf::inline v0::running
