// The student's programs and the check's steps become one experiment. Messages about the student's file name its own lines.
// Messages don't show the steps of the check, because its inputs are hidden.
#include "programs/lab/judge.h"

#include <algorithm>
#include <cerrno>

#include "asm/print.h"
#include "programs/experiment/plan.h"
#include "programs/lab/hints.h"
#include "programs/lab/lesson.h"
#include "programs/lab/student.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/program_error.h"
#include "runtime/object/core.h"
#include "runtime/verifier/print.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::lab {
namespace {

struct Quiet final : experiment::Sink {
    Result<void> out(std::string_view) override { return {}; }
    void remark(std::string_view) override {}
};

// Of the first mistake, or of a refusal, where the text says "lab.asm:14:5: ...".
uint32_t line_named(std::string_view text, std::string_view file) {
    const std::string before = format("{}:", file);
    const size_t at = text.find(before);
    if (at == std::string_view::npos) return 0;
    uint32_t line = 0;
    for (size_t i = at + before.size(); i < text.size() && text[i] >= '0' && text[i] <= '9' && line < 10'000'000; ++i)
        line = line * 10 + static_cast<uint32_t>(text[i] - '0');
    return line;
}

bool has_instruction(const experiment::Plan &plan, const std::vector<std::string> &texts) {
    for (const ObjectSpec &spec : plan.specs)
        for (const ProgramSpec &program : spec.programs)
            for (std::span<const Insn> rest = program.insns; !rest.empty();
                 rest = rest.subspan(is_wide(rest[0]) && rest.size() > 1 ? 2 : 1)) {
                const std::string text = print(rest);
                for (const std::string &wanted : texts)
                    if (text.find(wanted) != std::string::npos) return true;
            }
    return false;
}

class Judge {
  public:
    Judge(const Exercise &exercise, const std::string &check, const Means &means, Report &report)
        : exercise_(exercise), check_(check), means_(means), report_(report) {}

    Result<void> by_steps() {
        if (!is_program(exercise_.file))
            return fail(Errc::bad_input, "{}: check.exp can't be carried out on {}: it takes lab.asm, lab.hex, lab.exp and lab.c",
                        exercise_.lesson, exercise_.file);
        const Terms terms = terms_of(check_);
        experiment::Parsed student = student_experiment(exercise_.text, exercise_.file);
        if (mistaken(student.mistakes)) return {};
        experiment::Plan plan =
            TRY(experiment::make_plan(student.experiment, exercise_.folder, means_.surroundings, student.mistakes));
        if (mistaken(student.mistakes)) return {};
        if (std::all_of(plan.specs.begin(), plan.specs.end(), [](const ObjectSpec &spec) { return spec.programs.empty(); })) {
            add("file", format("there is no program in {}", exercise_.file),
                "the lesson's text says what it has to do; the gap is marked with TODO");
            return {};
        }
        if (terms.verified && !TRY(verified(plan, terms))) return {};
        if (!terms.refused.empty()) return {};

        experiment::Parsed check = experiment::parse(check_, "check.exp");
        if (!check) return fail(Errc::bad_input, "{}: the check has mistakes:\n{}", exercise_.lesson, check.mistakes.report());
        student.experiment.steps = std::move(check.experiment.steps);
        plan = TRY(experiment::make_plan(student.experiment, exercise_.folder, means_.surroundings, student.mistakes));
        if (student.mistakes.any()) {
            const Complaint &first = student.mistakes.all().front();
            add("names", format("{}: {}, and the check needs it", exercise_.file, first.at.message),
                "programs, maps and variables keep the names that the exercise gives them");
            return {};
        }
        return carried_out(student.experiment, std::move(plan), terms);
    }

  private:
    void add(std::string_view kind, std::string sentence, std::string hint = {}) {
        add_finding(report_, kind, std::move(sentence), std::move(hint));
    }

    // True: there are mistakes, which are told.
    bool mistaken(const experiment::Mistakes &mistakes) {
        if (!mistakes.any()) return false;
        add("assembly", mistakes.report());
        return true;
    }

    // False: refused, which is told. What the model doesn't decide is no finding.
    Result<bool> verified(const experiment::Plan &plan, const Terms &terms) {
        bool refused = false, as_wanted = false;
        for (const ObjectSpec &spec : plan.specs) {
            ObjectSpec relocated = spec;
            verifier::VerifyOptions how;
            Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf(); // for names of kernel functions, too
            if (kernel) how.kernel_types = kernel->get();
            if (needs_core(spec)) {
                if (!kernel) return std::move(kernel).failure();
                TRY(relocate_core(relocated, std::span(&how.kernel_types, 1)));
            }
            for (size_t i = 0; i < relocated.programs.size(); ++i) {
                const verifier::Verdict verdict = verifier::verify(relocated, i, how);
                if (verdict.outcome != verifier::Outcome::refused) continue;
                refused = true;
                if (!terms.refused.empty() && verdict.reason.find(terms.refused) != std::string::npos) {
                    as_wanted = true;
                    continue;
                }
                Error error = explain_refusal(relocated, relocated.programs[i], how.kernel_types,
                                              Error(Errc::rejected, EACCES, std::string()),
                                              verifier::log_text(relocated, relocated.programs[i], verdict));
                add("refused", error.message(), error.hint);
            }
        }
        if (!terms.refused.empty() && !as_wanted && !refused)
            add("refused",
                format("the verifier accepts {}; the task is a program that it refuses: {}", exercise_.file, terms.refused));
        if (!terms.refused.empty()) ++report_.expectations;
        return !refused;
    }

    Result<void> carried_out(const experiment::Experiment &e, experiment::Plan plan, const Terms &terms) {
        std::vector<const WantedInstruction *> missing;
        for (const WantedInstruction &wanted : terms.instructions)
            if (!has_instruction(plan, wanted.texts)) missing.push_back(&wanted);
        const sys::SignalFd no_signals;
        experiment::RunSettings how;
        how.emulate = !terms.kernel;
        how.quiet = true;
        Quiet nowhere;
        Result<experiment::RunOutcome> outcome = experiment::run_in(means_.lab, e, std::move(plan), how, no_signals, nowhere);
        if (!outcome) {
            const Error &error = outcome.error();
            if (terms.kernel && (error.kind == Errc::permission || error.kind == Errc::unsupported))
                return std::move(outcome).failure();
            fault(e, error);
            return {};
        }
        report_.expectations = outcome->expectations;
        report_.failed = outcome->failed;
        const std::vector<std::string_view> check = lines_of(check_), lines = lines_of(exercise_.text);
        std::vector<std::string> values;
        for (const experiment::Failure &failure : outcome->failures) {
            std::string value;
            Finding one;
            one.kind = "expectation";
            one.sentence = sentence_of(failure, value);
            // What follows the first failure may follow from it: a guess at another reason, or at one for the same value, would
            // blame a line that is right.
            if (const Hint hint = hint_of(check, failure.at.line, value);
                report_.findings.empty() || (hint.exact && std::find(values.begin(), values.end(), value) == values.end())) {
                one.why = hint.why;
                one.line = line_with(lines, hint.at);
            }
            report_.findings.push_back(std::move(one));
            values.push_back(std::move(value));
        }
        report_.expectations += terms.instructions.size();
        if (!report_.findings.empty()) return {}; // what it does comes before how
        report_.failed += missing.size();
        for (const WantedInstruction *wanted : missing) {
            Finding one;
            one.kind = "instruction";
            one.sentence = format("the results are right, but {} has no instruction `{}`", exercise_.file, wanted->texts[0]);
            one.why = wanted->why;
            one.line = line_with(lines, wanted->at);
            report_.findings.push_back(std::move(one));
        }
        return {};
    }

    // "lab.asm:3: run p: 5 bytes to p: p: stopped ...": the place in front is the check's, and hidden.
    void fault(const experiment::Experiment &e, const Error &error) {
        std::string text = error.message();
        for (const experiment::Step &step : e.steps)
            if (const std::string before = format("{}:{}: {}: ", e.name, step.at.line, step.source); text.starts_with(before)) {
                text.erase(0, before.size());
                // "14 bytes to main: ", too.
                constexpr std::string_view kBytes = " bytes to ";
                if (const size_t bytes = text.find_first_not_of("0123456789");
                    bytes != 0 && text.compare(bytes, kBytes.size(), kBytes) == 0)
                    text.erase(0, text.find(": ", bytes) + 2);
                break;
            }
        std::string hint = error.hint;
        if (hint.empty() && text.find("stopped after") != std::string::npos)
            hint = "a loop without an end? rawbpf step --trace shows each instruction";
        add("fault", format("{} was run and failed: {}", exercise_.file, text), std::move(hint));
    }

    const Exercise &exercise_;
    const std::string &check_;
    const Means &means_;
    Report &report_;
};

} // namespace

Report report_on(const Exercise &exercise) {
    Report out;
    out.number = exercise.number;
    out.lesson = exercise.lesson;
    out.file = exercise.file;
    return out;
}

void add_finding(Report &report, std::string_view kind, std::string sentence, std::string hint) {
    Finding one;
    one.kind = kind;
    one.sentence = std::move(sentence);
    one.hint = std::move(hint);
    // A complaint of several lines names the place itself; graders get it as a number.
    one.line = line_named(one.sentence, report.file);
    report.findings.push_back(std::move(one));
}

bool small_enough(Report &report, uint64_t bytes) {
    if (bytes <= kMostText) return true;
    add_finding(
        report, "file",
        format("{} has {} bytes: an exercise has a few thousand, and a check reads at most {}", report.file, bytes, kMostText),
        "is it the right file?");
    return false;
}

bool worth_checking(const Exercise &exercise, Report &report) {
    const std::string &file = exercise.file;
    const uint32_t said = lesson_said(exercise.text);
    if (said != 0 && said != exercise.number) {
        add_finding(report, "file",
                    format("{} says that it is of lesson {}, and this folder is of lesson {}", file, said, exercise.number),
                    format("check the folder of lesson {}, or put the file of lesson {} here", said, exercise.number));
        return false;
    }
    if (!says_anything(exercise.text)) {
        add_finding(report, "file", format("{} is empty, but for comments", file),
                    format("rawbpf lab start {} DIR gives the file anew, in another folder", exercise.number));
        return false;
    }
    return true;
}

Result<void> judge(const Exercise &exercise, const std::string &check, const Means &means, Report &report) {
    return Judge(exercise, check, means, report).by_steps();
}

} // namespace rawbpf::inline v0::lab
