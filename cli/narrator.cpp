// The narrator prints what runtime/sys/describe.h makes of a call, at once: when a later call hangs or the machine stops, the
// last line shows the call that did it. It prints with write(2) through the same invoke() that it observes; it doesn't show
// write(2), so this doesn't recurse.
#include "cli/narrator.h"

#include <string>

#include "cli/console.h"
#include "runtime/sys/describe.h"

namespace rawbpf::inline v0::cli {

Narrator::Narrator(bool color, bool all)
    : color_(color), detail_{&fds_, all ? sys::kAll : sys::kFew}, before_(sys::observe(this)) {}
Narrator::~Narrator() { sys::observe(before_); }

void Narrator::after(const sys::Call &call, long result) {
    if (!sys::is_narrated(call)) return fds_.see(call, result);
    std::string line = printable_lines(sys::describe(call, result, detail_));
    fds_.see(call, result);
    if (color_) { // the clause on why, behind the '#', steps back
        size_t why = line.rfind("   # ");
        if (why != std::string::npos) line.insert(why, "\x1b[2m"), line += "\x1b[0m";
    }
    say_as_is(line + "\n");
}

} // namespace rawbpf::inline v0::cli
