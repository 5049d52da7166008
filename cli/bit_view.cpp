// Instructions as pictures of their bits (asm/bits.h), or as JSON lines with the same fields:
//
//     {"type":"instruction","text":"r1 += 5","name":"add","bytes":"07 01 00 00 05 00 00 00","fields":[{"name":"class","value":7,...},...]}
//
// A wide instruction is one picture and one line, of two slots.
#include "cli/bit_view.h"

#include "asm/bits.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/exec/instruction_json.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

Result<std::string> show_bits(std::span<const Insn> insns, const Arguments &a, bool json, bool &undefined) {
    std::string out;
    undefined = false;
    if (json) append_json_header(out, a);
    for (size_t at = 0; at < insns.size();) {
        const size_t slots = is_wide(insns[at]) ? 2 : 1;
        if (at + slots > insns.size())
            return fail(Errc::bad_input, "instruction {} is wide and takes 16 bytes, and the last 8 are missing", at);
        undefined = undefined || undefined_reason(insns[at]);
        if (json) {
            render::JsonLine line(out, "instruction");
            exec::append_instruction(line, insns.subspan(at, slots));
        } else
            out += (at ? "\n" : "") + bit_picture(insns.subspan(at, slots));
        at += slots;
    }
    return out;
}

} // namespace

int print_bits(std::string_view who, std::span<const Insn> insns, const Arguments &a, bool &undefined) {
    const bool json = a.text(find(kBitsOptions, "format")) == "json";
    const Result<std::string> shown = show_bits(insns, a, json, undefined);
    if (!shown) return complain(who, shown.error(), 1);
    return write_result(who, a.text(find(kBitsOptions, "output")), *shown);
}

} // namespace rawbpf::inline v0::cli
