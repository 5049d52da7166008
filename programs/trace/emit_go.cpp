// Words of a Go call: from the registers that Go's convention counts, or from the goroutine's stack.
//
//      x86_64   0 rax  1 rbx  2 rcx  3 rdi  4 rsi  5 r8  6 r9  7 r10  8 r11      r14: the goroutine
//      arm64    0 x0 ... 15 x15                                                  x28
//      stack    sp + 8: the first word, at the function's first instruction and at its return
#include <array>

#include "programs/trace/emit.h"
#include "programs/trace/go_values.h"

namespace rawbpf::inline v0::trace {
namespace {

// In struct pt_regs, bytes (arch/x86/include/asm/ptrace.h).
constexpr std::array<int16_t, 9> kX86 = {80, 40, 88, 112, 104, 72, 64, 56, 48};
constexpr uint32_t kBehindReturnAddress = 8;
constexpr uint64_t kGoStackTop = uint64_t{1} << 40; // where all stacks are taken to end, so that deeper is less

int32_t place_of(uint32_t number) {
    if (kHostArch != Arch::x86_64) return static_cast<int32_t>(number * 8);
    return kX86[number < kX86.size() ? number : 0];
}

// r0 = how r2 bytes at r3 could be read to r1.
void read_user(const Emitting &e) { e.sleepable ? e.f.call(helper::copy_from_user) : e.f.call(helper::probe_read_user); }

} // namespace

void load_go_word(const Emitting &e, WritableReg dst, const GoWord &word) {
    Code &f = e.f;
    switch (word.in) {
    case GoWord::In::integer_register: return f.load<uint64_t>(dst, r6 + runtime(place_of(word.at)));
    case GoWord::In::float_register:
    case GoWord::In::unknown: return f.mov(dst, 0);
    case GoWord::In::stack: break;
    }
    load_stack_word(e, dst, kBehindReturnAddress + word.at, word.size);
}

void load_go_value(const Emitting &e, WritableReg dst, const Value &value, uint32_t behind) {
    if (value.from == Value::From::result) {
        const std::vector<GoWord> &results = e.place.go_call->results;
        if (value.argument + behind >= results.size()) return e.f.mov(dst, 0); // it returns nothing
        return load_go_word(e, dst, results[value.argument + behind]);
    }
    load_raw(e, dst, value.argument + behind);
}

void copy_go_slice(const Emitting &e, const Value &value, Mem bytes, uint32_t capacity) {
    Code &f = e.f;
    const uint32_t size = value.type.length;
    load_go_value(e, r0, value, 1);
    f.store<uint64_t>(bytes, r0);
    if (size == 0) return f.mov(r0, 8);
    const uint32_t most = (capacity - 8) / size;
    f.if_(r0 > runtime(most), [&] { f.mov(r0, runtime(most)); });
    f.mul(r0, runtime(size));
    f.store<uint64_t>(e.scratch, r0);
    load_go_value(e, r3, value);
    f.load<uint64_t>(r2, e.scratch);
    f.if_(r2 > runtime(most * size), [&] { f.mov(r2, runtime(most * size)); });
    f.address(r1, bytes + 8);
    read_user(e);
    f.if_(r0 == 0, [&] {
        f.load<uint64_t>(r0, e.scratch);
        f.add(r0, 8);
    });
}

// A string is where its text is and how long. What can't be read is marked by a length that no text has.
void copy_go_strings(const Emitting &e, const Value &value, Mem bytes, uint32_t capacity) {
    Code &f = e.f;
    const uint32_t room = go_string_room(capacity);
    const Label done = f.label("strings");
    load_go_value(e, r0, value, 1);
    f.store<uint64_t>(bytes, r0);
    for (uint32_t i = 0; i < 2 * kGoStrings; ++i) f.store<uint64_t>(bytes + runtime(8 + 8 * i), 0);
    f.if_(r0 > runtime(kGoStrings), [&] { f.mov(r0, runtime(kGoStrings)); });
    f.mul(r0, 16);
    f.store<uint64_t>(e.scratch, r0);
    load_go_value(e, r3, value);
    f.load<uint64_t>(r2, e.scratch);
    f.if_(r2 > runtime(kGoStrings * 16), [&] { f.mov(r2, runtime(kGoStrings * 16)); });
    f.address(r1, bytes + 8);
    read_user(e);
    f.jump_if(r0 != 0, done);
    for (uint32_t i = 0; i < kGoStrings; ++i) {
        const Mem string = bytes + runtime(8 + 16 * i);
        f.load<uint64_t>(r3, string);
        f.load<uint64_t>(r2, string + 8);
        f.if_(r2 > runtime(room), [&] { f.mov(r2, runtime(room)); });
        f.address(r1, bytes + runtime(kGoStringsText + i * room));
        read_user(e);
        f.if_(r0 != 0, [&] { f.store<uint64_t>(string + 8, -1); });
    }
    f.mov(r0, runtime(capacity));
    f.bind(done);
}

// Behind the two words what the data points at, in case that it is a text: who reads the record knows the types.
void copy_go_interface(const Emitting &e, const Value &value, Mem bytes, uint32_t capacity) {
    Code &f = e.f;
    const uint32_t most = capacity - kGoInterfaceText;
    const Label done = f.label("interface");
    for (uint32_t at = 8; at < kGoInterfaceText; at += 8) f.store<uint64_t>(bytes + runtime(at), 0);
    f.load<uint64_t>(r3, r6 + runtime(kHost.program_counter));
    f.store<uint64_t>(bytes + runtime(kGoInterfaceProbe), r3);
    load_go_value(e, r3, value);
    f.store<uint64_t>(bytes, r3);
    f.mov(r0, runtime(kGoInterfaceText));
    f.jump_if(r3 == 0, done);
    if (value.type.show == Show::go_interface) { // struct itab: inter, _type
        f.add(r3, 8);
        f.mov(r2, 8);
        f.address(r1, bytes);
        read_user(e);
    }
    load_go_value(e, r3, value, 1);
    f.store<uint64_t>(bytes + 8, r3);
    f.mov(r2, 16);
    f.address(r1, bytes + 16);
    read_user(e);
    f.load<uint64_t>(r2, bytes + 24);
    f.if_(r2 > runtime(most), [&] { f.mov(r2, runtime(most)); });
    f.store<uint64_t>(e.scratch, r2);
    f.load<uint64_t>(r3, bytes + 16);
    f.address(r1, bytes + runtime(kGoInterfaceText));
    read_user(e);
    f.if_(r0 == 0, [&] {
         f.load<uint64_t>(r0, e.scratch);
         f.add(r0, runtime(kGoInterfaceText));
     }).else_([&] { f.mov(r0, runtime(kGoInterfaceText)); });
    f.bind(done);
}

// runtime.g begins with the stack's bounds: lo, hi.
void load_go_frame(const Emitting &e, WritableReg dst) {
    Code &f = e.f;
    if (!e.place.go_call->goroutine) return f.mov(dst, 0);
    const Label unknown = f.label("no goroutine");
    load_goroutine(e, r3);
    f.add(r3, 8);
    f.mov(r2, 8);
    f.address(r1, *e.word);
    f.call(helper::probe_read_user);
    f.mov(r2, 0);
    f.jump_if(r0 != 0, unknown);
    f.stack_pointer(r2, r6);
    f.load<uint64_t>(r3, *e.word);
    f.sub(r2, r3);
    f.load_imm64(r3, kGoStackTop);
    f.add(r2, r3);
    f.bind(unknown);
    f.mov(dst, r2);
}

void load_goroutine(const Emitting &e, WritableReg dst) {
    e.f.load<uint64_t>(dst, r6 + runtime(kHostArch == Arch::x86_64 ? 8 : 28 * 8));
}

} // namespace rawbpf::inline v0::trace
