// Linking whatever the bytes are: alone, and behind and before a sound object. What comes out must be ELF that reads back, with
// BTF that reads back.
#include <cstdlib>

#include "runtime/btf/btf.h"
#include "runtime/elf/elf.h"
#include "runtime/elf/writer.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/linker.h"

using namespace rawbpf;

namespace {

const std::vector<std::byte> &sound() {
    static const std::vector<std::byte> bytes = [] {
        btf::Writer types;
        const auto i32 = types.add_int("int", 4, true);
        const auto var = types.add_var("counter", i32, 1);
        types.add_datasec(".data", 4, {{var, 0, 4}});
        elf::Writer w;
        const std::byte four[4] = {};
        const uint32_t data = w.add_section(".data", 3, four, 4);
        elf::Symbol symbol;
        symbol.name = "counter";
        symbol.section = data;
        symbol.size = 4;
        symbol.type = 1;
        symbol.binding = 1;
        w.add_symbol(symbol);
        w.add_section(".BTF", 0, types.finish(), 4);
        return w.finish();
    }();
    return bytes;
}

void look(std::span<const LinkInput> inputs) {
    auto out = link_objects(inputs);
    if (!out) {
        if (out.error().context.empty()) std::abort();
        return;
    }
    auto elf = elf::Elf::parse(*out, "out.o");
    if (!elf) std::abort();
    if (const elf::Section *section = elf->find_section(".BTF"))
        if (!btf::Btf::parse(elf->contents(*section), "out.o")) std::abort();
    (void)parse_object(*out, "out.o");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const LinkInput mine{std::as_bytes(std::span(data, size)), "fuzz.o"}, other{sound(), "sound.o"};
    const LinkInput alone[] = {mine}, first[] = {mine, other}, last[] = {other, mine};
    look(alone);
    look(first);
    look(last);
    return 0;
}
