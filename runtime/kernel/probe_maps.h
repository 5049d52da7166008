// Maps that the probes make. Private to this folder.
#pragma once

#include "asm/kinds.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0 {

[[nodiscard]] sys::MapCreateAttr tiny_map(MapType type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags = 0);
/// BTF whose only type (id 1) is an int of 32 bits.
[[nodiscard]] Result<Fd> load_int_btf();
/// 0 when the kernel knows struct_ops maps with these flags, else errno. Makes none.
[[nodiscard]] int try_struct_ops(uint32_t flags);
void forget_map_types();

} // namespace rawbpf::inline v0
