// Advice on the control flow of a program: loops, ends, registers that were never set, what it returns. Also the table of all
// functions that give advice.
#include <algorithm>
#include <linux/bpf.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "asm/program_types.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::refusal {
namespace {

bool leaves(const Insn &insn) {
    return insn.code == (BPF_JMP | BPF_EXIT) || insn.code == (BPF_JMP | BPF_JA) || insn.code == (BPF_JMP32 | BPF_JA);
}

bool says_loop(const ProgramPlace &place) {
    for (std::string_view word : {"for (", "for(", "while (", "while(", "do {", "do{"})
        if (place.source.find(word) != std::string::npos) return true;
    return false;
}

// The call that the path is inside of at its end; nothing: it is in the program's own function.
std::optional<size_t> entered_by(const Case &c) {
    size_t returns = 0;
    for (size_t i = c.path.size() - 1; i-- > 0;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (!insn) return {};
        if (insn->code == (BPF_JMP | BPF_EXIT)) ++returns;
        if (insn->code != (BPF_JMP | BPF_CALL) || insn->src != BPF_PSEUDO_CALL || c.path[i + 1].insn == c.path[i].insn + 1)
            continue;
        if (returns == 0) return i;
        --returns;
    }
    return {};
}

// In a function that was called: arguments are what the call set, r6 to r9 begin unset.
bool never_set_in_function(Case &c, int reg, const Origin &from) {
    const std::optional<size_t> call = entered_by(c);
    if (!call || reg < 1 || reg > 9) return false;
    const std::string name(c.places.function(c.path.back().insn));
    if (reg >= BPF_REG_6) {
        if (from.kind != Origin::Kind::unknown) return false;
        c.note_at(c.path[*call].insn, format("{}() is called here: every function begins with r6 to r9 unset, and the caller "
                                             "gets its own back when the function returns",
                                             name));
        c.refusal.hint = format("pass it as an argument (r1 to r5), or set r{} in {}()", reg, name);
    } else {
        const bool before = from.kind == Origin::Kind::entry || (from.kind == Origin::Kind::cleared && from.step < *call);
        if (!before) return false; // a call in the function itself
        c.note_at(c.path[*call].insn, format("this call of {}() passes no argument {}: r{} isn't set before it", name, reg, reg));
        c.refusal.hint = format("set r{} before the call, or don't read it in {}()", reg, name);
    }
    c.refusal.registers.clear();
    return true;
}

// From the first to the last instruction of the loop's last round, but for what functions do that are called from there; and
// their lines, with that which says that there is a loop.
std::string loop_text(const Case &c, const PathLoop &loop, const ProgramPlace &head) {
    const std::string_view function = c.places.function(loop.head);
    uint32_t first = std::min(loop.head, loop.back), last = std::max(loop.head, loop.back);
    uint32_t first_line = head.line, last_line = head.line;
    for (size_t i = loop.begin; i < loop.end; ++i) {
        const uint32_t insn = c.path[i].insn;
        if (c.places.function(insn) != function) continue;
        first = std::min(first, insn);
        last = std::max(last, insn);
        const ProgramPlace place = c.places.at(insn);
        if (place.line == 0 || place.file != head.file) continue;
        first_line = std::min(first_line, place.line);
        last_line = std::max(last_line, place.line);
    }
    const auto range = [](uint32_t from, uint32_t to) {
        return from == to ? std::to_string(from) : format("{} to {}", from, to);
    };
    std::string out = format("the loop of instruction{} {}", first == last ? "" : "s", range(first, last));
    if (!function.empty() && function != c.refusal.program) append(out, " in function {}", function);
    if (head.line != 0) append(out, " ({}:{})", head.file, range(first_line, last_line));
    return out;
}

// A call in that function of itself.
std::optional<uint32_t> calls_itself(const Case &c, uint32_t insn) {
    uint32_t start = 0, end = static_cast<uint32_t>(c.program.insns.size());
    for (const ProgramSpec::Subprogram &sub : c.program.subprograms)
        if (sub.insn <= insn)
            start = std::max(start, sub.insn);
        else
            end = std::min(end, sub.insn);
    for (uint32_t i = start; i < end; i += is_wide(c.program.insns[i]) ? 2 : 1) {
        const Insn &call = c.program.insns[i];
        if (call.code == (BPF_JMP | BPF_CALL) && call.src == BPF_PSEUDO_CALL && int64_t(i) + 1 + call.imm == int64_t(start))
            return i;
    }
    return {};
}

// How deep a function's stack goes by its own instructions: accesses through r10, and addresses made of it by one addition.
uint32_t stack_of(const ProgramSpec &program, uint32_t begin, uint32_t end) {
    int64_t lowest = 0;
    bool copy[11] = {}; // registers that hold r10
    for (uint32_t i = begin; i < end && i < program.insns.size(); ++i) {
        const Insn &insn = program.insns[i];
        if (insn.dst > 10 || insn.src > 10) continue;
        if (base_of(insn) == 10) lowest = std::min<int64_t>(lowest, insn.off);
        if (insn.code == (BPF_ALU64 | BPF_ADD | BPF_K) && copy[insn.dst]) lowest = std::min<int64_t>(lowest, insn.imm);
        if ((insn.code & 7) == BPF_ALU64 || (insn.code & 7) == BPF_LDX)
            copy[insn.dst] = insn.code == (BPF_ALU64 | BPF_MOV | BPF_X) && insn.src == 10 && insn.off == 0;
    }
    return static_cast<uint32_t>(std::clamp<int64_t>(-lowest, 1, 512));
}

// A chain of calls whose stacks add up to what the kernel says.
struct StackChain {
    const ProgramSpec &program;
    uint32_t round; ///< each is rounded up to a multiple of that
    int64_t total;
    int64_t frames;
    struct Link {
        uint32_t begin, call, bytes; ///< the function, the instruction that calls the next one, its own bytes
    };
    std::vector<Link> links;
    uint32_t looked_at = 0;

    [[nodiscard]] uint32_t end_of(uint32_t begin) const {
        auto end = static_cast<uint32_t>(program.insns.size());
        for (const ProgramSpec::Subprogram &sub : program.subprograms)
            if (sub.insn > begin) end = std::min(end, sub.insn);
        return end;
    }
    bool find(uint32_t begin, int64_t sum) {
        if (static_cast<int64_t>(links.size()) >= frames || ++looked_at > 10'000) return false;
        const uint32_t end = end_of(begin), bytes = (stack_of(program, begin, end) + round - 1) / round * round;
        links.push_back({begin, 0, bytes});
        sum += bytes;
        if (static_cast<int64_t>(links.size()) == frames && sum == total) return true;
        for (uint32_t i = begin; i < end; ++i) {
            const Insn &insn = program.insns[i];
            if (insn.code != (BPF_JMP | BPF_CALL) || insn.src != BPF_PSEUDO_CALL) continue;
            const int64_t to = int64_t{i} + 1 + insn.imm;
            if (to < 0 || to >= static_cast<int64_t>(program.insns.size())) continue;
            links.back().call = i;
            if (find(static_cast<uint32_t>(to), sum)) return true;
        }
        links.pop_back();
        return false;
    }
};

} // namespace

// "combined stack size of 2 calls is 704": which functions these are.
bool stack_sum(Case &c) {
    const std::optional<int64_t> frames = number_after(c.refusal.reason, "size of "),
                                 total = number_after(c.refusal.reason, " is ");
    if (!frames || !total || *frames < 1 || *frames > 64) return false;
    for (const uint32_t round : {16u, 32u}) { // 32 where the kernel interprets
        StackChain chain{c.program, round, *total, *frames, {}};
        if (!chain.find(0, 0)) continue;
        for (size_t n = 0; n < chain.links.size(); ++n) {
            const StackChain::Link &link = chain.links[n];
            std::string text = format("{}() uses {} of the {} bytes", c.places.function(link.begin), link.bytes, *total);
            if (n + 1 < chain.links.size()) {
                append(text, ", and calls {}() here", c.places.function(chain.links[n + 1].begin));
                c.note_at(link.call, std::move(text));
            } else {
                c.note(std::move(text));
            }
        }
        return true;
    }
    return false;
}

bool never_set(Case &c) {
    const int reg = register_named(c.refusal.reason);
    if (reg < 0 || !c.ends_here()) return false;
    const Origin from = c.origin(reg);
    if (never_set_in_function(c, reg, from)) return true;
    if (from.kind == Origin::Kind::cleared) {
        const uint32_t call = c.path[from.step].insn;
        const std::string name = c.called(call);
        c.note_at(call, format("this call{} cleared r1 to r5", name.empty() ? "" : format(" of {}()", name)));
        c.refusal.hint = format("keep what is needed after a call in r6 to r9, or on the stack: `r6 = r{}` before the call", reg);
        c.refusal.registers.clear();
        return true;
    }
    const Insn *insn = c.insn();
    if (reg == 0 && insn && insn->code == (BPF_JMP | BPF_EXIT)) {
        c.note("nothing on the path to this exit sets r0, which is what the program returns");
        return true;
    }
    if (from.kind != Origin::Kind::entry) return false;
    c.note(format(
        "nothing on the path to here sets r{}; when a program starts, only r1 (the context) and r10 (the stack) are set", reg));
    c.refusal.hint = "give it a value on every path that leads here";
    return true;
}

bool endless(Case &c) {
    const bool certain = c.refusal.reason.find("infinite loop") != std::string::npos;
    const PathLoop loop = busiest_loop(c.path, certain ? 1 : 16);
    if (loop.rounds == 0) return false; // many branches, but no loop
    c.refusal.kind = "loop";
    if (const std::optional<uint32_t> again = calls_itself(c, loop.head)) {
        const std::string name(c.places.function(*again));
        c.refusal.at = c.places.at(*again, "call");
        c.refusal.function = name;
        c.refusal.registers.clear();
        c.note(format("{}() calls itself here: the verifier follows every call anew", name));
        c.refusal.hint = "write it as a loop with a constant bound, without recursion: `for (int i = 0; i < 100 && more; i++)`";
        return true;
    }
    const std::string instruction(c.path[loop.begin].text);
    ProgramPlace head = c.places.at(loop.head, instruction);
    bool named = says_loop(head);
    for (size_t i = loop.begin; i < loop.end; ++i) { // the line that says so, else the first of them
        const ProgramPlace place = c.places.at(c.path[i].insn, c.path[i].text);
        if (place.line == 0 || place.file != head.file || c.places.function(c.path[i].insn) != c.places.function(loop.head))
            continue;
        const bool better = says_loop(place) && !named;
        if (better || (says_loop(place) == named && place.line < head.line)) head = place;
        named = named || says_loop(place);
    }
    const bool moved = c.refusal.at.insn < 0 || certain;
    if (moved) c.refusal.at = head;
    c.refusal.function = c.places.function(loop.head);
    c.refusal.registers.clear();
    c.refusal.loop = loop_text(c, loop, head);
    c.note_at(loop.back, certain ? "the loop jumps back from here, and nothing that the verifier tracks changed in one iteration"
                                 : format("the loop jumps back from here; the verifier followed it {}{} times and saw no end",
                                          c.context.log_is_cut ? "at least " : "", loop.rounds));
    c.refusal.hint = "give the loop an end that the verifier can see, a constant: `for (int i = 0; i < 100 && more; i++)`; or "
                     "use bpf_loop() (5.17) or "
                     "bpf_for() (6.4)";
    return true;
}

bool unreachable(Case &c) {
    const Insn *before = c.insn_at(c.refusal.at.insn - 1);
    if (!before || !leaves(*before)) return false;
    const bool exit = before->code == (BPF_JMP | BPF_EXIT);
    const bool back = !exit && (before->code == (BPF_JMP | BPF_JA) ? before->off : before->imm) < 0;
    const auto at = static_cast<uint32_t>(c.refusal.at.insn - 1);
    c.refusal.notes.push_back(
        {format("the instruction before it {}, and nothing jumps to here", exit   ? "ends the program"
                                                                           : back ? "always jumps back: a loop without an end"
                                                                                  : "always jumps away"),
         c.places.at(at, exit ? "exit" : "goto")});
    c.refusal.hint = back ? "give the loop an exit condition, or remove the code after it"
                          : "remove the code that can never run, or add a jump to it (is a label missing?)";
    return true;
}

bool no_end(Case &c) {
    std::vector<uint32_t> ends;
    for (const ProgramSpec::Subprogram &sub : c.program.subprograms)
        if (sub.insn > 0) ends.push_back(sub.insn - 1);
    if (!c.program.insns.empty()) ends.push_back(static_cast<uint32_t>(c.program.insns.size() - 1));
    std::sort(ends.begin(), ends.end());
    for (const uint32_t end : ends) {
        if (leaves(c.program.insns[end])) continue;
        c.refusal.at = c.places.at(end);
        c.refusal.function = c.places.function(end);
        c.note("this is the last instruction, and it goes on to the next one, which doesn't exist");
        c.refusal.hint = "end it with exit (r0 set before), or with a jump back";
        return true;
    }
    return false;
}

bool returned(Case &c) {
    const std::string_view reason = c.refusal.reason;
    if (c.ends_here()) {
        const Origin from = c.origin(BPF_REG_0);
        if (from.kind != Origin::Kind::unknown && from.kind != Origin::Kind::entry)
            c.note_at(c.path[from.step].insn, "the value that is returned comes from here");
    }
    const size_t should = reason.find("should have been in ");
    if (should == std::string_view::npos) return false;
    const std::string_view range = reason.substr(should + sizeof "should have been in " - 1);
    const std::string_view meaning = program_type_words(c.program.type).returns;
    c.refusal.hint = format("return a constant of {}{}{}", range.substr(0, range.find_first_of("])") + 1),
                            meaning.empty() ? "" : ": ", meaning);
    return true;
}

std::span<const Adviser> advisers() {
    static constexpr Adviser kAdvisers[] = {
        {"invalid mem access", lost},
        {"xpected", lost}, // "type=scalar expected=ringbuf_mem", "arg#0 expected pointer to", "Expected an initialized dynptr"
        {"xpects refcounted", lost},
        {"arg#", lost},
        {"!read_ok", lost}, // without CAP_PERFMON
        {"expected=", argument_kind},
        {"_or_null'", may_be_null},
        {"Possibly NULL pointer", may_be_null},
        {"invalid mem access 'scalar'", number_as_pointer},
        {"invalid mem access 'inv'", number_as_pointer},
        {"invalid access to packet", packet},
        {"offset is outside of the packet", packet},
        {"cannot pass map_type", map_type},
        {"expected prog array map", tail_call_map},
        {"stores into R", atomic_place},
        {"-ed region", held},
        {"holding", held},
        {"unlock is missing", held},
        {"Locking two", held},
        {"doesn't match map pointer", other_map},
        {"is not a known constant", must_be_constant},
        {"must be a known constant", must_be_constant},
        {"", argument_of_call}, // adds the prototype to all that follow
        {"min value is negative", maybe_negative},
        {"invalid access to map value", map_value},
        {"invalid access to map key", map_value},
        {"invalid access to memory", map_value},
        {"invalid variable-offset", stack_variable},
        {"from stack", stack_fixed},
        {"to stack", stack_fixed},
        {"invalid stack off", stack_fixed},
        {"misaligned", misaligned},
        {"Unreleased reference", leak},
        {"sleep", may_sleep},
        {"GPL", license},
        {"use helper", helper_refused},
        {"program of this type", helper_refused},
        {"unknown func", helper_refused},
        {"!read_ok", never_set},
        {"never been initialized", never_set},
        {"infinite loop", endless},
        {"BPF program is too large", endless},
        {"The sequence of", endless},
        {"too many instructions", endless},
        {"unreachable insn", unreachable},
        {"last insn is not an exit", no_end},
        {"combined stack size", stack_sum},
        {"should have been in", returned},
        {"invalid bpf_context access", context_access},
        {"pointer arithmetic", pointer_arithmetic},
        {"prohibited", pointer_arithmetic},
    };
    return kAdvisers;
}

} // namespace rawbpf::inline v0::refusal
