// Callbacks and tail calls: where a program continues after such a helper.
//
//      frame 0   program a: bpf_loop(3, cb, ...)                        r0 = 3
//      frame 1       cb ... exit  cb ... tail call > program b ... exit  cb ... exit
//
// A tail call replaces the program in its own frame only (x86_64 5.10, arm64 6.0): the target's exit returns to the caller of
// that frame's function, with the target's result. In a callback's frame that means the next call of the callback, in the
// callback's own program.
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"

namespace rawbpf::inline v0::emulator {

bool Machine::tail_call(const EmulatedMap &map, uint32_t index) {
    size_t of_map = 0;
    while (of_map < maps_.size() && maps_[of_map].get() != &map) ++of_map;
    if (cpu_.tail_calls >= kMaxTailCalls || of_map == maps_.size()) return false;
    for (const MapSpec::Slot &slot : spec_->maps[of_map].slots) {
        if (slot.index != index) continue;
        for (size_t n = 0; n < spec_->programs.size(); ++n) {
            if (spec_->programs[n].name != slot.target) continue;
            if (Result<void> ready = prepare(n); !ready) {
                fault(ready.error().message());
                return true;
            }
            ++cpu_.tail_calls;
            cpu_.frames[cpu_.depth].program = static_cast<uint32_t>(n);
            cpu_.frames[cpu_.depth].base = cpu_.depth; // its depth counts from here
            cpu_.op = entry_of(n, 0);
            signal_ = Event::stopped;
            return true;
        }
    }
    return false;
}

// Callbacks run in frames of their own, one after the other, and the interpreter never calls itself: when a callback's frame
// ends, next_callback() either sends it to its beginning again or gives the helper's result and goes back.

bool Machine::begin_callback(Frame &frame) {
    uint64_t *r = cpu_.r;
    if (frame.callback == Callback::loop) {
        if (frame.place == frame.total) return false;
        r[1] = frame.place;
        r[2] = frame.context;
        return true;
    }
    EmulatedMap &map = *maps_[frame.map];
    frame.place = map.next_entry(frame.place);
    if (frame.place == map.max_entries()) return false;
    r[1] = map_address(frame.map);
    r[2] = map.key_address(frame.place);
    r[3] = map.value_address(frame.place);
    r[4] = frame.context;
    return true;
}

uint64_t Machine::call_back(Callback kind, int function_register, uint64_t context, uint32_t count, const EmulatedMap *map) {
    const Op *function = function_at(cpu_.r[function_register]);
    if (!function)
        return fault(
            format("r{} = {:#x} isn't the address of a function of the program", function_register, cpu_.r[function_register]));
    const uint32_t base = cpu_.frames[cpu_.depth].base;
    if (cpu_.depth + 1 - base == kCallDepth) return fault(format("the calls are nested more than {} functions deep", kCallDepth));
    Frame &frame = cpu_.frames[cpu_.depth + 1];
    frame = Frame{};
    frame.back = cpu_.op + 1;
    frame.program = cpu_.frames[cpu_.depth].program;
    frame.base = base;
    frame.callback = kind;
    frame.function = function;
    frame.context = context;
    frame.total = count;
    for (uint32_t n = 0; map && n < maps_.size(); ++n)
        if (maps_[n].get() == map) frame.map = n;
    for (int n = 0; n < 4; ++n) frame.saved[n] = cpu_.r[6 + n];
    if (!begin_callback(frame)) return 0; // nothing to do
    ++cpu_.depth;
    memory_.set_frame(cpu_.depth, true);
    cpu_.r[10] = frame_address(cpu_.depth) + kFrameBytes;
    cpu_.op = function;
    signal_ = Event::stopped;
    return 0;
}

const Op *Machine::next_callback(const Op *op) {
    Frame &frame = cpu_.frames[cpu_.depth];
    const uint64_t result = cpu_.r[0];
    if (result > 1) {
        cpu_.op = op;
        fault(format("a callback returned {}; it may only return 0 (continue) or 1 (stop)", static_cast<int64_t>(result)));
        return nullptr;
    }
    ++frame.done;
    ++frame.place;
    if (result == 0 && begin_callback(frame)) {
        frame.program = cpu_.frames[cpu_.depth - 1].program; // a tail call may have gone to another
        frame.base = cpu_.frames[cpu_.depth - 1].base;
        cpu_.r[0] = 0;
        return frame.function;
    }
    for (int n = 0; n < 4; ++n) cpu_.r[6 + n] = frame.saved[n];
    cpu_.r[0] = frame.done; // how many calls were made
    memory_.set_frame(cpu_.depth, false);
    --cpu_.depth;
    cpu_.r[10] = frame_address(cpu_.depth) + kFrameBytes;
    return frame.back;
}

} // namespace rawbpf::inline v0::emulator
