// Two executables, one command line.
//
//      rawbpf        profile, load, doctor ...: what every board has room for
//      rawbpf-lab    the same, and trace, custom, usdt trace, asm, disasm, exec, step, isa, helper, btf, link, gen skeleton,
//                    inspect, relocs, check, profile --otlp and --lines, other tools' formats
//
// The assembler, the emulator, the tracer and commands for a developer's own machine are a third of all code, and many boards
// need none of them. So they are in a second executable, which `rawbpf asm` runs by execve(2). It lies in the same folder.
// Without it everything else works, and its commands say what is missing.
#include "cli/lab.h"

#include <algorithm>
#include <sys/auxv.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kLabCommands[] = {"asm",     "btf", "check", "custom", "disasm", "exec",  "gen", "helper",
                                             "inspect", "isa", "link",  "relocs", "step",   "trace", "usdt"};
constexpr std::string_view kOfAllCommands[] = {"--help", "-h", "help", "man", "completion"};

bool is_one_of(std::string_view word, std::span<const std::string_view> list) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

} // namespace

std::string own_path() {
    if (Result<std::string> path = sys::read_link("/proc/self/exe")) return *path;
    const auto *name = reinterpret_cast<const char *>(getauxval(AT_EXECFN)); // a root without /proc
    return name ? name : "";
}

std::string lab_beside(std::string_view own_path) {
    constexpr std::string_view own = "rawbpf", lab = "rawbpf-lab";
    const size_t slash = own_path.rfind('/');
    const std::string_view folder = slash == std::string_view::npos ? "" : own_path.substr(0, slash + 1);
    const std::string_view name = own_path.substr(folder.size());
    std::string out(folder);
    out += lab;
    if (name.starts_with(own)) out += name.substr(own.size());
    return out;
}

namespace {

// Returns when it can't, with why.
Error try_lab(std::span<const std::string_view> words, const std::string &lab) {
    std::vector<std::string> argv{"rawbpf"};
    argv.insert(argv.end(), words.begin(), words.end());
    return sys::become(lab, argv);
}

} // namespace

int become_lab(std::span<const std::string_view> words) {
    const std::string lab = lab_beside(own_path());
    const Error error = try_lab(words, lab);
    return complain(format("rawbpf {}", words[0]),
                    make_error(Errc::unsupported,
                               format("this is done by rawbpf-lab, and {} can't be run: {}", lab, error.message()),
                               "put rawbpf-lab beside rawbpf; ./dev build and ./dev dist make both"),
                    3);
}

std::optional<int> pass_to_lab(std::span<const std::string_view> words) {
    const std::string_view first = words.empty() ? "--help" : words[0];
    const bool unknown = !first.starts_with('-') && !find_command(words);
    if (kHasLab) return {};
    if (is_one_of(first, kLabCommands) && !find_command(words)) return become_lab(words);
    if (unknown || is_one_of(first, kOfAllCommands))
        (void)try_lab(words, lab_beside(own_path())); // without it we have less to say
    return {};
}

} // namespace rawbpf::inline v0::cli
