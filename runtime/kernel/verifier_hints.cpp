// Hints for the verifier's messages: its words in kernel/bpf/verifier.c, 5.10 to 7.3, and the hint.
//
// The first entry whose words are part of the reason wins, so special entries come before general ones ("ringbuf_mem_or_null"
// before "_or_null"). Of 834 refusals among the kernel's own selftests of 6.12, on 6.18, nine in ten get a hint.
#include "runtime/kernel/verifier_log.h"

namespace rawbpf::inline v0 {
namespace {

struct ReasonHint {
    std::string_view part; ///< of the reason
    std::string_view kind; ///< Refusal::kind
    std::string_view hint;
};

constexpr ReasonHint kHints[] = {
    {"195896080", "core",
     "this call stands for a CO-RE relocation that found nothing in this kernel: guard the access with "
     "bpf_core_field_exists() or bpf_core_enum_value_exists()"},
    {"map_value_or_null", "null", "a map lookup may find nothing: compare its result with NULL before using it"},
    {"ringbuf_mem_or_null", "null", "the reservation may have failed: compare the pointer with NULL before using it"},
    {"alloc_mem_or_null", "null", "the reservation may have failed: compare the pointer with NULL before using it"},
    {"Possibly NULL pointer", "null", "compare the pointer with NULL before passing it on"},
    {"'mem_or_null'", "null",
     "a pointer that a global function is given may be NULL: compare it with NULL, or declare the parameter "
     "__arg_nonnull (6.8)"},
    {"_or_null", "null", "the pointer may be NULL: compare it with NULL before using it"},
    {"invalid mem access 'scalar'", "memory",
     "a number is used as a pointer: memory of the kernel or of a process is read with "
     "bpf_probe_read_kernel() or bpf_probe_read_user() (BPF_CORE_READ), not directly"},
    {"invalid mem access 'inv'", "memory",
     "a number is used as a pointer: memory of the kernel or of a process is read with "
     "bpf_probe_read_kernel() or bpf_probe_read_user() (BPF_CORE_READ), not directly"},
    {"R0 !read_ok", "uninitialized", "the program may end without a return value: set it (r0) on every path"},
    {"!read_ok", "uninitialized", "the register is read on a path that never set it; calls clear r1 to r5"},
    {"never been initialized", "uninitialized", "the register is read on a path that never set it; calls clear r1 to r5"},
    {"invalid indirect read from stack", "stack",
     "the program passes on bytes of the stack that it never wrote: clear the whole struct first, padding included (memset or = "
     "{})"},
    {"invalid read from stack", "stack",
     "the variable was never written (initialise it), or the place lies outside the 512 bytes of stack"},
    {"invalid indirect access to stack", "stack", "the helper would write or read outside the 512 bytes of stack"},
    {"invalid stack", "stack", "the access is outside the 512 bytes of stack"},
    {"invalid write to stack", "stack",
     "the program writes more than the variable on the stack has room for, or outside of the 512 bytes of stack"},
    {"size of register spill", "stack", "store a pointer on the stack as a whole, at a multiple of 8: *(u64 *)(r10 - 8) = r1"},
    {"size of register fill", "stack", "read a pointer from the stack as a whole: r1 = *(u64 *)(r10 - 8)"},
    {"corrupt spilled", "stack", "the store would overwrite only a part of a pointer that is kept there: use other bytes"},
    {"variable-offset", "stack",
     "bound the index into an array on the stack just before the use (`i &= SIZE - 1`), and write the whole array first"},
    {"combined stack size", "stack",
     "a program and all functions that it calls share 512 bytes of stack: put large buffers into a per-CPU array"},
    {"stack limit of 512", "stack", "programs have 512 bytes of stack: put large buffers into a per-CPU array"},
    {"infinite loop", "loop", "the verifier can't see where the loop ends: give it a constant bound, or use bpf_loop() (5.17)"},
    {"back-edge", "loop", "loops need Linux 5.3: unroll them (#pragma unroll) for older kernels, and in callbacks"},
    {"BPF program is too large", "complexity",
     "the verifier gave up after a million steps: shorten loops, use bpf_loop(), or split by tail calls"},
    {"too many instructions", "complexity", "the verifier gave up: shorten loops, use bpf_loop(), or split by tail calls"},
    {"The sequence of", "complexity", "too many branches are open at once: simplify the conditions, or use bpf_loop()"},
    {"unbounded memory access", "bounds",
     "the size or index can be anything as far as the verifier sees: bound it just before the use, by "
     "`if (n > MAX) return` or `n &= MAX - 1`"},
    {"unbounded m", "bounds",
     "the index or offset can be anything as far as the verifier sees, also negative: make it unsigned and bound it "
     "just before the use, by `if (i >= N) return` or `i &= N - 1`"},
    {"value is not allowed to be negative", "bounds", "make it unsigned, or check `if (n < 0)`"},
    {"min value is negative", "bounds",
     "the value may be negative, or so large that it counts as negative: an unsigned number needs an upper bound, `if (n > MAX) "
     "return 0;`, a signed one `if (n < 0 || n > MAX) return 0;`"},
    {"max value is outside of the", "bounds", "the offset may pass the end: check it against the size just before the use"},
    {"value is outside of the", "bounds",
     "the access may begin before the memory, or pass its end: check the offset just before the use"},
    {"invalid access to map value", "bounds",
     "the access passes the end of the map's value: check the offset against its size first"},
    {"invalid access to memory", "bounds", "the access passes the end of that memory: check offset and size first"},
    {"invalid access to packet", "packet", "compare the pointer with data_end before reading"},
    {"outside of the packet", "packet", "compare the pointer with data_end before reading"},
    {"invalid zero-sized read", "bounds", "the size may be 0: check it before the call"},
    {"access beyond struct", "memory",
     "the access is beyond the end of the pointer's type: use bpf_skc_to_tcp_sock() or the like, bpf_core_cast() (6.10) or "
     "BPF_CORE_READ() for what lies behind it"},
    {"only read is supported", "read-only", "programs may read what the kernel's typed pointers point to, but not write it"},
    {"sock access", "memory", "there is nothing at that offset that a program may read"},
    {"math between", "bounds", "the offset leads away from what the pointer points to"},
    {"pointer offset", "bounds", "the offset leads away from what the pointer points to"},
    {"be out of bounds", "bounds", "the offset leads away from what the pointer points to"},
    {"read from map forbidden", "read-only", "the map is write-only for programs"},
    {"beyond the end of member", "memory", "the access doesn't stay within one member of the kernel's struct"},
    {"invalid bpf_context access", "context",
     "the context of this program type has no such field at that offset, or it may not be written"},
    {"dereference of modified ctx", "context",
     "the context must be accessed at fixed offsets; `(void *)(long)ctx->field` isn't such an access"},
    {"ctx access", "context", "the context must be accessed at fixed offsets, as `ctx->field`"},
    {"offset ctx ptr", "context", "the context must be accessed at fixed offsets, as `ctx->field`"},
    {"unknown func", "helper", "this program may not call it in this kernel"},
    {"invalid func", "helper", "this kernel has no such helper"},
    {"cannot use helper", "helper", "this helper may not be called from this type of program"},
    {"program of this type", "helper", "this helper may not be called from this type of program"},
    {"progs cannot use bpf_", "helper",
     "programs of this type may not refer to a map whose values hold one: keep it in a map that only other "
     "types of programs use"},
    {"cannot pass map_type", "argument", "this helper doesn't work on maps of that type"},
    {"expected prog array map", "argument", "bpf_tail_call() takes a map of type BPF_MAP_TYPE_PROG_ARRAY"},
    {"known constant", "argument", "this argument must be a number that is the same on every path"},
    {"stores into R", "memory", "atomic operations are for values of maps, the stack and the like"},
    {"might sleep", "sleep",
     "this may sleep, so only sleepable programs may call it: those of sections like fentry.s, lsm.s, uprobe.s, syscall"},
    {"while holding a lock", "lock",
     "between bpf_spin_lock() and bpf_spin_unlock(), a program may access memory, but not call functions: call them before or "
     "after"},
    {"must be held for", "lock", "the list or tree belongs to the lock beside it in the same value: acquire that lock first"},
    {"bpf_spin_unlock", "lock", "every path must release the same lock that it acquired"},
    {"direct access to", "lock", "locks, timers, list heads and the like are the kernel's: only its functions may touch them"},
    {"accessed directly", "lock", "locks, timers, list heads and the like are the kernel's: only its functions may touch them"},
    {"-ed region", "lock", "leave the region (unlock) before that, on every path"},
    {"dynptr", "dynptr",
     "a dynptr is made by bpf_dynptr_from_mem(), bpf_ringbuf_reserve_dynptr() or the like, used as a whole, and never "
     "written to directly"},
    {"GPL", "license", "the helper is only for programs that declare a GPL-compatible license: \"GPL\" or \"Dual MIT/GPL\""},
    {"Unreleased reference", "leak",
     "release on every path what the program acquired: by bpf_ringbuf_submit() or _discard(), bpf_sk_release(), "
     "bpf_spin_unlock()"},
    {"must be referenced", "argument",
     "the pointer might not live long enough: take it from the program's own arguments or by a function that "
     "acquires it, like bpf_task_acquire()"},
    {"must be a rcu pointer", "argument",
     "the object may be freed meanwhile: use the pointer between bpf_rcu_read_lock() and bpf_rcu_read_unlock()"},
    {"expected=", "argument", "an argument has the wrong kind of value for this helper"},
    {"leaks addr", "leak-address", "this would leak a kernel address: store the value that was read, not the pointer"},
    {"uses reserved fields", "encoding",
     "a field that this instruction doesn't use isn't 0, often a number that begins at the wrong byte: rawbpf decode shows the "
     "fields"},
    {"pointer arithmetic", "arithmetic", "arithmetic with this kind of pointer isn't allowed"},
    {"subtract pointer from scalar", "arithmetic", "arithmetic with this kind of pointer isn't allowed"},
    {"prohibited", "arithmetic", "arithmetic with this kind of pointer isn't allowed"},
    {"same insn cannot be used", "memory",
     "the compiler merged two accesses through different kinds of pointers into one instruction: keep them apart, by "
     "barrier_var() or a branch"},
    {"frames is too deep", "stack", "calls may be nested eight deep"},
    {"div by zero", "arithmetic", "a number is divided by the constant 0"},
    {"kernel symbol", "kfunc",
     "the kernel's list of symbols has no such variable: without CONFIG_KALLSYMS_ALL, it has functions only"},
    {"misaligned", "alignment", "the access isn't aligned to its size"},
    {"unreachable insn", "control-flow", "code that can never run isn't allowed: a jump or an exit is wrong"},
    {"jump out of range", "control-flow", "a jump leaves the program or lands inside a wide instruction"},
    {"last insn is not an exit", "control-flow", "the program must end with exit or a jump"},
    {"At program exit the register R0", "return", "this type of program may only return certain values"},
    {"At callback return", "return", "a callback may only return 0 or 1"},
    {"write into map forbidden", "read-only", "the map is read-only for programs"},
    {"cannot write into", "read-only", "this memory is read-only for programs"},
    {"kernel function", "kfunc", "this kernel function may not be called here"},
    {"reference type('UNKNOWN", "argument",
     "a global function is verified by the types of its parameters alone: make it static, or say what the "
     "pointer is: a struct, or the context (__arg_ctx)"},
    {"is not supported yet", "argument", "a global function is verified by the types of its parameters alone: make it static"},
    {"invalid args into func", "argument", "a global function is verified by the types of its parameters alone: make it static"},
    {"func_info", "btf", "the BTF doesn't fit the instructions: function starts in .BTF.ext and code disagree"},
    {"line_info", "btf", "the BTF doesn't fit the instructions: line positions in .BTF.ext and code disagree"},
};

} // namespace

std::string_view verifier_hint(std::string_view reason) {
    for (const ReasonHint &entry : kHints)
        if (reason.find(entry.part) != std::string_view::npos) return entry.hint;
    return {};
}

std::string_view verifier_kind(std::string_view reason) {
    for (const ReasonHint &entry : kHints)
        if (reason.find(entry.part) != std::string_view::npos) return entry.kind;
    return "other";
}

} // namespace rawbpf::inline v0
