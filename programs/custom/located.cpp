// At a function's first instruction there is no frame of it yet: a walk by frame pointers goes from there to its caller's caller.
//
//      report_trace:  push %rbp     <- here. (%rsp) is where it returns to, %rbp is still main's
//      walk:          report_trace, [main is missing], __libc_start_call_main
//
// Newer x86_64 kernels put *(sp) in where the instruction looks like a function's first (push %rbp, endbr64), others don't, and
// nobody does where code has no frames at all. So the program notes *(sp) (arm64: the link register), and here it is put in where
// the walk is at a function's first instruction and doesn't go on with it. Where a function calls itself, its caller is the same
// place again and again, and that question has no answer; but whether a kernel puts it in at an instruction is always the same,
// so one walk that lacked it tells for all.
//
// Where functions begin, symbols know. A recording has none, so it takes along what the stack is in either case.
#include "programs/custom/located.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr uint64_t kLowest = 4096; // nothing is mapped below

} // namespace

bool lacks_caller(std::span<const uint64_t> frames, uint64_t caller, bool never) {
    if (frames.empty() || caller < kLowest) return false;
    return never || frames.size() < 2 || frames[1] != caller;
}

bool Places::wanted(const Record &head) {
    following_.apply(head.t_ns);
    return following_.wanted(head.pid, head.t_ns);
}

// In a walk by frame pointers, if it begins where a function does.
bool Places::lacks_caller(const CustomTrace &trace, const processes::UserStack &user, const Begins &begins) {
    if ((user.ending & UNWIND_TABLES) || trace.head.caller == 0 || user.frames.empty()) return false;
    processes::ProcessTable &table = following_.table();
    const processes::FrameLocation leaf = table.locate(user.pid, user.frames[0] & ~UNWIND_EXACT_PC, false, user.t_ns);
    if (leaf.module == processes::kNone) return false;
    if (begins && !begins(tree_.intern_place(leaf))) return false;
    const std::pair<uint32_t, uint64_t> where(leaf.module, leaf.file_offset);
    if (!custom::lacks_caller(user.frames, trace.head.caller, without_caller_.count(where) != 0)) return false;
    if (table.locate(user.pid, trace.head.caller, true, user.t_ns).module == processes::kNone) return false; // no code: no caller
    without_caller_.insert(where);
    return true;
}

void Places::put_caller_in(processes::UserStack &user, uint64_t caller) {
    frames_.assign(user.frames.begin(), user.frames.end());
    frames_.insert(frames_.begin() + 1, caller);
    user.frames = frames_;
}

LocatedTrace Places::locate(const CustomTrace &trace, const Begins &begins) {
    processes::UserStack user{trace.head.pid, trace.head.t_ns, trace.head.ending, trace.user, unwind::read_copy(trace.copy),
                              trace.language};
    if (trace.head.origin == Origin::off_cpu) user.taken_ns = trace.head.t_ns - trace.head.context; // when it left
    LocatedTrace out;
    out.head = trace.head;
    out.labels = following_.labels().of(trace.head.pid, trace.labels);
    out.missed = !following_.walk(user) && trace.head.user_bytes < 0;
    const bool lacks = lacks_caller(trace, user, begins), put_in = lacks && begins;
    if (put_in) put_caller_in(user, trace.head.caller);
    static_cast<session::LocatedStacks &>(out) = locator_.locate({user, trace.kernel});
    out.cut = session::is_cut(out.ending, out.user_frames - put_in, most_frames_); // by what was walked
    if (lacks && !put_in) {
        put_caller_in(user, trace.head.caller);
        out.with_caller = locator_.locate({user, {}}).user;
    }
    out.truncated = out.cut || trace.head.kernel_bytes == int32_t{RAWBPF_STACK_BYTES} || (trace.head.flags & kTruncated);
    return out;
}

} // namespace rawbpf::inline v0::custom
