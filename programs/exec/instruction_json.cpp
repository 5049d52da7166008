#include "programs/exec/instruction_json.h"

#include <optional>
#include <string>

#include "asm/bits.h"
#include "asm/opcodes.h"
#include "asm/print.h"

namespace rawbpf::inline v0::exec {

void append_instruction(render::JsonObject &out, std::span<const Insn> slots) {
    const std::optional<std::string> wrong = undefined_reason(slots[0]);
    out.text_or_null("text", wrong ? "" : print(slots));
    out.text_or_null("name", wrong ? "" : find_form(slots[0])->name);
    out.text_or_null("undefined", wrong.value_or(""));
    out.text("bytes", hex_of(slots));
    std::string &fields = out.raw("fields");
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

} // namespace rawbpf::inline v0::exec
