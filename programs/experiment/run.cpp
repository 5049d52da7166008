// Steps, one after the other. What is waited for is an end: a time, the workloads, so many events, or a signal.
//
// The first signal ends the step that waits. Where that step would have waited without end, this is how it is meant to end, and
// all goes on. Else the run is interrupted: what waits from there on is left out, results are still printed, and expectations are
// not judged, since what they are about has not happened. A second signal leaves out the rest.
#include "programs/experiment/run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <sys/epoll.h>

#include "programs/experiment/lab.h"
#include "programs/experiment/show.h"
#include "programs/library.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::experiment {
namespace {

using Kind = Step::Kind;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr size_t kMostPacket = 1 << 16;
enum Wakes : uint64_t { kRings, kSignal, kChild };

bool waits(Kind kind) { return kind == Kind::wait || kind == Kind::events || kind == Kind::every; }

class Run {
  public:
    Run(MakeLab make, const Experiment &e, Plan plan, const RunSettings &settings, const sys::SignalFd &signals, Sink &sink)
        : e_(e), plan_(std::move(plan)), settings_(settings), signals_(signals), sink_(sink), own_(make(e, plan_, settings)),
          lab_(*own_) {
        if (settings.record) lab_.record_to(&settings.record->moments);
    }

    Result<RunOutcome> run() {
        std::vector<Step> steps = e_.steps;
        complete(steps);
        size_t first = 0;
        for (; first < steps.size() && steps[first].kind == Kind::set && !steps[first].key; ++first) TRY(set(steps[first]));
        if (settings_.record) settings_.record->plan = recorded_plan();
        Result<void> loaded = lab_.load();
        if (settings_.record && !loaded && loaded.error().kind == Errc::rejected) {
            settings_.record->refused = true;
            settings_.record->reason = loaded.error().message();
            settings_.record->log = loaded.error().log;
        }
        if (const Step *rejection = e_.rejection()) {
            if (settings_.emulate)
                return Unexpected(make_error(Errc::unsupported, "the emulator refuses no program: it has no verifier",
                                             "without --emulate the kernel is asked"));
            TRY(rejected(*rejection, loaded));
            return outcome_;
        }
        if (!loaded) return std::move(loaded).failure();
        TRY(lab_.attach());
        tell_attached();
        if (settings_.record) settings_.record->attached = lab_.attached();
        started_ns_ = sys::monotonic_ns();
        if (!settings_.command.empty()) TRY(start(settings_.command));
        TRY(do_steps(steps, first));
        TRY(rest());
        if (settings_.record) lab_.record_maps();
        return outcome_;
    }

  private:
    bool json() const { return settings_.form == OutputForm::json; }
    Result<void> out(std::string_view text) {
        if (settings_.quiet || text.empty()) return {};
        return sink_.out(text);
    }

    // What a replay needs of the plan: no instructions.
    Plan recorded_plan() const {
        Plan out = plan_;
        out.places.clear();
        for (ObjectSpec &spec : out.specs)
            for (ProgramSpec &program : spec.programs) {
                const std::string name = program.name;
                const uint32_t type = program.type;
                program = {};
                program.name = name, program.type = type;
            }
        return out;
    }

    // An experiment that says nothing of what is to be done observes until it is told to stop, and shows everything.
    void complete(std::vector<Step> &steps) const {
        const auto acts = [](const Step &step) {
            return step.kind != Kind::set && step.kind != Kind::print && step.kind != Kind::say && step.kind != Kind::expect &&
                   step.kind != Kind::measure;
        };
        const bool any = std::any_of(steps.begin(), steps.end(), acts);
        const bool prints = std::any_of(steps.begin(), steps.end(), [](const Step &step) { return step.kind == Kind::print; });
        const bool judges = std::any_of(steps.begin(), steps.end(),
                                        [](const Step &step) { return step.kind == Kind::expect || step.kind == Kind::measure; });
        if (!any) {
            Step step;
            step.kind = plan_.events.empty() ? Kind::wait : Kind::events;
            step.source = plan_.events.empty() ? "wait" : "events"; // as somebody would have written it
            const auto after = std::find_if(steps.begin(), steps.end(),
                                            [](const Step &each) { return each.kind != Kind::set && each.kind != Kind::say; });
            steps.insert(after, std::move(step));
        }
        if (prints || judges || !plan_.events.empty()) return;
        for (const Plan::MapPlace &each : plan_.maps) {
            Step step;
            step.kind = Kind::print;
            step.name = each.view.map;
            step.source = "print " + step.name;
            steps.push_back(std::move(step));
        }
    }

    // ---- waiting -------------------------------------------------------------------------------------------------------

    // When something is waited for, and not before: steps that only run programs need nothing of the system.
    Result<void> open() {
        if (epoll_.get() >= 0) return {};
        epoll_ = TRY(sys::epoll_create());
        if (signals_.fd() >= 0) TRY(sys::epoll_add(epoll_.get(), signals_.fd(), EPOLLIN, kSignal));
        for (int fd : lab_.ring_fds()) TRY(sys::epoll_add(epoll_.get(), fd, EPOLLIN | EPOLLET, kRings));
        return {};
    }
    Result<void> look_at_children() {
        for (size_t i = 0; i < children_.size(); ++i) {
            if (children_[i].ended()) continue;
            const std::optional<sys::Exit> exit = TRY(children_[i].poll());
            if (!exit) continue;
            TRY(sys::epoll_remove(epoll_.get(), children_[i].pidfd()));
            lab_.workload_ended(static_cast<uint32_t>(children_[i].pid()));
            lab_.set_number("workload.status", exit->signalled ? 128 + exit->code : exit->code);
            lab_.set_number("workload.seconds", static_cast<Number>(sys::monotonic_ns() - child_started_[i]) / kSecond);
        }
        return {};
    }
    bool children_ended() const {
        return std::all_of(children_.begin(), children_.end(), [](const sys::Child &child) { return child.ended(); });
    }
    Result<void> look_at_signals() {
        while (signals_.fd() >= 0 && TRY(signals_.read()) != 0) ++stops_;
        outcome_.stopped = stops_ != 0;
        if (stops_ == 1) lab_.set_number(kStopped, 1);
        if (stops_ > 1) lab_.set_number(kLeft, 1);
        return {};
    }
    // Sleeps until something happens, `until_ns` at the latest. What came is in stops_, children and the lab's records.
    Result<void> sleep(uint64_t until_ns) {
        TRY(open());
        int timeout = lab_.take_records() ? 0 : -1;
        const uint64_t now = sys::monotonic_ns();
        if (until_ns != UINT64_MAX)
            timeout = timeout == 0 || now >= until_ns
                          ? 0
                          : static_cast<int>(std::min<uint64_t>((until_ns - now + 999'999) / 1'000'000, 1'000'000));
        std::array<epoll_event, 8> events;
        TRY(sys::epoll_wait(epoll_.get(), events, timeout));
        TRY(look_at_signals());
        TRY(look_at_children());
        return {};
    }
    // Whether a wait is over for good, for whatever reason but its own.
    bool told_to_stop(bool endless) {
        if (stops_ == seen_stops_) return false;
        seen_stops_ = stops_;
        if (!endless || stops_ > 1) {
            outcome_.interrupted = true;
            lab_.set_number(kInterrupted, 1);
        }
        return true;
    }
    uint64_t deadline(double seconds) const {
        if (seconds <= 0) seconds = settings_.duration_s;
        return seconds > 0 ? sys::monotonic_ns() + static_cast<uint64_t>(seconds * 1e9) : UINT64_MAX;
    }

    // ---- steps ---------------------------------------------------------------------------------------------------------

    Result<void> do_steps(const std::vector<Step> &steps, size_t first = 0) {
        for (size_t i = first; i < steps.size() && stops_ < 2; ++i) {
            if (outcome_.interrupted &&
                (waits(steps[i].kind) || steps[i].kind == Kind::workload || steps[i].kind == Kind::trigger ||
                 steps[i].kind == Kind::packet || steps[i].kind == Kind::run))
                continue;
            lab_.begin_step(steps[i].source);
            if (settings_.replay) {
                outcome_.interrupted = lab_.number(kInterrupted).value_or(0) != 0;
                outcome_.stopped = lab_.number(kStopped).value_or(0) != 0;
                if (lab_.number(kLeft)) stops_ = 2;
            } else
                lab_.set_number("seconds", static_cast<Number>(sys::monotonic_ns() - started_ns_) / kSecond);
            TRY_IN(step(steps[i]), "{}:{}: {}", e_.name, steps[i].at.line, steps[i].source);
        }
        return {};
    }
    Result<void> step(const Step &step) {
        switch (step.kind) {
        case Kind::workload: return start(step.command);
        case Kind::wait: return wait(step);
        case Kind::events: return events(step);
        case Kind::print: return print(step);
        case Kind::say: return say(step);
        case Kind::clear: return lab_.clear(step.name);
        case Kind::set: return set(step);
        case Kind::trigger: return trigger(step);
        case Kind::packet:
        case Kind::run: return packet(step);
        case Kind::expect: return expect(step);
        case Kind::measure: return measure(step);
        case Kind::every: return every(step);
        case Kind::rejected: return {};
        }
        return {};
    }

    Result<void> start(const std::vector<std::string> &command) {
        if (settings_.replay) return {}; // what came of it is recorded
        TRY(open());
        const int output = settings_.form != OutputForm::text || settings_.quiet ? 2 : -1;
        Result<sys::Child> child = sys::Child::spawn(command, settings_.user, output);
        if (!child) return std::move(child).failure();
        children_.push_back(std::move(*child));
        child_started_.push_back(sys::monotonic_ns());
        TRY(sys::epoll_add(epoll_.get(), children_.back().pidfd(), EPOLLIN, kChild));
        TRY(lab_.workload_begins(static_cast<uint32_t>(children_.back().pid())));
        return children_.back().start();
    }

    Result<void> wait(const Step &step) {
        if (settings_.replay) return {};
        if (step.for_workload) {
            if (children_.empty()) return fail(Errc::invalid_argument, "no workload has been started");
            while (!children_ended()) {
                TRY(sleep(UINT64_MAX));
                if (told_to_stop(false)) break;
            }
            return {};
        }
        const bool endless = step.seconds == 0;
        const uint64_t end = deadline(step.seconds);
        while (sys::monotonic_ns() < end) {
            if (endless && !children_.empty() && children_ended()) break;
            TRY(sleep(end));
            if (told_to_stop(endless)) break;
        }
        return {};
    }

    Result<void> show_record(const Record &record) {
        const Plan::EventPlace &place = plan_.events[record.event];
        ShowOptions options;
        options.types = lab_.types_of(place.spec);
        options.names = &lab_;
        lab_.prepare_symbols(place.view, bytes_of(record.bytes));
        const Format *form = nullptr;
        for (const Format &each : e_.formats)
            if (each.event == place.view.event) form = &each;
        std::string text;
        json() ? append_json_event(text, place.view, bytes_of(record.bytes), options)
               : append_event(text, place.view, form, bytes_of(record.bytes), options);
        return out(text);
    }
    Result<void> events(const Step &step) {
        const bool endless = step.seconds == 0 && step.count == 0;
        const uint64_t end = deadline(step.seconds);
        uint64_t shown = 0;
        const auto show = [&]() -> Result<void> {
            (void)lab_.take_records();
            while (!lab_.pending().empty() && (step.count == 0 || shown < step.count)) {
                const Record record = std::move(lab_.pending().front());
                lab_.pending().pop_front();
                ++shown;
                TRY(show_record(record));
            }
            return {};
        };
        for (;;) {
            TRY(show());
            if (settings_.replay) return {};
            if (step.count != 0 && shown >= step.count) return {};
            // Whoever made events has ended: what they did has been read, once more from here on.
            if (step.seconds == 0 && !children_.empty() && children_ended()) return show();
            if (sys::monotonic_ns() >= end) return {};
            TRY(sleep(end));
            if (told_to_stop(endless)) return show();
        }
    }

    Result<void> print(const Step &step) {
        const FigureTable table = TRY(lab_.table(step.name));
        lab_.prepare_symbols(table);
        ShowOptions options;
        options.style = step.style;
        options.top = step.count;
        options.types = lab_.types(step.name);
        options.names = &lab_;
        std::string text;
        if (json() || step.style == Style::json)
            append_json_rows(text, table, options);
        else if (settings_.form == OutputForm::csv)
            append_csv_rows(text, table, options);
        else
            append_table(text, table, options);
        return out(text);
    }
    Result<void> say(const Step &step) {
        std::string line;
        for (const Piece &piece : step.pieces) {
            line += piece.words;
            if (!piece.has_value) continue;
            const std::string text = number_text(TRY(evaluate(piece.value, lab_)));
            const std::string padding(piece.width > text.size() ? piece.width - text.size() : 0, ' ');
            line += piece.right ? padding + text : text + padding;
        }
        std::string text;
        if (json()) {
            render::JsonLine(text, "message").text("text", line);
        } else if (settings_.form == OutputForm::text) {
            while (!line.empty()) { // a line for each of its lines
                const size_t end = std::min(line.find('\n'), line.size());
                render::append_line(text, line.substr(0, end));
                line.erase(0, end + 1);
            }
            if (step.pieces.empty()) text = "\n";
        }
        return out(text);
    }
    Result<void> set(const Step &step) {
        if (step.key) return lab_.set_element(*step.key, step.command[0]);
        return lab_.set_variable(step.name + step.text, step.command[0]);
    }

    Result<void> trigger(const Step &step) {
        if (settings_.replay) return {};
        long numbers[6] = {};
        if (step.command.size() > std::size(numbers))
            return fail(Errc::invalid_argument, "a function is given at most {} numbers", std::size(numbers));
        for (size_t i = 0; i < step.command.size(); ++i) {
            const std::string &text = step.command[i];
            if (!parse_whole(text, numbers[i])) return fail(Errc::invalid_argument, "{} is no number", text);
        }
#ifdef RAWBPF_LOADS_LIBRARIES
        void *function = function_of(step.name.c_str(), step.text.c_str());
        if (!function) return fail(Errc::not_found, "{} is no shared library with a function {}", step.name, step.text);
        using Function = long(long, long, long, long, long, long);
        const long result =
            reinterpret_cast<Function *>(function)(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]);
        lab_.set_number("trigger.result", result);
        return {};
#else
        return fail(Errc::unsupported, "this build is static: it loads no libraries");
#endif
    }

    Result<void> packet(const Step &step) {
        if (settings_.replay) return {};
        std::vector<std::byte> bytes;
        if (step.text.empty()) {
            // a program that is given nothing
        } else if (step.text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos && step.text.size() % 2 == 0) {
            for (size_t i = 0; i < step.text.size(); i += 2) {
                unsigned byte = 0;
                (void)std::from_chars(step.text.data() + i, step.text.data() + i + 2, byte, 16);
                bytes.push_back(static_cast<std::byte>(byte));
            }
        } else {
            const std::string text = TRY(sys::read_file(step.text, kMostPacket));
            bytes.assign(bytes_of(text).begin(), bytes_of(text).end());
        }
        const uint64_t times = std::max<uint64_t>(step.count, 1);
        if (times > INT32_MAX) return fail(Errc::invalid_argument, "a program is run at most {} times", INT32_MAX);
        return lab_.run_program(step, bytes, static_cast<uint32_t>(times));
    }

    Result<void> every(const Step &step) {
        if (settings_.replay) { // as many rounds as there were
            while (!step.body.empty() && stops_ < 2 && lab_.next_step_is(step.body.front().source)) TRY(do_steps(step.body));
            return {};
        }
        const bool endless = step.count == 0;
        const uint64_t end = endless ? deadline(0) : UINT64_MAX;
        uint64_t next = sys::monotonic_ns();
        for (uint64_t round = 0; endless || round < step.count; ++round) {
            next += static_cast<uint64_t>(step.seconds * 1e9);
            const uint64_t until = std::min(next, end);
            bool over = false;
            do { // once if the last round took longer than its time, too: signals, ends and records are seen here
                TRY(sleep(until));
                over = told_to_stop(endless) || (endless && !children_.empty() && children_ended());
            } while (sys::monotonic_ns() < until && !over);
            TRY(do_steps(step.body));
            if (over || outcome_.interrupted || sys::monotonic_ns() >= end) return {};
        }
        return {};
    }

    // ---- results -------------------------------------------------------------------------------------------------------

    Result<void> measure(const Step &step) {
        const Number value = TRY(evaluate(step.value, lab_));
        lab_.set_number(step.name, value);
        outcome_.measures.emplace_back(step.name, value);
        std::string text;
        if (json())
            render::JsonLine(text, "measure").text("name", step.name).raw("value") += number_text(value);
        else if (settings_.form == OutputForm::csv)
            append(text, "measure,{},{}\r\n", step.name, number_text(value));
        else
            append(text, "{} = {}\n", step.name, number_text(value));
        return out(text);
    }

    static std::string place_text(const std::vector<std::pair<std::string, Number>> &parts) {
        std::string out;
        for (size_t i = 0; i < parts.size(); ++i) {
            const auto same = [&](const auto &other) { return other.first == parts[i].first; };
            if (std::any_of(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(i), same)) continue;
            append(out, "{}{} is {}", out.empty() ? "" : ", ", parts[i].first, number_text(parts[i].second));
        }
        return out;
    }
    Result<void> judged(const Step &step, bool holds, std::string_view found,
                        std::vector<std::pair<std::string, Number>> parts = {}) {
        ++outcome_.expectations;
        outcome_.failed += !holds;
        if (!holds) outcome_.failures.push_back({step.at, step.source, std::string(found), std::move(parts)});
        std::string text;
        if (json()) {
            render::JsonLine(text, "expectation")
                .text("source", step.source)
                .number("line", step.at.line)
                .truth("holds", holds)
                .text_or_null("found", found);
            return out(text);
        }
        if (holds) return {};
        append(text, "{}:{}: expected otherwise\n", e_.name, step.at.line);
        append(text, "{:>5} | {}\n      | ^ {}\n", step.at.line, render::printable(step.source), render::printable(found));
        sink_.remark(text);
        return {};
    }
    Result<void> expect(const Step &step) {
        if (outcome_.interrupted) {
            ++outcome_.skipped;
            return {};
        }
        std::vector<std::pair<std::string, Number>> parts;
        const Number value = TRY(evaluate(step.value, lab_, &parts));
        const std::string found = place_text(parts);
        return judged(step, value != 0, found, std::move(parts));
    }
    Result<void> rejected(const Step &step, const Result<void> &loaded) {
        if (loaded) return judged(step, false, "the kernel took it");
        const Error &error = loaded.error();
        if (error.kind != Errc::rejected) return Unexpected(error);
        const bool holds = error.log.find(step.text) != std::string::npos || error.message().find(step.text) != std::string::npos;
        return judged(step, holds, holds ? std::string() : "the kernel refused it for another reason: " + error.message());
    }

    void tell_attached() {
        if (!settings_.verbose || settings_.quiet) return;
        for (const std::string &note : plan_.notes) sink_.remark(format("{}\n", render::printable(note)));
        for (const std::string &note : lab_.notes()) sink_.remark(format("{}\n", render::printable(note)));
        for (const std::string &what : lab_.attached()) sink_.remark(format("attached: {}\n", render::printable(what)));
    }
    // What nobody asked for, and would be missed.
    Result<void> rest() {
        const Number lost = lab_.number("events.lost").value_or(0), full = lab_.number("maps.full").value_or(0);
        if (lost != 0) sink_.remark(format("{} events were lost: they came faster than they were read\n", number_text(lost)));
        if (full != 0) sink_.remark(format("{} times a map had no room for one more element\n", number_text(full)));
        if (settings_.quiet) return {};
        if (outcome_.skipped != 0) sink_.remark(format("interrupted: {} expectations were not judged\n", outcome_.skipped));
        if (!json()) return {};
        std::string text;
        summary(text, lost, full);
        return out(text);
    }
    void summary(std::string &text, Number lost, Number full) {
        render::JsonLine line(text, "summary");
        line.number("expectations", outcome_.expectations)
            .number("failed", outcome_.failed)
            .number("skipped", outcome_.skipped)
            .truth("interrupted", outcome_.interrupted);
        line.raw("events") += number_text(lab_.number("events.count").value_or(0));
        line.raw("lost") += number_text(lost);
        line.raw("full") += number_text(full);
        {
            render::JsonObject measures(line.raw("measures"));
            for (const auto &[name, value] : outcome_.measures) measures.key(name) += number_text(value);
        }
    }

    const Experiment &e_;
    Plan plan_;
    const RunSettings &settings_;
    const sys::SignalFd &signals_;
    Sink &sink_;
    std::unique_ptr<Lab> own_;
    Lab &lab_;
    Fd epoll_;
    std::vector<sys::Child> children_; ///< end first
    std::vector<uint64_t> child_started_;
    uint64_t started_ns_ = 0;
    unsigned stops_ = 0, seen_stops_ = 0;
    RunOutcome outcome_;
};

} // namespace

Result<RunOutcome> run_in(MakeLab make, const Experiment &experiment, Plan plan, const RunSettings &settings,
                          const sys::SignalFd &signals, Sink &sink) {
    return Run(make, experiment, std::move(plan), settings, signals, sink).run();
}

} // namespace rawbpf::inline v0::experiment
