#include "programs/processes/mapped_files.h"

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::processes {

Result<symbols::MappedFile> open_mapped(const Module &module, const std::vector<uint32_t> &pids, uint64_t start, uint64_t end) {
    symbols::Region region;
    region.start = start;
    region.end = end;
    region.path = module.path;
    region.device = module.device;
    region.inode = module.inode;
    return symbols::open_mapped(region, pids);
}

bool read_mapped(const ProcessTable &table, uint32_t pid, const ProcessTable::Mapping &mapping,
                 const std::function<void(const elf::Elf &, Bytes)> &read) {
    auto opened = open_mapped(table.modules()[mapping.module], {pid, table.parent(pid)}, mapping.start, mapping.end);
    if (!opened) return false;
    const auto image = sys::map_file(opened->file, opened->path);
    const auto file = image ? elf::Elf::parse(image->bytes(), opened->path) : Unexpected(image.error());
    if (file) read(*file, image->bytes());
    return true;
}

} // namespace rawbpf::inline v0::processes
