// In the emulator: an object is a machine. Nothing is attached, since nothing happens there by itself: a program runs when a step
// `packet` or `run` says so. A map for each CPU has the values of one.
#include <algorithm>
#include <deque>

#include "programs/experiment/lab.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "runtime/kernel/loader.h"
#include "runtime/object/core.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr uint64_t kMostInstructions = 100'000'000; // of one run: what never ends is told, not waited for

class EmulatedLab final : public Lab {
  public:
    using Lab::Lab;

    Result<void> attach() override {
        for (const ObjectSpec &spec : plan_.specs)
            for (const ProgramSpec &program : spec.programs)
                notes_.push_back(format("{} isn't attached: in the emulator a program runs when a step `packet` or `run` says so",
                                        program.name));
        return {};
    }
    bool take_records() override {
        for (size_t i = 0; i < machines_.size(); ++i)
            for (size_t j = 0; j < plan_.specs[i].maps.size(); ++j) {
                emulator::EmulatedMap &map = *machines_[i]->maps()[j];
                if (map.kind() != MapEngine::ring) continue;
                // Nobody takes them out of the map: those that were read are counted.
                size_t &seen = seen_[{i, j}], number = 0;
                map.each_record([&](std::string_view bytes) {
                    if (number++ < seen) return;
                    ++seen;
                    record(i, map.name(), bytes_of(bytes));
                });
            }
        return false;
    }

  protected:
    Result<void> load_objects() override {
        for (ObjectSpec &spec : plan_.specs) {
            if (needs_core(spec)) {
                const std::shared_ptr<const btf::Btf> kernel =
                    TRY_IN(kernel_btf(), "{} wants to know where the kernel's structs have their members", spec.name);
                const btf::Btf *target = kernel.get();
                TRY(relocate_core(spec, std::span(&target, 1)));
            }
            machines_.push_back(TRY(emulator::Machine::create(spec, {.limit = kMostInstructions, .stepping = false})));
        }
        return {};
    }
    Result<Contents> read(size_t spec, const MapSpec &named) override {
        emulator::EmulatedMap &map = machine_map(spec, named);
        Contents out;
        out.shape = {map.key_size(), map.value_size(), map.per_cpu() ? 1U : 0U};
        const size_t stride = map.per_cpu() ? (out.shape.value_size + 7) / 8 * 8 : out.shape.value_size;
        for (uint32_t i = map.next_entry(0); i < map.max_entries(); i = map.next_entry(i + 1)) {
            uint32_t index = 0;
            append_bytes(out.keys, map.key_at(i, index), map.key_size());
            append_bytes(out.values, map.value_at(i), map.value_size());
            out.values.resize((out.count + 1) * stride);
            ++out.count;
        }
        return out;
    }
    Result<void> write(size_t spec, const MapSpec &named, const std::byte *key, std::span<const std::byte> value) override {
        return done(machine_map(spec, named)
                        .update(reinterpret_cast<const uint8_t *>(key), reinterpret_cast<const uint8_t *>(value.data()), 0),
                    named);
    }
    Result<void> erase(size_t spec, const MapSpec &named, const std::byte *key) override {
        return done(machine_map(spec, named).erase(reinterpret_cast<const uint8_t *>(key)), named);
    }
    Result<Ran> run_once(size_t spec, size_t program, const std::vector<std::byte> &bytes, bool packet, uint32_t times) override {
        emulator::Machine &machine = *machines_[spec];
        const bool xdp = plan_.specs[spec].programs[program].type == BPF_PROG_TYPE_XDP;
        Given wanted{spec, bytes.size(), packet, xdp};
        if (memories_.empty() || given_ != wanted) { // what earlier runs addressed stays where it is
            memories_.push_back(bytes);
            if (packet)
                TRY(machine.set_packet(memories_.back(), xdp));
            else
                TRY(machine.set_memory(memories_.back()));
            given_ = wanted;
        }
        Ran out;
        for (uint32_t i = 0; i < times; ++i) {
            std::copy(bytes.begin(), bytes.end(), memories_.back().begin());
            TRY(machine.enter(program));
            out.result = static_cast<int32_t>(RAWBPF_TRY(machine.run()));
            out.instructions = machine.executed();
        }
        return out;
    }
    std::map<uint64_t, std::string> name_addresses(std::vector<uint64_t>) override { return {}; }

  private:
    static void append_bytes(std::vector<std::byte> &out, const uint8_t *from, size_t size) {
        const auto *bytes = reinterpret_cast<const std::byte *>(from);
        out.insert(out.end(), bytes, bytes + size);
    }
    static Result<void> done(int64_t result, const MapSpec &map) {
        if (result == 0) return {};
        return fail_os(static_cast<int>(-result), "changing the map {}", map.name);
    }
    emulator::EmulatedMap &machine_map(size_t spec, const MapSpec &named) {
        const std::vector<MapSpec> &maps = plan_.specs[spec].maps;
        return *machines_[spec]->maps()[static_cast<size_t>(&named - maps.data())];
    }

    std::vector<std::unique_ptr<emulator::Machine>> machines_; ///< of Plan::specs
    std::map<std::pair<size_t, size_t>, size_t> seen_;
    struct Given {
        size_t spec = 0, size = 0;
        bool packet = false, xdp = false;
        friend bool operator==(const Given &, const Given &) = default;
    };
    std::deque<std::vector<std::byte>> memories_;
    Given given_; ///< what the last of them was given for
};

} // namespace

std::unique_ptr<Lab> emulated_lab(const Experiment &experiment, Plan &plan) {
    return std::make_unique<EmulatedLab>(experiment, plan);
}

} // namespace rawbpf::inline v0::experiment
