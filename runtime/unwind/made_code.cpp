// One function's entry or a few, read anew each time: few samples need it, and a table of what may be compiled again would have
// to be kept up to date.
#include "runtime/unwind/made_code.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "runtime/unwind/cfi.h"
#include "runtime/unwind/machines.h"

namespace rawbpf::inline v0::unwind {

std::optional<UnwindRule> rule_of_made_code(Arch arch, Bytes eh_frame, uint64_t address, uint64_t pc) {
    const Machine *machine = find_machine(arch);
    if (!machine) return std::nullopt;
    Frames frames;
    frames.bytes = eh_frame;
    frames.address = address;
    frames.machine = machine;
    Entry entry;
    Cie cie;
    for (uint64_t at = 0; entry = read_entry(frames, at), entry.kind != Entry::end; at = entry.next) {
        if (entry.kind != Entry::fde) continue;
        if (cie.at != entry.cie_at && read_cie(frames, entry.cie_at, cie)) continue;
        Function function;
        if (read_fde(frames, cie, entry.rest, function) || pc < function.start || pc >= function.end) continue;
        std::vector<Change> changes;
        if (run_program(frames, cie, function, changes)) return std::nullopt;
        const auto after =
            std::upper_bound(changes.begin(), changes.end(), pc, [](uint64_t its, const Change &c) { return its < c.address; });
        if (after == changes.begin()) return std::nullopt;
        return std::prev(after)->rule;
    }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::unwind
