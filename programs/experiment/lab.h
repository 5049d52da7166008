// What an experiment works on while it runs: its maps, rings, variables and programs, and what is known of the course of things.
// Where these are is another matter: in the kernel (kernel_lab.h) or in the emulator (emulated_lab.h).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "programs/experiment/evaluate.h"
#include "programs/experiment/plan.h"

namespace rawbpf::inline v0::experiment {

/// A record that has been read and not yet shown.
struct Record {
    size_t event = 0; ///< of Plan::events
    std::string bytes;
};

struct Moment;
struct Tape;

/// Dropping it lets go of everything.
class Lab : public Facts, public Names {
  public:
    Lab(const Experiment &experiment, Plan &plan) : experiment_(experiment), plan_(plan) {}

    /// Loads everything. Errors: load()'s.
    [[nodiscard]] Result<void> load();
    /// Attaches every program whose section, or a line `attach`, says where; the others are noted. Errors: attach_program()'s.
    [[nodiscard]] virtual Result<void> attach() = 0;
    /// What is attached, in words.
    [[nodiscard]] virtual std::vector<std::string> attached() const { return {}; }
    [[nodiscard]] const std::vector<std::string> &notes() const { return notes_; }

    /// A command is about to begin, or has ended: probes ask `workload`. Errors: a refusal of the map.
    [[nodiscard]] virtual Result<void> workload_begins(uint32_t) { return {}; }
    virtual void workload_ended(uint32_t) {}

    // ---- events
    /// Descriptors that become readable when records come.
    [[nodiscard]] virtual std::vector<int> ring_fds() const { return {}; }
    /// Moves what the rings have to pending(). False: there is nothing more, and the kernel will wake who sleeps.
    [[nodiscard]] virtual bool take_records() = 0;
    [[nodiscard]] std::deque<Record> &pending() { return pending_; }

    // ---- maps, variables, programs
    [[nodiscard]] Result<FigureTable> table(const std::string &name);
    /// Takes everything out, or sets all elements of an array to zero.
    [[nodiscard]] Result<void> clear(const std::string &name);
    /// "counts[3] = 7" after loading; the key's value is worked out here.
    [[nodiscard]] Result<void> set_element(const Expr &element, const std::string &value);
    /// Before load() the first value, afterwards the value in memory.
    [[nodiscard]] Result<void> set_variable(const std::string &path, const std::string &value);
    /// Runs a program (without a name the only one) on these bytes, a packet or what r1 points to. What it returned and how long
    /// it took are then number("packet.result"), "packet.ns" and "packet.instructions" (0 where nobody counts), or "run.*".
    [[nodiscard]] Result<void> run_program(const Step &step, const std::vector<std::byte> &bytes, uint32_t times);

    /// What is known of the course of things: "events.count" and so on are worked out here, others are set by who runs the steps.
    void set_number(const std::string &name, Number value);

    // ---- recording and replaying (tape.h)
    /// From now on everything that comes is added there, too.
    void record_to(std::vector<Moment> *moments) { moments_ = moments; }
    /// A step begins: its line. In a replay, what came at that step comes now.
    virtual void begin_step(const std::string &source);
    /// In a replay: that step is the next one.
    [[nodiscard]] virtual bool next_step_is(const std::string &) const { return false; }
    /// What all maps hold in the end, for the recording.
    void record_maps();
    /// Names of the kernel's addresses in a table, found in one pass.
    void prepare_symbols(const FigureTable &table);
    void prepare_symbols(const EventView &view, Bytes record);

    Result<const FigureTable *> map(const std::string &name) override;
    std::optional<Number> number(const std::string &name) override;
    const btf::Btf *types(const std::string &map) override;
    const btf::Btf *types_of(size_t spec) const { return spec < types_.size() && types_[spec] ? &*types_[spec] : nullptr; }
    std::string symbol(uint64_t address) override;

  protected:
    /// All entries of a map, one behind the other.
    struct Contents {
        MapShape shape;
        std::vector<std::byte> keys, values;
        size_t count = 0;
    };
    struct Ran {
        int32_t result = 0; ///< programs return an int: the low half of r0
        uint64_t ns = 0, instructions = 0;
    };
    [[nodiscard]] virtual Result<void> load_objects() = 0;
    /// `map`: one of Plan::specs[spec].
    [[nodiscard]] virtual Result<Contents> read(size_t spec, const MapSpec &map) = 0;
    /// `value`: of one CPU; all get it.
    [[nodiscard]] virtual Result<void> write(size_t spec, const MapSpec &map, const std::byte *key,
                                             std::span<const std::byte> value) = 0;
    [[nodiscard]] virtual Result<void> erase(size_t spec, const MapSpec &map, const std::byte *key) = 0;
    [[nodiscard]] virtual Result<Ran> run_once(size_t spec, size_t program, const std::vector<std::byte> &bytes, bool packet,
                                               uint32_t times) = 0;
    [[nodiscard]] virtual std::map<uint64_t, std::string> name_addresses(std::vector<uint64_t> addresses) = 0;
    /// Keeps a record, or counts that there was no room.
    void record(size_t spec, const std::string &ring, Bytes bytes);

    const Experiment &experiment_;
    Plan &plan_;
    std::vector<std::string> notes_;

  private:
    /// read(), recorded.
    [[nodiscard]] Result<Contents> look(size_t spec, const MapSpec &map);
    [[nodiscard]] Result<uint64_t> lost(uint32_t which);
    [[nodiscard]] const MapSpec *map_named(const std::string &name, size_t &spec) const;
    void look_up(std::vector<uint64_t> addresses);

    std::vector<std::optional<btf::Btf>> types_;
    std::deque<Record> pending_;
    size_t pending_bytes_ = 0;
    uint64_t refused_ = 0; ///< records that there was no room for here
    std::map<std::string, uint64_t> counts_;
    std::map<std::string, Number> numbers_;
    std::map<uint64_t, std::string> symbols_;
    FigureTable table_;
    bool loaded_ = false;
    std::vector<Moment> *moments_ = nullptr;
};

/// In the kernel.
[[nodiscard]] std::unique_ptr<Lab> kernel_lab(const Experiment &experiment, Plan &plan);
/// In user space, without privileges: nothing is attached, programs run when a step says so.
[[nodiscard]] std::unique_ptr<Lab> emulated_lab(const Experiment &experiment, Plan &plan);
/// What was recorded, again: nothing is loaded, attached or run. `tape` has to live as long.
[[nodiscard]] std::unique_ptr<Lab> replayed_lab(const Experiment &experiment, Plan &plan, const Tape &tape);

} // namespace rawbpf::inline v0::experiment
