// Checks in the file alone what a kernel needs of a probe:
//
//      a nop at its site       a uprobe replaces it by a breakpoint; one on any other instruction single-steps, and one in the middle of
//                              an instruction breaks it
//      code around it          the segment is executable: uprobes are looked for in executable mappings only
//      a writable semaphore    two bytes of the file, mapped writable: the kernel counts tracers there (ref_ctr_offset)
//      names                   that can be written as PROVIDER:NAME
//      arguments               each of which can be fetched by a program
#include "programs/usdt/check.h"

#include <algorithm>
#include <elf.h>

#include "runtime/base/format.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::usdt {
namespace {

bool is_name(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || !letter(text[0])) return false;
    for (char c : text)
        if (!letter(c) && !(c >= '0' && c <= '9') && c != '-') return false;
    return true;
}

void check_site(const Binary &binary, const Probe &probe, Verdict &out) {
    const elf::Elf &elf = binary.elf();
    const elf::Segment *segment = segment_at(elf, probe.site.address, 1);
    if (!segment) {
        out.problems.push_back(format("no segment of the file is loaded at its address, {:#x}", probe.site.address));
        return;
    }
    if (!(segment->flags & PF_X)) out.problems.emplace_back("its site isn't in an executable segment");
    const uint64_t distance = probe.site.address - segment->address, offset = segment->offset + distance;
    if (offset >= binary.bytes().size()) {
        out.problems.push_back(format("its site is past the end of the file, at offset {:#x}", offset));
        return;
    }
    const Bytes rest = binary.bytes().subspan(offset);
    const Bytes code = rest.first(std::min<uint64_t>(rest.size(), segment->file_size - distance));
    out.nop = nop_at(code, elf.machine(), elf.big_endian());
    if (!out.nop.kind.empty()) return;
    out.problems.push_back("no nop is at its site, but " + hex_text(code.first(std::min<size_t>(code.size(), 4)), " "));
}

} // namespace

Verdict check_probe(const Binary &binary, const Probe &probe) {
    Verdict out;
    check_site(binary, probe, out);
    if (probe.site.semaphore != 0) {
        const elf::Segment *segment = segment_at(binary.elf(), probe.site.semaphore, 2);
        if (!segment)
            out.problems.push_back(format("its semaphore, at {:#x}, isn't in the file", probe.site.semaphore));
        else if (!(segment->flags & PF_W))
            out.problems.emplace_back("its semaphore isn't in a writable segment");
    }
    if (!is_name(probe.site.provider)) out.problems.push_back(format("its provider, \"{}\", is no name", probe.site.provider));
    if (!is_name(probe.site.name)) out.problems.push_back(format("\"{}\" is no name", probe.site.name));
    for (size_t i = 0; i < probe.arguments.size(); ++i) {
        const Argument &argument = probe.arguments[i];
        if (!argument.problem.empty()) out.problems.push_back(format("argument {} ({}): {}", i, argument.spec, argument.problem));
    }
    return out;
}

} // namespace rawbpf::inline v0::usdt
