// Random programs that a verifier takes: every instruction that computes, loads, stores, branches and calls, on values at the
// edges.
//
//      r6 = the memory        r9 counts a loop        r10 the stack, its last 64 bytes filled
//      r0 to r5, r7, r8: numbers, never addresses; at the end all of them are mixed into r0
//
// With maps: helpers on small maps of every kind whose answers are determined, with few keys, so that they collide and maps are
// full; two have a lock in their values, which updates under BPF_F_LOCK write where they are. A key is at r10 - 72, a value at
// r10 - 80. Values are read and written through the address that a lookup gives, also after they were replaced or deleted. What
// is left in queues and stacks goes into r0.
//
// The same seed gives the same program, on any machine.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "asm/encode.h"
#include "asm/helpers.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::test {

/// `memory` bytes are at r1; `newest`: with load_acquire, store_release (6.15) and gotol (6.6).
class RandomProgram {
  public:
    RandomProgram(uint64_t seed, int memory, bool newest, bool maps = false)
        : state_(seed * 0x9e3779b97f4a7c15 + 1), memory_(memory), newest_(newest), maps_(maps) {}

    /// In the order of MapAt.
    static std::vector<MapSpec> maps() {
        std::vector<MapSpec> out;
        auto map = [&](const char *name, uint32_t type, uint32_t key, uint32_t entries, uint32_t flags = 0) {
            MapSpec &spec = out.emplace_back();
            spec.name = name;
            spec.type = type;
            spec.key_size = key;
            spec.value_size = 8;
            spec.max_entries = entries;
            spec.flags = flags;
        };
        map("array", BPF_MAP_TYPE_ARRAY, 4, 3);
        map("hash", BPF_MAP_TYPE_HASH, 4, 3);
        map("hash_alloc", BPF_MAP_TYPE_HASH, 4, 3, BPF_F_NO_PREALLOC);
        map("cpu_array", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 2);
        map("cpu_hash", BPF_MAP_TYPE_PERCPU_HASH, 4, 3);
        map("trie", BPF_MAP_TYPE_LPM_TRIE, 8, 4, BPF_F_NO_PREALLOC);
        map("queue", BPF_MAP_TYPE_QUEUE, 0, 3);
        map("stack", BPF_MAP_TYPE_STACK, 0, 3);
        map("bloom", uapi::BPF_MAP_TYPE_BLOOM_FILTER, 0, 3, BPF_F_ZERO_SEED);
        map("single", BPF_MAP_TYPE_ARRAY, 4, 1);
        map("locked_array", BPF_MAP_TYPE_ARRAY, 4, 3);
        map("locked_hash", BPF_MAP_TYPE_HASH, 4, 3);
        for (size_t i = kLockedArray; i <= kLockedHash; ++i) out[i].key_type = kNumber, out[i].value_type = kLocked;
        return out;
    }
    /// The types of the last two maps' values, which have a lock in their first half.
    static std::vector<std::byte> btf() {
        btf::Writer types;
        const btf::TypeId number = types.add_int("unsigned int", 4, false);
        const btf::TypeId lock = types.add_struct("bpf_spin_lock", 4, {{"val", number, 0}});
        const btf::TypeId locked = types.add_struct("locked", 8, {{"lock", lock, 0}, {"value", number, 32}});
        if (number != kNumber || locked != kLocked) std::abort();
        return types.finish();
    }
    /// Of make(): which instructions load which map.
    [[nodiscard]] const std::vector<Fixup> &fixups() const { return fixups_; }

    std::vector<Insn> make() {
        add("mov_reg", {.dst = 6, .src = 1});
        for (int reg : {0, 1, 2, 3, 4, 5, 7, 8}) constant(reg);
        for (int at = -64; at < 0; at += 8) add("stxdw", {.dst = 10, .src = number(), .off = at});
        const bool calls = below(2);
        std::vector<size_t> to_function;
        const int blocks = 2 + below(6);
        for (int n = 0; n < blocks; ++n) {
            if (maps_ && below(2)) {
                through_old_address();
                continue;
            }
            switch (below(calls ? 4 : 3)) {
            case 0: straight(4 + below(12)); break;
            case 1: branch(); break;
            case 2: loop(); break;
            default:
                to_function.push_back(code_.size());
                code_.push_back(encode("call_local", {}).insn);
                for (int reg = 1; reg <= 5; ++reg) constant(reg);
            }
        }
        for (int n = 0; maps_ && n < 3; ++n)
            for (MapAt map : {kQueue, kStack}) {
                call_on(map, helper::map_pop_elem.id, kValueAt);
                add("mul", {.dst = 7, .imm = 31});
                add("add_reg", {.dst = 7, .src = 0});
                add("ldxdw", {.dst = 0, .src = 10, .off = kValueAt});
                add("xor_reg", {.dst = 7, .src = 0});
            }
        for (int reg : {1, 2, 3, 4, 5, 7, 8}) {
            add("mul", {.dst = 0, .imm = 31});
            add("xor_reg", {.dst = 0, .src = reg});
        }
        for (int at = -64; at < 0; at += 8) {
            add("ldxdw", {.dst = 1, .src = 10, .off = at});
            add("add_reg", {.dst = 0, .src = 1});
        }
        add("exit", {});
        for (size_t from : to_function) code_[from].imm = static_cast<int32_t>(code_.size() - from - 1);
        if (!to_function.empty()) function();
        return std::move(code_);
    }

  private:
    enum MapAt {
        kArray,
        kHash,
        kHashAlloc,
        kCpuArray,
        kCpuHash,
        kTrie,
        kQueue,
        kStack,
        kBloom,
        kSingle,
        kLockedArray,
        kLockedHash
    };
    enum : btf::TypeId { kNumber = 1, kLocked = 3 };
    static bool has_lock(MapAt map) { return map >= kLockedArray; }
    static constexpr int kKeyAt = -72, kValueAt = -80;

    uint64_t next() { // splitmix64, Steele and others 2014
        uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
    int number() { // a register that holds one
        static constexpr int kNumbers[] = {0, 1, 2, 3, 4, 5, 7, 8};
        return kNumbers[below(8)];
    }
    int64_t value() {
        static constexpr int64_t kEdges[] = {0,          1,         -1,        2,         7,           8,
                                             31,         32,        63,        64,        0x7f,        0x80,
                                             0xff,       0x7fff,    0x8000,    0xffff,    0x7fffffff,  0x80000000,
                                             0xffffffff, INT32_MIN, INT64_MIN, INT64_MAX, -2147483649, 0x100000000};
        return below(2) ? kEdges[below(sizeof kEdges / sizeof *kEdges)] : static_cast<int64_t>(next());
    }
    int32_t small() { return static_cast<int32_t>(value()); }
    void add(std::string_view name, Operands operands) {
        const Encoded encoded = encode(name, operands);
        if (!encoded) std::abort(); // a fault of this generator
        code_.push_back(encoded.insn);
        if (is_wide(encoded.insn)) code_.push_back(encoded.second);
    }
    void constant(int reg) { add("lddw", {.dst = reg, .imm = value()}); }

    void compute() {
        static constexpr std::string_view kOps[] = {"add", "sub", "mul", "div", "or",   "and",  "lsh",
                                                    "rsh", "mod", "xor", "mov", "arsh", "sdiv", "smod"};
        const std::string_view op = kOps[below(sizeof kOps / sizeof *kOps)];
        const bool narrow = below(2), shift = op == "lsh" || op == "rsh" || op == "arsh";
        const std::string name = std::string(op) + (narrow ? "32" : "");
        if (below(2)) return add(name + "_reg", {.dst = number(), .src = number()});
        int32_t imm = shift ? below(narrow ? 32 : 64) : small();
        if (imm == 0 && (op == "div" || op == "mod" || op == "sdiv" || op == "smod")) imm = -1;
        add(name, {.dst = number(), .imm = imm});
    }
    void convert() {
        static constexpr std::string_view kOne[] = {"neg",  "neg32", "le16",    "le32",    "le64",   "be16",
                                                    "be32", "be64",  "bswap16", "bswap32", "bswap64"};
        static constexpr std::string_view kTwo[] = {"movsx8", "movsx16", "movsx32", "movsx8_32", "movsx16_32"};
        if (below(2)) return add(kOne[below(11)], {.dst = number()});
        add(kTwo[below(5)], {.dst = number(), .src = number()});
    }
    /// A place of `size` bytes: on the stack, aligned, or in memory, aligned only where it has to be.
    Operands place(int size, bool aligned) {
        if (below(2)) return {.dst = 10, .off = -64 + below(64 / size) * size};
        if (aligned) return in_memory(size);
        return {.dst = 6, .off = below(memory_ - size + 1)};
    }
    Operands in_memory(int size) { return {.dst = 6, .off = below(memory_ / size) * size}; }
    void access() {
        static constexpr std::string_view kSize[] = {"b", "h", "w", "dw"};
        const int n = below(4);
        Operands where = place(1 << n, false);
        switch (below(4)) {
        case 0:
        case 1: return add(std::string("ldx") + std::string(kSize[n]), {.dst = number(), .src = where.dst, .off = where.off});
        case 2:
            where.imm = n == 0 ? static_cast<int8_t>(small()) : n == 1 ? static_cast<int16_t>(small()) : small();
            return add(std::string("st") + std::string(kSize[n]), where);
        default: where.src = number(); return add(std::string("stx") + std::string(kSize[n]), where);
        }
    }
    void access_signed() {
        const int n = below(3);
        const Operands where = place(1 << n, false);
        static constexpr std::string_view kNames[] = {"ldxsb", "ldxsh", "ldxsw"};
        add(kNames[n], {.dst = number(), .src = where.dst, .off = where.off});
    }
    void atomic() {
        static constexpr std::string_view kOps[] = {
            "atomic_add",      "atomic_or",        "atomic_and",       "atomic_xor", "atomic_fetch_add",
            "atomic_fetch_or", "atomic_fetch_and", "atomic_fetch_xor", "xchg",       "cmpxchg"};
        const bool narrow = below(2);
        if (newest_ && below(6) == 0) {
            const int n = below(4);
            static constexpr std::string_view kWidth[] = {"8", "16", "32", "64"};
            Operands where = place(1 << n, true);
            if (below(2))
                return add("load_acquire" + std::string(kWidth[n]), {.dst = number(), .src = where.dst, .off = where.off});
            where.src = number();
            return add("store_release" + std::string(kWidth[n]), where);
        }
        const int which = below(10);
        const std::string_view op = kOps[which];
        // What is fetched from the stack is mistaken by kernels before 7.1 (runtime/emulator/README.md): from memory, then.
        Operands where = which >= 4 ? in_memory(narrow ? 4 : 8) : place(narrow ? 4 : 8, true);
        where.src = number();
        add(std::string(op) + (narrow ? "32" : ""), where);
        // Linux 6.18 forgets to clear the upper half of r0 when a way to here was pruned (runtime/emulator/README.md).
        if (narrow && op == "cmpxchg") add("mov32_reg", {.dst = 0, .src = 0});
    }
    // ---- maps

    void load_map(int reg, MapAt map, bool value) {
        Fixup &fixup = fixups_.emplace_back();
        fixup.insn = static_cast<uint32_t>(code_.size());
        fixup.kind = value ? Fixup::Kind::map_value : Fixup::Kind::map_fd;
        fixup.map = static_cast<uint32_t>(map);
        add("lddw", {.dst = reg});
        code_[code_.size() - 2].src = value ? 2 : 1;
    }
    /// r0 = helper(map, r10 + second, r10 + kValueAt, flags); r1 to r5 are numbers again.
    void call_on(MapAt map, int helper, int second, int64_t third = kValueAt, int64_t flags = 0) {
        const bool push = helper == rawbpf::helper::map_push_elem.id;
        load_map(1, map, false);
        add("mov_reg", {.dst = 2, .src = 10});
        add("add", {.dst = 2, .imm = second});
        if (push) {
            add("mov", {.dst = 3, .imm = flags});
        } else {
            add("mov_reg", {.dst = 3, .src = 10});
            add("add", {.dst = 3, .imm = third});
        }
        add("mov", {.dst = 4, .imm = flags});
        add("call", {.imm = helper});
        for (int reg = 1; reg <= 5; ++reg) constant(reg);
    }
    /// A key of few, or for a trie a prefix of few; at times it is computed.
    void make_key(MapAt map) {
        const int mask = map == kTrie ? 63 : 3;
        if (map != kTrie) add("stw", {.dst = 10, .off = kKeyAt + 4});
        if (map == kTrie) add("stw", {.dst = 10, .off = kKeyAt + 4, .imm = below(4) << 6 | below(3) << 14 | below(2) << 24});
        if (below(2)) {
            const int reg = number();
            add("and", {.dst = reg, .imm = mask});
            add("stxw", {.dst = 10, .src = reg, .off = kKeyAt});
        } else {
            add("stw", {.dst = 10, .off = kKeyAt, .imm = map == kTrie ? below(34) : below(5)});
        }
    }
    void make_value() { add("stxdw", {.dst = 10, .src = number(), .off = kValueAt}); }
    int64_t update_flags() { return below(8) == 0 ? below(6) == 0 ? small() : 3 : below(3); }
    MapAt table() {
        static constexpr MapAt kTables[] = {kArray,   kHash, kHash, kHashAlloc,   kCpuArray,
                                            kCpuHash, kTrie, kTrie, kLockedArray, kLockedHash};
        return kTables[below(sizeof kTables / sizeof *kTables)];
    }
    void change(MapAt map, bool same_key = false) {
        if (!same_key) make_key(map);
        if (below(3) == 0) return call_on(map, helper::map_delete_elem.id, kKeyAt);
        make_value();
        int64_t flags = update_flags();
        if (below(has_lock(map) ? 2 : 8) == 0) flags |= BPF_F_LOCK;
        call_on(map, helper::map_update_elem.id, kKeyAt, kValueAt, flags);
    }
    /// Of the half of the value at r[reg] that isn't its lock, which only the helpers may touch.
    void use_half(int reg) {
        for (int n = 1 + below(3); n > 0; --n) {
            const int kept = 7 + below(2);
            switch (below(4)) {
            case 0: add("ldxw", {.dst = kept, .src = reg, .off = 4}); break;
            case 1: add("ldxsh", {.dst = kept, .src = reg, .off = 4 + below(3)}); break;
            case 2: add("stxw", {.dst = reg, .src = kept, .off = 4}); break;
            default: add(below(2) ? "atomic_add32" : "atomic_fetch_xor32", {.dst = reg, .src = kept, .off = 4});
            }
        }
    }
    /// Of the value at r[reg].
    void use_value(int reg) {
        static constexpr int kKept[] = {7, 8};
        for (int n = 1 + below(3); n > 0; --n) {
            const int kept = kKept[below(2)];
            switch (below(5)) {
            case 0: add("ldxdw", {.dst = kept, .src = reg}); break;
            case 1: add("ldxsh", {.dst = kept, .src = reg, .off = below(7)}); break;
            case 2: add("stxdw", {.dst = reg, .src = kept}); break;
            case 3: add("stb", {.dst = reg, .off = below(8), .imm = static_cast<int8_t>(small())}); break;
            default: add(below(2) ? "atomic_add" : "atomic_fetch_xor", {.dst = reg, .src = kept});
            }
        }
    }
    void look_up(MapAt map) {
        make_key(map);
        call_on(map, helper::map_lookup_elem.id, kKeyAt);
        const size_t at = code_.size();
        add("jeq", {.dst = 0});
        has_lock(map) ? use_half(0) : use_value(0);
        code_[at].off = static_cast<int16_t>(code_.size() - at - 1);
        constant(0);
    }
    void stream() {
        static constexpr MapAt kStreams[] = {kQueue, kStack, kBloom};
        const MapAt map = kStreams[below(3)];
        switch (below(3)) {
        case 0: make_value(); return call_on(map, helper::map_push_elem.id, kValueAt, 0, below(4) ? 0 : below(4));
        case 1: make_value(); return call_on(map, helper::map_peek_elem.id, kValueAt);
        default:
            if (map == kBloom) return;
            make_value();
            call_on(map, helper::map_pop_elem.id, kValueAt);
            add("ldxdw", {.dst = 7 + below(2), .src = 10, .off = kValueAt});
        }
    }
    void map_access() {
        switch (below(6)) {
        case 0:
        case 1: return change(table());
        case 2:
        case 3: return look_up(table());
        case 4: return stream();
        default: {
            const int reg = 1 + below(5);
            load_map(reg, kSingle, true); // an array of one, which is addressed without a lookup
            use_value(reg);
            constant(reg);
        }
        }
    }
    /// An address that is used after what was there has been replaced or deleted, and perhaps is somebody else's. Only where that
    /// is determined: in a map whose elements are there from the start, in the order in which they are freed.
    void through_old_address() {
        const MapAt map = below(2) ? kHash : kLockedHash; // an update under the lock replaces nothing
        change(map);
        if (!has_lock(map) || below(2)) make_key(map);
        call_on(map, helper::map_lookup_elem.id, kKeyAt);
        const size_t at = code_.size();
        add("jeq", {.dst = 0});
        add("mov_reg", {.dst = 9, .src = 0});
        constant(0);
        for (int n = 1 + below(3); n > 0; --n) {
            change(map, has_lock(map) && below(2));
            has_lock(map) ? use_half(9) : use_value(9);
        }
        code_[at].off = static_cast<int16_t>(code_.size() - at - 1);
        constant(0);
    }

    void one() {
        if (maps_ && below(4) == 0) return map_access();
        switch (below(8)) {
        case 0: return convert();
        case 1: return access();
        case 2: return access_signed();
        case 3: return atomic();
        case 4: return constant(number());
        default: return compute();
        }
    }
    void straight(int count) {
        for (int n = 0; n < count; ++n) one();
    }
    std::string condition() {
        static constexpr std::string_view kOps[] = {"jeq",  "jgt", "jge", "jset", "jne", "jsgt",
                                                    "jsge", "jlt", "jle", "jslt", "jsle"};
        return std::string(kOps[below(11)]) + (below(2) ? "32" : "");
    }
    void branch() {
        const size_t at = code_.size();
        if (below(2))
            add(condition() + "_reg", {.dst = number(), .src = number()});
        else
            add(condition(), {.dst = number(), .imm = small()});
        straight(1 + below(6));
        const bool otherwise = below(2);
        const size_t end = code_.size();
        if (otherwise) add(newest_ && below(2) ? "ja32" : "ja", {});
        code_[at].off = static_cast<int16_t>(code_.size() - at - 1);
        if (!otherwise) return;
        straight(1 + below(6));
        const auto distance = static_cast<int32_t>(code_.size() - end - 1);
        if (code_[end].code == 0x06)
            code_[end].imm = distance;
        else
            code_[end].off = static_cast<int16_t>(distance);
    }
    void loop() {
        add("mov", {.dst = 9, .imm = 1 + below(6)});
        const size_t top = code_.size();
        straight(1 + below(8));
        add("sub", {.dst = 9, .imm = 1});
        const auto back = static_cast<int64_t>(top) - static_cast<int64_t>(code_.size()) - 1;
        add("jne", {.dst = 9, .off = back});
    }
    /// r0 of r1 to r5, on a frame of its own.
    void function() {
        add("mov_reg", {.dst = 0, .src = 1});
        add("stxdw", {.dst = 10, .src = 2, .off = -8});
        add("mov", {.dst = 6, .imm = 5}); // the caller's must survive
        static constexpr std::string_view kOps[] = {"add_reg", "xor32_reg", "sub_reg", "or_reg", "mul32_reg"};
        for (int n = 0; n < 4 + below(6); ++n) add(kOps[below(5)], {.dst = below(6), .src = 1 + below(5)});
        add("ldxw", {.dst = 3, .src = 10, .off = -8});
        add("add_reg", {.dst = 0, .src = 3});
        add("exit", {});
    }

    uint64_t state_;
    int memory_;
    bool newest_, maps_;
    std::vector<Insn> code_;
    std::vector<Fixup> fixups_;
};

} // namespace rawbpf::test
