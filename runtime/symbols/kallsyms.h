// SPDX-License-Identifier: MIT
// Kernel addresses to names, from /proc/kallsyms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::symbols {

/// The name of one kernel address.
struct KernelName {
    uint64_t address = 0; ///< as asked
    std::string symbol;   ///< demangled; empty where no function is known there
    uint64_t offset = 0;  ///< from the function's start, in bytes
    std::string module;   ///< "vmlinux" or the module's; "bpf" for a BPF program; empty when unknown
};

/// Finds the names of a set of addresses in one pass over the text of kallsyms, in pieces of any size (PURE). Holds one
/// candidate an address, never the table.
class KernelNamer {
  public:
    /// Any order, duplicates allowed.
    explicit KernelNamer(std::vector<uint64_t> addresses);
    /// The next piece of the text, from anywhere to anywhere. Keeps nothing of its memory. Lines of another form are passed over.
    void feed(std::string_view piece);
    /// True when there were symbols and every one of them stood at address 0: the kernel hides them from us.
    [[nodiscard]] bool hidden() const { return symbols_ > 0 && !seen_address_; }
    /// Lines that were symbols, so far.
    [[nodiscard]] size_t symbols() const { return symbols_; }
    /// One entry for each distinct address, sorted; ends the pass.
    [[nodiscard]] std::vector<KernelName> finish();

  private:
    struct Candidate {
        uint64_t address = 0; ///< of the symbol
        int rank = -1;        ///< among symbols of the same address; -1: no symbol yet
        std::string name, module;
    };
    void line(std::string_view text);
    void keep_pending();

    std::vector<uint64_t> addresses_;
    std::vector<Candidate> best_; ///< best_[i]: the nearest symbol in (addresses_[i-1], addresses_[i]]
    size_t symbols_ = 0;
    bool seen_address_ = false;
    std::string cut_; ///< the line that the last piece ended in
    size_t slot_ = 0; ///< where the last symbol fell: the text is mostly sorted, so the next is near
    // The winner so far in slot pending_slot_, still lying in the caller's piece: most are overtaken before they need a copy.
    bool pending_ = false;
    size_t pending_slot_ = 0;
    uint64_t pending_address_ = 0;
    char pending_type_ = 0;
    std::string_view pending_name_;
};

/// The names of kernel addresses (any order, duplicates allowed) from one streamed pass over /proc/kallsyms: one entry for each
/// distinct address, sorted. Errors: permission when the kernel hides addresses (kptr_restrict), unsupported without
/// CONFIG_KALLSYMS.
[[nodiscard]] Result<std::vector<KernelName>> name_kernel_addresses(std::vector<uint64_t> addresses);

} // namespace rawbpf::inline v0::symbols
