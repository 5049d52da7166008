#include "programs/processes/js_functions.h"

#include <algorithm>
#include <cstring>

#include "programs/languages/runtime.h"
#include "runtime/base/format.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

using namespace languages::v8;

namespace {

constexpr int kMostTries = 8;                                                        // for a function's line
constexpr size_t kMostPages = 1 << 13;                                               // of one stack, with the text of scripts
constexpr size_t kMostKnown = 1 << 16, kMostScripts = 1 << 13, kMostLines = 1 << 22; // of a process
constexpr size_t kMostFunctions = 1 << 18;                                           // of all
constexpr size_t kMostProcesses = 1 << 10;

std::optional<uint64_t> word_at(const unwind::StackCopy &copy, uint64_t address) {
    const uint64_t at = address - copy.registers.sp;
    if (at < copy.absent || at > copy.bytes.size() || copy.bytes.size() - at < sizeof(uint64_t)) return std::nullopt;
    uint64_t word = 0;
    std::memcpy(&word, copy.bytes.data() + at, sizeof word);
    return word;
}

/// "(anonymous) loader.js:12": there are many of them.
std::string nameless(const ScriptFrame &frame) {
    const std::string file = frame.file.substr(frame.file.rfind('/') + 1);
    if (file.empty()) return "(anonymous)";
    return frame.line == 0 ? format("(anonymous) {}", file) : format("(anonymous) {}:{}", file, frame.line);
}

} // namespace

const File *JsFunctions::file_of(uint32_t pid, const ProcessTable::Mapping &mapping) {
    return files_.of(table_, pid, mapping,
                     "does this file have V8 in it? Then it says where JavaScript's functions have their names", recognise);
}

bool JsFunctions::look(uint32_t pid, const ProcessTable::Image &image) {
    if constexpr (kHostArch != Arch::x86_64) return false; // it was looked at there only
    if (view_ == ScriptView::native) return false;
    for (const ProcessTable::Mapping &mapping : image) {
        if (table_.modules()[mapping.module].kind != ModuleKind::file) continue;
        const auto known = processes_.find(pid);
        if (known != processes_.end() && known->second.module == mapping.module) return true;
        const File *file = file_of(pid, mapping);
        if (!file || !file->layout) continue;
        if (processes_.size() >= kMostProcesses) return false;
        Process fresh;
        fresh.module = mapping.module;
        processes_.insert_or_assign(pid, std::move(fresh));
        if (script_ == kNone) {
            Module script;
            script.path = "JavaScript";
            script.kind = ModuleKind::script;
            script_ = table_.modules().intern(std::move(script));
        }
        return true;
    }
    processes_.erase(pid); // it has executed something else
    return false;
}

std::vector<unwind::FrameFunction> JsFunctions::functions(uint32_t pid, const unwind::Walked &walked,
                                                          const unwind::StackCopy &copy) {
    std::vector<unwind::FrameFunction> out;
    const auto at = processes_.find(pid);
    if (at == processes_.end() || walked.pointed.empty()) return out;
    Process &process = at->second;
    const Layout &layout = *files_.at(process.module).layout;
    sys::Because why("the names of JavaScript's functions, from the heap of V8");
    if (!process.pages) {
        auto pages = languages::ProcessPages::open(pid);
        if (!pages) return out; // it has ended
        process.pages = *pages;
    }
    languages::Memory memory(*process.pages, kMostPages);
    Heap heap(memory, layout);
    for (const unwind::PointedFrame &frame : walked.pointed) {
        const auto slot = [&](int32_t offset) { return word_at(copy, frame.fp + static_cast<uint64_t>(int64_t{offset})); };
        auto context = slot(layout.context), function = slot(layout.function);
        // Before it is in its frame, a function is in a register: that of the calling convention (v8dbg_JSFunctionRegister).
        const bool entering = frame.enters || (frame.frame == 0 && frame.fp < copy.registers.sp + sizeof(uint64_t) * 2);
        if (entering) context = 1, function = copy.registers.di;
        if (!context || !function || !is_pointer(*context) || !is_pointer(*function)) continue; // of code that is no function's
        const auto found = number(process, heap, *function);
        if (found) out.push_back({.frame = frame.frame, .word = *found, .known = true});
        if (!entering) ++(found ? named_ : unnamed_);
    }
    return out;
}

std::optional<uint64_t> JsFunctions::number(Process &process, Heap &heap, uint64_t word) {
    const auto supposed = heap.supposed(word);
    if (!supposed) return std::nullopt;
    const auto known = process.known.find(supposed->at);
    const bool same = known != process.known.end() && known->second.shared == *supposed;
    const int tries = same ? known->second.tries : 0;
    if (same && (tries >= kMostTries || known->second.whole)) return known->second.number;
    const auto shared = heap.shared(word);
    if (!shared) return std::nullopt;
    const auto function = heap.function(*shared);
    if (!function) return std::nullopt;
    ScriptFrame frame;
    if (function->script != 0) {
        const Lines &lines = script(process, heap, *function);
        frame.file = lines.file;
        if (lines.ends) frame.line = line_of(*lines.ends, function->position);
    }
    // A text that is just being moved can't be read.
    const bool whole = function->script == 0 || (!frame.file.empty() && frame.line != 0);
    frame.function = function->name.empty() ? nameless(frame) : function->name;
    if (frames_.size() >= kMostFunctions) return std::nullopt;
    const auto [at, fresh] = numbers_.try_emplace({frame.function, {frame.file, frame.line}}, kFirst + frames_.size());
    if (fresh) frames_.push_back(std::move(frame));
    if (process.known.size() >= kMostKnown) process.known.clear();
    process.known.insert_or_assign(shared->at, Known{*shared, at->second, whole, tries + 1});
    return at->second;
}

const JsFunctions::Lines &JsFunctions::script(Process &process, Heap &heap, const Function &function) {
    const auto at = process.scripts.find(function.script);
    std::string file = heap.script_name(function.script);
    if (at != process.scripts.end() && at->second.ends && at->second.source == function.source && at->second.file == file)
        return at->second;
    if (process.scripts.size() >= kMostScripts || process.lines >= kMostLines) process.scripts.clear(), process.lines = 0;
    Lines lines{function.source, heap.line_ends(function.script, function.source), std::move(file)};
    if (lines.ends) process.lines += lines.ends->size();
    return process.scripts.insert_or_assign(function.script, std::move(lines)).first->second;
}

FrameLocation JsFunctions::place(uint64_t number) const {
    FrameLocation out;
    out.module = script_;
    out.file_offset = out.address = number; // the tree tells places apart by one of the two
    return out;
}

std::optional<ScriptFrame> JsFunctions::frame(uint64_t number) const {
    if (number < kFirst || number - kFirst >= frames_.size()) return std::nullopt;
    return frames_[number - kFirst];
}

std::vector<std::string> JsFunctions::learnt() const {
    std::vector<std::string> out;
    if (script_ == kNone) return out;
    for (const auto &[module, file] : files_)
        if (file && file->layout)
            out.push_back(format("{}: V8, by {} symbols that it has for debuggers", table_.modules()[module].path, file->told));
    out.push_back(format("JavaScript: {} functions; {} frames are of one, and of {} it couldn't be read", frames_.size(), named_,
                         unnamed_));
    return out;
}

std::vector<std::string> JsFunctions::warnings() const {
    std::vector<std::string> out;
    for (const auto &[module, file] : files_)
        if (file && !file->layout)
            out.push_back(format("{}: JavaScript's functions aren't shown: {}", table_.modules()[module].path, file->why));
    return out;
}

} // namespace rawbpf::inline v0::processes
