// A verdict, explained: everything that is shown of it, as a value; and as text, JSON and a page.
#pragma once

#include <string>
#include <vector>

#include "programs/explain/causes.h"
#include "programs/explain/remedy.h"
#include "programs/explain/trace.h"

namespace rawbpf::inline v0::explain {

/// Of one program.
struct Explanation {
    const ObjectSpec &spec;
    const ProgramSpec &program;
    ProgramPlaces places;
    Trace trace;
    Refusal refusal;              ///< refused: what, where, why, and what helps
    std::vector<uint32_t> path;   ///< refused: the steps that lead there
    Chain chain;                  ///< refused: from where the bad value began
    std::vector<size_t> shortest; ///< refused: of `path`, what is needed to get there
    Remedy remedy;
};

/// `types`: a kernel's, for near names; may be nullptr. spec and program must outlive what is returned.
[[nodiscard]] Explanation explain(const ObjectSpec &spec, const ProgramSpec &program, Trace trace, const btf::Btf *types);

/// Three lines: the cause, the path, the remedy. Empty: it wasn't refused. `alone`: else the refusal and its hint stand above,
/// and what they say isn't said again.
[[nodiscard]] std::string short_text(const Explanation &explanation, bool alone = true);

/// How a text is written.
struct TextStyle {
    bool listing = true; ///< with every instruction
};
/// For people.
void append_text(std::string &out, const Explanation &explanation, TextStyle style = {});
/// For programs: lines of JSON, of types "verdict", "cause", "path" and "instruction".
void append_json_lines(std::string &out, const Explanation &explanation);
/// One self-contained page.
void append_page(std::string &out, const Explanation &explanation);

} // namespace rawbpf::inline v0::explain
