// Parameters. `$name` is replaced in the text before anything else is read, so a parameter can be a number, a name or a path;
// carets stand under the line as it reads then.
#include <algorithm>

#include "asm/nearest.h"
#include "programs/experiment/parse_characters.h"
#include "programs/experiment/parsing.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostLines = 100'000, kMostLineBytes = 16'384, kMostValueBytes = 4096;

} // namespace

Parser::Parser(std::string_view text, std::string_view name, const std::vector<Setting> &settings) {
    out_.experiment.name = name;
    out_.mistakes = Mistakes(std::string(name));
    expand(text, settings);
}

void Parser::expand(std::string_view text, const std::vector<Setting> &settings) {
    std::vector<std::string_view> lines;
    while (!text.empty() && lines.size() < kMostLines) {
        const size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    Experiment &e = out_.experiment;
    for (const std::string_view line : lines) e.lines.emplace_back(line.substr(0, kMostLineBytes));
    for (size_t i = 0; i < lines.size(); ++i)
        if (lines[i].size() > kMostLineBytes)
            fail({static_cast<uint32_t>(i) + 1, 1},
                 format("a line has at most {} bytes, this one has {}", kMostLineBytes, lines[i].size()));
    if (!text.empty()) fail({kMostLines, 1}, format("an experiment has at most {} lines", kMostLines));
    for (size_t i = 0; i < e.lines.size(); ++i)
        if (first_word(e.lines[i]) == "param") read_param(e.lines[i], static_cast<uint32_t>(i) + 1, settings);
    for (const Setting &setting : settings) {
        const auto named = [&](const Param &param) { return param.name == setting.name; };
        if (std::any_of(e.params.begin(), e.params.end(), named)) continue;
        Nearest near(setting.name);
        for (const Param &param : e.params) near.offer(param.name);
        std::string hint = near.hint();
        if (hint.empty() && !e.params.empty()) {
            hint = "there are";
            for (const Param &param : e.params) hint += " " + param.name;
        }
        out_.mistakes.add(e.lines, {}, format("there is no parameter {}", setting.name), std::move(hint));
    }
    broken_.resize(e.lines.size());
    CBraces c_code; // there # begins no comment
    for (size_t i = 0; i < e.lines.size(); ++i) {
        const std::string_view bare = trimmed(e.lines[i]);
        const bool inside = c_code.open();
        if (inside || begins_c(bare)) c_code.read(inside ? bare : "{");
        if (first_word(bare) == "param" || bare.find('$') == std::string_view::npos) continue;
        const size_t comment = inside ? e.lines[i].size() : comment_of(e.lines[i]);
        const size_t before = out_.mistakes.count();
        std::string expanded = expand_line(std::string_view(e.lines[i]).substr(0, comment), static_cast<uint32_t>(i) + 1);
        broken_[i] = out_.mistakes.count() != before;
        expanded += std::string_view(e.lines[i]).substr(comment);
        e.lines[i] = std::move(expanded);
    }
    for (const std::string &line : e.lines) {
        const std::string_view bare = trimmed(line);
        if (bare.empty() || bare.starts_with("#!")) continue;
        if (bare.starts_with('#'))
            e.title = trimmed(
                bare.substr(bare.find_first_not_of('#') == std::string_view::npos ? bare.size() : bare.find_first_not_of('#')));
        break;
    }
}

void Parser::read_param(std::string_view line, uint32_t number, const std::vector<Setting> &settings) {
    Param param;
    size_t at = line.find("param") + 5;
    const auto column = [&] { return TextPlace{number, static_cast<uint32_t>(at) + 1}; };
    const size_t comment = comment_of(line);
    if (comment < line.size()) param.help = trimmed(line.substr(comment + 1));
    line = line.substr(0, comment);
    while (at < line.size() && is_blank(line[at])) ++at;
    param.at = column();
    const size_t begin = at;
    while (at < line.size() && in_name(line[at])) ++at;
    param.name = line.substr(begin, at - begin);
    if (param.name.empty() || is_digit(param.name[0])) {
        fail(param.at, "expected a parameter's name: param NAME = VALUE");
        return;
    }
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || line[at] != '=') {
        fail(column(), format("expected `=` and the value that {} has when nobody sets it", param.name));
        return;
    }
    ++at;
    std::string_view value = trimmed(line.substr(at));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
        value = value.substr(1, value.size() - 2);
    param.value = value;
    for (const Param &other : out_.experiment.params)
        if (other.name == param.name) {
            fail(param.at, format("there is a parameter {} already, in line {}", param.name, other.at.line));
            return;
        }
    for (const Setting &setting : settings)
        if (setting.name == param.name) param.value = setting.value;
    if (param.value.size() > kMostValueBytes || param.value.find('\n') != std::string::npos) {
        fail(param.at, format("the value of {} is too long, or has more than one line", param.name));
        param.value.clear();
    }
    out_.experiment.params.push_back(std::move(param));
}

std::string Parser::expand_line(std::string_view line, uint32_t number) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
        if (line[i] != '$') {
            out += line[i];
            continue;
        }
        const TextPlace at{number, static_cast<uint32_t>(i) + 1};
        if (i + 1 < line.size() && line[i + 1] == '$') {
            out += '$';
            ++i;
            continue;
        }
        const bool braces = i + 1 < line.size() && line[i + 1] == '{';
        const size_t begin = i + 1 + braces;
        size_t end = begin;
        while (end < line.size() && in_name(line[end])) ++end;
        const std::string_view wanted = line.substr(begin, end - begin);
        if (wanted.empty() || (braces && (end == line.size() || line[end] != '}'))) {
            fail(at, "expected a parameter's name behind `$`", "`$$` is one `$`");
            return std::string(line);
        }
        const Param *found = nullptr;
        for (const Param &param : out_.experiment.params)
            if (param.name == wanted) found = &param;
        if (!found) {
            Nearest near(wanted);
            for (const Param &param : out_.experiment.params) near.offer(param.name);
            std::string hint = near.hint();
            fail(at, format("there is no parameter {}", wanted),
                 hint.empty() ? format("param {} = VALUE makes one; `$$` is one `$`", wanted) : hint);
            return std::string(line);
        }
        if (out.size() + found->value.size() > kMostLineBytes) {
            fail(at, format("with the parameters' values the line has more than {} bytes", kMostLineBytes));
            return std::string(line);
        }
        out += found->value;
        i = end + braces - 1;
    }
    return out;
}

} // namespace rawbpf::inline v0::experiment
