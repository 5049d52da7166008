#include "programs/session/locator.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "programs/processes/stack_ends.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::session {

using processes::FrameLocation;
using processes::kNone;

namespace {

constexpr uint64_t kLowest = 4096; // nothing is mapped below

} // namespace

size_t frames_to_keep(std::span<const FrameLocation> user) {
    size_t code = user.size(); // frames up to the last that is code
    while (code > 0 && user[code - 1].module == kNone) --code;
    if (code == user.size()) return code;
    if (code > 0) return code + (user[code].address >= kLowest);
    size_t count = user.size();
    while (count > 1 && user[count - 1].address == user[count - 2].address) --count;
    return count;
}

bool is_cut(uint8_t ending, size_t kept, size_t most) {
    return processes::by_tables(ending) ? ending == UNWIND_ENDED_DEPTH : kept >= most;
}

uint32_t most_frames(uint32_t program) {
    const int kernel = std::atoi(sys::first_line("/proc/sys/kernel/perf_event_max_stack").c_str());
    return kernel > 0 ? std::min(program, static_cast<uint32_t>(kernel)) : program;
}

uint32_t Locator::kernel_node(std::span<const uint64_t> frames) {
    uint32_t node = kNone;
    for (size_t i = frames.size(); i-- > 0;) {
        FrameLocation place;
        place.address = frames[i];
        place.kernel = true;
        place.caller = i > 0;
        node = tree_.intern_node(node, tree_.intern_place(place));
    }
    return node;
}

void Locator::locate_user(const processes::UserStack &user, LocatedStacks &out) {
    places_.clear();
    uint32_t module = kNone;
    out.unknown = !user.frames.empty();
    for (size_t i = 0; i < user.frames.size(); ++i) {
        const uint64_t address = user.frames[i] & ~UNWIND_EXACT_PC;
        const bool caller = processes::is_caller(user.frames, i);
        const FrameLocation &place = places_.emplace_back(table_.locate(user.pid, address, caller, user.t_ns));
        if (place.module == kNone) continue;
        out.unknown = false;
        if (place.module != module) unwinding_.used(user.pid, module = place.module, user.t_ns);
    }
    if (processes::JavaCode *java = unwinding_.java()) {
        java->expand(user.pid, user.functions, user.t_ns, places_);
        if (out.ending == UNWIND_ENDED_ROOT && java->lacks_callers(places_)) out.ending = UNWIND_ENDED_FROZEN;
    }
    if (processes::JsFunctions *js = unwinding_.js()) {
        bool any = false;
        for (const unwind::FrameFunction &function : user.functions) {
            if (!function.known || function.frame >= places_.size()) continue;
            FrameLocation &place = places_[function.frame];
            if (table_.tells(user.pid, place)) continue;
            place = js->place(function.word);
            any = true;
        }
        if (any && js->view() == processes::ScriptView::language)
            std::erase_if(places_, [&](const FrameLocation &place) { return !js->is_place(place); });
    }
    const bool by_tables = (user.ending & UNWIND_TABLES) != 0; // then each frame was right
    if (!by_tables) places_.resize(frames_to_keep(places_));
    out.user_frames = static_cast<uint32_t>(places_.size());
    if (processes::Scripts *scripts = unwinding_.scripts(); scripts && by_tables && !(user.made_here && user.language.empty())) {
        const bool rooted = (user.ending & ~UNWIND_TABLES) == UNWIND_ENDED_ROOT && !unwinding_.may_skip(user.pid, user.frames);
        scripts->merge(user.pid, user.language, rooted, user.taken_ns != 0 ? user.taken_ns : user.t_ns, places_);
    }
    for (size_t i = places_.size(); i-- > 0;) out.user = tree_.intern_node(out.user, tree_.intern_place(places_[i]));
}

LocatedStacks Locator::locate(const SentStacks &sent) {
    LocatedStacks out;
    out.kernel = kernel_node(sent.kernel);
    out.ending = ending_of(sent.user.ending, !sent.user.frames.empty());
    if (out.ending != processes::kNoEnding) unwinding_.sampled(sent.user.pid, sent.user.t_ns);
    locate_user(sent.user, out);
    return out;
}

} // namespace rawbpf::inline v0::session
