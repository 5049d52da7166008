// Processes over time. Three things make it subtle:
//
//   * Looking is late. /proc/PID/maps shows the process as it is now, a tenth of a second after the sample. For a process that
//     was there before us that is the best there is; for one whose fork or exec we were told of, the kernel's events are better,
//     so /proc isn't asked.
//   * Garbage looks like news. Without frame pointers a walk yields addresses that were never code. An address in no mapping
//     could also be a dlopen() that we weren't told of, so the maps are read again, but at most once a second, and no more after
//     three looks that explained nothing.
//   * Exits overtake samples. Events and samples come through different rings; a process is kept for two more sweeps.
//
// Memory: a mapping takes 32 bytes, a typical process 20 of them; forks share their parent's until they change. Bounded by the
// processes alive, not by those that ever lived.
#include "programs/processes/process_table.h"

#include <algorithm>
#include <utility>

#include "runtime/base/stable_sort.h"
#include "runtime/symbols/jit_dump.h"

namespace rawbpf::inline v0::processes {

namespace {

constexpr uint64_t kLookAgainNs = 1'000'000'000;
constexpr uint8_t kVainLooks = 3;
constexpr uint8_t kJitLooks = 10;
constexpr uint64_t kJitLookAgainNs = 100'000'000; // then each second: a runtime may be asked for its names at any time
constexpr uint8_t kJitFound = UINT8_MAX;
constexpr uint8_t kSweepsKept = 2;
constexpr size_t kAncestors = 8;
constexpr size_t kMostMemoryFiles = 4096;
constexpr std::string_view kMemoryFile = "/memfd:";
constexpr uint64_t kLastMomentsNs = 100'000'000; // a thread may still run this long after the kernel told of its end

} // namespace

ModuleKind kind_of_path(std::string_view path) {
    if (path == "[vdso]") return ModuleKind::vdso;
    // perf writes "//anon", /proc leaves the name empty or gives the one that prctl(PR_SET_VMA_ANON_NAME) set.
    if (path.empty() || path.starts_with("//anon") || path[0] == '[') return ModuleKind::anonymous;
    if (path.starts_with(kMemoryFile) || path.starts_with("/dev/zero") || path.starts_with("/SYSV")) return ModuleKind::anonymous;
    return ModuleKind::file;
}

ProcessTable::Image &ProcessTable::own_image(Process &process) {
    if (!process.image)
        process.image = std::make_shared<Image>();
    else if (process.image.use_count() > 1)
        process.image = std::make_shared<Image>(*process.image);
    return *process.image;
}

ModuleKind ProcessTable::kind_of(uint32_t pid, const symbols::Region &region) {
    const ModuleKind kind = kind_of_path(region.path);
    if (region.inode == 0 || !region.path.starts_with(kMemoryFile)) return kind;
    const std::pair key(region.device, region.inode);
    auto known = memory_files_.find(key);
    if (known == memory_files_.end()) {
        const std::optional<bool> program = source_.is_program(pid, region);
        if (!program) return kind; // another process may tell
        if (memory_files_.size() >= kMostMemoryFiles) memory_files_.clear();
        known = memory_files_.emplace(key, *program).first;
    }
    return known->second ? ModuleKind::file : kind;
}

bool ProcessTable::insert(uint32_t pid, Image &image, const symbols::Region &region) {
    if (region.end <= region.start) return false;
    Module module;
    module.kind = kind_of(pid, region);
    module.path = region.path.empty() ? "//anon" : region.path;
    if (module.kind == ModuleKind::file) {
        module.device = region.device;
        module.inode = region.inode;
    }
    const uint64_t file_offset = module.kind == ModuleKind::vdso ? 0 : region.file_offset;
    const Mapping mapping{region.start, region.end, file_offset, modules_.intern(std::move(module))};

    auto first = std::lower_bound(image.begin(), image.end(), mapping.start,
                                  [](const Mapping &m, uint64_t start) { return m.end <= start; });
    auto last = first;
    Image pieces; // of old mappings that stick out on either side
    bool replaced = false;
    while (last != image.end() && last->start < mapping.end) {
        // An address in memory without a file means itself, so there it makes no difference.
        const bool by_address = modules_[last->module].kind == ModuleKind::anonymous;
        if (last->module != mapping.module ||
            (!by_address && last->start - last->file_offset != mapping.start - mapping.file_offset))
            replaced = true;
        if (last->start < mapping.start) pieces.push_back({last->start, mapping.start, last->file_offset, last->module});
        if (last->end > mapping.end)
            pieces.push_back({mapping.end, last->end, last->file_offset + (mapping.end - last->start), last->module});
        ++last;
    }
    const size_t at = static_cast<size_t>(first - image.begin());
    image.erase(first, last);
    pieces.push_back(mapping);
    stable_sort(pieces, [](const Mapping &a, const Mapping &b) { return a.start < b.start; });
    image.insert(image.begin() + static_cast<std::ptrdiff_t>(at), pieces.begin(), pieces.end());
    return replaced;
}

void ProcessTable::map(uint32_t pid, const symbols::Region &region) {
    auto found = processes_.find(pid);
    // A process that nobody has looked at yet gets its maps from /proc when it is sampled, this mapping included.
    if (found == processes_.end() || !found->second.looked) return;
    if (insert(pid, own_image(found->second), region) && found->second.sampled) ++remaps_;
    mark(pid, found->second);
}

void ProcessTable::mark(uint32_t pid, Process &process) {
    if (!noting_ || process.changed || !(process.wanted || process.followed)) return;
    process.changed = true;
    changed_.push_back(pid);
}

void ProcessTable::follow(uint32_t pid, uint64_t now_ns) {
    Process &process = known(pid, now_ns);
    process.followed = true;
    mark(pid, process);
}

void ProcessTable::follow_anew(uint32_t pid, uint64_t now_ns) {
    if (!told_ && now_ns >= known(pid, now_ns).looked_ns + kLookAgainNs) look_at(pid, now_ns);
    follow(pid, now_ns);
}

std::vector<uint32_t> ProcessTable::take_changed() {
    for (uint32_t pid : changed_)
        if (auto found = processes_.find(pid); found != processes_.end()) found->second.changed = false;
    return std::exchange(changed_, {});
}

const ProcessTable::Image *ProcessTable::image(uint32_t pid) const {
    auto found = processes_.find(pid);
    if (found == processes_.end() || (found->second.exits != 0 && found->second.threads != kUncounted)) return nullptr;
    return found->second.image.get();
}

const ProcessTable::Image *ProcessTable::last_image(uint32_t pid) const {
    auto found = processes_.find(pid);
    return found == processes_.end() ? nullptr : found->second.image.get();
}

uint64_t ProcessTable::as_of_ns(uint32_t pid) const {
    auto found = processes_.find(pid);
    if (found == processes_.end()) return 0;
    const Process &process = found->second;
    return process.looked ? std::max(told_ns_, process.looked_ns) : process.looked_ns; // in doubt: when it was last looked at
}

void ProcessTable::fork(uint32_t parent, uint32_t child) {
    Process born;
    born.parent = parent;
    born.threads = 1;
    auto found = processes_.find(parent);
    born.wanted = found != processes_.end() && found->second.wanted && !found->second.childless;
    if (found != processes_.end() && found->second.looked) {
        born.image = found->second.image;
        born.looked = true;
        born.looked_ns = found->second.looked_ns;
    }
    Process &now = processes_[child];
    born.followed = now.followed; // somebody who had this number: what is believed of it has to go
    born.changed = now.changed;
    now = std::move(born);
    mark(child, now);
}

void ProcessTable::thread(uint32_t pid) {
    auto found = processes_.find(pid);
    if (found != processes_.end() && found->second.threads != kUncounted) ++found->second.threads;
}

void ProcessTable::exec(uint32_t pid, uint64_t t_ns) {
    Process &process = processes_[pid];
    process.image.reset();
    process.looked = true; // every mapping from here on is told
    process.no_user_memory = false;
    process.vain_looks = 0;
    process.jit_looks = 0;
    process.exits = 0;
    process.threads = 1;
    process.exec_ns = process.looked_ns = t_ns;
    if (pid == root_) process.wanted = true;
    mark(pid, process);
}

void ProcessTable::exit(uint32_t pid, bool first, uint64_t t_ns) {
    auto found = processes_.find(pid);
    if (found == processes_.end()) return;
    Process &process = found->second;
    if (process.threads == kUncounted ? !first : process.threads == 0 || --process.threads != 0) return;
    process.exits = 1;
    process.ended_ns = t_ns;
    if (process.threads != kUncounted) mark(pid, process); // else sweep() does
}

void ProcessTable::want_now(uint32_t pid, bool children, uint64_t now_ns) {
    auto found = processes_.find(pid);
    if (found == processes_.end() || !found->second.looked) look_at(pid, now_ns);
    Process &process = processes_[pid];
    process.wanted = true;
    process.childless = !children;
    mark(pid, process);
}

bool ProcessTable::wanted(uint32_t pid, uint64_t t_ns) const {
    auto found = processes_.find(pid);
    if (found == processes_.end() || !found->second.wanted) return false;
    if (found->second.threads == kUncounted)
        return true; // its other threads may go on; its number, given again, comes with a fork
    return found->second.exits == 0 || t_ns <= found->second.ended_ns + kLastMomentsNs;
}

bool ProcessTable::find_wanted(uint32_t pid, uint64_t t_ns) {
    if (wanted(pid, t_ns)) return true;
    if (!doubted_) return false;
    uint32_t above = pid;
    for (size_t i = 0; i < kAncestors && above > 1; ++i) {
        above = source_.parent(above);
        if (!wanted(above, t_ns)) continue;
        Process &process = processes_[pid];
        process = {};
        process.parent = above;
        process.wanted = true;
        return true;
    }
    return false;
}

void ProcessTable::doubt() {
    doubted_ = true;
    ++remaps_;
    for (auto &[pid, process] : processes_) process.looked = false;
}

void ProcessTable::sweep() {
    for (auto at = processes_.begin(); at != processes_.end();) {
        Process &process = at->second;
        if (process.exits != 0 && process.exits++ > kSweepsKept) {
            mark(at->first, process);
            at = processes_.erase(at);
        } else {
            ++at;
        }
    }
}

void ProcessTable::look(uint32_t pid, Process &process, uint64_t now_ns) {
    process.looked_ns = now_ns;
    auto maps = source_.maps(pid);
    if (!maps) {
        // Gone already. If it was forked before anybody looked at its parent, the parent's maps are still the best guess.
        if (!process.image && process.parent != 0) {
            Process &parent = processes_[process.parent];
            if (!parent.looked) {
                if (auto inherited = source_.maps(process.parent)) {
                    Image &image = own_image(parent);
                    for (const symbols::Region &region : inherited->regions) insert(process.parent, image, region);
                    parent.looked = true;
                    parent.looked_ns = now_ns;
                }
            }
            process.image = parent.image;
        }
        process.looked = true;
        return;
    }
    process.looked = true;
    if (maps->regions.empty() && process.image) return; // a zombie: it had some
    process.image = std::make_shared<Image>();
    for (const symbols::Region &region : maps->regions) insert(pid, *process.image, region);
    process.no_user_memory = process.image->empty();
}

void ProcessTable::look_at(uint32_t pid, uint64_t now_ns) {
    Process process = processes_[pid]; // by value: look() may add the parent and move the table
    look(pid, process, now_ns);
    mark(pid, process);
    processes_[pid] = std::move(process);
}

const ProcessTable::Mapping *ProcessTable::find(const Process &process, uint64_t address) const {
    if (!process.image) return nullptr;
    const Image &image = *process.image;
    auto at =
        std::upper_bound(image.begin(), image.end(), address, [](uint64_t wanted, const Mapping &m) { return wanted < m.end; });
    return at != image.end() && at->start <= address ? &*at : nullptr;
}

std::vector<uint32_t> ProcessTable::lineage(uint32_t pid, const Process &process, bool of_its_program) const {
    std::vector<uint32_t> pids{pid};
    for (const Process *at = &process; at->parent != 0 && pids.size() <= kAncestors && !(of_its_program && at->exec_ns != 0);) {
        pids.push_back(at->parent);
        const auto found = processes_.find(at->parent);
        if (found == processes_.end()) break;
        at = &found->second;
    }
    return pids;
}

void ProcessTable::meet(const Mapping &mapping, uint32_t pid, const Process &process) {
    const uint32_t module = mapping.module;
    if (met_.size() <= module) met_.resize(module + 1);
    if (met_[module]) return;
    met_[module] = true;
    const std::vector<uint32_t> pids = lineage(pid, process, false);
    source_.met(module, modules_[module], pids, mapping.start, mapping.end);
}

void ProcessTable::meet_compiled_code(uint32_t pid, Process &process, uint64_t now_ns) {
    if (now_ns - process.jit_looked_ns < (process.jit_looks < kJitLooks ? kJitLookAgainNs : kLookAgainNs)) return;
    process.jit_looked_ns = now_ns;
    const std::vector<uint32_t> pids = lineage(pid, process, true);
    std::optional<symbols::Region> dump;
    for (const Mapping &mapping : *process.image) {
        const Module &module = modules_[mapping.module];
        if (module.kind != ModuleKind::file || !symbols::is_jit_dump_name(module.path)) continue;
        dump.emplace();
        dump->start = mapping.start;
        dump->end = mapping.end;
        dump->path = module.path;
        dump->device = module.device;
        dump->inode = module.inode;
    }
    if (source_.met_jit(pids, dump ? &*dump : nullptr))
        process.jit_looks = kJitFound;
    else if (process.jit_looks < kJitLooks)
        ++process.jit_looks;
}

ProcessTable::Process &ProcessTable::known(uint32_t pid, uint64_t now_ns) {
    auto found = processes_.find(pid);
    if (found == processes_.end() || !found->second.looked) {
        look_at(pid, now_ns);
        found = processes_.find(pid);
    }
    if (found->second.exits != 0 && found->second.threads == kUncounted) found->second.exits = 1; // threads go on after the first
    if (!found->second.sampled) {
        found->second.sampled = true;
        ++sampled_;
    }
    return found->second;
}

FrameLocation ProcessTable::locate(uint32_t pid, uint64_t address, bool caller, uint64_t now_ns) {
    Process *process = &known(pid, now_ns);
    // A call can be a function's last instruction: then the return address is already beyond the mapping.
    const uint64_t wanted = caller && address != 0 ? address - 1 : address;
    const Mapping *mapping = find(*process, wanted);
    if (!mapping && !told_ && process->vain_looks < kVainLooks && now_ns - process->looked_ns >= kLookAgainNs) {
        look_at(pid, now_ns);
        process = &processes_[pid];
        mapping = find(*process, wanted);
        process->vain_looks = mapping ? 0 : static_cast<uint8_t>(process->vain_looks + 1);
    }
    FrameLocation place;
    place.address = address;
    place.caller = caller;
    if (!mapping) return place;
    place.module = mapping->module;
    const Module &module = modules_[mapping->module];
    if (module.kind == ModuleKind::anonymous) {
        place.pid = pid;
        if (process->jit_looks != kJitFound) meet_compiled_code(pid, *process, now_ns);
        place.file_offset = source_.code_layer(pid, wanted, now_ns);
    } else {
        place.file_offset = address - mapping->start + mapping->file_offset;
    }
    meet(*mapping, pid, *process);
    return place;
}

bool ProcessTable::kernel_thread(uint32_t pid, uint64_t now_ns) { return pid == 0 || known(pid, now_ns).no_user_memory; }

} // namespace rawbpf::inline v0::processes
