// Line information for people: file, line and text of an instruction, from a program's own BTF.
//
// The spec keeps line_info in the kernel's format, with names as offsets into the strings of its BTF (struct btf_header,
// include/uapi/linux/btf.h).
#include "runtime/emulator/source.h"

#include <algorithm>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::emulator {

namespace {

std::string_view text_at(Bytes btf, uint32_t offset) {
    constexpr size_t kHeader = 24;
    if (btf.size() < kHeader) return {};
    const uint64_t strings = uint64_t{load<uint32_t>(&btf[4])} + load<uint32_t>(&btf[16]); // hdr_len + str_off
    const uint64_t end = std::min<uint64_t>(btf.size(), strings + load<uint32_t>(&btf[20]));
    if (strings + offset >= end) return {};
    const char *begin = reinterpret_cast<const char *>(&btf[strings + offset]);
    return {begin, strnlen(begin, end - strings - offset)};
}

} // namespace

Source source_of(const ObjectSpec &spec, const ProgramSpec &program, size_t insn) {
    Source out;
    const LineInfo *found = nullptr;
    for (const LineInfo &line : program.line_info)
        if (line.insn <= insn) found = &line;
    if (!found) return out;
    out.file = text_at(spec.btf, found->file);
    out.line = found->number_column >> 10;
    out.insn = found->insn;
    std::string_view text = text_at(spec.btf, found->line);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    out.text = text;
    return out;
}

std::string_view function_of(const ProgramSpec &program, size_t insn) {
    std::string_view name = program.name;
    uint32_t from = 0;
    for (const ProgramSpec::Subprogram &sub : program.subprograms)
        if (sub.insn <= insn && sub.insn >= from) from = sub.insn, name = sub.name;
    return name;
}

} // namespace rawbpf::inline v0::emulator
