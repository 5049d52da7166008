// `rawbpf words KIND [PREFIX]`: what a shell offers where a command takes something that only the kernel or rawbpf itself knows:
// loaded programs, probes, lessons. Hidden from the list of commands: completions ask it.
//
// Whoever presses Tab wants words or nothing, so what can't be found out (no privileges, no tracefs) is no word, and no message.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "cli/built.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/own_folder.h"
#include "programs/lab/lesson.h"
#include "programs/trace/match.h"
#include "programs/trace/probe.h"
#include "runtime/base/format.h"
#include "runtime/kernel/each_object.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr size_t kMostWords = 2000; // a shell asks whether to show them all

using Words = std::vector<std::string>;

// Names, and the ids of what has none.
void add_objects(Words &words, sys::ObjectKind kind) {
    (void)each_object(kind, [&](uint32_t id, Fd object) -> Result<bool> {
        const Result<std::string> name = object_name(kind, object.get());
        words.push_back(name && !name->empty() ? *name : std::to_string(id));
        return true;
    });
}

void add_lessons(Words &words) {
    if (const auto all = lab::all_lessons(lesson_folders()))
        for (const lab::Lesson &lesson : *all) words.push_back(lesson.name);
}

// The files and folders that a path may go on to, with what stands before it.
void add_paths(Words &words, std::string_view before, std::string_view path) {
    const std::string folder(path.substr(0, path.rfind('/') + 1));
    const auto names = sys::list_directory(folder.empty() ? "." : folder);
    if (!names) return;
    for (const std::string &name : *names) {
        if (!name.starts_with(path.substr(folder.size()))) continue;
        const auto status = sys::stat_file(folder + name);
        const bool is_folder = status && S_ISDIR(status->st_mode);
        words.push_back(format("{}{}{}{}", before, folder, name, is_folder ? "/" : ":"));
    }
}

// "tracepoint:sched:" and "tracepoint:net:" stand for their probes until one of them is chosen.
void add_probes(Words &words, std::string_view prefix) {
    const size_t colon = prefix.find(':');
    if (colon == prefix.npos) {
        for (auto kind = uint8_t(trace::ProbeKind::kprobe); kind <= uint8_t(trace::ProbeKind::usdt); ++kind)
            words.push_back(format("{}:", trace::probe_kind_name(trace::ProbeKind(kind))));
        return;
    }
    const std::string_view kind = prefix.substr(0, colon + 1), rest = prefix.substr(colon + 1);
    const bool has_file = kind == "uprobe:" || kind == "uretprobe:" || kind == "usdt:";
    if (has_file && rest.find(':') == rest.npos) return add_paths(words, kind, rest);
    const bool is_category = kind == "tracepoint:" && rest.find(':') == rest.npos;
    // A raw tracepoint has no category, and takes no glob.
    const Result<trace::ProbeSpec> spec = trace::parse_probe(
        kind == "raw_tp:" ? format("tracepoint:*:{}*", rest) : format("{}*{}", prefix, is_category ? ":*" : ""));
    if (!spec) return;
    const trace::MatchOptions options{.signatures = false};
    const Result<trace::Matched> found = kind == "usdt:" ? trace::match_usdt(*spec, options) : trace::match_probe(*spec, options);
    if (!found) return;
    for (const trace::ProbeSite &place : found->places) {
        if (is_category) {
            words.push_back(format("{}{}:", kind, place.category));
            continue;
        }
        std::string before(kind);
        if (has_file) append(before, "{}:", rest.substr(0, rest.find(':')));
        if (kind == "tracepoint:" || kind == "usdt:") append(before, "{}:", place.category);
        words.push_back(before +
                        place.function.substr(0, place.function.find('('))); // C++ and Rust: without the arguments' types
    }
}

int run_words(const Arguments &a) {
    const std::string_view kind = a.operands()[0], prefix = a.operands().size() > 1 ? a.operands()[1] : std::string_view();
    Words words;
    if (kind == "programs") add_objects(words, sys::ObjectKind::program);
    if (kind == "maps") add_objects(words, sys::ObjectKind::map);
    if (kind == "links") add_objects(words, sys::ObjectKind::link);
    if (kind == "btf") add_objects(words, sys::ObjectKind::btf);
    if (kind == "lessons") add_lessons(words);
    if (has(Part::trace) && kind == "probes") add_probes(words, prefix);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::string out;
    size_t count = 0;
    for (const std::string &word : words)
        // Other characters mean something to a shell.
        if (word.starts_with(prefix) && word.find_first_of(" \t\n'\"\\$`;&|<>()*?[]{}!#~") == word.npos && count++ < kMostWords)
            append(out, "{}\n", word);
    return print(printable_lines(out));
}

} // namespace

const Command kWords{.name = "words",
                     .summary = "list what an operand may be, for completions",
                     .description =
                         "Prints, one in a line, what begins with PREFIX: loaded programs, maps or BTF by their names, links by "
                         "their ids, lessons, or probes of rawbpf trace. What can't be found out isn't listed",
                     .operand = "programs|maps|links|btf|lessons|probes [PREFIX]",
                     .least_operands = 1,
                     .most_operands = 2,
                     .hidden = true,
                     .run = run_words};

} // namespace rawbpf::inline v0::cli
