/* -DENTRY=NAME: one function, which does nothing. -DCALLERS: those that call it. */
#include "tests/kernel/custom_entries.h"

#ifdef ENTRY
__attribute__((noinline, used)) void ENTRY(uint64_t id) { RAWBPF_ENTRY_BODY; }
#endif
#ifdef CALLERS
__attribute__((noinline, used)) void rawbpf_entry_middle(void (*entry)(uint64_t), uint64_t id) {
    entry(id);
    __asm__ volatile("" : : : "memory");
}
__attribute__((noinline, used)) void rawbpf_entry_outer(void (*entry)(uint64_t), uint64_t id) {
    rawbpf_entry_middle(entry, id);
    __asm__ volatile("" : : : "memory");
}
#endif
