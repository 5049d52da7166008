// A refused program in one sentence: the core's place of kernel/program_error.cpp and all that explains the verifier's log, which
// is half as large as the whole core. The log's end goes to the caller as it is.
//
//      program count (cgroup_skb/egress): the verifier refused it: R1 invalid mem access 'scalar'
//
// A field or a function that this kernel lacks is named here, too: the verifier only says that an impossible helper is called.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "runtime/base/fail.h"
#include "runtime/kernel/near_names.h"
#include "runtime/kernel/program_error.h"
#include "runtime/object/sections.h"

namespace rawbpf::inline v0 {
namespace {

std::string_view trimmed(std::string_view line) {
    const size_t begin = line.find_first_not_of(" \t");
    return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

// What stands in front of ": (" in "12: (85) call bpf_get_current_pid_tgid#14"; -1: no instruction's line.
int instruction_of(std::string_view line) {
    int number = -1;
    const auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), number);
    const size_t digits = static_cast<size_t>(end - line.data());
    return wrong == std::errc() && line.substr(digits).starts_with(": (") ? number : -1;
}

// Sums, states and sources: what the verifier says beside its reason.
bool beside_the_reason(std::string_view line) {
    for (std::string_view begin :
         {"processed ", "verification time ", "stack depth ", "mark_precise", "last_idx ", "regs=", "from ", ";", "parent "})
        if (line.starts_with(begin)) return true;
    return line.empty() || instruction_of(line) >= 0 || line.find(": R") < 8;
}

struct Last {
    std::string_view reason;
    int insn = -1;
};

// The last line with a reason, and the last instruction.
Last last_words(std::string_view log) {
    Last out;
    while (!log.empty()) {
        const size_t end = std::min(log.find('\n'), log.size());
        const std::string_view line = trimmed(log.substr(0, end));
        log.remove_prefix(std::min(end + 1, log.size()));
        if (const int insn = instruction_of(line); insn >= 0) out.insn = insn;
        if (!beside_the_reason(line)) out.reason = line;
    }
    return out;
}

} // namespace

bool complains_of_btf(std::string_view log) {
    if (last_words(log).insn >= 0) return false;
    for (std::string_view word : {"func_info", "line_info", "btf", "BTF"})
        if (log.find(word) != std::string_view::npos) return true;
    return false;
}

Error explain_refusal(const ObjectSpec &, const ProgramSpec &program, const btf::Btf *, Error refusal, std::string log) {
    const Last last = last_words(log);
    if (last.reason.empty()) return explain_unverified(program, std::move(refusal), std::move(log));
    Error error = make_error(Errc::rejected, format("{}: the verifier refused it: {}", name_of(program), last.reason),
                             "the verifier's log says more; rawbpf load explains it, where it has the part refusals");
    for (const ProgramSpec::Poison &poison : program.poisoned)
        if (static_cast<int>(poison.insn) == last.insn) {
            error.context = format("{} needs something that this kernel doesn't have: instruction {}: {}", name_of(program),
                                   poison.insn, poison.why);
            error.hint = "if it should also run on such kernels, it has to ask first: bpf_core_field_exists(), "
                         "bpf_core_enum_value_exists(), bpf_ksym_exists()";
        }
    if (last.insn < 0) name_missing_attach_type(program, refusal, error);
    error.os = refusal.os;
    if (refusal.os == EPERM) { // the verifier had a word, but it is the privileges that are short
        error.kind = Errc::permission;
        error.hint = explain_unverified(program, std::move(refusal), {}).hint;
    }
    error.log = std::move(log);
    return error;
}

Error explain_missing(const ObjectSpec &, const ProgramSpec &program, uint32_t insn, std::string_view, Error error) {
    return in_context(std::move(error), format("{}: instruction {}", name_of(program), insn));
}

std::string explain_unknown_section(std::string_view section) {
    return format("section name \"{}\" doesn't say which type of program it holds", section.substr(0, 64));
}

// No near names.
std::string near_kernel_function(const btf::Btf &, std::string_view) { return {}; }
std::string near_target(const btf::Btf &, btf::Kind, std::string_view, std::string_view) { return {}; }

} // namespace rawbpf::inline v0
