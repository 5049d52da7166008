// SPDX-License-Identifier: MIT
// A program and its maps in user space: loaded from an ObjectSpec without a kernel, run without privileges.
//
//      Machine machine = RAWBPF_TRY(Machine::create(spec));
//      machine.set_memory(bytes);
//      RAWBPF_TRY(machine.enter(0));                 // r1 = the memory's address, r2 = its length
//      Result<uint64_t> r0 = machine.run();   // or an Error that says which instruction went wrong and why
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/journal.h"
#include "runtime/emulator/maps.h"
#include "runtime/emulator/memory.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::emulator {

/// How a Machine runs programs.
struct MachineOptions {
    /// Instructions a run may execute (ld_imm64 counts as two), looked at at each jump; and as much work of helpers, in the coin
    /// of limits.h. 0: no limit. Memory has limits of its own, there.
    uint64_t limit = 0;
    bool stepping = false; ///< step() is wanted, forwards and backwards
};

/// Why interpret() returned.
enum class Event : uint8_t { none, finished, stopped, limit, fault };

/// What is called again and again: bpf_loop() and bpf_for_each_map_elem().
enum class Callback : uint8_t { none, loop, entries };

/// One call that hasn't returned. Frame 0 is the program's.
struct Frame {
    const Op *back = nullptr; ///< where the caller goes on
    uint64_t saved[4] = {};   ///< its r6 to r9
    uint32_t program = 0;     ///< whose function runs in this frame
    uint32_t base = 0;        ///< the frame in which that program began: 0, or that of the function that left it by a tail call
    Callback callback = Callback::none; ///< none: an ordinary call
    uint32_t place = 0,                 ///< of a callback: this call's number from 0, or the place of its entry in the map
        total = 0;                      ///< of a callback: how many calls there are, for a loop
    uint32_t done = 0;                  ///< of a callback: calls that have returned
    uint32_t map = 0;                   ///< entries: of which map
    uint64_t context = 0;               ///< what the callback gets
    const Op *function = nullptr;       ///< the callback itself
};

/// Everything that a run changes, but for memory and maps.
struct Cpu {
    /// In as few cache lines as can be, wherever the rest of the machine ends: else loops over memory take a fifth longer or not,
    /// by what was added in front.
    alignas(64) uint64_t r[11] = {};
    const Op *op = nullptr;      ///< next; after a fault the one that failed
    uint32_t depth = 0;          ///< of frames: which one runs
    uint32_t tail_calls = 0;     ///< since enter(); up to kMaxTailCalls
    uint64_t may_goto = 0;       ///< how often it may still go on
    uint64_t random = 0;         ///< state of next_random(); the same in each new machine, never 0
    uint64_t executed = 0;       ///< instructions since enter()
    uint64_t result = 0;         ///< the program's r0, while timers run
    uint64_t timer_now = 0;      ///< nanoseconds, of the timers' clock: it stands still but for going on to the next one
    uint64_t work = 0;           ///< of helpers since enter(), in the units of limits.h
    uint64_t running_timer = 0;  ///< its address, while its callback runs; else 0
    size_t printed = 0,          ///< bytes of Machine::printed() when the last step began
        recorded = 0;            ///< the size of Machine::records() when the last step began
    uint64_t unprinted = 0;      ///< bytes that were printed and not kept, since the machine was made
    uint64_t recorded_bytes = 0; ///< of all records, since the machine was made; up to kMostRecorded
    bool ended = false;          ///< the program and its timers' callbacks have ended
    bool in_timer = false;       ///< the program has ended, and a timer's callback runs
    Frame frames[kFrames];       ///< those after `depth` mean nothing
};

/// A bpf_timer: which value it is in, and what it does.
struct Timer {
    uint64_t address = 0;         ///< of the struct bpf_timer; 0: none
    uint32_t map = 0,             ///< which of Machine::maps() has the value
        program = 0;              ///< which of the spec's programs has the callback
    const Op *callback = nullptr; ///< its first Op; nullptr: not set yet
    uint64_t due = 0;             ///< when it is to run, by Cpu::timer_now
    bool armed = false,           ///< started, and not yet run or cancelled
        fired = false;            ///< it has run in this run, which it does once
};

/// Programs and maps of one object, in user space. One thread at a time; needs no privileges.
class Machine {
  public:
    /// Makes the spec's maps (those of kinds that aren't emulated too: only using them is an error) and remembers its programs.
    /// The spec must outlive the machine, be relocated (CO-RE) already, and isn't changed.
    /// Errors: invalid_argument, no_memory for maps that can't be.
    [[nodiscard]] static Result<std::unique_ptr<Machine>> create(const ObjectSpec &spec, MachineOptions options = {});

    /// The bytes that r1 points to; borrowed, and changed by the program. What was given before stays addressable. Errors:
    /// no_memory.
    [[nodiscard]] Result<void> set_memory(std::span<std::byte> bytes);
    /// A packet instead (borrowed), with the context that XDP (struct xdp_md) or socket and tc programs (struct __sk_buff) see.
    [[nodiscard]] Result<void> set_packet(std::span<std::byte> bytes, bool xdp);

    /// Goes to the first instruction of the n-th program. Maps stay as they are. Errors: decode()'s.
    [[nodiscard]] Result<void> enter(size_t program);
    /// Runs to the end, and then the callbacks of timers that were started, in the order of their times, each once; a timer that
    /// its own callback starts again is run after the next run. The program's r0. Errors: bad_input for a fault ("instruction 3
    /// (...): ..."), busy when the limit was reached.
    [[nodiscard]] Result<uint64_t> run();
    /// One instruction (a helper's whole work counts as one, its callbacks' instructions as their own). False: the program has
    /// ended. Only with `stepping`. Errors: as run(); after a fault the machine stays before the instruction.
    [[nodiscard]] Result<bool> step();
    /// Takes the last step back. False: there is none, or none any more.
    bool back();

    /// Registers and frames, for looking at them. Good for as long as the machine.
    [[nodiscard]] const Cpu &cpu() const { return cpu_; }
    /// Whether the program and its timers' callbacks have ended; enter() begins anew.
    [[nodiscard]] bool ended() const { return cpu_.ended; }
    [[nodiscard]] uint64_t executed() const { return cpu_.executed; } ///< instructions since enter()
    /// The program that runs now, and its next instruction (the one that failed, after a fault). Only after enter().
    ///@{
    [[nodiscard]] const ProgramSpec &program() const { return spec_->programs[cpu_.frames[cpu_.depth].program]; }
    [[nodiscard]] size_t pc() const;
    ///@}
    /// The instruction at which frame `n` goes on when what it called returns; n below cpu().depth.
    [[nodiscard]] size_t return_place(uint32_t n) const;
    /// Its instructions, with the maps' addresses in place.
    [[nodiscard]] std::span<const Insn> insns() const { return codes_[cpu_.frames[cpu_.depth].program].insns; }
    /// What programs can address: the stack, the memory or packet that was given, values of maps.
    ///@{
    [[nodiscard]] Memory &memory() { return memory_; }
    [[nodiscard]] const Memory &memory() const { return memory_; }
    ///@}
    /// In the order of the spec's maps.
    [[nodiscard]] std::span<const std::unique_ptr<EmulatedMap>> maps() const { return maps_; }
    /// The steps since enter(); none without `stepping`.
    [[nodiscard]] const Journal &journal() const { return journal_; }
    /// What bpf_trace_printk() printed so far.
    [[nodiscard]] const std::string &printed() const { return printed_; }
    /// Bytes that it printed and that weren't kept.
    [[nodiscard]] uint64_t unprinted() const { return cpu_.unprinted; }
    /// Records of bpf_perf_event_output() so far.
    [[nodiscard]] const std::vector<std::string> &records() const { return records_; }

    // ---- for helpers

    /// Ends the run: the helper that runs now can't do what it was asked to. Returns 0.
    uint64_t fault(std::string why);
    /// A jump or a call through a register that leads nowhere. By itself, so that interpret() keeps its registers for programs.
    [[gnu::cold, gnu::noinline]] void fault_target(int reg, bool call);
    /// `size` bytes at the address in register `reg`; nullptr after a fault. `what` names the argument.
    [[nodiscard]] uint8_t *buffer(int reg, uint64_t size, bool write, std::string_view what);
    /// The map in a register; nullptr after a fault.
    [[nodiscard]] EmulatedMap *map_in(int reg);
    /// The map that this address stands for; nullptr: it stands for none.
    [[nodiscard]] EmulatedMap *map_with_address(uint64_t address);
    /// The address that stands for the map of that number (no memory is there).
    [[nodiscard]] static uint64_t map_address(uint32_t map);
    /// Starts calling the function at a register's address: `count` times, or for each entry of a map.
    uint64_t call_back(Callback kind, int function_register, uint64_t context, uint32_t count, const EmulatedMap *map);
    /// Goes to another program; false when it can't be (and the caller goes on).
    [[nodiscard]] bool tail_call(const EmulatedMap &map, uint32_t index);
    /// Register `n`, 0 to 10, not checked.
    [[nodiscard]] uint64_t register_value(int n) const { return cpu_.r[n]; }
    /// The bytes given to set_memory() or set_packet(); empty: none.
    [[nodiscard]] std::span<uint8_t> packet() const { return packet_; }
    /// 32 bits, the same sequence in each new machine.
    [[nodiscard]] uint64_t next_random();
    /// Adds to printed(), whole texts only: one that would pass kMostPrinted is counted in unprinted().
    void print(std::string_view text);
    /// Adds to records(). False: there is no room left (kMostRecorded).
    [[nodiscard]] bool record(std::string_view bytes);
    /// Counts a helper's work against the limit, in the units of limits.h.
    void add_work(uint64_t units) { cpu_.work += units; }
    /// The name of this process's main thread (/proc/self/comm), read once; empty when it can't be.
    [[nodiscard]] const std::string &comm();
    /// This process's real ids, as bpf_get_current_uid_gid() gives them: gid << 32 | uid.
    [[nodiscard]] uint64_t uid_gid();
    /// Where a helper notes what it is about to change.
    Journal &write_journal() { return journal_; }
    /// The timer that is kept for this address; nullptr: it was never initialised.
    [[nodiscard]] Timer *timer_at(uint64_t address);
    /// A new one, for a struct bpf_timer in a value of that map; nullptr after a fault.
    Timer *make_timer(uint64_t address, const EmulatedMap &map);
    /// Aims it at the function whose address is in a register. Returns 0; a fault when no function is there.
    uint64_t set_timer(Timer &timer, int function_register);
    /// Whether there are kMostTimers.
    [[nodiscard]] bool timers_full() const { return timers_.size() == kMostTimers && timers_free_.empty(); }
    /// Whether the callback of the timer at this address runs now.
    [[nodiscard]] bool in_callback_of(uint64_t timer) const { return cpu_.running_timer == timer; }
    /// Nanoseconds of the timers' clock, 0 at enter(). It goes on only between timers.
    [[nodiscard]] uint64_t timer_now() const { return cpu_.timer_now; }
    /// Starts it, or stops it; whether it was started.
    bool arm_timer(Timer &timer, bool armed, uint64_t due);

  private:
    Machine(const ObjectSpec &spec, MachineOptions options) : spec_(&spec), options_(options) {
        if (options.stepping) journal_.enable();
    }
    friend struct Interpreter;
    struct Code {
        std::vector<Insn> insns;
        std::vector<Op> ops;
    };
    [[nodiscard]] Result<void> fill_outer_maps();
    [[nodiscard]] Result<void> prepare(size_t program);
    [[nodiscard]] Result<uint64_t> add_table(const std::vector<uint32_t> &places);
    [[nodiscard]] const Op *entry_of(size_t program, size_t insn) const;
    [[nodiscard]] const Op *function_at(uint64_t address) const;
    [[nodiscard]] Error explain(Event event) const;
    [[nodiscard]] std::string access_fault(const Insn &insn) const;
    const Op *next_callback(const Op *op);
    [[nodiscard]] bool begin_callback(Frame &frame);
    void note_store(const Insn &insn);
    [[nodiscard]] bool next_timer();
    void forget_timers(uint64_t address, uint64_t size);
    void index_timers();
    [[nodiscard]] bool overworked() const { return options_.limit && cpu_.work > options_.limit; }
    [[nodiscard]] Result<void> finish();

    const ObjectSpec *spec_;
    MachineOptions options_;
    Memory memory_;
    Journal journal_;
    std::vector<std::unique_ptr<EmulatedMap>> maps_;
    std::vector<std::unique_ptr<EmulatedMap>> tables_; // jump tables of programs, which only these see
    std::vector<Code> codes_;
    Cpu cpu_;
    Event signal_ = Event::none; // of a helper: fault; or stopped: cpu_.op says where to go on
    std::string why_;
    std::span<uint8_t> packet_;
    std::vector<uint8_t> context_;
    uint64_t argument_ = 0, length_ = 0; // r1 and r2 at entry
    std::string printed_;
    std::vector<std::string> records_;
    std::deque<Timer> timers_;
    // What is found in timers_: where they are by address, those that are to run by time and place, places to use again. Made
    // anew after a step back.
    std::map<uint64_t, uint32_t> timer_places_;
    std::set<std::pair<uint64_t, uint32_t>> timers_due_;
    std::vector<uint32_t> timers_free_;
    bool timers_indexed_ = true;
    std::string comm_;
    uint64_t uid_gid_ = UINT64_MAX;
};

/// interpret.cpp: runs from cpu.op on.
struct Interpreter {
    /// Returns instructions executed in `executed`. `machine` null: fills in the table of handlers.
    static Event run(Machine *machine, uint64_t &executed, const void *const **table = nullptr);
};

/// A helper: arguments in r[1] to r[5], the result is r0's.
using Helper = uint64_t (*)(Machine &, const uint64_t *r);
/// helpers.cpp: the code of the helper of that number (enum bpf_func_id). nullptr: not emulated.
[[nodiscard]] Helper find_emulated(uint64_t helper);
/// kfuncs.cpp: a function of the kernel's, called in the same way. nullptr: not emulated.
[[nodiscard]] Helper find_emulated_kfunc(std::string_view name);

/// timers.cpp: the helpers bpf_timer_init() and so on.
///@{
uint64_t timer_init(Machine &machine, const uint64_t *r);
uint64_t timer_set_callback(Machine &machine, const uint64_t *r);
uint64_t timer_start(Machine &machine, const uint64_t *r);
uint64_t timer_cancel(Machine &machine, const uint64_t *r);
///@}

/// printf as bpf_trace_printk() and bpf_snprintf() know it. The format has its zero at the end. False where the kernel says
/// -EINVAL.
[[nodiscard]] bool bpf_printf(Machine &machine, std::string_view format_text, std::span<const uint64_t> arguments,
                              std::string &out);

} // namespace rawbpf::inline v0::emulator
