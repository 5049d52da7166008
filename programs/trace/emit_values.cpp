// Values, fetched: arguments from the registers that the calling convention says, from a tracepoint's record, or from what was
// kept at the call; and what lies behind pointers, read step by step.
//
// Texts: whether an address is the kernel's or a user's is seen in its highest bit, and on 32-bit ARM by comparison. A page that
// isn't there can't be read by a program that may not sleep; a sleepable one touches it with bpf_copy_from_user() and reads
// again.
#include <cerrno>

#include "programs/trace/emit.h"
#include "programs/usdt/fetch.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint32_t kInRegisters = kHost.arguments;
constexpr uint32_t kReturnAddress =
    kHost.return_address < 0 ? kHost.word : 0;     // bytes of it in front of the arguments on the stack
constexpr int64_t kSyscallResult = 8 + kHost.word; // "ret" in the record of sys_exit_*, behind the number

// Word `index` of a context that is an array of them: fentry, fexit, raw tracepoints.
void load_word(const Emitting &e, WritableReg dst, size_t index) {
    Code &f = e.f;
    if (!e.shared.options.by_helper || e.place.kind == ProbeKind::raw_tp) return f.load<uint64_t>(dst, r6 + runtime(8 * index));
    f.address(r3, r6 + runtime(8 * index));
    f.mov(r2, 8);
    f.address(r1, e.scratch);
    f.call(helper::probe_read_kernel);
    f.load<uint64_t>(dst, e.scratch);
}

// A system call's result is a long: errors are below 0.
void extend_word(Code &f, WritableReg value) {
    if (kHost.word == 8) return;
    f.lsh(value, 32);
    f.arsh(value, 32);
}

// Nobody said what type the function returns. An int leaves the upper half of the register zero, and its -1 would be 4294967295:
// what is as small as errors are is taken for an int's.
void extend_errors(Code &f, WritableReg value) { // r4 and r5 are gone
    constexpr int64_t kFirst = 0xfffff001;       // -4095, the kernel's MAX_ERRNO
    f.mov(r5, value);
    f.load_imm64(r4, kFirst);
    f.sub(r5, r4);
    f.if_(r5 <= int64_t{0xffffffff} - kFirst, [&] {
        f.lsh(value, 32);
        f.arsh(value, 32);
    });
}

} // namespace

bool has_registers(ProbeKind kind) {
    if (kind == ProbeKind::usdt) return false; // it has, but the compiler chose which
    return kind == ProbeKind::kprobe || kind == ProbeKind::kretprobe || is_user_function(kind);
}
bool has_record(ProbeKind kind) { return kind == ProbeKind::tracepoint || kind == ProbeKind::syscall; }
bool has_arguments(const Emitting &e) {
    return !e.is_result || e.call || e.place.kind == ProbeKind::fexit || e.place.kind == ProbeKind::fentry;
}

bool is_on_stack(const ProbeSite &place, uint32_t index) {
    return (place.kind == ProbeKind::uprobe || place.kind == ProbeKind::uretprobe) && !place.go_call && index >= kInRegisters;
}

void load_stack_word(const Emitting &e, WritableReg dst, uint32_t offset, uint32_t size) {
    Code &f = e.f;
    f.mov(r1, 0);
    f.store<uint64_t>(*e.word, r1);
    f.stack_pointer(r3, r6);
    f.add(r3, runtime(offset));
    f.mov(r2, runtime(size));
    f.address(r1, *e.word);
    f.call(helper::probe_read_user); // r0 says whether it could
    f.load<uint64_t>(dst, *e.word);
}

void load_raw(const Emitting &e, WritableReg dst, uint32_t index) {
    if (e.call) { // of the call that returns here
        e.f.load<uint64_t>(dst, *e.call + runtime(offsetof(OpenCall, arguments) + 8 * index));
        return;
    }
    if (e.place.kind == ProbeKind::usdt) return usdt::emit_argument(e.f, dst, r6, e.place.arguments[index], e.sleepable);
    if (e.place.go_call) return load_go_word(e, dst, e.place.go_call->arguments[index]);
    if (is_on_stack(e.place, index))
        return load_stack_word(e, dst, kReturnAddress + kHost.word * (index - kInRegisters), kHost.word);
    if (has_registers(e.place.kind)) return e.f.argument(dst, r6, static_cast<int>(index) + 1);
    if (e.place.by_number() && e.place.at_sys_exit(e.is_result)) return load_result(e, dst); // a tracepoint's only field
    if (e.place.by_number()) return e.f.syscall_argument(dst, r6, static_cast<int>(index) + 1);
    if (!has_record(e.place.kind)) return load_word(e, dst, index);
    const Mem field = r6 + runtime(e.place.offsets[index]);
    const Type &type = e.place.signature.parameters[index].type;
    if (e.place.kind == ProbeKind::syscall) return e.f.load<HostWord>(dst, field);
    // Arrays stand where there is room (rwbs of block_rq_issue at 34), and the verifier takes no loads that aren't aligned: what
    // is copied as a whole has its first byte here, and nobody looks at it.
    uint32_t size = type.show == Show::data_text ? 4 : type.show == Show::characters ? 1 : type.size;
    while (size > 1 && e.place.offsets[index] % size != 0) size /= 2;
    switch (size) {
    case 1: return e.f.load<uint8_t>(dst, field);
    case 2: return e.f.load<uint16_t>(dst, field);
    case 4: return e.f.load<uint32_t>(dst, field);
    default: return e.f.load<uint64_t>(dst, field);
    }
}

void load_result(const Emitting &e, WritableReg dst) {
    if (e.place.go_call) {
        Value first;
        first.from = Value::From::result;
        return load_go_value(e, dst, first);
    }
    if (has_registers(e.place.kind)) {
        e.f.return_value(dst, r6);
        if (is_user_function(e.place.kind) && !e.place.signature.known) extend_errors(e.f, dst);
        return;
    }
    if (e.place.by_number()) return e.f.load<uint64_t>(dst, r6 + 8);
    if (e.place.kind == ProbeKind::syscall) {
        e.f.load<HostWord>(dst, r6 + kSyscallResult);
        return extend_word(e.f, dst);
    }
    load_word(e, dst, e.place.signature.parameters.size());
}

void load_frame(const Emitting &e, WritableReg dst) {
    const ProgramOptions &o = e.shared.options;
    const bool wanted = !e.is_result && o.calls && o.results;
    if (wanted && e.place.go_call) return load_go_frame(e, dst);
    if (wanted && has_registers(e.place.kind))
        e.f.stack_pointer(dst, r6);
    else if (wanted && (e.place.kind == ProbeKind::fentry || e.place.kind == ProbeKind::fexit))
        e.f.mov(dst, r6); // the context is on the stack, at one place of the trampoline's frame
    else
        e.f.mov(dst, 0);
}

void read_memory(const Emitting &e, Mem dst, uint32_t size, bool text) {
    Code &f = e.f;
    f.mov(r2, runtime(size));
    f.address(r1, dst);
    const bool user = is_user_function(e.place.kind) || e.place.kind == ProbeKind::syscall;
    if (user) {
        if (e.sleepable) f.store<uint64_t>(e.scratch, r3);
        text ? f.call(helper::probe_read_user_str) : f.call(helper::probe_read_user);
        if (!e.sleepable) return;
        f.if_(r0 == -EFAULT, [&] { // a page that isn't there yet: touched by one byte, then again
            f.load<uint64_t>(r3, e.scratch);
            f.mov(r2, 1);
            f.address(r1, dst);
            f.call(helper::copy_from_user);
            f.load<uint64_t>(r3, e.scratch);
            f.mov(r2, runtime(size));
            f.address(r1, dst);
            text ? f.call(helper::probe_read_user_str) : f.call(helper::probe_read_user);
        });
        return;
    }
    const auto of_kernel = [&] { text ? f.call(helper::probe_read_kernel_str) : f.call(helper::probe_read_kernel); };
    const auto of_user = [&] { text ? f.call(helper::probe_read_user_str) : f.call(helper::probe_read_user); };
    if (kHost.word == 8) {
        f.if_(as_signed(r3) < 0, of_kernel).else_(of_user);
    } else {
        f.load_imm64(r4, kHost.kernel_from);
        f.if_(r3 >= r4, of_kernel).else_(of_user);
    }
}

namespace {

void extend(Code &f, const Type &type) {
    if (type.size >= 8 || type.show == Show::address || type.show == Show::text) return;
    const int bits = 64 - 8 * type.size;
    f.lsh(r0, runtime(bits));
    if (type.is_signed)
        f.arsh(r0, runtime(bits));
    else
        f.rsh(r0, runtime(bits));
}

void load_sized(Code &f, Mem from, const Type &type) {
    switch (type.size) {
    case 1: f.load<uint8_t>(r0, from); break;
    case 2: f.load<uint16_t>(r0, from); break;
    case 4: f.load<uint32_t>(r0, from); break;
    default: f.load<uint64_t>(r0, from); break;
    }
    if (type.is_signed) extend(f, type);
}

// r0 = what the value starts from.
void load_base(const Emitting &e, const Value &value) {
    if (e.place.go_call)
        load_go_value(e, r0, value);
    else if (value.from == Value::From::result)
        load_result(e, r0);
    else
        load_raw(e, r0, value.argument);
}

} // namespace

void load_address(const Emitting &e, const Value &value) {
    Code &f = e.f;
    load_base(e, value);
    for (size_t i = 0; i < value.reads.size(); ++i) {
        if (value.reads[i] > INT32_MAX) {
            f.load_imm64(r1, value.reads[i]);
            f.add(r0, r1);
        } else if (value.reads[i] != 0) {
            f.add(r0, runtime(value.reads[i]));
        }
        if (i + 1 == value.reads.size()) return;
        f.mov(r3, r0);
        f.mov(r2, 8);
        f.address(r1, e.scratch);
        f.call(helper::probe_read_kernel); // a zero where it can't be read
        f.load<uint64_t>(r0, e.scratch);
    }
}

void load_value(const Emitting &e, const Value &value) {
    Code &f = e.f;
    switch (value.from) {
    case Value::From::pid:
        f.load<uint64_t>(r0, e.ids);
        f.rsh(r0, 32);
        return;
    case Value::From::tid: f.load<uint32_t>(r0, e.ids); return;
    case Value::From::uid:
        f.call(helper::get_current_uid_gid);
        f.lsh(r0, 32);
        f.rsh(r0, 32);
        return;
    case Value::From::gid:
        f.call(helper::get_current_uid_gid);
        f.rsh(r0, 32);
        return;
    case Value::From::goroutine: return load_goroutine(e, r0);
    case Value::From::cpu: f.call(helper::get_smp_processor_id); return;
    case Value::From::comm: return; // a text
    case Value::From::duration: f.load<uint64_t>(r0, *e.duration); return;
    default: load_base(e, value);
    }
    if (value.reads.empty()) return extend(f, value.type);
    load_address(e, value);
    f.mov(r3, r0);
    f.mov(r2, runtime(value.type.size));
    f.address(r1, e.scratch);
    f.call(helper::probe_read_kernel); // zeroes where it can't be read
    if (value.bit_size == 0) return load_sized(f, e.scratch, value.type);
    Type whole = value.type;
    whole.is_signed = false;
    load_sized(f, e.scratch, whole);
    f.lsh(r0, runtime(64 - value.bit_offset - value.bit_size));
    if (value.type.is_signed)
        f.arsh(r0, runtime(64 - value.bit_size));
    else
        f.rsh(r0, runtime(64 - value.bit_size));
}

void read_text(const Emitting &e, const Value &value, Mem to, uint32_t size) {
    Code &f = e.f;
    if (value.type.show != Show::characters && value.type.show != Show::data_text) {
        load_value(e, value);
        f.mov(r3, r0);
        return read_memory(e, to, size, true);
    }
    if (!value.reads.empty()) {
        load_address(e, value);
        f.mov(r3, r0);
    } else if (value.type.show == Show::data_text) {
        f.load<uint32_t>(r3, r6 + runtime(e.place.offsets[value.argument]));
        f.and_(r3, 0xffff);
        f.add(r3, r6);
    } else {
        f.address(r3, r6 + runtime(e.place.offsets[value.argument]));
    }
    f.mov(r2, runtime(size));
    f.address(r1, to);
    f.call(helper::probe_read_kernel_str);
}

} // namespace rawbpf::inline v0::trace
