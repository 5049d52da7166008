#include "programs/profile/loading.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>

#include "programs/languages/choice.h"
#include "programs/profile/off_cpu.h"
#include "programs/session/stack_counting.h"
#include "programs/unwind/choice.h"
#include "programs/unwind/kernel_members.h"
#include "programs/unwind/probes_about.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/random.h"

namespace rawbpf::inline v0::profile {
namespace {

// Samples, for the milliseconds that counting takes to prepare: the kernel's types are searched.
constexpr double kWorthCounting = 2000;

/// Why equal stacks aren't counted in the kernel, in words; empty: they are to be. It takes results that know only counts, and
/// that nothing else wants each sample.
std::string why_sent(const Setup &setup) {
    const ProfileOptions &options = setup.options;
    // A count says neither a thread nor at which of several rates its samples came, and a tracepoint's hits on CPUs that aren't
    // wanted are for us to drop.
    if (setup.period != 0 || options.max_cpu > 0 || options.per_thread)
        return ": of events, threads and a rate that changes all samples are sent";
    if (options.program) return ": only the program of the DSL can, and --object names another one";
    if (const auto why = session::why_not_counted()) return format(": that {}", *why);
    const double most = options.duration_s * static_cast<double>(options.frequency) * static_cast<double>(setup.cpus().size());
    if (options.duration_s > 0 && most < kWorthCounting) return ": so few samples are as quickly sent";
    return {};
}

class Loading {
  public:
    Loading(const Setup &setup, ProgramOptions program, Outcome &outcome)
        : setup_(setup), program_(std::move(program)), outcome_(outcome) {}

    /// With unwinding where it is wanted and the kernel takes it. What it lacks is seen by trying.
    Result<Loaded> load() {
        const ProfileOptions &options = setup_.options;
        choose_counting();
        const bool by_tables = options.unwind != UnwindBy::fp && options.user_stacks && !options.program;
        if (by_tables) {
            sys::Because why("user stacks are walked by unwind tables, not by frame pointers");
            const UnwindChoice choice{options.unwind, options.unwind_memory, options.depth};
            std::string note;
            program_.unwind = unwind_options(choice, note);
            if (program_.unwind) {
                auto loaded = load_with_tables();
                if (loaded) return Loaded{std::move(*loaded), std::move(program_)};
                if (!goes_without(choice, loaded.error(), note))
                    return Unexpected(in_context(std::move(loaded).error(), "unwinding without frame pointers"));
                program_.unwind.reset();
                program_.ring_bytes = ring_bytes(setup_, options.off_cpu != nullptr);
            }
            outcome_.warnings.push_back(std::move(note));
        }
        LoadedObject object = TRY(attempt());
        return Loaded{std::move(object), std::move(program_)};
    }

  private:
    void choose_counting() {
        const ProfileOptions &options = setup_.options;
        if (options.delivery != Delivery::counted || options.record_fd >= 0 || options.stack_counts == 0 || options.off_cpu)
            return;
        if (const std::string why = why_sent(setup_); !why.empty()) return say_sent(why);
        StackCountingOptions counting;
        counting.stacks = options.stack_counts;
        if (!sys::random_bytes(std::as_writable_bytes(std::span(&counting.seed, 1)))) return; // the keys would be guessable
        program_.counting = counting;
    }
    void say_sent(const std::string &why) { outcome_.cost.counting = "stacks are not counted in the kernel" + why; }

    Result<LoadedObject> load_with_tables() {
        const ProfileOptions &options = setup_.options;
        // Of events too many may come before the tables are there, as all of a process's first faults.
        program_.unwind->copies = !setup_.event.counts();
        program_.ring_bytes = ring_bytes(setup_, program_.unwind->copies || setup_.options.off_cpu);
        if (options.language_view != processes::ScriptView::native) {
            std::string why;
            program_.languages = walks_languages(program_.unwind, why);
            if (!why.empty()) outcome_.languages.push_back(std::move(why));
        }
        std::shared_ptr<const btf::Btf> kernel; // what was read for it, which whoever loads the program would have to read again
        if (any_probed()) kernel = go_through_probes();
        auto loaded = attempt();
        if (!loaded && program_.languages) {
            program_.languages = false;
            const Error refused = std::move(loaded).error();
            loaded = attempt();
            if (loaded) outcome_.warnings.push_back(languages_refused(refused));
        }
        if (loaded || !leave_probes_out()) return loaded;
        const Error refused = std::move(loaded).error();
        loaded = attempt();
        if (loaded)
            outcome_.warnings.push_back(
                format("stacks end where somebody's probes have taken return addresses ([uprobes]): {}", refused.message()));
        return loaded;
    }

    /// Counting in the kernel is worth no failure: without it all samples are sent.
    Result<LoadedObject> attempt() {
        const auto once = [&]() -> Result<LoadedObject> { return rawbpf::load(TRY(spec())); };
        auto loaded = once();
        if (loaded || !program_.counting) return loaded;
        program_.counting.reset();
        auto without = once();
        if (without) say_sent(": " + loaded.error().message());
        return without;
    }
    [[nodiscard]] Result<ObjectSpec> spec() const {
        OffCpu *off_cpu = setup_.options.off_cpu;
        if (off_cpu) return off_cpu->spec(program_);
        return setup_.options.program ? program_spec(*setup_.options.program, program_) : program_spec(program_);
    }

    /// Whether stacks may lead to what the kernel puts into processes for probes: a page of probed instructions, and in the place
    /// of return addresses its own. What walks on from there takes the kernel's BTF, which costs as much as half of all else that
    /// is looked up for a start. So it is asked whether anybody has probes, and of processes given whether they have that page; a
    /// command's process has none yet.
    [[nodiscard]] bool any_probed() const {
        const ProfileOptions &options = setup_.options;
        if (options.off_cpu || program_.counting) return true; // such programs take the BTF anyway
        if (!options.workload.empty()) return false;
        if (options.pids.empty()) return probes_may_be_about();
        sys::Because why("is it probed? Then its stacks begin in the kernel's page of probed instructions, or lead there");
        return std::any_of(options.pids.begin(), options.pids.end(), [](int pid) {
            const Result<symbols::ProcessMaps> maps = symbols::read_maps(pid);
            return maps && std::any_of(maps->regions.begin(), maps->regions.end(),
                                       [](const symbols::Region &region) { return region.path == "[uprobes]"; });
        });
    }
    std::shared_ptr<const btf::Btf> go_through_probes() {
        std::shared_ptr<const btf::Btf> kernel = kernel_btf().value_or(nullptr);
        program_.unwind->return_probes = kernel && has_return_instances(*kernel);
        program_.unwind->probed_code = kernel && has_probed_instructions(*kernel);
        return kernel;
    }
    /// Whether that makes a difference.
    bool leave_probes_out() {
        UnwindProgramOptions &walk = *program_.unwind;
        const bool either = walk.return_probes || walk.probed_code;
        walk.return_probes = walk.probed_code = false;
        return either;
    }

    const Setup &setup_;
    ProgramOptions program_;
    Outcome &outcome_;
};

} // namespace

Result<Loaded> load_profile(const Setup &setup, Outcome &outcome) {
    const ProfileOptions &options = setup.options;
    Fd cgroup;
    if (!options.cgroup.empty()) cgroup = TRY_IN(sys::open(options.cgroup, O_RDONLY | O_DIRECTORY), "the cgroup to profile");
    Loaded loaded = TRY(Loading(setup, TRY(program_options(setup)), outcome).load());
    if (!setup.by_descent() || options.off_cpu)
        for (int pid : options.pids)
            TRY(TRY(loaded.object.needed_map("profile_pids"))->put(static_cast<uint32_t>(pid), uint8_t{1}));
    if (cgroup) {
        const uint32_t slot = 0, fd = static_cast<uint32_t>(cgroup.get());
        TRY_IN(TRY(loaded.object.needed_map("profile_cgroup"))->update(&slot, &fd), "{} (a cgroup v2 directory is needed)",
               options.cgroup);
    }
    return loaded;
}

Result<std::vector<RingBuffer>> open_rings(LoadedObject &object, const ProgramOptions &program) {
    sys::Because why("the ring in our memory: our position, the kernel's, and the records, twice in a row so that none is torn");
    std::vector<RingBuffer> rings;
    for (uint32_t i = 0; i < std::min<uint32_t>(program.cpus, PROFILE_RINGS); ++i) {
        const Map *ring = TRY(object.needed_map(format("profile_ring_{}", i)));
        rings.push_back(TRY(RingBuffer::open(ring->fd(), ring->max_entries())));
    }
    return rings;
}

} // namespace rawbpf::inline v0::profile
