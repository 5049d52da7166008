// A file is taken for a module's only when its build-id is the one that was recorded: symbols of another build would give wrong
// names, which is worse than none. Where the recorded file had no build-id, its path must do, and a warning says so.
#include "programs/recording/file_symbols.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "programs/xz.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/symbols/name_strings.h"
#include "runtime/sys/file.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::recording {

FileSymbols::Table FileSymbols::find(const processes::Module &module) {
    if (module.kind != processes::ModuleKind::file) return {};
    struct Candidate {
        std::string path, root;
    };
    std::vector<Candidate> candidates;
    if (!symfs_.empty()) {
        candidates.push_back({module.path, symfs_});
        if (module.build_id.size() > 2)
            candidates.push_back(
                {"/.build-id/" + module.build_id.substr(0, 2) + "/" + module.build_id.substr(2) + ".debug", symfs_});
    }
    candidates.push_back({module.path, {}});
    std::string other;
    std::optional<Error> hidden; // what is here, and can't be looked into
    const auto failed = [&hidden](Error &&error) {
        if (error.kind == Errc::not_found || error.os == ENOTDIR) return;
        if (!hidden || (sys::is_unread(error) && !sys::is_unread(*hidden))) hidden = std::move(error);
    };
    for (const Candidate &candidate : candidates) {
        auto id = symbols::read_build_id(candidate.path, candidate.root);
        if (!id) {
            failed(std::move(id).error());
            continue;
        }
        if (*id != module.build_id) {
            other = candidate.root + candidate.path;
            continue;
        }
        auto file = sys::open_under(candidate.root, candidate.path, O_RDONLY | O_NONBLOCK);
        if (!file) {
            failed(std::move(file).error());
            continue;
        }
        auto table = symbols::ElfSymbols::load(std::move(*file), candidate.path, candidate.root, unpack_xz, debug_info_);
        if (!table) {
            failed(std::move(table).error());
            continue;
        }
        if (id->empty())
            warnings_.push_back(format("{} has no build-id; named from {}{}, which may be another version", module.path,
                                       candidate.root, candidate.path));
        return {std::move(*table), candidate.path, candidate.root, false, nullptr, false};
    }
    if (hidden) {
        warnings_.push_back(format("{}: its functions have no names: {}", module.path, hidden->message()));
        unread_ = unread_ || sys::is_unread(*hidden);
    } else if (!other.empty())
        warnings_.push_back(
            format("{} has another build-id than the {} that was captured: not named from it", other, module.path));
    else
        warnings_.push_back(format("{} {}: its functions have no names", module.path,
                                   module.path.starts_with("/memfd:")
                                       ? "was a file in memory, and the capture ends before the names that it would bring along"
                                       : "isn't here"));
    return {};
}

FileSymbols::Table &FileSymbols::table(uint32_t module_id, const processes::Module &module) {
    auto at = tables_.find(module_id);
    if (at == tables_.end()) at = tables_.emplace(module_id, find(module)).first;
    return at->second;
}

std::optional<symbols::Name> FileSymbols::in_module(uint32_t module_id, const processes::Module &module, uint64_t file_offset) {
    Table &its = table(module_id, module);
    std::optional<symbols::Name> name = its.symbols ? its.symbols->find(file_offset) : std::nullopt;
    if (const std::optional<Error> failed = symbols::read_failure(); failed && !its.told) {
        warnings_.push_back(format("{}: some of its functions have no names: {}", module.path, failed->message()));
        its.told = unread_ = true;
    }
    return name;
}

std::optional<uint64_t> FileSymbols::begin_of(uint32_t module_id, const processes::Module &module, uint64_t file_offset) {
    const Table &its = table(module_id, module);
    return its.symbols ? its.symbols->begin_of(file_offset) : std::nullopt;
}

void FileSymbols::open_lines(Table &table, const processes::Module &module) {
    table.lines_sought = true;
    auto file = sys::open_under(table.root, table.path, O_RDONLY | O_NONBLOCK);
    auto lines = file ? debug_info_->open(std::move(*file), table.path, table.root) : Unexpected(std::move(file).error());
    if (lines)
        table.lines = std::move(*lines);
    else {
        warnings_.push_back(format("no lines for {}: {}", module.path, lines.error().message()));
        unread_ = unread_ || sys::is_unread(lines.error());
    }
}

std::vector<processes::SourceFrame> FileSymbols::in_source(uint32_t module_id, const processes::Module &module,
                                                           uint64_t file_offset) {
    Table &its = table(module_id, module);
    const std::optional<uint64_t> address = its.symbols ? its.symbols->address_of(file_offset) : std::nullopt;
    if (!debug_info_ || !address) return {};
    if (!its.lines_sought) open_lines(its, module);
    return its.lines ? its.lines->find(*address) : std::vector<processes::SourceFrame>();
}

} // namespace rawbpf::inline v0::recording
