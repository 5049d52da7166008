#include "cli/run_words.h"

#include "cli/view.h"
#include "programs/render/ledger.h"

namespace rawbpf::inline v0::cli {

void say_ledger(std::string_view who, const session::RunEnd &end, std::string_view noun) {
    std::string text;
    append_advice(text, who, end.cost.advice);
    say(text + render::ledger_text(who, end.run, end.ledger, end.cost, noun));
}

void say_languages(const session::RunEnd &end) {
    for (const std::string &note : end.languages) say(format("  languages   {}\n", note));
}

void say_warnings(std::string_view who, const Arguments &a, const session::RunEnd &end) {
    for (const std::string &warning : end.warnings) say(format("{}: {}\n", who, warning));
    say_ending(who, a, end.ending);
}

} // namespace rawbpf::inline v0::cli
