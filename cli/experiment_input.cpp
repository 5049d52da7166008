// Reads an experiment, given by a file or a bare name, so that its objects can be loaded, verified or explained. All commands
// that read experiments use this file.
#include "cli/experiment_input.h"

#include <string_view>
#include <utility>

#include "cli/console.h"
#include "cli/own_folder.h"
#include "programs/experiment/surroundings.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {

std::vector<std::string> experiment_folders() {
    const std::string own = own_folder();
    if (own.empty()) return {};
    return {own + "/../share/rawbpf/experiments/", own + "/../programs/experiment/tools/"};
}

Result<InputFile> open_experiment(std::string_view name) {
    constexpr size_t kMost = 1 << 20;
    if (name.find('/') == std::string_view::npos && name != "-" && !sys::exists(std::string(name))) {
        for (const std::string &folder : experiment_folders())
            for (std::string_view end : {"", ".exp"})
                if (const std::string path = format("{}{}{}", folder, name, end); sys::exists(path))
                    return InputFile::open(path, kMost);
        if (!name.ends_with(".exp"))
            return Unexpected(make_error(Errc::not_found, format("there is no file and no experiment {}", name),
                                         "rawbpf run --list shows those that come with rawbpf"));
    }
    return InputFile::open(name, kMost);
}

Result<void> say_mistakes(const experiment::Mistakes &mistakes, std::string_view name) {
    if (!mistakes.any()) return {};
    say(mistakes.report());
    if (mistakes.kind() != Errc::bad_input) return fail(mistakes.kind(), "{}: nothing was done", name);
    return fail(Errc::bad_input, "{}: {} mistake{}, nothing was done", name, mistakes.count(), mistakes.count() == 1 ? "" : "s");
}

Result<PreparedExperiment> prepare_experiment(const InputFile &file, const std::vector<experiment::Setting> &settings) {
    PreparedExperiment out;
    const std::string_view text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
    experiment::Parsed parsed = experiment::parse(text, file.name(), settings);
    TRY(say_mistakes(parsed.mistakes, file.name()));
    out.experiment = std::move(parsed.experiment);
    // Headers for programs in C: installed, and those of the source tree that this was built in.
    const std::string own = own_folder();
    const experiment::LiveSurroundings live(
        {own + "/../include/rawbpf", own + "/../include", own + "/../programs/include", own + "/.."});
    out.plan = TRY(experiment::make_plan(out.experiment, file.name().substr(0, file.name().rfind('/') + 1), live.surroundings(),
                                         parsed.mistakes));
    TRY(say_mistakes(parsed.mistakes, file.name()));
    return out;
}

} // namespace rawbpf::inline v0::cli
