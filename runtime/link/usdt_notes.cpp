// USDT: probes that programs bring along, as notes that tell where a nop stands.
//
//      .note.stapsdt   [ namesz 8 | descsz | type 3 | "stapsdt\0" | pc, base, semaphore | "provider\0" "name\0" "arguments\0" ]*
//
//      pc and semaphore were written for .stapsdt.base at `base`; where prelink has moved that section they move with it
//
// The format is <sys/sdt.h>'s (systemtap), and everybody's who writes such notes since.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/stable_sort.h"
#include "runtime/link/names.h"
#include "runtime/link/usdt.h"

namespace rawbpf::inline v0 {

Result<std::vector<UsdtSite>> find_usdt_sites(const elf::Elf &elf, std::string_view provider, std::string_view name) {
    constexpr uint32_t kType = 3;
    const std::string &path = elf.name();
    const elf::Section *notes = elf.find_section(".note.stapsdt");
    if (!notes) return fail(Errc::not_found, "{}: has no USDT probes (no section .note.stapsdt)", path);
    if (!elf.is_64() || elf.big_endian())
        return fail(Errc::unsupported, "{}: USDT probes of 32-bit or big-endian programs aren't read", path);
    const elf::Section *base = elf.find_section(".stapsdt.base");
    std::vector<UsdtSite> out;
    const std::string full = format("{}:{}", provider, name);
    NearestNames near(full);
    ByteReader reader = elf.reader(*notes);
    while (reader.left() > 0) {
        const auto name_size = TRY(reader.read<uint32_t>()), size = TRY(reader.read<uint32_t>()),
                   type = TRY(reader.read<uint32_t>());
        Bytes owner = TRY(reader.take(name_size));
        reader.align(4);
        Bytes body = TRY(reader.take(size));
        reader.align(4);
        if (type != kType || owner.size() != 8 || std::memcmp(owner.data(), "stapsdt", 8) != 0) continue;
        ByteReader note(body, format("{}: a note in .note.stapsdt", path));
        uint64_t pc = TRY(note.read<uint64_t>()), written_for = TRY(note.read<uint64_t>()),
                 semaphore = TRY(note.read<uint64_t>());
        std::string_view its_provider = TRY(note.c_string()), its_name = TRY(note.c_string());
        if (its_provider != provider || its_name != name) {
            near.see(format("{}:{}", its_provider, its_name));
            continue;
        }
        const uint64_t moved = base && written_for != 0 ? base->address - written_for : 0;
        UsdtSite site;
        site.address = pc + moved;
        std::optional<uint64_t> offset = elf.file_offset(site.address);
        if (!offset) return fail(Errc::bad_input, "{}: probe {} is at {:#x}, where no segment is", path, full, site.address);
        site.offset = *offset;
        if (semaphore != 0) {
            std::optional<uint64_t> place = elf.file_offset(semaphore + moved);
            if (!place)
                return fail(Errc::bad_input, "{}: the semaphore of {} is at {:#x}, where no segment is", path, full,
                            semaphore + moved);
            site.semaphore = *place;
        }
        // Notes of probes without arguments may end after the name; ":" stands for none in some of them.
        std::string_view arguments = note.left() > 0 ? TRY(note.c_string()) : std::string_view();
        if (!arguments.starts_with(':')) site.arguments = arguments;
        out.push_back(std::move(site));
    }
    if (out.empty()) return Unexpected(make_error(Errc::not_found, format("{}: no USDT probe {}", path, full), near.hint()));
    // Code that was inlined may be described twice; the program should run once.
    stable_sort(out, [](const UsdtSite &x, const UsdtSite &y) { return x.offset < y.offset; });
    out.erase(std::unique(out.begin(), out.end(), [](const UsdtSite &x, const UsdtSite &y) { return x.offset == y.offset; }),
              out.end());
    return out;
}

void take_long_nops(Bytes image, uint16_t machine, std::vector<UsdtSite> &sites) {
    // nop; cs nopw 0(%rax,%rax)
    constexpr uint8_t kBoth[] = {0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00};
    if (machine != EM_X86_64) return;
    for (UsdtSite &site : sites) {
        if (site.offset > image.size() || image.size() - site.offset < sizeof kBoth) continue;
        if (std::memcmp(image.data() + site.offset, kBoth, sizeof kBoth) != 0) continue;
        ++site.offset;
        ++site.address;
    }
}

} // namespace rawbpf::inline v0
