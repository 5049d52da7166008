// The input of `exec` and `step`: a program in one of several forms, and bytes in hex.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::exec {

/// "01 02 0a", "01020a", "0x01020a", on any number of lines; `#` begins a comment. Errors: bad_input with the place.
[[nodiscard]] Result<std::vector<std::byte>> parse_hex(std::string_view text, std::string_view what);
/// The same as instructions, at least one. Errors: bad_input with the place, or with the number of bytes that are missing.
[[nodiscard]] Result<std::vector<Insn>> parse_insns(std::string_view text, std::string_view name);
/// Whether it can only be hex: digits, white space and comments, a 0x in front of a word, and at least one digit.
[[nodiscard]] bool looks_like_hex(std::string_view text);

/// An ELF object, as bytes or in hex, or instructions in hex, which become a socket filter named "main". Errors: bad_input.
[[nodiscard]] Result<ObjectSpec> read_program(Bytes bytes, std::string_view name);

/// The program with this name, or the only one. Errors: not_found, invalid_argument when there are several; both list them.
[[nodiscard]] Result<size_t> choose_program(const ObjectSpec &spec, std::string_view name);

/// What AssembleOptions::section is told: whether our loader knows such a section; if not, a near one, as a hint. Loaders other
/// than ours may know more, so it is a warning.
[[nodiscard]] bool known_section(std::string_view section, std::string &hint);

/// Programs of these types are given a packet by way of their context; others memory.
[[nodiscard]] bool takes_packet(const ProgramSpec &program);

} // namespace rawbpf::inline v0::exec
