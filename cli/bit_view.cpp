// Instructions as pictures of their bits (asm/bits.h), or as JSON lines with the same fields:
//
//     {"type":"instruction","text":"r1 += 5","name":"add","bytes":"07 01 00 00 05 00 00 00","fields":[{"name":"class","value":7,...},...]}
//
// A wide instruction is one picture and one line, of two slots.
#include "cli/bit_view.h"

#include "asm/bits.h"
#include "asm/opcodes.h"
#include "asm/print.h"
#include "cli/object_file.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

void append_line(std::string &out, std::span<const Insn> slots) {
    const std::optional<std::string> wrong = undefined_reason(slots[0]);
    render::JsonLine line(out, "instruction");
    line.text_or_null("text", wrong ? "" : print(slots));
    line.text_or_null("name", wrong ? "" : find_form(slots[0])->name);
    line.text_or_null("undefined", wrong.value_or(""));
    line.text("bytes", hex_of(slots));
    std::string &fields = line.raw("fields");
    fields += '[';
    for (size_t slot = 0; slot < slots.size(); ++slot)
        for (const BitField &field : bit_fields(slots[slot], slot == 1)) {
            if (fields.back() != '[') fields += ',';
            render::JsonObject one(fields);
            one.text("name", field.name)
                .number("byte", slot * sizeof(Insn) + field.byte)
                .number("low_bit", field.low)
                .number("bits", field.bits);
            one.number("value", field.value).text("meaning", field.meaning);
        }
    fields += ']';
}

} // namespace

Result<std::string> show_bits(std::span<const Insn> insns, const Arguments &a, bool json, bool &undefined) {
    std::string out;
    undefined = false;
    if (json) append_json_header(out, a);
    for (size_t at = 0; at < insns.size();) {
        const size_t slots = is_wide(insns[at]) ? 2 : 1;
        if (at + slots > insns.size())
            return fail(Errc::bad_input, "instruction {} is wide and takes 16 bytes, and the last 8 are missing", at);
        undefined = undefined || undefined_reason(insns[at]);
        if (json)
            append_line(out, insns.subspan(at, slots));
        else
            out += (at ? "\n" : "") + bit_picture(insns.subspan(at, slots));
        at += slots;
    }
    return out;
}

} // namespace rawbpf::inline v0::cli
