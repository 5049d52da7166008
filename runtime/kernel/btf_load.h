// BPF_BTF_LOAD of an object's BTF: first unchanged, otherwise with types that this kernel doesn't know replaced. Part of the
// loader.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/kernel/btf_sanitize.h"

namespace rawbpf::inline v0 {

/// An invalid Fd when the kernel takes it in no form; then, and when something was replaced, a sentence is added to `notes`.
[[nodiscard]] Fd load_btf(Bytes btf, std::vector<std::string> &notes);

/// What this kernel's BTF_LOAD takes; tried once, one tiny BTF a kind.
[[nodiscard]] const BtfSupport &btf_support();

} // namespace rawbpf::inline v0
