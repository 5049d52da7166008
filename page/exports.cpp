// The functions that page.js calls. Text is UTF-8 with a zero at its end, in both directions; an answer is valid until the next
// call.
#include <string>

#include "page/bridge.h"

namespace {

rawbpf::page::Bridge &bridge() {
    static rawbpf::page::Bridge one;
    return one;
}
const char *answer(std::string text) {
    static std::string last;
    last = std::move(text);
    return last.c_str();
}

} // namespace

#define EXPORTED extern "C" [[gnu::used, gnu::visibility("default")]] const char *
EXPORTED page_assemble(const char *text, const char *name) { return answer(bridge().assemble(text, name)); }
// Beside the program that somebody is writing, which stays as it is.
EXPORTED page_try(const char *text, const char *name) { return answer(rawbpf::page::Bridge().assemble(text, name)); }
EXPORTED page_verify() { return answer(bridge().verify()); }
EXPORTED page_enter(unsigned program, const char *memory, int packet) {
    return answer(bridge().enter(program, memory, packet != 0));
}
EXPORTED page_again() { return answer(bridge().again()); }
EXPORTED page_experiment(const char *text, const char *name) { return answer(rawbpf::page::Bridge::experiment(text, name)); }
EXPORTED page_move(const char *how, unsigned n) { return answer(bridge().move(how, n)); }
EXPORTED page_check(unsigned number, const char *lesson, const char *file, const char *text, const char *check) {
    return answer(rawbpf::page::Bridge::check(number, lesson, file, text, check));
}
