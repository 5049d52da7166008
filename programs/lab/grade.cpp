// Reads the student's file, and has it judged by the check's steps (judge.h) or by its script.
#include "programs/lab/grade.h"

#include <sys/stat.h>

#include "programs/experiment/run.h"
#include "programs/experiment/surroundings.h"
#include "programs/lab/hints.h"
#include "programs/lab/judge.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory_file.h"

namespace rawbpf::inline v0::lab {
namespace {

constexpr size_t kMostCheck = 1 << 20;
constexpr size_t kMostScript = 1 << 20; // that a script may say
constexpr size_t kMostShown = 16'000;   // of it that is shown
constexpr uint64_t kScriptNs = 10'000'000'000;

class Grader {
  public:
    Grader(const Lesson &lesson, std::string folder, const GradeOptions &options)
        : lesson_(lesson), folder_(std::move(folder)), options_(options) {}

    Result<Report> grade() {
        exercise_ = {lesson_.number, lesson_.name, TRY(exercise_in(folder_)), {}, folder_ + "/"};
        report_ = report_on(exercise_);
        if (!TRY(read())) return std::move(report_);
        if (const std::string steps = lesson_.folder + "check/check.exp"; sys::exists(steps)) {
            TRY(by_steps(steps));
        } else if (const std::string script = lesson_.folder + "check/check.sh"; sys::exists(script)) {
            TRY(by_script(script));
        } else {
            return fail(Errc::not_found, "{} has no check", lesson_.folder);
        }
        return std::move(report_);
    }

  private:
    void add(std::string_view kind, std::string sentence, std::string hint = {}) {
        add_finding(report_, kind, std::move(sentence), std::move(hint));
    }

    // False: there is nothing to check; the report says so.
    Result<bool> read() {
        const std::string path = folder_ + "/" + report_.file;
        const struct stat st = TRY(sys::stat_file(path));
        if (!S_ISREG(st.st_mode)) {
            add("file", format("{} is no regular file", report_.file));
            return false;
        }
        if (!small_enough(report_, static_cast<uint64_t>(st.st_size))) return false;
        exercise_.text = TRY(sys::read_file(path, kMostText));
        return worth_checking(exercise_, report_);
    }

    Result<void> by_steps(const std::string &path) {
        const std::string check = TRY(sys::read_file(path, kMostCheck));
        const experiment::LiveSurroundings live(options_.headers);
        return judge(exercise_, check, {live.surroundings(), experiment::lab_as_set}, report_);
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
            add("limit", format("{} was checked and wrote more than {} bytes", report_.file, kMostScript),
                "does it print in a loop without an end?");
            return {};
        }
        while (text.ends_with('\n')) text.pop_back();
        if (!exit.signalled && exit.code == 0) return {};
        if (!exit.signalled && exit.code == 3)
            return fail(Errc::unsupported, "{}", text.empty() ? "this lesson can't be checked here" : text);
        if (exit.signalled ? exit.code == 9 : exit.code == 137 || exit.code == 124)
            add("limit", format("{} was checked and didn't end within {} s", report_.file, kScriptNs / 1'000'000'000),
                "a loop without an end?");
        else
            add("script", text.empty() ? format("the check {}", exit.text()) : text);
        return {};
    }

    const Lesson &lesson_;
    std::string folder_;
    const GradeOptions &options_;
    Exercise exercise_;
    Report report_;
};

} // namespace

double patience_s(bool kernel) { return kernel ? 30 : 10; }

bool needs_kernel(const Lesson &lesson) {
    const Result<std::string> check = sys::read_file(lesson.folder + "check/check.exp", kMostCheck);
    return check && terms_of(*check).kernel;
}

Result<Report> grade(const Lesson &lesson, const std::string &folder, const GradeOptions &options) {
    return Grader(lesson, folder, options).grade();
}

} // namespace rawbpf::inline v0::lab
