// The two engines behind one interface.
//
//      r0, then memory, then each map in the object's order
//
// is the order in which results are compared, because a program's author looks first at what it returns. Values that a program
// makes of addresses, clocks or random numbers differ, and are reported like any other difference.
#include "programs/exec/run.h"

#include <algorithm>
#include <utility>

#include "asm/map_types.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/emulator/machine.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/test_run.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::exec {

namespace {

std::string text_of(const void *bytes, size_t size) { return {static_cast<const char *>(bytes), size}; }

MapContents contents_of(emulator::EmulatedMap &map) {
    MapContents out;
    out.name = map.name();
    out.known = map.kind() == MapEngine::array || map.kind() == MapEngine::hash || map.kind() == MapEngine::trie ||
                map.kind() == MapEngine::ring;
    for (uint32_t place = map.next_entry(0); place < map.max_entries(); place = map.next_entry(place + 1)) {
        uint32_t index = 0;
        out.entries.emplace_back(text_of(map.key_at(place, index), map.key_size()),
                                 text_of(map.value_at(place), map.value_size()));
    }
    std::sort(out.entries.begin(), out.entries.end());
    if (map.kind() == MapEngine::ring)
        map.each_record([&](std::string_view record) { out.entries.emplace_back(std::string(), record); });
    return out;
}

/// Of all CPUs' values the one that isn't zero: a run is on one CPU.
std::string one_cpus_value(std::string_view all, size_t size) {
    const size_t stride = (size + 7) / 8 * 8;
    for (size_t at = 0; at + size <= all.size(); at += stride)
        if (all.substr(at, size).find_first_not_of('\0') != std::string_view::npos) return std::string(all.substr(at, size));
    return std::string(size, '\0');
}

MapContents contents_of(const Map &map) {
    MapContents out;
    out.name = map.name();
    switch (map_type_row(map.type()).engine) {
    case MapEngine::array:
    case MapEngine::hash:
    case MapEngine::trie: break;
    case MapEngine::ring: {
        Result<RingBuffer> ring = RingBuffer::open(map.fd(), map.max_entries());
        if (!ring) return out;
        out.known = true;
        ring->consume([&](Bytes record) { out.entries.emplace_back(std::string(), text_of(record.data(), record.size())); });
        return out;
    }
    default: return out;
    }
    Result<Map::Entries> all = map.read_all();
    if (!all) return out;
    out.known = true;
    const size_t stride = map.lookup_size();
    for (size_t n = 0; n < all->count; ++n) {
        std::string value = text_of(all->values.data() + n * stride, stride);
        if (map.per_cpu()) value = one_cpus_value(value, map.value_size());
        value.resize(map.value_size());
        out.entries.emplace_back(text_of(all->keys.data() + n * map.key_size(), map.key_size()), std::move(value));
    }
    std::sort(out.entries.begin(), out.entries.end());
    return out;
}

std::string hex(std::string_view bytes) {
    std::string out = hex_text(bytes.substr(0, 32), " ");
    if (bytes.size() > 32) out += " ...";
    return out.empty() ? "nothing" : out;
}

/// "byte 12: kernel 01, emulator 02".
std::string byte_difference(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return format("kernel {} bytes, emulator {}", a.size(), b.size());
    const size_t at = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
    return format("byte {}: kernel {:#04x}, emulator {:#04x}", at, static_cast<uint8_t>(a[at]), static_cast<uint8_t>(b[at]));
}

std::string map_difference(const MapContents &kernel, const MapContents &emulator) {
    const auto &a = kernel.entries, &b = emulator.entries;
    for (size_t n = 0; n < std::min(a.size(), b.size()); ++n) {
        const std::string which = a[n].first.empty() ? format("record {}", n) : format("key {}", hex(a[n].first));
        if (a[n].first != b[n].first)
            return format("only the {} has key {}", a[n].first < b[n].first ? "kernel" : "emulator",
                          hex(std::min(a[n].first, b[n].first)));
        if (a[n].second != b[n].second) return format("{}, {}", which, byte_difference(a[n].second, b[n].second));
    }
    if (a.size() == b.size()) return {};
    const auto &more = a.size() > b.size() ? a[b.size()] : b[a.size()];
    return format("only the {} has {} {}", a.size() > b.size() ? "kernel" : "emulator", more.first.empty() ? "record" : "key",
                  hex(more.first.empty() ? more.second : more.first));
}

// What entering and leaving a program costs, measured in the same way: a program of the same type that only returns.
std::vector<double> time_empty(const ProgramSpec &like, const RunOptions &options,
                               Result<RunResult> (*run)(const ObjectSpec &, size_t, const RunOptions &)) {
    ObjectSpec spec;
    spec.name = "an empty program";
    ProgramSpec program;
    program.name = "empty";
    program.section = like.section;
    program.type = like.type;
    program.expected_attach_type = like.expected_attach_type;
    program.insns = {Insn{0xb7, 0, 0, 0, 0}, Insn{0x95, 0, 0, 0, 0}};
    spec.programs.push_back(std::move(program));
    RunOptions same = options;
    same.contents = same.compare = false;
    Result<RunResult> result = run(spec, 0, same);
    return result ? std::move(result->batches) : std::vector<double>();
}

} // namespace

Result<RunResult> run_emulated(const ObjectSpec &spec, size_t program, const RunOptions &options) {
    RunResult out;
    out.memory = options.memory;
    emulator::MachineOptions how;
    how.limit = options.limit;
    std::unique_ptr<emulator::Machine> machine = TRY(emulator::Machine::create(spec, how));
    if (options.packet)
        TRY(machine->set_packet(out.memory, spec.programs[program].type == BPF_PROG_TYPE_XDP));
    else
        TRY(machine->set_memory(out.memory));
    TRY(machine->enter(program)); // decodes, which is not part of the time
    const uint32_t repeat = std::max(options.repeat, 1U);
    double sum = 0;
    bool entered = true;
    for (uint32_t batch = 0; const uint32_t runs = runs_of_batch(repeat, batch); ++batch) {
        const uint64_t started = sys::process_cpu_ns();
        for (uint32_t n = 0; n < runs; ++n) {
            if (!std::exchange(entered, false)) TRY(machine->enter(program));
            Result<uint64_t> r0 = machine->run();
            if (!r0) return Unexpected(std::move(r0).error());
            out.r0 = *r0;
        }
        const auto ns = static_cast<double>(sys::process_cpu_ns() - started);
        out.batches.push_back(ns / runs);
        sum += ns;
    }
    out.printed = machine->printed();
    out.ns = sum / repeat;
    if (options.compare) out.empty = time_empty(spec.programs[program], options, run_emulated);
    out.instructions = machine->executed();
    if (machine->unprinted())
        append(out.printed, "(bpf_trace_printk() printed another {} bytes, which weren't kept: the emulator keeps {} MiB)\n",
               machine->unprinted(), emulator::kMostPrinted >> 20);
    if (options.contents)
        for (const auto &map : machine->maps()) out.maps.push_back(contents_of(*map));
    return out;
}

Result<RunResult> run_in_kernel(const ObjectSpec &spec, size_t program, const RunOptions &options) {
    TestRunOptions wanted;
    wanted.memory = options.memory;
    wanted.packet = options.packet;
    wanted.repeat = options.repeat;
    wanted.btf_path = options.btf_path;
    TestRun ran = TRY(test_run(spec, program, wanted));
    RunResult out;
    out.r0 = ran.r0;
    out.ns = static_cast<double>(ran.ns);
    out.batches = std::move(ran.batches);
    if (options.compare) out.empty = time_empty(spec.programs[program], options, run_in_kernel);
    out.memory = std::move(ran.memory);
    if (options.contents)
        for (const MapSpec &map : spec.maps) { // those that the program doesn't use weren't made
            const Map *made = ran.object.find_map(map.name);
            out.maps.push_back(made ? contents_of(*made) : MapContents{});
            out.maps.back().name = map.name;
        }
    return out;
}

std::string first_difference(const RunResult &kernel, const RunResult &emulator) {
    if (kernel.r0 != emulator.r0) return format("r0: kernel {:x}, emulator {:x}", kernel.r0, emulator.r0);
    if (kernel.memory != emulator.memory)
        return format("memory, {}", byte_difference(text_of(kernel.memory.data(), kernel.memory.size()),
                                                    text_of(emulator.memory.data(), emulator.memory.size())));
    for (size_t n = 0; n < std::min(kernel.maps.size(), emulator.maps.size()); ++n) {
        if (!kernel.maps[n].known || !emulator.maps[n].known) continue;
        if (std::string what = map_difference(kernel.maps[n], emulator.maps[n]); !what.empty())
            return format("map {}: {}", kernel.maps[n].name, what);
    }
    return {};
}

} // namespace rawbpf::inline v0::exec
