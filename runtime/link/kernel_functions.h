// The kernel's functions by name. Private to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

struct KernelFunction {
    std::string name;
    std::string module;   ///< empty: the kernel itself
    uint64_t address = 0; ///< 0: not known
};

/// One line of /proc/kallsyms.
struct KernelSymbol {
    uint64_t address = 0; ///< 0 where the kernel hides addresses
    char type = 0;
    std::string_view name, module;
    /// Not what objtool names the padding in front of functions by (since 6.2).
    [[nodiscard]] bool is_function() const {
        return (type == 't' || type == 'T' || type == 'w' || type == 'W') && !name.starts_with("__pfx_");
    }
};
/// Goes through the text of kallsyms in pieces (the whole is 10 MB); `see` returns false to stop.
[[nodiscard]] Result<void> each_kernel_symbol(const std::function<bool(const KernelSymbol &)> &see);

/// All functions of that name ("MODULE:NAME": of that module): several static ones may share it. Errors: not_found with the
/// nearest names; permission when the kernel hides addresses.
[[nodiscard]] Result<std::vector<KernelFunction>> find_kernel_functions(const std::string &name);

/// What a pattern describes, and what it describes that can't be traced.
struct MatchedFunctions {
    std::vector<KernelFunction> functions; ///< sorted by address
    size_t hidden = 0;                     ///< functions of that pattern that ftrace can't be put on: notrace, inlined, ...
    std::vector<std::string> hidden_names; ///< the first few of them
};
/// By available_filter_functions (with addresses since 6.5, else from kallsyms); without tracefs by kallsyms alone.
/// "MODULE:PATTERN" describes functions of that module. Errors: not_found with the nearest names, or that there is no such
/// module.
[[nodiscard]] Result<MatchedFunctions> match_kernel_functions(const std::string &pattern);
/// "skipped 3 of 20 functions, ...", for Link::notes(); empty when none is hidden.
[[nodiscard]] std::string describe_hidden(const MatchedFunctions &matched);

/// Why a kprobe can't stand at a function, as far as the kernel tells: "NOKPROBE (debugfs/kprobes/blacklist)", or empty.
[[nodiscard]] std::string why_no_kprobe(uint64_t address, const std::string &name);

} // namespace rawbpf::inline v0
