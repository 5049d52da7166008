// When is a process looked at? What isn't sampled never is. While there is no context, soon after its first sample and then less
// and less often, since a whole machine has hundreds that never publish one; where there is one, each tenth of a second its time
// of publication is read, and the rest when that has changed. Whether it is a Go program is looked at in the same moments.
#include "programs/processes/request_labels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "programs/languages/memory.h"
#include "programs/languages/runtime.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

using namespace labels;

namespace {

constexpr uint64_t kFirstWaitNs = 20'000'000, kMostWaitNs = 4'000'000'000; // until the next look for a context
constexpr uint64_t kLookNs = 100'000'000;                                  // at one that is there
constexpr uint64_t kRefreshNs = 5'000'000;                                 // between two for the sake of a new key
constexpr size_t kMostProcesses = 4096, kMostSentences = 16;
constexpr uint64_t kManySamples = 100; // of which some are a goroutine's

/// One that has ended has none; a zombie has an empty list, and so has one whose first thread has ended.
bool has_memory(uint32_t pid) {
    const auto maps = sys::read_file(format("/proc/{}/maps", pid));
    return maps ? !maps->empty() : maps.error().kind != Errc::not_found;
}

void add_once(std::vector<std::string> &to, std::string sentence) {
    if (to.size() < kMostSentences && std::find(to.begin(), to.end(), sentence) == to.end()) to.push_back(std::move(sentence));
}

} // namespace

Result<void> RequestLabels::start(LoadedObject &object, const std::vector<std::string> &keys) {
    processes_map_ = TRY(object.needed_map("label_processes"));
    for (const std::string &key : keys)
        if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) keys_.push_back(key);
    Map *wanted = object.find_map("label_keys");
    their_labels_wanted_ = wanted != nullptr;
    goroutines_wanted_ = wanted || std::find(keys_.begin(), keys_.end(), kGoroutineId) != keys_.end();
    variables_.start([](const elf::Elf &file, Bytes) { return exported_variable(file); });
    if (goroutines_wanted_) go_runtimes_.start(go_runtime);
    sys::Because why("which labels of goroutines are wanted");
    for (size_t i = 0; wanted && i < std::min(keys_.size(), kMostKeys); ++i) {
        LabelKey key{};
        if (keys_[i].size() >= sizeof key.text) continue;
        std::memcpy(key.text, keys_[i].data(), keys_[i].size());
        TRY(wanted->put(key, static_cast<uint32_t>(i)));
    }
    return {};
}

std::optional<std::string> RequestLabels::value_of(size_t number, const Process &process,
                                                   const std::optional<ThreadContext> &thread) const {
    const std::string &key = keys_[number];
    const ProcessContext *context = process.context ? &process.context->context : nullptr;
    if (thread && thread->goroutine) {
        if (key == kGoroutineId && thread->goroutine_id != 0) return format("{}", thread->goroutine_id);
        if (const auto value = thread->find(number)) return std::string(*value);
    } else if (key == kTraceId || key == kSpanId) {
        std::string id = thread ? hex_id(key == kTraceId ? thread->trace_id : thread->span_id) : std::string();
        return id.empty() ? std::nullopt : std::optional(std::move(id));
    } else if (thread && context) {
        const auto at = std::find(context->keys.begin(), context->keys.end(), key);
        const auto index = static_cast<size_t>(at - context->keys.begin());
        if (const auto value = at == context->keys.end() ? std::nullopt : thread->find(index)) return std::string(*value);
    }
    const std::string *value = context ? context->find(key) : nullptr;
    return value ? std::optional(*value) : std::nullopt;
}

uint32_t RequestLabels::of(uint32_t pid, Bytes record) {
    if (!on()) return LabelSets::kEmpty;
    const auto known = processes_.find(pid);
    if (known == processes_.end()) {
        if (processes_.size() < kMostProcesses) processes_.try_emplace(pid);
        return LabelSets::kEmpty;
    }
    Process &process = known->second;
    process.sampled = true;
    if (!process.is_known() || table_.exec_ns(pid) > process.since_ns)
        return LabelSets::kEmpty; // nothing is known; or it is another program, since
    std::optional<ThreadContext> thread = parse_thread_context(record);
    if (thread && thread->goroutine != process.of_go) thread.reset(); // it was sent before that changed
    process.samples += process.of_go;
    process.goroutines += thread && thread->goroutine;
    if (thread && process.context && !thread->goroutine && thread->has_above(process.context->context.keys.size())) {
        const uint64_t now_ns = sys::monotonic_ns();
        if (now_ns >= process.looked_ns + kRefreshNs) look_again(pid, process, now_ns); // keys are added as they come up
        if (!process.context) return LabelSets::kEmpty;
    }
    Labels set;
    for (size_t i = 0; i < keys_.size(); ++i)
        if (auto value = value_of(i, process, thread)) set.emplace_back(keys_[i], std::move(*value));
    return sets_.intern(std::move(set));
}

void RequestLabels::take(uint32_t pid, Process &process, FoundContext context, uint64_t now_ns) {
    if (!process.context) {
        process.since_ns = now_ns;
        ++contexts_;
        const std::string *service = context.context.find("service.name");
        add_once(found_, format("process {}: OpenTelemetry context{}{}, {} keys of threads", pid, service ? " of " : "",
                                service ? render::printable(*service) : std::string(), context.context.keys.size()));
    }
    process.context = std::move(context);
    ++changes_;
}

void RequestLabels::look(uint32_t pid, Process &process, uint64_t now_ns) {
    auto found = find_context(pid);
    if (found) {
        process.why.clear();
        process.looked_ns = now_ns;
        process.next_ns = now_ns + kLookNs;
        return take(pid, process, std::move(*found), now_ns);
    }
    // It may be on its way: whatever is wrong with it is told only if it stays so.
    const Errc kind = found.error().kind;
    process.why = kind == Errc::not_found || kind == Errc::busy ? std::string() : found.error().message();
    process.wait_ns = process.wait_ns == 0 ? kFirstWaitNs : std::min(process.wait_ns * 2, kMostWaitNs);
    process.next_ns = now_ns + process.wait_ns;
}

/// At one that is there: has it changed, has it gone?
void RequestLabels::look_again(uint32_t pid, Process &process, uint64_t now_ns) {
    process.looked_ns = now_ns;
    process.next_ns = now_ns + kLookNs;
    sys::Because why("has the process changed its OpenTelemetry context?");
    auto pages = languages::ProcessPages::open(pid);
    const uint64_t address = process.context->address;
    const auto published = pages ? published_at(*pages, address) : Unexpected(pages.error());
    const uint64_t gone_ns = std::exchange(process.gone_ns, 0);
    if (published && (*published == 0 || *published == process.context->context.published_ns)) return; // 0: soon
    auto context = published ? read_context(*pages, address) : Unexpected(published.error());
    if (context) return take(pid, process, {address, std::move(*context)}, now_ns);
    if (context.error().kind == Errc::busy) return;
    if (!has_memory(pid)) return;             // its last events come later than its end
    if (gone_ns == 0 || read_ns_ < gone_ns) { // what it did before is still to be read
        process.gone_ns = gone_ns == 0 ? now_ns : gone_ns;
        return;
    }
    process.context.reset();
    process.why.clear();
    process.wait_ns = 0;
    ++changes_;
}

/// Tells the program where the variable is.
Result<void> RequestLabels::place(uint32_t pid, Process &process, uint64_t now_ns) {
    table_.look_unless_known(pid, now_ns);
    const ProcessTable::Image *image = table_.image(pid);
    if (!image) return {};
    process.why = "none of its files exports the threads' variable otel_thread_ctx_v1";
    bool musl = false;
    for (const ProcessTable::Mapping &mapping : *image)
        musl = musl || table_.modules()[mapping.module].path.find("/ld-musl-") != std::string::npos;
    for (const ProcessTable::Mapping &mapping : *image) {
        if (table_.modules()[mapping.module].kind != ModuleKind::file) continue;
        const ThreadVariable *variable = variables_.of(pid, mapping);
        const auto bias = variable ? languages::bias_of(variable->code, mapping.start, mapping.file_offset) : std::nullopt;
        if (!bias) continue;
        sys::Because why("where the threads' variable otel_thread_ctx_v1 lies");
        auto pages = languages::ProcessPages::open(pid);
        if (!pages) return {};
        languages::Memory memory(*pages, 64);
        const auto found = locate(*variable, *bias, memory, kHostArch, process.why);
        if (!found) continue;
        if (found->module != 0 && musl) {
            process.why = "its threads' variable is in a library that musl has loaded later, whose lists of blocks aren't read";
            continue;
        }
        process.why.clear();
        TRY(processes_map_->put(pid, *found));
        process.placed = true;
        return {};
    }
    return {};
}

/// Tells the program where the goroutines are, if it is a Go program.
Result<void> RequestLabels::place_goroutines(uint32_t pid, Process &process, uint64_t now_ns) {
    table_.look_unless_known(pid, now_ns);
    const ProcessTable::Image *image = table_.image(pid);
    if (!image) return {};
    for (const ProcessTable::Mapping &mapping : *image) {
        if (table_.modules()[mapping.module].kind != ModuleKind::file) continue;
        const GoRuntime *runtime = go_runtimes_.of(pid, mapping);
        const auto bias = runtime ? languages::bias_of(runtime->code, mapping.start, mapping.file_offset) : std::nullopt;
        if (bias) return put_goroutines(pid, process, *runtime, *bias, now_ns);
    }
    return {};
}

Result<void> RequestLabels::put_goroutines(uint32_t pid, Process &process, const GoRuntime &runtime, uint64_t bias,
                                           uint64_t now_ns) {
    sys::Because why("where the threads of a Go program have their goroutine");
    auto pages = languages::ProcessPages::open(pid);
    if (!pages) return {};
    languages::Memory memory(*pages, 1);
    const auto found = locate(runtime, bias, memory, process.why);
    if (!found) return {};
    ++go_programs_;
    add_once(found_, format("process {}: goroutines: {}", pid, runtime.describe()));
    const bool has_any = (their_labels_wanted_ && found->go_labels != 0) || found->go_number != 0;
    if (!has_any) return {};
    TRY(processes_map_->put(pid, *found));
    process.placed = process.of_go = true;
    process.samples = process.goroutines = 0;
    process.since_ns = now_ns;
    ++changes_;
    return {};
}

Result<void> RequestLabels::forget(uint32_t pid, Process &process) {
    process.of_go = false;
    if (!std::exchange(process.placed, false)) return {};
    sys::Because why("a process without an OpenTelemetry context from now on");
    auto erased = processes_map_->erase(&pid);
    if (!erased && erased.error().kind != Errc::not_found) return erased;
    return {};
}

Result<void> RequestLabels::tick(uint64_t now_ns, uint64_t read_ns) {
    if (!on()) return {};
    read_ns_ = read_ns;
    for (auto at = processes_.begin(); at != processes_.end();) {
        auto &[pid, process] = *at;
        if (process.is_known() && table_.exec_ns(pid) > process.since_ns) {
            process.context.reset();
            process.why.clear();
            process.next_ns = process.wait_ns = 0;
            ++changes_;
            TRY(forget(pid, process));
        }
        const bool due = now_ns >= process.next_ns, idle = now_ns >= process.next_ns + kMostWaitNs;
        if (idle && !process.sampled &&
            (!process.is_known() || !has_memory(pid))) { // one that is known may say nothing for hours
            TRY(forget(pid, process));
            if (!process.why.empty()) add_once(unread_, missing(pid, process));
            at = processes_.erase(at);
            continue;
        }
        if (idle || (due && process.sampled)) {
            process.sampled = false;
            process.context ? look_again(pid, process, now_ns) : look(pid, process, now_ns);
            const bool wanted = process.context && process.context->context.has_threads();
            if (wanted == process.of_go) TRY(forget(pid, process));
            if (wanted && !process.placed) TRY(place(pid, process, now_ns)); // the library may come later
            if (!wanted && !process.placed && goroutines_wanted_) TRY(place_goroutines(pid, process, now_ns));
        }
        ++at;
    }
    return {};
}

std::string RequestLabels::missing(uint32_t pid, const Process &process) {
    return format("process {} has {}: {}", pid, process.context ? "only labels of its own, none of its threads'" : "no labels",
                  process.why);
}

std::vector<std::string> RequestLabels::warnings() const {
    std::vector<std::string> out;
    if (!on()) return out;
    if (contexts_ + go_programs_ == 0)
        out.emplace_back("no process that was sampled has published an OpenTelemetry context, or is a Go program: there are no "
                         "labels");
    std::vector<std::string> why = unread_;
    for (const auto &[pid, process] : processes_) {
        if (!process.why.empty()) add_once(why, missing(pid, process));
        if (process.samples >= kManySamples && process.goroutines == 0)
            add_once(why, format("process {} has no labels: in none of {} samples its thread's words led to a goroutine", pid,
                                 process.samples));
    }
    out.insert(out.end(), why.begin(), why.begin() + static_cast<ptrdiff_t>(std::min(why.size(), kMostSentences)));
    return out;
}

} // namespace rawbpf::inline v0::processes
