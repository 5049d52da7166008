// Runs `clang --target=bpf`. The text goes in by a file in memory, which the child opens as /proc/PID/fd/N, and the object comes
// back by another one that is its standard output: nothing is left in a folder, whatever happens. A line marker in front says
// whose line 1 it is, so that clang's carets and the object's line information name the experiment.
#include "programs/experiment/c_source.h"

#include <array>
#include <optional>

#include "asm/builder.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/memory_file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostObject = 64 << 20;
// The plain name first; distributions install several, numbered.
constexpr std::array kCompilers = {"clang",    "clang-21", "clang-20", "clang-19", "clang-18",
                                   "clang-17", "clang-16", "clang-15", "clang-14"};

std::string by_descriptor(const Fd &fd) { return format("/proc/{}/fd/{}", sys::own_pid(), fd.get()); }

// nullopt: there is no program of that name.
Result<std::optional<sys::Exit>> run(std::vector<std::string> command, const Fd &output) {
    Result<sys::Child> child = sys::Child::spawn(command, {}, output.get());
    Result<void> started = child ? child->start() : Result<void>(std::move(child).failure());
    if (!started) {
        if (started.error().kind == Errc::not_found) return std::optional<sys::Exit>();
        return std::move(started).failure();
    }
    return std::optional<sys::Exit>(TRY(child->wait()));
}

} // namespace

Result<std::string> compile_c(const CSource &source) {
    std::string path = source.path;
    Fd input;
    if (path.empty()) {
        input = TRY(sys::memory_file("experiment.c"));
        const std::string text = format("# 1 \"{}\"\n{}", source.name, source.text);
        TRY(sys::write_all(input.get(), text.data(), text.size()));
        path = by_descriptor(input);
    }
    std::vector<std::string> command = {"", "--target=bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-x", "c", "-c", "-o", "-", path};
    command.push_back(format("-D__TARGET_ARCH_{}", kHost.target));
    for (const std::string &folder : source.folders) command.push_back("-I" + folder);
    for (const char *compiler : kCompilers) {
        const Fd output = TRY(sys::memory_file("experiment.o"));
        command[0] = compiler;
        const std::optional<sys::Exit> exit = TRY(run(command, output));
        if (!exit) continue;
        if (exit->signalled || exit->code != 0)
            return fail(Errc::bad_input, "{} doesn't compile it: it {}", compiler, exit->text());
        return sys::read_file(by_descriptor(output), kMostObject);
    }
    return Unexpected(make_error(Errc::unsupported, "programs in C need clang, and there is none here",
                                 "compile it elsewhere (clang --target=bpf -mcpu=v3 -O2 -g -c FILE.c), then: object FILE.o"));
}

} // namespace rawbpf::inline v0::experiment
