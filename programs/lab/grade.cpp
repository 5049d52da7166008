// The student's programs and the check's steps become one experiment. What the student's file can't do is said in its own lines,
// what the check does isn't shown: its inputs are hidden.
#include "programs/lab/grade.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

#include "programs/experiment/plan.h"
#include "programs/experiment/run.h"
#include "programs/experiment/surroundings.h"
#include "programs/lab/hints.h"
#include "programs/lab/student.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/program_error.h"
#include "runtime/object/core.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory_file.h"
#include "runtime/verifier/print.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::lab {
namespace {

constexpr size_t kMostText = 1 << 20;   // of a student's file, and of a check
constexpr size_t kMostScript = 1 << 20; // that a script may say
constexpr size_t kMostShown = 16'000;   // of it that is shown
constexpr uint64_t kScriptNs = 10'000'000'000;

struct Quiet final : experiment::Sink {
    Result<void> out(std::string_view) override { return {}; }
    void remark(std::string_view) override {}
};

Finding finding(std::string_view kind, std::string sentence, std::string hint = {}) {
    Finding out;
    out.kind = kind;
    out.sentence = std::move(sentence);
    out.hint = std::move(hint);
    return out;
}

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

class Grader {
  public:
    Grader(const Lesson &lesson, std::string folder, const GradeOptions &options)
        : lesson_(lesson), folder_(std::move(folder)), options_(options) {
        report_.number = lesson.number;
        report_.lesson = lesson.name;
    }

    Result<Report> grade() {
        report_.file = TRY(exercise_in(folder_));
        if (!TRY(read())) return std::move(report_);
        const std::string steps = lesson_.folder + "check/check.exp";
        if (sys::exists(steps)) {
            check_ = TRY(sys::read_file(steps, kMostText));
            TRY(by_steps());
        } else if (const std::string script = lesson_.folder + "check/check.sh"; sys::exists(script)) {
            TRY(by_script(script));
        } else {
            return fail(Errc::not_found, "{} has no check", lesson_.folder);
        }
        return std::move(report_);
    }

  private:
    void add(Finding one) {
        // A complaint of several lines names the place itself; graders get it as a number.
        if (one.line == 0) one.line = line_named(one.sentence, report_.file);
        report_.findings.push_back(std::move(one));
    }

    // False: there is nothing to check, which is told.
    Result<bool> read() {
        const std::string path = folder_ + "/" + report_.file;
        const struct stat st = TRY(sys::stat_file(path));
        if (!S_ISREG(st.st_mode)) {
            add(finding("file", format("{} is no regular file", report_.file)));
            return false;
        }
        if (static_cast<uint64_t>(st.st_size) > kMostText) {
            add(finding("file",
                        format("{} has {} bytes: an exercise has a few thousand, and a check reads at most {}", report_.file,
                               static_cast<uint64_t>(st.st_size), kMostText),
                        "is it the right file?"));
            return false;
        }
        text_ = TRY(sys::read_file(path, kMostText));
        const uint32_t said = lesson_said(text_);
        if (said != 0 && said != lesson_.number) {
            add(finding(
                "file",
                format("{} says that it is of lesson {}, and this folder is of lesson {}", report_.file, said, lesson_.number),
                format("check the folder of lesson {}, or put the file of lesson {} here", said, lesson_.number)));
            return false;
        }
        if (!says_anything(text_)) {
            add(finding("file", format("{} is empty, but for comments", report_.file),
                        format("rawbpf lab start {} DIR gives the file anew, in another folder", lesson_.number)));
            return false;
        }
        return true;
    }

    // True: there are mistakes, which are told.
    bool mistaken(const experiment::Mistakes &mistakes) {
        if (!mistakes.any()) return false;
        add(finding("assembly", mistakes.report()));
        return true;
    }

    Result<void> by_steps() {
        if (!is_program(report_.file))
            return fail(Errc::bad_input, "{}: check.exp can't be carried out on {}: it takes lab.asm, lab.hex, lab.exp and lab.c",
                        lesson_.name, report_.file);
        const Terms terms = terms_of(check_);
        experiment::Parsed student = student_experiment(text_, report_.file);
        if (mistaken(student.mistakes)) return {};
        const experiment::LiveSurroundings live(options_.headers);
        const std::string paths = folder_ + "/";
        experiment::Plan plan = TRY(experiment::make_plan(student.experiment, paths, live.surroundings(), student.mistakes));
        if (mistaken(student.mistakes)) return {};
        if (std::all_of(plan.specs.begin(), plan.specs.end(), [](const ObjectSpec &spec) { return spec.programs.empty(); })) {
            add(finding("file", format("there is no program in {}", report_.file),
                        "the lesson's text says what it has to do; the gap is marked with TODO"));
            return {};
        }
        if (terms.verified && !TRY(verified(plan, terms))) return {};
        if (!terms.refused.empty()) return {};

        experiment::Parsed check = experiment::parse(check_, "check.exp");
        if (!check) return fail(Errc::bad_input, "{}: the check has mistakes:\n{}", lesson_.name, check.mistakes.report());
        student.experiment.steps = std::move(check.experiment.steps);
        plan = TRY(experiment::make_plan(student.experiment, paths, live.surroundings(), student.mistakes));
        if (student.mistakes.any()) {
            const Complaint &first = student.mistakes.all().front();
            add(finding("names", format("{}: {}, and the check needs it", report_.file, first.at.message),
                        "programs, maps and variables keep the names that the exercise gives them"));
            return {};
        }
        return carried_out(student.experiment, std::move(plan), terms);
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
                add(finding("refused", error.message(), error.hint));
            }
        }
        if (!terms.refused.empty() && !as_wanted && !refused)
            add(finding("refused", format("the verifier accepts {}; the task is a program that it refuses: {}", report_.file,
                                          terms.refused)));
        if (!terms.refused.empty()) ++report_.expectations;
        return !refused;
    }

    Result<void> carried_out(const experiment::Experiment &e, experiment::Plan plan, const Terms &terms) {
        const sys::SignalFd signals = TRY(sys::SignalFd::open({}));
        experiment::RunSettings how;
        how.emulate = !terms.kernel;
        how.quiet = true;
        Quiet nowhere;
        Result<experiment::RunOutcome> outcome = experiment::run(e, std::move(plan), how, signals, nowhere);
        if (!outcome) {
            const Error &error = outcome.error();
            if (terms.kernel && (error.kind == Errc::permission || error.kind == Errc::unsupported))
                return std::move(outcome).failure();
            fault(e, error);
            return {};
        }
        report_.expectations = outcome->expectations;
        report_.failed = outcome->failed;
        const std::vector<std::string_view> check = lines_of(check_), lines = lines_of(text_);
        for (const experiment::Failure &failure : outcome->failures) {
            std::string value;
            Finding one = finding("expectation", sentence_of(failure, value));
            const Hint hint = hint_of(check, failure.at.line, value);
            one.why = hint.why;
            one.line = line_with(lines, hint.at);
            add(std::move(one));
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
        add(finding("fault", format("{} was run and failed: {}", report_.file, text), std::move(hint)));
    }

    // What it prints is what is wrong.
    Result<void> by_script(const std::string &script) {
        report_.scripted = true;
        const Fd said = TRY(sys::memory_file("rawbpf-lab-check"));
        // In a folder of its own that goes with it; timeout(1) ends what the script leaves running, too.
        constexpr const char *kRun = "WORK=$(mktemp -d) || exit 3\n"
                                     "trap 'rm -rf \"$WORK\"' EXIT\n"
                                     "RAWBPF=$1 LAB=$2 CHECK=$3; export RAWBPF LAB CHECK WORK\n"
                                     "cd \"$4\" || exit 1\n"
                                     "timeout -s KILL \"$5\" sh \"$6\" 2>&1 </dev/null";
        Result<sys::Child> child =
            sys::Child::spawn({"sh", "-c", kRun, "sh", options_.rawbpf, report_.file, lesson_.folder + "check", folder_,
                               format("{}", kScriptNs / 1'000'000'000), script},
                              {}, said.get());
        if (!child) return std::move(child).failure();
        TRY(child->start());
        const sys::Exit exit = TRY(child->wait());
        std::string text(kMostShown, '\0');
        text.resize(TRY(sys::pread(said.get(), text.data(), text.size(), 0)));
        if (TRY(sys::stat_fd(said.get())).st_size >= static_cast<off_t>(kMostScript)) {
            add(finding("limit", format("{} was checked and wrote more than {} bytes", report_.file, kMostScript),
                        "does it print in a loop without an end?"));
            return {};
        }
        while (text.ends_with('\n')) text.pop_back();
        if (!exit.signalled && exit.code == 0) return {};
        if (!exit.signalled && exit.code == 3)
            return fail(Errc::unsupported, "{}", text.empty() ? "this lesson can't be checked here" : text);
        if (exit.signalled ? exit.code == 9 : exit.code == 137 || exit.code == 124)
            add(finding("limit", format("{} was checked and didn't end within {} s", report_.file, kScriptNs / 1'000'000'000),
                        "a loop without an end?"));
        else
            add(finding("script", text.empty() ? format("the check {}", exit.text()) : text));
        return {};
    }

    const Lesson &lesson_;
    std::string folder_;
    const GradeOptions &options_;
    std::string text_, check_;
    Report report_;
};

} // namespace

double patience_s(bool kernel) { return kernel ? 30 : 10; }

bool needs_kernel(const Lesson &lesson) {
    const Result<std::string> check = sys::read_file(lesson.folder + "check/check.exp", kMostText);
    return check && terms_of(*check).kernel;
}

Result<Report> grade(const Lesson &lesson, const std::string &folder, const GradeOptions &options) {
    return Grader(lesson, folder, options).grade();
}

} // namespace rawbpf::inline v0::lab
