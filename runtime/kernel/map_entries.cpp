// Reads maps whole. The kernel copies many entries in one call since 5.6; what it needs to go on is a position, which is a
// bucket's number for hashes and an index for arrays:
//
//      lookup_batch(in: nothing)   ->  keys, values, position
//      lookup_batch(in: position)  ->  keys, values, position   ...  ENOENT: that was the last
//
// ENOSPC says that one bucket holds more than there is room for: then the room grows. Older kernels, and map types without such
// a command (tries before 5.13, stack traces), are read key after key, with two calls an entry.
//
// Sources: kernel/bpf/syscall.c (generic_map_lookup_batch), kernel/bpf/hashtab.c (__htab_map_lookup_and_delete_batch).
#include "runtime/kernel/map_entries.h"

#include <algorithm>
#include <cerrno>

#include <linux/bpf.h>

#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0 {
namespace {

using See = std::function<Result<bool>(const Map::Entries &)>;

constexpr size_t kPortion = 256 << 10; // bytes

// A queue or stack has no keys; taking everything out is the only way to see it.
Result<void> drain_queue(const Map &map, const See &see) {
    Map::Entries out;
    std::vector<std::byte> value(map.lookup_size());
    for (uint32_t n = 0; n < map.max_entries(); ++n) {
        Result<void> r = sys::map_lookup_and_delete_elem(map.fd(), nullptr, value.data());
        if (!r && r.error().os == ENOENT) break;
        if (!r) return Unexpected(std::move(r).error());
        out.values.insert(out.values.end(), value.begin(), value.end());
        ++out.count;
        if (out.values.size() < kPortion) continue;
        if (!TRY(see(out))) return {};
        out = {};
    }
    if (out.count != 0) (void)TRY(see(out));
    return {};
}

// Key after key. When the current key is deleted under our hands the kernel starts over from the first, so the number of
// steps is bounded by the map's size instead of by its end.
Result<void> read_one_by_one(const Map &map, bool and_delete, const See &see) {
    Map::Entries out;
    std::vector<std::byte> key(map.key_size()), next(map.key_size()), value(map.lookup_size());
    bool first = true;
    for (uint64_t steps = 0; steps < uint64_t{map.max_entries()} * (and_delete ? 2 : 1); ++steps) {
        Result<void> r = sys::map_get_next_key(map.fd(), first ? nullptr : key.data(), next.data());
        if (!r && r.error().os == ENOENT) break;
        if (!r) return Unexpected(std::move(r).error());
        Result<void> found = sys::map_lookup_elem(map.fd(), next.data(), value.data());
        if (!found && found.error().os != ENOENT) return Unexpected(std::move(found).error());
        if (found) {
            out.keys.insert(out.keys.end(), next.begin(), next.end());
            out.values.insert(out.values.end(), value.begin(), value.end());
            ++out.count;
        }
        if (and_delete) { // what is first now is gone afterwards, so the next one is first again
            Result<void> gone = sys::map_delete_elem(map.fd(), next.data());
            if (!gone && gone.error().os != ENOENT) return Unexpected(std::move(gone).error());
        } else {
            key.swap(next);
            first = false;
        }
        if (out.keys.size() + out.values.size() < kPortion) continue;
        if (!TRY(see(out))) return {};
        out.keys.clear();
        out.values.clear();
        out.count = 0;
    }
    if (out.count != 0) (void)TRY(see(out));
    return {};
}

bool no_such_command(int os) { return os == EINVAL || os == EOPNOTSUPP || os == 524 /* the kernel's ENOTSUPP */; }

/// Whether this map has the command; then `see` has seen all.
Result<bool> read_batches(const Map &map, bool and_delete, const See &see) {
    const size_t key_size = map.key_size(), value_size = map.lookup_size();
    size_t room =
        std::clamp<size_t>(kPortion / std::max<size_t>(key_size + value_size, 1), 16, std::max<size_t>(map.max_entries(), 16));
    std::vector<std::byte> position(std::max<size_t>(key_size, 4));
    std::vector<std::byte> keys(room * key_size), values(room * value_size);
    Map::Entries out;
    bool first = true;
    for (;;) {
        keys.resize(room * key_size);
        values.resize(room * value_size);
        Result<sys::Batch> batch = sys::map_lookup_batch(map.fd(), first ? nullptr : position.data(), position.data(),
                                                         keys.data(), values.data(), static_cast<uint32_t>(room), and_delete);
        if (!batch && batch.error().os == ENOSPC && room < (1U << 24)) { // one bucket holds more than there is room for
            room *= 2;
            continue;
        }
        if (!batch && first && no_such_command(batch.error().os)) return false;
        if (!batch) return Unexpected(std::move(batch).error());
        first = false;
        out.count = std::min<size_t>(batch->count, room);
        keys.resize(out.count * key_size);
        values.resize(out.count * value_size);
        out.keys.swap(keys);
        out.values.swap(values);
        if (out.count != 0 && !TRY(see(out))) return true;
        out.keys.swap(keys);
        out.values.swap(values);
        if (batch->end) return true;
    }
}

} // namespace

Result<void> each_entry(const Map &map, bool and_delete, const See &see) {
    if (map.type() == BPF_MAP_TYPE_QUEUE || map.type() == BPF_MAP_TYPE_STACK) {
        if (!and_delete)
            return fail(Errc::invalid_argument, "map {}: a queue or stack can only be read by removing its elements", map.name());
        TRY_IN(drain_queue(map, see), "reading map {}", map.name());
        return {};
    }
    if (!TRY_IN(read_batches(map, and_delete, see), "reading map {}", map.name()))
        TRY_IN(read_one_by_one(map, and_delete, see), "reading map {}", map.name());
    return {};
}

Result<Map::Entries> Map::read_all(bool and_delete) const {
    Entries out;
    TRY(each_entry(*this, and_delete, [&](const Entries &some) -> Result<bool> {
        out.keys.insert(out.keys.end(), some.keys.begin(), some.keys.end());
        out.values.insert(out.values.end(), some.values.begin(), some.values.end());
        out.count += some.count;
        return true;
    }));
    return out;
}

} // namespace rawbpf::inline v0
