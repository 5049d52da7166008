// Every BPF program that is loaded, whoever loaded it.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0 {

/// Shows each program once, in the order of the ids (4.13), until `see` returns false. One that goes meanwhile is passed over.
/// Errors: the kernel's; permission without CAP_SYS_ADMIN.
[[nodiscard]] Result<void> each_program(const std::function<bool(uint32_t id, Fd program, const sys::ProgInfo &info)> &see);

} // namespace rawbpf::inline v0
