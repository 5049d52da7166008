// `rawbpf version`, also `rawbpf --version`: one line, nothing asked of the kernel, so that a script can call it freely.
#include <algorithm>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/this_build.h"
#include "programs/render/json_line.h"
#include "programs/xz.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Option kOptions[] = {verbose_option("also what this build can and can't do"), format_option("text", "text json"),
                               kJsonOption};

// RAWBPF_FEATURES (cli/this_build.h) is one text: "JSON, no OTLP, ...".
std::string json_text(const Arguments &arguments) {
    std::string out, has, lacks;
    append_json_header(out, arguments);
    std::string_view rest = RAWBPF_FEATURES;
    while (!rest.empty()) {
        std::string_view feature = rest.substr(0, rest.find(", "));
        rest.remove_prefix(std::min(rest.size(), feature.size() + 2));
        std::string &list = feature.starts_with("no ") ? lacks : has;
        if (feature.starts_with("no ")) feature.remove_prefix(3);
        if (!list.empty()) list += ',';
        render::append_json(list, feature.substr(0, feature.find(" (")));
    }
    std::string &last = knows_xz() ? has : lacks;
    last += last.empty() ? "\".gnu_debugdata\"" : ",\".gnu_debugdata\"";
    {
        render::JsonLine line(out, "version");
        line.text("version", RAWBPF_VERSION).raw("has") += '[' + has + ']';
        line.raw("lacks") += '[' + lacks + ']';
    }
    return out;
}

int run_version(const Arguments &arguments) {
    if (arguments.text(find(kOptions, "format")) == "json") return print(json_text(arguments));
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
