// A map's entries are bytes; the object's BTF has their types.
//
//      counts (BPF_MAP_TYPE_HASH): 2 entries                    .bss
//        {.pid = 12, .comm = "bash"} = 7                          ticks = 4711
//        {.pid = 13, .comm = "sed"} = [cpu 0] 1, [cpu 3] 2        last = {.pid = 12}
//
// Hash maps have no order, so entries are sorted: numbers as numbers, others by their bytes. Maps of global variables are
// shown one variable at a time, by their DATASEC.
#include "programs/load/contents.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "asm/map_types.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"
#include "runtime/btf/print_value.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::load_tool {
namespace {

using btf::ValueStyle;
using render::JsonLine;

// Why a map's entries aren't looked at, or empty.
std::string_view unreadable(uint32_t type) {
    switch (map_type_row(type).contents) {
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

bool is_array(uint32_t type) { return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY; }
bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

class Contents {
  public:
    Contents(std::string &out, const ObjectSpec &spec, const ContentsOptions &options)
        : out_(out), spec_(spec), json_(options.json), constants_(options.constants),
          style_(json_ ? ValueStyle::json : ValueStyle::c) {
        if (!spec.btf.empty())
            if (Result<btf::Btf> parsed = btf::Btf::parse(spec.btf, spec.name)) btf_ = std::move(*parsed);
    }

    std::optional<Error> failed; ///< the first of a map that could have been read
    void map(const Map &map) {
        const MapSpec *spec = nullptr;
        for (const MapSpec &one : spec_.maps)
            if (one.name == map.name()) spec = &one;
        const bool data = spec && !spec->data_section.empty();
        if (data && !constants_ &&
            (spec->freeze || spec->data_section == ".kconfig" || spec->data_section.starts_with(".rodata")))
            return;
        if (std::string_view why = unreadable(map.type()); !why.empty()) return summary(map, 0, 0, why);
        Result<Map::Entries> entries = map.read_all();
        if (!entries) {
            summary(map, 0, 0, entries.error().message());
            if (!failed && sys::is_unread(entries.error())) failed = std::move(entries).error();
            return;
        }
        if (data && entries->count == 1 && variables(map, *spec, entries->values)) return;
        list(map, spec, *entries);
    }

  private:
    std::string typed(btf::TypeId type, Bytes bytes) const {
        if (btf_ && type != 0)
            if (Result<std::string> text = btf::print_value(*btf_, type, bytes, style_)) return std::move(*text);
        return btf::print_untyped(bytes, style_);
    }
    void line(std::string_view text) {
        render::append_printable(out_, text);
        out_ += '\n';
    }
    void summary(const Map &map, size_t entries, size_t zero, std::string_view why) {
        const std::string type = sys::map_type_name(map.type());
        if (json_) {
            JsonLine object(out_, "map_contents");
            object.text("map", map.name())
                .text("map_type", type)
                .number("entries", entries)
                .number("zero", zero)
                .text_or_null("reason", why);
        } else if (!why.empty()) {
            line(format("{} ({}): not shown, {}", map.name(), type, why));
        }
    }
    // The bytes of a map of global variables, each with its name. False where the types don't say what is in it.
    bool variables(const Map &map, const MapSpec &spec, Bytes bytes) {
        if (!btf_) return false;
        std::optional<btf::TypeId> id = btf_->find(spec.data_section, btf::Kind::datasec);
        if (!id) return false;
        Result<btf::Type> section = btf_->type(*id);
        if (!section) return false;
        if (!json_) line(format("{}:", spec.data_section));
        size_t shown = 0;
        for (uint32_t i = 0; i < section->vlen; ++i) {
            Result<btf::VarSecinfo> place = btf_->secinfo(*section, i);
            if (!place || place->offset > bytes.size() || place->size > bytes.size() - place->offset) continue;
            Result<btf::Type> variable = btf_->type(place->type);
            if (!variable) continue;
            std::string value = typed(variable->size_or_type, bytes.subspan(place->offset, place->size));
            ++shown;
            if (json_) {
                JsonLine object(out_, "variable");
                object.text("map", map.name()).text("name", variable->name).raw("value") += value;
            } else {
                line(format("  {} = {}", variable->name, value));
            }
        }
        summary(map, shown, 0, {});
        return true;
    }
    void list(const Map &map, const MapSpec *spec, const Map::Entries &entries) {
        const size_t key_size = map.key_size(), value_size = map.lookup_size();
        auto key = [&](size_t i) { return Bytes(entries.keys).subspan(i * key_size, key_size); };
        auto value = [&](size_t i) { return Bytes(entries.values).subspan(i * value_size, value_size); };
        std::vector<size_t> order;
        for (size_t i = 0; i < entries.count; ++i)
            if (!is_array(map.type()) || !all_zero(value(i))) order.push_back(i);
        const size_t zero = entries.count - order.size();
        const bool numbers = key_size == 4 || key_size == 8; // little-endian: the last byte counts most
        stable_sort(order, [&](size_t a, size_t b) {
            Bytes x = key(a), y = key(b);
            if (!numbers) return std::memcmp(x.data(), y.data(), key_size) < 0;
            return std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend());
        });
        if (!json_)
            line(format("{} ({}): {} {}{}", map.name(), sys::map_type_name(map.type()), order.size(),
                        order.size() == 1 ? "entry" : "entries", zero ? format(", {} more are zero", zero) : ""));
        for (size_t i : order) {
            std::string name = typed(spec ? spec->key_type : 0, key(i));
            if (json_) {
                JsonLine object(out_, "entry");
                object.text("map", map.name()).raw("key") += name;
                object.raw(map.per_cpu() ? "values" : "value") += values(map, spec, value(i));
            } else {
                line(format("  {} = {}", name, values(map, spec, value(i))));
            }
        }
        summary(map, order.size(), zero, {});
    }
    // One value, or one for each CPU: all of them in JSON, those that aren't zero in text.
    std::string values(const Map &map, const MapSpec *spec, Bytes bytes) const {
        const btf::TypeId type = spec ? spec->value_type : 0;
        if (!map.per_cpu()) return typed(type, bytes.first(std::min<size_t>(bytes.size(), map.value_size())));
        const size_t stride = (size_t{map.value_size()} + 7) & ~size_t{7};
        std::string out = json_ ? "[" : "";
        bool first = true;
        for (size_t at = 0, cpu = 0; at + stride <= bytes.size(); at += stride, ++cpu) {
            Bytes one = bytes.subspan(at, map.value_size());
            if (!json_ && all_zero(one)) continue;
            if (!first) out += json_ ? "," : ", ";
            first = false;
            if (!json_) append(out, "[cpu {}] ", cpu);
            out += typed(type, one);
        }
        if (json_) return out + "]";
        return first ? "0 on every CPU" : out;
    }

    std::string &out_;
    const ObjectSpec &spec_;
    bool json_, constants_;
    ValueStyle style_;
    std::optional<btf::Btf> btf_;
};

} // namespace

Result<void> append_contents(std::string &out, const ObjectSpec &spec, const LoadedObject &object,
                             const ContentsOptions &options) {
    Contents contents(out, spec, options);
    for (const Map &map : object.maps) contents.map(map);
    if (contents.failed) return Unexpected(std::move(*contents.failed));
    return {};
}

} // namespace rawbpf::inline v0::load_tool
