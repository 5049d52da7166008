// Events that are only counted: the first of each kind goes into the ring, of the others one number grows.
//
//      trace_slots[thread] = blank --> record --> key --> counted before: count += 1
//                                                    +--> not yet: into the ring
//      delete trace_slots[thread]
//
// A record is made in a slot that is this thread's alone while the program runs: it may be preempted, so what each CPU has would
// be somebody else's a moment later; and what is taken from the ring and given back is passed over by the reader like any other.
// Who finds the slot in use (an interrupt within a program of the same thread) or none left (so many threads are in the middle
// of a program at once) sends the record by itself: nothing is lost for that.
#include <algorithm>

#include <linux/bpf.h>

#include "programs/capture/record_dsl.h"
#include "programs/trace/emit.h"

namespace rawbpf::inline v0::trace {
namespace {

// What tells events apart: place and end, process, thread's name, labels, addresses, and how complete they are.
CountedRecord counted_record(const Emitting &e, const Layout &layout) {
    static_assert(offsetof(Header, what) == offsetof(Header, cpu) + 4 && offsetof(Header, comm) % 8 == 0);
    const auto stack = static_cast<int32_t>(layout.stack);
    CountedRecord out;
    out.key = static_cast<int32_t>(layout.key);
    out.words = {{offsetof(Header, place), 4},
                 {offsetof(Header, what), 4},
                 {offsetof(Header, pid), 4},
                 {offsetof(Header, comm), 8},
                 {offsetof(Header, comm) + 8, 8},
                 {stack + static_cast<int32_t>(offsetof(StackHead, kernel_bytes)), 8}, // and user_bytes
                 {stack + static_cast<int32_t>(offsetof(StackHead, ending)), 4}};
    if (e.language) out.words.push_back({stack + static_cast<int32_t>(offsetof(StackHead, language)), 8});
    if (e.shared.options.counting->by_thread) out.words.push_back({offsetof(Header, tid), 4});
    const auto frames = [&](size_t bytes, size_t at, uint32_t most) {
        const Mem size = r8 + runtime(stack + static_cast<int32_t>(bytes));
        out.frames.push_back({stack + static_cast<int32_t>(at), most, [size, most](Code &f) {
                                  f.load<uint32_t>(r1, size);
                                  f.if_(r1 > runtime(most * 8), [&] { f.mov(r1, 0); }); // an error is a large number
                              }});
    };
    if (layout.labels != 0) {
        const Mem size = r8 + runtime(layout.labels);
        const uint32_t most = std::min<uint32_t>(e.shared.options.labels->room() / 8, LABEL_MOST_WORDS);
        out.frames.push_back({static_cast<int32_t>(layout.labels + sizeof(uint64_t)), most, [size, most](Code &f) {
                                  f.load<uint64_t>(r1, size);
                                  f.if_(r1 > runtime(most * 8), [&] { f.mov(r1, 0); }); // it never is
                              }});
    }
    frames(offsetof(StackHead, kernel_bytes), sizeof(StackHead), kMostFrames);
    frames(offsetof(StackHead, user_bytes), sizeof(StackHead) + kMostFrames * 8, layout.user_frames);
    return out;
}

} // namespace

void count_record(const Emitting &e, const Layout &layout, Label done) {
    Code &f = e.f;
    Shared &s = e.shared;
    const Slot zero = f.stack<uint32_t>("zero"), thread = f.stack<uint32_t>("thread"), counts = f.stack<uint64_t>("counts");
    const Label in_use = f.label("slot in use"), finished = f.label("finished");
    f.store<uint64_t>(counts, r8);
    f.store<uint32_t>(zero, 0);
    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(thread, r0);
    f.load<uint32_t>(r1, thread);
    f.if_(r1 == 0, [&] { // each CPU has an idle thread of that number
        f.call(helper::get_smp_processor_id);
        f.add(r0, 1);
        f.neg(r0);
        f.store<uint32_t>(thread, r0);
    });
    make_slot(f, *s.slots, *s.blank, thread, zero, BPF_NOEXIST, in_use);
    f.mov(r9, r0);

    Emitting in_slot = e;
    const Label copying = f.label("copying");
    if (e.size) in_slot.copying = copying; // there is no room for a copy
    fill_record(in_slot, layout);
    f.mov(r8, r9);
    s.counting->count(f, zero, counted_record(e, layout), finished);
    if (e.language) s.languages->send(f, *e.language);
    f.call(helper::ringbuf_output, *s.ring, r8, runtime(layout.size), 0);
    s.counting->sent(f);
    if (!e.stack_hash) // of a group the event isn't lost, and the next one of its kind is sent
        f.if_(r0 != 0, [&] {
            f.load<uint64_t>(r8, counts);
            bump(e, offsetof(Counts, lost));
        });
    f.bind(finished);
    if (e.stack_hash) {
        f.load<uint64_t>(r1, r8 + runtime(layout.key));
        f.store<uint64_t>(*e.stack_hash, r1);
    }
    f.call(helper::map_delete_elem, *s.slots, thread);
    f.jump(done);
    if (e.size) {
        f.bind(copying);
        f.call(helper::map_delete_elem, *s.slots, thread);
        f.load<uint64_t>(r8, counts);
    }
    f.bind(in_use);
}

// Of a process that nothing is known of yet the stack is copied, to be walked by user space: each such event is sent. Its hash is
// that of where the stack begins, so that calls of one loop are one group.
void hash_stack(Emitting &e, const Layout &layout) {
    Code &f = e.f;
    const Label done = f.label("stack's hash");
    const Slot hash = f.stack<uint64_t>("stack's hash"), context = f.stack<uint64_t>("context"),
               counts = f.stack<uint64_t>("counts");
    e.stack_hash = hash;
    f.store<uint64_t>(hash, 0);
    f.store<uint64_t>(context, r6);
    f.store<uint64_t>(counts, r8);
    if (e.shared.unwinder) begin_walk(e, layout);
    count_record(e, layout, done);
    if (e.size) {
        const SlotOf<StackStart> start = f.stack<StackStart>("start");
        e.start = start;
        f.zero(start);
        f.load<uint64_t>(r2, *e.size);
        f.jump_if(r2 == runtime(layout.size), done);
        f.reserve(r9, *e.shared.ring, r2, [&] {
            fill_record(e, layout);
            std::vector<Mem> words = {r9 + offsetof(Header, tid), r9 + offsetof(Header, comm), r9 + (offsetof(Header, comm) + 8)};
            for (size_t at = 0; at < sizeof(StackStart); at += 8) words.push_back(start + runtime(at));
            e.shared.counting->mix(f, words);
            f.store<uint64_t>(r9 + runtime(layout.key), r4);
            f.store<uint64_t>(hash, r4);
        });
        e.start.reset();
    }
    f.bind(done);
    end_walk(e);
    f.load<uint64_t>(r6, context);
    f.load<uint64_t>(r8, counts);
}

} // namespace rawbpf::inline v0::trace
