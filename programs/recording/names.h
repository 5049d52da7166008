// Names that no report can find, which a recording brings along: of the kernel, of the vdso, of code made at run time, of files
// that no path leads to. They stand behind what they belong to, so a report reads its recording twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "programs/processes/live_symbols.h"
#include "programs/processes/namer.h"
#include "programs/processes/stacks.h"
#include "programs/recording/recording.h"

namespace rawbpf::inline v0::recording {

/// Writes them: before the tree is cleared.
void write_names(Writer &writer, const processes::StackTree &tree, processes::Namer &namer, const processes::ModuleTable &modules,
                 const processes::LiveSymbols &symbols);

/// Those that a recording brought along, by part (the stretch between two resets) and place.
class BroughtNames {
  public:
    /// The first reading: what visitors are told.
    ///@{
    void add(uint32_t place, Frame &&frame);
    void part_ends() { parts_.emplace_back(); }
    ///@}
    /// The second: the namer gets those of a stack, or of a place, of the part that is being read.
    ///@{
    void give(processes::Namer &namer, const processes::StackTree &tree, uint32_t node) {
        tree.walk(node, [&](uint32_t place) { give_place(namer, place); });
    }
    void give_place(processes::Namer &namer, uint32_t place);
    void next_part() { ++part_; }
    ///@}

  private:
    using Part = std::unordered_map<uint32_t, std::vector<Frame>>;
    std::vector<Part> parts_ = std::vector<Part>(1);
    size_t part_ = 0;
};

} // namespace rawbpf::inline v0::recording
