// `rawbpf version`, also `rawbpf --version`: one line, nothing asked of the kernel, so that a script can call it freely.
#include <string>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "programs/xz.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Option kOptions[] = {verbose_option("also what this build can and can't do")};

int run_version(const Arguments &arguments) {
    bool verbose = arguments.has(find(kOptions, "verbose"));
    if (!verbose) return print("rawbpf " RAWBPF_VERSION "\n");
    return print(std::string("rawbpf " RAWBPF_VERSION "\n" RAWBPF_FEATURES) +
                 (knows_xz() ? ", .gnu_debugdata\n" : ", no .gnu_debugdata (liblzma)\n"));
}

} // namespace

const Command kVersion{
    .name = "version",
    .summary = "print the version",
    .description = "Prints the version of rawbpf. rawbpf --version does the same.",
    .options = kOptions,
    .run = run_version,
};

} // namespace rawbpf::inline v0::cli
