// The kernel doesn't report changes of a map, so rawbpf reads the whole map each time and compares it with the previous copy. It
// misses a key that was added and removed between two reads; of a value that changed twice, it sees only the last one.
#include "programs/running/watch.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/bpf.h>

#include "asm/print.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/map_entries.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::running {
namespace {

bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::string_view what_happened(const MapChange &change) {
    return change.before.empty() ? "added" : change.after.empty() ? "removed" : "changed";
}

} // namespace

MapWatch::MapWatch(const Map &map, std::unique_ptr<sys::MapInfo> info, Names &names, bool json, uint64_t most)
    : map_(&map), info_(std::move(info)), json_(json), most_(most), text_(map, *info_, names, json),
      before_(map.key_size(), map.lookup_size()) {}

Result<MapWatch> MapWatch::open(const Map &map, Names &names, bool json, uint64_t most) {
    auto info = std::make_unique<sys::MapInfo>(TRY_IN(sys::map_info(map.fd()), "asking what the map is"));
    TRY(check_listable(*info));
    if (map.key_size() == 0)
        return fail(Errc::invalid_argument, "map {} has no keys: map watch needs a map with keys",
                    labelled(info->id, name_text(info->name)));
    return MapWatch(map, std::move(info), names, json, most);
}

void MapWatch::heading(render::Writer &out) const {
    if (!json_) return render::append_line(out.text(), text_.heading());
    render::JsonLine(out.text(), "map")
        .number("id", info_->id)
        .text("name", name_text(info_->name))
        .text("map_type", map_kind_name(info_->type))
        .number("max_entries", info_->max_entries);
}

// The elements of an array are always there: at the first look those that hold something are worth a line.
bool MapWatch::shown(const MapChange &change) const {
    const bool array = info_->type == BPF_MAP_TYPE_ARRAY || info_->type == BPF_MAP_TYPE_PERCPU_ARRAY;
    return json_ || !array || !change.before.empty() || !all_zero(change.after);
}

void MapWatch::write_json(const MapChange &change, uint64_t ns, std::string &out) const {
    render::JsonLine line(out, "change");
    append(line.raw("seconds"), "{:.3f}", static_cast<double>(ns) / 1e9);
    line.text("what", what_happened(change));
    for (const auto &[name, value] : {std::pair<std::string_view, Bytes>("before", change.before), {"after", change.after}}) {
        if (value.empty()) {
            line.null(name);
            continue;
        }
        render::JsonObject entry(line.raw(name));
        text_.fields(entry, out, change.key, value);
    }
}

void MapWatch::write(const MapChange &change, uint64_t ns, std::string &out) const {
    if (json_) return write_json(change, ns, out);
    const std::string time = format("{:>8.1f}s  ", static_cast<double>(ns) / 1e9);
    if (text_.has_variables()) { // one entry, of which only what changed is told
        std::vector<std::string> old;
        if (!change.before.empty())
            text_.each_variable(change.before, [&](std::string_view, const std::string &text) { old.push_back(text); });
        size_t i = 0;
        text_.each_variable(change.after, [&](std::string_view name, const std::string &text) {
            const std::string *was = i < old.size() ? &old[i] : nullptr;
            ++i;
            if (!was)
                render::append_line(out, format("{}+ {} = {}", time, name, text));
            else if (*was != text)
                render::append_line(out, format("{}~ {} = {} -> {}", time, name, *was, text));
        });
        return;
    }
    std::string line = time;
    append(line, "{} ", change.before.empty() ? '+' : change.after.empty() ? '-' : '~');
    text_.key(line, change.key);
    if (!change.before.empty() && !change.after.empty()) {
        line += " = ";
        text_.value(line, change.before);
        line += " -> ";
        text_.value(line, change.after);
    } else if (!change.after.empty()) {
        line += " = ";
        text_.value(line, change.after);
    }
    render::append_line(out, line);
}

Result<MapImage> MapWatch::image() const {
    MapImage now(map_->key_size(), map_->lookup_size());
    TRY(each_entry(*map_, false, [&](const Map::Entries &some) -> Result<bool> {
        now.add(some);
        if (now.bytes() > most_)
            return fail(Errc::no_memory, "map {} holds more than {} MB, the limit for a copy of it",
                        labelled(info_->id, name_text(info_->name)), most_ >> 20);
        return true;
    }));
    now.sort();
    return now;
}

Result<void> MapWatch::remember(render::Writer &out) {
    before_ = TRY(image());
    ++counts_.looks;
    heading(out);
    return out.flush();
}

Result<void> MapWatch::look(uint64_t since_start_ns, render::Writer &out) {
    MapImage now = TRY(image());
    if (counts_.looks++ == 0) heading(out);
    each_change(before_, now, [&](const MapChange &change) {
        if (!shown(change)) return;
        ++(change.before.empty() ? counts_.added : change.after.empty() ? counts_.removed : counts_.changed);
        write(change, since_start_ns, out.text());
        out.commit();
    });
    before_ = std::move(now);
    return out.flush();
}

} // namespace rawbpf::inline v0::running
