#include "programs/inspect/instructions_json.h"

#include <span>

#include "programs/render/json_line.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::inspect {
namespace {

void append_function(std::string &out, const Function &function, PrintStyle style) {
    render::JsonLine(out, "function").text("name", function.name).text_or_null("section", function.section);
    const SourceLine *line = nullptr;
    size_t next_line = 0;
    for (const ListedInsn &listed : list(function, style)) {
        for (; next_line < function.lines.size() && function.lines[next_line].insn <= listed.insn; ++next_line)
            line = &function.lines[next_line];
        const auto slots = std::span(function.insns).subspan(listed.insn, listed.slots);
        render::JsonLine object(out, "instruction");
        object.text("function", function.name)
            .number("index", listed.insn)
            .text("bytes", hex_text(std::as_bytes(slots)))
            .text("text", listed.text)
            .text_or_null("label", listed.label)
            .text_or_null("comment", listed.comment)
            .text_or_null("file", line ? line->file : "");
        if (line)
            object.number("line", line->line);
        else
            object.null("line");
        object.text_or_null("source", line ? line->text : "");
    }
}

} // namespace

std::string instructions_json(const Unit &unit, PrintStyle style) {
    std::string out;
    for (const Function &function : unit.functions) append_function(out, function, style);
    return out;
}

std::string machine_json(const std::vector<MachineFunction> &functions) {
    std::string out;
    for (const MachineFunction &function : functions) {
        render::JsonLine object(out, "machine_function");
        object.text("name", function.name);
        if (function.address == 0)
            object.null("address");
        else
            object.hex("address", function.address);
        object.text("code", hex_text(function.code));
        std::string &array = object.raw("lines") += '[';
        for (const MachineFunction::Line &line : function.lines) {
            if (array.back() != '[') array += ',';
            render::JsonObject(array)
                .number("offset", line.offset)
                .text("file", line.file)
                .number("line", line.line)
                .text_or_null("source", line.text);
        }
        array += ']';
    }
    return out;
}

} // namespace rawbpf::inline v0::inspect
