// Reading programs and bytes for `exec` and `step`.
//
//      7f 45 4c 46 ...            an ELF object, as bytes or in hex
//      b7 00 00 00 2a 00 00 00    instructions in hex, as the conformance world writes them to a plugin's standard input
//      r0 = 42                    source text for the assembler
//
// What it is is told by its first bytes, never by its name.
#include "programs/exec/input.h"

#include <cstring>

#include "asm/assemble.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/file.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::exec {

namespace {

constexpr std::string_view kSpace = " \t\r\n";
int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
/// Source text. What is wrong with it goes into the error's log, with carets.
Result<ObjectSpec> assembled(std::string_view text, std::string_view name) {
    std::string folder(name.substr(0, name.rfind('/') + 1)); // includes count from the file's place
    AssembleOptions options;
    options.name = name;
    options.context = &folder;
    options.include = [](void *context, std::string_view path, std::string &into) {
        const auto &from = *static_cast<const std::string *>(context);
        Result<std::string> read = sys::read_file(path.starts_with('/') ? std::string(path) : from + std::string(path));
        if (!read) return false;
        into = std::move(*read);
        return true;
    };
    const Assembled unit = assemble(text, options);
    if (unit) return object_of(unit.unit);
    Error error = make_error(Errc::bad_input,
                             format("{}: {} mistake{}", name, unit.complaints.size(), unit.complaints.size() == 1 ? "" : "s"));
    error.log = unit.report();
    return Unexpected(std::move(error));
}
bool is_elf(Bytes bytes) {
    return bytes.size() >= 4 && std::memcmp(bytes.data(),
                                            "\x7f"
                                            "ELF",
                                            4) == 0;
}

} // namespace

bool looks_like_hex(std::string_view text) {
    bool any = false;
    if (text.starts_with("0x")) text.remove_prefix(2);
    for (char c : text) {
        if (kSpace.find(c) != std::string_view::npos) continue;
        if (digit(c) < 0) return false;
        any = true;
    }
    return any;
}

Result<std::vector<std::byte>> parse_hex(std::string_view text, std::string_view what) {
    std::vector<std::byte> out;
    for (size_t at = 0; at < text.size();) {
        const size_t begin = text.find_first_not_of(kSpace, at);
        if (begin == std::string_view::npos) break;
        at = std::min(text.find_first_of(kSpace, begin), text.size());
        std::string_view word = text.substr(begin, at - begin);
        if (word.starts_with("0x")) word.remove_prefix(2);
        for (char c : word)
            if (digit(c) < 0) return fail(Errc::bad_input, "{}: `{}` is no hex digit (in `{}`)", what, c, word.substr(0, 40));
        if (word.size() == 1) { // a byte by itself
            out.push_back(static_cast<std::byte>(digit(word[0])));
            continue;
        }
        if (word.size() % 2)
            return fail(Errc::bad_input, "{}: `{}` has {} hex digits; two make a byte", what, word.substr(0, 40), word.size());
        for (size_t n = 0; n < word.size(); n += 2)
            out.push_back(static_cast<std::byte>(digit(word[n]) << 4 | digit(word[n + 1])));
    }
    return out;
}

Result<ObjectSpec> read_program(Bytes bytes, std::string_view name) {
    if (is_elf(bytes)) return parse_object(bytes, name);
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    if (text.find_first_not_of(kSpace) == std::string_view::npos) return fail(Errc::bad_input, "{}: it is empty", name);
    if (!looks_like_hex(text)) return assembled(text, name);
    const std::vector<std::byte> raw = TRY(parse_hex(text, name));
    if (is_elf(raw)) return parse_object(raw, name);
    if (raw.size() % sizeof(Insn)) return fail(Errc::bad_input, "{}: {} bytes; an instruction has 8", name, raw.size());
    ObjectSpec spec;
    spec.name = name;
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = BPF_PROG_TYPE_SOCKET_FILTER;
    program.insns.resize(raw.size() / sizeof(Insn));
    std::memcpy(static_cast<void *>(program.insns.data()), raw.data(), raw.size());
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

bool takes_packet(const ProgramSpec &program) {
    return program.type == BPF_PROG_TYPE_XDP || program.type == BPF_PROG_TYPE_SCHED_CLS ||
           program.type == BPF_PROG_TYPE_SCHED_ACT;
}

} // namespace rawbpf::inline v0::exec
