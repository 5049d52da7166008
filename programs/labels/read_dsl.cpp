// The reading, instruction by instruction.
//
//      r6  the record's address, in the process      r7  its bytes      r8  where it goes
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
#include <utility>

#include <linux/bpf.h>

#include "programs/labels/goroutine_dsl.h"
#include "programs/languages/thread_pointer_dsl.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint32_t kProcesses = 4096, kKeys = 256;
constexpr int64_t kMostAttributes = LABEL_MOST_BYTES - LABEL_HEAD_BYTES;

} // namespace

LabelReading::LabelReading(Builder &b, const LabelParts &parts, Arch arch)
    : b_(b), parts_(parts), arch_(arch), processes_(b.hash<uint32_t, LabelProcess>("label_processes", kProcesses)) {
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

void LabelReading::emit(Code &f) const {
    const Label none = f.label("no labels"), sent = f.label("labels");
    const Slot pid = f.stack<uint32_t>("pid"), head = f.stack(32, 8, "label head");
    f.jump_if(r1 == 0, none);
    f.mov(r8, r1);
    f.store<uint32_t>(pid, r2);
    f.call(helper::map_lookup_elem, processes_, pid);
    f.jump_if(r0 == 0, none);
    if (parts_.of_goroutines()) {
        const Label published = f.label("published context");
        f.load<uint32_t>(r1, RAWBPF_AT(r0, LabelProcess, go_curg));
        f.jump_if(r1 == 0, published);
        f.mov(r6, r0);
        read_goroutine(f, {parts_.goroutine, keys_, arch_}, none);
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
    f.mov(r1, r8);
    f.add(r1, r2);
    f.store<uint64_t>(r1 + 0, 0); // the last word, which may be filled in part
    f.mov(r2, r7);
    f.call(helper::probe_read_user, r8 + 0, r2, r6);
    f.jump_if(r0 != 0, none);
    f.load<uint8_t>(r1, r8 + LABEL_VALID_AT);
    f.jump_if(r1 != 1, none);
    f.read_user<uint8_t>(r1, r6 + LABEL_VALID_AT);
    f.jump_if(r1 != 1, none);
    if (!parts_.ids) {
        for (int word = 0; word < 3; ++word) f.store<uint64_t>(r8 + runtime(word * 8), 0);
        f.store<uint8_t>(r8 + runtime(LABEL_VALID_AT + 1), 0);
    }
    if (!parts_.attributes) f.store<uint16_t>(r8 + LABEL_SIZE_AT, 0);

    f.bind(sent);
    f.mov(r0, r7);
    f.add(r0, 7);
    f.rsh(r0, 3);
    f.lsh(r0, 3);
    f.exit();
    f.bind(none);
    f.mov(r0, 0);
    f.exit();
}

void LabelReading::take(Code &f, const Mem &pid) {
    if (!function_) {
        function_ = parts_.once ? &b_.global_function("read_labels", 2, parts_.room()) : &b_.function("read_labels", 2);
        emit(*function_);
    }
    f.load<uint32_t>(r2, pid);
    f.call(*function_, {Reg(r1), Reg(r2)});
    f.if_(r0 > LABEL_MOST_BYTES, [&] { f.mov(r0, 0); }); // it never is; the verifier wants to see it
}

void LabelReading::read(Code &f, const RecordPlace &place, const How &how) {
    const Mem ending = place.at(offsetof(RecordHead, ending));
    f.if_(r9 > runtime(how.most), [&] { f.mov(r9, runtime(how.most)); }); // likewise
    f.mov(r1, r8);
    f.add(r1, r9);
    f.add(r1, runtime(place.frames));
    take(f, how.pid);
    f.add(r9, r0);
    f.rsh(r0, 3);
    f.lsh(r0, 25);
    f.load<uint32_t>(r1, ending);
    f.or_(r1, r0);
    f.store<uint32_t>(ending, r1);
}

void LabelReading::join(OffCpuTool &tool) {
    const uint32_t before = tool.most_listed;
    tool.most_listed += LABEL_ROOM_WORDS;
    tool.list = [this, before, list = std::move(tool.list)](Code &f, const RecordPlace &place, const Slot &pid,
                                                            const Slot &zero) {
        if (list) list(f, place, pid, zero);
        read(f, place, {pid, (uint64_t{place.room} + before) * 8});
    };
}

} // namespace rawbpf::inline v0
