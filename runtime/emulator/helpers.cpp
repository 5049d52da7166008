// The helpers that programs use most, with the kernel's results, in user space.
//
// A helper gets the registers and returns r0. What the verifier would refuse (a map argument that is no map, a buffer that is
// too short) is a fault, which names the argument; what can go wrong in a verified program is an errno, as in the kernel.
// There is one CPU, number 0; random numbers are the same in every run; times, pid, uid and comm are this process's.
// bpf_probe_read*() can read only the program's own memory; every other address is EFAULT.
//
// To add a helper, write its function and add a line in the table at the end.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "asm/helpers.h"
#include "asm/print.h"
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/process.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {

using R = const uint64_t *;
constexpr uint64_t kMostPrintArguments = 12; // MAX_BPRINTF_VARARGS
constexpr size_t kPrintBuffer = 1024;        // MAX_BPRINTF_BUF

uint64_t errno_of(int64_t result) { return static_cast<uint64_t>(result); }

/// The map in r[reg], if it is of a kind that can do this.
EmulatedMap *map_of(Machine &m, int reg, std::initializer_list<MapEngine> kinds) {
    EmulatedMap *map = m.map_in(reg);
    if (!map) return nullptr;
    for (MapEngine kind : kinds)
        if (map->kind() == kind) return map;
    m.fault(format("map {} is a {}: {}", map->name(), map_kind_name(map->type()),
                   map->kind() == MapEngine::unknown ? "the emulator doesn't have maps of this type"
                                                     : "this helper doesn't take maps of this type"));
    return nullptr;
}
EmulatedMap *table_of(Machine &m, int reg) { return map_of(m, reg, {MapEngine::array, MapEngine::hash, MapEngine::trie}); }

// ---- maps

uint64_t map_lookup_elem(Machine &m, R) {
    EmulatedMap *map = map_of(m, 1, {MapEngine::array, MapEngine::hash, MapEngine::trie, MapEngine::maps, MapEngine::map_set});
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
    EmulatedMap *map = map_of(m, 1, {MapEngine::queue, MapEngine::stack, MapEngine::bloom});
    const uint8_t *value = map ? m.buffer(2, map->value_size(), false, "the value") : nullptr;
    if (!value) return 0;
    return errno_of(map->kind() == MapEngine::bloom ? map->add(value, r[3]) : map->push(value, r[3]));
}
uint64_t take_elem(Machine &m, bool remove) {
    EmulatedMap *map = map_of(m, 1, {MapEngine::queue, MapEngine::stack});
    uint8_t *value = map ? m.buffer(2, map->value_size(), true, "the value") : nullptr;
    return value ? errno_of(map->pop(value, remove)) : 0;
}
uint64_t map_pop_elem(Machine &m, R) { return take_elem(m, true); }
uint64_t map_peek_elem(Machine &m, R) {
    EmulatedMap *map = m.map_in(1);
    if (!map || map->kind() != MapEngine::bloom) return map ? take_elem(m, false) : 0;
    const uint8_t *value = m.buffer(2, map->value_size(), false, "the value"); // which is asked for, not given
    return value ? errno_of(map->may_contain(value)) : 0;
}

uint64_t for_each_map_elem(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapEngine::array, MapEngine::hash});
    if (!map) return 0;
    return r[4] ? errno_of(-EINVAL) : m.call_back(Callback::entries, 2, r[3], 0, map);
}
uint64_t loop(Machine &m, R r) {
    if (r[4]) return errno_of(-EINVAL);
    if (r[1] > (8U << 20)) return errno_of(-E2BIG); // all 64 bits, as where the kernel has the loop in line
    return m.call_back(Callback::loop, 2, r[3], static_cast<uint32_t>(r[1]), nullptr);
}
uint64_t tail_call(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 2, {MapEngine::programs});
    if (map && m.tail_call(*map, static_cast<uint32_t>(r[3]))) return 0;
    return errno_of(-ENOENT);
}

// ---- out of the program

uint64_t ringbuf_output(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapEngine::ring});
    const uint8_t *data = map ? m.buffer(2, r[3], false, "the record") : nullptr;
    if (!data) return 0;
    return errno_of(r[4] & ~uint64_t{BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP} ? -EINVAL : map->output(data, r[3]));
}
uint64_t ringbuf_reserve(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapEngine::ring});
    if (map && map->records_held() == kMostOpenRecords)
        return m.fault(format("{} records of map {} are reserved at the same time, and the emulator keeps no more",
                              kMostOpenRecords, map->name()));
    return map && r[3] == 0 ? map->reserve(r[2]) : 0;
}
uint64_t release(Machine &m, R r, bool discard) {
    for (const auto &map : m.maps())
        if (map->kind() == MapEngine::ring && map->release(r[1], discard)) return 0;
    return m.fault(format("r1 = {:#x} isn't the address of a reserved record", r[1]));
}
uint64_t ringbuf_submit(Machine &m, R r) { return release(m, r, false); }
uint64_t ringbuf_discard(Machine &m, R r) { return release(m, r, true); }
uint64_t ringbuf_query(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 1, {MapEngine::ring});
    return map ? map->query(r[2]) : 0;
}
uint64_t perf_event_output(Machine &m, R r) {
    EmulatedMap *map = map_of(m, 2, {MapEngine::records});
    const uint8_t *data = map ? m.buffer(4, r[5], false, "the record") : nullptr;
    if (!data) return 0;
    const uint64_t index = r[3] & BPF_F_INDEX_MASK;
    if (r[3] & ~BPF_F_INDEX_MASK) return errno_of(-EINVAL);
    if (index != BPF_F_CURRENT_CPU && map->max_entries() && index >= map->max_entries()) return errno_of(-E2BIG);
    return errno_of(m.record({reinterpret_cast<const char *>(data), static_cast<size_t>(r[5])}) ? 0 : -ENOSPC);
}

/// A format, with the zero that ends it, if there is one. False: a fault.
bool format_in(Machine &m, int reg, uint64_t size, std::string_view &out) {
    const uint8_t *at = m.buffer(reg, size, false, "the format");
    if (!at) return false;
    const char *text = reinterpret_cast<const char *>(at);
    const size_t length = strnlen(text, size);
    out = {text, length + (length < size)};
    return true;
}
/// The arguments of a format, `size` bytes of them. False: a fault, or none that the kernel takes, with its answer.
bool numbers_in(Machine &m, int reg, uint64_t size, std::vector<uint64_t> &out, uint64_t &answer) {
    answer = 0;
    if (size % 8 || size > kMostPrintArguments * 8 || (size && !m.register_value(reg))) return answer = errno_of(-EINVAL), false;
    if (size == 0) return true;
    const uint8_t *at = m.buffer(reg, size, false, "the arguments");
    if (!at) return false;
    out.resize(size / 8);
    std::memcpy(out.data(), at, size);
    return true;
}
uint64_t print(Machine &m, std::string_view format_text, std::span<const uint64_t> arguments) {
    std::string text;
    m.add_work(format_text.size() + kPrintWork);
    if (!bpf_printf(m, format_text, arguments, text)) return errno_of(-EINVAL);
    const size_t length = text.size();
    if (text.size() >= kPrintBuffer) text.resize(kPrintBuffer - 1);
    if (!text.ends_with('\n')) text += '\n'; // as the trace pipe does
    m.print(text);
    return length;
}
uint64_t trace_printk(Machine &m, R r) {
    std::string_view text;
    if (!format_in(m, 1, static_cast<uint32_t>(r[2]), text)) return 0;
    return print(m, text, std::span(r + 3, 3));
}
uint64_t trace_vprintk(Machine &m, R r) {
    std::string_view text;
    std::vector<uint64_t> numbers;
    uint64_t answer = 0;
    if (!numbers_in(m, 3, static_cast<uint32_t>(r[4]), numbers, answer)) return answer;
    return format_in(m, 1, static_cast<uint32_t>(r[2]), text) ? print(m, text, numbers) : 0;
}
uint64_t snprintf(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    std::vector<uint64_t> numbers;
    uint64_t answer = 0;
    if (!numbers_in(m, 4, static_cast<uint32_t>(r[5]), numbers, answer)) return answer;
    const char *zero = reinterpret_cast<const char *>(m.memory().find(r[3], 1, false));
    if (!zero) return m.fault(format("can't read the format at r3 = {:#x}: {}", r[3], m.memory().miss(r[3], 1, false)));
    uint64_t length = 1;
    while (m.memory().find(r[3], length, false) && zero[length - 1]) ++length;
    m.add_work(length);
    std::string_view text;
    if (!format_in(m, 3, length, text)) return 0;
    std::string out;
    if (!bpf_printf(m, text, numbers, out)) return errno_of(-EINVAL);
    m.add_work(out.size() + kPrintWork);
    uint8_t *into = size ? m.buffer(1, size, true, "the text") : nullptr;
    if (into) {
        const size_t fits = std::min<size_t>(out.size(), size - 1);
        std::memcpy(into, out.data(), fits);
        into[fits] = 0;
    }
    return out.size() + 1;
}

// ---- memory

/// What a kernel says of an address that it doesn't read: the helpers for its own memory know that user space's isn't.
int64_t unreadable(uint64_t address, bool kernel) { return kernel && static_cast<int64_t>(address) >= 0 ? -ERANGE : -EFAULT; }
uint64_t probe_read_from(Machine &m, R r, bool kernel) {
    const auto size = static_cast<uint32_t>(r[2]);
    uint8_t *into = m.buffer(1, size, true, "what was read");
    if (!into) return 0;
    if (const uint8_t *from = m.memory().find(r[3], size, false)) {
        std::memmove(into, from, size);
        return 0;
    }
    std::memset(into, 0, size);
    return errno_of(size == 0 && !kernel ? 0 : unreadable(r[3], kernel));
}
uint64_t probe_read(Machine &m, R r) { return probe_read_from(m, r, false); }
uint64_t probe_read_kernel(Machine &m, R r) { return probe_read_from(m, r, true); }
uint64_t probe_read_str_from(Machine &m, R r, bool kernel) {
    const auto size = static_cast<uint32_t>(r[2]);
    uint8_t *into = m.buffer(1, size, true, "the string");
    if (!into || size == 0) return 0;
    for (uint32_t n = 0; n < size; ++n) {
        m.add_work(1);
        const uint8_t *from = m.memory().find(r[3] + n, 1, false);
        if (!from) {
            std::memset(into, 0, size);
            return errno_of(unreadable(r[3], kernel));
        }
        into[n] = n + 1 == size ? 0 : *from;
        if (!into[n]) return n + 1;
    }
    return 0;
}
uint64_t probe_read_str(Machine &m, R r) { return probe_read_str_from(m, r, false); }
uint64_t probe_read_kernel_str(Machine &m, R r) { return probe_read_str_from(m, r, true); }
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
        m.add_work(1);
        if (!second)
            return m.fault(format("can't read the second string at {:#x}: {}", r[3] + n, m.memory().miss(r[3] + n, 1, false)));
        if (first[n] != *second) return errno_of(first[n] < *second ? -1 : 1);
        if (!first[n]) break;
    }
    return 0;
}
/// The C library's strtoull() takes signs and reads "0x" in ways of its own; this is kernel/bpf/helpers.c, __bpf_strtoull(), with
/// lib/kstrtox.c below it. How many bytes were read, or a negative errno.
int64_t parse_number(std::string_view text, uint64_t flags, uint64_t &value, bool &negative) {
    constexpr size_t kMostDigits = 63;
    auto is_space = [](unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xa0; };
    auto digit = [](char c) {
        const char lower = static_cast<char>(c | 0x20);
        return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
    };
    auto base = static_cast<int>(flags & 31);
    if (text.empty() || flags & ~uint64_t{31} || (base != 0 && base != 8 && base != 10 && base != 16)) return -EINVAL;
    size_t begin = 0;
    while (begin < text.size() && is_space(static_cast<unsigned char>(text[begin]))) ++begin;
    negative = begin < text.size() && text[begin] == '-';
    begin += negative;
    if (begin == text.size()) return -EINVAL;
    const std::string_view rest = text.substr(begin, kMostDigits);
    auto at = [&](size_t n) { return n < rest.size() ? rest[n] : '\0'; };
    const bool hex = at(0) == '0' && (at(1) | 0x20) == 'x';
    if (base == 0) base = at(0) != '0' ? 10 : hex && digit(at(2)) < 16 ? 16 : 8;
    const size_t first = base == 16 && hex ? 2 : 0;
    size_t n = first;
    bool beyond = false;
    value = 0;
    for (int d; (d = digit(at(n))) < base; ++n) {
        beyond = beyond || value > (UINT64_MAX - static_cast<uint64_t>(d)) / static_cast<uint64_t>(base);
        value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(d);
    }
    if (beyond) return -ERANGE;
    return n == first ? -EINVAL : static_cast<int64_t>(begin + n);
}
uint64_t number_in(Machine &m, R r, bool is_signed) {
    const uint8_t *text = m.buffer(1, r[2], false, "the text");
    uint8_t *into = text ? m.buffer(4, 8, true, "the number") : nullptr;
    if (!into) return 0;
    uint64_t value = 0;
    bool negative = false;
    const int64_t length = parse_number({reinterpret_cast<const char *>(text), static_cast<size_t>(r[2])}, r[3], value, negative);
    std::memset(into, 0, sizeof value);
    if (length < 0) return errno_of(length);
    if (!is_signed && negative) return errno_of(-EINVAL);
    if (is_signed && negative) value = -value;
    if (is_signed && (negative ? static_cast<int64_t>(value) > 0 : static_cast<int64_t>(value) < 0)) return errno_of(-ERANGE);
    std::memcpy(into, &value, sizeof value);
    return errno_of(length);
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
uint64_t get_current_uid_gid(Machine &m, R) { return m.uid_gid(); }
uint64_t get_current_comm(Machine &m, R r) {
    const auto size = static_cast<uint32_t>(r[2]);
    uint8_t *into = m.buffer(1, size, true, "the name");
    if (!into) return 0;
    std::memset(into, 0, size);
    if (size) std::copy_n(m.comm().data(), std::min<size_t>(m.comm().size(), size - 1), into); // what follows is 0
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
    ROW(probe_read_kernel),
    ROW_AS(probe_read_user, probe_read),
    ROW(probe_read_str),
    ROW(probe_read_kernel_str),
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
constexpr size_t kHelpers =
    std::max_element(std::begin(kRows), std::end(kRows), [](const Row &a, const Row &b) { return a.id < b.id; })->id + 1;
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
