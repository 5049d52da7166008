// The vdso is an ELF shared object that the kernel makes up and maps (Linux: Documentation/ABI/stable/vdso). There is no file of
// it, but every process has the same one, so ours does. AT_SYSINFO_EHDR in the auxiliary vector says where it begins; its size is
// the region's in our own maps.
//
// The mapping lives as long as this process, so the table may point into it.
#include "runtime/symbols/vdso.h"

#include <sys/auxv.h>

#include "runtime/base/fail.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::symbols {

Result<Bytes> vdso_image() {
    auto base = static_cast<uint64_t>(getauxval(AT_SYSINFO_EHDR));
    if (base == 0) return fail(Errc::not_found, "this process has no vdso");
    ProcessMaps maps = parse_maps(0, TRY(sys::read_file("/proc/self/maps")));
    const Region *region = maps.find(base);
    if (!region || region->start != base) return fail(Errc::not_found, "the vdso isn't in /proc/self/maps");
    return Bytes{reinterpret_cast<const std::byte *>(base), static_cast<size_t>(region->end - region->start)};
}

Result<ElfSymbols> load_vdso() { return ElfSymbols::parse(TRY(vdso_image()), "[vdso]"); }

} // namespace rawbpf::inline v0::symbols
