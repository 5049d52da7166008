#include "programs/exec/contents.h"

#include <cstring>
#include <memory>

#include "runtime/base/format.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::exec {
namespace {

constexpr size_t kMostEntries = 256; // of one map
constexpr size_t kMostBytes = 32;

std::string_view text_of(const uint8_t *bytes, size_t size) { return {reinterpret_cast<const char *>(bytes), size}; }

MapView records_of(const emulator::EmulatedMap &map) {
    MapView out;
    size_t count = 0;
    map.each_record([&](std::string_view record) {
        if (++count <= kMostEntries) out.entries.push_back({{}, std::string(record)});
    });
    out.summary = format("{} record{}", count, count == 1 ? "" : "s");
    return out;
}

MapView entries_of(emulator::EmulatedMap &map, const Stepper &stepper) {
    MapView out;
    const bool array = map.kind() == MapEngine::array;
    size_t entries = 0, zero = 0;
    for (uint32_t place = map.next_entry(0); place < map.max_entries(); place = map.next_entry(place + 1)) {
        uint32_t index = 0;
        const uint8_t *key = map.key_at(place, index), *value = map.value_at(place);
        bool shown = !array || map.max_entries() == 1, changed = false;
        for (uint32_t n = 0; n < map.value_size(); ++n) {
            shown |= value[n] != 0;
            changed |= changed_byte(stepper, map.value_address(place) + n);
        }
        ++entries;
        if (!shown && !changed) {
            ++zero;
            continue;
        }
        if (entries - zero > kMostEntries) continue;
        out.entries.push_back({array ? format("{}", index) : some_bytes(text_of(key, map.key_size())),
                               std::string(text_of(value, map.value_size())), changed});
    }
    out.summary =
        format("{} of {} entries{}", entries, map.max_entries(), zero ? format(", {} of them zero", zero) : std::string());
    return out;
}

} // namespace

bool changed_register(const Stepper &stepper, int reg) {
    for (const StepChange &change : stepper.changes())
        if (change.reg == reg) return true;
    return false;
}
bool changed_byte(const Stepper &stepper, uint64_t address) {
    for (const StepChange &change : stepper.changes())
        if (change.reg < 0 && address >= change.address && address < change.address + change.after.size()) return true;
    return false;
}

std::string some_bytes(std::string_view bytes) {
    const std::string out = hex_text(bytes.substr(0, kMostBytes), " ");
    return bytes.size() > kMostBytes ? out + " ..." : out;
}

std::vector<StackSlot> stack_slots(const Stepper &stepper, Knowledge *knowledge) {
    const uint32_t depth = stepper.machine().cpu().depth;
    const uint8_t *bytes = stepper.machine().memory().frame(depth);
    const uint64_t address = emulator::frame_address(depth);
    std::vector<StackSlot> out;
    for (int offset = -8; offset >= -int{emulator::kFrameBytes}; offset -= 8) {
        const auto at = static_cast<size_t>(int{emulator::kFrameBytes} + offset);
        uint64_t number = 0;
        std::memcpy(&number, bytes + at, sizeof number);
        StackSlot slot;
        for (size_t n = 0; n < 8; ++n)
            if (changed_byte(stepper, address + at + n)) slot.changed = static_cast<uint8_t>(slot.changed | 1U << n);
        if (knowledge) slot.known = knowledge->of_slot(offset);
        if (number == 0 && !slot.changed && slot.known.empty()) continue;
        slot.offset = offset;
        slot.bytes = text_of(bytes + at, 8);
        slot.value = value_text(stepper.machine(), number);
        out.push_back(std::move(slot));
    }
    return out;
}

std::vector<MapView> map_views(const Stepper &stepper) {
    std::vector<MapView> out;
    for (const std::unique_ptr<emulator::EmulatedMap> &map : stepper.machine().maps()) {
        MapView view;
        switch (map->kind()) {
        case MapEngine::ring:
        case MapEngine::queue:
        case MapEngine::stack: view = records_of(*map); break;
        case MapEngine::array:
        case MapEngine::hash:
        case MapEngine::trie: view = entries_of(*map, stepper); break;
        default: view.summary = "not shown";
        }
        view.name = map->name();
        out.push_back(std::move(view));
    }
    return out;
}

std::vector<MemoryView> memory_views(const Stepper &stepper) {
    std::vector<MemoryView> out; // of several runs the last one's
    for (const emulator::Object &object : stepper.machine().memory().objects())
        if (object.name == "memory" || object.name == "the packet")
            out = {{object.name == "memory" ? "memory" : "packet",
                    object.address,
                    {object.bytes, static_cast<size_t>(object.size)}}};
    return out;
}

} // namespace rawbpf::inline v0::exec
