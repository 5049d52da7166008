// The builder's patterns and loops: what they write, and what they refuse.
#include <cstddef>
#include <sys/utsname.h>
#if defined(__riscv)
#include <asm/ptrace.h>
#else
#include <sys/user.h>
#endif

#include <string>
#include <string_view>

#include "tests/unit/asm/built.h"

using namespace rawbpf;
using test::built;

namespace {

/// The instructions of a one-program unit of that section, for that machine; or the complaints.
template <class Body> std::string traced(std::string_view section, Arch arch, Body &&body) {
    Builder b("test");
    b.target(arch);
    Code &f = b.program(std::string(section), "p");
    f.mov(r6, r1);
    body(f);
    f.ret(0);
    Built result = b.finish();
    if (!result) {
        std::string out;
        for (const Diagnostic &problem : result.problems) out += problem.message + "\n";
        return out;
    }
    const std::string text = print(result->functions[0]);
    const size_t from = text.find("    r6 = r1\n") + 12;
    return text.substr(from, text.find("    r0 = 0\n    exit\n") - from);
}
std::string argument(std::string_view section, Arch arch, int number) {
    return traced(section, arch, [&](Code &f) { f.argument(r2, r6, number); });
}

} // namespace

TEST_CASE("patterns: argument N, on either machine") {
    // struct pt_regs of x86_64: di, si, dx, cx, r8, r9; struct user_pt_regs of arm64: regs[0] and following.
    const int x86[] = {112, 104, 96, 88, 72, 64};
    for (int n = 1; n <= 6; ++n) {
        const std::string expected = "    r2 = *(u64 *)(r6 + " + std::to_string(x86[n - 1]) + ")\n";
        CHECK(argument("kprobe/vfs_read", Arch::x86_64, n) == expected);
        CHECK(argument("uprobe.s//bin/true:main", Arch::x86_64, n) == expected);
        CHECK(argument("kprobe.multi/vfs_*", Arch::x86_64, n) == expected);
    }
    for (int n = 1; n <= 8; ++n)
        CHECK(argument("kprobe/vfs_read", Arch::arm64, n) == "    r2 = *(u64 *)(r6 + " + std::to_string(8 * (n - 1)) + ")\n");
    for (int n = 1; n <= 8; ++n) // a0 to a7 of struct user_regs_struct, behind pc and x1 to x9
        CHECK(argument("kprobe/vfs_read", Arch::riscv64, n) ==
              "    r2 = *(u64 *)(r6 + " + std::to_string(80 + 8 * (n - 1)) + ")\n");
    for (int n = 1; n <= 4; ++n)
        CHECK(argument("kprobe/vfs_read", Arch::arm, n) == "    r2 = *(u32 *)(r6 + " + std::to_string(4 * (n - 1)) + ")\n");
    CHECK(argument("kprobe/x", Arch::arm, 5) == "p: argument 5 is on the stack: arm has the first 4 in registers\n");
    for (std::string_view section : {"fentry/vfs_read", "fexit.s/vfs_read", "lsm/file_open", "raw_tp/sched_switch", "tp_btf/x"}) {
        CHECK(argument(section, Arch::x86_64, 3) == "    r2 = *(u64 *)(r6 + 16)\n");
        CHECK(argument(section, Arch::other, 1) == "    r2 = *(u64 *)(r6 + 0)\n");
    }
    const auto stack = [](std::string_view section, Arch arch) {
        return traced(section, arch, [&](Code &f) { f.stack_pointer(r2, r6); });
    };
    CHECK(stack("uprobe/x", Arch::x86_64) == "    r2 = *(u64 *)(r6 + 152)\n");
    CHECK(stack("kretprobe/x", Arch::arm64) == "    r2 = *(u64 *)(r6 + 248)\n");
    CHECK(stack("kprobe/x", Arch::riscv64) == "    r2 = *(u64 *)(r6 + 16)\n");
    CHECK(stack("kprobe/x", Arch::arm) == "    r2 = *(u32 *)(r6 + 52)\n");
    CHECK(stack("kprobe/x", Arch::other) ==
          "p: rawbpf knows only of x86_64, arm64, riscv64 and 32-bit ARM where the stack pointer is; see Builder::target\n");
    CHECK(stack("fentry/x", Arch::x86_64) == "p: section \"fentry/x\" doesn't see the registers; kprobes and uprobes do\n");
    CHECK(argument("kprobe/x", Arch::x86_64, 7) == "p: argument 7 is on the stack: x86_64 has the first 6 in registers\n");
    CHECK(argument("kprobe/x", Arch::arm64, 9) == "p: argument 9 is on the stack: arm64 has the first 8 in registers\n");
    CHECK(argument("kprobe/x", Arch::x86_64, 0) == "p: argument 0: the first one is 1\n");
    CHECK(argument("fentry/x", Arch::x86_64, 13) == "p: argument 13: a traced function has twelve at most\n");
    CHECK(argument("kprobe/x", Arch::other, 1) ==
          "p: rawbpf knows only of x86_64, arm64, riscv64 and 32-bit ARM where arguments are; see Builder::target\n");
    CHECK(argument("kretprobe/x", Arch::x86_64, 1) ==
          "p: when a function returns, its arguments are gone; keep them in a map at its entry\n");
    CHECK(argument("ksyscall/openat", Arch::x86_64, 1).find("syscall_argument") != std::string::npos);
    CHECK(argument("tp/sched/sched_switch", Arch::x86_64, 1).starts_with("p: a tracepoint has fields of its own"));
    CHECK(argument("xdp", Arch::x86_64, 1) == "p: section \"xdp\" traces no function with arguments\n");
}

TEST_CASE("patterns: the registers are where this machine's own headers have them") {
#if defined(__x86_64__)
    using Regs = struct user_regs_struct; // in the order of struct pt_regs
    CHECK(kHost.function[0] == offsetof(Regs, rdi));
    CHECK(kHost.function[5] == offsetof(Regs, r9));
    CHECK(kHost.syscall[3] == offsetof(Regs, r10));
    CHECK(kHost.result == offsetof(Regs, rax));
    CHECK(kHost.stack_pointer == offsetof(Regs, rsp));
    CHECK(kHost.program_counter == offsetof(Regs, rip));
    CHECK(kHost.syscall_number == offsetof(Regs, orig_rax));
#elif defined(__aarch64__)
    using Regs = struct user_regs_struct;
    CHECK(kHost.function[7] == offsetof(Regs, regs[7]));
    CHECK(kHost.stack_pointer == offsetof(Regs, sp));
    CHECK(kHost.program_counter == offsetof(Regs, pc));
    CHECK(kHost.return_address == offsetof(Regs, regs[30]));
#elif defined(__riscv)
    using Regs = struct user_regs_struct;
    CHECK(kHost.function[0] == offsetof(Regs, a0));
    CHECK(kHost.function[7] == offsetof(Regs, a7));
    CHECK(kHost.syscall[1] == offsetof(Regs, a1));
    CHECK(kHost.stack_pointer == offsetof(Regs, sp));
    CHECK(kHost.program_counter == offsetof(Regs, pc));
    CHECK(kHost.return_address == offsetof(Regs, ra));
    CHECK(kHost.syscall_number == offsetof(Regs, a7));
#endif
    utsname name;
    REQUIRE(uname(&name) == 0);
    CHECK(kHost.uname == name.machine);
}

TEST_CASE("patterns: what a function returned") {
    const auto returned = [](std::string_view section, Arch arch) {
        return traced(section, arch, [](Code &f) { f.return_value(r2, r6); });
    };
    CHECK(returned("kretprobe/vfs_read", Arch::x86_64) == "    r2 = *(u64 *)(r6 + 80)\n");
    CHECK(returned("uretprobe//bin/true:main", Arch::arm64) == "    r2 = *(u64 *)(r6 + 0)\n");
    CHECK(returned("fexit/vfs_read", Arch::x86_64).find("call bpf_get_func_ret\n    r2 = *(u64 *)(r10 - 8)\n") !=
          std::string::npos);
    CHECK(returned("kprobe/x", Arch::x86_64) ==
          "p: section \"kprobe/x\" doesn't see what a function returns; kretprobe, uretprobe and fexit do\n");
}

TEST_CASE("patterns: arguments of system calls") {
    const auto syscall = [](std::string_view section, Arch arch, int number) {
        return traced(section, arch, [&](Code &f) { f.syscall_argument(r2, r6, number); });
    };
    // The fourth is in r10 (offset 56), not in rcx, which the syscall instruction overwrites.
    CHECK(syscall("kprobe/__x64_sys_openat", Arch::x86_64, 4) == R"(    r3 = *(u64 *)(r6 + 112)
    r1 = r10                                    # &read
    r1 += -8
    r2 = 8
    r3 += 56
    call bpf_probe_read_kernel
    r2 = *(u64 *)(r10 - 8)
)");
    CHECK(syscall("ksyscall/openat", Arch::arm64, 2).starts_with("    r3 = *(u64 *)(r6 + 0)\n"));
    CHECK(syscall("ksyscall/openat", Arch::arm64, 2).find("    r3 += 8\n") != std::string::npos);
    CHECK(syscall("ksyscall/openat", Arch::riscv64, 1).find("    r3 += 280\n") != std::string::npos); // orig_a0
    CHECK(syscall("ksyscall/openat", Arch::arm, 2) == "    r2 = *(u32 *)(r6 + 4)\n");                 // without a wrapper
    CHECK(syscall("ksyscall/openat", Arch::arm, 5).find("is on the stack") != std::string::npos);
    CHECK(syscall("raw_tp/sys_enter", Arch::arm, 1).find("    r3 += 68\n") != std::string::npos); // ORIG_r0
    CHECK(syscall("raw_tp/sys_enter", Arch::x86_64, 1).starts_with("    r3 = *(u64 *)(r6 + 0)\n"));
    CHECK(syscall("tp/syscalls/sys_enter_openat", Arch::x86_64, 2) == "    r2 = *(u64 *)(r6 + 24)\n");
    CHECK(syscall("tp/sched/sched_switch", Arch::x86_64, 2).find("isn't syscalls/sys_enter_*") != std::string::npos);
    CHECK(syscall("ksyscall/openat", Arch::x86_64, 7) == "p: system calls have arguments 1 to 6, not 7\n");
    CHECK(syscall("xdp", Arch::x86_64, 1) == "p: section \"xdp\" traces no system call\n");
}

TEST_CASE("patterns: fields behind pointers, and memory that may not be there") {
    Builder b("test");
    Code &f = b.program("raw_tp/x", "p");
    auto name = f.stack<char[16]>("name");
    f.mov(r6, r1);
    f.read_field<uint32_t>(r7, r6, "task_struct.real_parent->tgid");
    f.read_user<uint16_t>(r8, r6 + 6);
    f.read_user_string(name, r6);
    f.read_kernel_string(name + 8, 8, r6);
    f.ret(0);
    Built result = b.finish();
    INFO(result.report());
    REQUIRE(result);
    CHECK(print(result->functions[0]) == R"(.program p "raw_tp/x"
    r6 = r1
    r3 = r6
    r3 += @task_struct.real_parent
    r1 = r10                                    # &read
    r1 += -24
    r2 = 8
    call bpf_probe_read_kernel
    r3 = *(u64 *)(r10 - 24)
    r3 += @task_struct.real_parent.tgid
    r1 = r10                                    # &read
    r1 += -24
    r2 = 4
    call bpf_probe_read_kernel
    r7 = *(u32 *)(r10 - 24)
    r1 = r10                                    # &read
    r1 += -24
    r2 = 2
    r3 = r6
    r3 += 6
    call bpf_probe_read_user
    r8 = *(u16 *)(r10 - 24)
    r1 = r10                                    # &name
    r1 += -16
    r2 = 16
    r3 = r6
    call bpf_probe_read_user_str
    r1 = r10                                    # &name
    r1 += -8
    r2 = 8
    r3 = r6
    call bpf_probe_read_kernel_str
    r0 = 0
    exit
)");
    const auto refused = [](auto &&body) {
        return built([&](Builder &, Code &g) {
            body(g);
            g.ret(0);
        });
    };
    const std::string named = "p: a field is named struct.member, with -> behind a pointer: task_struct.real_parent->tgid\n";
    for (std::string_view path : {"", "task_struct", "task_struct.", ".pid", "task_struct.mm->", "->pid", "task_struct->pid"})
        CHECK(refused([&](Code &g) { g.read_field<uint32_t>(r2, r1, path); }) == named);
    CHECK(refused([](Code &g) { g.read_user_string(fp - 8, 0, r1); }) == "p: a text needs a byte for its zero at least\n");
    CHECK(refused([](Code &g) { g.read_user_string(g.stack(4, 4, "text") + 1, 4, r1); }) ==
          "p: bytes 1 to 4 of stack slot `text`, which has 4\n");
}

TEST_CASE("patterns: a record that is given back") {
    CHECK(built([](Builder &b, Code &f) {
              auto ring = b.ringbuf("ring", 4096);
              f.mov(r7, r1);
              f.reserve(r6, ring, 8, [&] {
                   f.if_(r7 == 0, [&] { f.discard(); });
                   f.store<uint64_t>(r6, r7);
               }).else_([&] { f.mov(r7, 1); });
              f.mov(r0, r7);
              f.exit();
          }) == R"(    r7 = r1
    r1 = ring ll
    r2 = 8
    r3 = 0
    call bpf_ringbuf_reserve
    r6 = r0
    if r6 == 0 goto L3
    if r7 != 0 goto L1
    r1 = r6
    r2 = 0
    call bpf_ringbuf_discard
    goto L2
L1:
    *(u64 *)(r6 + 0) = r7
    r1 = r6
    r2 = 0
    call bpf_ringbuf_submit
L2:
    goto L4
L3:
    r7 = 1
L4:
    r0 = r7
    exit
)");
    CHECK(built([](Builder &, Code &f) {
              f.discard();
              f.ret(0);
          }) == "p: there is no record to discard: call discard() in the block of reserve()\n");
    CHECK(built([](Builder &b, Code &f) { // given back, and then written to
              auto ring = b.ringbuf("ring", 4096);
              f.reserve(r6, ring, 8, [&] {
                  f.discard();
                  f.store<uint64_t>(r6, 1);
              });
              f.ret(0);
          }) == "p: this code can't be reached: the code before it ends in an exit or a jump, and no label is bound here\n");
    CHECK(built([](Builder &b, Code &f) { // out of the inner block only
              auto ring = b.ringbuf("ring", 4096);
              f.reserve(r6, ring, 8, [&] { f.reserve(r7, ring, 8, [&] { f.discard(); }); });
              f.ret(0);
          })
              .find("leak") == std::string::npos);
    CHECK(built([](Builder &b, Code &f) { // a loop around the block is another way out of it
              auto ring = b.ringbuf("ring", 4096);
              f.loop(r8, 4, [&] { f.reserve(r6, ring, 8, [&] { f.break_(); }); });
              f.ret(0);
          }) == "p: the jump to `end of loop` leaves the block that holds a ring buffer record, which would leak\n");
}

TEST_CASE("loops: counted, with break and continue") {
    CHECK(built([](Builder &, Code &f) {
              f.mov(r0, 0);
              f.loop(r6, 10, [&] {
                  f.if_(r6 == 3, [&] { f.continue_(); });
                  f.if_(r6 == 7, [&] { f.break_(); });
                  f.add(r0, r6);
              });
              f.exit();
          }) == R"(    r0 = 0
    r6 = 0
L1:
    if r6 >= 10 goto L5
    if r6 != 3 goto L2
    goto L4
L2:
    if r6 != 7 goto L3
    goto L5
L3:
    r0 += r6
L4:
    r6 += 1
    goto L1
L5:
    exit
)");
    CHECK(built([](Builder &, Code &f) {
              f.mov(r0, 0);
              f.may_loop([&] {
                  f.add(r0, 1);
                  f.if_(r0 > 100, [&] { f.break_(); });
              });
              f.exit();
          }) == R"(    r0 = 0
L1:
    may_goto L3
    r0 += 1
    if r0 <= 100 goto L2
    goto L3
L2:
    goto L1
L3:
    exit
)");
    CHECK(built([](Builder &, Code &f) {
              f.break_();
              f.continue_();
              f.ret(0);
          }) == "p: break_ is outside of a loop\np: continue_ is outside of a loop\n");
    CHECK(built([](Builder &, Code &f) {
              f.loop(r1, r1, [] {});
              f.ret(0);
          }) == "p: the loop counts in r1, which holds the number of rounds as well\n");
    CHECK(built([](Builder &, Code &f) { // the counter must survive the call
              f.loop(r1, 3, [&] { f.call(helper::ktime_get_ns); });
              f.ret(0);
          })
              .starts_with("p: add reads r1, but bpf_ktime_get_ns on line "));
}

TEST_CASE("loops: bpf_loop makes a function of the body") {
    CHECK(built([](Builder &, Code &f) {
              auto sum = f.stack<uint64_t>("sum");
              f.store<uint64_t>(sum, 0);
              f.bpf_loop(1000000, sum, [](Code &g) {
                  g.load<uint64_t>(r3, r2);
                  g.if_(r3 > 5000, [&] { g.break_(); });
                  g.add(r3, r1);
                  g.store<uint64_t>(r2, r3);
              });
              f.load<uint64_t>(r0, sum);
              f.exit();
          }) == R"(    *(u64 *)(r10 - 8) = 0
    r1 = 1000000
    r2 = p_round1 ll
    r3 = r10                                    # &sum
    r3 += -8
    r4 = 0
    call bpf_loop
    r0 = *(u64 *)(r10 - 8)
    exit
.function p_round1
    r3 = *(u64 *)(r2 + 0)
    if r3 <= 5000 goto L1
    goto L2
L1:
    r3 += r1
    *(u64 *)(r2 + 0) = r3
    r0 = 0
    exit
L2:
    r0 = 1
    exit
)");
}
