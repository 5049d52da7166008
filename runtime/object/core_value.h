// CO-RE, second half: what a place comes to in numbers, and putting the number into the instruction. Private to the room.
#pragma once

#include <optional>
#include <string>

#include "asm/insn.h"
#include "runtime/object/core_path.h"

namespace rawbpf::inline v0::object {

/// What an instruction should hold, before (from the local types) or after (from the target's).
struct CoreValue {
    uint64_t number = 0;
    uint32_t size = 0;     ///< byte_off only: bytes of the field, an array's element; 0: don't adjust the access
    btf::TypeId type = 0;  ///< byte_off only: the field's type
    bool may_check = true; ///< whether the instruction must hold the local number; bitfields leave the compiler a choice
    bool narrow = false;   ///< a 32-bit enum's value: sign- and zero-extension both occur
};

/// The number for a place; `path` null: it wasn't found. nullopt: without a place there is no number, so poison.
/// Errors: a bitfield that no load can read, a kind that doesn't go with an array element.
[[nodiscard]] Result<std::optional<CoreValue>> core_value(CoreKind kind, const CorePath *path);

/// Both numbers of a relocation.
struct CoreResult {
    CoreValue before, after;
    bool poison = false;
    bool size_conflict = false; ///< the field's size changed, and a load or store can't follow (signed, or no integer)
};
[[nodiscard]] Result<CoreResult> core_result(const CorePath &local, const CorePath *target);

/// Rewrites the instruction (two of them for ld_imm64; `left` says how many there are). Empty: done; else the reason for which it
/// has to be poisoned. Errors (bad_input): it doesn't hold what the local types say, or it can't hold a number at all.
[[nodiscard]] Result<std::string> core_patch(Insn *insn, size_t left, const CoreResult &result);

/// Puts a number where the instruction keeps one: offset of a load or store, immediate of arithmetic, 64 bits of ld_imm64.
/// Returns false when it doesn't fit or the instruction has no such place.
[[nodiscard]] bool put_number(Insn *insn, size_t left, uint64_t number);

/// Makes it a call that no verifier lets pass, both halves of ld_imm64.
void core_poison(Insn *insn, size_t left);

} // namespace rawbpf::inline v0::object
