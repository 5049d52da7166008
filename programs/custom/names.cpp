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
// The hash is FNV-1a of 128 bits (draft-eastlake-fnv).
#include "programs/custom/names.h"

#include <algorithm>

#include "asm/int128.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr uint64_t kLowest = 4096; // nothing is mapped below

class Hash {
  public:
    void add(std::string_view bytes) {
        for (char c : bytes) add_byte(static_cast<uint8_t>(c));
        add_byte(0); // so that "ab" "c" isn't "a" "bc"
    }
    void add(uint64_t number) {
        for (int i = 0; i < 8; ++i) add_byte(static_cast<uint8_t>(number >> 8 * i));
    }
    [[nodiscard]] std::string text() const {
        return format("{:016x}{:016x}", static_cast<uint64_t>(value_ >> 64), static_cast<uint64_t>(value_));
    }

  private:
    void add_byte(uint8_t byte) { value_ = (value_ ^ byte) * (Uint128{1} << 88 | 0x13b); }
    Uint128 value_ = Uint128{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
};

void add_frames(Hash &hash, const std::vector<FramePtr> &frames) {
    for (const FramePtr &frame : frames) {
        if (frame->inlined) continue;
        hash.add(frame->build_id.empty() ? frame->module : frame->build_id);
        const bool in_file = !frame->kernel && frame->file_offset != 0;
        if (in_file) {
            hash.add(frame->file_offset);
        } else { // the kernel, and code made at run time, are at another address each time
            hash.add(frame->symbol);
            hash.add(frame->symbol_offset);
        }
        if (!frame->kernel && frame->symbol == "main") break;
    }
    hash.add(std::string_view());
}

} // namespace

std::string stack_hash(const std::vector<FramePtr> &kernel, const std::vector<FramePtr> &user) {
    Hash hash;
    add_frames(hash, kernel);
    add_frames(hash, user);
    return hash.text();
}

bool lacks_caller(std::span<const uint64_t> frames, uint64_t caller, bool never) {
    if (frames.empty() || caller < kLowest) return false;
    return never || frames.size() < 2 || frames[1] != caller;
}

bool Names::wanted(const Record &head) {
    following_.apply(head.t_ns);
    return following_.wanted(head.pid, head.t_ns);
}

// At a function's first instruction, in a walk by frame pointers.
bool Names::lacks_caller(const CustomTrace &trace, const processes::UserStack &user) {
    if ((user.ending & UNWIND_TABLES) || trace.head.caller == 0 || user.frames.empty()) return false;
    processes::ProcessTable &table = following_.table();
    const processes::FrameLocation leaf = table.locate(user.pid, user.frames[0] & ~UNWIND_EXACT_PC, false, user.t_ns);
    if (leaf.module == processes::kNone) return false;
    const Frame &frame = *namer_.frame(tree_.intern_place(leaf));
    if (frame.symbol.empty() || frame.symbol_offset != 0) return false;
    const std::pair<uint32_t, uint64_t> where(leaf.module, leaf.file_offset);
    if (!custom::lacks_caller(user.frames, trace.head.caller, without_caller_.count(where) != 0)) return false;
    if (table.locate(user.pid, trace.head.caller, true, user.t_ns).module == processes::kNone) return false; // no code: no caller
    without_caller_.insert(where);
    return true;
}

LocatedTrace Names::locate(const CustomTrace &trace) {
    processes::UserStack user{trace.head.pid, trace.head.t_ns, trace.head.ending, trace.user, unwind::read_copy(trace.copy)};
    LocatedTrace out;
    out.head = trace.head;
    if (following_.walk(user)) {
        out.head.user_bytes = static_cast<int32_t>(user.frames.size_bytes());
        out.head.ending = user.ending;
    }
    if (lacks_caller(trace, user)) {
        frames_.assign(user.frames.begin(), user.frames.end());
        frames_.insert(frames_.begin() + 1, trace.head.caller);
        user.frames = frames_;
    }
    static_cast<session::LocatedStacks &>(out) = locator_.locate({user, trace.kernel});
    return out;
}

Names::Named Names::name(const LocatedTrace &trace) {
    Named out;
    tree_.walk(trace.kernel, [&](uint32_t place) { out.kernel.push_back(namer_.frame(place)); });
    tree_.walk(trace.user, [&](uint32_t place) { namer_.add_frames(place, out.user); });
    return out;
}

void Names::clear() {
    tree_.clear();
    namer_.clear();
}

} // namespace rawbpf::inline v0::custom
