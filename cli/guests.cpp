// A guest is booted by a script in Python, which fetches kernels, writes the root and starts QEMU. The guest gets a copy of this
// executable and of the shared libraries that it is linked with.
#include "cli/guests.h"

#include <algorithm>
#include <cstdint>
#include <fcntl.h>
#include <utility>

#include "cli/console.h"
#include "cli/own_folder.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/link/user_functions.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory_file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {

Result<std::vector<std::string>> guest_command() {
    const std::string own = own_folder();
    std::string script;
    for (const char *folder : {"/../share/rawbpf/vm/run", "/../tests/vm/run"})
        if (script.empty() && sys::exists(own + folder)) script = own + folder;
    if (script.empty())
        return Unexpected(make_error(Errc::unsupported, "the scripts that boot guests aren't installed here",
                                     format("expected: {}/../share/rawbpf/vm, which meson install puts there", own)));
    Result<std::string> python = find_binary("python3");
    if (!python) return Unexpected(make_error(Errc::unsupported, "booting a guest needs python3, which isn't installed here"));
    return std::vector<std::string>{*python, script, "--self", sys::read_link("/proc/self/exe").value_or(own + "/rawbpf")};
}

Result<GuestEnd> run_in_guest(const GuestRun &run) {
    std::vector<std::string> words = TRY(guest_command());
    words.push_back(run.kernel);
    words.emplace_back("--quiet");
    words.insert(words.end(), run.options.begin(), run.options.end());
    words.emplace_back("--");
    words.insert(words.end(), run.command.begin(), run.command.end());
    const Fd collected = TRY(sys::memory_file("rawbpf-guest"));
    Result<sys::Child> child = sys::Child::spawn(words, {}, collected.get());
    if (!child) return std::move(child).failure();
    TRY(child->start());
    const sys::Exit exit = TRY(child->wait());
    GuestEnd out;
    out.status = exit.signalled ? 128 + exit.code : exit.code;
    out.out = TRY(sys::read_file(format("/proc/self/fd/{}", collected.get()), size_t{1} << 30));
    return out;
}

int run_in_guests(std::string_view who, std::span<const std::string> kernels, const GuestRun &run,
                  const std::function<Result<void>(const std::string &kernel, std::string &&out)> &each) {
    int status = 0;
    for (const std::string &kernel : kernels) {
        GuestRun one = run;
        one.kernel = kernel;
        Result<GuestEnd> end = run_in_guest(one);
        if (!end) return complain(who, end.error());
        if (end->status != 0) say(format("{}: {}: exit status {}\n", who, kernel, end->status));
        if (end->status != 0 && (status == 0 || status == 4)) status = end->status;
        if (Result<void> done = each(kernel, std::move(end->out)); !done)
            return reader_gone(done.error()) ? 0 : complain(who, done.error());
    }
    return status;
}

Result<std::string> whole_path(std::string_view path) {
    const Fd fd = TRY(sys::open(std::string(path), O_PATH));
    return sys::read_link(format("/proc/self/fd/{}", fd.get()));
}

std::string working_directory() { return sys::read_link("/proc/self/cwd").value_or(std::string("/")); }

Result<std::vector<std::string>> kernel_names(std::string_view text) {
    std::vector<std::string> out;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        if (end == at)
            return Unexpected(make_error(Errc::invalid_argument, format("--kernel {}: a name is empty", text),
                                         "rawbpf vm --list lists the names: --kernel 5.10,6.12"));
        out.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

} // namespace rawbpf::inline v0::cli
