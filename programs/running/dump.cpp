// Entries come in portions and leave as text at once.
//
//      {"type":"entry","key":["0x07","0x00","0x00","0x00"],"value":["0x2a",...],"formatted":{"key":7,"value":42}}
//
// Hash maps are shown in the kernel's order, which is none: to sort a map, all of it would have to be held.
#include "programs/running/dump.h"

#include <algorithm>
#include <string>

#include <linux/bpf.h>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/running/map_text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/map_entries.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0::running {
namespace {

bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

class Dump {
  public:
    Dump(const Map &map, const sys::MapInfo &info, Names &names, const DumpOptions &options, render::Writer &out)
        : map_(map), info_(info), options_(options), out_(out), text_(map, info, names, options.json) {}

    void heading() {
        if (!options_.json) render::append_line(out_.text(), text_.heading());
    }
    Result<bool> see(const Map::Entries &some) {
        const size_t key_size = map_.key_size(), value_size = map_.lookup_size();
        for (size_t i = 0; i < some.count; ++i)
            one(Bytes(some.keys).subspan(i * key_size, key_size), Bytes(some.values).subspan(i * value_size, value_size));
        TRY(out_.flush());
        return true;
    }
    void one(Bytes key, Bytes value) {
        if (options_.json) {
            ++entries_;
            render::JsonLine line(out_.text(), "entry");
            return text_.fields(line, out_.text(), key, value);
        }
        const bool array = info_.type == BPF_MAP_TYPE_ARRAY || info_.type == BPF_MAP_TYPE_PERCPU_ARRAY;
        if (array && !options_.all && all_zero(value)) {
            ++zero_;
            return;
        }
        ++entries_;
        const bool variables = text_.each_variable(value, [&](std::string_view name, const std::string &text) {
            render::append_line(out_.text(), format("  {} = {}", name, text));
        });
        if (variables) return;
        line_.assign("  ");
        text_.key(line_, key);
        line_ += " = ";
        text_.value(line_, value);
        render::append_line(out_.text(), line_);
    }
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
    const Map &map_;
    const sys::MapInfo &info_;
    const DumpOptions &options_;
    render::Writer &out_;
    MapText text_;
    std::string line_;
    uint64_t entries_ = 0, zero_ = 0;
};

} // namespace

Result<void> dump_map(const Map &map, Names &names, const DumpOptions &options, render::Writer &out) {
    const sys::MapInfo info = TRY_IN(sys::map_info(map.fd()), "asking what the map is");
    TRY(check_listable(info));
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
