// The program, as it runs in the kernel each time the function is called:
//
//      r6 = context        struct pt_regs: the registers of the interrupted code
//      r7 = time           bpf_ktime_get_ns()
//      r8 = ids            bpf_get_current_pid_tgid()
//      filter              somebody else's call: goto out
//      ++counts[function]
//      r9 = record         bpf_ringbuf_reserve(); none left: goto out, counted but not shown
//      fill it, submit it
//      out: return 0
//
// r1 holds the context only until the first helper is called: by the calling convention a call takes r1 to r5. So the first thing
// to do is to put it into r6, which calls keep.
#include "handler.h"

#include <cstddef>

#include "asm/builder.h"
#include "event.h"
#include "runtime/base/fail.h"
#include "runtime/object/unit_object.h"

using namespace rawbpf;

namespace lab {
namespace {

// Where struct pt_regs has the first six arguments and the result, in bytes (the README has the tables). f.argument() of the
// builder knows this too; here it is on show.
#if defined(__x86_64__)
constexpr int64_t kArgumentAt[6] = {112, 104, 96, 88, 72, 64}; // rdi rsi rdx rcx r8 r9
constexpr int64_t kResultAt = 80;                              // rax
#elif defined(__aarch64__)
constexpr int64_t kArgumentAt[6] = {0, 8, 16, 24, 32, 40}; // x0 ... x5
constexpr int64_t kResultAt = 0;                           // x0
#elif defined(__riscv)
constexpr int64_t kArgumentAt[6] = {80, 88, 96, 104, 112, 120}; // a0 ... a5
constexpr int64_t kResultAt = 80;                               // a0
#else
#error "the calling convention of this machine, please"
#endif

// r0 = process id << 32 | thread id, as ps(1) shows them to us.
void current_ids(Code &f, const HandlerOptions &o, Label out) {
    if (o.pidns_inode == 0) {
        f.call(helper::get_current_pid_tgid);
        return;
    }
    // In a container: processes outside of it have no number that we would know.
    Slot numbers = f.stack<uint64_t>("numbers"); // struct bpf_pidns_info
    f.call(helper::get_ns_current_pid_tgid, runtime(o.pidns_device), runtime(o.pidns_inode), numbers, 8);
    f.jump_if(r0 != 0, out);
    f.load<uint64_t>(r0, numbers);
}

} // namespace

Result<ObjectSpec> create_trace_handler(const HandlerOptions &o) {
    Builder b("lab_5_1");
    MapRef events = b.ringbuf("events", kRingBytes);
    MapRef counts = b.hash<uint32_t, uint64_t>("counts", kMostFunctions);

    Code &f = b.program(o.section, o.at_return ? "on_return" : "on_call");
    Slot function = f.stack<uint32_t>("function");
    Label out = f.label("out");

    // ---- Step 1: the context, before a call takes r1; the time, before our own work takes some
    f.mov(r6, r1);
    f.call(helper::ktime_get_ns);
    f.mov(r7, r0);

    // ---- Step 2: which process; not ours? (experiment 2)
    current_ids(f, o, out);
    f.mov(r8, r0);
    f.rsh(r0, 32);
    if (o.only_pid != 0)
        f.jump_if(r0 != runtime(o.only_pid), out);
    else
        f.jump_if(r0 == runtime(o.own_pid), out); // printing an event calls vfs_write, which would be an event ...

    // ---- Step 3: count the call. Two CPUs may be here at once, so the addition is atomic
    if (!o.at_return) {
        f.store<uint32_t>(function, runtime(o.function_id));
        f.lookup(counts, function, [&] { // in here r0 points at the counter, and isn't null
            f.mov(r1, 1);
            f.atomic_add<uint64_t>(r0, r1);
        });
    }

    // ---- Step 4: an event. reserve() checks for null and submits at the end of the block
    const uint32_t size = o.text_argument < 0 ? sizeof(Event) : sizeof(EventWithText);
    f.reserve(r9, events, size, [&] {
        f.store<uint64_t>(r9 + offsetof(Event, time), r7);
        f.store<uint64_t>(r9 + offsetof(Event, ids), r8);
        f.store<uint32_t>(r9 + offsetof(Event, function), runtime(o.function_id));
        f.store<uint32_t>(r9 + offsetof(Event, kind), runtime(o.at_return ? kReturn : kCall));
        // A record is what others left in the ring: every byte has to be written, or it would be shown to user space.
        for (size_t i = 0; i < 6; ++i) {
            if (o.at_return && i > 0)
                f.mov(r1, 0);
            else
                f.load<uint64_t>(r1, r6 + runtime(o.at_return ? kResultAt : kArgumentAt[i]));
            f.store<uint64_t>(r9 + runtime(offsetof(Event, args) + 8 * i), r1);
        }
        f.call(helper::get_current_comm, r9 + offsetof(Event, comm), 16);
        if (o.text_argument >= 0) { // experiment 3: copied now, since nobody can say what is there later
            for (uint32_t i = 0; i < kTextBytes; i += 8) f.store<uint64_t>(r9 + runtime(offsetof(EventWithText, text) + i), 0);
            f.load<uint64_t>(r1, r6 + runtime(kArgumentAt[o.text_argument]));
            f.read_user_string(r9 + offsetof(EventWithText, text), kTextBytes, r1);
            f.store<uint64_t>(r9 + offsetof(EventWithText, text_length), r0);
        }
    });

    f.bind(out);
    f.ret(0);

    Built built = b.finish();
    if (!built) return fail(Errc::internal, "{}", built.report());
    return object_of(*built);
}

} // namespace lab
