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
#include "programs/load/entry_text.h"
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
        if (std::string_view why = why_unreadable(map.type()); !why.empty()) return summary(map, 0, 0, why);
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
        const std::optional<btf::TypeId> id = btf_ ? btf_->find(spec.data_section, btf::Kind::datasec) : std::nullopt;
        if (!id) return false;
        if (!json_) line(format("{}:", spec.data_section));
        size_t shown = 0;
        each_variable(*btf_, *id, bytes, [&](std::string_view name, btf::TypeId type, Bytes part) {
            const EntryText text(map, {&*btf_, 0, type}, style_);
            ++shown;
            std::string value;
            text.one_value(value, part);
            if (json_) {
                JsonLine object(out_, "variable");
                object.text("map", map.name()).text("name", name).raw("value") += value;
            } else {
                line(format("  {} = {}", name, value));
            }
        });
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
                        order.size() == 1 ? "entry" : "entries",
                        zero ? format(", {} more {} zero", zero, zero == 1 ? "is" : "are") : ""));
        const EntryText text(
            map, {btf_ ? &*btf_ : nullptr, spec ? spec->key_type : btf::TypeId{0}, spec ? spec->value_type : btf::TypeId{0}},
            style_);
        for (size_t i : order) {
            if (json_) {
                JsonLine object(out_, "entry");
                text.key(object.text("map", map.name()).raw("key"), key(i));
                text.value(object.raw(map.per_cpu() ? "values" : "value"), value(i));
            } else {
                std::string shown = "  ";
                text.key(shown, key(i));
                shown += " = ";
                text.value(shown, value(i));
                line(shown);
            }
        }
        summary(map, order.size(), zero, {});
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
