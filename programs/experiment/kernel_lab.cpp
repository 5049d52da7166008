// In the kernel: load, attach, and what holds them. Links are dropped first, then programs and maps. Records are taken out of
// their rings whenever something is waited for, so that a step that shows none of them loses none either.
#include <algorithm>
#include <fcntl.h>

#include "programs/experiment/lab.h"
#include "runtime/base/fail.h"
#include "runtime/base/fd.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"
#include "runtime/link/link.h"
#include "runtime/symbols/kallsyms.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/net.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::experiment {
namespace {

class KernelLab final : public Lab {
  public:
    using Lab::Lab;

    Result<void> attach() override {
        // At an exec it decides what the probes see (compile_workload.cpp). All others stand in the order in which they are
        // asked.
        const Program *first = objects_.empty() ? nullptr : objects_.front().find_program(kExecProgram);
        if (first) TRY(attach_one(0, *first));
        for (size_t i = 0; i < objects_.size(); ++i)
            for (const Program &program : objects_[i].programs)
                if (&program != first) TRY(attach_one(i, program));
        return {};
    }
    std::vector<std::string> attached() const override {
        std::vector<std::string> out;
        for (const Link &link : links_) out.push_back(link.what());
        return out;
    }
    Result<void> workload_begins(uint32_t pid) override {
        const Map *roots = workload_roots();
        return roots ? roots->put(pid, uint8_t{0}) : Result<void>();
    }
    void workload_ended(uint32_t pid) override {
        if (const Map *roots = workload_roots()) (void)roots->erase(&pid); // fails only if it isn't there
    }
    std::vector<int> ring_fds() const override {
        std::vector<int> out;
        for (const Ring &each : rings_) out.push_back(each.ring.poll_fd());
        return out;
    }
    bool take_records() override {
        bool more = false;
        for (Ring &each : rings_) {
            each.ring.consume([&](Bytes bytes) { record(each.spec, each.name, bytes); });
            more |= !each.ring.damaged() && !each.ring.prepare_wait();
        }
        return more;
    }

  protected:
    Result<void> load_objects() override {
        for (ObjectSpec &spec : plan_.specs) {
            objects_.push_back(TRY(rawbpf::load(spec)));
            for (const std::string &note : objects_.back().notes) notes_.push_back(note);
        }
        for (size_t i = 0; i < objects_.size(); ++i)
            for (const Map &map : objects_[i].maps)
                if (map.type() == BPF_MAP_TYPE_RINGBUF)
                    rings_.push_back({i, map.name(), TRY(RingBuffer::open(map.fd(), map.max_entries()))});
        return {};
    }
    // Variables that no program uses have no map.
    bool is_unused(size_t spec, const MapSpec &map) { return !map.data_section.empty() && !objects_[spec].find_map(map.name); }
    Result<Contents> read(size_t spec, const MapSpec &named) override {
        if (is_unused(spec, named)) {
            std::vector<std::byte> values(named.contents.begin(), named.contents.end());
            return Contents{{named.key_size, named.value_size, 0}, std::vector<std::byte>(named.key_size), std::move(values), 1};
        }
        const Map *map = TRY(objects_[spec].needed_map(named.name));
        Map::Entries entries = TRY(map->read_all());
        Contents out;
        out.shape = {map->key_size(), map->value_size(), 0};
        if (map->per_cpu()) out.shape.cpus = map->lookup_size() / ((map->value_size() + 7) / 8 * 8);
        out.keys = std::move(entries.keys);
        out.values = std::move(entries.values);
        out.count = entries.count;
        return out;
    }
    Result<void> write(size_t spec, const MapSpec &named, const std::byte *key, std::span<const std::byte> value) override {
        if (is_unused(spec, named)) return {};
        const Map *map = TRY(objects_[spec].needed_map(named.name));
        std::vector<std::byte> all(map->lookup_size());
        const size_t stride = map->per_cpu() ? (value.size() + 7) / 8 * 8 : all.size();
        for (size_t cpu = 0; stride != 0 && cpu + stride <= all.size(); cpu += stride)
            std::copy(value.begin(), value.end(), all.begin() + static_cast<ptrdiff_t>(cpu));
        return map->update(key, all.data());
    }
    Result<void> erase(size_t spec, const MapSpec &named, const std::byte *key) override {
        const Map *map = TRY(objects_[spec].needed_map(named.name));
        return map->erase(key);
    }
    Result<Ran> run_once(size_t spec, size_t program, const std::vector<std::byte> &bytes, bool packet, uint32_t times) override {
        const ProgramSpec &wanted = plan_.specs[spec].programs[program];
        const Program *loaded = objects_[spec].find_program(wanted.name);
        if (!loaded) return fail(Errc::not_found, "{} isn't loaded", wanted.name);
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(loaded->fd.get());
        if (packet) {
            attr.data_in = sys::reg(bytes.data());
            attr.data_size_in = static_cast<uint32_t>(bytes.size());
            attr.repeat = times;
            times = 1;
        } else { // the context itself; the kernel repeats only packets
            attr.ctx_in = sys::reg(bytes.data());
            attr.ctx_size_in = static_cast<uint32_t>(bytes.size());
        }
        for (; times != 0; --times) TRY(sys::prog_test_run(attr));
        return Ran{static_cast<int32_t>(attr.retval), attr.duration, 0};
    }
    std::map<uint64_t, std::string> name_addresses(std::vector<uint64_t> addresses) override {
        std::map<uint64_t, std::string> out;
        if (Result<std::vector<symbols::KernelName>> named = symbols::name_kernel_addresses(std::move(addresses)))
            for (symbols::KernelName &each : *named) out[each.address] = std::move(each.symbol);
        return out;
    }

  private:
    struct Ring {
        size_t spec = 0;
        std::string name;
        RingBuffer ring;
    };
    [[nodiscard]] Result<void> attach_one(size_t spec, const Program &program);
    /// nullptr: no probe asks whose event it is.
    [[nodiscard]] const Map *workload_roots() { return objects_.empty() ? nullptr : objects_.front().find_map(kRootsMap); }

    std::vector<LoadedObject> objects_; ///< of Plan::specs
    std::vector<Fd> held_;              ///< what attachments refer to
    std::vector<Ring> rings_;
    std::vector<Link> links_;
};

Result<void> KernelLab::attach_one(size_t spec, const Program &program) {
    AttachOptions options;
    const Attach *line = nullptr;
    for (const Attach &each : experiment_.attachments)
        if (each.program == program.name) line = &each;
    uint64_t frequency = 0;
    for (const Placed &placed : plan_.places) {
        if (placed.program != program.name || spec != 0) continue;
        frequency = placed.frequency;
        options.target = placed.target;
        options.semaphore = placed.semaphore;
    }
    bool said = frequency != 0 || !options.target.empty();
    if (line) {
        said = true;
        if (line->way == "nowhere") return {};
        if (line->way == "section") options.target = line->target.substr(line->target.find('/') + 1);
        if (line->way == "every" && (!parse_whole(line->target, frequency) || frequency == 0))
            return fail(Errc::invalid_argument, "attach {} every {}: a frequency is a number of Hz", program.name, line->target);
        if (line->way == "interface") {
            options.interface = TRY(sys::interface_index(line->target));
            options.egress = line->egress;
        }
        if (line->way == "cgroup" || line->way == "netns") {
            held_.push_back(TRY(sys::open(line->target, O_RDONLY)));
            options.target_fd = held_.back().get();
        }
    }
    if (frequency != 0) {
        links_.push_back(TRY(attach_clock(program, frequency)));
        return {};
    }
    if (!said && !attaches_by_itself(program)) {
        notes_.push_back(format("{} isn't attached: a line `attach {} PLACE` says where", program.name, program.name));
        return {};
    }
    links_.push_back(TRY(attach_program(plan_.specs[spec], objects_[spec], program, options)));
    for (const std::string &note : links_.back().notes()) notes_.push_back(note);
    return {};
}

} // namespace

std::unique_ptr<Lab> kernel_lab(const Experiment &experiment, Plan &plan) {
    return std::make_unique<KernelLab>(experiment, plan);
}

} // namespace rawbpf::inline v0::experiment
