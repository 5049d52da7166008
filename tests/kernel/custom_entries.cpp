// -DENTRY=NAME: one function, which does nothing; in a namespace, so that its name is a mangled one.
#include "tests/kernel/custom_entries.h"

namespace rawbpf_entry_cpp {
__attribute__((noinline, used)) void ENTRY(uint64_t id) { RAWBPF_ENTRY_BODY; }
} // namespace rawbpf_entry_cpp
