// `rawbpf run`: an experiment from a file. Reading it, and what is wrong with it, is programs/experiment's; here its results and
// remarks are printed, files are found by bare names, and signals are made something to wait for.
#include <algorithm>
#include <optional>
#include <utility>

#include "cli/built.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/experiment_input.h"
#include "cli/guests.h"
#include "cli/object_file.h"
#include "cli/run_guests.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "programs/doctor/doctor.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/run.h"
#include "programs/experiment/series.h"
#include "programs/experiment/tape.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf run";

constexpr Option kOptions[] = {
    {.name = "set",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "NAME=VALUE",
     .help = "set a parameter of the experiment, instead of the value in the file. With several values, separated by commas, "
             "rawbpf runs the experiment with each of them and shows the figures of its `measure` lines side by side; with "
             "several parameters, it runs each combination. A comma within a value is written \\,",
     .section = "What to run"},
    {.name = "repeat",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "run it N times, after one run to warm up, and show minimum, median, the median's 95 % confidence interval and the "
             "median absolute deviation (MAD) of each figure. Variants of --set take turns",
     .least = 1,
     .most = 10'000},
    {.name = "list", .help = "list the experiments that can be named without a path, and what each does"},
    {.name = "check", .help = "read the experiment, compile its probes, look up the names in it; load and run nothing"},
    {.name = "emulate",
     .help = "run its programs in user space, without privileges: nothing is attached, steps `packet` and `run` run them",
     .part = Part::emulator},
    {.name = "duration",
     .letter = 'd',
     .kind = OptionKind::seconds,
     .argument = "SECONDS",
     .help = "how long a step waits that names no time: 3, 0.5, 200ms, 2m; by default until COMMAND or the experiment's own "
             "commands end, or Ctrl-C",
     .section = "How long"},
    {.name = "record",
     .kind = OptionKind::file,
     .written = true,
     .argument = "FILE",
     .help = "also write what the kernel and the commands returned to this file, for --replay",
     .section = "Recordings",
     .excludes = "elsewhere"},
    {.name = "replay",
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "carry out the recorded experiment again, or the one given by FILE, with the recorded data instead of the kernel "
             "and the commands. It prints tables and checks expectations in any format, needs no privileges, and doesn't wait",
     .excludes = "elsewhere"},
    {.name = "kernel",
     .kind = OptionKind::text,
     .argument = "NAME[,NAME...]",
     .help = "carry it out on these kernels instead of this one, each in a guest (rawbpf vm --list lists the names). The guest "
             "gets copies of the programs that its workloads run",
     .section = "On other kernels",
     .excludes = "elsewhere",
     .part = Part::guests},
    {.name = "clock",
     .kind = OptionKind::choice,
     .argument = "WHAT",
     .help = "with --kernel: what the clock of the guest counts. instructions: the instructions that the guest executes, one per "
             "nanosecond, so that figures are the same in every run. time: the time of this machine",
     .fallback = "time",
     .choices = "time instructions",
     .was = "count",
     .part = Part::guests},
    kAsRootOption,
    format_option("text", "text json csv"),
    kJsonOption,
    {.name = "csv", .help = "short for --format csv", .stands_for = "format=csv"},
    kOutputOption,
    verbose_option("say what is attached, which of several probes was taken, and print the verifier's whole log"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf run reads.exp", "carry out an experiment"},
    {"sudo rawbpf run execsnoop", "one that comes with rawbpf: every command that is started, until Ctrl-C"},
    {"rawbpf run --list", "which ones come with it"},
    {"sudo rawbpf run --set pid=1234 -d 10 reads.exp", "with another value of a parameter, for ten seconds"},
    {"sudo rawbpf run --set block=512,4k,64k --repeat 10 sweep.exp", "what does the size of a block change?"},
    {"sudo rawbpf run --json reads.exp | jq .", "results as JSON lines"},
    {"rawbpf run --kernel 5.10,6.1,6.12 --clock instructions --repeat 6 reads.exp", "its figures on three kernels, side by side"},
    {"sudo rawbpf run --record reads.rec reads.exp", "carry it out, and keep what came"},
    {"rawbpf run --replay reads.rec --json", "the same results in another form, on any machine"},
    {"rawbpf run --replay reads.rec edited.exp", "other tables and expectations of what was recorded"},
    {"rawbpf run --check reads.exp", "is it right, and does this kernel have the probes that it wants?"},
};

class Streams final : public experiment::Sink {
  public:
    explicit Streams(Output &output) : output_(output) {}
    Result<void> out(std::string_view text) override {
        output_.writer().write(text);
        return output_.writer().flush();
    }
    void remark(std::string_view text) override {
        // A diff begins with the place in the file, as a compiler's messages do.
        say(text.find("\n") + 1 == text.size() ? format("{}: {}", kWho, text) : std::string(text));
    }

  private:
    Output &output_;
};

int list_experiments() {
    std::string text;
    for (const std::string &folder : experiment_folders()) {
        Result<std::vector<std::string>> names = sys::list_directory(folder);
        if (!names) continue;
        std::sort(names->begin(), names->end());
        for (const std::string &name : *names) {
            if (!name.ends_with(".exp")) continue;
            const Result<std::string> source = sys::read_file(folder + name);
            if (!source) continue;
            const experiment::Parsed parsed = experiment::parse(*source, name);
            append(text, "{:<16} {}\n", name.substr(0, name.size() - 4), render::printable(parsed.experiment.title));
        }
        if (!text.empty()) break;
    }
    if (text.empty()) return complain(kWho, make_error(Errc::not_found, "no experiments are installed here"));
    return print(text);
}

bool measures(const experiment::Experiment &e) {
    return std::any_of(e.steps.begin(), e.steps.end(),
                       [](const experiment::Step &step) { return step.kind == experiment::Step::Kind::measure; });
}

Error nothing_measured(const InputFile &file) {
    return make_error(Errc::invalid_argument, format("{} has no figures to compare", file.name()),
                      "add a line `measure NAME = VALUE` for each figure");
}

Error in_variant(Error error, const experiment::Variant &variant) {
    return variant.name.empty() ? error : in_context(std::move(error), format("with {}", variant.name));
}

// All variants in turn, round after round, and in the end what they measured. A signal ends it: what was measured until then is
// shown.
Result<experiment::RunOutcome> run_series(const std::vector<PreparedExperiment> &prepared,
                                          const std::vector<experiment::Variant> &variants, uint64_t rounds,
                                          const experiment::RunSettings &how, const sys::SignalFd &signals, Streams &streams) {
    std::vector<std::string> names;
    for (const experiment::Variant &variant : variants) names.push_back(variant.name);
    experiment::Series figures(names);
    experiment::RunOutcome all;
    // Round 0 warms up, where there is more than one to come: its figures don't count, its expectations do.
    for (uint64_t round = rounds > 1 ? 0 : 1; round <= rounds && !all.stopped; ++round) {
        for (size_t n = 0; n < variants.size() && !all.stopped; ++n) {
            const size_t turn = experiment::turn_of(round, n, variants.size());
            Result<experiment::RunOutcome> one =
                experiment::run(prepared[turn].experiment, prepared[turn].plan, how, signals, streams);
            if (!one) return Unexpected(in_variant(std::move(one).error(), variants[turn]));
            all.expectations += one->expectations, all.failed += one->failed, all.skipped += one->skipped;
            all.stopped = one->stopped;
            if (one->failed != 0 && !variants[turn].name.empty())
                say(format("{}: this was with {}\n", kWho, variants[turn].name));
            if (round != 0 && !one->stopped) figures.add(turn, one->measures);
        }
    }
    if (all.stopped) say(format("{}: stopped; the figures are of the runs that came to their end\n", kWho));
    std::string text;
    how.form == experiment::OutputForm::json  ? figures.append_json(text)
    : how.form == experiment::OutputForm::csv ? figures.append_csv(text)
                                              : figures.append_text(text);
    TRY(streams.out(text));
    return all;
}

// What a guest is told: what this run was told, but for its format and what is decided here.
std::vector<std::string> options_for_guests(const Arguments &a) {
    std::vector<std::string> out;
    for (const std::string_view set : a.all(option("set"))) out.push_back(format("--set={}", set));
    for (const char *flag : {"emulate", "check", "verbose"})
        for (size_t i = 0; i < std::size(kOptions); ++i)
            if (kOptions[i].name == flag && a.has({i})) out.push_back(format("--{}", flag));
    for (const char *name : {"repeat", "duration"})
        for (size_t i = 0; i < std::size(kOptions); ++i)
            if (kOptions[i].name == name && a.has({i})) out.push_back(format("--{}={}", name, a.text({i})));
    if (a.has(option("syscalls"))) out.emplace_back(a.text(option("syscalls")).empty() ? "--syscalls" : "--syscalls=json");
    return out;
}

int run_elsewhere(const Arguments &a, const InputFile &file, const experiment::Variant &first, bool series, Output &output) {
    GuestExperiment how;
    Result<std::vector<std::string>> kernels = kernel_names(a.text(option("kernel")));
    if (!kernels) return complain(kWho, kernels.error(), 2);
    how.kernels = std::move(*kernels);
    how.instructions = a.text(option("clock")) == "instructions";
    how.series = series;
    how.options = options_for_guests(a);
    how.command = a.workload();
    how.form = std::string(a.text(option("format")));
    const std::string_view text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
    experiment::Parsed parsed = experiment::parse(text, file.name(), first.settings);
    if (Result<void> right = say_mistakes(parsed.mistakes, file.name()); !right) return complain(kWho, right.error());
    if (series && !measures(parsed.experiment)) return complain(kWho, nothing_measured(file));
    Result<std::string> path = whole_path(file.name());
    if (!path)
        return complain(kWho,
                        make_error(Errc::invalid_argument, format("{} can't be copied to a guest", file.name()),
                                   "save the experiment as a file"),
                        2);
    if (Result<void> emptied = output.empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output.keep();
    return run_experiment_in_guests(parsed.experiment, *path, how, output);
}

experiment::RunSettings settings_of(const Arguments &a) {
    experiment::RunSettings how;
    const std::string_view form = a.text(option("format"));
    how.form = form == "json"  ? experiment::OutputForm::json
               : form == "csv" ? experiment::OutputForm::csv
                               : experiment::OutputForm::text;
    how.duration_s = a.seconds(option("duration"));
    how.command = a.workload();
    how.verbose = a.has(option("verbose"));
    how.emulate = a.has(option("emulate"));
    return how;
}

/// What became of it, said; the exit status.
int status_of_run(Result<experiment::RunOutcome> &&outcome, Output &output, bool verbose, bool series) {
    if (!outcome) {
        if (reader_gone(outcome.error())) return 0;
        if (!verbose) outcome.error().log.clear();
        return complain(kWho, outcome.error());
    }
    if (Result<void> written = output.writer().flush(); !written && !reader_gone(written.error()))
        return complain(kWho, written.error(), 1);
    if (outcome->failed != 0) {
        say(format("{}: {} of {} expectations failed\n", kWho, outcome->failed, outcome->expectations));
        return 4;
    }
    // An experiment that only expects something would say nothing at all.
    if (output.writer().bytes() == 0 && outcome->expectations != 0 && outcome->skipped == 0)
        say(format("{}: {} holds\n", kWho,
                   outcome->expectations == 1 ? "the expectation"
                                              : format("each of the {} expectations", outcome->expectations)));
    return outcome->skipped != 0 || (series && outcome->stopped) ? 1 : 0;
}

/// Where and when, and what was said to be done; run() adds what comes.
experiment::Tape new_tape(const InputFile &file, const experiment::Variant &variant) {
    experiment::Tape out;
    out.name = file.name();
    out.text.assign(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
    out.settings = variant.settings;
    const RunInfo machine = doctor::describe_run();
    out.kernel = machine.kernel, out.when = render::rfc3339(machine.start_wall_ns);
    return out;
}

int replay(const Arguments &a) {
    Result<InputFile> recording = InputFile::open(a.text(option("replay")));
    if (!recording) return complain(kWho, recording.error());
    Result<experiment::Tape> tape = experiment::read_tape(recording->bytes(), recording->name());
    if (!tape) return complain(kWho, tape.error());
    const std::vector<std::string_view> given = a.all(option("set"));
    Result<std::vector<experiment::Variant>> variants = experiment::variants_of(given);
    if (!variants) return complain(kWho, variants.error(), 2);
    if (variants->size() > 1 || a.has(option("repeat")) || a.has(option("check")) || a.has(option("emulate")) ||
        !a.workload().empty())
        return complain(kWho,
                        make_error(Errc::invalid_argument, "--replay repeats one recorded run",
                                   "leave out --repeat, --check, --emulate, the command, and --set with several values"),
                        2);
    if (!a.operands().empty()) {
        Result<InputFile> edited = open_experiment(a.operands()[0]);
        if (!edited) return complain(kWho, edited.error());
        tape->name = edited->name();
        tape->text.assign(reinterpret_cast<const char *>(edited->bytes().data()), edited->bytes().size());
    }
    for (const experiment::Setting &setting : variants->front().settings) {
        const auto same = [&](const experiment::Setting &one) { return one.name == setting.name; };
        std::erase_if(tape->settings, same);
        tape->settings.push_back(setting);
    }
    experiment::Parsed parsed = experiment::parse(tape->text, tape->name, tape->settings);
    if (!parsed.mistakes.any()) experiment::check_steps(parsed.experiment, tape->plan, parsed.mistakes);
    if (Result<void> right = say_mistakes(parsed.mistakes, tape->name); !right) return complain(kWho, right.error());
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    Result<sys::SignalFd> signals = sys::SignalFd::open(sys::kEndingSignals);
    if (!signals) return complain(kWho, signals.error());
    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();
    experiment::RunSettings how = settings_of(a);
    how.replay = &*tape;
    if (how.form == experiment::OutputForm::json) {
        append_json_header(output->writer().text(), a);
        render::JsonLine(output->writer().text(), "recording").text("kernel", tape->kernel).text("start", tape->when);
    } else if (how.verbose) {
        say(format("{}: recorded on Linux {}, {}\n", kWho, tape->kernel, tape->when));
    }
    Streams streams(*output);
    return status_of_run(experiment::run(parsed.experiment, tape->plan, how, *signals, streams), *output, how.verbose, false);
}

int run_run(const Arguments &a) {
    if (a.has(option("list"))) return list_experiments();
    if (a.has(option("replay"))) return replay(a);
    if (a.operands().empty())
        return complain(
            kWho,
            make_error(Errc::invalid_argument, "no experiment was given", "rawbpf run --list shows those that come with rawbpf"),
            2);
    if (Result<void> usable = check_as_root(a, option("as-root")); !usable) return complain(kWho, usable.error(), 2);
    const std::vector<std::string_view> given = a.all(option("set"));
    Result<std::vector<experiment::Variant>> variants = experiment::variants_of(given);
    if (!variants) return complain(kWho, variants.error(), 2);
    Result<InputFile> file = open_experiment(a.operands()[0]);
    if (!file) return complain(kWho, file.error());
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    const bool series = variants->size() > 1 || a.has(option("repeat"));
    if (has(Part::guests) && a.has(option("kernel"))) return run_elsewhere(a, *file, variants->front(), series, *output);
    if (a.has(option("clock")))
        return complain(kWho,
                        make_error(Errc::invalid_argument, "--clock needs --kernel: it sets what the clock of a guest counts",
                                   "--kernel NAME boots one"),
                        2);
    std::optional<Output> recording;
    if (a.has(option("record"))) {
        if (series)
            return complain(kWho,
                            make_error(Errc::invalid_argument, "--record records one run",
                                       "leave out --repeat, and give each --set one value"),
                            2);
        Result<Output> opened = Output::open(a.text(option("record")));
        if (!opened) return complain(kWho, opened.error(), 1);
        recording.emplace(std::move(*opened));
    }
    // Signals first: one that comes while attaching ends the first step that waits, and everything is let go of as it should be.
    Result<sys::SignalFd> signals = sys::SignalFd::open(sys::kEndingSignals);
    if (!signals) return complain(kWho, signals.error());

    std::vector<PreparedExperiment> prepared;
    for (const experiment::Variant &variant : *variants) {
        Result<PreparedExperiment> one = prepare_experiment(*file, variant.settings);
        if (!one) return complain(kWho, in_variant(std::move(one).error(), variant));
        prepared.push_back(std::move(*one));
    }
    if (series && !measures(prepared[0].experiment)) return complain(kWho, nothing_measured(*file));
    if (a.has(option("check"))) return 0;
    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();

    experiment::RunSettings how = settings_of(a);
    how.quiet = series;
    if (!a.has(option("as-root"))) {
        Result<std::optional<sys::User>> user = sys::invoking_user();
        if (!user) return complain(kWho, user.error());
        how.user = std::move(*user);
    }
    experiment::Tape tape;
    if (recording) {
        if (Result<void> emptied = recording->empty(); !emptied) return complain(kWho, emptied.error(), 1);
        tape = new_tape(*file, variants->front());
        how.record = &tape;
    }
    if (how.form == experiment::OutputForm::json) append_json_header(output->writer().text(), a);
    Streams streams(*output);
    const uint64_t rounds = a.has(option("repeat")) ? a.count(option("repeat")) : 1;
    Result<experiment::RunOutcome> outcome =
        series ? run_series(prepared, *variants, rounds, how, *signals, streams)
               : experiment::run(prepared[0].experiment, std::move(prepared[0].plan), how, *signals, streams);
    if (outcome && how.record) {
        recording->writer().write(experiment::write_tape(tape));
        if (Result<void> written = recording->writer().flush(); !written) return complain(kWho, written.error(), 1);
        recording->keep();
    }
    return status_of_run(std::move(outcome), *output, how.verbose, series);
}

} // namespace

const Command kRun{
    .name = "run",
    .summary = "carry out an experiment: probes, workload, steps, expectations in one text file",
    .description = "Carries out the experiment in FILE. rawbpf compiles its probes, assembles its assembly, loads its objects, "
                   "attaches them, starts its commands and carries out its steps in the order of the lines. At the end it "
                   "releases everything, also after an error. NAME is one of the experiments that come with rawbpf; --list lists "
                   "them. A COMMAND on the command line is started before the first step.\n\n"
                   "This small experiment counts reads by command, for five seconds:\n\n"
                   "  on tracepoint:syscalls:sys_enter_read { @reads[comm] = count() }\n"
                   "  wait 5s\n"
                   "  print reads top 10\n"
                   "  expect sum(reads) > 0\n\n"
                   "An experiment without steps runs until Ctrl-C and shows its events and maps. rawbpf help experiment, and "
                   "rawbpf-experiment(5), describe the language.\n\n"
                   "If an expectation doesn't hold, rawbpf shows the values in it and ends with status 4. If a step waits "
                   "without a limit, Ctrl-C ends that step and the experiment goes on with the next one. If a step waits for a "
                   "time or a workload, Ctrl-C interrupts the experiment: rawbpf still prints results, but doesn't check "
                   "expectations; if there are any, the status is 1.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE|NAME",
    .least_operands = 0,
    .most_operands = 1,
    .operand_is_file = true,
    .workload = true,
    .run = run_run,
};

} // namespace rawbpf::inline v0::cli
