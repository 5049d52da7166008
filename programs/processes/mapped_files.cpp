#include "programs/processes/mapped_files.h"

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

} // namespace rawbpf::inline v0::processes
