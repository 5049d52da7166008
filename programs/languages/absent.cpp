// In the place of walk_dsl.cpp and choice.cpp, in a build without the part `languages`: no program walks interpreters' frames.
#include <cstdlib>

#include "programs/languages/choice.h"
#include "programs/languages/walk_dsl.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0 {

bool walks_languages(const std::optional<UnwindProgramOptions> &, std::string &why) {
    why = without_part("interpreters' own functions aren't shown", "languages").message();
    return false;
}

std::string languages_refused(const Error &) { return {}; } // of a program that walks them, and none does

// Who asks walks_languages() makes none of these.
LanguageWalk::LanguageWalk(Builder &b, const Programs &programs)
    : programs_(programs), processes_(b.hash<uint32_t, uint32_t>("language_processes", 1)), codes_(processes_),
      state_(processes_) {
    std::abort();
}
void LanguageWalk::walk(Code &, const RecordPlace &, const How &) {}
void LanguageWalk::join(OffCpuTool &) {}
void LanguageWalk::begin(Code &, const Apart &) {}
void LanguageWalk::send(Code &, const Apart &) const {}
void LanguageWalk::end(Code &, const Apart &) const {}

} // namespace rawbpf::inline v0
