// A probe at a function's return (uretprobe) is made by the kernel when the function is called: it puts the address of a page of
// its own, the trampoline, in the place of the return address, and remembers that one. A stack walk then finds the trampoline, of
// which no table knows.
//
//      stack                          task->utask->return_instances, the latest first
//      | trampoline |  <- CFA - 8     { stack: where it stood, orig_ret_vaddr, next } --> { ... } --> 0
//      | ...        |
//      | trampoline |
//
// Both are in the order of the stack, so the walk goes along the list as it goes up. Those of functions that were left by
// longjmp() are still in it, further down the stack than where the walk is, and are passed over. Several tracers of one function
// are several entries for one place, each with the same address.
//
// Where it stood: x86_64's call has pushed it, so the place is CFA - 8; arm64 and riscv64 keep it in a register then, and `stack`
// is the stack pointer, the CFA itself. kernel/events/uprobes.c, prepare_uretprobe(); the members' names are the same from 5.10
// to 6.18.
//
// A probe at an instruction is a breakpoint in its place. Where the kernel can't do itself what the instruction does, the thread
// runs a copy of it, alone, in a page that no table describes ([uprobes]), and most of the time that this takes is the kernel's:
//
//      vaddr       mov %rdi, %rax   -->   int3              task->utask { active_uprobe, vaddr, xol_vaddr }
//      xol_vaddr   mov %rdi, %rax         [uprobes]         pc there: before the copy; behind it: until the kernel has seen that
//
// It has as many bytes at either place, and all other registers are what they are, so the walk begins at vaddr + (pc -
// xol_vaddr).
#include "programs/unwind/return_probes.h"

#include "asm/helpers.h"

namespace rawbpf::inline v0 {

namespace {

constexpr int kMostPassedOver = 8;
constexpr uint64_t kNoTrampoline = 1; // no address
constexpr uint32_t kLongest = 15;     // bytes of an instruction

} // namespace

void begin_return_probes(Code &g, const ReturnProbesPlace &place) {
    g.store<uint64_t>(place.trampoline, kNoTrampoline);
    g.call(helper::get_current_task);
    g.read_field<uint64_t>(r1, r0, "task_struct.utask->return_instances"); // 0 where a pointer is 0
    g.store<uint64_t>(place.returns, r1);
    g.if_(r1 != 0, [&] {
        g.call(helper::get_current_task);
        g.read_field<uint64_t>(r1, r0, "task_struct.mm->uprobes_state.xol_area->vaddr");
        g.store<uint64_t>(place.trampoline, r1);
    });
}

void original_return_address(Code &g, const ReturnProbesPlace &place, const unwind::Machine &machine) {
    const Label done = g.label("return address"), found = g.label("taken address found"), none = g.label("not found");
    g.load<uint64_t>(r2, place.trampoline);
    g.jump_if(r1 != r2, done);
    g.load<uint64_t>(r8, place.returns);
    for (int i = 0; i < kMostPassedOver; ++i) {
        g.jump_if(r8 == 0, none);
        g.read_field<uint64_t>(r2, r8, "return_instance.stack");
        if (!machine.link) g.add(r2, 8);
        g.jump_if(r2 >= r7, found);
        g.read_field<uint64_t>(r8, r8, "return_instance.next");
    }
    g.bind(none);
    g.mov(r1, 0);
    g.jump(done);
    g.bind(found);
    g.read_field<uint64_t>(r2, r8, "return_instance.next");
    g.store<uint64_t>(place.returns, r2);
    g.read_field<uint64_t>(r1, r8, "return_instance.orig_ret_vaddr");
    g.bind(done);
}

void leave_probed_instruction(Code &g, Mem pc, Mem address, Mem word) {
    const Label elsewhere = g.label("no probed instruction");
    const auto read = [&](std::string_view field) { // 0 where a pointer is 0
        g.call(helper::get_current_task);
        g.read_field<uint64_t>(r1, r0, field);
    };
    read("task_struct.utask->active_uprobe");
    g.jump_if(r1 == 0, elsewhere);
    read("task_struct.utask->xol_vaddr");
    g.load<uint64_t>(r2, address);
    g.sub(r2, r1);
    g.jump_if(r2 > runtime(kLongest), elsewhere);
    g.store<uint64_t>(word, r1);
    read("task_struct.utask->vaddr");
    g.load<uint64_t>(r2, word);
    g.sub(r1, r2);
    for (const Mem &place : {pc, address}) {
        g.load<uint64_t>(r2, place);
        g.add(r2, r1);
        g.store<uint64_t>(place, r2);
    }
    g.bind(elsewhere);
}

} // namespace rawbpf::inline v0
