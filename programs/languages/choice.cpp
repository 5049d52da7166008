#include "programs/languages/choice.h"

#include "programs/languages/walk_dsl.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {
namespace {

std::string not_shown(std::string_view why) {
    return format("interpreters' own functions (Python's, PHP's, Ruby's, Perl's) aren't shown: {}", why);
}

} // namespace

bool walks_languages(const std::optional<UnwindProgramOptions> &unwind, std::string &why) {
    why.clear();
    if (!unwind)
        why = not_shown("user stacks aren't walked by unwind tables");
    else if (!unwind->has_bpf_loop)
        why = not_shown("this kernel has no bpf_loop (5.17), by which their frames are walked");
    else if (!LanguageWalk::knows(kHostArch))
        why = not_shown(format("where {} keeps a thread's pointer isn't known here", kHost.name));
    return why.empty();
}

std::string languages_refused(const Error &refused) { return not_shown(refused.message()); }

} // namespace rawbpf::inline v0
