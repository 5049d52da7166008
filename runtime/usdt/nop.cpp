// Instructions that do nothing, and that a kernel replaces by a breakpoint. A probe that stands on anything else is one whose
// file was changed after it was linked, or whose notes were written wrongly: tracing it would still work, at the price of single
// steps (15 us instead of 0.6 on x86_64), or break the instruction where the address is in the middle of one.
//
//      x86_64    90                              nop
//                0f 1f 44 00 00                  nop5: from 6.18 on the kernel writes a call over it
//                66 2e 0f 1f 84 00 00 00 00 00   nop10: 7.2 does, and leaves the red zone alone
//                90, then one of these           nop,nop5 and nop,nop10: kernels of any age have one to stand on
//      arm64     d503201f      riscv   13 00 00 00, 01 00 (compressed)      s390x   47 00 00 00, 07 00
#include "runtime/usdt/nop.h"

#include <cstring>
#include <elf.h>

namespace rawbpf::inline v0::usdt {
namespace {

struct Row {
    uint16_t machine;
    std::string_view kind;
    std::string_view bytes; ///< of little-endian files, but for machines that have no others
};
using namespace std::string_view_literals;
constexpr Row kRows[] = {
    {EM_X86_64, "nop"sv, "\x90"sv},
    {EM_X86_64, "nop2"sv, "\x66\x90"sv},
    {EM_X86_64, "nop3"sv, "\x0f\x1f\x00"sv},
    {EM_X86_64, "nop4"sv, "\x0f\x1f\x40\x00"sv},
    {EM_X86_64, "nop5"sv, "\x0f\x1f\x44\x00\x00"sv},
    {EM_X86_64, "nop6"sv, "\x66\x0f\x1f\x44\x00\x00"sv},
    {EM_X86_64, "nop7"sv, "\x0f\x1f\x80\x00\x00\x00\x00"sv},
    {EM_X86_64, "nop8"sv, "\x0f\x1f\x84\x00\x00\x00\x00\x00"sv},
    {EM_X86_64, "nop9"sv, "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"sv},
    {EM_X86_64, "nop10"sv, "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"sv},
    {EM_AARCH64, "nop"sv, "\x1f\x20\x03\xd5"sv},
    {EM_RISCV, "nop"sv, "\x13\x00\x00\x00"sv},
    {EM_RISCV, "c.nop"sv, "\x01\x00"sv},
    {EM_S390, "nop"sv, "\x47\x00\x00\x00"sv},
    {EM_S390, "nopr"sv, "\x07\x00"sv},
    {EM_ARM, "nop"sv, "\x00\xf0\x20\xe3"sv},
    {EM_PPC64, "nop"sv, "\x00\x00\x00\x60"sv},
};

bool begins(Bytes code, std::string_view bytes, bool reversed) {
    if (code.size() < bytes.size()) return false;
    for (size_t i = 0; i < bytes.size(); ++i)
        if (static_cast<char>(code[i]) != bytes[reversed ? bytes.size() - 1 - i : i]) return false;
    return true;
}

const Row *find(Bytes code, uint16_t machine, bool reversed) {
    for (const Row &row : kRows)
        if (row.machine == machine && begins(code, row.bytes, reversed)) return &row;
    return nullptr;
}

} // namespace

Nop nop_at(Bytes code, uint16_t machine, bool big_endian) {
    if (machine == EM_386) machine = EM_X86_64;
    const bool reversed = big_endian && machine == EM_PPC64; // arm64's and riscv's code is little-endian whatever the data are
    const Row *row = find(code, machine, reversed);
    if (!row) return {};
    Nop out{row->kind, static_cast<uint8_t>(row->bytes.size())};
    if (machine == EM_X86_64 && row->bytes.size() == 1) {
        const Row *next = find(code.subspan(1), machine, reversed);
        if (next && next->kind == "nop5") out.kind = "nop,nop5";
        if (next && next->kind == "nop10") out.kind = "nop,nop10";
    }
    return out;
}

} // namespace rawbpf::inline v0::usdt
