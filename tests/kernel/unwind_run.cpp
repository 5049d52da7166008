// The profiler's controller in small: the same program and the same tables, but nothing is named or counted before all is over.
#include "tests/kernel/unwind_run.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include "programs/profile/program.h"
#include "programs/profile/sample.h"
#include "runtime/base/fail.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/link/perf_event.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/unwind_workload.h"

namespace rawbpf::test {

Result<void> ProcessFiles::read(uint32_t pid) {
    maps = TRY(symbols::read_maps(static_cast<int>(pid)));
    return {};
}

Result<Fd> ProcessFiles::open(uint32_t, const unwind::CodeMapping &mapping) {
    return sys::open(maps.regions[mapping.module].path, O_RDONLY);
}

std::vector<unwind::CodeMapping> ProcessFiles::mappings() const {
    return code_mappings(maps.regions,
                         [&](const symbols::Region &region) { return static_cast<uint32_t>(&region - maps.regions.data()); });
}

std::string ProcessFiles::name_of(uint64_t address) {
    const symbols::Region *region = maps.find(address);
    if (!region) return "?";
    if (region->kind() != symbols::RegionKind::file) return region->path;
    auto known = symbols_.find(region->path);
    if (known == symbols_.end()) {
        auto loaded = symbols::ElfSymbols::load(region->path);
        if (!loaded) return region->path;
        known = symbols_.emplace(region->path, std::move(*loaded)).first;
    }
    auto name = known->second.find(region->offset_of(address));
    return name ? name->symbol : region->path;
}

void UnwoundStack::name(ProcessFiles &files) {
    for (size_t i = 0; i < frames.size(); ++i) {
        const bool exact = i == 0 || (frames[i] & UNWIND_EXACT_PC) != 0;
        names.push_back(files.name_of((frames[i] & ~UNWIND_EXACT_PC) - (exact ? 0 : 1)));
    }
}

std::string UnwoundStack::text() const {
    std::string out = std::string(flags & UNWIND_TABLES ? "" : "[fp] ") + kEndings[PROFILE_ENDING(flags) % UNWIND_ENDINGS] + ":";
    for (const std::string &name : names) out += " " + name;
    return out;
}

size_t UnwoundStack::run(size_t at, std::string_view name) const {
    size_t end = at;
    while (end < names.size() && names[end] == name) ++end;
    return end - at;
}

namespace {

Result<void> see(UnwindSeen &out, const std::string &what, int milliseconds, const UnwindRun &how) {
    profile::ProgramOptions program;
    program.config = {1, 1, 1, PROFILE_PIDS_WANTED, 0, 0, 0, 0, {}, 0, 0};
    program.unwind = probe_unwind();
    program.unwind->depth = how.depth;
    program.unwind->pools = how.pools;
    if (!how.bpf_loop) program.unwind->has_bpf_loop = false;
    program.unwind->copies = how.copies != UnwindCopies::off;
    program.cpus = static_cast<uint32_t>(TRY(possible_cpu_count()));
    if (program.unwind->copies) program.ring_bytes = 16 << 20; // for all of them together: who reads may be slow
    const RunStats stats = TRY(RunStats::enable());
    LoadedObject object = TRY(load(TRY(profile::program_spec(program))));

    sys::Child child = TRY(sys::Child::spawn(unwind_workload(what, milliseconds)));
    TRY(child.start());
    const auto pid = static_cast<uint32_t>(child.pid());
    const std::string status = "/proc/" + std::to_string(pid) + "/stat"; // "PID (unwound) T ..."
    for (int tries = 0; tries < 5000 && sys::read_file(status).value_or("").find("(unwound) T") == std::string::npos; ++tries)
        usleep(2000);
    ProcessFiles files;
    TRY(files.read(pid));
    unwind::LiveTablesOptions live_options;
    live_options.program = *program.unwind;
    const auto live = TRY(unwind::LiveTables::create(object, files, live_options));
    const uint64_t as_of = sys::monotonic_ns();
    const std::vector<unwind::CodeMapping> all = files.mappings();
    std::vector<unwind::CodeMapping> told = all;
    uint64_t when = as_of;
    if (how.copies == UnwindCopies::other || how.copies == UnwindCopies::long_ago) {
        told.assign(1, unwind::CodeMapping{unwind::CodeMapping::Kind::other, 0x1000, 0x2000, 0, 0});
        // A slow machine may take its time over the workload.
        when = how.copies == UnwindCopies::other ? when + 1000 * uint64_t{UNWIND_COPY_YOUNG_NS} : 1;
    }
    if (how.copies != UnwindCopies::off) { // while that is done no ring is read, and one that is half full gets no copies
        for (const unwind::CodeMapping &mapping : all)
            if (mapping.kind == unwind::CodeMapping::Kind::file)
                live->prepare(TRY(files.open(pid, mapping)), files.name(mapping.module));
    }
    if (how.prepared) {
        for (const unwind::CodeMapping &mapping : files.mappings())
            if (mapping.kind == unwind::CodeMapping::Kind::file)
                live->prepare(TRY(files.open(pid, mapping)), files.name(mapping.module));
        if (!TRY(live->update(pid, files.mappings(), as_of, sys::monotonic_ns())))
            return fail(Errc::internal, "tables that were prepared were made again");
    }
    if (how.tables && how.copies != UnwindCopies::nothing) {
        while (!TRY(live->update(pid, told, as_of, when))) { // it stands still: nothing can change meanwhile
        }
        if (!live->published(pid)) return fail(Errc::internal, "its tables weren't published");
        for (const std::string &warning : live->warnings()) return fail(Errc::internal, "{}", warning);
    }
    if (how.change) TRY(how.change(object, pid));
    TRY(object.find_map("profile_pids")->put(pid, uint8_t{1}));

    std::vector<RingBuffer> rings;
    for (int i = 0; i < PROFILE_RINGS; ++i) {
        const Map *ring = object.find_map("profile_ring_" + std::to_string(i));
        rings.push_back(TRY(RingBuffer::open(ring->fd(), ring->max_entries())));
    }
    const int fd = object.find_program("profile")->fd.get();
    SamplingEvent event;
    event.frequency = 997;
    event.pid = child.pid();
    event.inherit = true;
    const PerfEventLink link = TRY(PerfEventLink::open(event, fd));
    TRY(link.enable());
    TRY(child.kill(SIGCONT));
    size_t strange = 0;
    const auto take = [&](Bytes record) {
        const auto sample = profile::parse_record(record);
        if (!sample || sample->head.pid != pid || PROFILE_ENDING(sample->head.ending) >= UNWIND_ENDINGS) {
            ++strange;
            return;
        }
        UnwoundStack stack;
        stack.flags = sample->head.ending;
        stack.in_kernel = sample->head.kernel_bytes > 0;
        stack.frames.assign(sample->user.begin(), sample->user.end());
        if (sample->copy) {
            auto walked = live->walk(pid, all, *sample->copy, sample->head.t_ns);
            if (!walked) {
                ++strange;
                return;
            }
            stack.copied = true;
            stack.frames = std::move(walked->frames);
            stack.flags = walked->ending | UNWIND_TABLES;
        }
        out.stacks.push_back(std::move(stack));
    };
    for (bool ended = false; !ended;) {
        ended = TRY(child.poll()).has_value();
        for (RingBuffer &ring : rings) ring.consume(take);
        if (how.old_news) (void)TRY(live->update(pid, told, as_of, sys::monotonic_ns()));
        usleep(5000);
    }
    for (UnwoundStack &stack : out.stacks) stack.name(files);
    out.cost = TRY(run_cost(fd));
    if (strange > 0) return fail(Errc::internal, "{} records that aren't", strange);
    return {};
}

} // namespace

UnwindSeen see_workload(const std::string &what, int milliseconds, const UnwindRun &how) {
    UnwindSeen out;
    if (auto done = see(out, what, milliseconds, how); !done) out.why = done.error().message() + done.error().log;
    return out;
}

} // namespace rawbpf::test
