// The guest gets the experiment at the path that it has here, with everything that it names: objects, packets, libraries, and the
// programs of its workloads, copied from this machine with their shared libraries. So the figures of several kernels differ only
// because of the kernels.
#include "cli/run_guests.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/console.h"
#include "cli/guests.h"
#include "programs/compare/document.h"
#include "programs/experiment/series.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/link/user_functions.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf run";

/// What a guest has to bring along.
class Luggage {
  public:
    explicit Luggage(std::string folder) : folder_(std::move(folder)) {}

    Result<void> pack(const experiment::Experiment &experiment, const std::vector<std::string> &command) {
        for (const experiment::Source &source : experiment.sources) {
            if (source.is_c)
                return Unexpected(make_error(Errc::unsupported,
                                             format("{}:{}: a guest has no compiler for C", experiment.name, source.at.line),
                                             "compile it here, and let the experiment name the object: object FILE.bpf.o"));
            TRY(file(source.path.starts_with('/') ? source.path : folder_ + "/" + source.path));
        }
        for (const experiment::Step &one : experiment.steps) TRY(step(one));
        if (!command.empty()) TRY(program(command[0]));
        return {};
    }
    [[nodiscard]] const std::vector<std::string> &options() const { return options_; }

  private:
    Result<void> file(const std::string &path) {
        const std::string whole = TRY(whole_path(path));
        // As it is named, too: a link's name isn't its file's.
        add(whole, path.starts_with('/') ? path : working_directory() + "/" + path);
        return {};
    }
    void add(const std::string &here, const std::string &there) {
        std::string option = format("--file={}:{}", here, there);
        if (std::find(options_.begin(), options_.end(), option) == options_.end()) options_.push_back(std::move(option));
    }
    // By its bare name it is found there before busybox's of the same name.
    Result<void> program(const std::string &name) {
        if (name.find('/') != name.npos) return file(name);
        const std::string found = TRY(find_binary(name));
        add(TRY(whole_path(found)), "/usr/local/bin/" + name);
        return {};
    }
    Result<void> step(const experiment::Step &step) {
        using Kind = experiment::Step::Kind;
        for (const experiment::Step &inner : step.body) TRY(this->step(inner));
        if (step.kind == Kind::workload && !step.command.empty()) return program(step.command[0]);
        if (step.kind == Kind::trigger) {
            const std::string found = TRY(find_binary(step.name));
            add(TRY(whole_path(found)), found);
        }
        if ((step.kind == Kind::packet || step.kind == Kind::run) && sys::exists(step.text)) return file(step.text);
        return {};
    }

    std::string folder_;
    std::vector<std::string> options_;
};

/// Figures of all kernels in one table.
Result<void> append_series(const std::vector<std::pair<std::string, compare::Document>> &ends, const GuestExperiment &how,
                           std::string &out) {
    std::vector<std::string> variants;
    std::vector<std::pair<size_t, const compare::Figure *>> all;
    for (const auto &[kernel, document] : ends)
        for (const compare::Figure &figure : document.figures) {
            std::string name = figure.subject.empty() ? kernel : format("{} {}", kernel, figure.subject);
            const auto known = std::find(variants.begin(), variants.end(), name);
            all.emplace_back(static_cast<size_t>(known - variants.begin()), &figure);
            if (known == variants.end()) variants.push_back(std::move(name));
        }
    experiment::Series series(std::move(variants));
    for (const auto &one : all) series.add(one.first, one.second->name, one.second->values);
    how.form == "csv" ? series.append_csv(out) : series.append_text(out);
    if (how.instructions && how.form == "text") out += "Times are instructions of the guest: 1 ns is one.\n";
    return {};
}

} // namespace

int run_experiment_in_guests(const experiment::Experiment &experiment, const std::string &path, const GuestExperiment &how,
                             Output &output) {
    Luggage luggage(path.substr(0, path.rfind('/')));
    if (Result<void> packed = luggage.pack(experiment, how.command); !packed) return complain(kWho, packed.error());
    GuestRun run;
    run.options = {format("--file={}", path), format("--directory={}", working_directory()),
                   format("--instruction-ns={}", how.instructions ? 1 : 0), "--timeout=3600"};
    run.options.insert(run.options.end(), luggage.options().begin(), luggage.options().end());
    run.command = {"rawbpf", "run", "--format", how.series ? "json" : how.form};
    run.command.insert(run.command.end(), how.options.begin(), how.options.end());
    run.command.push_back(path);
    if (!how.command.empty()) {
        run.command.emplace_back("--");
        run.command.insert(run.command.end(), how.command.begin(), how.command.end());
    }
    std::vector<std::pair<std::string, compare::Document>> ends;
    const int status = run_in_guests(kWho, how.kernels, run, [&](const std::string &kernel, std::string &&out) -> Result<void> {
        if (out.empty()) return {}; // why was said
        if (how.series && how.form != "json") {
            ends.emplace_back(kernel, TRY(compare::read_document(out, kernel)));
            return {};
        }
        std::string text;
        if (how.form == "json")
            render::JsonLine(text, "guest").text("name", kernel).text("clock", how.instructions ? "instructions" : "host");
        else if (how.form == "text")
            text = format("== {}\n", kernel);
        output.writer().write(text + out);
        return output.writer().flush();
    });
    if (!how.series || how.form == "json" || ends.empty()) return status;
    std::string text;
    Result<void> written = append_series(ends, how, text);
    if (written) {
        output.writer().write(text);
        written = output.writer().flush();
    }
    if (!written && !reader_gone(written.error())) return complain(kWho, written.error(), 1);
    return status;
}

} // namespace rawbpf::inline v0::cli
