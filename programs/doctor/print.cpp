// The checks as text and as JSON lines. PURE.
//
//      features
//        yes  ring buffers              5.8
//        no   kprobe.multi              5.18   EOPNOTSUPP; Linux 5.18 or newer, with CONFIG_FPROBE
//        ?    iterators                 5.8    can't be asked with these privileges; CAP_BPF ...
#include <algorithm>

#include "programs/doctor/doctor.h"

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::doctor {
namespace {

constexpr size_t kFewMissing = 6; // so many are named in the short text

std::string_view word(const std::optional<bool> &ok) { return !ok ? "?" : *ok ? "yes" : "no"; }

struct Counts {
    size_t yes = 0, no = 0, unknown = 0;
    void add(const std::optional<bool> &ok) { ++(!ok ? unknown : *ok ? yes : no); }
    [[nodiscard]] size_t all() const { return yes + no + unknown; }
};

void line(std::string &out, std::string_view ok, std::string_view name, size_t width, std::string_view since,
          std::string_view rest) {
    std::string text = format("  {:<4} {:<{}}  {:<6} {}", ok, name, width, since, rest);
    text.erase(text.find_last_not_of(' ') + 1);
    render::append_line(out, text);
}

std::string remark(const Check &check) {
    std::string out = check.detail;
    if (!check.fix.empty()) append(out, "{}fix: {}", out.empty() ? "" : "; ", check.fix);
    return out;
}

void summary_line(std::string &out, std::span<const Check> group, size_t width) {
    Counts counts;
    std::string missing;
    for (const Check &check : group) {
        counts.add(check.ok);
        if (check.ok == false) append(missing, "{}{}", missing.empty() ? "" : " ", check.name);
    }
    std::string rest = format("{} of {}", counts.yes, counts.all());
    if (counts.unknown > 0) append(rest, ", {} can't be told", counts.unknown);
    if (counts.no > 0 && counts.no <= kFewMissing) append(rest, "; not {}", missing);
    line(out,
         counts.no == 0 && counts.unknown == 0 ? "yes"
         : counts.yes > 0                      ? "some"
         : counts.no > 0                       ? "no"
                                               : "?",
         group.front().group, width, "", rest);
}

} // namespace

std::string as_text(std::span<const Check> checks, const RunInfo &run, bool all) {
    std::string out;
    render::append_printable(
        out, format("rawbpf {}, Linux {}, {}, {} CPU{}", run.version, run.kernel, run.arch, run.cpus, run.cpus == 1 ? "" : "s"));
    out += '\n';
    size_t width = 0;
    for (const Check &check : checks)
        if (all || !check.listed) width = std::max(width, check.name.size());
    bool in_lists = false;
    for (size_t i = 0; i < checks.size();) {
        size_t end = i;
        while (end < checks.size() && checks[end].group == checks[i].group) ++end;
        std::span<const Check> group = checks.subspan(i, end - i);
        i = end;
        if (group.front().listed && !all) {
            if (!in_lists) out += "\nlists (-v shows them)\n";
            in_lists = true;
            summary_line(out, group, width);
            continue;
        }
        append(out, "\n{}\n", group.front().group);
        for (const Check &check : group) line(out, word(check.ok), check.name, width, check.since, remark(check));
    }
    return out;
}

std::string as_json(std::span<const Check> checks, const RunInfo &run) {
    std::string out;
    render::append_json_header(out, run);
    Counts counts;
    for (const Check &check : checks) {
        counts.add(check.ok);
        render::JsonLine line(out, "check");
        line.text("group", check.group).text("name", check.name);
        check.ok ? line.truth("ok", *check.ok) : line.null("ok");
        line.text_or_null("detail", check.detail).text_or_null("since", check.since).text_or_null("fix", check.fix);
    }
    render::JsonLine(out, "summary").number("yes", counts.yes).number("no", counts.no).number("unknown", counts.unknown);
    return out;
}

} // namespace rawbpf::inline v0::doctor
