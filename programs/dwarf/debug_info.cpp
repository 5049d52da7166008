// Debug info, found: in the file itself; in the separate file that its build-id or debug link leads to, under the root of its
// process and, by build-id, under ours; at debuginfod's servers. The same places, in the same order, as for symbols.
#include "programs/dwarf/debug_info.h"

#include <elf.h>

#include "programs/dwarf/debuginfod.h"
#include "programs/dwarf/lines.h"
#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/symbols/debug_files.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::dwarf {
namespace {

// Of its own: .debug_info, or .zdebug_info. (Here, and not in lines.cpp: libelf's header has an Elf, too.)
bool has_debug_info(const elf::Elf &elf) {
    for (std::string_view name : {".debug_info", ".zdebug_info"})
        if (const elf::Section *section = elf.find_section(name); section && section->size > 0 && section->type != SHT_NOBITS)
            return true;
    return false;
}

class Found final : public processes::DebugInfo {
  public:
    Result<std::unique_ptr<processes::ModuleLines>> open(Fd file, const std::string &path, const std::string &root) override {
        const auto complain = [this](std::string sentence) { warnings_.push_back(std::move(sentence)); };
        std::string build_id;
        std::optional<symbols::DebugLink> link;
        {
            const sys::Mapping image = TRY(sys::map_file(file, path));
            const elf::Elf elf = TRY(elf::Elf::parse(image.bytes(), path));
            if (!has_debug_info(elf)) {
                build_id = elf.build_id().value_or("");
                link = symbols::debug_link(elf);
                file.reset();
            }
        }
        if (file) return open_lines(std::move(file), path, root, complain);
        std::optional<symbols::DebugFile> separate = symbols::find_debug_file(path, root, build_id, link);
        const auto without = [](const symbols::DebugFile &candidate) {
            const Result<elf::Elf> elf = elf::Elf::parse(candidate.image.bytes(), candidate.path);
            return !elf || !has_debug_info(*elf);
        };
        if (separate && without(*separate)) separate.reset();
        if (!separate) separate = symbols::fetch_debug_file(*this, build_id);
        if (!separate || without(*separate))
            return fail(Errc::not_found, "no debug info{}", build_id.empty() ? ", and no build-id to find it by" : missing());
        separate->image = {};
        return open_lines(std::move(separate->fd), separate->path, root, complain);
    }

    std::optional<Fd> fetch(const std::string &build_id) override { return debuginfod_.fetch(build_id); }
    void end_on(const volatile std::sig_atomic_t &signals) override { debuginfod_.end_on(signals); }
    std::vector<std::string> warnings() const override {
        std::vector<std::string> out = warnings_;
        if (!debuginfod_.problem().empty()) out.push_back(debuginfod_.problem());
        if (std::string left_out = debuginfod_.left_out(); !left_out.empty()) out.push_back(std::move(left_out));
        return out;
    }

  private:
    [[nodiscard]] std::string missing() const {
        if (!debuginfod_.wanted()) return " here; DEBUGINFOD_URLS names no server to ask for it";
        return debuginfod_.problem().empty() && debuginfod_.left_out().empty() ? " here, and none at DEBUGINFOD_URLS"
                                                                               : " here; debuginfod: see below";
    }
    Debuginfod debuginfod_;
    std::vector<std::string> warnings_;
};

} // namespace

std::unique_ptr<processes::DebugInfo> make_debug_info() { return std::make_unique<Found>(); }

} // namespace rawbpf::inline v0::dwarf
