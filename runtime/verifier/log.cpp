// The path to a verdict, in the form of the kernel's log:
//
//      0: R1=ctx() R10=fp0
//      ; *(u32 *)(r10 - 4) = 0 @ count.asm:5
//      0: (62) *(u32 *)(r10 -4) = 0          ; fp-8=0
//      ...
//      R0 invalid mem access 'map_value_or_null'
//      processed 7 insns (limit 1000000)
//
// The kernel's log has all paths, in the order in which the verifier walked them; this log has only the path to the verdict.
#include "asm/print.h"
#include "runtime/base/format.h"
#include "runtime/verifier/print.h"

namespace rawbpf::inline v0::verifier {

std::string log_text(const ObjectSpec &spec, const ProgramSpec &program, const Verdict &verdict) {
    std::string out;
    if (verdict.step) {
        out += "0: R1=ctx() R10=fp0\n";
        for (uint32_t number : verdict.walk.path_to(verdict.step)) {
            const Step &step = verdict.walk.steps[number];
            std::string text;
            append_insn(text, std::span(program.insns).subspan(step.insn), {.dialect = Dialect::kernel});
            // Every line of the kernel's log has the opcode; the text of what is no instruction has none.
            append(out, "{}: {}{}", step.insn, text.starts_with('(') ? "" : format("({:02x}) ", program.insns[step.insn].code),
                   text);
            std::string after;
            for (uint32_t i = 0; i < step.change_count; ++i) {
                const Change *change = verdict.walk.change(step.changes + i);
                if (!change || change->value.sort == Sort::unset) continue;
                const std::string value = value_text(change->value, spec);
                if (change->place >= 0)
                    append(after, " R{}={}", change->place, value);
                else
                    append(after, " fp{}={}", change->place, value);
            }
            if (!after.empty()) out += " ;" + after;
            out += "\n";
        }
    }
    std::string_view rest = verdict.reason;
    while (!rest.empty()) {
        const size_t end = rest.find("; ");
        out += std::string(rest.substr(0, end)) + "\n";
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
    }
    append(out, "processed {} insns (limit 1000000)\n", verdict.processed);
    return out;
}

} // namespace rawbpf::inline v0::verifier
