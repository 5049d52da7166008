// SPDX-License-Identifier: MIT
// Whether two types, each in its own BTF, agree: what CO-RE asks before it moves an access from the types that a program was
// compiled with to those of the running kernel. Three questions, three strictnesses, and a fourth that a linker asks:
//
//      fields_compatible   may a field of this type be read as one of that type?          (field relocations)
//      types_compatible    is there a type like this?  shapes agree, names inside don't count   (bpf_core_type_exists, _size)
//      types_match         is it this very type?       names, members, sizes agree              (bpf_core_type_matches)
//      declarations_match  may two files declare one name so?  sizes and places agree         (static linking)
#pragma once

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

/// Field accesses: any two structs or unions agree, any two ints (but for old-style bitfields), pointers, floats; enums and
/// forward declarations when their essential names do or one has none; arrays when their elements do.
[[nodiscard]] Result<bool> fields_compatible(const Btf &local, TypeId l, const Btf &target, TypeId t);

/// Types as a whole: kinds agree (an enum is as good as an enum64), behind pointers, arrays and typedefs too; function prototypes
/// when all parameters and the result do. Names are the caller's concern. Errors: broken BTF, nesting deeper than 32.
[[nodiscard]] Result<bool> types_compatible(const Btf &local, TypeId l, const Btf &target, TypeId t);

/// The strictest: essential names agree; ints in size and sign; every local member exists in the target and matches; every local
/// enumerator exists there (values don't count). Behind a pointer a struct need only agree in name, and may be a forward
/// declaration.
[[nodiscard]] Result<bool> types_match(const Btf &local, TypeId l, const Btf &target, TypeId t);

/// Whether one function or variable may be declared with the one type in one file and with the other in another: what libbpf's
/// linker lets pass. Sizes of numbers and places of members must agree; signs, enumerators, parameters' names and the length of
/// arrays (`extern int list[]`) don't count. A forward declaration stands for the struct or union of its name, and behind a
/// pointer names are enough.
[[nodiscard]] Result<bool> declarations_match(const Btf &one, TypeId a, const Btf &other, TypeId b);

} // namespace rawbpf::inline v0::btf
