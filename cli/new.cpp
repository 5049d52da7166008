// `rawbpf new`: writes a small project to begin with.
#include <cerrno>
#include <fcntl.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "programs/starter/starter.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf new";

constexpr Option kOptions[] = {
    {.name = "asm",
     .help = "the program as text for the assembler; this is the default",
     .section = "Language",
     .excludes = "language"},
    {.name = "c", .help = "in C, for clang, with <rawbpf/bpf.h>", .excludes = "language"},
    {.name = "dsl", .help = "in C++, with rawbpf's library, which has to be installed", .excludes = "language"},
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf new hello first", "first/first.asm, a Makefile, a test: cd first && make test"},
    {"rawbpf new map --c counter", "a counter in a map, in C"},
    {"rawbpf new xdp --dsl filter", "a packet filter, by the C++ builder"},
    {"rawbpf new experiment loops", "an experiment to sweep, repeat and compare"},
};

Result<void> write_project(const std::string &folder, const std::vector<starter::File> &files) {
    if (Result<void> made = sys::make_directory(folder); !made) {
        if (made.error().os == EEXIST)
            return Unexpected(make_error(Errc::invalid_argument, format("{} is there already", folder),
                                         "rawbpf new overwrites nothing: take another name"));
        return made;
    }
    for (const starter::File &file : files) {
        const std::string path = folder + "/" + file.name;
        const Fd fd = TRY_IN(sys::open(path, O_WRONLY | O_CREAT | O_EXCL, file.executable ? 0777 : 0666), "{}", path);
        TRY_IN(sys::write_all(fd.get(), file.text.data(), file.text.size()), "{}", path);
    }
    return {};
}

int run_new(const Arguments &a) {
    const std::string_view word = a.operands()[0], name = a.operands()[1];
    const std::vector<std::string_view> subjects = split(starter::kSubjects, ' ');
    bool known = false;
    for (std::string_view subject : subjects) known |= subject == word;
    if (!known)
        return complain(kWho,
                        make_error(Errc::invalid_argument, format("there is no kind of project called {}", word),
                                   format("one of {}", starter::kSubjects)),
                        2);
    const starter::Language language = a.has(option("c"))     ? starter::Language::c
                                       : a.has(option("dsl")) ? starter::Language::dsl
                                                              : starter::Language::text;
    const Result<std::vector<starter::File>> files = starter::project(starter::subject_named(word), language, name);
    if (!files) return complain(kWho, files.error(), 2);
    const std::string folder(name);
    if (Result<void> written = write_project(folder, *files); !written) return complain(kWho, written.error());
    std::string text = format("{}:", folder);
    for (const starter::File &file : *files) append(text, " {}", file.name);
    append(text, "\nnext: cd {} && make test\n", folder);
    return print(text);
}

} // namespace

const Command kNew{
    .name = "new",
    .summary = "write a small project to begin with",
    .description = "Makes a folder NAME with a BPF program, a Makefile, a test and a README. KIND is what the program does: "
                   "hello prints a line; map counts executed programs; ringbuf sends a record for each of them; uprobe counts "
                   "calls of a function in an example program, which is in the folder; xdp drops packets for one port. "
                   "experiment writes an experiment for rawbpf run instead, with a parameter to sweep.\n\n"
                   "make builds NAME.o, in whichever language it is written, and make test tests it: in the emulator, and as "
                   "root also in the kernel. make RAWBPF=PATH takes a rawbpf that isn't installed; BPF_CFLAGS and RAWBPF_FLAGS "
                   "are the flags for C and for C++, which otherwise come from pkg-config.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "KIND NAME",
    .least_operands = 2,
    .most_operands = 2,
    .run = run_new,
};

} // namespace rawbpf::inline v0::cli
