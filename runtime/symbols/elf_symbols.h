// SPDX-License-Identifier: MIT
// The functions of one ELF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/symbols/maps.h"
#include "runtime/symbols/name.h"

namespace rawbpf::inline v0::symbols {

/// Gets debug files from elsewhere, by build-id.
class DebugFetcher {
  public:
    virtual ~DebugFetcher() = default;
    /// The debug file of that build-id (lower-case hex), open for reading; nullopt when there is none to be had.
    [[nodiscard]] virtual std::optional<Fd> fetch(const std::string &build_id) = 0;
};

/// The symbols of one ELF file (symtab or dynsym, debug file, .gnu_debugdata), sorted and compact: 12 bytes each. Names stay in
/// the file and are read and demangled when asked for. Copies share the tables.
class ElfSymbols {
  public:
    /// `decompress`: xz decoder for .gnu_debugdata (nullptr: that section is passed over).
    using Decompress = std::optional<std::vector<std::byte>> (*)(Bytes xz);

    /// Reads the file and, where its own symbols are stripped, its separate debug file (by build-id, then debug link). All paths
    /// are resolved under `root` (/proc/PID/root for a container, a --symfs directory). A file without any symbol is no error.
    [[nodiscard]] static Result<ElfSymbols> load(const std::string &path, const std::string &root = {},
                                                 Decompress decompress = nullptr);
    /// The same for a file that is open already; `path` says where it came from, for its debug file and for messages. The
    /// descriptor is kept as long as the symbols are. `fetcher` is asked for the debug file of a stripped file where there is
    /// none here (nullptr: nobody is).
    [[nodiscard]] static Result<ElfSymbols> load(Fd file, const std::string &path, const std::string &root = {},
                                                 Decompress decompress = nullptr, DebugFetcher *fetcher = nullptr);
    /// The file behind a region of a process, which may have ended, and that very file only (mapped_file.h). not_found when
    /// nothing leads to it any more.
    [[nodiscard]] static Result<ElfSymbols> load(int pid, const Region &region, const std::string &root = {},
                                                 Decompress decompress = nullptr);
    /// From an image in memory (vdso), which must outlive it.
    [[nodiscard]] static Result<ElfSymbols> parse(Bytes image, std::string_view name);

    /// The function at an offset in the file; of a separate debug file by itself, at an offset in the file it was made from.
    [[nodiscard]] std::optional<Name> find(uint64_t file_offset) const;
    /// The function at a virtual address as the file has it (before the loader adds its bias).
    [[nodiscard]] std::optional<Name> find_address(uint64_t address) const;
    /// The virtual address, as the file has it, of an offset in the file that is code; nullopt where none is.
    [[nodiscard]] std::optional<uint64_t> address_of(uint64_t file_offset) const;
    /// The offset in the file at which the function begins that has none of these names, where .eh_frame tells (for its
    /// exceptions a stripped file does); nullopt else.
    [[nodiscard]] std::optional<uint64_t> begin_of(uint64_t file_offset) const;
    [[nodiscard]] const std::string &build_id() const; ///< lower-case hex, empty without one
    [[nodiscard]] size_t size() const;                 ///< number of symbols
    [[nodiscard]] size_t memory() const;               ///< bytes held
    /// Where the names come from: ".symtab", ".dynsym", ".gnu_debugdata", ".gopclntab", or the path of the separate debug file;
    /// empty: nowhere.
    [[nodiscard]] const std::string &source() const;

  private:
    struct State;
    [[nodiscard]] static Result<std::shared_ptr<const State>> read(Fd fd, const std::string &path, const std::string &root,
                                                                   Decompress decompress, DebugFetcher *fetcher);
    std::shared_ptr<const State> state_;
};

/// The build-id of a file under `root`, lower-case hex; empty when it has none.
[[nodiscard]] Result<std::string> read_build_id(const std::string &path, const std::string &root = {});

} // namespace rawbpf::inline v0::symbols
