// Skeletons at run time.
//
// A section of global variables is a one-entry array map; BPF_F_MMAPABLE (5.5) lets its value be mapped, so that a variable of
// the program is a variable here:
//
//      before load()    spec.maps[i].contents            ordinary memory, copied into the map when it is made
//      after            mmap(map's fd)                   the map's own page; both sides see each other's writes at once
//
// A .bss has no contents in a spec until somebody asks for them; a skeleton does. If the kernel can't map it, loading fails
// and says so: variables that are only copies would silently be wrong.
#include "runtime/link/skeleton.h"

#include <sys/mman.h>

#include "runtime/base/fail.h"
#include "runtime/object/elf_object.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kMmapable = 1u << 10;                // BPF_F_MMAPABLE
constexpr uint32_t kMaxVariables = uint32_t{256} << 20; // a section that says more isn't one that a compiler made

} // namespace

Result<void> Skeleton::open(Skeleton &into, Bytes object, std::string_view name) {
    into.spec_ = TRY(parse_object(object, name));
    for (size_t i = 0; i < into.spec_.maps.size(); ++i) {
        MapSpec &map = into.spec_.maps[i];
        if (map.data_section.empty() || map.data_section == ".kconfig") continue;
        if (map.value_size > kMaxVariables)
            return fail(Errc::bad_input, "{}: {} has {} bytes of variables", name, map.data_section, map.value_size);
        map.contents.reserve((map.value_size + 7) / 8 * 8); // a header's structs end at such a boundary
        map.contents.resize(map.value_size);
        map.flags |= kMmapable;
        into.variables_.push_back({map.data_section, i});
    }
    return {};
}

void *Skeleton::variables(std::string_view section) {
    for (Variables &v : variables_)
        if (v.section == section) return v.pages ? v.pages.data() : spec_.maps[v.map].contents.data();
    return nullptr;
}

Result<void> Skeleton::load(const LoadOptions &options) {
    if (loaded_) return fail(Errc::invalid_argument, "{}: loaded already", spec_.name);
    object_ = TRY(rawbpf::load(spec_, options));
    for (Variables &v : variables_) {
        const MapSpec &map = spec_.maps[v.map];
        const Map *made = object_.find_map(map.name);
        if (!made || made->fd() < 0) continue; // no program that was loaded uses it
        const int protection = map.freeze ? PROT_READ : PROT_READ | PROT_WRITE;
        const size_t page = sys::page_size();
        const size_t size = (map.value_size + page - 1) / page * page;
        v.pages = TRY_IN(sys::map(made->fd(), 0, size, protection, MAP_SHARED), "mapping {}", map.name);
    }
    loaded_ = true;
    return {};
}

Result<void> Skeleton::attach(const AttachPlaces &places) {
    if (!loaded_) return fail(Errc::invalid_argument, "{}: attach() comes after load()", spec_.name);
    attached_ = TRY(attach_object(spec_, object_, places));
    return {};
}

} // namespace rawbpf::inline v0
