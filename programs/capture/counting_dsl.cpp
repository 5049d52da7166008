// Counting, instruction by instruction.
//
//      counted_stacks[0] ----> stack counts: key ---> { count, sent }       a hash in an array of maps: user space can change it
//         nothing there:                 |                                  for an empty one, and knows when nobody uses the old
//         send, don't count              +-- sent: count += 1, and that's all
//                                        +-- not yet: send the record with its key; once the ring has it, sent = 1
//                                        +-- no room: send it without
//
// A count is touched only after the record is in the ring, so user space finds the stack for every count; and an entry never has
// to be taken out again. Two CPUs that meet a new stack at the same time both make the entry, one of them in vain (EEXIST), both
// look it up and both send: each record is a sample by itself, nothing is lost. A ring that is full costs that one sample, and
// the next of its kind tries again.
//
// The key is 64 bits that all words of the sample were mixed into, one after the other: xor, multiply, fold the upper half down.
// It starts with a number that is drawn for each run, so that nobody can choose stacks that collide; by accident, ten thousand
// stacks share a key once in some 10^11 runs. Beside what user space would compare (process, thread's name, addresses, why the
// walk ended) two things go in that say what the addresses mean: when the process began, as its number can be given to another,
// and how many programs it has executed. Addresses are those of one image, then.
//
// Needs bpf_loop (5.17), ring buffers and the kernel's BTF.
#include "programs/capture/counting_dsl.h"

#include <cstddef>

#include <linux/bpf.h>

#include "programs/capture/mix_dsl.h"

namespace rawbpf::inline v0 {

namespace {

struct Hashing {
    uint64_t record; // pointer
    uint64_t hash;
};

} // namespace

MapSpec stack_counts_spec(uint32_t stacks) {
    MapSpec counts;
    counts.name = "stack_counts";
    counts.type = BPF_MAP_TYPE_HASH; // with all its elements allocated: an interrupt can't
    counts.key_size = sizeof(uint64_t);
    counts.value_size = sizeof(StackCount);
    counts.max_entries = stacks;
    return counts;
}

void complete_counting_maps(ObjectSpec &spec, uint32_t stacks) {
    if (MapSpec *outer = spec.find_map("counted_stacks")) outer->inner = std::make_shared<MapSpec>(stack_counts_spec(stacks));
}

StackCounting::StackCounting(Builder &b, const StackCountingOptions &options)
    : options_(options), stacks_(b.map(BPF_MAP_TYPE_ARRAY_OF_MAPS, "counted_stacks", 4, 4, 1)) {}

void StackCounting::mix(Code &f, const std::vector<Mem> &words) const {
    f.load_imm64(r4, options_.seed);
    f.load_imm64(r3, kMixMultiplier);
    for (const Mem &word : words) {
        f.load<uint64_t>(r5, word);
        mix_in(f);
    }
    f.or_(r4, 1); // 0 means: no key
}

// All addresses, one after the other. r0 to r5 are gone.
void StackCounting::mix_frames(Code &f, const CountedRecord::Frames &frames) const {
    frames.load_bytes(f);
    f.rsh(r1, 3);
    f.bpf_loop(r1, *hashing_, [&](Code &g) {
        g.if_(r1 >= runtime(frames.most), [&] { g.break_(); }); // it never is; the verifier wants to see it
        g.load<uint64_t>(r0, r2 + runtime(offsetof(Hashing, record)));
        g.lsh(r1, 3);
        g.add(r0, r1);
        g.load<uint64_t>(r5, r0 + runtime(frames.at));
        g.load<uint64_t>(r4, r2 + runtime(offsetof(Hashing, hash)));
        g.load_imm64(r3, kMixMultiplier);
        mix_in(g);
        g.store<uint64_t>(r2 + runtime(offsetof(Hashing, hash)), r4);
    });
}

void StackCounting::count(Code &f, const Slot &zero, const CountedRecord &record, Label counted) {
    const SlotOf<Hashing> hashing = f.stack<Hashing>("hashing");
    const SlotOf<StackCount> fresh = f.stack<StackCount>("fresh");
    hashing_ = hashing;
    entry_ = f.stack<uint64_t>("entry");
    const Label send = f.label("send");
    const Mem key = r8 + runtime(record.key);

    f.store<uint64_t>(*entry_, 0);
    f.store<uint64_t>(key, 0);
    if (record.unknown) {
        f.load<uint32_t>(r1, r8 + runtime(record.unknown->at));
        f.and_(r1, runtime(record.unknown_bits));
        f.jump_if(r1 != 0, send);
    }
    f.call(helper::map_lookup_elem, stacks_, zero);
    f.jump_if(r0 == 0, send);
    f.mov(r6, r0);

    // Not by bpf_get_current_task_btf(), whose fields are plain loads: newer verifiers search all types by name for each of them,
    // and a profile would take some milliseconds longer to start.
    f.call(helper::get_current_task);
    f.store<uint64_t>(RAWBPF_AT(hashing, Hashing, record), r0);
    f.read_field<uint64_t>(r1, r0, "task_struct.group_leader->start_time");
    f.store<uint64_t>(RAWBPF_AT(hashing, Hashing, hash), r1);
    f.load<uint64_t>(r1, RAWBPF_AT(hashing, Hashing, record));
    f.read_field<uint32_t>(r5, r1, "task_struct.self_exec_id");
    f.load_imm64(r4, options_.seed);
    f.load_imm64(r3, kMixMultiplier);
    mix_in(f);
    f.load<uint64_t>(r5, RAWBPF_AT(hashing, Hashing, hash));
    mix_in(f);
    for (const CountedRecord::Word &word : record.words) {
        if (word.size == 4)
            f.load<uint32_t>(r5, r8 + runtime(word.at));
        else
            f.load<uint64_t>(r5, r8 + runtime(word.at));
        mix_in(f);
    }
    f.store<uint64_t>(RAWBPF_AT(hashing, Hashing, record), r8);
    f.store<uint64_t>(RAWBPF_AT(hashing, Hashing, hash), r4);
    for (const CountedRecord::Frames &frames : record.frames) mix_frames(f, frames);
    f.load<uint64_t>(r4, RAWBPF_AT(hashing, Hashing, hash));
    f.or_(r4, 1); // 0 means: no key
    f.store<uint64_t>(key, r4);

    f.call(helper::map_lookup_elem, r6, key);
    f.if_(r0 == 0, [&] {
        f.zero(fresh);
        f.call(helper::map_update_elem, r6, key, fresh, BPF_NOEXIST);
        f.call(helper::map_lookup_elem, r6, key);
        f.if_(r0 == 0, [&] { // no room
            f.store<uint64_t>(key, 0);
            f.jump(send);
        });
    });
    f.load<uint64_t>(r1, RAWBPF_AT(r0, StackCount, sent));
    f.if_(r1 != 0, [&] {
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(RAWBPF_AT(r0, StackCount, count), r1);
        f.jump(counted);
    });
    f.store<uint64_t>(*entry_, r0);
    f.bind(send);
}

void StackCounting::sent(Code &f) {
    f.if_(r0 == 0, [&] {
        f.load<uint64_t>(r1, *entry_);
        f.if_(r1 != 0, [&] { f.store<uint64_t>(RAWBPF_AT(r1, StackCount, sent), 1); });
    });
}

} // namespace rawbpf::inline v0
