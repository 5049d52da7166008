// The kernel keeps names of 15 characters. A program's whole name is that of its first function, in the BTF that it was loaded
// with:
//
//      bpf_prog_info.name = "count_context_s"   func_info[0].type_id = 14   BTF 31: [14] FUNC 'count_context_switches'
#include "programs/running/names.h"

#include <cstring>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/format.h"
#include "runtime/object/spec.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::running {

std::string name_text(const char (&name)[16]) { return std::string(name, strnlen(name, sizeof name)); }

std::string labelled(uint32_t id, std::string_view name) { return name.empty() ? format("{}", id) : format("{} {}", id, name); }

std::string Names::program(int fd, const sys::ProgInfo &info) {
    std::string name = name_text(info.name);
    if (name.size() != sizeof info.name - 1 || info.btf_id == 0 || info.nr_func_info == 0) return name;
    if (info.func_info_rec_size < sizeof(FuncInfo) || info.func_info_rec_size > 256) return name;
    std::vector<std::byte> record(info.func_info_rec_size);
    sys::ProgInfo ask;
    ask.nr_func_info = 1;
    ask.func_info_rec_size = info.func_info_rec_size;
    ask.func_info = sys::reg(record.data());
    if (!sys::obj_get_info(fd, &ask, sizeof ask)) return name;
    const btf::Btf *types = btf(info.btf_id);
    if (!types) return name;
    const Result<btf::Type> function = types->type(load<FuncInfo>(record.data()).type);
    return function && function->name.starts_with(name) ? std::string(function->name) : name;
}

const std::string &Names::program(uint32_t id) {
    auto [at, added] = programs_.emplace(id, std::string());
    if (!added) return at->second;
    if (const Result<Fd> fd = sys::fd_by_id(sys::ObjectKind::program, id))
        if (const Result<sys::ProgInfo> info = sys::prog_info(fd->get())) at->second = program(fd->get(), *info);
    return at->second;
}

const std::string &Names::map(uint32_t id) {
    auto [at, added] = maps_.emplace(id, std::string());
    if (!added) return at->second;
    if (const Result<Fd> fd = sys::fd_by_id(sys::ObjectKind::map, id))
        if (const Result<sys::MapInfo> info = sys::map_info(fd->get())) at->second = name_text(info->name);
    return at->second;
}

std::string Names::labelled_program(uint32_t id) { return labelled(id, program(id)); }
std::string Names::labelled_map(uint32_t id) { return labelled(id, map(id)); }

const btf::Btf *Names::btf(uint32_t id) {
    auto [at, added] = types_.emplace(id, std::nullopt);
    if (added)
        if (Result<inspect::BtfSource> source = inspect::BtfSource::of_id(id)) at->second.emplace(std::move(*source));
    return at->second ? &at->second->btf() : nullptr;
}

std::string Names::type(uint32_t object, btf::TypeId id) {
    const btf::Btf *types = nullptr;
    if (object != 0) {
        types = btf(object);
    } else {
        if (!kernel_)
            if (Result<inspect::BtfSource> source = inspect::BtfSource::of_kernel("vmlinux")) kernel_.emplace(std::move(*source));
        if (kernel_) types = &kernel_->btf();
    }
    if (!types) return {};
    const Result<btf::Type> type = types->type(id);
    return type ? std::string(type->name) : std::string();
}

} // namespace rawbpf::inline v0::running
