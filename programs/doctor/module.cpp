// Examines a file. What a profile shows of it depends on two independent things: whether stacks can be walked through it (by
// unwind tables, otherwise by frame pointers), and where its functions' names are (its own symbols, those of a debug file,
// those that it exports). Its unwind tables also tell whether it keeps frame pointers, since they say for each function how
// its frame is found: no disassembler is needed.
#include "programs/doctor/module.h"

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/symbols/debug_files.h"
#include "runtime/usdt/notes.h"
#include "runtime/usdt/registers.h"

namespace rawbpf::inline v0::doctor {
namespace {

constexpr int kMostlyAll = 95, kMostlyNone = 5; // of 100: C libraries' own start code is in every program
constexpr size_t kMostNamed = 4;

std::string size_text(size_t bytes) {
    if (bytes < 1 << 10) return format("{} bytes", bytes);
    return bytes < 1 << 20 ? format("{} KiB", bytes >> 10) : format("{}.{} MiB", bytes >> 20, (bytes >> 10 & 1023) * 10 >> 10);
}

std::string_view plural(size_t count) { return count == 1 ? "" : "s"; }

bool has_debug_info(const elf::Elf &file) {
    const elf::Section *info = file.find_section(".debug_info");
    if (!info) info = file.find_section(".zdebug_info");
    return info && !file.contents(*info).empty();
}

std::string find_debug_info(const elf::Elf &file, const std::string &path, const std::string &root, const std::string &build_id) {
    if (has_debug_info(file)) return path;
    const auto found = symbols::find_debug_file(path, root, build_id, symbols::debug_link(file));
    if (!found) return {};
    Result<elf::Elf> debug = elf::Elf::parse(found->image.bytes(), found->path);
    return debug && has_debug_info(*debug) ? found->path : std::string();
}

// How stacks go through a module.
enum class Way : uint8_t { tables, pointers, both, neither };
Way way(const Module &module) {
    const unwind::Coverage &code = module.code;
    if (module.rows == 0 && module.go) return Way::pointers;
    if (code.all() == 0 ? module.rows == 0 : code.percent(code.by_neither) >= kMostlyNone) return Way::neither;
    if (code.percent(code.by_table) >= kMostlyAll || code.by_pointers == 0) return Way::tables;
    return code.percent(code.by_table) < kMostlyNone ? Way::pointers : Way::both;
}

} // namespace

int Module::frame_pointers() const {
    return unwinding.framed == 0 ? -1 : static_cast<int>(uint64_t{unwinding.frame_pointers} * 100 / unwinding.framed);
}

std::string Module::outlook() const {
    std::string out = "A profile will show ";
    const int pointers = frame_pointers();
    switch (way(*this)) {
    case Way::tables:
        out += pointers >= kMostlyAll ? "whole stacks through it, by unwind tables or by frame pointers"
                                      : "whole stacks through it by unwind tables";
        if (pointers >= 0 && pointers <= kMostlyNone)
            out += ", and by frame pointers alone hardly any caller";
        else if (pointers >= 0 && pointers < kMostlyAll)
            out += ", and by frame pointers alone broken ones";
        break;
    case Way::pointers: out += "whole stacks through it by frame pointers"; break;
    case Way::both:
        append(out, "whole stacks through it, by unwind tables and, in {} % of its code that has none, by frame pointers",
               code.percent(code.by_pointers));
        break;
    case Way::neither:
        if (const int ends = code.percent(code.by_neither); code.all() != 0 && ends < kMostlyAll)
            append(out, "stacks that end in {} % of its code, which has neither unwind tables nor frame pointers", ends);
        else
            out += "stacks that end in it, as it has neither unwind tables nor frame pointers";
        break;
    }
    out += symbols_from.empty()               ? "; its functions have no names, only addresses"
           : symbols_from == ".dynsym" && !go ? "; of its functions only those have names that it exports"
                                              : "; its functions have names";
    out += debug_info.empty() ? "." : ", and there are source lines for them.";
    return out;
}

Module examine_module(const elf::Elf &file, const std::string &path, const symbols::ElfSymbols *names, const std::string &root) {
    Module out;
    out.path = path;
    out.machine = usdt::machine_name(file.machine(), file.is_64());
    out.build_id = file.build_id().value_or("");
    out.go = file.find_section(".gopclntab") != nullptr || file.find_section(".data.rel.ro.gopclntab") != nullptr;
    if (Result<unwind::Table> table = unwind::build_table(file)) {
        out.unwinding = table->stats;
        out.rows = table->rows.size();
        out.bytes = table->bytes();
        out.code = unwind::coverage(file, *table);
        if (out.rows == 0) out.no_table = "it has no .eh_frame and no .debug_frame that says anything of its code";
    } else
        out.no_table = table.error().message();
    if (names) {
        out.symbols = names->size();
        out.symbols_from = out.symbols == 0 ? std::string() : names->source();
    }
    if (const auto link = symbols::debug_link(file)) out.debug_link = link->name;
    out.debug_info = find_debug_info(file, path, root, out.build_id);
    if (file.find_section(".note.stapsdt")) {
        Result<usdt::Notes> notes = usdt::read_notes(file);
        if (notes) out.probes = notes->sites.size();
        if (!notes || !notes->problems.empty()) out.probes_bad = notes ? notes->problems[0].message() : notes.error().message();
    }
    return out;
}

void append_module_text(std::string &out, const Module &module) {
    const unwind::TableStats &stats = module.unwinding;
    render::append_line(out,
                        format("{}: {}, {}", module.path, module.machine,
                               module.build_id.empty() ? std::string("no build-id") : format("build-id {}", module.build_id)));
    const auto line = [&](std::string_view name, std::string_view value) {
        render::append_line(out, format("  {:<16} {}", name, value));
    };
    const unwind::Coverage &code = module.code;
    const bool outside = code.percent(code.by_pointers) != 0; // then its tables say little of it
    line("frame pointers", module.frame_pointers() >= 0 && outside
                               ? format("in its code without tables, and in {} of the {} functions with tables that make a frame",
                                        stats.frame_pointers, stats.framed)
                           : module.frame_pointers() >= 0 ? format("{} %: {} of the {} functions that make a frame",
                                                                   module.frame_pointers(), stats.frame_pointers, stats.framed)
                           : module.go                    ? std::string("yes: Go keeps them")
                                                          : std::string("not known without unwind tables"));
    if (code.all() != 0)
        line("stacks", format("through {} % of its code by unwind tables, {} % by frame pointers, {} % by neither",
                              100 - code.percent(code.by_pointers) - code.percent(code.by_neither),
                              code.percent(code.by_pointers), code.percent(code.by_neither)));
    std::string tables = module.no_table.empty()
                             ? format("{} functions, {} rows, {}", stats.functions, module.rows, size_text(module.bytes))
                             : "none: " + module.no_table;
    if (stats.odd_rows != 0) append(tables, "; {} row{} too odd to be followed", stats.odd_rows, plural(stats.odd_rows));
    if (stats.bad_entries != 0)
        append(tables, "; {} malformed entr{}, first: {}", stats.bad_entries, stats.bad_entries == 1 ? "y" : "ies",
               stats.first_bad);
    line("unwind tables", tables);
    line("symbols",
         module.symbols_from.empty() ? std::string("none") : format("{}, from {}", module.symbols, module.symbols_from));
    line("debug info", !module.debug_info.empty() ? (module.debug_info == module.path ? "in the file" : "in " + module.debug_info)
                       : module.debug_link.empty() ? std::string("none here")
                                                   : format("none here; {} would have it", module.debug_link));
    line("USDT probes", module.probes_bad.empty() ? format("{}", module.probes)
                                                  : format("{}; damaged notes: {}", module.probes, module.probes_bad));
    render::append_line(out, "  " + module.outlook());
}

void append_module_json(std::string &out, const Module &module, int pid) {
    const unwind::TableStats &stats = module.unwinding;
    render::JsonLine line(out, "module");
    pid != 0 ? line.number("pid", static_cast<uint64_t>(pid)) : line.null("pid");
    line.text("path", module.path).text("machine", module.machine).text_or_null("build_id", module.build_id);
    line.number("functions", stats.functions).number("framed", stats.framed).number("frame_pointers", stats.frame_pointers);
    line.number("rows", module.rows).number("bytes", module.bytes).number("odd_rows", stats.odd_rows);
    line.number("bad_entries", stats.bad_entries)
        .text_or_null("first_bad", stats.first_bad)
        .text_or_null("no_table", module.no_table);
    line.number("code_bytes", module.code.all()).number("code_by_table", module.code.by_table);
    line.number("code_by_frame_pointers", module.code.by_pointers).number("code_by_neither", module.code.by_neither);
    line.truth("go", module.go).number("symbols", module.symbols).text_or_null("symbols_from", module.symbols_from);
    line.text_or_null("debug_link", module.debug_link).text_or_null("debug_info", module.debug_info);
    line.number("probes", module.probes).text_or_null("probes_bad", module.probes_bad).text("outlook", module.outlook());
}

void append_process_text(std::string &out, int pid, std::span<const Module> modules, size_t anonymous,
                         std::string_view compiled) {
    render::append_line(out, format("process {}", pid));
    const auto row = [&](const auto &...cells) {
        render::append_line(out, format("  {:>4} {:>8} {:>10} {:>4} {:>8} {:>5} {:>6}  {}", cells...));
    };
    if (!modules.empty()) row("fp %", "rows", "bytes", "odd", "symbols", "debug", "probes", "module");
    size_t neither = 0, nameless = 0;
    std::string ends;
    for (const Module &module : modules) {
        const int pointers = module.frame_pointers();
        const unwind::Coverage &code = module.code;
        row(pointers >= 0
                ? format("{}",
                         code.by_pointers ? (uint64_t(pointers) * code.by_table + 100 * code.by_pointers) / code.all() : pointers)
            : module.go ? std::string("Go")
                        : std::string("?"),
            module.rows, module.bytes, module.unwinding.odd_rows, module.symbols, module.debug_info.empty() ? "-" : "yes",
            module.probes, module.path);
        if (way(module) == Way::neither) {
            if (neither++ < kMostNamed) append(ends, "{}{}", ends.empty() ? "" : ", ", module.path);
        }
        nameless += module.symbols_from.empty();
    }
    if (anonymous != 0)
        render::append_line(out,
                            format("  and {} region{} of code that no file is behind (made at run time): stacks go through by "
                                   "frame pointers, or (x86-64) by a form that all its frames have, which a profile finds out",
                                   anonymous, plural(anonymous)));
    if (!compiled.empty()) render::append_line(out, format("  names of code made at run time: {}", compiled));
    if (modules.empty()) return render::append_line(out, "  No file's code is mapped: a kernel thread, or it has ended.");
    std::string outlook = format("  A profile will show whole stacks through {} of {} module{}", modules.size() - neither,
                                 modules.size(), plural(modules.size()));
    if (neither > kMostNamed) append(ends, " and {} more", neither - kMostNamed);
    if (neither != 0) append(outlook, ", stacks that end in {}", ends);
    append(outlook, "; {}.", nameless == 0 ? std::string("all have names") : format("{} without any name", nameless));
    render::append_line(out, outlook);
}

} // namespace rawbpf::inline v0::doctor
