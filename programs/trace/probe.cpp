// KIND:WHAT, as bpftrace's users know it, with a colon between the parts. A path may have colons of its own, and so do the names
// of C++ ("std::sort"): the part behind the last single colon is the function.
#include "programs/trace/probe.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::trace {
namespace {

struct KindRow {
    std::string_view name;
    ProbeKind kind;
    std::string_view form;
};
constexpr KindRow kKinds[] = {
    {"function", ProbeKind::function, "GLOB"},
    {"kprobe", ProbeKind::kprobe, "kprobe:GLOB"},
    {"kretprobe", ProbeKind::kretprobe, "kretprobe:GLOB"},
    {"fentry", ProbeKind::fentry, "fentry:GLOB"},
    {"fexit", ProbeKind::fexit, "fexit:GLOB"},
    {"uprobe", ProbeKind::uprobe, "uprobe:PATH:GLOB"},
    {"uretprobe", ProbeKind::uretprobe, "uretprobe:PATH:GLOB"},
    {"tracepoint", ProbeKind::tracepoint, "tracepoint:CATEGORY:GLOB"},
    {"raw_tp", ProbeKind::raw_tp, "raw_tp:NAME"},
    {"syscall", ProbeKind::syscall, "syscall:GLOB"},
    {"usdt", ProbeKind::usdt, "usdt:PATH:PROVIDER:GLOB"},
};
// Other tools' words for the same.
constexpr KindRow kAliases[] = {
    {"kfunc", ProbeKind::fentry, ""}, {"kretfunc", ProbeKind::fexit, ""}, {"rawtracepoint", ProbeKind::raw_tp, ""},
    {"t", ProbeKind::tracepoint, ""}, {"k", ProbeKind::kprobe, ""},       {"kr", ProbeKind::kretprobe, ""},
    {"u", ProbeKind::uprobe, ""},     {"ur", ProbeKind::uretprobe, ""},   {"f", ProbeKind::fentry, ""},
    {"rt", ProbeKind::raw_tp, ""},    {"fr", ProbeKind::fexit, ""},       {"U", ProbeKind::usdt, ""},
};

const KindRow &row_of(ProbeKind kind) {
    for (const KindRow &row : kKinds)
        if (row.kind == kind) return row;
    __builtin_unreachable();
}

Error wrong(std::string_view text, std::string_view form) {
    return make_error(Errc::invalid_argument, format("probe \"{}\": not of the form {}", text, form));
}

Error unknown_kind(std::string_view text, std::string_view kind) {
    std::string all;
    for (const KindRow &row : kKinds)
        if (row.kind != ProbeKind::function) append(all, "{}{}", all.empty() ? "" : ", ", row.form);
    return make_error(Errc::invalid_argument, format("probe \"{}\": there is no kind of probe called {}", text, kind),
                      format("known are {}, and a bare GLOB for kernel functions", all));
}

// The last colon that isn't half of a "::".
size_t last_colon(std::string_view text) {
    for (size_t i = text.size(); i-- > 0;) {
        if (text[i] != ':') continue;
        if (i > 0 && text[i - 1] == ':') {
            --i;
            continue;
        }
        return i;
    }
    return std::string_view::npos;
}

// "f+16", "f+0x10": the name stays. "operator+" is one, and so is what has no number behind it.
bool take_offset(std::string &pattern, uint64_t &offset) {
    const size_t plus = pattern.rfind('+');
    if (plus == std::string::npos || plus == 0) return false;
    const std::optional<uint64_t> value = whole_number_or_hex<uint64_t>(std::string_view(pattern).substr(plus + 1));
    if (!value) return false;
    pattern.resize(plus);
    offset = *value;
    return true;
}

// Inside a function: by kprobe or uprobe alone.
Result<void> read_offset(ProbeSpec &spec) {
    if (!is_kernel_function(spec.kind) && !is_user_function(spec.kind)) return {};
    if (!take_offset(spec.pattern, spec.offset)) return {};
    if (spec.kind == ProbeKind::function) spec.kind = ProbeKind::kprobe;
    if (spec.pattern.find_first_of("*?") != std::string::npos)
        return Unexpected(make_error(Errc::invalid_argument,
                                     format("probe \"{}\": an offset counts from the beginning of one function", spec.text),
                                     "give its name, without * and ?"));
    if (spec.kind != ProbeKind::kprobe && spec.kind != ProbeKind::uprobe)
        return Unexpected(make_error(Errc::invalid_argument,
                                     format("probe \"{}\": {} has no offsets", spec.text, probe_kind_name(spec.kind)),
                                     "kprobe:NAME+OFFSET and uprobe:PATH:NAME+OFFSET stand inside a function"));
    return {};
}

} // namespace

std::string_view probe_kind_name(ProbeKind kind) { return row_of(kind).name; }

Result<ProbeSpec> parse_probe(std::string_view text) {
    ProbeSpec out;
    out.text = text;
    if (text.empty()) return fail(Errc::invalid_argument, "a probe without a name");
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        if (text.find('/') != std::string_view::npos)
            return Unexpected(make_error(Errc::invalid_argument, format("probe \"{}\": a path alone", text),
                                         format("did you mean uprobe:{}:FUNCTION?", text)));
        out.pattern = text;
        TRY(read_offset(out));
        return out;
    }
    const std::string_view word = text.substr(0, colon), rest = text.substr(colon + 1);
    const auto named = [&](const KindRow &row) { return row.name == word; };
    const KindRow *row = std::find_if(std::begin(kKinds) + 1, std::end(kKinds), named);
    if (row == std::end(kKinds)) {
        const KindRow *alias = std::find_if(std::begin(kAliases), std::end(kAliases), named);
        if (alias == std::end(kAliases)) return Unexpected(unknown_kind(text, word));
        row = &row_of(alias->kind);
    }
    out.kind = row->kind;
    out.pattern = rest;
    if (out.kind == ProbeKind::usdt) { // what parts it has depends on which files there are: match_usdt() takes it apart
        if (rest.empty()) return Unexpected(wrong(text, row->form));
        return out;
    }
    if (is_user_function(out.kind)) {
        const size_t split = last_colon(rest);
        if (split == std::string_view::npos || split == 0) return Unexpected(wrong(text, row->form));
        out.file = rest.substr(0, split);
        out.pattern = rest.substr(split + 1);
    } else if (out.kind == ProbeKind::tracepoint) {
        const size_t split = rest.find_first_of(":/"); // the kernel writes sched/sched_switch
        if (split == std::string_view::npos || split == 0) return Unexpected(wrong(text, row->form));
        out.category = rest.substr(0, split);
        out.pattern = rest.substr(split + 1);
    }
    if (out.pattern.empty()) return Unexpected(wrong(text, row->form));
    TRY(read_offset(out));
    if (!is_user_function(out.kind) && out.pattern.find_first_of(":/ ") != std::string::npos)
        return Unexpected(wrong(text, row->form));
    return out;
}

std::string ProbeSite::label() const { return kind == ProbeKind::usdt ? format("{}:{}", category, function) : function; }

std::string ProbeSite::describe() const {
    if (kind == ProbeKind::usdt) return format("usdt:{}:{}:{}", file, category, function);
    if (is_user_function(kind)) return format("{}:{}:{}", probe_kind_name(kind), file, function);
    if (kind == ProbeKind::tracepoint) return format("tracepoint:{}:{}", category, function);
    return format("{}:{}", probe_kind_name(kind), function);
}

bool any_user(const std::vector<ProbeSite> &places) {
    return std::any_of(places.begin(), places.end(), [](const ProbeSite &p) { return is_user_function(p.kind); });
}

bool any_trampoline(const std::vector<ProbeSite> &places) {
    return std::any_of(places.begin(), places.end(),
                       [](const ProbeSite &p) { return p.kind == ProbeKind::fentry || p.kind == ProbeKind::fexit; });
}

} // namespace rawbpf::inline v0::trace
