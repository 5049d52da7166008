// `rawbpf lab list|start|check`: the course. A student's program runs in a separate process, `rawbpf lab grade`, with limits on
// memory, files and time: whatever the program does, the command ends with a message.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/own_folder.h"
#include "programs/lab/grade.h"
#include "programs/lab/lesson.h"
#include "programs/lab/report.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory_file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr size_t kMostReport = 1 << 20;

constexpr Option kLessonsOption{
    .name = "lessons",
    .kind = OptionKind::file,
    .argument = "DIR",
    .help = "take the lessons from this folder, which has one folder for each, instead of those that come with rawbpf",
    .section = "Where"};
constexpr Option kListOptions[] = {kLessonsOption, format_option("text", "text json"), kJsonOption};
constexpr Option kStartOptions[] = {kLessonsOption};
constexpr Option kCheckOptions[] = {kLessonsOption, format_option("text", "text json"), kJsonOption};
consteval Id check_option(const char *name) { return find(kCheckOptions, name); }
constexpr Id kLessonsId{0};

constexpr Example kListExamples[] = {{"rawbpf lab list", "the lessons, one in a line"},
                                     {"rawbpf lab list --json", "the same for scripts"}};
constexpr Example kStartExamples[] = {
    {"rawbpf lab start 1 first", "the text, the experiments and the exercise of lesson 1, in a new folder first"}};
constexpr Example kCheckExamples[] = {
    {"rawbpf lab check first", "is the exercise solved? If not: what is wrong, and where"},
    {"rawbpf lab check --json first", "the same for a grader; the status is 0 or 4"},
};

Result<std::vector<lab::Lesson>> lessons(const Arguments &a) {
    if (a.has(kLessonsId)) return lab::all_lessons({std::string(a.text(kLessonsId)) + "/"});
    return lab::all_lessons(lesson_folders());
}

int run_list(const Arguments &a) {
    const Result<std::vector<lab::Lesson>> all = lessons(a);
    if (!all) return complain("rawbpf lab list", all.error());
    const bool json = a.text(find(kListOptions, "format")) == "json";
    std::string text;
    if (json) append_json_header(text, a);
    for (const lab::Lesson &lesson : *all)
        if (json)
            render::JsonLine(text, "lesson")
                .number("number", lesson.number)
                .text("name", lesson.name)
                .text("title", lesson.title);
        else
            append(text, "{:>2}  {:<16} {}\n", lesson.number, render::printable(lesson.name), render::printable(lesson.title));
    return print(text);
}

Result<void> copy(const lab::Handout &file, const std::string &folder) {
    const std::string text = TRY(sys::read_file(file.from));
    const std::string path = folder + "/" + file.name;
    const Fd fd = TRY(sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0666));
    return sys::write_all(fd.get(), text.data(), text.size());
}

Result<std::string> start(const Arguments &a) {
    const lab::Lesson lesson = TRY(lab::find_lesson(TRY(lessons(a)), a.operands()[0]));
    const std::string folder(a.operands()[1]);
    const std::vector<lab::Handout> files = TRY(lab::handouts(lesson));
    if (Result<void> made = sys::make_directory(folder); !made) {
        if (made.error().os != EEXIST) return std::move(made).failure();
        const Result<std::vector<std::string>> inside = sys::list_directory(folder);
        if (!inside || !inside->empty())
            return Unexpected(make_error(Errc::invalid_argument,
                                         format("{} is there already{}", folder, inside ? ", and isn't empty" : ""),
                                         "rawbpf lab start overwrites nothing: take another name"));
    }
    std::string text = format("{}:", folder);
    for (const lab::Handout &file : files) {
        TRY(copy(file, folder));
        append(text, " {}", file.name);
    }
    append(text, "\nnext: cd {}, read lesson.md, then rawbpf lab check\n", folder);
    return text;
}

int run_start(const Arguments &a) {
    const Result<std::string> text = start(a);
    if (!text) return complain("rawbpf lab start", text.error(), text.error().kind == Errc::invalid_argument ? 2 : 0);
    return print(printable_lines(*text));
}

constexpr std::string_view kWho = "rawbpf lab check";

struct Task {
    lab::Lesson lesson;
    std::string folder;
};
Result<Task> task(const Arguments &a) {
    Task out;
    out.folder = a.operands().empty() ? "." : std::string(a.operands()[0]);
    while (out.folder.size() > 1 && out.folder.ends_with('/')) out.folder.pop_back();
    const uint32_t number = TRY(lab::lesson_of(out.folder));
    out.lesson = TRY(lab::find_lesson(TRY(lessons(a)), format("{}", number)));
    return out;
}

void append_report(std::string &text, const lab::Report &report, bool json) {
    text += json ? lab::report_json(report) : printable_lines(lab::report_text(report));
}

// What a student's program prints (bpf_trace_printk) and asks for is nobody's business here: a graded program has no terminal.
Result<lab::Report> grade_in_silence(const Task &given) {
    const Fd nothing = TRY(sys::open("/dev/null", O_RDWR)), errors = TRY(sys::duplicate(2));
    TRY(sys::become_standard(nothing.get(), 0));
    TRY(sys::become_standard(nothing.get(), 2));
    const std::string own = own_folder();
    Result<lab::Report> report = lab::grade(
        given.lesson, given.folder,
        {{own + "/../include/rawbpf", own + "/../include", own + "/../programs/include", own + "/.."}, own + "/rawbpf"});
    TRY(sys::become_standard(errors.get(), 2));
    return report;
}

// In the process with bounds. Its standard output is the parent's memory file.
int run_grade(const Arguments &a) {
    const Result<Task> given = task(a);
    if (!given) return complain(kWho, given.error());
    if (Result<void> bounded = sys::bound_self(lab::kBounds); !bounded) return complain(kWho, bounded.error());
    const Result<lab::Report> report = grade_in_silence(*given);
    if (!report) return complain(kWho, report.error());
    std::string text;
    append_report(text, *report, a.text(check_option("format")) == "json");
    const int written = print(text);
    return written ? written : report->passed() ? 0 : 4;
}

struct Ended {
    sys::Exit exit;
    bool late = false;
    std::string text;
};
Result<Ended> in_bounds(const Arguments &a, const Task &given) {
    std::vector<std::string> words{"/proc/self/exe", "lab", "grade", given.folder};
    if (a.has(kLessonsId)) words.insert(words.end(), {"--lessons", std::string(a.text(kLessonsId))});
    if (a.text(check_option("format")) == "json") words.emplace_back("--json");
    const Fd out = TRY(sys::memory_file("rawbpf-lab"));
    Result<sys::Child> child = sys::Child::spawn(words, {}, out.get());
    if (!child) return std::move(child).failure();
    TRY(child->start());
    Ended end;
    const auto patience = static_cast<uint64_t>(lab::patience_s(lab::needs_kernel(given.lesson)) * 1e9);
    const uint64_t begun = sys::monotonic_ns();
    (void)child->end(patience, 0);
    end.late = sys::monotonic_ns() - begun >= patience;
    if (!child->ended()) TRY(child->kill(SIGKILL));
    end.exit = TRY(child->wait());
    end.text.resize(kMostReport);
    end.text.resize(TRY(sys::pread(out.get(), end.text.data(), end.text.size(), 0)));
    return end;
}

// A process that came to no verdict, as a finding.
lab::Report broken_off(const Task &given, const Ended &end) {
    lab::Report report;
    report.number = given.lesson.number;
    report.lesson = given.lesson.name;
    report.file = lab::exercise_in(given.folder).value_or("lab");
    lab::Finding finding;
    finding.kind = "limit";
    if (end.late) {
        finding.sentence = format("the check of {} didn't end within {} s and was stopped", report.file,
                                  lab::patience_s(lab::needs_kernel(given.lesson)));
        finding.hint = "a loop without an end, or one that is very long?";
    } else if (end.exit.signalled && (end.exit.code == SIGABRT || end.exit.code == SIGSEGV || end.exit.code == SIGBUS)) {
        finding.sentence = format("the check of {} needed more than {} MiB of memory and was stopped", report.file,
                                  lab::kBounds.memory_bytes >> 20);
        finding.hint = "how large are its maps? entries times the size of key and value";
    } else {
        finding.sentence = format("the check of {} {}", report.file, end.exit.text());
    }
    report.findings.push_back(std::move(finding));
    return report;
}

int run_check(const Arguments &a) {
    const Result<Task> given = task(a);
    if (!given) return complain(kWho, given.error());
    const Result<Ended> end = in_bounds(a, *given);
    if (!end) return complain(kWho, end.error());
    const bool json = a.text(check_option("format")) == "json";
    std::string text;
    if (json) append_json_header(text, a);
    int status = end->exit.code;
    if (end->exit.signalled || end->late) {
        append_report(text, broken_off(*given, *end), json);
        status = 4;
    } else {
        text += end->text;
    }
    const int written = print(text);
    return written ? written : status;
}

} // namespace

const Command kLabList{
    .name = "lab list",
    .summary = "list the lessons of the course",
    .description = "Lists the lessons that come with rawbpf: number, name, title. rawbpf lab start copies one.",
    .options = kListOptions,
    .examples = kListExamples,
    .run = run_list,
};

const Command kLabStart{
    .name = "lab start",
    .summary = "copy a lesson to a new folder",
    .description = "Makes the folder DIR, or takes it if it is empty, with a lesson's text (lesson.md), its experiments and its "
                   "exercise, a file lab.* with a "
                   "gap. LESSON is a "
                   "number or a name of rawbpf lab list. The check and the solution are not copied.",
    .options = kStartOptions,
    .examples = kStartExamples,
    .operand = "LESSON DIR",
    .least_operands = 2,
    .most_operands = 2,
    .operand_kind = "lessons",
    .run = run_start,
};

const Command kLabCheck{
    .name = "lab check",
    .summary = "check a lesson's exercise, and show what is wrong and where",
    .description =
        "Checks the exercise in DIR, or in the current folder, a copy of a lesson that rawbpf lab start made. rawbpf verifies "
        "its programs as rawbpf verify does, and then runs them in the emulator, without privileges, on inputs that the student "
        "doesn't see. Lessons that need a kernel run in this kernel, which needs the privileges of rawbpf run.\n\n"
        "If something is wrong, the message has the expected value, the actual value and, where the lesson gives it, the line of "
        "the file. A check takes at most 10 seconds (30 in the kernel) and 1 GiB of memory.\n\n"
        "The exit status is 0 if the exercise is solved, 4 if it isn't, 3 if it can't be checked here, 1 if there is nothing to "
        "check.",
    .options = kCheckOptions,
    .examples = kCheckExamples,
    .operand = "DIR",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_check,
};

const Command kLabGrade{
    .name = "lab grade",
    .summary = "what rawbpf lab check starts",
    .description = {},
    .options = kCheckOptions,
    .operand = "DIR",
    .least_operands = 0,
    .most_operands = 1,
    .hidden = true,
    .run = run_grade,
};

} // namespace rawbpf::inline v0::cli
