// The sites of one probe, for attaching to them: a probe is a name and may have many sites.
#include <elf.h>

#include <algorithm>
#include <optional>

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/link/names.h"
#include "runtime/link/usdt.h"
#include "runtime/usdt/nop.h"
#include "runtime/usdt/notes.h"

namespace rawbpf::inline v0 {

Result<std::vector<UsdtSite>> find_usdt_sites(const elf::Elf &elf, std::string_view provider, std::string_view name) {
    const std::string &path = elf.name();
    usdt::Notes notes = TRY(usdt::read_notes(elf));
    if ((!elf.is_64() && kHost.word == 8) || elf.big_endian())
        return fail(Errc::unsupported, "{}: rawbpf can list USDT probes of 32-bit or big-endian programs, but not attach to them",
                    path);
    std::vector<UsdtSite> out;
    const std::string full = format("{}:{}", provider, name);
    NearestNames near(full);
    for (const usdt::Site &note : notes.sites) {
        if (note.provider != provider || note.name != name) {
            near.see(format("{}:{}", note.provider, note.name));
            continue;
        }
        UsdtSite site;
        site.address = note.address;
        std::optional<uint64_t> offset = elf.file_offset(site.address);
        if (!offset) return fail(Errc::bad_input, "{}: probe {} is at {:#x}, which is in no segment", path, full, site.address);
        site.offset = *offset;
        if (note.semaphore != 0) {
            std::optional<uint64_t> place = elf.file_offset(note.semaphore);
            if (!place)
                return fail(Errc::bad_input, "{}: the semaphore of {} is at {:#x}, which is in no segment", path, full,
                            note.semaphore);
            site.semaphore = *place;
        }
        site.arguments = note.arguments;
        out.push_back(std::move(site));
    }
    // A damaged note may have been the one that is wanted.
    if (out.empty() && !notes.problems.empty()) return Unexpected(std::move(notes.problems.front()));
    if (out.empty()) return Unexpected(make_error(Errc::not_found, format("{}: no USDT probe {}", path, full), near.hint()));
    // Code that was inlined may be described twice; the program should run once.
    stable_sort(out, [](const UsdtSite &x, const UsdtSite &y) { return x.offset < y.offset; });
    out.erase(std::unique(out.begin(), out.end(), [](const UsdtSite &x, const UsdtSite &y) { return x.offset == y.offset; }),
              out.end());
    return out;
}

void take_long_nops(Bytes image, uint16_t machine, std::vector<UsdtSite> &sites) {
    for (UsdtSite &site : sites) {
        if (site.offset > image.size() || usdt::nop_at(image.subspan(site.offset), machine, false).kind != "nop,nop10") continue;
        ++site.offset;
        ++site.address;
    }
}

} // namespace rawbpf::inline v0
