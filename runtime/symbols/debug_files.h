// Where the symbols of a stripped file may lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/elf/elf.h"
#include "runtime/symbols/elf_symbols.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::symbols {

/// What .gnu_debuglink says: the name of the debug file and its checksum.
struct DebugLink {
    std::string name;
    uint32_t crc = 0;
};
/// nullopt without that section, or where it is malformed or names a path instead of a file.
[[nodiscard]] std::optional<DebugLink> debug_link(const elf::Elf &elf);

/// The paths to look at for the debug file of `path`, best first: by build-id, then by debug link.
[[nodiscard]] std::vector<std::string> debug_file_paths(const std::string &path, const std::string &build_id,
                                                        const std::optional<DebugLink> &link);

/// A separate debug file that is known to belong to the stripped one.
struct DebugFile {
    std::string path;
    Fd fd;
    sys::Mapping image;
};
/// Looks under `root` and, by build-id only, under "/". A file counts when its build-id is the same, or, where one of the two has
/// none, when its checksum is the link's. nullopt when there is none. What could not be read, though it may be the one (EIO,
/// ENOMEM), is told in `unread`, where it isn't nullptr: the first such failure.
[[nodiscard]] std::optional<DebugFile> find_debug_file(const std::string &path, const std::string &root,
                                                       const std::string &build_id, const std::optional<DebugLink> &link,
                                                       std::optional<Error> *unread = nullptr);

/// What the fetcher has for that build-id; nullopt where it has nothing, or another file. An empty build-id isn't asked for.
[[nodiscard]] std::optional<DebugFile> fetch_debug_file(DebugFetcher &fetcher, const std::string &build_id);

/// The CRC-32 of zlib and Ethernet (reflected polynomial 0xedb88320), which debug links use. Start with 0.
[[nodiscard]] uint32_t crc32(uint32_t crc, Bytes bytes);

} // namespace rawbpf::inline v0::symbols
