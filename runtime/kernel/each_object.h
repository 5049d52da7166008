// Everything of one kind that is in the kernel: programs, maps, BTF, links; whoever made it.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0 {

/// The ids of all objects of one kind, rising (4.13; BTF 5.4, links 5.8), until `see` returns false or an error. Errors: what
/// `see` returned; the kernel's; permission without CAP_SYS_ADMIN; unsupported where this kernel doesn't list that kind.
[[nodiscard]] Result<void> each_id(sys::ObjectKind kind, const std::function<Result<bool>(uint32_t id)> &see);

/// Shows each object once, in the order of the ids (4.13; BTF 5.4, links 5.8), until `see` returns false or an error. One that
/// goes meanwhile is passed over. Errors: what `see` returned; the kernel's; permission without CAP_SYS_ADMIN; unsupported where
/// this kernel doesn't list that kind.
[[nodiscard]] Result<void> each_object(sys::ObjectKind kind, const std::function<Result<bool>(uint32_t id, Fd object)> &see);

} // namespace rawbpf::inline v0
