// The emulator on hostile instructions: whatever they are, it refuses them, faults, or ends; and a program that is stepped
// through does what it does when it is run, and leaves nothing behind when every step is taken back.
//
//      input:  [ memory size | map numbers ... ] 8 bytes, then instructions; ld_imm64 of a map means one of five, and with bit 8
//      of
//              its number one of six others; a call of a kernel function one of those that are emulated
#include <algorithm>
#include <cstdlib>

#include "runtime/base/fail.h"
#include "runtime/emulator/machine.h"
#include "runtime/sys/uapi.h"

using namespace rawbpf;

namespace {

void add_map(ObjectSpec &spec, const char *name, uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
    MapSpec &map = spec.maps.emplace_back();
    map.name = name;
    map.type = type;
    map.key_size = key;
    map.value_size = value;
    map.max_entries = entries;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 16) return 0;
    ObjectSpec spec;
    spec.name = "fuzz";
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.insns.resize(std::min<size_t>((size - 8) / 8, 4096));
    std::memcpy(static_cast<void *>(program.insns.data()), data + 8, program.insns.size() * 8);
    add_map(spec, "array", BPF_MAP_TYPE_ARRAY, 4, 12, 3);
    add_map(spec, "hash", BPF_MAP_TYPE_LRU_HASH, 4, 8, 2);
    add_map(spec, "ring", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096);
    add_map(spec, "table", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1);
    spec.maps[3].slots.push_back({0, "main"});
    add_map(spec, "queue", BPF_MAP_TYPE_QUEUE, 0, 8, 2);
    add_map(spec, "trie", BPF_MAP_TYPE_LPM_TRIE, 8, 8, 3);
    spec.maps[5].flags = BPF_F_NO_PREALLOC;
    add_map(spec, "bloom", 30, 0, 8, 3);
    add_map(spec, "arena", 33, 0, 0, 2);
    add_map(spec, "outer", BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 2);
    spec.maps[8].slots.push_back({1, "array"});
    add_map(spec, "targets", 34, 4, 16, 2);
    spec.maps[9].contents.assign(data[1] ? 32 : 7, static_cast<std::byte>(data[2]));
    add_map(spec, "timers", BPF_MAP_TYPE_HASH, 4, 24, 3);
    bool calls = false;
    for (size_t n = 0; n + 1 < program.insns.size(); ++n) {
        calls |= (program.insns[n].code & 0xf7) == 0x85;
        if (program.insns[n].code == 0x85 && program.insns[n].src == 2) {
            constexpr const char *kKfuncs[] = {"bpf_arena_alloc_pages", "bpf_arena_free_pages", "bpf_iter_num_new",
                                               "bpf_iter_num_next",     "bpf_iter_num_destroy", "bpf_unknown"};
            Fixup &fixup = program.fixups.emplace_back();
            fixup.insn = static_cast<uint32_t>(n);
            fixup.kind = Fixup::Kind::kfunc;
            fixup.symbol = kKfuncs[static_cast<uint32_t>(program.insns[n].imm) % 6];
        }
        if (!is_wide(program.insns[n])) continue;
        if (program.insns[n].src == 1 || program.insns[n].src == 2) {
            Fixup &fixup = program.fixups.emplace_back();
            fixup.insn = static_cast<uint32_t>(n);
            fixup.kind = program.insns[n].src == 1 ? Fixup::Kind::map_fd : Fixup::Kind::map_value;
            const auto number = static_cast<uint32_t>(program.insns[n].imm);
            fixup.map = number & 0x100 ? 5 + (number & 0xff) % 6 : number % 5;
            fixup.offset = static_cast<uint32_t>(program.insns[n + 1].imm);
        }
        ++n;
    }
    const size_t bytes = data[0];
    std::vector<std::byte> ran(bytes, std::byte{1}), stepped = ran, before = ran;

    constexpr uint64_t kLimit = 2000;
    auto machine = emulator::Machine::create(spec, {.limit = kLimit});
    if (!machine || !(*machine)->set_memory(ran)) std::abort();
    Result<uint64_t> r0 = fail(Errc::internal, "not run");
    const bool decoded = (*machine)->enter(0).has_value();
    if (decoded) r0 = (*machine)->run();

    auto walker = emulator::Machine::create(spec, {.stepping = true});
    if (!walker || !(*walker)->set_memory(stepped)) std::abort();
    if ((*walker)->enter(0).has_value() != decoded) std::abort();
    if (!decoded) return 0;
    emulator::Machine &w = **walker;
    size_t steps = 0;
    while (!w.ended() && steps < 10000 && w.step()) ++steps;
    // Clocks and the like differ between two runs; what only computes doesn't.
    if (r0 && !calls && (!w.ended() || w.cpu().r[0] != *r0 || ran != stepped)) std::abort();
    while (w.back()) --steps;
    if (steps != 0 || w.pc() != 0 || stepped != before || w.cpu().depth != 0) std::abort();
    for (const auto &map : w.maps()) {
        if (map->kind() == MapEngine::hash && map->next_entry(0) != map->max_entries()) std::abort();
        map->each_record([](std::string_view) { std::abort(); });
    }
    return 0;
}
