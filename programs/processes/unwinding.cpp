// Which processes? The command's from their exec on, those given with --pid from the start (the tables of both are there before
// the clocks), and of all others those that are sampled: their first samples come with copies of their stacks, and an idle
// process costs nothing. Of a whole machine those that run when the profile starts come first, as far as a third of a second
// goes: making a compiler's table takes longer than its next ticks would wait, the more so beside compilers on every CPU.
// Whatever the kernel tells of their mappings afterwards (dlopen, a compiler at run time, exec) comes through the process table,
// in one go after each reading of the rings; of an exec when it has ended, as the kernel's side forgets the process then
// (programs/unwind/exec_watch.h).
#include "programs/processes/unwinding.h"

#include <algorithm>

#include "programs/unwind/closure.h"
#include "runtime/base/fail.h"
#include "runtime/base/long_step.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::processes {

constexpr int kMostTurns = 1000;
constexpr uint64_t kOneOf = 20;     // stacks: where so many end in made code, what is told of its frames is used
constexpr uint64_t kBeforeForm = 2; // different stacks that end in made code: before, their frames' form isn't looked for
constexpr size_t kSurely = 4;       // frames further, of a stack that is deeper than its copy
constexpr uint64_t kLookAgain = 10; // times as many
// Elsewhere the return address is in a register, and code that calls keeps it beside a frame pointer.
constexpr bool kHasForms = kHostArch == Arch::x86_64;
constexpr uint64_t kExecNs = 100'000'000; // an exec takes no longer, but where it fails half-way, or isn't ours to notice

Result<void> Unwinding::start(LoadedObject &object, uint64_t memory, const UnwindProgramOptions &program) {
    unwind::LiveTablesOptions options;
    options.memory = memory;
    options.program = program;
    copies_ = program.copies;
    start(TRY(unwind::LiveTables::create(object, *this, options)));
    return {};
}

void Unwinding::start(std::unique_ptr<unwind::LiveTables> tables) {
    tables_ = std::move(tables);
    table_.note_changes();
}

Result<void> Unwinding::want(uint32_t pid, uint64_t now_ns) {
    if (!on()) return {};
    LongStep step("reading unwind tables");
    table_.follow(pid, now_ns);
    // Each turn makes a table or is the last; but a process that maps one file after the other doesn't keep us here.
    for (int turn = 0; turn < kMostTurns && !TRY(update(sys::monotonic_ns())); ++turn) {
    }
    return {};
}

void Unwinding::prepare(const std::vector<std::string> &command) {
    if (!on()) return;
    LongStep step("reading unwind tables");
    unwind::files_of_command(command, unwind::CommandEnvironment::own(), [&](const std::string &path, const Fd &file) {
        tables_->prepare(file, path);
        return true;
    });
}

/// mappings_ = what a process has mapped. False: nothing.
bool Unwinding::list_mappings(uint32_t pid, const ProcessTable::Image *image) {
    mappings_.clear();
    if (!image) return false;
    const bool copied = (js_ && js_->knows(pid)) || looks_for_form(pid);
    for (const ProcessTable::Mapping &mapping : *image) {
        unwind::CodeMapping code;
        switch (table_.modules()[mapping.module].kind) {
        case ModuleKind::file: code.kind = unwind::CodeMapping::Kind::file; break;
        case ModuleKind::vdso: code.kind = unwind::CodeMapping::Kind::vdso; break;
        case ModuleKind::anonymous:
            code.kind = kind_of_made_code(pid, mapping);
            if (code.kind == unwind::CodeMapping::Kind::uniform) code.frame = *form_of(pid);
            break;
        case ModuleKind::script: code.kind = unwind::CodeMapping::Kind::other; break;
        }
        code.start = mapping.start;
        code.end = mapping.end;
        code.file_offset = mapping.file_offset;
        code.module = mapping.module;
        code.copied = copied;
        mappings_.push_back(code);
    }
    return !mappings_.empty();
}

/// Whether it is in the middle of an exec, or has executed something that we haven't heard of, as we may soon.
bool Unwinding::executes(uint32_t pid, uint64_t as_of_ns, uint64_t now_ns) const {
    const uint64_t began_ns = table_.exec_ns(pid);
    const bool goes_on = began_ns != 0 && !tables_->executed_after(pid, began_ns) && now_ns < began_ns + kExecNs;
    return goes_on || (tables_->executed_after(pid, as_of_ns) && now_ns < as_of_ns + kExecNs);
}

Result<bool> Unwinding::update(uint64_t now_ns) {
    if (!on()) return true;
    bool all = true;
    waiting_ = false;
    for (uint32_t pid : table_.take_changed()) {
        if (const ProcessTable::Image *image = table_.image(pid); image) {
            if (java_) (void)java_->look(pid, *image, now_ns);
            if (js_) (void)js_->look(pid, *image);
        }
        if (!list_mappings(pid, table_.image(pid))) {
            if (scripts_) scripts_->ended(pid);
            if (java_) java_->ended(pid);
            if (js_) js_->ended(pid);
            made_.erase(pid);
            TRY(tables_->ended(pid));
            continue;
        }
        const uint64_t as_of_ns = table_.as_of_ns(pid);
        if (executes(pid, as_of_ns, now_ns)) {
            table_.tell_again(pid);
            waiting_ = true;
            continue;
        }
        if (scripts_) scripts_->changed(pid, *table_.image(pid));
        if (TRY(tables_->update(pid, mappings_, as_of_ns, now_ns))) continue;
        table_.follow(pid, now_ns);
        all = false;
    }
    return all;
}

void Unwinding::seen_again(const StackTree &tree, uint32_t node, uint32_t pid, uint64_t now_ns) {
    if (!table_.image(pid)) return;
    uint32_t module = kNone;
    tree.walk(node, [&](uint32_t number) {
        const FrameLocation place = tree.places()[number];
        if (place.module == module || place.module == kNone) return;
        used(pid, module = place.module, now_ns);
        if (place.pid != 0) (void)table_.locate(place.pid, place.address, place.caller, now_ns);
    });
}

Unwinding::Made &Unwinding::made(uint32_t pid) {
    Made &at = made_[pid];
    const uint64_t exec_ns = table_.exec_ns(pid);
    if (at.exec_ns != exec_ns) {
        at = Made();
        at.exec_ns = exec_ns;
    }
    return at;
}

const Unwinding::Made *Unwinding::made_known(uint32_t pid) const {
    const auto at = made_.find(pid);
    return at != made_.end() && at->second.exec_ns == table_.exec_ns(pid) ? &at->second : nullptr;
}

/// Most code that is made at run time keeps frame pointers, and a program follows these. What its maker tells of its frames, and
/// what their form is if nobody tells, takes copies of stacks; so it is looked at of a process whose stacks end there otherwise.
void Unwinding::judge_made_code(const UserStack &stack) {
    if (!symbols_ || stack.frames.empty() || uses_told(stack.pid) || (js_ && js_->knows(stack.pid))) return;
    const uint64_t outermost = stack.frames.back() & ~UNWIND_EXACT_PC;
    const uint32_t ending = stack.ending & ~uint32_t{UNWIND_TABLES | UNWIND_COPIED};
    const bool early = ending >= UNWIND_ENDED_NO_MAPPING && ending <= UNWIND_ENDED_STUCK; // not for want of news
    // The first stack in such code opens what is told of it; and equal ones may only be counted from then on.
    FrameLocation place{};
    if (early) place = table_.locate(stack.pid, outermost, stack.frames.size() > 1, stack.t_ns);
    const bool ended_there = early && place.module != kNone && table_.modules()[place.module].kind == ModuleKind::anonymous;
    if (looks_for_form(stack.pid) || form_of(stack.pid)) return;
    const bool skips = !ended_there && alike(stack.pid) && in_made_code(stack.pid, stack.frames);
    if (!ended_there && !skips && !made_known(stack.pid)) return;
    Made &process = made(stack.pid);
    ++process.stacks;
    if ((!ended_there && !skips) || ++process.ended * kOneOf < process.stacks) return;
    const symbols::JitDump *dump = symbols_->dump_of(stack.pid);
    if (dump && dump->unwinding(outermost)) {
        process.told = true;
    } else if (process.ended >= std::max(process.next_look, kBeforeForm) && copies_ && kHasForms) {
        process.form.emplace();
        process.next_look = process.ended * kLookAgain;
    } else {
        return;
    }
    table_.tell_again(stack.pid);
}

bool Unwinding::uses_told(uint32_t pid) const {
    const Made *process = made_known(pid);
    return process && process->told && symbols_->dump_of(pid);
}

std::optional<UniformFrame> Unwinding::form_of(uint32_t pid) const {
    const Made *process = made_known(pid);
    return process && process->form ? process->form->found() : std::nullopt;
}

bool Unwinding::looks_for_form(uint32_t pid) const {
    const Made *process = made_known(pid);
    return process && process->form && process->form->asks();
}

bool Unwinding::has_looked_for_form(uint32_t pid) const {
    const Made *process = made_known(pid);
    return process && process->form && !process->form->asks();
}

/// Whether these frames of a stack, which reach its root, agree with the interpreter's own list.
std::optional<bool> Unwinding::agrees(const UserStack &stack, std::span<const uint64_t> frames) {
    std::vector<FrameLocation> places;
    for (size_t i = 0; i < frames.size(); ++i)
        places.push_back(table_.locate(stack.pid, frames[i] & ~UNWIND_EXACT_PC, is_caller(frames, i), stack.t_ns));
    return scripts_->agrees(stack.pid, stack.language, places);
}

unwind::CodeMapping::Kind Unwinding::kind_of_made_code(uint32_t pid, const ProcessTable::Mapping &mapping) const {
    using Kind = unwind::CodeMapping::Kind;
    if (java_ && java_->in_heap(pid, mapping.start)) return Kind::listed;
    if (uses_told(pid)) return symbols_->dump_of(pid)->has_unwinding(mapping.start, mapping.end) ? Kind::listed : Kind::other;
    return form_of(pid) ? Kind::uniform : Kind::other;
}

std::optional<unwind::ListedRule> Unwinding::listed(uint32_t pid, uint64_t pc) const {
    if (java_)
        if (auto rule = java_->rule(pid, pc)) return rule;
    return tried_.words != 0 ? std::optional(unwind::ListedRule{rule_of(tried_)}) : std::nullopt;
}

std::optional<symbols::JitDump::Unwinding> Unwinding::told(uint32_t pid, uint64_t pc) const {
    if (!uses_told(pid)) return std::nullopt;
    return symbols_->dump_of(pid)->unwinding(pc).value_or(symbols::JitDump::Unwinding{});
}

/// Whether a frame of the stack, which isn't its outermost, is in code that the process has made. Where that has no frame
/// pointers, but the interpreter's C code has one, frame pointers lead on from there, and skip a frame.
bool Unwinding::in_made_code(uint32_t pid, std::span<const uint64_t> frames) const {
    const ProcessTable::Image *image = table_.image(pid);
    if (!image) return false;
    for (const ProcessTable::Mapping &mapping : *image) {
        if (table_.modules()[mapping.module].kind != ModuleKind::anonymous) continue;
        for (const uint64_t &frame : frames)
            if (const uint64_t address = (frame & ~UNWIND_EXACT_PC) - (&frame != frames.data());
                address >= mapping.start && address < mapping.end)
                return true;
    }
    return false;
}

/// A copied stack, while the form of frames in its process's made code is looked for. True: now it is known.
bool Unwinding::ask_for_form(const UserStack &stack, const unwind::Walked &walked) {
    FrameSearch &search = *made(stack.pid).form;
    search.looked();
    const auto made_here = [&](const uint64_t &frame) {
        const uint64_t address = (frame & ~UNWIND_EXACT_PC) - (&frame != walked.frames.data());
        return std::any_of(mappings_.begin(), mappings_.end(), [&](const unwind::CodeMapping &mapping) {
            return mapping.kind == unwind::CodeMapping::Kind::other && address >= mapping.start && address < mapping.end;
        });
    };
    const auto first = std::find_if(walked.frames.begin(), walked.frames.end(), made_here);
    const auto known = static_cast<size_t>(first - walked.frames.begin()) + 1; // frames, whatever the code is left by
    const bool by_copy = walked.ending == UNWIND_ENDED_ROOT;
    const bool whole = by_copy || (stack.ending & ~(UNWIND_TABLES | UNWIND_COPIED)) == UNWIND_ENDED_ROOT;
    const bool through = whole && first != walked.frames.end();
    // A stack that frame pointers lead through such code speaks against all forms, unless the interpreter's own list says that
    // they skip a frame.
    const std::optional<bool> right =
        through && alike(stack.pid) ? agrees(stack, by_copy ? walked.frames : stack.frames) : std::optional(through);
    if (right.value_or(false)) {
        search.against();
    } else if (right && (through || made_here(walked.frames.back()))) {
        for (unwind::CodeMapping &mapping : mappings_)
            if (mapping.kind == unwind::CodeMapping::Kind::other) mapping.kind = unwind::CodeMapping::Kind::listed;
        search.ask([&](const UniformFrame &form) {
            using Leads = FrameSearch::Leads;
            tried_ = form;
            const auto again = tables_->walk(stack.pid, mappings_, *stack.copy, stack.t_ns);
            if (!again || again->frames.size() <= known) return Leads::nowhere;
            const bool root = again->ending == UNWIND_ENDED_ROOT;
            if (through) return root && agrees(stack, again->frames).value_or(false) ? Leads::whole : Leads::on;
            const bool left_copy = again->ending == UNWIND_ENDED_UNREADABLE && again->frames.size() >= known + kSurely;
            return root || left_copy ? Leads::whole : Leads::on;
        });
        tried_ = {};
    }
    if (search.asks()) return false;
    table_.tell_again(stack.pid);
    return search.found().has_value();
}

bool Unwinding::walk(UserStack &stack) {
    if (!on()) return false;
    judge_made_code(stack);
    // An exec took away what was told, and perhaps nothing else will tell of it.
    if ((stack.ending & ~UNWIND_COPIED) == UNWIND_ENDED_NO_PROCESS && tables_->published(stack.pid))
        table_.follow_anew(stack.pid, stack.t_ns);
    if (!stack.copy) return false;
    table_.look_unless_known(stack.pid, stack.t_ns);
    if (!list_mappings(stack.pid, table_.last_image(stack.pid))) return false;
    auto walked = tables_->walk(stack.pid, mappings_, *stack.copy, stack.t_ns);
    if (!walked) return false; // whatever it is, update() will meet it, too
    // What was compiled since the list was read is looked for, a frame at a time.
    while (java_ && java_->in_heap(stack.pid, walked->pc) && !java_->rule(stack.pid, walked->pc) &&
           java_->read_at(stack.pid, walked->pc, sys::monotonic_ns())) {
        walked = tables_->walk(stack.pid, mappings_, *stack.copy, stack.t_ns);
        if (!walked) return false;
    }
    if (walked->ending != UNWIND_ENDED_ROOT && uses_told(stack.pid) && symbols_->read_news(stack.pid, stack.t_ns)) {
        walked = tables_->walk(stack.pid, mappings_, *stack.copy, stack.t_ns);
        if (!walked) return false;
    }
    if (looks_for_form(stack.pid) && ask_for_form(stack, *walked)) {
        if (!list_mappings(stack.pid, table_.last_image(stack.pid))) return false;
        walked = tables_->walk(stack.pid, mappings_, *stack.copy, stack.t_ns);
        if (!walked) return false;
    }
    // By frame pointers more addresses are found than there are frames; of a walk by tables each was right. What only a copy
    // doesn't reach, as a frame of more than 16 KiB, frame pointers may.
    const bool by_tables = (stack.ending & UNWIND_TABLES) != 0;
    const bool whole = walked->ending == UNWIND_ENDED_ROOT || walked->ending == UNWIND_ENDED_DEPTH;
    const bool too_short = walked->ending == UNWIND_ENDED_UNREADABLE && walked->frames.size() <= 1;
    functions_ = js_ ? js_->functions(stack.pid, *walked, *stack.copy) : std::vector<unwind::FrameFunction>{};
    if (!whole && (by_tables ? walked->frames.size() <= stack.frames.size() : too_short)) return keep(stack, *walked);
    walked_ = std::move(*walked);
    stack.frames = walked_.frames;
    stack.functions = functions_.empty() ? walked_.functions : functions_;
    stack.ending = walked_.ending | UNWIND_TABLES;
    stack.made_here = true;
    if (!by_tables) stack.language = {}; // they may be of the program before this one
    return true;
}

/// The program's frames are better, of a stack that is deeper than its copy; JavaScript's functions belong to them, too, as far
/// as both have the same.
bool Unwinding::keep(UserStack &stack, const unwind::Walked &walked) {
    const size_t most = std::min(stack.frames.size(), walked.frames.size());
    size_t same = 0;
    while (same < most && stack.frames[same] == walked.frames[same]) ++same;
    while (!functions_.empty() && functions_.back().frame >= same) functions_.pop_back();
    if (functions_.empty()) return false;
    stack.functions = functions_;
    stack.ending &= ~uint32_t{UNWIND_COPIED};
    return true;
}

Result<Fd> Unwinding::open(uint32_t pid, const unwind::CodeMapping &mapping) {
    auto opened = open_mapped(table_.modules()[mapping.module], {pid, table_.parent(pid)}, mapping.start, mapping.end);
    if (!opened) return Unexpected(std::move(opened).error());
    table_.opened(mapping.module, opened->file, opened->root);
    return std::move(opened->file);
}

} // namespace rawbpf::inline v0::processes
