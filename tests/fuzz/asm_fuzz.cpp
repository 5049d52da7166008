// The assembler on any text. What it takes, it must take again from its own listing, to the same listing; and the object made of
// it must be one.
#include <cstdlib>

#include "asm/assemble.h"
#include "asm/print.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_elf.h"
#include "runtime/object/unit_object.h"

using namespace rawbpf;

namespace {

bool include(void *context, std::string_view path, std::string &text) {
    if (path.size() > 3 || ++*static_cast<int *>(context) > 40) return false;
    text = path == "a" ? ".include \"b\"\nr1 = 1\n" : path == "b" ? "x = 5\n" : ".include \"c\"\n";
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    int included = 0;
    AssembleOptions options;
    options.include = include;
    options.context = &included;
    Assembled made = assemble(text, options);
    for (char c : made.report())
        if (c != '\n' && c != '\t' && static_cast<unsigned char>(c) < 0x20) std::abort(); // nothing that a terminal would obey
    if (!made) return 0;
    for (Dialect dialect : {Dialect::kernel, Dialect::conformance}) (void)print(made.unit, {.dialect = dialect});
    (void)print_graph(made.unit);
    const std::string listing = print(made.unit);
    const Assembled again = assemble(listing, {.name = made.unit.name, .lines = false});
    if (!again) std::abort();
    if (print(again.unit) != listing) std::abort();
    std::vector<Insn> a, b;
    std::string why;
    if (flatten(made.unit, a, why) != flatten(again.unit, b, why) || a != b) std::abort();
    (void)object_of(made.unit);
    if (auto object = write_object(made.unit, nullptr))
        if (auto spec = parse_object(*object, "fuzz"); !spec && spec.error().kind == Errc::internal) std::abort();
    return 0;
}
