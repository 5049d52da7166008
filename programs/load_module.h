// A module of rawbpf's, loaded when a run needs it: from the folder of the executable (a build folder, or where somebody copied
// both), or from where it was installed. It is as trusted as the executable: whoever can write to that folder needs no module.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

/// A loaded module's file, and the function in it that was asked for; nullptr: it has none of that name.
struct ModuleEntry {
    std::string path;
    void *function = nullptr;
};
/// The first module `name` that is in one of these folders; it stays loaded. `does`: what rawbpf can't do without it.
/// Errors: unsupported.
[[nodiscard]] Result<ModuleEntry> find_module_entry(const std::vector<std::string> &folders, std::string_view name,
                                                    const char *entry, std::string_view does, const char *hint);

/// What `entry` of the module `name` returns; it stays, since its classes are in use.
template <class Table> Result<const Table *> load_module(const std::string &folder, std::string_view version,
                                                         std::string_view name, const char *entry, std::string_view does,
                                                         const char *hint) {
    const ModuleEntry found = TRY(find_module_entry({folder, RAWBPF_MODULES}, name, entry, does, hint));
    const auto function = reinterpret_cast<const Table *(*)()>(found.function);
    const Table *table = function ? function() : nullptr;
    if (!table || version != table->version)
        return fail(Errc::unsupported, "{} belongs to another version of rawbpf", found.path);
    return table;
}

} // namespace rawbpf::inline v0
