// Every program of every object through the disassembler and back: rows for ./dev corpus.
//
//      corpus-roundtrip [--objdump PROGRAM] OBJECT...
//
//      bytes      each program's instructions, printed in LLVM's dialect, assemble to the same instructions
//      objects    the whole object, printed with its names, assembles to a unit whose programs have the same instructions
//      text       each section of code, printed as llvm-objdump does, is what llvm-objdump prints, line by line
//
// Prints what differs, then one line of sums; status 1 when anything did. What llvm-objdump has no words for is counted apart: it
// writes calls inside a program without a sign, and instructions newer than it as <unknown>.
#include <cstdio>
#include <cstring>
#include <string>

#include "asm/assemble.h"
#include "asm/print.h"
#include "runtime/elf/elf.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/spec_unit.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/file.h"

using namespace rawbpf;

namespace {

struct Sums {
    size_t objects = 0, programs = 0, instructions = 0, differ = 0, lines = 0, lines_differ = 0, unknown = 0, whole = 0,
           not_whole = 0;
};

void complain(Sums &sums, const std::string &object, const std::string &what) {
    if (++sums.differ <= 40) std::printf("differs: %s: %s\n", object.c_str(), what.c_str());
}

void check_bytes(Sums &sums, const std::string &object, const ProgramSpec &program) {
    Unit unit;
    unit.functions.resize(1);
    Function &function = unit.functions[0];
    function.name = "f";
    function.section = "socket";
    function.insns = program.insns;
    AssembleOptions options;
    options.lines = false;
    const Assembled back = assemble(print(unit), options);
    std::vector<Insn> flat;
    std::string why;
    ++sums.programs;
    sums.instructions += program.insns.size();
    if (!back)
        complain(sums, object, program.name + ": " + back.report());
    else if (!flatten(back.unit, flat, why) || flat != program.insns)
        complain(sums, object, program.name + ": other bytes " + why);
}

/// Names and all; objects with two functions of one name in one section can't be told apart by them.
void check_whole(Sums &sums, const std::string &object, const ObjectSpec &spec) {
    if (spec.programs.empty()) return;
    auto unit = unit_of(spec);
    if (!unit) return complain(sums, object, unit.error().context);
    AssembleOptions options;
    options.lines = false;
    const Assembled back = assemble(print(*unit), options);
    if (!back) return complain(sums, object, "as a whole: " + back.report());
    auto again = object_of(back.unit);
    if (!again) return complain(sums, object, "as a whole: " + again.error().context);
    bool same = again->programs.size() == spec.programs.size();
    for (size_t i = 0; same && i < spec.programs.size(); ++i) {
        const ProgramSpec &a = spec.programs[i], &b = again->programs[i];
        same = a.name == b.name && a.section == b.section && a.insns.size() == b.insns.size();
        // What the loader fills in for kernel functions and variables, clang and the assembler leave with different numbers.
        std::vector<bool> filled(a.insns.size());
        for (const Fixup &fixup : a.fixups)
            filled[fixup.insn] = fixup.kind == Fixup::Kind::kfunc || fixup.kind == Fixup::Kind::ksym;
        for (size_t n = 0; same && n < a.insns.size(); ++n) same = filled[n] || a.insns[n] == b.insns[n];
        for (size_t n = 0; same && n < a.fixups.size(); ++n)
            same = a.fixups.size() == b.fixups.size() && a.fixups[n].insn == b.fixups[n].insn &&
                   a.fixups[n].symbol == b.fixups[n].symbol;
    }
    ++(same ? sums.whole : sums.not_whole);
    if (!same && sums.not_whole <= 10) std::printf("not the same by name: %s\n", object.c_str());
}

std::string plain(std::string line) {
    if (const size_t at = line.rfind(" <"); at != std::string::npos && line.back() == '>') line.resize(at);
    return line;
}

void check_text(Sums &sums, const std::string &path, const elf::Elf &file, const std::string &objdump) {
    const std::string command = objdump + " -d --no-show-raw-insn --no-leading-addr '" + path + "' 2>/dev/null";
    FILE *pipe = ::popen(command.c_str(), "r");
    if (!pipe) return complain(sums, path, "llvm-objdump doesn't start");
    const elf::Section *section = nullptr;
    std::vector<Insn> insns;
    size_t at = 0;
    char *line = nullptr;
    size_t room = 0;
    for (ssize_t length; (length = ::getline(&line, &room, pipe)) > 0;) {
        std::string_view text(line, static_cast<size_t>(length));
        while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
        constexpr std::string_view kHead = "Disassembly of section ";
        if (text.starts_with(kHead)) {
            section = file.find_section(text.substr(kHead.size(), text.size() - kHead.size() - 1));
            insns.clear();
            at = 0;
            if (section) {
                const Bytes bytes = file.contents(*section);
                insns.resize(bytes.size() / 8);
                std::memcpy(static_cast<void *>(insns.data()), bytes.data(), insns.size() * 8);
            }
            continue;
        }
        if (!text.starts_with('\t') || at >= insns.size()) continue;
        const std::string theirs = plain(std::string(text.substr(1)));
        const std::span<const Insn> here = std::span(insns).subspan(at);
        std::string ours = print(here, {.hex = true});
        at += is_wide(insns[at]) ? 2 : 1;
        ++sums.lines;
        // Without -mcpu it takes every atomic of 32 bits for the first there was, and has no words for ld_imm64 of something.
        const bool atomic = here[0].code == 0xc3 && here[0].imm != 0;
        const bool indirect = (here[0].code & 0xe7) == 0x40 && here[0].imm != 0; // nor for the number of an indirect packet load
        if (theirs.starts_with("<unknown>") || theirs.starts_with("ld_pseudo") || atomic || indirect) {
            ++sums.unknown;
            continue;
        }
        if (here[0].code == 0x85 && here[0].src == 1 && ours.starts_with("call +")) ours.erase(5, 1);
        if (ours != theirs) {
            if (++sums.lines_differ <= 20)
                std::printf("text: %s: ours `%s`, theirs `%s`\n", path.c_str(), ours.c_str(), theirs.c_str());
        }
    }
    std::free(line);
    ::pclose(pipe);
}

} // namespace

int main(int argc, char **argv) {
    Sums sums;
    std::string objdump;
    for (int i = 1; i < argc; ++i) {
        const std::string path = argv[i];
        if (path == "--objdump" && i + 1 < argc) {
            objdump = argv[++i];
            continue;
        }
        auto mapping = sys::map_file(path);
        if (!mapping) continue;
        auto spec = parse_object(mapping->bytes(), path);
        if (!spec) continue; // refused objects are the comparison's business
        ++sums.objects;
        for (const ProgramSpec &program : spec->programs) check_bytes(sums, path, program);
        check_whole(sums, path, *spec);
        if (objdump.empty()) continue;
        if (auto file = elf::Elf::parse(mapping->bytes(), path)) check_text(sums, path, *file, objdump);
    }
    std::printf("round trip: %zu objects, %zu programs, %zu instructions, %zu differ; by name %zu the same, %zu not; "
                "text %zu lines, %zu differ, %zu unknown to llvm-objdump\n",
                sums.objects, sums.programs, sums.instructions, sums.differ, sums.whole, sums.not_whole, sums.lines,
                sums.lines_differ, sums.unknown);
    return sums.differ || sums.lines_differ || sums.objects == 0 ? 1 : 0;
}
