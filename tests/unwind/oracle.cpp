// elfutils does to a copy of a stack what the walker in the kernel does to the stack itself, by code that shares nothing with
// ours: it interprets .eh_frame and .debug_frame in full, with all registers and all expressions. perf report uses the same
// library.
//
// libdwfl asks three questions: which threads are there, what is in a thread's registers, and what is at an address. Each time
// one dump is the answer. Its stack is what the kernel copied; beyond the copy nothing can be read, and the walk doesn't count.
#include "tests/unwind/oracle.h"

#include <cstring>

#include <elfutils/libdwfl.h>

#if defined(__x86_64__)
#include <asm/perf_regs.h>
#elif defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

namespace rawbpf::unwind_test {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kMask = (0xffull << PERF_REG_X86_R8) | ((1ull << (PERF_REG_X86_IP + 1)) - 1);
constexpr size_t kCount = 17; // ax bx cx dx si di bp sp ip r8..r15
constexpr size_t kPc = 8, kSp = 7;
// DWARF's order: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, each by its place among ours.
constexpr size_t kDwarf[] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16};
#elif defined(__aarch64__)
constexpr uint64_t kMask = (1ull << PERF_REG_ARM64_MAX) - 1;
constexpr size_t kCount = PERF_REG_ARM64_MAX; // x0..x29 lr sp pc
constexpr size_t kPc = PERF_REG_ARM64_PC, kSp = PERF_REG_ARM64_SP;
constexpr size_t kDwarf[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
#endif
constexpr size_t kMostFrames = 1024;

char *no_paths = nullptr;
const Dwfl_Callbacks kFiles = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = nullptr,
    .debuginfo_path = &no_paths,
};

} // namespace

uint64_t register_mask() { return kMask; }
size_t register_count() { return kCount; }
uint64_t pc_of(const Dump &dump) { return dump.registers[kPc]; }
uint64_t sp_of(const Dump &dump) { return dump.registers[kSp]; }

struct Oracle::State {
    Dwfl *dwfl = nullptr;
    pid_t pid = 0;
    const Dump *dump = nullptr;
    Walk walk;

    static State *of(void *argument) { return static_cast<State *>(argument); }
    static pid_t next_thread(Dwfl *, void *argument, void **thread) {
        if (*thread) return 0;
        *thread = argument;
        return of(argument)->pid;
    }
    static bool get_thread(Dwfl *, pid_t, void *argument, void **thread) {
        *thread = argument;
        return true;
    }
    static bool read(Dwfl *, Dwarf_Addr address, Dwarf_Word *into, void *argument) {
        State &s = *of(argument);
        const uint64_t sp = sp_of(*s.dump);
        if (address < sp) return false;
        const uint64_t at = address - sp, size = s.dump->stack.size();
        if (size < sizeof *into || at > size - sizeof *into) {
            s.walk.dump_too_short = true;
            return false;
        }
        memcpy(into, s.dump->stack.data() + at, sizeof *into);
        return true;
    }
    static bool registers(Dwfl_Thread *thread, void *argument) {
        const Dump &dump = *of(argument)->dump;
        Dwarf_Word values[sizeof kDwarf / sizeof *kDwarf];
        size_t n = 0;
        for (size_t ours : kDwarf) values[n++] = dump.registers[ours];
        dwfl_thread_state_register_pc(thread, pc_of(dump));
        return dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(n), values);
    }
    static int frame(Dwfl_Frame *frame, void *argument) {
        Walk &walk = of(argument)->walk;
        Dwarf_Addr pc = 0;
        if (!dwfl_frame_pc(frame, &pc, nullptr) || walk.pcs.size() >= kMostFrames) return DWARF_CB_ABORT;
        walk.pcs.push_back(pc);
        return DWARF_CB_OK;
    }
};

Oracle::Oracle(std::unique_ptr<State> state) : state_(std::move(state)) {}
Oracle::~Oracle() {
    if (state_) dwfl_end(state_->dwfl);
}

std::unique_ptr<Oracle> Oracle::of(uint32_t pid) {
    static const Dwfl_Thread_Callbacks callbacks = {
        .next_thread = State::next_thread,
        .get_thread = State::get_thread,
        .memory_read = State::read,
        .set_initial_registers = State::registers,
        .detach = nullptr,
        .thread_detach = nullptr,
    };
    auto state = std::make_unique<State>();
    state->pid = static_cast<pid_t>(pid);
    state->dwfl = dwfl_begin(&kFiles);
    if (!state->dwfl) return nullptr;
    std::unique_ptr<Oracle> out(new Oracle(std::move(state)));
    State &s = *out->state_;
    if (dwfl_linux_proc_report(s.dwfl, s.pid) != 0 || dwfl_report_end(s.dwfl, nullptr, nullptr) != 0) return nullptr;
    // The module's ELF tells the machine; where the first ones have no file (the vdso), a later one does.
    if (!dwfl_attach_state(s.dwfl, nullptr, s.pid, &callbacks, &s)) return nullptr;
    return out;
}

Walk Oracle::walk(const Dump &dump) {
    State &s = *state_;
    s.dump = &dump;
    s.walk = {};
    (void)dwfl_getthread_frames(s.dwfl, s.pid, State::frame, &s);
    return std::move(s.walk);
}

} // namespace rawbpf::unwind_test
