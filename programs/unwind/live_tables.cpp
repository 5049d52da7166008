// The policy, and the kernel's side of pools, rules and processes.
//
// A change of a map of maps makes the kernel wait until no program runs that may have seen the old member: some ten milliseconds,
// although the new one is there at once. So a pool is put in place by a copy of this process (runtime/sys/blocking_call.h), which
// waits in our stead; that it is there is seen by asking for it. The wait is wanted only once: before bytes are used again that
// programs may still be reading. Then the first pool is put where it is already.
//
// Between an exec and the moment that we are told what was mapped then, programs must see nothing of the process: a program at
// the kernel's exec takes it away (exec_watch.h), and what was told too late isn't put back.
//
// Who knows what will be mapped has tables made beforehand (prepare()): then a process's first mappings are published at once.
//
// A table goes when there is no room for another one, if no sample was in it for some seconds. What was published of processes
// that map it goes first; with their next sample they come again, without it or with it. So tables that all are in use at once
// don't push each other out: who comes last goes without, and is counted.
#include "programs/unwind/live_tables.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <unordered_map>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "programs/unwind/exec_watch.h"
#include "programs/unwind/fingerprint.h"
#include "programs/unwind/live_code.h"
#include "programs/unwind/program.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/vdso.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/random.h"
#include "runtime/unwind/made_code.h"

namespace rawbpf::inline v0::unwind {

namespace {

constexpr uint64_t kRecentNs = 2'000'000'000; // since its last sample a table isn't dropped
constexpr uint64_t kAgainNs = 5'000'000'000;  // after one had no room
constexpr uint8_t kOpens = 8;                 // of a file that couldn't be opened, in different processes
constexpr uint64_t kPatienceNs = 20'000'000;  // for making tables, before records are read again
constexpr int kLooks = 100;                   // for a pool that is being put in place
constexpr size_t kMostWarnings = 5;

class KernelSide final : public PoolSource, public RuleSink, public ProcessSink {
  public:
    KernelSide(Map &pools, Map &rules, Map &processes, ExecWatch execs)
        : pools_(pools), rules_(rules), processes_(processes), execs_(std::move(execs)) {}

    Result<std::byte *> add(uint32_t pool) override {
        sys::Because why("a megabyte for unwind tables, written by us and read by the program");
        Member member;
        member.map = TRY(Map::create(unwind_pool_spec()));
        member.memory = TRY(sys::map(member.map.fd(), 0, UNWIND_POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED));
        if (auto call = sys::map_update_in_copy(pools_.fd(), pool, member.map.fd())) member.call = std::move(*call);
        members_.push_back(std::move(member));
        return members_.back().memory.data();
    }

    Result<void> publish() override {
        if (!keys_.empty()) {
            sys::Because why("rules that new tables refer to");
            TRY(sys::map_update_batch(rules_.fd(), keys_.data(), values_.data(), static_cast<uint32_t>(keys_.size())));
            keys_.clear();
            values_.clear();
        }
        for (; visible_ < members_.size(); ++visible_) {
            bool there = false;
            uint32_t id = 0;
            for (int look = 0; !there && look < kLooks; ++look)
                there = sys::map_lookup_elem(pools_.fd(), &visible_, &id).has_value();
            if (!there) TRY(put(visible_));
            members_[visible_].call = {};
        }
        return {};
    }

    Result<void> settle() override {
        sys::Because why("nothing new: when this returns, no program reads any more what was given back");
        return put(0);
    }

    Result<void> put(uint32_t number, const UnwindRule &rule) override {
        keys_.push_back(number);
        values_.push_back(rule);
        return {};
    }

    Result<bool> put(uint32_t pid, const UnwindProcess &process, uint64_t as_of_ns) override {
        {
            sys::Because why("where the program finds what a process has mapped");
            TRY(processes_.update(&pid, &process));
        }
        if (!execs_.executed_after(pid, as_of_ns)) return true;
        TRY(erase(pid));
        return false;
    }
    [[nodiscard]] bool executed_after(uint32_t pid, uint64_t t_ns) const { return execs_.executed_after(pid, t_ns); }
    bool has(uint32_t pid) override {
        sys::Because why("an exec takes away what was told of a process");
        UnwindProcess process{};
        return processes_.lookup(&pid, &process).has_value();
    }
    Result<void> erase(uint32_t pid) override {
        sys::Because why("a process that has ended, or goes on with another program, or whose tables go");
        auto erased = processes_.erase(&pid);
        if (!erased && erased.error().kind == Errc::not_found) return {};
        return erased;
    }

  private:
    struct Member {
        Map map;
        sys::Mapping memory;
        sys::BlockingCall call;
    };
    Result<void> put(uint32_t pool) {
        const auto fd = static_cast<uint32_t>(members_[pool].map.fd());
        return pools_.update(&pool, &fd);
    }

    Map &pools_, &rules_, &processes_;
    ExecWatch execs_;
    std::vector<Member> members_;
    uint32_t visible_ = 0;
    std::vector<uint32_t> keys_; // of rules that the map doesn't have yet
    std::vector<UnwindRule> values_;
};

class Live final : public LiveTables, private WalkTables {
  public:
    Live(std::unique_ptr<KernelSide> kernel, ModuleFiles &files, const UnwindProgramOptions &program, uint32_t pools,
         uint32_t processes, uint64_t key)
        : kernel_(std::move(kernel)), files_(files), program_(program), pools_(*kernel_, pools), rules_(*kernel_),
          tables_(pools_, rules_, [this] { return make_room(); }), processes_(pools_, *kernel_, *kernel_, processes), key_(key),
          code_(files) {}

    /// Takes nothing, but lets the first pool be made.
    void start() {
        if (const auto position = pools_.allocate(1)) pools_.release(*position, 1);
    }

    Result<bool> update(uint32_t pid, std::span<const CodeMapping> mappings, uint64_t as_of_ns, uint64_t now_ns) override {
        now_ns_ = now_ns;
        // A program that copies no stacks does better with frame pointers than with some of the tables.
        if (program_.copies &&
            std::any_of(mappings.begin(), mappings.end(), [&](const CodeMapping &mapping) { return is_new(mapping); })) {
            TRY(publish_known(pid, mappings, as_of_ns));
            now_ns = sys::monotonic_ns();
        }
        const uint64_t before = loads_;
        for (const CodeMapping &mapping : mappings) {
            if (mapping.has_table()) TRY(load(pid, mapping));
            if (loads_ != before && sys::monotonic_ns() - now_ns > kPatienceNs) break;
        }
        if (loads_ != before) return false;
        make_list(mappings);
        const Copied copied = hide_listed(mappings);
        while (!list_.empty() && TRY(processes_.publish(pid, list_, as_of_ns, now_ns, copied)) == Publication::no_room) {
            if (!make_room()) {
                ++without_room_;
                break;
            }
            // What went may have been in the list.
            for (UnwindMapping &mapping : list_)
                if (mapping.kind == UNWIND_BY_TABLE && !resident(mapping.pages)) mapping.kind = UNWIND_BY_NONE;
        }
        if (failure_) return Unexpected(*std::exchange(failure_, nullptr));
        return true;
    }

    [[nodiscard]] bool executed_after(uint32_t pid, uint64_t t_ns) const override { return kernel_->executed_after(pid, t_ns); }

    void prepare(const Fd &file, const std::string &name) override {
        if (vdso_ == Tables::kNone) load_vdso();
        if (pools_.used() >= pools_.most() / 2) return;
        sys::Because why("its unwind information, to be made into a table before it is run");
        const auto st = sys::stat_fd(file.get());
        if (!st) return;
        std::string stamp = stamp_of(*st);
        if (prepared_.count(stamp) != 0) return;
        const uint32_t table = make(file, name, stamp, 0);
        if (tables_[table].state == Tables::State::resident) prepared_.emplace(std::move(stamp), table);
    }

    Result<Walked> walk(uint32_t pid, std::span<const CodeMapping> mappings, const StackCopy &copy, uint64_t now_ns) override {
        now_ns_ = std::max(now_ns_, now_ns); // the sample's time, some moments ago
        if (vdso_ == Tables::kNone) load_vdso();
        code_.begin(pid, mappings);
        walked_pid_ = pid;
        // Of all that a process has mapped a stack needs two or three, and what isn't needed by others is made by update().
        for (;;) {
            make_list(known_of(mappings));
            Walked walked = unwind::walk(program_, *this, list_, copy);
            const auto missing = std::find_if(mappings.begin(), mappings.end(), [&](const CodeMapping &mapping) {
                return walked.pc >= mapping.start && walked.pc < mapping.end && is_new(mapping);
            });
            if (missing == mappings.end()) return walked;
            TRY(load(pid, *missing)); // after that it isn't new
        }
    }

    Result<void> ended(uint32_t pid) override { return processes_.withdraw(pid); }

    void used(uint32_t pid, uint32_t module, uint64_t now_ns) override {
        processes_.used(pid, now_ns);
        if (module < files_known_.size() && files_known_[module].table != Tables::kNone)
            tables_.used(files_known_[module].table, now_ns);
    }

    [[nodiscard]] bool published(uint32_t pid) const override { return processes_.published(pid); }

    [[nodiscard]] Stats stats() const override {
        Stats out;
        for (const Tables::Module &module : tables_.all()) out.modules += module.state == Tables::State::resident;
        out.bytes = pools_.used();
        out.pool_bytes = uint64_t{pools_.pools()} * UNWIND_POOL_BYTES;
        out.tables_dropped = tables_.drops();
        out.tables_without_room = without_room_;
        out.rules_without_room = rules_.overflows();
        out.processes_evicted = processes_.evictions();
        return out;
    }

    [[nodiscard]] std::vector<std::string> warnings() const override {
        std::vector<std::string> out;
        const auto say = [&](std::string sentence) {
            if (out.size() < kMostWarnings) out.push_back(std::move(sentence));
        };
        if (const Error *failure = pools_.failure()) say(format("no more room for unwind tables: {}", failure->message()));
        for (const Tables::Module &module : tables_.all())
            if (module.state == Tables::State::refused) say(format("stacks end in code without unwind tables: {}", module.why));
        for (const Known &known : files_known_)
            if (known.table == Tables::kNone && !known.why.empty())
                say(format("stacks end in code without unwind tables: {}", known.why));
        const Stats counts = stats();
        if (counts.tables_without_room + counts.tables_dropped > 0)
            say(format("unwind tables had no room {} times and made room for others {} times: more would be --unwind-memory",
                       counts.tables_without_room, counts.tables_dropped));
        if (counts.rules_without_room > 0)
            say(format("{} unwind rules had no room: stacks end where they are needed", counts.rules_without_room));
        if (counts.processes_evicted > 0)
            say(format("{} processes made room for others, and were unwound by frame pointers until they were sampled again",
                       counts.processes_evicted));
        return out;
    }

  private:
    struct Known { // of the caller's module of that number
        uint32_t table = Tables::kNone;
        bool met = false; // load() was asked for it
        uint8_t opens = 0;
        uint64_t tried_ns = 0;
        std::string why; // it couldn't be opened
    };

    [[nodiscard]] uint32_t table_of(const CodeMapping &mapping) const {
        return mapping.kind == CodeMapping::Kind::vdso ? vdso_ : files_known_[mapping.module].table;
    }
    [[nodiscard]] bool is_new(const CodeMapping &mapping) const {
        if (mapping.kind != CodeMapping::Kind::file) return false;
        return mapping.module >= files_known_.size() || !files_known_[mapping.module].met;
    }
    [[nodiscard]] std::span<const CodeMapping> known_of(std::span<const CodeMapping> mappings) {
        known_.clear();
        std::copy_if(mappings.begin(), mappings.end(), std::back_inserter(known_),
                     [&](const CodeMapping &mapping) { return !is_new(mapping); });
        return known_;
    }
    /// For as long as the other tables are being made: a stack that ends for want of one is copied, as this is news.
    Result<void> publish_known(uint32_t pid, std::span<const CodeMapping> mappings, uint64_t as_of_ns) {
        make_list(known_of(mappings));
        const Copied copied = hide_listed(mappings);
        if (list_.empty()) return processes_.withdraw(pid); // what programs saw isn't mapped any more
        (void)TRY(processes_.publish(pid, list_, as_of_ns, now_ns_, copied));
        return {};
    }
    [[nodiscard]] bool resident(uint32_t directory) const {
        const auto &all = tables_.all();
        return std::any_of(all.begin(), all.end(), [&](const Tables::Module &module) {
            return module.state == Tables::State::resident && module.directory == directory;
        });
    }

    /// Takes out of list_ what programs can't walk: for them it is no mapping, so stacks that come there are copied while the
    /// process is young, and it always is.
    Copied hide_listed(std::span<const CodeMapping> mappings) {
        const auto listed = [](const UnwindMapping &mapping) { return mapping.kind == kListed; };
        const auto end = std::remove_if(list_.begin(), list_.end(), listed);
        const bool any = end != list_.end();
        list_.erase(end, list_.end());
        const bool all = std::any_of(mappings.begin(), mappings.end(), [](const CodeMapping &mapping) { return mapping.copied; });
        return all ? Copied::all : any ? Copied::unknown : Copied::while_young;
    }

    /// list_ = how code in these mappings is unwound.
    void make_list(std::span<const CodeMapping> mappings) {
        list_.clear();
        for (const CodeMapping &mapping : mappings) {
            UnwindMapping next{};
            if (mapping.kind == CodeMapping::Kind::uniform) {
                next = tables_.mapping(tables_.add_uniform(mapping.frame, now_ns_), mapping.start, mapping.end, 0);
            } else if (!mapping.has_table()) {
                const auto kind = mapping.kind == CodeMapping::Kind::listed ? kListed : uint16_t{UNWIND_BY_FP};
                next = {mapping.start, mapping.end, 0, 0, 0, kind};
            } else {
                next = tables_.mapping(table_of(mapping), mapping.start, mapping.end, mapping.file_offset);
            }
            const bool joins = !list_.empty() && next.kind != UNWIND_BY_TABLE && list_.back().kind == next.kind &&
                               list_.back().end == next.start; // a compiler at run time makes thousands of them
            if (joins)
                list_.back().end = next.end;
            else
                list_.push_back(next);
        }
        if (list_.size() > UNWIND_MAX_MAPPINGS) list_.resize(UNWIND_MAX_MAPPINGS);
    }
    [[nodiscard]] const std::byte *pool(uint32_t number) const override {
        return number < pools_.pools() ? pools_.at(number << UNWIND_POOL_BITS) : nullptr;
    }
    [[nodiscard]] const UnwindRule *rule(uint32_t number) const override { return rules_.find(number); }
    [[nodiscard]] bool code(uint64_t address, std::span<std::byte> into) const override { return code_.read(address, into); }
    [[nodiscard]] std::optional<ListedRule> listed(uint64_t pc) const override {
        if (auto rule = files_.listed(walked_pid_, pc)) return rule;
        const auto told = files_.told(walked_pid_, pc);
        if (!told) return std::nullopt;
        const auto rule = rule_of_made_code(program_.arch, told->eh_frame, told->address, pc);
        return ListedRule{rule.value_or(kByFramePointer)};
    }

    bool make_room() {
        const uint32_t victim = tables_.least_used(now_ns_ > kRecentNs ? now_ns_ - kRecentNs : 0);
        if (victim == Tables::kNone) return false;
        if (auto gone = processes_.withdraw_users(tables_[victim].directory); !gone) {
            failure_ = std::make_unique<Error>(std::move(gone).error());
            return false;
        }
        tables_.drop(victim);
        return true;
    }

    Result<void> load(uint32_t pid, const CodeMapping &mapping) {
        if (mapping.kind == CodeMapping::Kind::vdso) {
            if (vdso_ == Tables::kNone) load_vdso();
            return {};
        }
        if (files_known_.size() <= mapping.module) files_known_.resize(mapping.module + 1);
        Known &known = files_known_[mapping.module];
        known.met = true;
        if (known.table != Tables::kNone) {
            tables_.used(known.table, now_ns_);
            if (tables_[known.table].state != Tables::State::dropped || now_ns_ - known.tried_ns < kAgainNs) return {};
        } else if (known.opens++ >= kOpens) {
            known.opens = kOpens;
            return {};
        }
        known.tried_ns = now_ns_;
        sys::Because why("its unwind information, to be made into a table");
        auto file = files_.open(pid, mapping);
        if (!file) {
            ++loads_;
            known.why = file.error().message();
            return {};
        }
        const Fd &held = code_.hold(mapping.module, std::move(*file));
        const std::string stamp = stamp_of(TRY(sys::stat_fd(held.get())));
        if (const auto at = prepared_.find(stamp);
            at != prepared_.end() && tables_[at->second].state == Tables::State::resident) {
            known.table = at->second;
            tables_.used(known.table, now_ns_);
            return {};
        }
        ++loads_;
        known.table = make(held, files_.name(mapping.module), stamp, now_ns_);
        if (tables_[known.table].state == Tables::State::dropped) ++without_room_;
        return {};
    }

    /// What tells a file from others that have no build-id.
    static std::string stamp_of(const struct stat &st) {
        return format("{:x}:{}:{}:{}.{}", st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
    uint32_t make(const Fd &file, const std::string &name, std::string identity, uint64_t now_ns) {
        auto image = sys::map_file(file, name);
        if (!image) return tables_.refuse(std::move(identity), image.error().message());
        // A jitdump's first page is mapped so that perf sees it; .NET's code lies in a file of memory.
        if (!elf::is_elf(image->bytes())) return tables_.add_without_rows(std::move(identity));
        auto elf = elf::Elf::parse(image->bytes(), name);
        if (!elf) return tables_.refuse(std::move(identity), elf.error().message());
        if (auto id = elf->build_id(); id && !id->empty()) identity = format("{} {:x}", *id, fingerprint(*elf, key_));
        return tables_.load(*elf, std::move(identity), now_ns);
    }

    void load_vdso() {
        const auto image = symbols::vdso_image();
        auto elf = image ? elf::Elf::parse(*image, "[vdso]") : Result<elf::Elf>(Unexpected(image.error()));
        vdso_ = elf ? tables_.load(*elf, "[vdso]", now_ns_) : tables_.refuse("[vdso]", elf.error().message());
    }

    std::unique_ptr<KernelSide> kernel_;
    ModuleFiles &files_;
    const UnwindProgramOptions program_;
    Pools pools_;
    Rules rules_;
    Tables tables_;
    Processes processes_;
    const uint64_t key_;                                 // of fingerprints
    std::vector<Known> files_known_;                     // by the caller's number
    std::unordered_map<std::string, uint32_t> prepared_; // stamp to table
    uint32_t vdso_ = Tables::kNone;
    std::vector<CodeMapping> known_;  // of a process, while list_ is made
    std::vector<UnwindMapping> list_; // while it is made
    mutable LiveCode code_;           // of the process whose stack is walked
    uint32_t walked_pid_ = 0;         // likewise
    std::unique_ptr<Error> failure_;  // while room was made
    uint64_t now_ns_ = 0, loads_ = 0, without_room_ = 0;
};

} // namespace

Result<std::unique_ptr<LiveTables>> LiveTables::create(LoadedObject &object, ModuleFiles &files,
                                                       const LiveTablesOptions &options) {
    Map *pools = TRY(object.needed_map("unwind_pools")), *rules = TRY(object.needed_map("unwind_rules")),
        *processes = TRY(object.needed_map("unwind_processes"));
    const uint64_t most = std::clamp<uint64_t>(options.memory / UNWIND_POOL_BYTES, 1, pools->max_entries());
    uint64_t key = 0;
    TRY(sys::random_bytes(std::as_writable_bytes(std::span(&key, 1))));
    auto kernel = std::make_unique<KernelSide>(*pools, *rules, *processes, TRY(ExecWatch::start(*processes)));
    auto live = std::make_unique<Live>(std::move(kernel), files, options.program, static_cast<uint32_t>(most),
                                       processes->max_entries(), key);
    live->start();
    return std::unique_ptr<LiveTables>(std::move(live));
}

} // namespace rawbpf::inline v0::unwind
