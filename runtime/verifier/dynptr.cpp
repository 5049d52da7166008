// Dynptrs: pointers whose bounds the kernel checks while the program runs. A dynptr is 16 bytes of the stack that only helpers
// may access.
//
//      bpf_dynptr_from_mem(value, 16, 0, &d)     d: two slots, made here; anything that was there is gone
//      bpf_dynptr_data(&d, 0, 8)                 a slice: 8 bytes, or NULL; good for as long as d is
//      *(u64 *)(r10 - 8) = 0                     overwrites half of it: d is gone, and its slices with it
//      bpf_ringbuf_reserve_dynptr(...)           one that the program must release: it can't be overwritten
//
// A dynptr at r10 - 16 has its first slot at -16 and its second at -8 (kernel/bpf/verifier.c, mark_stack_slots_dynptr()).
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

std::string_view dynptr_word(DynptrKind kind) {
    switch (kind) {
    case DynptrKind::memory: return "local";
    case DynptrKind::ring: return "ringbuf";
    case DynptrKind::packet: return "skb";
    case DynptrKind::xdp: return "xdp";
    case DynptrKind::none: break;
    }
    return "";
}

} // namespace

// The offset of something that takes so many slots; nothing: the verdict is made, or (`quiet`) it isn't one.
std::optional<int> Engine::slots_at(unsigned reg, std::string_view what, unsigned slots, bool quiet) {
    const Value &base = state_.reg(reg);
    if (!base.bounds.is_known()) {
        if (!quiet) (void)refuse("{} has to be at a constant offset", what);
        return {};
    }
    const int64_t off = base.off + static_cast<int64_t>(base.bounds.number());
    if (off % 8 != 0) {
        if (!quiet) (void)refuse("cannot pass in {} at an offset={}", what, off);
        return {};
    }
    if (off < -kStackSize || off + int64_t(slots) * 8 > 0) {
        if (!quiet) (void)refuse("cannot pass in {} at an offset={}", what, off);
        return {};
    }
    return static_cast<int>(off);
}

// The dynptr that an argument is; nullptr: none.
const Value *Engine::dynptr_in(unsigned reg) {
    const Value &base = state_.reg(reg);
    if (base.sort == Sort::dynptr) return &base;
    if (base.sort != Sort::stack) return nullptr;
    const std::optional<int> off = slots_at(reg, "dynptr", 2, true);
    if (!off) return nullptr;
    Frame &frame = state_.frames[base.frame];
    if (frame.byte_at(*off) != Byte::special || frame.byte_at(*off + 8) != Byte::special) return nullptr;
    const Slot &slot = frame.slot(*off), &second = frame.slot(*off + 8);
    if (slot.value.sort != Sort::dynptr || !slot.value.first || second.value.sort != Sort::dynptr || second.value.first)
        return nullptr;
    return &slot.value;
}

// An argument that is no dynptr. The kernel first says what is wrong with the place.
bool Engine::no_dynptr(unsigned reg, unsigned number) {
    if (state_.reg(reg).sort == Sort::stack && !slots_at(reg, "dynptr", 2, false)) {
        verdict_.reason += format("; Expected an initialized dynptr as arg #{}", number);
        return false;
    }
    return refuse("Expected an initialized dynptr as arg #{}", number);
}

// What overwrites a slot that is special. False: the verdict is made.
bool Engine::overwrite(Frame &frame, int off) {
    const int at = off & ~7;
    if (frame.byte_at(at) != Byte::special) return true;
    Slot &slot = frame.slot(at);
    if (slot.value.sort != Sort::dynptr) return true; // iterators and flags are simply gone; who needs them finds out
    const int first = slot.value.first ? at : at - 8;
    const Value gone = frame.slot(first).value;
    if (gone.dynptr == DynptrKind::ring) return refuse("cannot overwrite referenced dynptr");
    forget_dynptr(frame, first);
    return true;
}

void Engine::forget_dynptr(Frame &frame, int first) {
    const ValueId id = frame.slot(first).value.id;
    for (int at : {first, first + 8}) {
        frame.slot(at) = Slot();
        touch(static_cast<uint8_t>(&frame - state_.frames.data()), at);
    }
    state_.each_value([id, this](Value &value) {
        if (value.sort == Sort::memory && value.parent == id) value = any_number(node());
    });
}

bool Engine::make_dynptr(unsigned reg, DynptrKind kind, ValueId ref, bool read_only, std::optional<ValueId> parent) {
    const Value base = state_.reg(reg);
    if (base.sort != Sort::stack) return refuse("arg#{} expected pointer to stack or const struct bpf_dynptr", reg - 1);
    const std::optional<int> off = slots_at(reg, "dynptr", 2, true);
    if (!off) {
        (void)slots_at(reg, "dynptr", 2, false);
        verdict_.reason += "; Dynptr has to be an uninitialized dynptr";
        return verdict_.outcome != Outcome::accepted ? false : false;
    }
    if (!stack_bounds(reg, base, 0, 8, true, By::instruction) || !stack_bounds(reg, base, 8, 8, true, By::instruction))
        return false;
    Frame &frame = state_.frames[base.frame];
    for (int at : {*off, *off + 8})
        if (!overwrite(frame, at)) return false;
    Value value = pointer(Sort::dynptr, node());
    value.dynptr = kind;
    value.id = parent ? *parent : new_id();
    value.read_only = read_only;
    if (kind == DynptrKind::ring) {
        value.ref = ref ? ref : new_id();
        if (!ref) state_.references.push_back({value.ref, state_.insn});
    }
    for (int at : {*off, *off + 8}) {
        Slot &slot = frame.slot(at);
        slot = Slot();
        slot.bytes.fill(Byte::special);
        slot.value = value;
        slot.value.first = at == *off;
        slot.node = value.node;
        touch(base.frame, at);
    }
    return true;
}

// Gives a dynptr back: its copies and slices are no longer good.
bool Engine::release_dynptr(ValueId ref) {
    if (!release(ref)) return false;
    for (Frame &frame : state_.frames)
        for (size_t s = 0; s < frame.stack.size(); ++s) {
            const Slot &slot = frame.stack[s];
            if (slot.bytes[0] == Byte::special && slot.value.sort == Sort::dynptr && slot.value.first && slot.value.ref == ref)
                forget_dynptr(frame, -8 * static_cast<int>(s + 1));
        }
    return true;
}

bool Engine::dynptr_argument(unsigned reg, Argument wanted, Called &called) {
    const Value base = state_.reg(reg);
    if (base.sort != Sort::stack && base.sort != Sort::dynptr)
        return refuse("R{} type={} expected=fp, dynptr_ptr", reg, type_word(base));
    if (base.sort == Sort::dynptr && base.off != 0) return refuse("{}", moved_pointer("dynptr_ptr", reg, base.off));
    switch (wanted) {
    case Argument::dynptr_of_memory: return make_dynptr(reg, DynptrKind::memory, 0, false, {});
    case Argument::dynptr_of_ring: return make_dynptr(reg, DynptrKind::ring, 0, false, {});
    case Argument::dynptr_released: {
        if (base.sort == Sort::dynptr) return refuse("cannot release unowned const bpf_dynptr");
        const Value *found = dynptr_in(reg);
        if (!found || !found->ref) {
            // A slot in the middle of one has its reference, too; what it is said of is another thing.
            const std::optional<int> off = slots_at(reg, "dynptr", 2, true);
            const bool referenced = off && state_.frames[base.frame].byte_at(*off) == Byte::special &&
                                    state_.frames[base.frame].slot(*off).value.ref != 0;
            if (!referenced) return refuse("arg {} is an unacquired reference", reg);
            return refuse("Expected an initialized dynptr as arg #{}", reg - 1);
        }
        if (found->dynptr != DynptrKind::ring) return refuse("Expected a dynptr of type ringbuf as arg #{}", reg - 1);
        called.released_dynptr = found->ref;
        return true;
    }
    default: break;
    }
    const Value *found = dynptr_in(reg);
    if (!found) return no_dynptr(reg, reg - 1);
    (void)dynptr_word(found->dynptr);
    called.subject = *found;
    return true;
}

// Slices of packets: what moves the packet loses them.
void Engine::lose_packet_slices() {
    state_.each_value([this](Value &value) {
        if (value.sort != Sort::memory || (value.dynptr != DynptrKind::packet && value.dynptr != DynptrKind::xdp)) return;
        value = any_number(node());
    });
}

} // namespace rawbpf::inline v0::verifier
