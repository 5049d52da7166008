// The reading, instruction by instruction.
//
//      r6  the record's address, in the process      r7  its bytes      r8  the place      r9  bytes so far
//
// The thread is stopped in this very moment, and only it writes its record: one copy is whole, whose valid byte is 1. All the
// same it is looked at before and behind the copy, for a writer that lets another thread write. What comes from the process is
// any number: sizes are bounded, and what can't be read has no labels.
//
// A module's block, where it has no fixed place (dlopen), is found as glibc's __tls_get_addr does: the thread's list of blocks
// (dtv) has 16 bytes a module, the first word its block's address; -1: this thread hasn't used it yet. The list's length lies in
// front of it. x86-64 has the list's address at the thread pointer + 8, arm64 at it.
#include "programs/labels/read_dsl.h"

#include <cstddef>

#include <linux/bpf.h>

#include "programs/labels/goroutine_dsl.h"
#include "programs/languages/thread_pointer_dsl.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kProcesses = 4096, kKeys = 256;
constexpr int64_t kMostAttributes = LABEL_MOST_BYTES - LABEL_HEAD_BYTES;

} // namespace

LabelReading::LabelReading(Builder &b, const LabelParts &parts, Arch arch)
    : parts_(parts), arch_(arch), processes_(b.hash<uint32_t, LabelProcess>("label_processes", kProcesses)) {
    if (parts.attributes) keys_ = b.hash<LabelKey, uint32_t>("label_keys", kKeys);
}

/// r6 = the record's address, by the LabelProcess at r0. r7 is gone.
void LabelReading::find_variable(Code &f, Label none) const {
    const Label fixed = f.label("fixed place"), found = f.label("variable");
    f.load<uint64_t>(r6, RAWBPF_AT(r0, LabelProcess, offset));
    f.load<uint64_t>(r7, RAWBPF_AT(r0, LabelProcess, module));
    load_thread_pointer(f, arch_);
    f.jump_if(r7 == 0, fixed);
    const Slot list = f.stack<uint64_t>("blocks");
    f.read_user<uint64_t>(r1, r1 + runtime(arch_ == Arch::arm64 ? 0 : 8));
    f.jump_if(r1 == 0, none);
    f.store<uint64_t>(list, r1);
    f.read_user<uint64_t>(r1, r1 + -16);
    f.jump_if(r1 < r7, none); // the thread hasn't heard of the module
    f.lsh(r7, 4);
    f.load<uint64_t>(r1, list);
    f.add(r1, r7);
    f.read_user<uint64_t>(r1, r1 + 0);
    f.jump_if(r1 == 0, none);
    f.jump_if(r1 == -1, none);
    f.bind(fixed);
    f.add(r6, r1);
    f.bind(found);
    f.read_user<uint64_t>(r6, r6 + 0);
    f.jump_if(r6 == 0, none);
}

void LabelReading::read(Code &f, const RecordPlace &place, const How &how) {
    const Mem ending = place.at(offsetof(RecordHead, ending));
    const Label done = f.label("no labels"), none = f.label("no context");
    const Slot context = f.stack<uint64_t>("label context"), counts = f.stack<uint64_t>("label counts");
    const Slot head = f.stack(32, 8, "label head");
    f.call(helper::map_lookup_elem, processes_, how.pid);
    f.jump_if(r0 == 0, done);
    f.store<uint64_t>(context, r6);
    f.store<uint64_t>(counts, r7);
    f.if_(r9 > runtime(how.most), [&] { f.mov(r9, runtime(how.most)); }); // it never is; the verifier wants to see it

    const auto at_end = [&](int64_t more) { // r1 = the place's end, and so many bytes more
        f.mov(r1, r8);
        f.add(r1, r9);
        f.add(r1, runtime(place.frames + more));
    };
    const Label sent = f.label("labels");
    if (parts_.of_goroutines()) {
        const Label published = f.label("published context");
        f.load<uint32_t>(r1, RAWBPF_AT(r0, LabelProcess, go_curg));
        f.jump_if(r1 == 0, published);
        f.mov(r6, r0);
        read_goroutine(f, {parts_.goroutine, keys_, [&] { at_end(0); }, arch_}, none);
        f.jump(sent);
        f.bind(published);
    }
    find_variable(f, none);

    f.call(helper::probe_read_user, head, LABEL_HEAD_BYTES, r6);
    f.jump_if(r0 != 0, none);
    f.load<uint8_t>(r1, head + LABEL_VALID_AT);
    f.jump_if(r1 != 1, none);
    f.mov(r7, 0);
    if (parts_.attributes) {
        f.load<uint16_t>(r7, head + LABEL_SIZE_AT);
        f.if_(r7 > runtime(kMostAttributes), [&] { f.mov(r7, runtime(kMostAttributes)); });
    }
    f.add(r7, LABEL_HEAD_BYTES);

    f.mov(r2, r7);
    f.sub(r2, 1);
    f.and_(r2, 0x3f8);
    at_end(0);
    f.add(r1, r2);
    f.store<uint64_t>(r1 + 0, 0); // the last word, which may be filled in part
    at_end(0);
    f.mov(r2, r7);
    f.call(helper::probe_read_user, r1 + 0, r2, r6);
    f.jump_if(r0 != 0, none);
    at_end(0);
    f.load<uint8_t>(r1, r1 + LABEL_VALID_AT);
    f.jump_if(r1 != 1, none);
    f.read_user<uint8_t>(r1, r6 + LABEL_VALID_AT);
    f.jump_if(r1 != 1, none);
    at_end(0);
    if (!parts_.ids) {
        for (int word = 0; word < 3; ++word) f.store<uint64_t>(r1 + runtime(word * 8), 0);
        f.store<uint8_t>(r1 + runtime(LABEL_VALID_AT + 1), 0);
    }
    if (!parts_.attributes) f.store<uint16_t>(r1 + LABEL_SIZE_AT, 0);

    f.bind(sent);
    f.add(r7, 7);
    f.rsh(r7, 3);
    f.load<uint32_t>(r1, ending);
    f.mov(r2, r7);
    f.lsh(r2, 25);
    f.or_(r1, r2);
    f.store<uint32_t>(ending, r1);
    f.lsh(r7, 3);
    f.add(r9, r7);
    f.bind(none);
    f.load<uint64_t>(r7, counts);
    f.load<uint64_t>(r6, context);
    f.bind(done);
}

} // namespace rawbpf::inline v0
