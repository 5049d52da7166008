// Programs, maps and BTF, each asked by BPF_OBJ_GET_INFO_BY_FD. What that doesn't say stands in /proc/self/fdinfo: the memory
// that an object takes, whether a map is frozen, who may be in a prog array.
//
// A program's maps come in the first answer where there are few of them: so a listing costs three system calls a program.
#include "programs/running/rows.h"

#include <algorithm>
#include <cstring>

#include <linux/bpf.h>

#include "runtime/base/fail.h"
#include "runtime/kernel/each_object.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::running {
namespace {

constexpr uint32_t kFewMaps = 32, kMostMaps = 1 << 16;

std::string own_fdinfo(int fd) {
    return sys::read_file(format("/proc/self/fdinfo/{}", fd)).value_or(std::string()); // without /proc it stays unknown
}

/// The program's information with the ids of its maps.
Result<sys::ProgInfo> info_with_maps(int fd, std::vector<uint32_t> &maps) {
    maps.assign(kFewMaps, 0);
    for (;;) {
        sys::ProgInfo info;
        info.nr_map_ids = static_cast<uint32_t>(maps.size());
        info.map_ids = sys::reg(maps.data());
        TRY(sys::obj_get_info(fd, &info, sizeof info));
        const uint32_t has = std::min(info.nr_map_ids, kMostMaps);
        if (has > maps.size()) {
            maps.resize(has);
            continue;
        }
        maps.resize(has);
        return info;
    }
}

} // namespace

Result<ProgramRow> program_row(int fd, Names &names, bool fdinfo) {
    ProgramRow row;
    row.info = TRY_IN(info_with_maps(fd, row.maps), "asking what the program is");
    row.name = names.program(fd, row.info);
    if (fdinfo) row.memlock = fdinfo_number(own_fdinfo(fd), "memlock");
    if (row.info.attach_btf_id != 0) row.target = names.type(row.info.attach_btf_obj_id, row.info.attach_btf_id);
    return row;
}

Result<MapRow> map_row(int fd, bool fdinfo) {
    MapRow row;
    row.info = TRY_IN(sys::map_info(fd), "asking what the map is");
    row.name = name_text(row.info.name);
    if (!fdinfo) return row;
    const std::string text = own_fdinfo(fd);
    row.memlock = fdinfo_number(text, "memlock");
    row.frozen = fdinfo_number(text, "frozen").value_or(0) != 0;
    if (row.info.type == BPF_MAP_TYPE_PROG_ARRAY) {
        row.owner_type = fdinfo_number(text, "owner_prog_type");
        row.owner_jited = fdinfo_number(text, "owner_jited");
    }
    return row;
}

Result<BtfRow> btf_row(int fd) {
    BtfRow row;
    char name[64] = {};
    row.info.name = sys::reg(name);
    row.info.name_len = sizeof name;
    TRY_IN(sys::obj_get_info(fd, &row.info, sizeof row.info), "asking what the BTF is");
    row.name = std::string(name, strnlen(name, sizeof name));
    return row;
}

Result<void> find_users(std::vector<BtfRow> &rows) {
    std::map<uint32_t, BtfRow *> by_id;
    for (BtfRow &row : rows) by_id.emplace(row.info.id, &row);
    const auto of = [&](uint32_t btf) -> BtfRow * {
        const auto at = by_id.find(btf);
        return at == by_id.end() ? nullptr : at->second;
    };
    TRY(each_object(sys::ObjectKind::program, [&](uint32_t id, Fd program) -> Result<bool> {
        if (BtfRow *row = of(TRY(sys::prog_info(program.get())).btf_id)) row->programs.push_back(id);
        return true;
    }));
    return each_object(sys::ObjectKind::map, [&](uint32_t id, Fd map) -> Result<bool> {
        if (BtfRow *row = of(TRY(sys::map_info(map.get())).btf_id)) row->maps.push_back(id);
        return true;
    });
}

} // namespace rawbpf::inline v0::running
