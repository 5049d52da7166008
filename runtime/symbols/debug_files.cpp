// Distributions strip what they ship and put the symbols into packages of their own (libc6-dbg, *-dbgsym, debuginfo). Two ways
// lead from the one file to the other:
//
//     build-id  e1f3c0..  ->  /usr/lib/debug/.build-id/e1/f3c0...debug          same id in both files: certain
//     debug link "ls.debug", crc  ->  DIR/ls.debug, DIR/.debug/ls.debug, /usr/lib/debug/DIR/ls.debug      checked by its CRC
//
//     .gnu_debuglink:   name NUL  padding to 4   crc32 of the whole debug file, in the file's byte order
//
// The link comes out of a file that anybody may have made. A name with a '/' in it is refused, and a file that neither has the
// build-id nor the checksum doesn't count, so at worst it makes us read a file that it could read itself.
// Source: gdb's manual, "Debugging Information in Separate Files".
#include "runtime/symbols/debug_files.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr std::string_view kDebugRoot = "/usr/lib/debug";
constexpr uint64_t kMaxChecked = uint64_t{2} << 30; // a checksum is not taken over more than this
constexpr size_t kChunk = 256 << 10;

constexpr std::array<uint32_t, 256> kCrcTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0xedb88320 : value >> 1;
        table[i] = value;
    }
    return table;
}();

Result<bool> checksum_matches(int fd, uint32_t wanted) {
    auto buffer = std::make_unique_for_overwrite<std::byte[]>(kChunk);
    uint32_t crc = 0;
    for (uint64_t at = 0; at < kMaxChecked;) {
        const size_t n = TRY(sys::pread(fd, buffer.get(), kChunk, at));
        if (n == 0) return crc == wanted;
        crc = crc32(crc, {buffer.get(), n});
        at += n;
    }
    return false;
}

} // namespace

uint32_t crc32(uint32_t crc, Bytes bytes) {
    crc = ~crc;
    for (std::byte b : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<uint32_t>(b)) & 0xff];
    return ~crc;
}

std::optional<DebugLink> debug_link(const elf::Elf &elf) {
    const elf::Section *section = elf.find_section(".gnu_debuglink");
    if (!section) return std::nullopt;
    ByteReader reader = elf.reader(*section);
    Result<std::string_view> name = reader.c_string();
    if (!name || name->empty() || name->find('/') != std::string_view::npos) return std::nullopt;
    reader.align(4);
    Result<uint32_t> crc = reader.read<uint32_t>();
    if (!crc) return std::nullopt;
    return DebugLink{std::string(*name), *crc};
}

std::vector<std::string> debug_file_paths(const std::string &path, const std::string &build_id,
                                          const std::optional<DebugLink> &link) {
    std::vector<std::string> paths;
    if (build_id.size() > 2)
        paths.push_back(format("{}/.build-id/{}/{}.debug", kDebugRoot, build_id.substr(0, 2), build_id.substr(2)));
    size_t slash = path.rfind('/');
    if (link && slash != std::string::npos) {
        std::string_view directory = std::string_view(path).substr(0, slash);
        paths.push_back(format("{}/{}", directory, link->name));
        paths.push_back(format("{}/.debug/{}", directory, link->name));
        paths.push_back(format("{}{}/{}", kDebugRoot, directory, link->name));
        if (directory.starts_with("/usr/")) // packages from before /lib moved into /usr
            paths.push_back(format("{}{}/{}", kDebugRoot, directory.substr(4), link->name));
    }
    std::erase(paths, path);
    return paths;
}

std::optional<DebugFile> find_debug_file(const std::string &path, const std::string &root, const std::string &build_id,
                                         const std::optional<DebugLink> &link, std::optional<Error> *unread) {
    auto read_one = [&](const std::string &from, const std::string &candidate) -> Result<std::optional<DebugFile>> {
        Fd fd = TRY(sys::open_under(from, candidate, O_RDONLY | O_NONBLOCK));
        sys::Mapping image = TRY(sys::map_file(fd, candidate));
        const elf::Elf elf = TRY(elf::Elf::parse(image.bytes(), candidate));
        const std::string its_id = elf.build_id().value_or("");
        const bool ids = !build_id.empty() && !its_id.empty();
        if (ids ? its_id != build_id : !link || !TRY_IN(checksum_matches(fd.get(), link->crc), "{}", candidate))
            return std::optional<DebugFile>();
        return std::optional(DebugFile{candidate, std::move(fd), std::move(image)});
    };
    auto try_one = [&](const std::string &from, const std::string &candidate) -> std::optional<DebugFile> {
        Result<std::optional<DebugFile>> file = read_one(from, candidate);
        if (file) return std::move(*file);
        if (unread && !*unread && sys::is_unread(file.error())) *unread = std::move(file).error();
        return std::nullopt;
    };
    for (const std::string &candidate : debug_file_paths(path, build_id, link))
        if (std::optional<DebugFile> found = try_one(root, candidate)) return found;
    // A container rarely has debug files of its own; a build-id is the same everywhere.
    if (root.empty() || root == "/") return std::nullopt;
    for (const std::string &candidate : debug_file_paths(path, build_id, std::nullopt))
        if (std::optional<DebugFile> found = try_one("/", candidate)) return found;
    return std::nullopt;
}

std::optional<DebugFile> fetch_debug_file(DebugFetcher &fetcher, const std::string &build_id) {
    if (build_id.empty()) return std::nullopt;
    std::optional<Fd> fd = fetcher.fetch(build_id);
    if (!fd) return std::nullopt;
    const std::string name = format("debuginfod's {}.debug", build_id);
    Result<sys::Mapping> image = sys::map_file(*fd, name);
    if (!image) return std::nullopt;
    Result<elf::Elf> elf = elf::Elf::parse(image->bytes(), name);
    if (!elf || elf->build_id().value_or("") != build_id) return std::nullopt;
    return DebugFile{name, std::move(*fd), std::move(*image)};
}

} // namespace rawbpf::inline v0::symbols
