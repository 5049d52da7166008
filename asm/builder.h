// SPDX-License-Identifier: MIT
// BPF programs written in C++.
//
//     using namespace rawbpf;
//     Builder b("hello");
//     auto counts = b.hash<uint32_t, uint64_t>("counts", 1024);
//
//     Code &f = b.program("perf_event", "on_tick");
//     auto pid = f.stack<uint32_t>("pid");
//     f.call(helper::get_current_pid_tgid);
//     f.rsh(r0, 32);
//     f.store<uint32_t>(pid, r0);
//     f.lookup(counts, pid, [&] {                   // r0 points at the value, and isn't null, in here
//         f.mov(r1, 1);
//         f.atomic_add<uint64_t>(r0, r1);
//     });
//     f.ret(0);
//
//     Built built = b.finish();                     // a Unit, or everything that is wrong with it
//     if (!built) puts(built.report().c_str());
//
// A method is one instruction unless its comment says otherwise. The C++ compiler checks what it can (writing r10, mixing r
// and w registers, a helper's number of arguments, constants that don't fit: numbers.h). finish() checks the rest: numbers
// marked by runtime(), labels that are unbound or out of reach, stack that is used up, registers that are read before they are
// set or after a call has overwritten them, unreachable code, ring buffer records that leak. An error has the file and line of
// the C++ statement, and so does every instruction, as line info, which the verifier shows.
//
//      registers.h     r0 .. r10, w0 .. w9            instructions.h   mov, add, load, store ...: the words for one instruction
//      numbers.h       constants and runtime()        code.h           one function: blocks, loops, calls, patterns
//      operands.h      r6 + 8, r0 == 0                constant.h       the same words for programs that are constants
//      handles.h       maps, labels, stack slots
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "asm/code.h"
#include "asm/machines.h"

namespace rawbpf::inline v0 {

/// What finish() gives: a unit, or complaints. True when there are no complaints.
class Built {
  public:
    /// True when there are no complaints.
    [[nodiscard]] explicit operator bool() const { return problems.empty(); }
    /// The unit; an empty one when there are complaints.
    ///@{
    [[nodiscard]] Unit &operator*() { return unit_; }
    [[nodiscard]] Unit *operator->() { return &unit_; }
    ///@}
    /// All complaints, one a line: "hello.cpp:12: message". Empty without any.
    [[nodiscard]] std::string report() const;

    std::vector<Diagnostic> problems; ///< in the order of the statements; those that only finish() can see come last

  private:
    friend class Builder;
    Unit unit_;
};

/// A unit under construction: maps, globals, programs. Handles that it gives are valid for it only, and as long as it lives.
class Builder {
  public:
    /// `name` is Unit::name; `license` is the programs', which decides whether they may call GPL-only helpers (HelperInfo).
    explicit Builder(std::string name, std::string license = "Dual MIT/GPL");
    Builder(const Builder &) = delete;
    Builder &operator=(const Builder &) = delete;
    ~Builder();

    /// The machine that the programs are for, which says where traced functions have their arguments. The one this was compiled
    /// for, unless told otherwise.
    void target(Arch arch) { arch_ = arch; }
    /// A program: its section says what it attaches to, as in C ("perf_event", "kprobe/vfs_read"). r1 is the context. The names
    /// of programs, functions, maps and variables are of letters, digits, `_` and `.`, and each occurs once; else it is a
    /// complaint. The reference is valid until finish().
    Code &program(std::string section, std::string name, Where where = Where::current());
    /// A function that programs call, or give to a helper; its `arguments` (0 to 5) arrive in r1 and following.
    Code &function(std::string name, int arguments, Where where = Where::current());
    /// The same, verified once however often it is called (5.6). The verifier knows of its arguments only that they are numbers,
    /// so it looks up in maps what it works on. It returns a number. With `pointed`, r1 is the address of so many bytes, or 0,
    /// which the function has to test for (5.12).
    Code &global_function(std::string name, int arguments, uint32_t pointed = 0, Where where = Where::current());

    /// A ring buffer (5.8) of so many bytes: a power of two, 4096 at least; else it is a complaint. The loader rounds up to whole
    /// pages of the machine.
    MapRef ringbuf(std::string name, uint32_t bytes, Where where = Where::current());
    /// A map of up to `entries` entries. Key and value are the bytes of K and V as C++ lays them out; an array's keys are 32-bit
    /// indices below `entries`. percpu_*: a V for each possible CPU (4.6). lru_hash: when it is full, it drops entries that
    /// were not used lately (4.10).
    ///@{
    template <class K, class V> MapRef hash(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(1, std::move(name), sizeof(K), sizeof(V), entries, where);
    }
    template <class V> MapRef array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(2, std::move(name), 4, sizeof(V), entries, where);
    }
    template <class K, class V> MapRef percpu_hash(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(5, std::move(name), sizeof(K), sizeof(V), entries, where);
    }
    template <class V> MapRef percpu_array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(6, std::move(name), 4, sizeof(V), entries, where);
    }
    template <class K, class V> MapRef lru_hash(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(9, std::move(name), sizeof(K), sizeof(V), entries, where);
    }
    ///@}
    /// Programs for bpf_tail_call (4.2), by index. User space fills it in.
    MapRef prog_array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(3, std::move(name), 4, 4, entries, where);
    }
    /// Rings for bpf_perf_event_output (4.3). `entries` 0: one for each possible CPU; the loader asks how many there are.
    MapRef perf_event_array(std::string name, uint32_t entries = 0, Where where = Where::current()) {
        return map(4, std::move(name), 4, 4, entries, where);
    }
    /// Cgroups to compare with (4.8): bpf_current_task_under_cgroup, bpf_skb_under_cgroup. User space fills it in.
    MapRef cgroup_array(std::string name, uint32_t entries, Where where = Where::current()) {
        return map(8, std::move(name), 4, 4, entries, where);
    }
    /// Any other kind, by its BPF_MAP_TYPE_ number (map_types.h); sizes in bytes. A complaint: `entries` 0 (but for
    /// perf_event_array), other than 0 for a storage map (is_storage()), a key of other than 4 bytes where it is an index
    /// (MapKeys::index).
    ///@{
    MapRef map(uint32_t type, std::string name, uint32_t key_size, uint32_t value_size, uint32_t entries,
               Where where = Where::current());
    MapRef map(MapDef def, Where where = Where::current());
    ///@}

    /// A global constant in a map of its own, frozen before the program loads (5.2); T must be trivially copyable.
    template <class T> GlobalRef constant(const std::string &name, const T &value, Where where = Where::current()) {
        static_assert(std::is_trivially_copyable_v<T>);
        return global(name, &value, sizeof(T), true, where);
    }
    /// A global variable in a map of its own, which programs and user space share (5.2); `value` is what it starts with.
    template <class T> GlobalRef variable(const std::string &name, const T &value = {}, Where where = Where::current()) {
        static_assert(std::is_trivially_copyable_v<T>);
        return global(name, &value, sizeof(T), false, where);
    }

    /// Checks everything that needs the whole program and hands the unit out; a unit without a program is a complaint. Call it
    /// once: the builder is empty afterwards, and references to its Code are invalid.
    [[nodiscard]] Built finish();

  private:
    friend class Code;
    GlobalRef global(const std::string &name, const void *value, size_t size, bool read_only, Where where);
    void complain(Where where, std::string message);
    void check_name(std::string_view what, const std::string &name, Where where);

    Unit unit_;
    Arch arch_ = kHostArch;
    std::vector<std::unique_ptr<Code>> codes_;
    std::vector<Diagnostic> problems_;
};

} // namespace rawbpf::inline v0
