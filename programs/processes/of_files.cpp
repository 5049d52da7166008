#include "programs/processes/of_files.h"

#include <algorithm>
#include <iterator>

#include "programs/processes/mapped_files.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

void FileReader::read(uint32_t pid, const ProcessTable::Mapping &mapping) {
    const uint32_t module = mapping.module;
    std::vector<FileQuestion *> open;
    std::copy_if(questions_.begin(), questions_.end(), std::back_inserter(open),
                 [&](const FileQuestion *question) { return !question->answered(module); });
    if (open.empty()) return;
    sys::Because why("is this file an interpreter, or another of which there is more to show than native frames?");
    const auto opened = open_mapped(table_.modules()[module], {pid, table_.parent(pid)}, mapping.start, mapping.end);
    if (!opened) return;
    const auto image = sys::map_file(opened->file, opened->path);
    const auto file = image ? elf::Elf::parse(image->bytes(), opened->path) : Unexpected(image.error());
    for (FileQuestion *question : open) question->read(module, file ? &*file : nullptr, file ? image->bytes() : Bytes{});
}

} // namespace rawbpf::inline v0::processes
