// Probes that programs bring along, as notes that tell where a nop stands.
//
//      .note.stapsdt   [ namesz 8 | descsz | type 3 | "stapsdt\0" | pc, base, semaphore | "provider\0" "name\0" "arguments\0" ]*
//
//      pc and semaphore were written for .stapsdt.base at `base`; where prelink has moved that section they move with it
//
// The format is <sys/sdt.h>'s (systemtap), and everybody's who writes such notes since. C leaves descsz as it comes, Go counts
// the padding; addresses have the file's width. The notes aren't loaded with the program, so there is no PT_NOTE for them: they
// are found by the section.
#include "runtime/usdt/notes.h"

#include <cstring>
#include <elf.h>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::usdt {
namespace {

constexpr std::string_view kOwner("stapsdt\0", 8);
constexpr uint32_t kType = 3;

Result<uint64_t> read_address(ByteReader &from, bool is_64) {
    if (is_64) return from.read<uint64_t>();
    return TRY(from.read<uint32_t>());
}

Result<Site> read_site(ByteReader note, bool is_64, const elf::Section *base) {
    Site out;
    uint64_t pc = TRY(read_address(note, is_64)), written_for = TRY(read_address(note, is_64)),
             semaphore = TRY(read_address(note, is_64));
    out.provider = TRY(note.c_string());
    out.name = TRY(note.c_string());
    // Notes of probes without arguments may end after the name; ":" stands for none in some of them.
    if (note.left() > 0) out.arguments = TRY(note.c_string());
    if (out.arguments.starts_with(':')) out.arguments = {};
    const uint64_t moved = base && written_for != 0 ? base->address - written_for : 0;
    const uint64_t width = is_64 ? ~uint64_t{0} : 0xffffffff;
    out.address = (pc + moved) & width;
    out.semaphore = semaphore == 0 ? 0 : (semaphore + moved) & width;
    return out;
}

} // namespace

Result<Notes> read_notes(const elf::Elf &elf) {
    const elf::Section *section = elf.find_section(".note.stapsdt");
    if (!section) return fail(Errc::not_found, "{}: has no USDT probes (no section .note.stapsdt)", elf.name());
    if (elf.type() == ET_REL)
        return Unexpected(make_error(
            Errc::unsupported, format("{} is an object file, and its probes have no addresses before it is linked", elf.name()),
            "give the program or library that it is linked into"));
    const elf::Section *base = elf.find_section(".stapsdt.base");
    const std::string what = format("{}: .note.stapsdt", elf.name());
    const Bytes all = elf.contents(*section);
    Notes out;
    ByteReader reader(all, what, 0, elf.big_endian());
    const auto next = [&]() -> Result<bool> { // false: the end
        if (reader.left() == 0) return false;
        const uint64_t at = reader.offset();
        const auto name_size = TRY(reader.read<uint32_t>()), size = TRY(reader.read<uint32_t>()),
                   type = TRY(reader.read<uint32_t>());
        Bytes owner = TRY(reader.take(name_size));
        reader.align(4);
        const uint64_t body_at = reader.offset();
        Bytes body = TRY(reader.take(size));
        reader.align(4);
        if (type != kType || owner.size() != kOwner.size() || std::memcmp(owner.data(), kOwner.data(), kOwner.size()) != 0)
            return true;
        Result<Site> site = read_site(ByteReader(body, what, body_at, elf.big_endian()), elf.is_64(), base);
        if (site)
            out.sites.push_back(*site);
        else
            out.problems.push_back(in_context(std::move(site).error(), format("the note at {:#x}", at)));
        return true;
    };
    for (;;) {
        Result<bool> more = next();
        if (more && *more) continue;
        if (!more) out.problems.push_back(std::move(more).error());
        return out;
    }
}

const elf::Segment *segment_at(const elf::Elf &elf, uint64_t address, uint64_t size) {
    for (const elf::Segment &s : elf.segments())
        if (s.type == PT_LOAD && address >= s.address && address - s.address < s.file_size &&
            s.file_size - (address - s.address) >= size)
            return &s;
    return nullptr;
}

} // namespace rawbpf::inline v0::usdt
