// From operands to a program: `prog.o 0102`, `- 0102`, `0102` or nothing, in either order.
//
// An operand that consists of hex digits is memory unless there is a file of that name; everything else is a file.
#include "cli/program_input.h"

#include "cli/asm_file.h"
#include "programs/exec/input.h"
#include "programs/exec/knowledge.h"
#include "runtime/base/fail.h"
#include "runtime/object/core.h"

namespace rawbpf::inline v0::cli {

verifier::VerifyOptions ProgramInput::verify_options() const { return exec::options_as_run(packet, memory.size()); }

Result<ProgramInput> open_program(std::string_view file, std::string_view program, std::string_view btf) {
    ProgramInput out;
    const InputFile input = TRY(InputFile::open(file));
    out.spec = kind_of(input.bytes()) == InputKind::text ? TRY(open_assembly(input, out.labels))
                                                         : TRY(exec::read_program(input.bytes(), input.name()));
    out.program = TRY(exec::choose_program(out.spec, program));
    out.packet = exec::takes_packet(out.spec.programs[out.program]);
    out.spec.programs[out.program].autoload = true; // of a section that begins with "?", too: it was asked for
    if (needs_core(out.spec)) {
        const KernelTypes types = TRY(KernelTypes::open(std::string(btf)));
        TRY(relocate_core(out.spec, types.targets()));
    }
    return out;
}

Result<ProgramInput> program_input(const Arguments &a, const ProgramInputIds &ids) {
    std::string_view file, hex;
    for (std::string_view operand : a.operands()) {
        const bool memory = exec::looks_like_hex(operand) && !sys::stat_file(std::string(operand));
        std::string_view &into = memory ? hex : file;
        if (!into.empty())
            return fail(Errc::invalid_argument, "`{}` and `{}`: one {} at a time", into.substr(0, 40), operand.substr(0, 40),
                        memory ? "piece of memory" : "program");
        into = operand;
    }
    if (!hex.empty() + a.has(ids.memory) + a.has(ids.memory_file) > 1)
        return fail(Errc::invalid_argument, "memory is given more than once");
    if (a.has(ids.memory)) hex = a.text(ids.memory);
    std::vector<std::byte> memory = TRY(exec::parse_hex(hex, "the memory"));
    if (a.has(ids.memory_file)) {
        const InputFile bytes = TRY(InputFile::open(a.text(ids.memory_file)));
        memory.assign(bytes.bytes().begin(), bytes.bytes().end());
    }
    ProgramInput out = TRY(open_program(file.empty() ? "-" : file, a.text(ids.program), a.text(ids.btf)));
    out.memory = std::move(memory);
    out.packet |= a.has(ids.packet);
    return out;
}

} // namespace rawbpf::inline v0::cli
