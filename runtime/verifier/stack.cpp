// The stack: 512 bytes below r10. The verifier tracks every byte.
//
//      *(u64 *)(r10 - 8) = r6        the slot holds r6's value: reading it gives it back, a pointer as a pointer
//      *(u32 *)(r10 - 16) = 5        half a slot holds 5; a value in the other half becomes unknown
//      *(u8 *)(r10 - 20) = r1        a byte has an unknown value
//      r2 = r10; r2 += r3            an unknown offset: a store makes all bytes that it may hit unknown
//
// Slots are aligned to 8 bytes, so accesses of the stack must be aligned to their size. A program can't read bytes that it never
// wrote, since they hold what other functions left there; kernels since 6.3, and late releases of 6.1, let privileged programs
// read them (rules.h).
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr int64_t kMostOffset = int64_t(1) << 29;

} // namespace

bool Engine::stack_bounds(unsigned reg, const Value &base, int64_t off, int64_t size, bool write, By by) {
    const int64_t fixed = base.off + off;
    const bool known = base.bounds.is_known();
    const std::string_view what = by == By::helper ? " indirect access to" : write ? " write to" : " read from";
    if (by == By::instruction) {
        const Tnum place = add(base.bounds.bits, tnum_of(static_cast<uint64_t>(fixed)));
        if (!is_aligned(place, static_cast<uint64_t>(size)))
            return refuse("misaligned stack access off {}+{}+{} size {}",
                          known ? format("{}", base.bounds.number()) : bits_text(base.bounds.bits), base.off, off, size);
    }
    int64_t least = fixed, most = fixed + size;
    if (known) {
        least += static_cast<int64_t>(base.bounds.number());
        most = least + size;
    } else {
        if (base.bounds.s64.most >= kMostOffset || base.bounds.s64.least <= -kMostOffset)
            return refuse("invalid unbounded variable-offset{} stack R{}", what, reg);
        least += base.bounds.s64.least;
        most += base.bounds.s64.most;
    }
    if (least >= -kStackSize && least < 0 && most <= 0) {
        FunctionRange &function = flow_.functions[state_.frames[base.frame].function];
        if (static_cast<uint64_t>(-least) > function.depth) function.depth = static_cast<uint32_t>(-least);
        return true;
    }
    if (known) return refuse("invalid{} stack R{} off={} size={}", what, reg, least, size);
    return refuse("invalid variable-offset{} stack R{} var_off={} off={} size={}", what, reg, bits_text(base.bounds.bits), fixed,
                  size);
}

void Engine::fill_bytes(Frame &frame, int64_t begin, int64_t end, Byte byte) {
    const auto number = static_cast<uint8_t>(&frame - state_.frames.data());
    for (int64_t at = begin; at < end; ++at) {
        Slot &slot = frame.slot(static_cast<int>(at));
        if (slot.holds_value() || slot.bytes[0] == Byte::special || slot.bytes[Frame::byte(static_cast<int>(at))] == Byte::spill)
            slot.forget_value();
        slot.bytes[Frame::byte(static_cast<int>(at))] = byte;
        slot.node = node();
        touch(number, static_cast<int>(at & ~int64_t(7)));
    }
}

bool Engine::stack_store(unsigned, const Value &base, int64_t off, unsigned size, const Value *stored) {
    Frame &frame = state_.frames[base.frame];
    const int64_t fixed = base.off + off;
    if (!base.bounds.is_known()) {
        // It may hit any of these bytes.
        const int64_t least = fixed + base.bounds.s64.least, most = fixed + base.bounds.s64.most + size;
        if (!rule(Rule::variable_stack))
            return refuse("variable stack access var_off={} off={} size={}", bits_text(base.bounds.bits), off, size);
        const bool zero = stored && stored->is_zero();
        bool kept_zero = false;
        for (int64_t at = least; at < most; ++at) {
            const Byte was = frame.byte_at(static_cast<int>(at));
            if (was == Byte::unset && !rule(Rule::unset_stack))
                return refuse("uninit stack in range of var-offset write prohibited for !root; invalid variable-offset write");
            if (was == Byte::special) {
                if (!overwrite(frame, static_cast<int>(at))) return false;
                frame.slot(static_cast<int>(at)).forget_value();
            }
            Slot &slot = frame.slot(static_cast<int>(at));
            const Byte now = zero && was == Byte::zero ? Byte::zero : Byte::some;
            kept_zero |= now == Byte::zero;
            if (was == Byte::spill) {
                if (zero && slot.value.is_zero()) {
                    kept_zero = true;
                    continue;
                }
                slot.forget_value();
            }
            slot.bytes[Frame::byte(static_cast<int>(at))] = now;
            slot.node = node(stored ? stored->node : kNoNode);
            touch(base.frame, static_cast<int>(at & ~int64_t(7)));
        }
        if (kept_zero) walk_.need(stored->node);
        return true;
    }
    const int at = static_cast<int>(fixed + static_cast<int64_t>(base.bounds.number()));
    if (stored && stored->is_pointer()) {
        if (size != 8) return refuse("invalid size of register spill");
        if (stored->sort == Sort::stack && stored->frame > base.frame)
            return refuse("cannot spill pointers to stack into stack frame of the caller");
    }
    if (frame.byte_at(at & ~7) == Byte::special) {
        if (!overwrite(frame, at)) return false;
        frame.slot(at).forget_value();
    }
    Slot &slot = frame.slot(at);
    touch(base.frame, at & ~7);
    if (stored && (at & 7) == 0 && (size == 8 || rule(Rule::small_spills))) {
        Value value = *stored;
        if (value.is_number() && size < 8) {
            if (value.bounds.u64.most >> (size * 8) != 0) value.unlink();
            value.bounds.cut_to(size, rules_);
        }
        for (unsigned i = 0; i < 8; ++i) {
            if (i < size)
                slot.bytes[i] = Byte::spill;
            else if (slot.bytes[i] == Byte::spill)
                slot.bytes[i] = Byte::some;
        }
        if (value.is_number()) value.node = node(stored->node);
        slot.node = value.node;
        slot.value = std::move(value);
        return true;
    }
    slot.forget_value();
    Byte byte = Byte::some;
    if (stored && stored->is_zero()) {
        walk_.need(stored->node);
        byte = Byte::zero;
    }
    for (unsigned i = 0; i < size; ++i) slot.bytes[Frame::byte(at) + i] = byte;
    slot.node = node(stored ? stored->node : kNoNode);
    return true;
}

bool Engine::stack_load(unsigned reg, const Value &base, int64_t off, unsigned size, int value) {
    Frame &frame = state_.frames[base.frame];
    const int64_t fixed = base.off + off;
    if (!base.bounds.is_known()) {
        if (!rule(Rule::variable_stack))
            return refuse("variable stack access var_off={} off={} size={}", bits_text(base.bounds.bits), off, size);
        if (value < 0) // an atomic operation that keeps nothing: the kernel takes it for a helper's access
            return refuse("variable offset stack pointer cannot be passed into helper function; var_off={} off={} size={}",
                          bits_text(base.bounds.bits), base.off, size);
        if (!stack_range(reg, base, size, false, false, By::instruction)) return false;
        const int64_t least = fixed + base.bounds.s64.least, most = fixed + base.bounds.s64.most + size;
        bool zero = true;
        for (int64_t at = least; at < most; ++at) zero &= frame.byte_at(static_cast<int>(at)) == Byte::zero;
        set(static_cast<unsigned>(value), zero ? known_number(0, node()) : any_number(node()));
        return true;
    }
    const int at = static_cast<int>(fixed + static_cast<int64_t>(base.bounds.number()));
    Slot &slot = frame.slot(at);
    if (slot.holds_value()) {
        const unsigned spilled = slot.value_bytes();
        if (size == 8 && spilled == 8) {
            if (value >= 0) {
                Value got = slot.value;
                if (got.is_number()) got.node = node(got.node);
                set(static_cast<unsigned>(value), std::move(got));
            }
            return true;
        }
        if (!slot.value.is_number()) return refuse("invalid size of register fill");
        if ((at & 7) == 0 && (size == spilled || (size < spilled && rule(Rule::narrow_fills)))) {
            if (value < 0) return true;
            Value got = slot.value;
            if (size < spilled && got.bounds.u64.most >> (size * 8) != 0) got.unlink();
            got.node = node(got.node);
            set(static_cast<unsigned>(value), std::move(got));
            return true;
        }
    }
    const bool forgotten = slot.holds_value() && !rule(Rule::narrow_fills); // a part of what was written
    const bool spilled_zero = slot.holds_value() && slot.value.is_zero();
    unsigned zeros = 0, spilled_bytes = 0;
    for (unsigned i = 0; i < size; ++i) {
        const Byte byte = slot.bytes[Frame::byte(at) + i];
        if ((byte == Byte::unset && !rule(Rule::unset_stack)) || byte == Byte::special)
            return refuse("invalid read from stack off {}+{} size {}", at, i, size);
        spilled_bytes += byte == Byte::spill;
        zeros += byte == Byte::zero;
    }
    if (value < 0) return true;
    if (!forgotten && (zeros == size || (spilled_zero && spilled_bytes == size))) {
        if (spilled_zero) walk_.need(slot.value.node);
        set(static_cast<unsigned>(value), known_number(0, node()));
    } else {
        set(static_cast<unsigned>(value), any_number(node(slot.node)));
    }
    return true;
}

bool Engine::stack_range(unsigned reg, const Value &base, int64_t size, bool write, bool may_be_empty, By by) {
    if (size == 0 && !may_be_empty) return refuse("invalid zero-sized read");
    if (by == By::helper && !stack_bounds(reg, base, 0, size, write, by)) return false;
    Frame &frame = state_.frames[base.frame];
    const int64_t least =
        base.off + (base.bounds.is_known() ? static_cast<int64_t>(base.bounds.number()) : base.bounds.s64.least);
    const int64_t most =
        base.off + (base.bounds.is_known() ? static_cast<int64_t>(base.bounds.number()) : base.bounds.s64.most) + size;
    for (int64_t at = least; at < most; ++at) {
        const Byte byte = frame.byte_at(static_cast<int>(at));
        if (write) {
            if (byte == Byte::special && frame.slot(static_cast<int>(at)).value.sort == Sort::dynptr)
                return refuse("potential write to dynptr at off={} disallowed", at);
            continue;
        }
        if (byte != Byte::special && (byte != Byte::unset || rule(Rule::unset_stack))) continue;
        if (base.bounds.is_known())
            return refuse("invalid{} read from stack R{} off {}+{} size {}", by == By::helper ? " indirect" : "", reg, least,
                          at - least, size);
        return refuse("invalid{} read from stack R{} var_off {}+{} size {}", by == By::helper ? " indirect" : "", reg,
                      bits_text(base.bounds.bits), at - least, size);
    }
    return true;
}

} // namespace rawbpf::inline v0::verifier
