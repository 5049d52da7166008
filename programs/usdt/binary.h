// Files with probes: one by its path, or all that a process has mapped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "programs/usdt/target.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/file.h"
#include "runtime/usdt/arguments.h"
#include "runtime/usdt/notes.h"

namespace rawbpf::inline v0::usdt {

/// One site, with all that its note says. Refers to the Binary that it came from.
struct Probe {
    Site site;
    std::optional<uint64_t> file_offset; ///< of the nop; none: no segment is loaded there
    std::vector<Argument> arguments;     ///< resolved
};

/// An open file.
class Binary {
  public:
    /// `path`: a file; `shown`: its name in messages and output. Errors: not_found, io; bad_input where it is no ELF file, with
    /// what it is instead.
    [[nodiscard]] static Result<Binary> open(const std::string &path, const std::string &shown);
    [[nodiscard]] static Result<Binary> open(const Fd &file, const std::string &shown);

    [[nodiscard]] const elf::Elf &elf() const { return elf_; }
    [[nodiscard]] Bytes bytes() const { return image_.bytes(); }
    [[nodiscard]] const std::string &name() const { return elf_.name(); }
    /// Its probes that the target means, as they stand in the file; `problems` gets what can't be read. Errors: not_found where
    /// it has none at all (with where some are), or none like that (with the nearest names).
    [[nodiscard]] Result<std::vector<Probe>> probes(const Target &target, std::vector<Error> &problems) const;

  private:
    static Result<Binary> parse(sys::Mapping image, const std::string &shown);
    sys::Mapping image_;
    elf::Elf elf_;
};

/// A file in memory (memfd_create), which may hold probes that the process has made for itself.
[[nodiscard]] bool is_memory_file(const symbols::Region &region);
/// A mapped file of a process, each once.
[[nodiscard]] std::vector<symbols::Region> mapped_files(const symbols::ProcessMaps &maps);
/// A mapped file, open, and a path that leads to it from here: what a uprobe is attached by.
struct MappedBinary {
    Binary binary;
    std::string path;
};
/// Opens it as the process sees it: through its root, by the mapping itself where the path leads elsewhere by now or was deleted
/// (needs CAP_CHECKPOINT_RESTORE, 5.9). Errors: not_found, permission.
[[nodiscard]] Result<MappedBinary> open_mapped(int pid, const symbols::Region &region);

} // namespace rawbpf::inline v0::usdt
