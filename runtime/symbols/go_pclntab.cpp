// The names of Go's functions, out of the table that runtime/elf/go_table.h reads.
#include "runtime/symbols/go_pclntab.h"

#include <algorithm>
#include <vector>

#include "runtime/elf/go_table.h"

namespace rawbpf::inline v0::symbols {

std::optional<GoFunctions> read_go_pclntab(const elf::Elf &elf) {
    const auto table = elf::read_go_table(elf);
    if (!table) return std::nullopt;
    std::vector<FunctionTable::Hit> found;
    found.reserve(table->functions.size());
    for (const elf::GoFunction &function : table->functions)
        found.push_back({function.start, static_cast<uint32_t>(std::min<uint64_t>(function.end - function.start, UINT32_MAX)),
                         function.name});
    return GoFunctions{FunctionTable::of(std::move(found)), table->names_offset, table->names.size()};
}

} // namespace rawbpf::inline v0::symbols
