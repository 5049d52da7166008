// Shared by the functions that give advice: one refusal with all that is known about it, and reading its numbers. Private to
// the loader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernel/refusal_advice.h"
#include "runtime/kernel/verifier_path.h"

namespace rawbpf::inline v0::refusal {

struct Case {
    const ProgramSpec &program;
    const ProgramPlaces &places;
    const RefusalContext &context;
    Refusal &refusal;
    std::vector<PathStep> path;
    std::string_view all_registers; ///< "R1=ctx() R10=fp0"

    [[nodiscard]] const Insn *insn() const; ///< the refused one; nullptr: none
    [[nodiscard]] const Insn *insn_at(int64_t at) const;
    /// "bpf_map_lookup_elem": the helper or kernel function that the instruction calls; empty where it calls none.
    [[nodiscard]] std::string called(uint32_t at) const;
    void note(std::string text);
    void note_at(uint32_t insn, std::string text);
    /// Where a register's value comes from at the refused instruction.
    [[nodiscard]] Origin origin(int reg) const;
    [[nodiscard]] bool ends_here() const; ///< the path ends at the refused instruction
};

/// "R2=scalar(id=1)" -> "scalar(id=1)"; empty: unknown.
[[nodiscard]] std::string_view value_in(std::string_view registers, int reg);
[[nodiscard]] std::string register_value(const Case &c, int reg);
/// The number behind a word that isn't the end of another: ("value_size=64 off=-4", "off=") -> -4. Hexadecimal after 0x.
[[nodiscard]] std::optional<int64_t> number_after(std::string_view text, std::string_view word);
/// Takes a register out of those that are shown: what the log has of it is out of date.
void forget_register(Case &c, int reg);
/// What of the packet a register holds before path[end], as the instructions tell: loaded from the context, a constant added.
enum class PacketPlace : uint8_t { none, data, end, meta };
[[nodiscard]] PacketPlace packet_register(const Case &c, size_t end, int reg);
/// The first call after a step that makes pointers into the packet invalid: its step, and "bpf_xdp_adjust_head()".
[[nodiscard]] std::optional<std::pair<size_t, std::string>> packet_change(const Case &c, size_t after);
/// Whether a source file is assembly, by its name ("lab.asm", "standard input"). Advice on a refused instruction is in its
/// language.
[[nodiscard]] bool is_assembly(std::string_view file);
[[nodiscard]] inline bool is_assembly(const Case &c) { return is_assembly(c.refusal.at.file); }
/// "1 byte", "2 bytes"
[[nodiscard]] std::string bytes(int64_t n);
[[nodiscard]] int64_t size_of(const Insn &insn);
[[nodiscard]] bool loads(const Insn &insn);
[[nodiscard]] bool stores(const Insn &insn);
/// The register that an access goes through; -1: it is none.
[[nodiscard]] int base_of(const Insn &insn);
/// How far the accesses through the same pointer go from here to the next branch or call: a compiler reads a member of two
/// bytes byte by byte.
[[nodiscard]] int64_t reach(const Case &c, int64_t offset, int64_t size);
/// A bound that the log has for a value: ("scalar(smin=umin=4,smax=9)", "smin") -> 4; none: unknown.
[[nodiscard]] std::optional<int64_t> bound(std::string_view value, std::string_view name);
/// A note at the last branch that the path took after a step, where that isn't on the refused line.
void note_last_branch(Case &c, size_t after);
/// The first "R7" in the text; -1: none.
[[nodiscard]] int register_named(std::string_view reason);

struct Adviser {
    std::string_view words;  ///< of the reason
    bool (*advise)(Case &c); ///< false: it isn't as expected; the next one may know
};
/// In the order in which they are tried.
[[nodiscard]] std::span<const Adviser> advisers();

// refusal_lost.cpp: pointers that were good once; refusal_packet.cpp, refusal_memory.cpp: accesses; refusal_bounds.cpp: sizes;
// refusal_maps.cpp, refusal_calls.cpp: calls and
// what they give; refusal_flow.cpp: loops, ends, unset registers.
bool lost(Case &c);
bool may_be_null(Case &c);
bool number_as_pointer(Case &c);
bool packet(Case &c);
bool map_value(Case &c);
bool maybe_negative(Case &c);
bool must_be_constant(Case &c);
bool map_type(Case &c);
bool tail_call_map(Case &c);
bool other_map(Case &c);
bool atomic_place(Case &c);
bool held(Case &c);
bool stack_fixed(Case &c);
bool stack_variable(Case &c);
bool misaligned(Case &c);
bool argument_kind(Case &c);
bool argument_of_call(Case &c);
bool leak(Case &c);
bool may_sleep(Case &c);
bool license(Case &c);
bool helper_refused(Case &c);
bool never_set(Case &c);
bool endless(Case &c);
bool unreachable(Case &c);
bool no_end(Case &c);
bool returned(Case &c);
bool stack_sum(Case &c);
bool pointer_arithmetic(Case &c);
bool context_access(Case &c);

} // namespace rawbpf::inline v0::refusal
