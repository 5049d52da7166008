// The parts of a header of C that depend on nothing around them. PURE. Private to c_header.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::btf {

/// Around a header of C: members are found at run time, wherever the kernel has them.
inline constexpr std::string_view kHeaderBegin =
    "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\n"
    "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n"
    "#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n"
    "#endif\n\n";
inline constexpr std::string_view kHeaderEnd =
    "\n#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n#pragma clang attribute pop\n#endif\n\n#endif /* __VMLINUX_H__ */\n";

constexpr uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

void append_number(std::string &out, uint64_t value);
/// Ends the line; the next one begins with so many tabs.
void append_line(std::string &out, int indent);
/// An enumerator's value.
void append_literal(std::string &out, uint64_t value, bool is_signed);
/// C++ says the size of an enum, in bytes, in front of it.
void append_enum_base(std::string &out, uint32_t size, bool is_signed);
/// C behind it. `wide`: one of its values gives it 64 bits anyway.
void append_enum_mode(std::string &out, uint32_t size, bool wide);

/// A member at bit `at` that C can't have, and why.
void append_impossible(std::string &out, std::string_view name, uint64_t at, int indent, std::string_view why);
/// An array of so many bytes from byte `at` on, with a name.
void append_pad_array(std::string &out, uint64_t at, uint64_t bytes, int indent);
/// Unnamed bit-fields from bit `at` to bit `end`; an array where they would be many. None is wider than the struct's alignment,
/// in bits: on some machines they count for it.
void append_pads(std::string &out, uint64_t at, uint64_t end, int indent, uint64_t align, bool packed);

} // namespace rawbpf::inline v0::btf
