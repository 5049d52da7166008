// SPDX-License-Identifier: MIT
// Types as C, for messages ("struct mm_struct *mm") and for people who want to see a definition.
#pragma once

#include <string>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

/// What print_c() and declare() add to the plain C.
struct PrintOptions {
    bool offsets = false; ///< where each member lies, as a comment: bytes, and bits where it isn't at a byte
    bool tags = false;    ///< type tags, as clang's __attribute__((btf_type_tag("...")))
};

/// The declaration of a `name` with that type: "struct task_struct *parent", "int (*handler)(struct pt_regs *)". Without a name
/// the type alone: "const char *". Anonymous structs appear as "struct {...}". Errors: broken BTF.
[[nodiscard]] Result<std::string> declare(const Btf &btf, TypeId id, std::string_view name = {}, PrintOptions options = {});

/// The same for messages: never fails; what can't be printed is called "type 17".
[[nodiscard]] std::string describe(const Btf &btf, TypeId id);

/// The type's definition, with a final newline: members of structs and unions (anonymous ones unfolded, packed ones marked),
/// values of enums, what a typedef names, the prototype of a function, the variables of a section. What C has no definition for
/// (an int, a pointer) is described in a comment. Errors: broken BTF, text beyond 4 MB.
[[nodiscard]] Result<std::string> print_c(const Btf &btf, TypeId id, PrintOptions options = {});

} // namespace rawbpf::inline v0::btf
