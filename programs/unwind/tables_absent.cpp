// In the place of live_tables.cpp and closure.cpp, in a build without the part `unwind`: nobody builds tables.
#include "programs/unwind/closure.h"
#include "programs/unwind/live_tables.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0::unwind {

Result<std::unique_ptr<LiveTables>> LiveTables::create(LoadedObject &, ModuleFiles &, const LiveTablesOptions &) {
    return Unexpected(without_part("unwind tables", "unwind"));
}

CommandEnvironment CommandEnvironment::own() { return {}; }
std::vector<std::vector<std::string>> commands_of(const std::vector<std::string> &) { return {}; }
void files_of_command(const std::vector<std::string> &, const CommandEnvironment &,
                      const std::function<bool(const std::string &path, const Fd &file)> &) {}

} // namespace rawbpf::inline v0::unwind
