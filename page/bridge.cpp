#include "page/bridge.h"

#include <algorithm>
#include <span>
#include <utility>

#include "asm/opcodes.h"
#include "programs/exec/contents.h"
#include "programs/exec/input.h"
#include "programs/exec/instruction_json.h"
#include "programs/exec/knowledge.h"
#include "programs/experiment/lab.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/plan.h"
#include "programs/experiment/run.h"
#include "programs/experiment/surroundings.h"
#include "programs/explain/verified.h"
#include "programs/lab/hints.h"
#include "programs/lab/judge.h"
#include "programs/lab/student.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/emulator/source.h"
#include "runtime/object/core.h"
#include "runtime/object/unit_object.h"

namespace rawbpf::inline v0::page {
namespace {

using render::JsonObject;

constexpr uint64_t kMostSteps = 200'000; // in one go: as many as can be taken back, and no page stands still for long

// {"name":[...]}: each() appends one element; commas are put between.
template <class List, class Each> void append_list(JsonObject &out, std::string_view name, const List &list, Each each) {
    std::string &text = out.raw(name);
    text += '[';
    for (const auto &one : list) {
        if (text.back() != '[') text += ',';
        each(text, one);
    }
    text += ']';
}

template <class Fill> std::string object(Fill fill) {
    std::string out;
    {
        JsonObject json(out); // closed when it is dropped
        fill(json);
    }
    return out;
}
std::string error_json(std::string_view sentence, std::string_view hint = {}) {
    return object([&](JsonObject &json) { json.text("error", sentence).text_or_null("hint", hint); });
}
std::string error_json(const Error &error) { return error_json(error.message(), error.hint); }

void append_complaints(JsonObject &out, std::string_view name, const std::vector<Complaint> &complaints) {
    append_list(out, name, complaints, [](std::string &text, const Complaint &complaint) {
        JsonObject(text)
            .number("line", complaint.at.line)
            .number("column", complaint.at.column)
            .text("message", complaint.at.message)
            .text_or_null("hint", complaint.hint);
    });
}

// An instruction with its bits. `shown`: with the names of helpers, maps and functions, where a run can give them.
void append_program(std::string &text, const ObjectSpec &spec, const ProgramSpec &program) {
    JsonObject out(text);
    out.text("name", program.name).text("section", program.section).truth("packet", exec::takes_packet(program));
    std::string &list = out.raw("instructions");
    list += '[';
    const std::span<const Insn> insns = program.insns;
    for (size_t at = 0; at < insns.size();) {
        const size_t slots = is_wide(insns[at]) && at + 1 < insns.size() ? 2 : 1;
        if (at) list += ',';
        JsonObject one(list);
        one.number("at", at).number("line", emulator::source_of(spec, program, at).line);
        exec::append_instruction(one, insns.subspan(at, slots));
        at += slots;
    }
    list += ']';
}

// Where nothing is: no kernel's types, no compiler, nothing to probe.
experiment::Surroundings nothing_around() {
    experiment::Surroundings out;
    out.match = [](const trace::ProbeSpec &) -> Result<trace::Matched> {
        return fail(Errc::unsupported, "this page has no kernel to find a probe in");
    };
    out.lacks = [](trace::ProbeKind) { return std::string("this page has no kernel"); };
    out.compile_c = [](std::string_view, std::string_view) -> Result<std::string> {
        return fail(Errc::unsupported, "this page has no C compiler");
    };
    return out;
}
std::unique_ptr<experiment::Lab> emulator_only(const experiment::Experiment &e, experiment::Plan &plan,
                                               const experiment::RunSettings &) {
    return experiment::emulated_lab(e, plan);
}

// What a terminal would show, in its order.
struct Collected final : experiment::Sink {
    Result<void> out(std::string_view part) override {
        text += part;
        return {};
    }
    void remark(std::string_view part) override { text += part; }
    std::string text;
};

} // namespace

Bridge::Bridge() = default;
Bridge::~Bridge() = default;

void Bridge::end_run() {
    stepper_.reset();
    machine_.reset();
}

std::string Bridge::assemble(std::string_view text, std::string_view name) {
    end_run();
    ready_ = false;
    labels_.clear();
    std::vector<Complaint> mistakes, warnings;
    std::string source(text);
    if (name.ends_with(".hex")) {
        experiment::Parsed parsed = lab::student_experiment(text, name);
        mistakes = parsed.mistakes.all();
        source = std::move(parsed.experiment.assembly);
    }
    AssembleOptions options;
    options.name = name;
    options.section = exec::known_section;
    if (mistakes.empty()) {
        Assembled assembled = rawbpf::assemble(source, options);
        warnings = std::move(assembled.warnings);
        mistakes = std::move(assembled.complaints);
        if (mistakes.empty()) {
            Result<ObjectSpec> spec = object_of(assembled.unit);
            if (spec) {
                spec_ = std::move(*spec);
                labels_ = std::move(assembled.labels);
                ready_ = true;
            } else {
                Complaint complaint;
                complaint.at.message = spec.error().message();
                complaint.hint = spec.error().hint;
                mistakes.push_back(std::move(complaint));
            }
        }
    }
    return object([&](JsonObject &json) {
        append_complaints(json, "mistakes", mistakes);
        append_complaints(json, "warnings", warnings);
        const std::vector<ProgramSpec> none;
        append_list(json, "programs", ready_ ? spec_.programs : none,
                    [&](std::string &into, const ProgramSpec &program) { append_program(into, spec_, program); });
    });
}

std::string Bridge::verify() const {
    std::vector<size_t> numbers(ready_ ? spec_.programs.size() : 0);
    for (size_t n = 0; n < numbers.size(); ++n) numbers[n] = n;
    const auto verdict = [&](std::string &text, size_t n) {
        const explain::Verified said = explain::verified(spec_, n, exec::options_as_run(false, 0));
        JsonObject one(text);
        explain::append_verdict(one, spec_.programs[n], said);
        const bool refused = said.verdict.outcome == verifier::Outcome::refused;
        one.number("line", said.refusal.at.line).number("column", said.refusal.at.column);
        one.text_or_null("report", refused ? print_refusal(said.refusal) : std::string());
    };
    return object([&](JsonObject &json) { append_list(json, "verdicts", numbers, verdict); });
}

std::string Bridge::enter(size_t program, std::string_view memory, bool packet) {
    end_run();
    if (!ready_) return error_json("there is nothing to run: the text has mistakes");
    if (program >= spec_.programs.size()) return error_json("there is no such program");
    if (needs_core(spec_))
        return error_json("this program asks where the kernel's structs have their members (CO-RE), and a page has no kernel");
    Result<std::vector<std::byte>> bytes = exec::parse_hex(memory, packet ? "the packet" : "the memory");
    if (!bytes) return error_json(bytes.error());
    memory_ = input_ = std::move(*bytes);
    program_ = program;
    packet_ = packet || exec::takes_packet(spec_.programs[program]);
    Result<std::unique_ptr<emulator::Machine>> machine = exec::enter(spec_, program, memory_, packet_);
    if (!machine) return error_json(machine.error());
    machine_ = std::move(*machine);
    return begin();
}

std::string Bridge::begin() {
    stepper_ = std::make_unique<exec::Stepper>(*machine_, spec_, labels_);
    stepper_->set_knowledge(exec::knowledge_of(spec_, program_, exec::options_as_run(packet_, memory_.size())));
    return state();
}

std::string Bridge::again() {
    if (!machine_) return error_json("nothing ran");
    stepper_.reset();
    memory_ = input_;
    if (const Result<void> entered = exec::enter_again(*machine_, spec_, program_, memory_, packet_); !entered)
        return error_json(entered.error());
    return begin();
}

std::string Bridge::move(std::string_view how, uint64_t n) {
    if (!stepper_) return error_json("nothing runs");
    if (how == "forward") {
        (void)stepper_->forward(); // what stops it is in the state
    } else if (how == "back") {
        (void)stepper_->back();
    } else if (how == "run") {
        (void)stepper_->run_on(kMostSteps);
    } else if (how == "home" || how == "step") {
        (void)stepper_->go_to(how == "home" ? 0 : n);
    } else {
        return error_json(format("there is no such move: {}", how));
    }
    return state();
}

std::string Bridge::state() const {
    const exec::Stepper &stepper = *stepper_;
    const emulator::Machine &machine = stepper.machine();
    exec::Knowledge *knowledge = stepper.knowledge();
    const std::string why_not = knowledge && !machine.ended() ? knowledge->why_not() : std::string();
    const size_t pc = machine.pc();
    const std::vector<int> registers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const auto fill = [&](JsonObject &json) {
        json.number("step", machine.executed()).truth("ended", machine.ended()).text_or_null("fault", stepper.fault());
        json.number("program", static_cast<uint64_t>(&machine.program() - spec_.programs.data())).number("pc", pc);
        json.number("line", emulator::source_of(spec_, machine.program(), pc).line);
        json.number("frame", machine.cpu().depth).text("function", emulator::function_of(machine.program(), pc));
        json.text("instruction", exec::instruction_text(stepper, pc)).text("changes", exec::changes_text(stepper));
        json.text("printed", stepper.printed());
        json.text_or_null("verdict", knowledge ? knowledge->verdict() : std::string()).text_or_null("why_not", why_not);
        if (knowledge && (machine.ended() || !why_not.empty())) knowledge = nullptr; // it has nothing to say here
        append_list(json, "registers", registers, [&](std::string &text, int n) {
            JsonObject(text)
                .text("value", exec::value_text(machine, machine.cpu().r[n]))
                .truth("changed", exec::changed_register(stepper, n))
                .text_or_null("known", knowledge ? knowledge->of_register(static_cast<unsigned>(n)) : std::string());
        });
        append_list(json, "stack", exec::stack_slots(stepper, knowledge), [](std::string &text, const exec::StackSlot &slot) {
            JsonObject(text)
                .signed_number("offset", slot.offset)
                .text("bytes", hex_text(slot.bytes, " "))
                .number("changed", slot.changed)
                .text("value", slot.value)
                .text_or_null("known", slot.known);
        });
        append_list(json, "memory", exec::memory_views(stepper), [&](std::string &text, const exec::MemoryView &view) {
            JsonObject one(text);
            one.text("name", view.name).text("bytes", hex_text(std::as_bytes(view.bytes), " "));
            std::vector<size_t> changed;
            for (size_t n = 0; n < view.bytes.size(); ++n)
                if (exec::changed_byte(stepper, view.address + n)) changed.push_back(n);
            append_list(one, "changed", changed, [](std::string &number, size_t n) { append(number, "{}", n); });
        });
        append_list(json, "maps", exec::map_views(stepper), [](std::string &text, const exec::MapView &map) {
            JsonObject one(text);
            one.text("name", map.name).text("summary", map.summary);
            append_list(one, "entries", map.entries, [](std::string &each, const exec::MapEntry &entry) {
                JsonObject(each)
                    .text_or_null("key", entry.key)
                    .text("value", exec::some_bytes(entry.value))
                    .truth("changed", entry.changed);
            });
        });
    };
    return object(fill);
}

std::string Bridge::experiment(std::string_view text, std::string_view name) {
    experiment::Parsed parsed = experiment::parse(text, name);
    if (!parsed) return error_json(parsed.mistakes.report());
    const experiment::Surroundings nowhere = nothing_around();
    Result<experiment::Plan> plan = experiment::make_plan(parsed.experiment, {}, nowhere, parsed.mistakes);
    if (parsed.mistakes.any()) return error_json(parsed.mistakes.report());
    if (!plan) return error_json(plan.error());
    const sys::SignalFd no_signals;
    experiment::RunSettings how;
    how.emulate = true;
    Collected said;
    const Result<experiment::RunOutcome> outcome =
        experiment::run_in(emulator_only, parsed.experiment, std::move(*plan), how, no_signals, said);
    if (!outcome) return error_json(outcome.error());
    return object([&](JsonObject &json) {
        json.text("text", said.text).number("failed", outcome->failed).number("expectations", outcome->expectations);
    });
}

std::string Bridge::check(uint32_t number, std::string_view lesson, std::string_view file, std::string_view text,
                          std::string_view check) {
    const lab::Exercise exercise{number, std::string(lesson), std::string(file), std::string(text), {}};
    if (lab::terms_of(check).kernel) return error_json("this lesson's check runs in a kernel, and a page has none");
    lab::Report report = lab::report_on(exercise);
    if (lab::small_enough(report, text.size()) && lab::worth_checking(exercise, report))
        if (const Result<void> judged = lab::judge(exercise, std::string(check), {nothing_around(), emulator_only}, report);
            !judged)
            return error_json(judged.error());
    return object([&](JsonObject &json) {
        json.truth("passed", report.passed()).number("expectations", report.expectations).number("failed", report.failed);
        append_list(json, "findings", report.findings, [&](std::string &each, const lab::Finding &finding) {
            JsonObject(each)
                .text("kind", finding.kind)
                .text("text", lab::finding_text(report, finding))
                .number("line", finding.line)
                .text_or_null("hint", finding.hint);
        });
    });
}

} // namespace rawbpf::inline v0::page
