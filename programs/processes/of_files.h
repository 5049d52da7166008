// What files say of themselves: whether they are an interpreter, or have a variable that is looked for. Each file is read once,
// at the first process that leads to it, and most say nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "programs/processes/mapped_files.h"
#include "programs/processes/process_table.h"
#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

template <class Fact> class OfFiles {
  public:
    /// `read(elf, bytes)` returns a std::optional<Fact>; `why` is the narrator's reason for reading it. nullptr: the file says
    /// nothing, or can't be opened by this process; then the next one may lead to it.
    template <class Read>
    Fact *of(const ProcessTable &table, uint32_t pid, const ProcessTable::Mapping &mapping, std::string_view why, Read &&read) {
        const auto known = facts_.find(mapping.module);
        if (known != facts_.end()) return known->second ? &*known->second : nullptr;
        sys::Because because(why);
        std::optional<Fact> found;
        if (!read_mapped(table, pid, mapping, [&](const elf::Elf &file, Bytes bytes) { found = read(file, bytes); }))
            return nullptr;
        std::optional<Fact> &kept = facts_[mapping.module] = std::move(found);
        return kept ? &*kept : nullptr;
    }
    /// nullptr: it wasn't read, or says nothing.
    [[nodiscard]] const Fact *find(uint32_t module) const {
        const auto at = facts_.find(module);
        return at == facts_.end() || !at->second ? nullptr : &*at->second;
    }
    /// Of a file that says something.
    [[nodiscard]] Fact &at(uint32_t module) { return *facts_.at(module); }

    /// Pairs of a module and a std::optional<Fact>.
    [[nodiscard]] auto begin() const { return facts_.begin(); }
    [[nodiscard]] auto end() const { return facts_.end(); }

  private:
    std::unordered_map<uint32_t, std::optional<Fact>> facts_; // by module; nullopt: it says nothing
};

} // namespace rawbpf::inline v0::processes
