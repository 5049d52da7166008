// The helpers that programs use most, with the kernel's results, in user space.
//
// A helper gets the registers and returns r0. What the verifier would have refused (a map that is none, a buffer that ends early)
// is a fault, which names the argument; what can go wrong in a verified program is an errno, as in the kernel. There is one
// CPU, number 0; random numbers are the same in every run; times, pid, uid and comm are this process's. bpf_probe_read*() knows
// the memory that the program has and nothing else: everything else is EFAULT.
//
// To add one: its function, and a line in the table at the end.
#include <algorithm>
#include <cerrno>

#include "asm/helpers.h"
#include "asm/print.h"
#include "runtime/emulator/machine.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {

using R = const uint64_t *;

uint64_t errno_of(int64_t result) { return static_cast<uint64_t>(result); }

/// The map in r[reg], if it is of a kind that can do this.
EmulatedMap *map_of(Machine &m, int reg, std::initializer_list<MapKind> kinds) {
    EmulatedMap *map = m.map_in(reg);
    if (!map) return nullptr;
    for (MapKind kind : kinds)
        if (map->kind() == kind) return map;
    m.fault(format("map {} is a {}: {}", map->name(), map_kind_name(map->type()),
                   map->kind() == MapKind::unknown ? "the emulator doesn't have those" : "this helper isn't for those"));
    return nullptr;
}
EmulatedMap *table_of(Machine &m, int reg) { return map_of(m, reg, {MapKind::array, MapKind::hash, MapKind::trie}); }

// ---- maps

uint64_t map_lookup_elem(Machine &m, R) {
    EmulatedMap *map = map_of(m, 1, {MapKind::array, MapKind::hash, MapKind::trie, MapKind::maps, MapKind::map_set});
    const uint8_t *key = map ? m.buffer(2, map->key_size(), false, "the key") : nullptr;
    return key ? map->lookup(key) : 0;
}
uint64_t map_lookup_percpu_elem(Machine &m, R r) { return static_cast<uint32_t>(r[3]) == 0 ? map_lookup_elem(m, r) : 0; }
uint64_t map_update_elem(Machine &m, R r) {
    EmulatedMap *map = table_of(m, 1);
    const uint8_t *key = map ? m.buffer(2, map->key_size(), false, "the key") : nullptr;
    const uint8_t *value = key ? m.buffer(3, map->value_size(), false, "the value") : nullptr;
    return value ? errno_of(map->update(key, value, r[4])) : 0;
}
uint64_t map_delete_elem(Machine &m, R) {
    EmulatedMap *map = table_of(m, 1);
    const uint8_t *key = map ? m.buffer(2, map->key_size(), false, "the key") : nullptr;
    return key ? errno_of(map->erase(key)) : 0;
}
uint64_t map_push_elem(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapKind::queue, MapKind::stack, MapKind::bloom});
    const uint8_t *value = map ? m.buffer(2, map->value_size(), false, "the value") : nullptr;
    if (!value) return 0;
    return errno_of(map->kind() == MapKind::bloom ? map->add(value, r[3]) : map->push(value, r[3]));
}
uint64_t take_elem(Machine &m, bool remove) {
    EmulatedMap *map = map_of(m, 1, {MapKind::queue, MapKind::stack});
    uint8_t *value = map ? m.buffer(2, map->value_size(), true, "the value") : nullptr;
    return value ? errno_of(map->pop(value, remove)) : 0;
}
uint64_t map_pop_elem(Machine &m, R) { return take_elem(m, true); }
uint64_t map_peek_elem(Machine &m, R) {
    EmulatedMap *map = m.map_in(1);
    if (!map || map->kind() != MapKind::bloom) return map ? take_elem(m, false) : 0;
    const uint8_t *value = m.buffer(2, map->value_size(), false, "the value"); // which is asked for, not given
    return value ? errno_of(map->may_contain(value)) : 0;
}

uint64_t for_each_map_elem(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapKind::array, MapKind::hash});
    if (!map) return 0;
    return r[4] ? errno_of(-EINVAL) : m.call_back(Callback::entries, 2, r[3], 0, map);
}
uint64_t loop(Machine &m, R r) {
    const auto count = static_cast<uint32_t>(r[1]);
    if (r[4]) return errno_of(-EINVAL);
    return count > (8U << 20) ? errno_of(-E2BIG) : m.call_back(Callback::loop, 2, r[3], count, nullptr);
}
uint64_t tail_call(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 2, {MapKind::programs});
    if (map && m.tail_call(*map, static_cast<uint32_t>(r[3]))) return 0;
    return errno_of(-ENOENT);
}

// ---- out of the program

uint64_t ringbuf_output(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapKind::ring});
    const uint8_t *data = map ? m.buffer(2, r[3], false, "the record") : nullptr;
    return data ? errno_of(map->output(data, r[3])) : 0;
}
uint64_t ringbuf_reserve(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapKind::ring});
    return map && r[3] == 0 ? map->reserve(r[2]) : 0;
}
uint64_t release(Machine &m, R r, bool discard) {
    for (const auto &map : m.maps())
        if (map->kind() == MapKind::ring && map->release(r[1], discard)) return 0;
    return m.fault(format("r1 = {:#x} is no record that is reserved", r[1]));
}
uint64_t ringbuf_submit(Machine &m, R r) { return release(m, r, false); }
uint64_t ringbuf_discard(Machine &m, R r) { return release(m, r, true); }
uint64_t ringbuf_query(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapKind::ring});
    return map ? map->query(r[2]) : 0;
}
uint64_t perf_event_output(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 2, {MapKind::records});
    const uint8_t *data = map ? m.buffer(4, r[5], false, "the record") : nullptr;
    if (data) m.record({reinterpret_cast<const char *>(data), r[5]});
    return 0;
}

/// A format string in memory, without the zero at its end.
bool format_in(Machine &m, int reg, uint64_t size, std::string_view &out) {
    const uint8_t *at = m.buffer(reg, size, false, "the format");
    if (!at) return false;
    out = {reinterpret_cast<const char *>(at), strnlen(reinterpret_cast<const char *>(at), size)};
    return true;
}
bool numbers_in(Machine &m, int reg, uint64_t size, std::vector<uint64_t> &out) {
    if (size == 0) return true;
    const uint8_t *at = m.buffer(reg, size, false, "the arguments");
    if (!at) return false;
    out.resize(size / 8);
    if (!out.empty()) std::memcpy(out.data(), at, out.size() * 8);
    return true;
}
uint64_t print(Machine &m, std::string text) {
    if (!text.ends_with('\n')) text += '\n'; // as the trace pipe does
    m.print(text);
    return text.size();
}
uint64_t trace_printk(Machine &m, R r) {
    std::string_view text;
    if (!format_in(m, 1, static_cast<uint32_t>(r[2]), text)) return 0;
    return print(m, bpf_printf(m, text, std::span(r + 3, 3)));
}
uint64_t trace_vprintk(Machine &m, R r) {
    std::string_view text;
    std::vector<uint64_t> numbers;
    if (!format_in(m, 1, static_cast<uint32_t>(r[2]), text) || !numbers_in(m, 3, static_cast<uint32_t>(r[4]), numbers)) return 0;
    return print(m, bpf_printf(m, text, numbers));
}
uint64_t snprintf(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    const char *zero = reinterpret_cast<const char *>(m.memory().find(r[3], 1, false));
    if (!zero) return m.fault(format("can't read the format at r3 = {:#x}: {}", r[3], m.memory().miss(r[3], 1, false)));
    uint64_t length = 1;
    while (m.memory().find(r[3], length, false) && zero[length - 1]) ++length;
    std::string_view text;
    std::vector<uint64_t> numbers;
    if (!format_in(m, 3, length, text) || !numbers_in(m, 4, static_cast<uint32_t>(r[5]), numbers)) return 0;
    const std::string out = bpf_printf(m, text, numbers);
    uint8_t *into = size ? m.buffer(1, size, true, "the text") : nullptr;
    if (into) {
        const size_t fits = std::min<size_t>(out.size(), size - 1);
        std::memcpy(into, out.data(), fits);
        into[fits] = 0;
    }
    return out.size() + 1;
}

// ---- memory

uint64_t probe_read(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    uint8_t *into = m.buffer(1, size, true, "what was read");
    if (!into) return 0;
    if (const uint8_t *from = m.memory().find(r[3], size, false)) {
        std::memmove(into, from, size);
        return 0;
    }
    std::memset(into, 0, size);
    return errno_of(-EFAULT);
}
uint64_t probe_read_str(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    uint8_t *into = m.buffer(1, size, true, "the string");
    if (!into || size == 0) return 0;
    for (uint32_t n = 0; n < size; ++n) {
        const uint8_t *from = m.memory().find(r[3] + n, 1, false);
        if (!from) {
            std::memset(into, 0, size);
            return errno_of(-EFAULT);
        }
        into[n] = n + 1 == size ? 0 : *from;
        if (!into[n]) return n + 1;
    }
    return 0;
}
uint64_t skb_load_bytes(Machine &m, R r) {
    const auto offset = static_cast<uint32_t>(r[2]), size = static_cast<uint32_t>(r[4]);
    uint8_t *into = m.buffer(3, size, true, "what was read");
    if (!into) return 0;
    const std::span<uint8_t> packet = m.packet();
    if (uint64_t{offset} + size > packet.size()) {
        std::memset(into, 0, size);
        return errno_of(-EFAULT);
    }
    std::memmove(into, packet.data() + offset, size);
    return 0;
}
uint64_t strncmp(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    const uint8_t *first = m.buffer(1, size, false, "the first string");
    if (!first) return 0;
    for (uint32_t n = 0; n < size; ++n) {
        const uint8_t *second = m.memory().find(r[3] + n, 1, false);
        if (!second)
            return m.fault(format("can't read the second string at {:#x}: {}", r[3] + n, m.memory().miss(r[3] + n, 1, false)));
        if (first[n] != *second) return errno_of(first[n] < *second ? -1 : 1);
        if (!first[n]) break;
    }
    return 0;
}
uint64_t number_in(Machine &m, R r, bool is_signed) {
    const uint8_t *text = m.buffer(1, r[2], false, "the text");
    uint8_t *into = text ? m.buffer(4, 8, true, "the number") : nullptr;
    if (!into) return 0;
    const auto base = static_cast<int>(r[3] & 31);
    if (r[3] & ~uint64_t{31} || (base != 0 && base != 8 && base != 10 && base != 16)) return errno_of(-EINVAL);
    const std::string copy(reinterpret_cast<const char *>(text), strnlen(reinterpret_cast<const char *>(text), r[2]));
    char *end = nullptr;
    errno = 0;
    const uint64_t value = is_signed ? static_cast<uint64_t>(std::strtoll(copy.c_str(), &end, base))
                                     : static_cast<uint64_t>(std::strtoull(copy.c_str(), &end, base));
    if (end == copy.c_str()) return errno_of(-EINVAL);
    if (errno == ERANGE) return errno_of(-ERANGE);
    std::memcpy(into, &value, sizeof value);
    return static_cast<uint64_t>(end - copy.c_str());
}
uint64_t strtol(Machine &m, R r) { return number_in(m, r, true); }
uint64_t strtoul(Machine &m, R r) { return number_in(m, r, false); }

// ---- who and when

uint64_t ktime_get_ns(Machine &, R) { return sys::monotonic_ns(); }
uint64_t ktime_get_boot_ns(Machine &, R) { return sys::boottime_ns(); }
uint64_t ktime_get_tai_ns(Machine &, R) { return sys::realtime_ns(); }
uint64_t jiffies64(Machine &, R) { return sys::monotonic_ns() / 4'000'000; } // 250 a second
uint64_t get_prandom_u32(Machine &m, R) { return m.next_random(); }
uint64_t zero(Machine &, R) { return 0; }
uint64_t get_current_pid_tgid(Machine &, R) {
    const auto pid = static_cast<uint64_t>(sys::own_pid());
    return pid << 32 | pid;
}
uint64_t get_current_uid_gid(Machine &, R) { // the real ones, which /proc lists first
    const int pid = sys::own_pid();
    return sys::status_number(pid, "Gid").value_or(0) << 32 | sys::status_number(pid, "Uid").value_or(0);
}
uint64_t get_current_comm(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    uint8_t *into = m.buffer(1, size, true, "the name");
    if (!into) return 0;
    std::memset(into, 0, size);
    std::string name = sys::read_file("/proc/self/comm").value_or(std::string());
    if (name.ends_with('\n')) name.pop_back();
    if (size) std::copy_n(name.data(), std::min<size_t>(name.size(), size - 1), into); // what follows is 0
    return 0;
}

struct Row {
    uint16_t id;
    Helper helper;
};
#define ROW(name)                                                                                                                \
    { rawbpf::helper::name.id, name }
#define ROW_AS(name, function)                                                                                                   \
    { rawbpf::helper::name.id, function }
constexpr Row kRows[] = {
    ROW(map_lookup_elem),
    ROW(map_update_elem),
    ROW(map_delete_elem),
    ROW(map_push_elem),
    ROW(map_pop_elem),
    ROW(map_peek_elem),
    ROW(map_lookup_percpu_elem),
    ROW(for_each_map_elem),
    ROW(loop),
    ROW(tail_call),
    ROW(ringbuf_output),
    ROW(ringbuf_reserve),
    ROW(ringbuf_submit),
    ROW(ringbuf_discard),
    ROW(ringbuf_query),
    ROW(perf_event_output),
    ROW(trace_printk),
    ROW(trace_vprintk),
    ROW(snprintf),
    ROW(probe_read),
    ROW_AS(probe_read_kernel, probe_read),
    ROW_AS(probe_read_user, probe_read),
    ROW(probe_read_str),
    ROW_AS(probe_read_kernel_str, probe_read_str),
    ROW_AS(probe_read_user_str, probe_read_str),
    ROW(skb_load_bytes),
    ROW(strncmp),
    ROW(strtol),
    ROW(strtoul),
    ROW(ktime_get_ns),
    ROW(ktime_get_boot_ns),
    ROW_AS(ktime_get_coarse_ns, ktime_get_ns),
    ROW(ktime_get_tai_ns),
    ROW(jiffies64),
    ROW(get_prandom_u32),
    ROW_AS(get_smp_processor_id, zero),
    ROW_AS(get_numa_node_id, zero),
    ROW_AS(spin_lock, zero), // there is one thread
    ROW_AS(spin_unlock, zero),
    ROW(get_current_pid_tgid),
    ROW(get_current_uid_gid),
    ROW(get_current_comm),
    ROW(timer_init),
    ROW(timer_set_callback),
    ROW(timer_start),
    ROW(timer_cancel),
};
constexpr size_t kHelpers = 212;
struct ByNumber {
    Helper of[kHelpers] = {};
};
constexpr ByNumber kByNumber = [] {
    ByNumber out;
    for (const Row &row : kRows) out.of[row.id] = row.helper;
    return out;
}();

} // namespace

Helper find_emulated(uint64_t helper) { return helper < kHelpers ? kByNumber.of[helper] : nullptr; }

} // namespace rawbpf::inline v0::emulator
