#include "programs/processes/scripts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <linux/bpf.h>

#include "programs/languages/memory.h"
#include "programs/languages/records.h"
#include "programs/languages/thread_pointer.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

using namespace languages;

namespace {

constexpr uint64_t kTryAgainNs = 20'000'000; // learning reads some hundred pages
constexpr int kMostTries = 200;
constexpr uint64_t kLearningNs = 1'000'000'000;                            // after a stack to learn from
constexpr uint64_t kFirstLookNs = 5'000'000, kLastLookNs = 16'000'000'000; // between two looks, each time twice as long
constexpr int kFailed = 10;                // tries without a way, before those that were refuted are tried again
constexpr int kMostSearches = 20;          // of a process, for threads' other lists of frames
constexpr int kTriesOfALook = 4;           // a list that is read while its process runs on leads astray
constexpr size_t kSearched = 1024;         // pages, for a thread
constexpr uint32_t kJudged = 40;           // stacks, before what was learnt is believed
constexpr size_t kMostSearched = 4096;     // stacks, for the function that evaluates
constexpr uint32_t kSoonest = 8;           // of them, before it may be dropped
constexpr size_t kMostFunctions = 1 << 17; // that are kept, of all processes
constexpr size_t kMostLost = 1 << 16;      // codes that are asked for at once
constexpr uint64_t kAskAgainNs = 100'000'000;
constexpr size_t kMostPositions = 1 << 20;

bool lies_in(const FrameLocation &place, const std::vector<Interpreter::Range> &ranges) {
    const uint64_t offset = place.file_offset - (place.caller ? 1 : 0);
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Interpreter::Range &range) { return offset >= range.start && offset < range.end; });
}

/// A thread's block instead of frames: of a process that isn't walked yet.
bool is_thread(std::span<const uint64_t> words) { return words.size() == 2 && LANGUAGE_MARK(words[1]) == LANGUAGE_IS_THREAD; }

} // namespace

bool Scripts::start(LoadedObject &object) {
    processes_map_ = object.find_map("language_processes");
    codes_map_ = object.find_map("language_codes");
    if (!on()) return false;
    builds_.start([](const elf::Elf &file, Bytes bytes) -> std::optional<Build> {
        auto found = recognise(file, bytes);
        if (!found) return std::nullopt;
        Build build;
        build.file = std::move(*found);
        return build;
    });
    return true;
}

void Scripts::changed(uint32_t pid, const ProcessTable::Image &image) {
    if (!on()) return;
    for (const ProcessTable::Mapping &mapping : image) {
        if (table_.modules()[mapping.module].kind != ModuleKind::file) continue;
        const auto known = processes_.find(pid);
        if (known != processes_.end() && known->second.module == mapping.module) return;
        Build *build = builds_.of(pid, mapping);
        const auto bias = build ? bias_of(build->file, mapping.start, mapping.file_offset) : std::nullopt;
        if (!bias) continue;
        if (!build->file.why_not.empty()) {
            build->why = build->file.why_not;
            build->tries = 1; // so it is said
            continue;
        }
        Process &process = processes_[pid];
        process = {};
        process.module = mapping.module;
        process.bias = *bias;
        publish(pid, process);
        return;
    }
}

void Scripts::ended(uint32_t pid) {
    if (!on() || processes_.erase(pid) == 0) return;
    sys::Because why("an interpreter's process has ended");
    (void)processes_map_->erase(&pid); // the map may be full of others; then it isn't in it
}

/// Whether how its frames belong to native ones still has to show: each stack of its processes is sent.
bool Scripts::unproven(const Build &build) {
    return build.file.evaluates.empty() ? build.search.stacks() < kMostSearched : build.judged < kJudged;
}

/// Tells the program how this process is walked, or that it is to send what it is learnt from.
void Scripts::put(uint32_t pid, const Process &process) {
    const Build &build = builds_.at(process.module);
    LanguageProcess value{};
    if (build.layout) {
        value = moved(build.layout->process, process.bias);
        if (unproven(build)) value.flags |= LANGUAGE_UNPROVEN;
        if (process.several) value.flags |= LANGUAGE_SEVERAL;
    } else {
        value.flags = LANGUAGE_LEARN | LANGUAGE_BY_THREAD;
    }
    value.again = again_;
    sys::Because why("how this interpreter's frames are found");
    (void)processes_map_->put(pid, value); // without room its stacks are native ones
}

void Scripts::publish(uint32_t pid, Process &process) {
    put(pid, process);
    process.walked = builds_.at(process.module).layout.has_value();
    process.walked_ns = sys::monotonic_ns();
}

/// All that the stacks had to show has been seen: from here on equal ones are counted.
void Scripts::prove(uint32_t module) {
    for (const auto &[pid, its] : processes_)
        if (its.module == module) put(pid, its);
}

void Scripts::learn(uint32_t pid, Process &process, uint64_t thread_pointer, uint64_t now_ns) {
    Build &build = builds_.at(process.module);
    if (build.layout) {
        if (!process.walked) publish(pid, process);
        return;
    }
    if (build.tries >= kMostTries) return;
    learning_until_ns_ = now_ns + kLearningNs;
    if (now_ns < process.tried_ns + kTryAgainNs) return;
    process.tried_ns = now_ns;
    ++build.tries;
    sys::Because why("where an interpreter's functions' frames are, from a thread that was sampled");
    auto pages = ProcessPages::open_mapped(pid);
    if (pages)
        (void)learn_from(*pages, process, thread_pointer);
    else if (build.why.empty())
        build.why = pages.error().message(); // it ended, and what was missing before says more
}

void Scripts::lost_code(Bytes record) {
    const auto code = language_code_of(record);
    if (!code) return;
    sys::Locked here(lost_lock_);
    if (lost_codes_.size() < kMostLost) lost_codes_.push_back(*code);
}

/// The program sends a code's record once. One that was lost, as there was no room for it, or came while it couldn't be read, is
/// sent again the next time that the code is on a stack.
void Scripts::ask_again(uint64_t now_ns) {
    if (!codes_map_ || now_ns < asked_ns_ + kAskAgainNs) return;
    std::vector<uint64_t> codes;
    {
        sys::Locked here(lost_lock_);
        codes.swap(lost_codes_);
    }
    if (codes.empty()) return;
    asked_ns_ = now_ns;
    sys::Because why("names of functions were lost on their way: they are to be sent again");
    for (const uint64_t code : codes) (void)codes_map_->erase(&code); // others may have taken its place: then it isn't in it
    ++again_;
    for (const auto &[pid, process] : processes_) put(pid, process);
}

void Scripts::look(uint64_t now_ns) {
    if (!on()) return;
    ask_again(now_ns);
    if (now_ns < look_ns_) return;
    look_ns_ = now_ns + kFirstLookNs;
    for (auto &[pid, process] : processes_) {
        Build &build = builds_.at(process.module);
        if (build.layout || now_ns < build.look_ns) continue;
        build.look_every_ns = std::clamp(2 * build.look_every_ns, kFirstLookNs, kLastLookNs);
        build.look_ns = now_ns + build.look_every_ns;
        sys::Because why("where an interpreter's functions' frames are, from a thread of it");
        auto pages = ProcessPages::open_mapped(pid);
        if (!pages) continue; // it has ended
        Memory memory(*pages, kSearched);
        const auto thread = find_thread_pointer(memory, pages->maps(), kHostArch);
        for (int i = 0; thread && i < kTriesOfALook; ++i)
            if (learn_from(*pages, process, *thread) != Learnt::once) break;
    }
}

Scripts::Learnt Scripts::learn_from(ProcessPages &pages, Process &process, uint64_t thread_pointer) {
    Build &build = builds_.at(process.module);
    const uint64_t began_ns = sys::thread_cpu_ns();
    Memory memory(pages);
    auto layout =
        build.file.runtime->learn(memory, {build.file, process.bias, kHostArch, thread_pointer, build.refuted}, build.why);
    build.learning_ns += sys::thread_cpu_ns() - began_ns;
    ++build.looks;
    if (!layout) {
        // A way may have been refuted for a reason that has passed: interpreters that were just being made.
        if (++build.failed % kFailed == 0) build.refuted.clear();
        return Learnt::nothing;
    }
    layout->process = moved(layout->process, -process.bias);
    // The process runs on: a chain that was there for a moment leads somewhere else the next time. Unless the runtime says it,
    // too.
    const LanguageProcess before = build.seen.value_or(LanguageProcess{});
    build.seen = layout->process;
    if (!layout->confirmed && std::memcmp(&before, &layout->process, sizeof before) != 0) {
        build.why = "what was found once wasn't found again";
        return Learnt::once;
    }
    build.layout = std::move(*layout);
    Module script;
    script.path = build.file.runtime->describe(build.file, *build.layout);
    script.path.resize(std::min(script.path.find(':'), script.path.size())); // "CPython 3.11.2"
    script.kind = ModuleKind::script;
    build.script = table_.modules().intern(std::move(script));
    build.judged = build.astray = 0;
    for (auto &[other, its] : processes_)
        if (its.module == process.module) publish(other, its);
    return Learnt::known;
}

/// A thread that runs several interpreters has functions that evaluate for each, and the program walked the frames of one: from
/// now on it walks those of all.
Scripts::Others Scripts::find_others(uint32_t pid, Process &process, uint64_t now_ns) {
    Build &build = builds_.at(process.module);
    if (process.several || !build.file.runtime->others || process.searches >= kMostSearches ||
        now_ns < process.searched_ns + kTryAgainNs)
        return Others::none;
    process.searched_ns = now_ns;
    ++process.searches;
    sys::Because why("whether a process has several interpreters, whose frames are in lists of their own");
    auto pages = ProcessPages::open_mapped(pid);
    if (!pages) return Others::gone;
    Memory memory(*pages);
    const auto thread = find_thread_pointer(memory, pages->maps(), kHostArch);
    Layout layout = *build.layout;
    if (!thread || !build.file.runtime->others(memory, {build.file, process.bias, kHostArch, *thread, {}}, layout))
        return Others::none;
    layout.process.others -= process.bias;
    build.layout = std::move(layout);
    process.several = true;
    publish(pid, process);
    return Others::found;
}

/// A way to the frames that agrees with too few native stacks was a wrong one: another one is looked for. While it is new, stacks
/// that don't agree stay native: false.
bool Scripts::judge(uint32_t module, Build &build, Merged how) {
    if (build.judged >= kJudged || how == Merged::one_less) return true; // which says little
    if (++build.judged == kJudged) prove(module);
    build.astray += how == Merged::astray;
    if (build.judged < kSoonest || build.astray * 2 < build.judged) return how != Merged::astray;
    build.refuted.push_back(build.layout->process);
    build.why = "the frames that were found don't agree with its native stacks";
    build.failed = 0;
    build.layout.reset();
    for (auto &[pid, its] : processes_) {
        if (its.module != module) continue;
        its.several = false; // where other lists are was found with that way
        its.searches = 0;
        publish(pid, its);
    }
    return false;
}

bool Scripts::take_code(Bytes record) {
    constexpr size_t kHead = offsetof(LanguageCode, table);
    if (!on() || !is_language_code(record)) return false;
    if (record.size() < kHead) return true;
    if (functions_.size() >= kMostFunctions) {
        ++unnamed_;
        return true;
    }
    LanguageCode code{};
    std::memcpy(&code, record.data(), kHead);
    const size_t table = std::min<size_t>(code.table_bytes, record.size() - kHead);
    const auto process = processes_.find(load<RecordHead>(record.data()).pid);
    if (process == processes_.end()) return true;
    const Build &build = builds_.at(process->second.module);
    if (!build.layout) { // what it was learnt to be was refuted meanwhile
        lost_code(record);
        return true;
    }
    functions_[code.id] = build.file.runtime->function(code, record.subspan(kHead, table), *build.layout);
    return true;
}

/// The number of a function's line, for a place.
uint32_t Scripts::place(const Build &build, uint32_t module, uint64_t id, uint64_t word) {
    uint32_t line = 0;
    if (const auto at = functions_.find(id); at != functions_.end())
        line = build.file.runtime->line(*build.layout, at->second, word);
    const auto [at, fresh] = position_index_.try_emplace({id, line}, static_cast<uint32_t>(positions_.size()));
    if (fresh) positions_.push_back({id, line, module});
    return at->second;
}

bool Scripts::makes_alike(uint32_t pid) const {
    const auto process = processes_.find(pid);
    const Build *build = process == processes_.end() ? nullptr : builds_.find(process->second.module);
    return build && build->file.runtime->alike;
}

bool Scripts::evaluates(const Build &build, const FrameLocation &place, bool calls_evaluating) const {
    if (place.module == kNone) return false;
    const std::string_view compiled = build.file.runtime->compiled;
    if (!compiled.empty() && table_.modules()[place.module].path.starts_with(compiled)) return true;
    const Build *its = builds_.find(place.module);
    return its && (lies_in(place, its->file.evaluates) || (!calls_evaluating && lies_in(place, its->file.enters)));
}

/// False: there is nothing to learn from, as no function of the language runs. A program that only has an interpreter in it (gdb,
/// perf, a database) may never run one.
bool Scripts::may_evaluate(const Build &build, bool rooted, const std::vector<FrameLocation> &native) const {
    return !rooted || build.file.evaluates.empty() ||
           std::any_of(native.begin(), native.end(), [&](const FrameLocation &frame) { return evaluates(build, frame, false); });
}

/// A function that evaluates, which what it evaluates had call itself, goes on with the same group: one of them stands for it.
void Scripts::find_resumed(const Build &build, const std::vector<FrameLocation> &native) {
    resumed_.assign(native.size(), false);
    for (size_t i = 0; i < native.size(); ++i) {
        if (!evaluates_[i] && !resumed_[i]) continue;
        size_t next = i + 1;
        while (next < native.size() && !evaluates_[next] && native[next].module == native[i].module &&
               lies_in(native[next], build.layout->resumes))
            ++next;
        if (next == i + 1 || next >= native.size() || !evaluates_[next]) continue;
        std::fill(resumed_.begin() + static_cast<ptrdiff_t>(i + 1), resumed_.begin() + static_cast<ptrdiff_t>(next + 1), true);
        evaluates_[next] = false;
    }
}

/// Which native frames stand for a group of the list.
void Scripts::find_evaluating(const Build &build, const std::vector<FrameLocation> &native) {
    evaluates_.clear();
    for (const FrameLocation &frame : native) // leaf first: the last one's caller
        evaluates_.push_back(evaluates(build, frame, !evaluates_.empty() && evaluates_.back()));
    find_resumed(build, native);
}

std::optional<bool> Scripts::agrees(uint32_t pid, std::span<const uint64_t> words, const std::vector<FrameLocation> &native) {
    const auto process = processes_.find(pid);
    if (process == processes_.end() || !process->second.walked || is_thread(words)) return std::nullopt;
    if (words.size() >= 2 * LANGUAGE_FRAMES) return std::nullopt;
    const Build &build = builds_.at(process->second.module);
    if (!build.layout || build.file.evaluates.empty()) return std::nullopt;
    take_list(build, process->second.module, words);
    if (list_.empty()) return std::nullopt;
    find_evaluating(build, native);
    return languages::merge(
               evaluates_, list_, true, build.file.runtime->early, [](size_t) {}, [](uint32_t) {}) != Merged::astray;
}

/// Looks for the function that evaluates, by one more stack.
void Scripts::search(Build &build, uint32_t module, const std::vector<FrameLocation> &native) {
    offsets_.clear();
    for (const FrameLocation &frame : native)
        if (frame.module == module) offsets_.push_back(frame.file_offset - (frame.caller ? 1 : 0));
    build.search.add(build.file.functions, offsets_, group_ends(list_).size());
    if (const auto found = build.search.found()) {
        build.file.evaluates = {*found};
        build.file.functions = {};
    } else if (!unproven(build)) {
        prove(module);
    }
}

/// The frames in `words`, leaf first: where there are several lists, the inner one first. Without addresses on the native stack
/// that is the one walked last: a thread's pointer leads to its first interpreter, and others come by age. Where threads begin
/// with a frame, it leads to the one that runs.
void Scripts::take_list(const Build &build, uint32_t module, std::span<const uint64_t> words) {
    list_.clear();
    lists_.clear();
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
        const uint64_t id = words[i];
        if (LANGUAGE_MARK(words[i + 1]) == LANGUAGE_IS_LIST) {
            if (build.layout->based) languages::drop_base(list_);
            const uint64_t by_age = UINT64_MAX - lists_.size(); // the newest is walked last
            const bool current = build.layout->based && lists_.empty();
            lists_.push_back({current ? 0 : build.layout->stacked ? id : by_age, std::move(list_)});
            list_.clear();
            continue;
        }
        const auto function = functions_.find(id);
        const Part part =
            build.file.runtime->part(*build.layout, function == functions_.end() ? nullptr : &function->second, id, words[i + 1]);
        if (part.joins && !list_.empty()) list_.back().ends_group = false;
        const uint32_t number = part.hidden ? 0 : place(build, module, id, words[i + 1]);
        list_.push_back({number, part.ends_group, part.hidden});
    }
    if (build.layout->based) languages::drop_base(list_);
    if (lists_.empty()) return;
    lists_.push_back({UINT64_MAX, std::move(list_)}); // the last one was cut
    std::stable_sort(lists_.begin(), lists_.end(), [](const List &a, const List &b) { return a.ends < b.ends; });
    list_.clear();
    for (const List &one : lists_) list_.insert(list_.end(), one.frames.begin(), one.frames.end());
}

void Scripts::merge(uint32_t pid, std::span<const uint64_t> words, bool rooted, uint64_t now_ns,
                    std::vector<FrameLocation> &native) {
    if (!on()) return;
    const auto process = processes_.find(pid);
    if (process == processes_.end()) return;
    if (is_thread(words)) { // of a wait that began before it was walked, too
        if (!process->second.walked && may_evaluate(builds_.at(process->second.module), rooted, native))
            learn(pid, process->second, words[0], now_ns);
        return;
    }
    Build &build = builds_.at(process->second.module);
    if (!build.layout || view_ == ScriptView::native) return;
    if (positions_.size() >= kMostPositions) {
        ++unplaced_;
        return;
    }
    if (!process->second.walked || now_ns < process->second.walked_ns) return; // its program had only native frames to send
    const bool cut = words.size() >= 2 * LANGUAGE_FRAMES;
    take_list(build, process->second.module, words);
    if (build.file.evaluates.empty()) {
        if (rooted && !cut && build.search.stacks() < kMostSearched) search(build, process->second.module, native);
        return;
    }
    find_evaluating(build, native);
    if (list_.empty() && std::find(evaluates_.begin(), evaluates_.end(), true) == evaluates_.end())
        return; // no language's thread
    merged_.clear();
    const auto how = languages::merge(
        evaluates_, list_, rooted && !cut, build.file.runtime->early,
        [&](size_t i) {
            if (view_ == ScriptView::both && !resumed_[i]) merged_.push_back(native[i]);
        },
        [&](uint32_t number) {
            FrameLocation frame;
            frame.module = build.script;
            frame.file_offset = frame.address = number; // the tree tells places apart by one of the two
            merged_.push_back(frame);
        });
    ++(how == Merged::equal ? equal_ : how == Merged::one_more ? one_more_ : how == Merged::one_less ? one_less_ : astray_);
    cut_ += cut;
    if (how == Merged::astray && rooted && !cut && find_others(pid, process->second, now_ns) != Others::none) return;
    if (rooted && !cut && !judge(process->second.module, build, how)) return; // of others the sides may differ for other reasons
    if (!merged_.empty()) native.swap(merged_);
}

ScriptFrame Scripts::frame(uint64_t offset) const {
    if (offset >= positions_.size()) return {};
    const Position &position = positions_[offset];
    const auto at = functions_.find(position.id);
    if (at == functions_.end()) return {};
    return {at->second.name, at->second.file, position.line != 0 ? position.line : at->second.line};
}

std::vector<std::pair<std::string, uint64_t>> Scripts::counts() const {
    if (equal_ + one_more_ + one_less_ + astray_ == 0) return {};
    return {{"merged", equal_}, {"one_more", one_more_}, {"one_less", one_less_}, {"astray", astray_}, {"cut", cut_}};
}

std::vector<std::string> Scripts::learnt() const {
    std::vector<std::string> out;
    for (const auto &[module, build] : builds_) {
        if (!build || !build->layout || build->file.evaluates.empty()) continue;
        std::string evaluation;
        if (build->search.stacks() > 0)
            evaluation =
                format("; evaluates at {:#x}, by {} stacks", build->file.evaluates.front().start, build->search.stacks());
        out.push_back(format("{}: {}{}; {} looks at it took {:.1f} ms of CPU", table_.modules()[module].path,
                             build->file.runtime->describe(build->file, *build->layout), evaluation, build->looks,
                             static_cast<double>(build->learning_ns) / 1e6));
    }
    return out;
}

std::vector<std::string> Scripts::warnings() const {
    std::vector<std::string> out;
    if (unnamed_ > 0)
        out.push_back(format("{} functions of languages have no name: those of {} are kept, and there were more", unnamed_,
                             kMostFunctions));
    if (unplaced_ > 0)
        out.push_back(format("{} stacks have native frames only: {} lines of languages' functions are kept, and there were more",
                             unplaced_, kMostPositions));
    for (const auto &[module, build] : builds_) {
        if (build && build->layout && build->file.evaluates.empty() && build->search.stacks() > 0)
            out.push_back(format("{}: {}'s functions aren't shown: the file doesn't export the function that evaluates them, and "
                                 "none was on its {} stacks as often as they say",
                                 table_.modules()[module].path, build->file.runtime->language, build->search.stacks()));
        if (build && !build->layout && build->tries > 0)
            out.push_back(format("{}: {}'s functions aren't shown: {}", table_.modules()[module].path,
                                 build->file.runtime->language, build->why));
    }
    return out;
}

} // namespace rawbpf::inline v0::processes
