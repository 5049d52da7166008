// The address space of an emulated program: virtual addresses, looked up in a table of 256 slots.
//
//      address   0000 0000 | ss | oo oo oo        ss: the slot, 16 MiB each; o: the offset in it
//
//      slot 0          nothing: null pointers, and those with a small offset
//           1 ... 8    the stack, a frame a slot, 512 bytes at its beginning; r10 is 512 above it
//           12, 13     maps and functions: they have an address, and nothing can be read there
//           16 ...     memory, then map values and everything else; a large object takes several slots
//
// Virtual addresses are the same in every run, tell a hostile program nothing about the machine, and fit in the 32 bits that
// struct xdp_md has for a packet's address. A lookup is a shift, a load and a comparison, for any number of objects. There is
// always a gap between two objects, so that an access that misses one slightly doesn't hit another, and the message can say
// which object it missed.
#include "runtime/emulator/memory.h"

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::emulator {

namespace {
constexpr uint64_t kSlotBytes = uint64_t{1} << kSlotBits;
std::string bytes(uint64_t n) { return format("{} byte{}", n, n == 1 ? "" : "s"); }

/// The frame that is nearest to an address of the stack, kFrames: none. Half of what is between two belongs to each.
uint32_t nearest_frame(uint64_t address) {
    if (const uint64_t slot = (address + kSlotBytes / 2) >> kSlotBits; slot >= 1 && slot <= kCallDepth)
        return static_cast<uint32_t>(slot - 1);
    constexpr uint64_t half = uint64_t{1} << (kDeepBits - 1);
    const uint64_t deep = (address + half - kDeepAddress) >> kDeepBits; // far beyond the last one where it is below
    return deep < kFrames - kCallDepth ? static_cast<uint32_t>(kCallDepth + deep) : kFrames;
}
} // namespace

Memory::Memory() {
    for (uint32_t n = 0; n < kCallDepth; ++n) slots_[1 + n].bytes = stack_[n];
}

Result<uint64_t> Memory::add(Object object) {
    const uint64_t slots = object.size / kSlotBytes + 1; // there is always a gap behind it
    const uint64_t first = next_ >> kSlotBits;
    if (object.size > kSlots * kSlotBytes || first + slots > kSlots)
        return fail(Errc::no_memory, "{}: {} don't fit; the emulator has 4 GiB of addresses for all maps", object.name,
                    bytes(object.size));
    object.address = next_;
    if (!object.element && !object.part)
        for (uint64_t n = 0; n < slots; ++n) {
            Slot &slot = slots_[first + n];
            slot.bytes = object.bytes + n * kSlotBytes;
            slot.readable = object.size - n * kSlotBytes;
            slot.writable = object.writable ? slot.readable : 0;
        }
    next_ += slots * kSlotBytes;
    objects_.push_back(std::move(object));
    return objects_.back().address;
}

const Object *Memory::object_at(uint64_t address) const {
    const Object *found = nullptr;
    for (const Object &object : objects_)
        if (object.address <= address) found = &object;
    return found;
}

uint8_t *Memory::resolve(uint64_t address, uint64_t size, bool write) const {
    if (address < kFirstAddress) {
        const uint32_t n = nearest_frame(address);
        if (n < kCallDepth || n == kFrames || !frame_alive(n)) return nullptr; // the first ones have slots
        const uint64_t at = address - frame_address(n);                        // huge where it is before the frame
        return size > kFrameBytes || at > kFrameBytes - size ? nullptr : const_cast<uint8_t *>(stack_[n]) + at;
    }
    const Object *object = object_at(address);
    if (!object || (write && !object->writable)) return nullptr;
    const uint64_t offset = address - object->address;
    if (size > object->size || offset > object->size - size) return nullptr;
    if (object->element) {
        const uint64_t at = offset % object->spread;
        return at + size > object->element ? nullptr : object->bytes + offset / object->spread * object->stride + at;
    }
    uint64_t begin = 0, end = 0;
    if (object->part && (!object->part(object->context, offset, begin, end) || offset + size > end)) return nullptr;
    return object->bytes + offset;
}

std::string Memory::miss(uint64_t address, uint64_t size, bool write) const {
    auto past = [&](std::string_view name, uint64_t offset, uint64_t end) { // an access that begins in or behind something
        if (offset < end) return format("{} past the end of {}, which has {}", bytes(offset + size - end), name, bytes(end));
        const std::string distance = offset == end ? "right" : bytes(offset - end);
        return format("{} behind the end of {}, which has {}", distance, name, bytes(end));
    };
    auto before = [&](std::string_view name, uint64_t begin) {
        return format("{} before the start of {}", bytes(begin - address), name);
    };
    if (address < kSlotBytes / 2) return address == 0 ? std::string("a null pointer") : format("a null pointer plus {}", address);
    if (static_cast<int64_t>(address) < 0 && address > -(kSlotBytes / 2)) return format("a null pointer minus {}", -address);
    if (const uint32_t near = nearest_frame(address); near != kFrames) {
        const uint64_t begin = frame_address(near);
        const std::string name = format("the stack of frame {}", near);
        if (!frame_alive(near)) return format("{}, which doesn't exist {}", name, near == 0 ? "now" : "any more or yet");
        return address < begin ? before(name, begin) : past(name, address - begin, kFrameBytes);
    }
    if (address >> kSlotBits == kHandleAddress >> kSlotBits)
        return "a map itself, which a program can't access; bpf_map_lookup_elem() gives the address of a value";
    if (address >> kSlotBits == kCodeAddress >> kSlotBits) return "a function, which a program can't read or write";
    const Object *below = object_at(address);
    const Object *above = nullptr;
    for (const Object &object : objects_)
        if (object.address > address && !above) above = &object;
    if (below && address - below->address < below->size + kSlotBytes / 2) {
        const uint64_t offset = address - below->address;
        const bool inside = offset < below->size && size <= below->size - offset;
        if (inside && write && !below->writable) return format("{} is read-only", below->name);
        if (inside && below->element) {
            const uint64_t at = offset % below->spread;
            return past(format("element {} of {}", offset / below->spread, below->name), at, below->element);
        }
        uint64_t begin = 0, end = 0;
        if (inside && below->part) {
            if (!below->part(below->context, offset, begin, end)) return format("a part of {} that isn't in use", below->name);
            return past(format("the record in {}", below->name), offset - begin, end - begin);
        }
        return past(below->name, offset, below->size);
    }
    if (above && above->address - address <= kSlotBytes / 2) return before(above->name, above->address);
    return "the program has no memory there";
}

uint64_t Memory::address_of(const uint8_t *at, uint64_t size) const {
    const auto *stacks = reinterpret_cast<const uint8_t *>(&stack_);
    if (at >= stacks && at < stacks + sizeof stack_) {
        const auto offset = static_cast<uint64_t>(at - stacks);
        return frame_address(static_cast<uint32_t>(offset / kFrameBytes)) + offset % kFrameBytes;
    }
    for (const Object &object : objects_) {
        const uint64_t extent = object.element ? object.size / object.spread * object.stride : object.size;
        if (at < object.bytes || at + size > object.bytes + extent) continue;
        const auto offset = static_cast<uint64_t>(at - object.bytes);
        if (!object.element) return object.address + offset;
        return object.address + offset / object.stride * object.spread + offset % object.stride;
    }
    return 0;
}

std::string Memory::name(uint64_t address) const {
    if (const uint32_t n = nearest_frame(address); n != kFrames && frame_alive(n) && address - frame_address(n) <= kFrameBytes) {
        const uint64_t offset = address - frame_address(n);
        return offset == kFrameBytes ? format("fp{}", n) : format("fp{}-{}", n, kFrameBytes - offset);
    }
    const Object *object = address >= kFirstAddress ? object_at(address) : nullptr;
    if (!object || address - object->address > object->size) return {};
    const uint64_t at = address - object->address;
    if (object->element) {
        const uint64_t n = at / object->spread, in = at % object->spread;
        return in ? format("{}[{}]+{}", object->name, n, in) : format("{}[{}]", object->name, n);
    }
    return at ? format("{}+{}", object->name, at) : object->name;
}

} // namespace rawbpf::inline v0::emulator
