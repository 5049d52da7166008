#include "programs/exec/step_json.h"

#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::exec {
namespace {

void append_change(std::string &out, const Stepper &stepper, const StepChange &change, bool known) {
    render::JsonObject object(out);
    if (change.reg < 0) {
        object.hex("address", change.address)
            .text_or_null("place", stepper.machine().memory().name(change.address))
            .text("before", hex_text(change.before))
            .text("after", hex_text(change.after));
        return;
    }
    const auto value = load<uint64_t>(bytes_of(change.after).data());
    object.text("register", format("r{}", change.reg))
        .hex("before", load<uint64_t>(bytes_of(change.before).data()))
        .hex("after", value)
        .text_or_null("points_to", pointee_name(stepper.machine(), value));
    if (known)
        object.text_or_null("known",
                            stepper.knowledge() ? stepper.knowledge()->of_register(static_cast<unsigned>(change.reg)) : "");
}

} // namespace

NextStep next_step(const Stepper &stepper) {
    const emulator::Machine &machine = stepper.machine();
    return {machine.pc(), machine.cpu().depth, instruction_text(stepper, machine.pc()),
            emulator::source_of(stepper.spec(), machine.program(), machine.pc())};
}

void append_step_json(std::string &out, const Stepper &stepper, const NextStep &step, bool known) {
    render::JsonLine line(out, "step");
    line.number("step", stepper.machine().executed())
        .number("insn", step.insn)
        .number("depth", step.depth)
        .text("text", step.text);
    line.text_or_null("file", step.source.file);
    if (step.source.line != 0)
        line.number("line", step.source.line);
    else
        line.null("line");
    line.text_or_null("source", step.source.text);
    std::string &changes = line.raw("changes") += '[';
    for (const StepChange &change : stepper.changes()) {
        if (changes.back() != '[') changes += ',';
        append_change(changes, stepper, change, known);
    }
    changes += ']';
    line.text_or_null("printed", stepper.printed());
}

void append_end_json(std::string &out, const Stepper &stepper, uint64_t steps, bool known) {
    const emulator::Machine &machine = stepper.machine();
    render::JsonLine line(out, "end");
    if (machine.ended())
        line.hex("r0", machine.cpu().r[0]);
    else
        line.null("r0");
    line.number("steps", steps).truth("ended", machine.ended()).text_or_null("fault", stepper.fault());
    if (known) line.text_or_null("verdict", stepper.knowledge() ? stepper.knowledge()->verdict() : "");
}

} // namespace rawbpf::inline v0::exec
