// The disassembler on any bytes: what it prints in LLVM's dialect must assemble to the same bytes; and on any object file, what
// it prints must be fit for a terminal.
#include <cstdlib>
#include <cstring>

#include "asm/assemble.h"
#include "asm/print.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/spec_unit.h"

using namespace rawbpf;

namespace {

void check_terminal(const std::string &text) {
    for (char c : text)
        if (c != '\n' && c != '\t' && static_cast<unsigned char>(c) < 0x20) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (auto spec = parse_object(std::as_bytes(std::span(data, size)), "fuzz")) {
        if (auto unit = unit_of(*spec)) {
            check_terminal(print(*unit, {.bytes = true, .locations = true}));
            check_terminal(print_graph(*unit));
        }
        return 0;
    }
    Unit unit;
    unit.functions.resize(1);
    Function &function = unit.functions[0];
    function.name = "f";
    function.section = "socket";
    function.insns.resize(size / 8);
    if (function.insns.empty()) return 0;
    std::memcpy(static_cast<void *>(function.insns.data()), data, function.insns.size() * 8);
    for (Dialect dialect : {Dialect::kernel, Dialect::conformance}) check_terminal(print(unit, {.dialect = dialect}));
    check_terminal(print_graph(unit));
    for (bool bytes : {false, true}) {
        const Assembled back = assemble(print(unit, {.hex = bytes, .bytes = bytes}), {.lines = false});
        std::vector<Insn> flat;
        std::string why;
        if (!back || !flatten(back.unit, flat, why) || flat != function.insns) std::abort();
    }
    return 0;
}
