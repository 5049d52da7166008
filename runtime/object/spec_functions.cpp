// Finds out which functions of a spec's programs are the same function.
//
//      prog_a: [ entry_a | helper | add | helper ]          entry_a, helper, add, helper_2,
//      prog_b: [ entry_b | add | helper ]             -->   entry_b
//
// A function that three programs call is in a spec three times. Names aren't enough: static functions of several files may
// share a name, and even their instructions, but refer to other things. Two parts are the same function if their contents are
// the same and the functions that they call are the same, too: parts are first sorted by their contents, and then split by
// what they call until nothing changes. Parts of one program are never the same function.
#include "runtime/object/spec_functions.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "asm/helpers.h"
#include "asm/print.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::object {
namespace {

/// All that two functions must have in common to be one, but what they call.
std::string fingerprint(const Function &function) {
    auto text = [](std::string_view s) { return format("{}:{}", s.size(), s); };
    std::string out = text(function.name) + text(function.section);
    out.append(reinterpret_cast<const char *>(function.insns.data()), function.insns.size() * sizeof(Insn));
    for (const Ref &ref : function.refs)
        out += format(" {} {} {} ", ref.insn, static_cast<int>(ref.kind), ref.addend) + text(ref.symbol);
    for (const SourceLine &line : function.lines) out += format(" {} {} ", line.insn, line.line) + text(line.file);
    for (size_t i = 0; i < function.notes.size(); ++i)
        if (!function.notes[i].empty()) out += format(" {} ", i) + text(function.notes[i]);
    return out;
}

bool leads_to_function(const Ref &ref) { return ref.kind == RefKind::call || ref.kind == RefKind::function; }

/// In the text, `call bpf_loop` is the helper.
bool is_helper(const std::string &name) { return name.starts_with("bpf_") && find_helper(std::string_view(name)); }

} // namespace

void SpecFunctions::add(std::vector<SpecPart> program) {
    std::vector<size_t> places;
    size_t next = parts_.size();
    for (const SpecPart &part : program) places.push_back(part.function.insns.empty() ? SIZE_MAX : next++);
    for (SpecPart &part : program) {
        if (part.function.insns.empty()) continue;
        const auto [kind, added] = kinds_.emplace(fingerprint(part.function), bodies_.size());
        if (added) bodies_.push_back(std::move(part.function));
        for (size_t &target : part.targets) target = places[target];
        parts_.push_back({programs_, kind->second, std::move(part.targets)});
    }
    ++programs_;
}

void SpecFunctions::refine() {
    constexpr int kMostRounds = 100; // one more than calls are deep; no program that loads comes near
    int rounds = 0;
    for (size_t before = 0, now = bodies_.size(); before != now;) {
        if (++rounds > kMostRounds) { // never wrong: each is a function of its own
            for (size_t i = 0; i < parts_.size(); ++i) parts_[i].kind = i;
            return;
        }
        before = now;
        std::map<std::vector<size_t>, size_t> finer;
        std::vector<size_t> kinds;
        for (const Part &part : parts_) {
            std::vector<size_t> key{part.kind};
            for (size_t target : part.targets) key.push_back(parts_[target].kind);
            kinds.push_back(finer.emplace(std::move(key), finer.size()).first->second);
        }
        for (size_t i = 0; i < parts_.size(); ++i) parts_[i].kind = kinds[i];
        now = finer.size();
    }
}

std::vector<Function> SpecFunctions::finish(std::set<std::string> taken) && {
    std::vector<size_t> body;
    for (const Part &part : parts_) body.push_back(part.kind);
    refine();

    std::vector<Function> out;
    std::vector<size_t> first, function_of; // a function's first part, a part's function
    std::map<std::pair<size_t, size_t>, size_t> known;
    std::map<size_t, size_t> copies; // of each kind, in this program
    for (size_t i = 0; i < parts_.size(); ++i) {
        if (i > 0 && parts_[i].program != parts_[i - 1].program) copies.clear();
        const auto [at, added] = known.emplace(std::pair(parts_[i].kind, copies[parts_[i].kind]++), out.size());
        function_of.push_back(at->second);
        if (!added) continue;
        first.push_back(i);
        out.push_back(bodies_[body[i]]);
    }

    // Programs keep their names before functions do, and who comes first before others.
    std::vector<bool> named(out.size());
    for (Function &function : out) function.name = plain_symbol(function.name);
    for (const bool programs : {true, false})
        for (size_t i = 0; i < out.size(); ++i)
            if (out[i].section.empty() != programs && !is_helper(out[i].name)) named[i] = taken.insert(out[i].name).second;
    std::map<std::string, int> last;
    for (size_t i = 0; i < out.size(); ++i) {
        if (named[i]) continue;
        int &copy = last.emplace(out[i].name, 1).first->second;
        std::string name;
        do name = format("{}_{}", out[i].name, ++copy);
        while (!taken.insert(name).second);
        out[i].name = std::move(name);
    }
    for (size_t i = 0; i < out.size(); ++i) {
        size_t n = 0;
        for (Ref &ref : out[i].refs)
            if (leads_to_function(ref)) ref.symbol = out[function_of[parts_[first[i]].targets[n++]]].name;
    }
    return out;
}

} // namespace rawbpf::inline v0::object
