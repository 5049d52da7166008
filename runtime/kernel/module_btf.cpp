// Modules have types of their own, in BTF that builds on the kernel's:
//
//      /sys/kernel/btf/vmlinux     ids 1 .. n
//      /sys/kernel/btf/nf_nat      ids n+1 ..        5.11, CONFIG_DEBUG_INFO_BTF_MODULES
//
// The files can be read without privileges, and only the modules that are needed cost a system call. But the kernel wants a
// descriptor, and the only way to get it is to walk the ids of all BTF (BPF_BTF_GET_NEXT_ID) until one of the kernel's own has
// the module's name.
#include "runtime/kernel/module_btf.h"

#include <algorithm>
#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

constexpr const char *kDirectory = "/sys/kernel/btf";

} // namespace

const std::vector<std::unique_ptr<ModuleBtf>> &ModuleTypes::all() {
    if (read_) return list_;
    read_ = true;
    std::vector<std::string> names = sys::list_directory(kDirectory).value_or(std::vector<std::string>{});
    stable_sort(names); // the same answer in every run
    for (const std::string &name : names) {
        if (name == "vmlinux") continue;
        Result<std::string> text = sys::read_file(format("{}/{}", kDirectory, name));
        if (!text) continue;
        auto bytes = std::make_unique<std::string>(std::move(*text)); // a short string's characters move with it
        Result<btf::Btf> types = btf::Btf::parse(bytes_of(*bytes), name, base_);
        if (!types) continue;
        kept_.push_back(std::move(bytes));
        list_.push_back(std::make_unique<ModuleBtf>(ModuleBtf{name, std::move(*types)}));
        pointers_.push_back(&list_.back()->types);
    }
    return list_;
}

std::span<const btf::Btf *const> ModuleTypes::types() {
    (void)all();
    return pointers_;
}

Result<int> ModuleTypes::fd_of(ModuleBtf &module) {
    if (module.fd) return module.fd.get();
    sys::Because why("which BTF is the module's? the kernel wants a descriptor");
    for (uint32_t id = 0;;) {
        Result<uint32_t> next = sys::next_id(sys::ObjectKind::btf, id);
        if (!next && next.error().os == ENOENT)
            return fail(Errc::not_found, "module {}: its BTF is gone; was the module unloaded?", module.name);
        id = TRY_IN(std::move(next), "module {}: looking for its BTF", module.name);
        Result<Fd> fd = sys::fd_by_id(sys::ObjectKind::btf, id);
        if (!fd && fd.error().os == ENOENT) continue; // it went meanwhile
        Fd held = TRY_IN(std::move(fd), "module {}: looking for its BTF", module.name);
        char name[64] = {};
        sys::BtfInfo info;
        info.name = sys::reg(name);
        info.name_len = sizeof name;
        TRY_IN(sys::obj_get_info(held.get(), &info, sizeof info), "module {}: looking for its BTF", module.name);
        if (!info.kernel_btf || module.name != name) continue;
        module.fd = std::move(held);
        return module.fd.get();
    }
}

} // namespace rawbpf::inline v0
