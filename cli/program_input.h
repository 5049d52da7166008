// What `exec` and `step` have in common: their operands, and the road from there to a program that can run.
#pragma once

#include <string>
#include <vector>

#include "asm/assemble.h"
#include "cli/object_file.h"
#include "cli/options.h"
#include "runtime/object/spec.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kMemoryOption{.name = "mem",
                                      .kind = OptionKind::text,
                                      .argument = "HEX",
                                      .help = "the memory that r1 points to; r2 is its length. The same as a HEX operand",
                                      .section = "Input"};
inline constexpr Option kMemoryFileOption{
    .name = "mem-file", .kind = OptionKind::file, .argument = "FILE", .help = "the same memory, read from a file"};
inline constexpr Option kPacketOption{
    .name = "packet",
    .help =
        "the memory is a packet, and r1 points to the context of the program's type; XDP and tc programs always get a packet"};
inline constexpr Option kProgramOption{
    .name = "prog", .kind = OptionKind::text, .argument = "NAME", .help = "which program to run, if the object has several"};
inline constexpr Option kBtfOption{.name = "btf",
                                   .letter = 'b',
                                   .kind = OptionKind::file,
                                   .argument = "FILE",
                                   .help = "relocate (CO-RE) against these types instead of the running kernel's"};

struct ProgramInput {
    ObjectSpec spec; ///< relocated
    size_t program = 0;
    std::vector<std::byte> memory;
    bool packet = false;
    std::vector<LabelPlace> labels; ///< of source text

    /// The verifier's options for the program as it is run: with memory, or with its own context.
    [[nodiscard]] verifier::VerifyOptions verify_options() const;
};
/// Where a command's table has these rows.
struct ProgramInputIds {
    Id memory, memory_file, packet, program, btf;
};
template <size_t N> consteval ProgramInputIds program_input_ids(const Option (&table)[N]) {
    return {find(table, "mem"), find(table, "mem-file"), find(table, "packet"), find(table, "prog"), find(table, "btf")};
}
/// A file or "-" (standard input), relocated against the types in `btf` (empty: the running kernel's); `program`: its name, or
/// empty where there is only one. Without memory.
[[nodiscard]] Result<ProgramInput> open_program(std::string_view file, std::string_view program, std::string_view btf);
/// Operands: a file or "-" (standard input, also when there is no file), and memory in hex.
[[nodiscard]] Result<ProgramInput> program_input(const Arguments &a, const ProgramInputIds &ids);

} // namespace rawbpf::inline v0::cli
