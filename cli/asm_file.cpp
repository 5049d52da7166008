// Opening what `asm` and `disasm` read.
#include "cli/asm_file.h"

#include <cstring>

#include "runtime/base/hex.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/spec_unit.h"

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

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

} // namespace

Result<Unit> assemble_file(const InputFile &file, bool lines) {
    if (file.bytes().size() > kMaxText) return fail(Errc::bad_input, "{}: more than 64 MiB of text", file.name());
    std::string folder = file.name().substr(0, file.name().rfind('/') + 1);
    AssembleOptions options;
    options.name = file.name();
    options.lines = lines;
    options.include = read_beside;
    options.context = &folder;
    Assembled assembled = assemble(text_of(file.bytes()), options);
    if (assembled) return std::move(assembled.unit);
    say(assembled.report());
    const size_t n = assembled.complaints.size();
    return fail(Errc::bad_input, "{}: {} mistake{}, nothing was made of it", file.name(), n, n == 1 ? "" : "s");
}

InputKind kind_of(Bytes bytes) {
    const std::string_view text = text_of(bytes);
    if (text.starts_with("\x7f"
                         "ELF"))
        return InputKind::object;
    for (char c : text)
        if (hex_digit(c) < 0 && !is_blank(c)) return InputKind::text;
    return InputKind::hex;
}

Result<Unit> unit_of_hex(std::string_view text, std::string_view name) {
    Unit unit;
    unit.name = name;
    Function main;
    main.name = "main";
    main.section = "socket";
    uint8_t raw[8];
    size_t digits = 0;
    for (char c : text) {
        const int value = hex_digit(c);
        if (value < 0) {
            if (is_blank(c)) continue;
            return fail(Errc::bad_input, "{}: `{}` is no hexadecimal digit", name,
                        static_cast<unsigned char>(c) < 0x20 ? '?' : c);
        }
        raw[digits / 2] = static_cast<uint8_t>(digits % 2 ? raw[digits / 2] << 4 | value : value);
        if (++digits < 16) continue;
        Insn insn;
        std::memcpy(static_cast<void *>(&insn), raw, 8);
        main.insns.push_back(insn);
        digits = 0;
    }
    if (digits != 0) return fail(Errc::bad_input, "{}: the last instruction has {} digits; eight bytes are 16", name, digits);
    if (main.insns.empty()) return fail(Errc::bad_input, "{}: there is no instruction in it", name);
    unit.functions.push_back(std::move(main));
    return unit;
}

Result<Unit> open_unit(const InputFile &file) {
    switch (kind_of(file.bytes())) {
    case InputKind::object: return unit_of(TRY(parse_object(file.bytes(), file.name())));
    case InputKind::hex: return unit_of_hex(text_of(file.bytes()), file.name());
    case InputKind::text: break;
    }
    return assemble_file(file);
}

} // namespace rawbpf::inline v0::cli
