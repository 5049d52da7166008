// Reads programs and bytes for `exec` and `step`.
//
//      7f 45 4c 46 ...            an ELF object, as bytes or in hex
//      b7 00 00 00 2a 00 00 00    instructions in hex, as the conformance world writes them to a plugin's standard input;
//                                 a # begins a comment
//
// The first bytes of the input decide what it is, never its name. Source text is assembled before it comes here
// (cli/asm_file.h).
#include "programs/exec/input.h"

#include <algorithm>
#include <cstring>

#include "asm/nearest.h"
#include "asm/program_types.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/elf/elf.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/sections.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::exec {

namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr char kComment = '#'; // and what is behind it, to the end of the line

/// The beginning of a word, with nothing in it that a terminal would obey.
std::string printable(std::string_view word) {
    std::string out(word.substr(0, 40));
    for (char &c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return out;
}
std::string printable(char c) { return printable(std::string_view(&c, 1)); }

/// Instructions out of bytes.
Result<std::vector<Insn>> insns_of(Bytes raw, std::string_view name) {
    const size_t over = raw.size() % sizeof(Insn);
    if (over)
        return fail(Errc::bad_input, "{}: {} bytes; an instruction has 8, and the last one lacks {}", name, raw.size(),
                    sizeof(Insn) - over);
    if (raw.empty()) return fail(Errc::bad_input, "{}: there is no instruction in it", name);
    std::vector<Insn> insns(raw.size() / sizeof(Insn));
    std::memcpy(static_cast<void *>(insns.data()), raw.data(), raw.size());
    return insns;
}

} // namespace

Result<std::vector<Insn>> parse_insns(std::string_view text, std::string_view name) {
    return insns_of(TRY(parse_hex(text, name)), name);
}

bool looks_like_hex(std::string_view text) {
    bool any = false, begins = true; // a word
    for (size_t n = 0; n < text.size(); ++n) {
        if (text[n] == kComment) {
            n = text.find('\n', n);
            if (n == std::string_view::npos) break;
        }
        const bool space = kSpace.find(text[n]) != std::string_view::npos;
        if (begins && text[n] == '0' && n + 2 < text.size() && text[n + 1] == 'x' && hex_digit(text[n + 2]) >= 0)
            ++n;
        else if (!space && hex_digit(text[n]) < 0)
            return false;
        any = any || !space;
        begins = space;
    }
    return any;
}

Result<std::vector<std::byte>> parse_hex(std::string_view text, std::string_view what) {
    std::vector<std::byte> out;
    for (size_t at = 0; at < text.size();) {
        const size_t begin = text.find_first_not_of(kSpace, at);
        if (begin == std::string_view::npos) break;
        if (text[begin] == kComment) {
            at = std::min(text.find('\n', begin), text.size());
            continue;
        }
        at = std::min({text.find_first_of(kSpace, begin), text.find(kComment, begin), text.size()});
        std::string_view word = text.substr(begin, at - begin);
        if (word.starts_with("0x")) word.remove_prefix(2);
        for (char c : word)
            if (hex_digit(c) < 0)
                return fail(Errc::bad_input, "{}: `{}` is no hex digit (in `{}`)", what, printable(c), printable(word));
        if (word.size() == 1) { // a byte by itself
            out.push_back(static_cast<std::byte>(hex_digit(word[0])));
            continue;
        }
        if (word.size() % 2)
            return fail(Errc::bad_input, "{}: `{}` has {} hex digits; two make a byte", what, printable(word), word.size());
        for (size_t n = 0; n < word.size(); n += 2)
            out.push_back(static_cast<std::byte>(hex_digit(word[n]) << 4 | hex_digit(word[n + 1])));
    }
    return out;
}

Result<ObjectSpec> read_program(Bytes bytes, std::string_view name) {
    if (elf::is_elf(bytes)) return parse_object(bytes, name);
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    if (text.find_first_not_of(kSpace) == std::string_view::npos) return fail(Errc::bad_input, "{}: it is empty", name);
    const std::vector<std::byte> raw = TRY(parse_hex(text, name));
    if (elf::is_elf(raw)) return parse_object(raw, name);
    std::vector<Insn> insns = TRY(insns_of(raw, name));
    ObjectSpec spec;
    spec.name = name;
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    program.insns = std::move(insns);
    return spec;
}

Result<size_t> choose_program(const ObjectSpec &spec, std::string_view name) {
    std::string names;
    for (size_t n = 0; n < spec.programs.size(); ++n) {
        if (spec.programs[n].name == name) return n;
        append(names, "{}{}", n ? ", " : "", spec.programs[n].name);
    }
    if (!name.empty())
        return fail(Errc::not_found, "{}: there is no program {}; there is {}", spec.name, name, names.empty() ? "none" : names);
    if (spec.programs.size() == 1) return size_t{0};
    if (spec.programs.empty()) return fail(Errc::bad_input, "{}: there is no program in it", spec.name);
    return Unexpected(make_error(Errc::invalid_argument,
                                 format("{}: there are {} programs: {}", spec.name, spec.programs.size(), names),
                                 format("choose one: --prog {}", spec.programs[0].name)));
}

bool known_section(std::string_view section, std::string &hint) {
    if (find_section_kind(section)) return true;
    std::string_view kind = section.substr(section.starts_with('?'));
    kind = kind.substr(0, kind.find('/'));
    Nearest near(kind);
    for (const SectionKind &known : section_kinds()) near.offer(known.name.substr(0, known.name.find_last_not_of("/+") + 1));
    hint = near.hint();
    return false;
}

bool takes_packet(const ProgramSpec &program) { return program_type_row(program.type).run == ProgramRun::packet; }

} // namespace rawbpf::inline v0::exec
