// The program of off_cpu_dsl.cpp as the profiler's Run wants it: configured, attached, its records, its numbers.
//
//      begun = in a ring + too short + lost + still waiting
//
// is exact at the end: once the program is detached and every CPU is out of it, the rings are drained, and the slots of the
// threads that are away are all that is left.
#include "programs/profile/off_cpu.h"

#include <algorithm>
#include <cstring>

#include <linux/bpf.h>

#include "programs/capture/off_cpu_dsl.h"
#include "programs/capture/parse_record.h"
#include "programs/capture/task_state.h"
#include "programs/profile/off_cpu_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/membarrier.h"

namespace rawbpf::inline v0::profile {

namespace {

class AtSwitches final : public OffCpu {
  public:
    explicit AtSwitches(uint64_t min_wait_ns) : min_wait_ns_(min_wait_ns) {}

    Result<ObjectSpec> spec(const ProgramOptions &options) override {
        OffCpuProgram program;
        program.config = options.config;
        program.follow = options.config.filter_pid == PROFILE_PIDS_LEFT_OUT;
        if (program.follow) program.config.filter_pid = PROFILE_PIDS_WANTED;
        program.config.wakeup_bytes = ring_share(options) / 4;
        program.min_wait_ns = min_wait_ns_;
        program.threads = options.threads;
        program.wide_state = TRY_IN(has_wide_state(), "--off-cpu");
        const UnwindProgramOptions *unwind = options.unwind ? &*options.unwind : nullptr;
        head_at_ = waiting_record_at(unwind);
        spec_ = TRY(object_of(off_cpu_unit(program, unwind, options.languages, options.labels ? &*options.labels : nullptr)));
        complete_unwind_maps(spec_);
        TRY(size_maps(spec_, options));
        return spec_;
    }

    Result<void> attach(LoadedObject &object) override {
        sys::Because why("the scheduler's switch from one thread to another: who leaves, and who comes back");
        for (const char *name : {"profile_fork", "profile_exit", "profile"}) { // the first before the first fork
            const Program *program = object.find_program(name);
            if (!program) continue;
            links_.push_back(TRY_IN(attach_program(spec_, object, *program), "attaching"));
        }
        return {};
    }

    void detach() override {
        sys::Because why("no more waits; when this is done, no CPU runs the program any more");
        while (!links_.empty()) links_.pop_back();
        sys::wait_for_programs();
    }

    std::optional<RawWait> parse(Bytes record) const override {
        if (record.size() < sizeof(OffCpuHead)) return std::nullopt;
        const auto head = load<OffCpuHead>(record.data());
        auto sample = parse_record(record.subspan(sizeof head));
        if (!sample) return std::nullopt;
        RawWait out;
        out.left_ns = sample->head.t_ns;
        if (head.waited_ns != OFF_CPU_STACK) out.waited_ns = std::max<uint64_t>(head.waited_ns, 1);
        out.sample = *sample;
        out.sample.head.t_ns = head.back_ns;
        return out;
    }

    Result<void> rest(LoadedObject &object, uint64_t now_ns, const std::function<void(Bytes)> &take) override {
        sys::Because why("threads that haven't come back yet: when they left, and their stacks");
        const Map *off = TRY(object.needed_map("profile_off"));
        // By key: a batch of all values would be megabytes.
        std::vector<uint32_t> keys;
        for (uint32_t key = 0; keys.size() < off->max_entries();) {
            auto next = off->next_key(keys.empty() ? nullptr : &key, &key);
            if (!next && next.error().kind == Errc::not_found) break;
            TRY(std::move(next));
            keys.push_back(key);
        }
        std::vector<std::byte> value(off->lookup_size());
        for (const uint32_t key : keys) {
            TRY(off->lookup(&key, value.data()));
            std::byte *at = value.data() + head_at_;
            OffCpuHead head{};
            const uint64_t left = load<RecordHead>(at + sizeof head).t_ns;
            if (left == 0) continue;
            head.back_ns = std::max(now_ns, left);
            head.waited_ns = head.back_ns - left;
            if (head.waited_ns < min_wait_ns_) {
                ++too_short_;
                continue;
            }
            std::memcpy(at, &head, sizeof head);
            ++waiting_;
            take(record_in(value));
        }
        return {};
    }

    Result<void> account(LoadedObject &object, Ledger &ledger) const override {
        const Map *counts = TRY(object.needed_map("profile_counts"));
        OffCpuCounts sum{};
        for (const OffCpuCounts &cpu : TRY((counts->get_per_cpu<uint32_t, OffCpuCounts>(0)))) {
            for (const auto member :
                 {&OffCpuCounts::begun, &OffCpuCounts::too_short, &OffCpuCounts::preempted, &OffCpuCounts::lost_ring_full,
                  &OffCpuCounts::lost_no_room, &OffCpuCounts::end_unseen, &OffCpuCounts::not_followed})
                sum.*member += cpu.*member;
        }
        const uint64_t too_short = sum.too_short + too_short_;
        ledger.fired = sum.begun;
        ledger.filtered += too_short;
        ledger.lost = {{"ring_full", sum.lost_ring_full}, {"no_room", sum.lost_no_room}};
        ledger.waits = {{"still_waiting", waiting_},
                        {"too_short", too_short},
                        {"preempted", sum.preempted},
                        {"end_not_seen", sum.end_unseen},
                        {"children_not_followed", sum.not_followed}};
        return {};
    }

  private:
    /// What a slot would have sent: the stacks, and an interpreter's frames behind them, end it.
    [[nodiscard]] Bytes record_in(Bytes slot) const {
        const Bytes from = slot.subspan(head_at_);
        const auto head = load<RecordHead>(from.data() + sizeof(OffCpuHead));
        const size_t bytes = sizeof(OffCpuHead) + sizeof(ProfileRecord) + stack_bytes(head).all();
        return from.first(std::min(bytes, from.size()));
    }

    uint64_t min_wait_ns_;
    uint32_t head_at_ = 0;
    ObjectSpec spec_;
    std::vector<Link> links_;
    uint64_t waiting_ = 0, too_short_ = 0;
};

} // namespace

std::unique_ptr<OffCpu> make_off_cpu(uint64_t min_wait_ns) { return std::make_unique<AtSwitches>(min_wait_ns); }

} // namespace rawbpf::inline v0::profile
