// Opens the files that `asm` and `disasm` read.
#include "cli/asm_file.h"

#include <elf.h>

#include <cctype>
#include <cstring>

#include "programs/exec/input.h"
#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/spec_unit.h"
#include "runtime/object/unit_object.h"

namespace rawbpf::inline v0::cli {

namespace {

constexpr size_t kMaxText = 64u << 20;

/// For `.include`: the path counts from the folder of the file that was named on the command line.
bool read_beside(void *context, std::string_view path, std::string &text) {
    std::string whole(path);
    if (!path.starts_with('/')) whole.insert(0, *static_cast<const std::string *>(context));
    Result<std::string> read = sys::read_file(whole, kMaxText);
    if (!read) return false;
    text = std::move(*read);
    return true;
}

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

} // namespace

Result<Unit> assemble_file(const InputFile &file, bool lines, std::vector<LabelPlace> *labels) {
    if (file.bytes().size() > kMaxText) return fail(Errc::bad_input, "{}: more than 64 MiB of text", file.name());
    std::string folder = file.name().substr(0, file.name().rfind('/') + 1);
    AssembleOptions options;
    options.name = file.name();
    options.lines = lines;
    options.include = read_beside;
    options.section = exec::known_section;
    options.context = &folder;
    Assembled assembled = assemble(text_of(file.bytes()), options);
    if (!assembled.warnings.empty()) say(assembled.warning_report());
    if (assembled && labels) *labels = std::move(assembled.labels);
    if (assembled) return std::move(assembled.unit);
    say(assembled.report());
    const size_t n = assembled.complaints.size();
    return fail(Errc::bad_input, "{}: {} mistake{}, nothing was made of it", file.name(), n, n == 1 ? "" : "s");
}

Result<ObjectSpec> open_assembly(const InputFile &file) { return object_of(TRY(assemble_file(file))); }
Result<ObjectSpec> open_assembly(const InputFile &file, std::vector<LabelPlace> &labels) {
    return object_of(TRY(assemble_file(file, true, &labels)));
}

InputKind kind_of(Bytes bytes) {
    const std::string_view text = text_of(bytes);
    if (text.starts_with("\x7f"
                         "ELF"))
        return InputKind::object;
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    return empty || exec::looks_like_hex(text) ? InputKind::hex : InputKind::text;
}

Result<Unit> unit_of_hex(std::string_view text, std::string_view name) {
    Unit unit;
    unit.name = name;
    Function main;
    main.name = "main";
    main.section = "socket";
    main.insns = TRY(exec::parse_insns(text, name));
    unit.functions.push_back(std::move(main));
    return unit;
}

namespace {

/// An object without symbols (`llvm-strip`), or whose functions no program calls: each section of code as it stands, with nothing
/// known of what its instructions refer to. Without functions when it isn't BPF or has no such section.
Result<Unit> unit_of_sections(const InputFile &file) {
    Unit unit;
    unit.name = file.name();
    const elf::Elf elf = TRY(elf::Elf::parse(file.bytes(), file.name()));
    if (elf.machine() != EM_BPF || elf.big_endian()) return unit;
    for (const elf::Section &section : elf.sections()) {
        const Bytes code = elf.contents(section);
        if (section.type != SHT_PROGBITS || !(section.flags & SHF_EXECINSTR) || code.size() < sizeof(Insn)) continue;
        Function &function = unit.functions.emplace_back();
        if (section.name != ".text") function.section = section.name;
        function.name = section.name.substr(section.name.starts_with('.'));
        for (char &c : function.name)
            if (!isalnum(static_cast<unsigned char>(c))) c = '_';
        function.insns.resize(code.size() / sizeof(Insn));
        std::memcpy(static_cast<void *>(function.insns.data()), code.data(), function.insns.size() * sizeof(Insn));
    }
    return unit;
}

} // namespace

Result<Unit> open_unit(const InputFile &file) {
    switch (kind_of(file.bytes())) {
    case InputKind::object: {
        Result<ObjectSpec> spec = parse_object(file.bytes(), file.name());
        if (spec && !spec->programs.empty()) return unit_of(*spec);
        Unit unit = TRY(unit_of_sections(file));
        if (!unit.functions.empty()) return unit;
        if (!spec) return Unexpected(std::move(spec).error());
        return unit_of(*spec);
    }
    case InputKind::hex: return unit_of_hex(text_of(file.bytes()), file.name());
    case InputKind::text: break;
    }
    return assemble_file(file);
}

} // namespace rawbpf::inline v0::cli
