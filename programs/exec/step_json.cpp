#include "programs/exec/step_json.h"

#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::exec {
namespace {

void append_change(std::string &out, const Walk &walk, const StepChange &change, bool known) {
    render::JsonObject object(out);
    if (change.reg < 0) {
        object.hex("address", change.address)
            .text_or_null("place", walk.machine().memory().name(change.address))
            .text("before", hex_text(change.before))
            .text("after", hex_text(change.after));
        return;
    }
    const auto value = load<uint64_t>(bytes_of(change.after).data());
    object.text("register", format("r{}", change.reg))
        .hex("before", load<uint64_t>(bytes_of(change.before).data()))
        .hex("after", value)
        .text_or_null("points_to", pointee_name(walk.machine(), value));
    if (known)
        object.text_or_null("known", walk.knowledge() ? walk.knowledge()->of_register(static_cast<unsigned>(change.reg)) : "");
}

} // namespace

NextStep next_step(const Walk &walk) {
    const emulator::Machine &machine = walk.machine();
    return {machine.pc(), machine.cpu().depth, instruction_text(walk, machine.pc()),
            emulator::source_of(walk.spec(), machine.program(), machine.pc())};
}

void append_step_json(std::string &out, const Walk &walk, const NextStep &step, bool known) {
    render::JsonLine line(out, "step");
    line.number("step", walk.machine().executed()).number("insn", step.insn).number("depth", step.depth).text("text", step.text);
    line.text_or_null("file", step.source.file);
    if (step.source.line != 0)
        line.number("line", step.source.line);
    else
        line.null("line");
    line.text_or_null("source", step.source.text);
    std::string &changes = line.raw("changes") += '[';
    for (const StepChange &change : walk.changes()) {
        if (changes.back() != '[') changes += ',';
        append_change(changes, walk, change, known);
    }
    changes += ']';
    line.text_or_null("printed", walk.printed());
}

void append_end_json(std::string &out, const Walk &walk, uint64_t steps, bool known) {
    const emulator::Machine &machine = walk.machine();
    render::JsonLine line(out, "end");
    if (machine.ended())
        line.hex("r0", machine.cpu().r[0]);
    else
        line.null("r0");
    line.number("steps", steps).truth("ended", machine.ended()).text_or_null("fault", walk.fault());
    if (known) line.text_or_null("verdict", walk.knowledge() ? walk.knowledge()->verdict() : "");
}

} // namespace rawbpf::inline v0::exec
