// Prints a probe as text and as JSON. Provider, name and arguments are bytes that another program chose: they are escaped for
// a terminal line by line, in JSON string by string.
#include "programs/usdt/print.h"

#include <algorithm>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::usdt {
namespace {

using render::JsonLine;
using render::JsonObject;

constexpr size_t kWidestName = 44;

void heading(std::string &out, const Binary &binary, const std::vector<Probe> &probes) {
    std::vector<const Site *> sites;
    sites.reserve(probes.size());
    for (const Probe &probe : probes) sites.push_back(&probe.site);
    stable_sort(sites, [](const Site *a, const Site *b) {
        return a->provider != b->provider ? a->provider < b->provider : a->name < b->name;
    });
    size_t distinct = 0;
    for (size_t i = 0; i < sites.size(); ++i)
        distinct += i == 0 || sites[i - 1]->name != sites[i]->name || sites[i - 1]->provider != sites[i]->provider;
    render::append_line(out, format("{}: {} at {} site{}, {}", binary.name(),
                                    distinct == 1 ? "1 probe" : format("{} probes", distinct), probes.size(),
                                    probes.size() == 1 ? "" : "s", machine_name(binary.elf().machine(), binary.elf().is_64())));
}

size_t name_width(const std::vector<Probe> &probes) {
    size_t width = 0;
    for (const Probe &probe : probes) width = std::max(width, probe.site.provider.size() + 1 + probe.site.name.size());
    return std::min(width, kWidestName);
}

void append_name(std::string &out, const Probe &probe, size_t width) {
    const size_t from = out.size();
    out += probe.site.provider;
    out += ':';
    out += probe.site.name;
    if (const size_t used = out.size() - from; used < width) out.append(width - used, ' ');
    append(out, "  {:#x}", probe.site.address);
}

void append_argument(std::string &out, const Argument &argument) {
    if (argument.problem.empty())
        append(out, "{} {}", type_name(argument), location_text(argument));
    else
        append(out, "? {}", argument.spec);
}

void append_arguments(std::string &out, const Probe &probe) {
    for (const Argument &argument : probe.arguments) {
        out += &argument == probe.arguments.data() ? "  " : ", ";
        append_argument(out, argument);
    }
}

void append_strings(std::string &out, const std::vector<std::string> &list) {
    out += '[';
    for (const std::string &text : list) {
        if (&text != list.data()) out += ',';
        render::append_json(out, text);
    }
    out += ']';
}

void append_fields(JsonObject &json, const Binary &binary, const Probe &probe, Explain explain, bool count) {
    json.text("path", binary.name()).text("provider", probe.site.provider).text("name", probe.site.name);
    json.hex("address", probe.site.address);
    if (probe.file_offset)
        json.number("file_offset", *probe.file_offset);
    else
        json.null("file_offset");
    if (probe.site.semaphore != 0)
        json.hex("semaphore", probe.site.semaphore);
    else
        json.null("semaphore");
    std::string &list = json.raw("args");
    list += '[';
    for (const Argument &argument : probe.arguments) {
        if (&argument != probe.arguments.data()) list += ',';
        JsonObject one(list);
        one.text("spec", argument.spec);
        if (argument.size != 0)
            one.number("size", argument.size);
        else
            one.null("size");
        one.truth("signed", argument.is_signed);
        if (argument.is_float) one.truth("float", true);
        if (argument.problem.empty())
            one.text("location", location_text(argument));
        else
            one.null("location").text("problem", argument.problem);
        if (count) one.number("insns", count_instructions(argument));
        if (!explain) continue;
        std::vector<std::string> instructions = explain(argument);
        for (std::string &text : instructions) text.resize(text.find_last_not_of(' ', text.find('#') - 1) + 1); // no comments
        append_strings(one.raw("instructions"), instructions);
    }
    list += ']';
}

} // namespace

void append_explanation(std::string &out, std::span<const Argument> arguments, Explain explain) {
    for (size_t i = 0; i < arguments.size(); ++i) {
        const Argument &argument = arguments[i];
        std::string head = format("      arg{}  {}  ", i, argument.spec);
        if (argument.problem.empty())
            append_argument(head, argument);
        else
            append(head, "can't be fetched: {}", argument.problem);
        render::append_line(out, head);
        for (const std::string &insn : explain(argument)) render::append_line(out, "            " + insn);
    }
}

void append_list_text(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain) {
    heading(out, binary, probes);
    const size_t width = name_width(probes);
    for (const Probe &probe : probes) {
        std::string text = "  ";
        append_name(text, probe, width);
        if (probe.site.semaphore != 0) append(text, "  semaphore {:#x}", probe.site.semaphore);
        append_arguments(text, probe);
        render::append_line(out, text);
        if (explain) append_explanation(out, probe.arguments, explain);
    }
}

void append_list_json(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain) {
    for (const Probe &probe : probes) {
        JsonLine json(out, "usdt");
        append_fields(json, binary, probe, explain, false);
    }
}

void append_check_text(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain, Tally &tally) {
    heading(out, binary, probes);
    const size_t width = name_width(probes);
    for (const Probe &probe : probes) {
        const Verdict verdict = check_probe(binary, probe);
        ++tally.sites;
        tally.bad += !verdict.problems.empty();
        std::string text = verdict.problems.empty() ? "  ok   " : "  BAD  ";
        append_name(text, probe, width);
        append(text, "  {}", verdict.nop.kind.empty() ? "no nop" : verdict.nop.kind);
        if (probe.site.semaphore != 0) text += ", semaphore";
        size_t fetched = 0, instructions = 0;
        for (const Argument &argument : probe.arguments) {
            fetched += argument.problem.empty();
            instructions += count_instructions(argument);
        }
        if (!probe.arguments.empty())
            append(text, ", {} of {} argument{} in {} instruction{}", fetched, probe.arguments.size(),
                   probe.arguments.size() == 1 ? "" : "s", instructions, instructions == 1 ? "" : "s");
        render::append_line(out, text);
        for (const std::string &problem : verdict.problems) render::append_line(out, "         " + problem);
        if (explain) append_explanation(out, probe.arguments, explain);
    }
}

void append_check_json(std::string &out, const Binary &binary, const std::vector<Probe> &probes, Explain explain, Tally &tally) {
    for (const Probe &probe : probes) {
        const Verdict verdict = check_probe(binary, probe);
        ++tally.sites;
        tally.bad += !verdict.problems.empty();
        JsonLine json(out, "usdt");
        append_fields(json, binary, probe, explain, true);
        json.text_or_null("nop", verdict.nop.kind).truth("ok", verdict.problems.empty());
        append_strings(json.raw("problems"), verdict.problems);
    }
}

void append_tally_text(std::string &out, const Tally &tally) {
    if (tally.bad == 0)
        append(out, "{} site{}, all sound\n", tally.sites, tally.sites == 1 ? "" : "s");
    else
        append(out, "{} site{}, {} not sound\n", tally.sites, tally.sites == 1 ? "" : "s", tally.bad);
}
void append_tally_json(std::string &out, const Tally &tally) {
    JsonLine(out, "summary").number("sites", tally.sites).number("sound", tally.sites - tally.bad).number("bad", tally.bad);
}

} // namespace rawbpf::inline v0::usdt
