// The smallest program that loads an object file and attaches what its section names say: what an embedded product would link.
// `./dev dist` prints its size; the guests run it. Ends when its standard input does.
#include <string>
#include <string_view>

#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"

using namespace rawbpf;

namespace {

void say(std::string_view text) { (void)!write(STDERR_FILENO, text.data(), text.size()); }

Result<void> run(const char *path) {
    const std::string bytes = TRY(sys::read_file(path));
    const ObjectSpec spec = TRY(parse_object(std::as_bytes(std::span(bytes)), path));
    LoadedObject object = TRY(load(spec));
    const Attached attached = TRY(attach_object(spec, object));
    say("attached\n");
    char c;
    while (read(STDIN_FILENO, &c, 1) > 0) continue;
    return {};
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) return say("usage: load-core OBJECT\n"), 2;
    if (Result<void> done = run(argv[1]); !done) return say("load-core: " + done.error().message() + "\n"), 1;
    return 0;
}
