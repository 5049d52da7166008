// There are two formats of compressed sections. Today's linkers mark a section by a flag; the older format (binutils before
// 2.26, Go before 1.19 for DWARF) is marked by the section's name.
//
//      SHF_COMPRESSED   Elf64_Chdr: type (1 zlib, 2 zstd), 0, size, alignment | zlib stream     the ELF specification
//      .zdebug_...      "ZLIB" | size, 64 bits, big-endian | zlib stream
#include "runtime/elf/compressed.h"

#include <cstring>
#include <elf.h>

#include "runtime/base/fail.h"
#include "runtime/base/inflate.h"

namespace rawbpf::inline v0::elf {

Result<std::optional<std::string>> decompressed(const Elf &elf, const Section &section, size_t limit) {
    const Bytes bytes = elf.contents(section);
    size_t header = 0;
    if (section.flags & SHF_COMPRESSED) {
        if (!elf.is_64())
            return fail(Errc::unsupported, "{}: {}: rawbpf can't read compressed sections of 32-bit files", elf.name(),
                        section.name);
        header = sizeof(Elf64_Chdr);
        if (bytes.size() < header)
            return fail(Errc::bad_input, "{}: {}: the section is marked as compressed, and is too short for that", elf.name(),
                        section.name);
        uint32_t type = load<uint32_t>(bytes.data());
        if (elf.big_endian()) type = byte_swap(type);
        if (type != ELFCOMPRESS_ZLIB)
            return fail(Errc::unsupported, "{}: {}: compressed by method {}, and rawbpf reads only zlib (1)", elf.name(),
                        section.name, type);
    } else if (section.name.starts_with(".zdebug_")) {
        header = 12;
        if (bytes.size() < header || std::memcmp(bytes.data(), "ZLIB", 4) != 0)
            return fail(Errc::bad_input, "{}: {}: the header of a compressed section is missing", elf.name(), section.name);
    } else {
        return std::nullopt;
    }
    return std::optional(TRY(unzlib(bytes.subspan(header), section.name, limit)));
}

} // namespace rawbpf::inline v0::elf
