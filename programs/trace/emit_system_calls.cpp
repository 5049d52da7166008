// System calls by number. All of them pass two tracepoints, sys_enter and sys_exit, and one program at each serves any number of
// calls; a tracepoint for each call (syscalls:sys_enter_openat ...) costs the kernel up to 40 ms to attach, and as much to take
// down. So who asks for those tracepoints gets the same programs: the fields of their records are arguments and result.
//
//      sys_enter(struct pt_regs *, long number)      trace_system_calls[number] = {place, program} at the call, and at the return
//      sys_exit(struct pt_regs *, long result)       the number is in the registers still
//
//      |  number --> place, program --> counters, filters, record                    where all calls' records look alike
//      |  number --> program --bpf_tail_call--> number --> place --> counters ...    else: a program for each form of record
//
// 32-bit programs on a 64-bit kernel have numbers of their own. The kernel's tracepoints of single calls leave them out, and so
// do these: by TS_COMPAT on x86_64 (arch/x86/include/asm/thread_info.h), by the mode in PSTATE on arm64. x32's numbers are beyond
// the map's end.
#include "programs/trace/emit.h"

namespace rawbpf::inline v0::trace {
namespace {

// struct pt_regs: arch/x86/include/asm/ptrace.h, arch/arm64/include/asm/ptrace.h.
constexpr bool kArm64 = kHostArch == Arch::arm64;
constexpr int64_t kNumber = kHost.syscall_number;
constexpr int64_t kMode = kArm64 ? 264 : 136; // pstate, cs
constexpr int64_t kMode32 = 0x10;             // PSR_MODE32_BIT
constexpr int64_t kUserCs = 0x33;             // __USER_CS
constexpr int64_t kCompat = 2;                // TS_COMPAT

} // namespace

void find_system_call(Shared &shared, Code &f, bool at_exit, Slot key, Label other) {
    if (!at_exit) {
        f.load<uint64_t>(r1, r6 + 8);
        f.store<uint32_t>(key, r1);
    } else {
        f.load<uint64_t>(r1, r6 + 0);
        f.read_kernel<uint32_t>(r1, r1 + runtime(kNumber));
        f.store<uint32_t>(key, r1);
    }
    f.call(helper::map_lookup_elem, *shared.system_calls, key);
    f.jump_if(r0 == 0, other);
    if (at_exit) f.add(r0, offsetof(SystemCall, exit));
    f.load<uint32_t>(r1, r0 + offsetof(SystemCall::End, place_and_one));
    f.jump_if(r1 == 0, other);
}

void pass_compat_over(Shared &shared, Code &f, Label other) {
    if (kHostArch == Arch::riscv64) return; // its 32-bit programs have the same numbers
    if (kHost.word == 4) return;            // there are no others
    if (shared.task_status) {               // also int $0x80 of a 64-bit program
        f.call(helper::get_current_task);
        f.read_kernel<uint32_t>(r0, r0 + runtime(*shared.task_status));
        f.and_(r0, kCompat);
        f.jump_if(r0 != 0, other);
        return;
    }
    f.load<uint64_t>(r1, r6 + 0);
    f.read_kernel<uint64_t>(r0, r1 + runtime(kMode));
    if (kArm64) {
        f.and_(r0, kMode32);
        f.jump_if(r0 != 0, other);
    } else {
        f.jump_if(r0 != kUserCs, other);
    }
}

} // namespace rawbpf::inline v0::trace
