// `rawbpf helper`: the kernel's helpers, from the one table, and what this kernel says of them.
#include <string>
#include <string_view>
#include <vector>

#include "asm/helpers.h"
#include "asm/kinds.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/suggest.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "runtime/kernel/probe_helpers.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/shortage.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf helper";

constexpr Option kOptions[] = {format_option("text", "text json"), kJsonOption, syscalls_option(false)};

constexpr Example kExamples[] = {
    {"rawbpf helper", "all of them"},
    {"rawbpf helper map_lookup_elem", "its prototype, since when, and which programs may call it here"},
    {"rawbpf helper 5", "by number"},
    {"rawbpf helper --json", "all of them, for scripts"},
};

const HelperInfo *wanted(std::string_view word) {
    uint64_t id = 0;
    for (char c : word) {
        if (c < '0' || c > '9' || id > 100000) return find_helper(word);
        id = id * 10 + static_cast<uint64_t>(c - '0');
    }
    return find_helper(static_cast<int64_t>(id));
}

/// Which types of program may call it, as the running kernel says. Of some it says nothing: it refused them for another reason.
struct Callers {
    std::vector<std::string_view> here, unasked;
};

Callers callers_of(const HelperInfo &helper) {
    Callers out;
    for (uint32_t type = 1; type < kProgramTypeCount; ++type) {
        const Support support = probe_helper_in(type, helper.id).support;
        if (support == Support::yes) out.here.push_back(program_type_name(type));
        if (support == Support::unasked || support == Support::refused) out.unasked.push_back(program_type_name(type));
    }
    return out;
}

/// `callers`: nullptr: that wasn't asked.
void append_helper(std::string &out, const HelperInfo &helper, const Callers *callers) {
    render::JsonLine line(out, "helper");
    line.number("number", helper.id)
        .text("name", format("bpf_{}", helper.name))
        .text("prototype", helper.prototype())
        .text("since", format("{}.{}", helper.since.major, helper.since.minor))
        .truth("gpl_only", helper.gpl_only);
    if (!callers) return;
    render::append_json_texts(line.raw("here"), callers->here);
    render::append_json_texts(line.raw("not_asked"), callers->unasked);
}

int answer(const Arguments &a) {
    std::string out;
    const bool json = a.text(find(kOptions, "format")) == "json";
    if (json) append_json_header(out, a);
    if (a.operands().empty()) {
        for (const HelperInfo &helper : all_helpers()) {
            if (json) {
                append_helper(out, helper, nullptr);
                continue;
            }
            const std::string since = format("{}.{}", helper.since.major, helper.since.minor);
            append(out, "{:>3}  {:<5}{}  {}\n", helper.id, since, helper.gpl_only ? "GPL" : "   ", helper.prototype());
        }
        return print(out);
    }
    const std::string_view word = a.operands()[0];
    const HelperInfo *helper = wanted(word);
    if (!helper) {
        std::vector<std::string_view> names;
        for (const HelperInfo &known : all_helpers()) names.push_back(known.name);
        const Suggestion near = nearest(word.starts_with("bpf_") ? word.substr(4) : word, names);
        return complain(
            kWho,
            make_error(Errc::invalid_argument, format("there is no helper {}", word),
                       (near.close ? format("did you mean {}?\n", near.word) : std::string()) + "rawbpf helper lists them"),
            1);
    }
    const Callers callers = callers_of(*helper);
    if (json) {
        append_helper(out, *helper, &callers);
        return print(out);
    }
    append(out, "bpf_{}\n    prototype   {};\n    number      {}\n    since       Linux {}.{}\n    license     {}\n",
           helper->name, helper->prototype(), helper->id, helper->since.major, helper->since.minor,
           helper->gpl_only ? "for programs whose license is compatible with the GPL" : "for all programs");
    const auto in_words = [](const std::vector<std::string_view> &types) {
        std::string text;
        for (const std::string_view type : types) append(text, "{}{}", text.empty() ? "" : " ", type);
        return text;
    };
    if (!callers.here.empty()) {
        append(out, "    here        {}\n", in_words(callers.here));
        if (!callers.unasked.empty())
            append(out, "    not asked   {}: the kernel refuses a small program of these for another reason\n",
                   in_words(callers.unasked));
    } else {
        const Probed probed = probe_helper(helper->id);
        append(out, "    here        {}{}{}\n", probed.support == Support::no ? "no program type may call it" : "not known",
               probed.detail.empty() ? "" : ": ", probed.detail);
    }
    return print(out);
}

// An answer that came of a shortage is none: EMFILE isn't "this kernel doesn't have it".
int run_helper(const Arguments &a) {
    sys::Shortage shortage;
    const int status = answer(a);
    const std::string text = shortage.text();
    if (text.empty()) return status;
    say(format("rawbpf helper: some of it may be wrong, since the machine was short of something: {}\n", text));
    return status == 0 ? 1 : status;
}

} // namespace

const Command kHelper{
    .name = "helper",
    .summary = "show what BPF programs can call",
    .description = "Lists the kernel's helper functions with their numbers and prototypes, or describes one: the first kernel "
                   "that has it, whether it is for GPL-compatible programs only, and which types of program may call it. rawbpf "
                   "asks the running kernel for the last, with small programs that it never attaches; this needs privileges.\n\n"
                   "The list ends with Linux 6.2: since then the kernel adds functions that BTF describes (kfuncs) instead.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "NAME",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_helper,
};

} // namespace rawbpf::inline v0::cli
