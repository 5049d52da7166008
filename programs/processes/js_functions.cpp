#include "programs/processes/js_functions.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "programs/languages/runtime.h"
#include "programs/processes/id_index.h"
#include "runtime/base/format.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

using namespace languages::v8;

namespace {

constexpr unsigned kTries = 8;                                                       // for a line, one after the other
constexpr size_t kMostPages = 1 << 13;                                               // of one stack, with the text of scripts
constexpr size_t kMostKnown = 1 << 16, kMostScripts = 1 << 13, kMostLines = 1 << 22; // of a process
constexpr size_t kMostPlaces = 1 << 16;
constexpr uint64_t kMostPushed = 16; // words, by a routine without a frame
constexpr size_t kMostProcesses = 1 << 10;

std::optional<uint64_t> word_at(const unwind::StackCopy &copy, uint64_t address) {
    const uint64_t at = address - copy.registers.sp;
    if (at < copy.absent || at > copy.bytes.size() || copy.bytes.size() - at < sizeof(uint64_t)) return std::nullopt;
    uint64_t word = 0;
    std::memcpy(&word, copy.bytes.data() + at, sizeof word);
    return word;
}

/// What couldn't be read so often is tried once more: at once, then less and less often. Of a process that has just begun all
/// stacks of its first moments are read together, long after objects have moved; and V8 makes a table when somebody asks for it.
bool is_tried_again(unsigned tries) { return tries < kTries || std::has_single_bit(tries); }

/// "(anonymous) loader.js:12": there are many of them.
std::string nameless(const std::string &path, uint32_t line) {
    const std::string file = path.substr(path.rfind('/') + 1);
    if (file.empty()) return "(anonymous)";
    return line == 0 ? format("(anonymous) {}", file) : format("(anonymous) {}:{}", file, line);
}

} // namespace

size_t JsFunctions::PlaceHash::operator()(const PlaceKey &key) const {
    return mix(key.at ^ mix(uint64_t{key.function} << 1 | (key.machine_code ? 1 : 0)));
}

void JsFunctions::start(ScriptView view) {
    view_ = view;
    if constexpr (kHostArch == Arch::x86_64) files_.start(recognise); // it was looked at there only
}

bool JsFunctions::look(uint32_t pid, const ProcessTable::Image &image) {
    if constexpr (kHostArch != Arch::x86_64) return false;
    if (view_ == ScriptView::native) return false;
    for (const ProcessTable::Mapping &mapping : image) {
        if (table_.modules()[mapping.module].kind != ModuleKind::file) continue;
        const auto known = processes_.find(pid);
        if (known != processes_.end() && known->second.module == mapping.module) {
            place_code(known->second, image);
            return true;
        }
        const File *file = files_.of(pid, mapping);
        if (!file || !file->layout) continue;
        if (processes_.size() >= kMostProcesses) return false;
        Process fresh;
        fresh.module = mapping.module;
        place_code(fresh, image);
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

/// Where there is code: of its file, and made at run time.
void JsFunctions::place_code(Process &process, const ProcessTable::Image &image) const {
    process.file.clear();
    process.made.clear();
    for (const ProcessTable::Mapping &mapping : image) {
        if (mapping.module == process.module) process.file.emplace_back(mapping.start, mapping.end);
        if (table_.modules()[mapping.module].kind == ModuleKind::anonymous) process.made.emplace_back(mapping.start, mapping.end);
    }
}

std::vector<unwind::FrameFunction> JsFunctions::functions(uint32_t pid, const unwind::Walked &walked,
                                                          const unwind::StackCopy &copy) {
    std::vector<unwind::FrameFunction> out;
    const auto at = processes_.find(pid);
    if (at == processes_.end() || walked.pointed.empty()) return out;
    Process &process = at->second;
    const File &file = files_.at(process.module);
    const Layout &layout = *file.layout;
    sys::Because why("the names of JavaScript's functions, from the heap of V8");
    if (!process.pages) {
        auto pages = languages::ProcessPages::open(pid);
        if (!pages) return out; // it has ended
        process.pages = *pages;
    }
    languages::Memory memory(*process.pages, kMostPages);
    Heap heap(memory, layout);
    std::optional<CodeReader> code;
    if (layout.code) code.emplace(memory, heap, *layout.code, layout, file.sizes ? &*file.sizes : nullptr);
    Reading reading{process, heap, code ? &*code : nullptr};
    for (const unwind::PointedFrame &frame : walked.pointed) {
        const auto slot = [&](int32_t offset) { return word_at(copy, frame.fp + static_cast<uint64_t>(int64_t{offset})); };
        auto context = slot(layout.context), function = slot(layout.function);
        // Before it is in its frame, a function is in a register: that of the calling convention (v8dbg_JSFunctionRegister).
        const bool entering = frame.enters || (frame.frame == 0 && frame.fp < copy.registers.sp + sizeof(uint64_t) * 2);
        if (entering) context = 1, function = copy.registers.di;
        if (!context || !function || !is_pointer(*context) || !is_pointer(*function)) continue; // of code that is no function's
        const std::optional<Known> its = this->function(reading, *function);
        if (!entering) ++(its ? named_ : unnamed_);
        if (!its || frame.frame >= walked.frames.size()) continue;
        const uint64_t address = walked.frames[frame.frame], pc = address & ~UNWIND_EXACT_PC;
        const bool caller = frame.frame > 0 && pc == address;
        const uint64_t found = entering ? number(reading, *its, {})
                                        : place_of(reading, *its, {pc - (caller ? 1 : 0), frame.fp, frame.frame == 0, copy});
        if (found != 0) out.push_back({.frame = frame.frame, .word = found, .known = true});
    }
    return out;
}

std::optional<JsFunctions::Known> JsFunctions::function(Reading &reading, uint64_t word) {
    const auto supposed = reading.heap.supposed(word);
    if (!supposed) return std::nullopt;
    const auto at = reading.process.known.find(supposed->at);
    if (at != reading.process.known.end() && at->second.shared == *supposed) return known(reading, *supposed);
    const auto shared = reading.heap.shared(word);
    return shared ? known(reading, *shared) : std::nullopt;
}

std::optional<JsFunctions::Known> JsFunctions::known(Reading &reading, const Shared &shared) {
    Process &process = reading.process;
    const auto before = process.known.find(shared.at);
    const bool same = before != process.known.end() && before->second.shared == shared;
    if (same && (before->second.whole || !is_tried_again(++before->second.tries))) return before->second;
    const unsigned tries = same ? before->second.tries : 0;
    const auto function = reading.heap.function(shared);
    if (!function) return std::nullopt;
    std::string file;
    uint32_t line = 0;
    if (function->script != 0) {
        const Lines &lines = script(reading, function->script, function->source);
        file = lines.file;
        if (lines.ends) line = line_of(*lines.ends, function->position);
    }
    // A text that is just being moved can't be read.
    const bool whole = function->script == 0 || (!file.empty() && line != 0);
    if (process.known.size() >= kMostKnown) process.known.clear();
    Known out{.shared = shared,
              .name = frames_.text(function->name.empty() ? nameless(file, line) : function->name),
              .file = frames_.text(file),
              .line = line,
              .script = function->script,
              .source = function->source,
              .length = function->source != 0 ? reading.heap.length(function->source) : 0,
              .id = ids_++,
              .whole = whole,
              .tries = tries};
    if (!same) ++functions_;
    process.known.insert_or_assign(shared.at, out);
    return out;
}

/// The number of a function at a place: that of a chain of functions, if others were inlined.
uint64_t JsFunctions::place_of(Reading &reading, const Known &function, const Where &where) {
    if (!reading.code || function.script == 0) return number(reading, function, {});
    const CodeLayout &layout = *files_.at(reading.process.module).layout->code;
    const auto slot = [&](int32_t offset) {
        return word_at(where.copy, where.fp + static_cast<uint64_t>(int64_t{offset})).value_or(0);
    };
    const auto within = [](const Ranges &ranges, uint64_t address) {
        return std::any_of(ranges.begin(), ranges.end(),
                           [&](const auto &range) { return address >= range.first && address < range.second; });
    };
    const uint64_t bytecodes = slot(layout.bytecodes);
    const bool made = !within(reading.process.file, where.pc);
    const PlaceKey interpreted{function.id, false, slot(layout.offset)};
    Kept kept = kept_place(reading, function, made ? PlaceKey{function.id, true, where.pc} : interpreted, bytecodes);
    // V8 moves its interpreter into the range of made code (mremap()), which nobody is told of before the maps are read again.
    if (made && !kept.tier && is_smi(interpreted.at))
        if (const Kept other = kept_place(reading, function, interpreted, bytecodes); other.tier) kept = other;
    // A leaf may be in one of V8's routines that have no frame: then it returns to the function's code, by one of the first
    // words.
    const uint64_t sp = where.copy.registers.sp;
    for (uint64_t at = sp; where.leaf && !made && !kept.tier && at < where.fp && at < sp + kMostPushed * sizeof(uint64_t);
         at += sizeof(uint64_t)) {
        const uint64_t word = word_at(where.copy, at).value_or(0);
        if (within(reading.process.made, word)) kept = kept_place(reading, function, {function.id, true, word - 1}, bytecodes);
    }
    ++(kept.tier ? placed_[static_cast<size_t>(*kept.tier)] : unplaced_);
    return kept.number;
}

JsFunctions::Kept JsFunctions::kept_place(Reading &reading, const Known &function, const PlaceKey &key, uint64_t bytecodes) {
    Process &process = reading.process;
    const auto known = process.places.find(key);
    unsigned tries = 0;
    if (known != process.places.end()) {
        Kept &kept = known->second;
        const bool there = kept.code == Code{} || reading.code->is_there(kept.code);
        if (there && (kept.tier || !is_tried_again(++kept.tries))) return kept;
        if (there) tries = kept.tries;
    }
    Kept kept = read_place(reading, function, key, bytecodes);
    kept.tries = tries;
    if (process.places.size() >= kMostPlaces) process.places.clear();
    process.places.insert_or_assign(key, kept);
    return kept;
}

JsFunctions::Kept JsFunctions::read_place(Reading &reading, const Known &function, const PlaceKey &key, uint64_t bytecodes) {
    Kept out;
    std::vector<Spot> spots;
    if (!key.machine_code) {
        if (const auto text = reading.code->interpreted(function.shared, bytecodes, key.at, function.length)) {
            spots.push_back({function.shared, *text});
            out.tier = Tier::interpreted;
        }
    } else if (const auto code = reading.code->code_at(key.at)) {
        if (reading.code->is_of(*code, function.shared, bytecodes))
            spots = reading.code->spots(*code, key.at, function.shared, function.length);
        if (!spots.empty()) out.tier = reading.code->tier(*code);
        out.code = *code;
    }
    out.number = number(reading, function, spots);
    return out;
}

uint64_t JsFunctions::number(Reading &reading, const Known &function, std::span<const Spot> spots) {
    InlinedFrames::Entry entry;
    for (const Spot &spot : spots) {
        const bool own = spot.function == function.shared;
        const std::optional<Known> its = own ? std::optional(function) : known(reading, spot.function);
        if (!its) continue;
        InlinedFrames::Frame frame{its->name, its->file, its->line};
        if (its->script != 0 && spot.text >= 0)
            if (const Lines &lines = script(reading, its->script, its->source); lines.ends) {
                frame.line = line_of(*lines.ends, spot.text);
                frame.column = column_of(*lines.ends, spot.text);
            }
        entry.frames.push_back(frame);
    }
    if (entry.frames.empty()) entry.frames.push_back({function.name, function.file, function.line});
    return frames_.number(std::move(entry));
}

const JsFunctions::Lines &JsFunctions::script(Reading &reading, uint64_t script, uint64_t source) {
    Process &process = reading.process;
    const auto at = process.scripts.find(script);
    std::string file = reading.heap.script_name(script);
    if (at != process.scripts.end() && at->second.ends && at->second.source == source && at->second.file == file)
        return at->second;
    if (process.scripts.size() >= kMostScripts || process.lines >= kMostLines) process.scripts.clear(), process.lines = 0;
    Lines lines{source, reading.heap.line_ends(script, source), std::move(file)};
    if (lines.ends) process.lines += lines.ends->size();
    return process.scripts.insert_or_assign(script, std::move(lines)).first->second;
}

FrameLocation JsFunctions::place(uint64_t number) const {
    FrameLocation out;
    out.module = script_;
    out.file_offset = out.address = number; // the tree tells places apart by one of the two
    return out;
}

std::vector<std::string> JsFunctions::learnt() const {
    std::vector<std::string> out;
    if (script_ == kNone) return out;
    for (const auto &[module, file] : files_)
        if (file && file->layout)
            out.push_back(format("{}: V8, by {} symbols that it has for debuggers", table_.modules()[module].path, file->told));
    out.push_back(format("JavaScript: {} functions; {} frames are of one, and of {} it couldn't be read; with the line that ran "
                         "{} are interpreted, {} baseline code, {} optimised code; {} only with the line where they begin",
                         functions_, named_, unnamed_, placed_[0], placed_[1], placed_[2], unplaced_));
    return out;
}

std::vector<std::string> JsFunctions::warnings() const {
    std::vector<std::string> out;
    for (const auto &[module, file] : files_)
        if (file && !file->layout)
            out.push_back(format("{}: JavaScript's functions aren't shown: {}", table_.modules()[module].path, file->why));
        else if (file && !file->layout->code)
            out.push_back(format("{}: JavaScript's functions have the lines where they begin, not those that run: {}",
                                 table_.modules()[module].path, file->why_no_lines));
    return out;
}

} // namespace rawbpf::inline v0::processes
