// Calls kept in the kernel until they return: for what is only known then, and wanted together with the arguments (how long it
// took, what came back).
//
//      call      depth = trace_depth[thread, place]++          trace_open[thread, place, depth] = {now, arguments}
//      return    depth = --trace_depth[thread, place]          trace_open[thread, place, depth]: how long ago, which arguments
//
// So a function that calls itself has a call of its own at each depth. A return that never comes (exit, longjmp, an exception)
// leaves its call behind, one deeper than it should be; those above it still find their own. Both maps drop what has not been
// used for longest, so a thread that has ended makes room by itself.
#include <linux/bpf.h>

#include "programs/trace/emit.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr int32_t kDepths = 64; // of one function in one thread; deeper ones overwrite the outermost

// The key of trace_open on the stack, but for the depth; the first two numbers are the key of trace_depth.
void make_key(const Emitting &e, SlotOf<OpenKey> key) {
    Code &f = e.f;
    f.zero(key);
    f.call(helper::get_current_pid_tgid);
    if (e.place.go_call && e.place.go_call->goroutine) { // it may return in another thread
        f.rsh(r0, 32);
        f.store<uint32_t>(key + offsetof(CallKey, process), r0);
        load_goroutine(e, r0);
        f.store<uint64_t>(key + offsetof(CallKey, who), r0);
    } else {
        f.store<uint32_t>(key + offsetof(CallKey, who), r0);
    }
    f.store<uint32_t>(key + offsetof(CallKey, place), r7);
}

} // namespace

void keep_call(const Emitting &e, uint32_t arguments) {
    Code &f = e.f;
    const SlotOf<OpenKey> key = f.stack<OpenKey>("key");
    const SlotOf<OpenCall> call = f.stack<OpenCall>("call");
    make_key(e, key);
    f.mov(r1, 0);
    f.store<uint32_t>(key + offsetof(OpenKey, depth), r1);
    f.call(helper::map_lookup_elem, *e.shared.depths, key);
    f.if_(r0 != 0, [&] {
         f.load<uint32_t>(r1, r0 + 0);
         f.mov(r2, r1);
         f.add(r2, 1);
         f.store<uint32_t>(r0 + 0, r2);
         f.and_(r1, kDepths - 1);
         f.store<uint32_t>(key + offsetof(OpenKey, depth), r1);
     }).else_([&] {
        f.mov(r1, 1);
        f.store<uint32_t>(call, r1);
        f.call(helper::map_update_elem, *e.shared.depths, key, call, BPF_ANY);
    });
    f.zero(call);
    for (uint32_t i = 0; i < arguments; ++i) {
        load_raw(e, r1, i);
        f.store<uint64_t>(call + runtime(offsetof(OpenCall, arguments) + 8 * i), r1);
    }
    f.call(helper::ktime_get_ns);
    f.store<uint64_t>(call + offsetof(OpenCall, time), r0);
    f.call(helper::map_update_elem, *e.shared.open_calls, key, call, BPF_ANY);
}

void find_call(const Emitting &e, Label unknown) {
    Code &f = e.f;
    const SlotOf<OpenKey> key = f.stack<OpenKey>("key");
    make_key(e, key);
    f.call(helper::map_lookup_elem, *e.shared.depths, key);
    f.jump_if(r0 == 0, unknown);
    f.load<uint32_t>(r1, r0 + 0);
    f.jump_if(r1 == 0, unknown);
    f.sub(r1, 1);
    f.store<uint32_t>(r0 + 0, r1);
    f.and_(r1, kDepths - 1);
    f.store<uint32_t>(key + offsetof(OpenKey, depth), r1);
    f.call(helper::map_lookup_elem, *e.shared.open_calls, key);
    f.jump_if(r0 == 0, unknown);
    for (uint32_t at = 0; at < sizeof(OpenCall); at += 8) {
        f.load<uint64_t>(r1, r0 + runtime(at));
        f.store<uint64_t>(*e.call + runtime(at), r1);
    }
    f.call(helper::map_delete_elem, *e.shared.open_calls, key);
    f.call(helper::ktime_get_ns);
    f.load<uint64_t>(r1, *e.call + offsetof(OpenCall, time));
    f.sub(r0, r1);
    f.store<uint64_t>(*e.duration, r0);
}

} // namespace rawbpf::inline v0::trace
