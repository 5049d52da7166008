// Patterns: what programs often do, including the steps that are easily forgotten.
//
//      reserve     a ring buffer's record; every way out of its block submits or discards it
//
//          r0 = reserve(ring, size); record = r0; if record == 0 goto end
//          | fill ...   discard(): bpf_ringbuf_discard(record), goto done        <- reservation_ is this record's number
//          | bpf_ringbuf_submit(record)
//          done:                                                                 <- and the outer one's again
//          end:
//
//      argument    where a traced function's arguments are: in the saved registers (asm/machines.h), or in an array
//      read_*      memory that may not be there, through a stack slot of eight bytes
//
// System calls have had wrappers that take one struct pt_regs * since 4.17 (x86_64), 4.19 (arm64) and 6.6 (riscv64).
#include "asm/builder.h"

#include <algorithm>

#include "asm/section_names.h"

namespace rawbpf::inline v0 {

namespace {

// --- Where arguments are --------------------------------------------------------------------------------------------------

constexpr std::string_view kWhichMachines = "rawbpf knows only of x86_64, arm64, riscv64 and 32-bit ARM where ";

enum class Context : uint8_t { other, registers, returned, array, array_and_result, syscall, tracepoint };

/// What r1 is at the program's entry.
Context context_of(std::string_view section) {
    const SectionKind *kind = find_section_kind(section);
    if (kind == nullptr) return Context::other;
    switch (kind->attachment) {
    case Attachment::kprobe:
    case Attachment::kprobe_multi:
    case Attachment::kprobe_session:
    case Attachment::uprobe:
    case Attachment::uprobe_multi:
    case Attachment::uprobe_session: return Context::registers;
    case Attachment::kretprobe:
    case Attachment::kretprobe_multi:
    case Attachment::uretprobe:
    case Attachment::uretprobe_multi:
    case Attachment::kretsyscall: return Context::returned;
    case Attachment::ksyscall: return Context::syscall;
    case Attachment::tracepoint: return Context::tracepoint;
    case Attachment::raw_tracepoint: return Context::array;
    case Attachment::trampoline:
    case Attachment::trampoline_multi:
        return kind->attach_type == AttachType::TRACE_FEXIT || kind->attach_type == AttachType::MODIFY_RETURN ||
                       kind->attach_type == AttachType::TRACE_FEXIT_MULTI
                   ? Context::array_and_result
                   : Context::array;
    default: return kind->target == SectionTarget::lsm_hook ? Context::array : Context::other; // lsm_cgroup
    }
}

} // namespace

void Code::argument(WritableReg dst, Reg context, int number, Where where) {
    const std::string which = "argument " + std::to_string(number);
    const auto refuse = [&](std::string message) {
        complain(where, std::move(message));
        set(dst.number());
    };
    if (number < 1) return refuse(which + ": the first one is 1");
    switch (context_of(function_.section)) {
    case Context::registers: {
        const ArchInfo regs = arch_info(builder_.arch_);
        if (regs.arch == Arch::other) return refuse(std::string(kWhichMachines) + "arguments are; see Builder::target");
        if (number > regs.arguments)
            return refuse(which + " is on the stack: " + std::string(regs.name) + " has the first " +
                          std::to_string(regs.arguments) + " in registers");
        return load_word(dst, context + runtime(regs.function[number - 1]), where);
    }
    case Context::array:
    case Context::array_and_result:
        if (number > 12) return refuse(which + ": a traced function has twelve at most");
        return load_form(Shape::load, "u64", 64, dst.number(), context + runtime(8 * (number - 1)), where);
    case Context::returned: return refuse("when a function returns, its arguments are gone; keep them in a map at its entry");
    case Context::syscall: return refuse("this traces a system call, whose arguments are behind a pointer: syscall_argument");
    case Context::tracepoint:
        return refuse("a tracepoint has fields of its own, not arguments; those of sys_enter_*: syscall_argument");
    case Context::other: return refuse("section \"" + function_.section + "\" traces no function with arguments");
    }
}

// A register of the machine, which has 4 bytes on 32-bit ARM.
void Code::load_word(WritableReg dst, Mem from, Where where) {
    const int bits = arch_info(builder_.arch_).word * 8;
    load_form(Shape::load, unsigned_type(bits), bits, dst.number(), from, where);
}

void Code::return_value(WritableReg dst, Reg context, Where where) {
    const ArchInfo regs = arch_info(builder_.arch_);
    switch (context_of(function_.section)) {
    case Context::returned:
        if (regs.arch == Arch::other) {
            complain(where, std::string(kWhichMachines) + "results are; see Builder::target");
            return set(dst.number());
        }
        return load_word(dst, context + runtime(regs.result), where);
    case Context::array_and_result: {
        const Mem value = scratch(where);
        call(helper::get_func_ret, context, value, where);
        return load_form(Shape::load, "u64", 64, dst.number(), value, where);
    }
    default:
        complain(where,
                 "section \"" + function_.section + "\" doesn't see what a function returns; kretprobe, uretprobe and fexit do");
        return set(dst.number());
    }
}

void Code::stack_pointer(WritableReg dst, Reg context, Where where) {
    const Context kind = context_of(function_.section);
    const ArchInfo regs = arch_info(builder_.arch_);
    if (kind != Context::registers && kind != Context::returned)
        complain(where, "section \"" + function_.section + "\" doesn't see the registers; kprobes and uprobes do");
    else if (regs.arch == Arch::other)
        complain(where, std::string(kWhichMachines) + "the stack pointer is; see Builder::target");
    else
        return load_word(dst, context + runtime(regs.stack_pointer), where);
    set(dst.number());
}

void Code::syscall_argument(WritableReg dst, Reg context, int number, Where where) {
    const auto refuse = [&](std::string message) {
        complain(where, std::move(message));
        set(dst.number());
    };
    if (number < 1 || number > 6) return refuse("system calls have arguments 1 to 6, not " + std::to_string(number));
    const Context kind = context_of(function_.section);
    if (kind == Context::tracepoint) {
        if (function_.section.find("/syscalls/sys_enter") == std::string::npos)
            return refuse("tracepoint \"" + function_.section + "\" isn't syscalls/sys_enter_*");
        // struct trace_event_raw_sys_enter: 8 bytes of every tracepoint's, the number of the call, args[6].
        return load_form(Shape::load, "u64", 64, dst.number(), context + runtime(16 + 8 * (number - 1)), where);
    }
    const ArchInfo regs = arch_info(builder_.arch_);
    if (regs.arch == Arch::other) return refuse(std::string(kWhichMachines) + "arguments are; see Builder::target");
    const bool by_number = kind == Context::array && function_.section.find("/sys_enter") != std::string::npos;
    if (!by_number && kind != Context::syscall && kind != Context::registers)
        return refuse("section \"" + function_.section + "\" traces no system call");
    if (by_number) {
        load_form(Shape::load, "u64", 64, r3.number(), context, where);
    } else if (regs.wrapper.empty()) { // the function takes the arguments themselves
        if (number > regs.arguments)
            return refuse("argument " + std::to_string(number) + " of a system call is on the stack of " +
                          std::string(regs.name));
        return load_word(dst, context + runtime(regs.function[number - 1]), where);
    } else {
        load_word(r3, context + runtime(regs.function[0]), where);
    }
    probe_read(helper::probe_read_kernel.id, regs.word * 8, dst, r3 + runtime(regs.syscall[number - 1]), where);
}

// --- Memory that may not be there -----------------------------------------------------------------------------------------

Mem Code::scratch(Where where) {
    if (scratch_ == 0) scratch_ = stack(8, 8, "read", where).off_;
    Mem mem(fp, runtime(scratch_));
    mem.low = scratch_;
    mem.limit = scratch_ + 8;
    mem.owner = this;
    return mem;
}

void Code::probe_read(uint16_t helper, int bits, WritableReg dst, Mem from, Where where) {
    const Mem value = scratch(where);
    const Arg args[] = {value, bits / 8, from};
    call_helper(helper, args, 3, where);
    load_form(Shape::load, unsigned_type(bits), bits, dst.number(), value, where);
}

void Code::read_field_size(int bits, WritableReg dst, Reg base, std::string_view path, Where where) {
    const Mem value = scratch(where);
    std::string symbol;
    for (bool first = true;; first = false) {
        const size_t arrow = path.find("->");
        const std::string_view members = path.substr(0, arrow);
        if (members.empty() || members.front() == '.' || members.back() == '.' || (first && members.find('.') == members.npos)) {
            complain(where, "a field is named struct.member, with -> behind a pointer: task_struct.real_parent->tgid");
            return set(dst.number());
        }
        symbol += (first ? "" : ".") + std::string(members);
        if (!first)
            load_form(Shape::load, "u64", 64, r3.number(), value, where);
        else if (base.number() != r3.number())
            mov(r3, base, where);
        add_field(r3, symbol, where);
        const Arg args[] = {value, arrow == path.npos ? bits / 8 : 8, r3};
        call_helper(helper::probe_read_kernel.id, args, 3, where);
        if (arrow == path.npos) break;
        path.remove_prefix(arrow + 2);
    }
    load_form(Shape::load, unsigned_type(bits), bits, dst.number(), value, where);
}

void Code::read_string(uint16_t helper, Mem to, uint32_t size, Reg from, Where where) {
    if (size == 0) return complain(where, "a text needs a byte for its zero at least");
    if (!within(to, size, where)) return;
    const Arg args[] = {to, size, from};
    call_helper(helper, args, 3, where);
}

void Code::read_user_string(Mem to, uint32_t size, Reg from, Where where) {
    read_string(helper::probe_read_user_str.id, to, size, from, where);
}
void Code::read_kernel_string(Mem to, uint32_t size, Reg from, Where where) {
    read_string(helper::probe_read_kernel_str.id, to, size, from, where);
}

// --- Ring buffer records --------------------------------------------------------------------------------------------------

uint32_t Code::begin_reserve(WritableReg record, MapRef ring, Arg size, Where where) {
    if (record.number() < 6)
        complain(where, "the record's pointer must survive calls: r6 to r9, not r" + std::to_string(record.number()));
    call(helper::ringbuf_reserve, ring, size, 0, where);
    mov(record, r0, where);
    const uint32_t end = begin_if(record != 0, where);
    held_.push_back({reservation_, static_cast<uint8_t>(record.number()), label("end of the record", where).index_});
    reservation_ = ++reservations_;
    return end;
}

void Code::end_reserve(WritableReg record, Where where) {
    if (reachable_) {
        use(record.number(), where, "bpf_ringbuf_submit");
        call(helper::ringbuf_submit, record, 0, where);
    }
    reservation_ = held_.back().outer;
    place(held_.back().end, true);
    held_.pop_back();
}

void Code::discard(Where where) {
    if (held_.empty()) return complain(where, "there is no record to discard: call discard() in the block of reserve()");
    const Held held = held_.back();
    use(held.record, where, "bpf_ringbuf_discard");
    call(helper::ringbuf_discard, WritableReg(held.record), 0, where);
    const uint32_t inside = reservation_;
    reservation_ = held.outer; // from here on nothing is held
    jump(Label(this, held.end), where);
    reservation_ = inside;
}

// --- Printing -------------------------------------------------------------------------------------------------------------

void Code::print(std::string_view format, std::initializer_list<Arg> values, Where where) {
    if (values.size() > 3)
        return complain(where, "bpf_trace_printk prints three values at most, not " + std::to_string(values.size()));
    const uint32_t size = static_cast<uint32_t>(format.size() + 1);
    if (size > print_size_) {
        print_slot_ = stack((size + 7) / 8 * 8, 8, "format", where).off_;
        print_size_ = (size + 7) / 8 * 8;
    }
    note("\"" + std::string(format) + "\"");
    for (uint32_t at = 0; at < size; at += 4) {
        uint32_t bytes = 0;
        for (uint32_t i = 0; i < 4 && at + i < format.size(); ++i)
            bytes |= uint32_t{static_cast<uint8_t>(format[at + i])} << 8 * i;
        store_number(32, Mem(fp, runtime(print_slot_ + static_cast<int64_t>(at))), bytes, where);
    }
    std::vector<Arg> args{Arg(Mem(fp, runtime(print_slot_))), Arg(size)};
    args.insert(args.end(), values);
    call_helper(helper::trace_printk.id, args.data(), static_cast<int>(args.size()), where);
}

} // namespace rawbpf::inline v0
