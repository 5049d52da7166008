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

#include "programs/processes/stack_ends.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"

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
    __extension__ using Number = unsigned __int128;
    void add_byte(uint8_t byte) { value_ = (value_ ^ byte) * (Number{1} << 88 | 0x13b); }
    Number value_ = Number{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
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

uint8_t ending_of(const Record &head) {
    const bool has = head.user_bytes > 0 && head.walked != 0; // the root, reached by tables, has UNWIND_TABLES beside it
    return has ? static_cast<uint8_t>(head.walked) : processes::kNoEnding;
}

bool lacks_caller(std::span<const uint64_t> frames, uint64_t caller, bool never) {
    if (frames.empty() || caller < kLowest) return false;
    return never || frames.size() < 2 || frames[1] != caller;
}

bool Names::wanted(const Record &head) {
    following_.apply(head.t_ns);
    return following_.wanted(head.pid, head.t_ns);
}

bool Names::begins_function(uint32_t place) {
    const Frame &frame = *namer_.frame(place);
    return !frame.symbol.empty() && frame.symbol_offset == 0;
}

// The trace of a process without tables, by the copy of its stack.
void Names::walk(CustomTrace &trace) {
    processes::UserStack stack{trace.head.pid, trace.head.t_ns, trace.head.walked, trace.user, unwind::read_copy(trace.copy)};
    if (!following_.walk(stack)) return;
    trace.user = stack.frames;
    trace.head.user_bytes = static_cast<int32_t>(stack.frames.size_bytes());
    trace.head.walked = stack.ending;
}

LocatedTrace Names::locate(CustomTrace trace) {
    walk(trace);
    LocatedTrace out;
    out.head = trace.head;
    const uint32_t pid = trace.head.pid;
    const uint64_t t_ns = trace.head.t_ns;
    places_.clear();
    for (size_t i = 0; i < trace.kernel.size(); ++i) {
        processes::Place place;
        place.address = trace.kernel[i];
        place.kernel = true;
        place.caller = i > 0;
        places_.push_back(tree_.intern_place(place));
    }
    for (size_t i = places_.size(); i-- > 0;) out.kernel = tree_.intern_node(out.kernel, places_[i]);

    places_.clear();
    out.ending = ending_of(trace.head);
    if (out.ending != processes::kNoEnding) following_.sampled(pid, t_ns);
    const bool by_tables = processes::by_tables(out.ending);
    uint32_t module = processes::kNone;
    size_t sane = 0; // frames up to the last that is code
    const auto add = [&](uint64_t address, bool caller) {
        const processes::Place place = following_.table().locate(pid, address, caller, t_ns);
        places_.push_back(tree_.intern_place(place));
        if (place.module != processes::kNone) sane = places_.size();
        if (place.module != module) following_.used(pid, module = place.module, t_ns);
        return place;
    };
    for (size_t i = 0; i < trace.user.size(); ++i) {
        const bool exact = (trace.user[i] & UNWIND_EXACT_PC) != 0;
        const processes::Place place = add(trace.user[i] & ~UNWIND_EXACT_PC, i > 0 && !exact);
        if (by_tables) continue;
        if (i > 0 || trace.head.caller == 0 || place.module == processes::kNone || !begins_function(places_[0])) continue;
        const std::pair<uint32_t, uint64_t> where(place.module, place.file_offset);
        if (!lacks_caller(trace.user, trace.head.caller, without_caller_.count(where) != 0)) continue;
        if (following_.table().locate(pid, trace.head.caller, true, t_ns).module == processes::kNone)
            continue; // no code: no caller
        without_caller_.insert(where);
        (void)add(trace.head.caller, true);
    }
    // Code without frame pointers leaves anything in that register, and the kernel follows it through the heap. The first address
    // that isn't code shows where the walk went astray, unless it is its end. Where nothing is known to be code, all is kept.
    if (!by_tables && sane > 0 && places_.size() > sane) {
        const bool shows = tree_.places()[places_[sane]].address >= kLowest;
        places_.resize(sane + (shows ? 1 : 0));
    }
    out.unknown = sane == 0 && !places_.empty();
    for (size_t i = places_.size(); i-- > 0;) out.user = tree_.intern_node(out.user, places_[i]);
    return out;
}

bool Names::known(const LocatedTrace &trace) const {
    bool all = true;
    tree_.walk(trace.kernel, [&](uint32_t place) { all &= namer_.named(place); });
    return all;
}

void Names::prepare(const std::vector<LocatedTrace> &traces) {
    std::vector<uint32_t> places;
    for (const LocatedTrace &trace : traces)
        tree_.walk(trace.kernel, [&](uint32_t place) {
            if (!namer_.named(place)) places.push_back(place);
        });
    if (places.empty()) return;
    const uint64_t start = sys::monotonic_ns();
    namer_.name_kernel(places);
    pass_ns_ = sys::monotonic_ns() - start;
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
