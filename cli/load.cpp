// `rawbpf load`: loads an object file into the kernel, whole or program by program, and prints the result.
//
// When an object is loaded whole, the first refusal ends the command, which prints the reason with the verifier's log. --each
// loads every program alone, with the maps that it needs: the refusal of one program says nothing about the next. So you can
// examine an object on a kernel that lacks a feature of it, and compare two loaders program by program (insn_hash).
#include <algorithm>
#include <csignal>
#include <optional>

#include "asm/kinds.h"
#include "asm/map_types.h"
#include "cli/attached.h"
#include "cli/built.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/explain/explanation.h"
#include "programs/load/settings.h"
#include "programs/load/verifier_figures.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/pin.h"
#include "runtime/kernel/refusal.h"
#include "runtime/kernel/target_program.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf load";

constexpr Option kOptions[] = {
    {.name = "each",
     .help = "load each program alone, with the maps that it needs, also programs that aren't loaded by default; print one line "
             "for each. Nothing is pinned",
     .section = "What to load"},
    {.name = "prog",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "NAME",
     .help = "only this program, with the maps that it needs"},
    {.name = "btf",
     .letter = 'b',
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "relocate (CO-RE) against these types: raw BTF or an ELF file with .BTF. For kernels without BTF of their own"},
    {.name = "set",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "NAME=VALUE",
     .help = "the first value of a global variable, as the object's own loader would set it; NAME.member and NAME[2] work too"},
    {.name = "map",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "NAME:entries=N",
     .help = "how many entries a map has; for a ring buffer, how many bytes"},
    {.name = "target",
     .kind = OptionKind::text,
     .argument = "PROGRAM",
     .help = "the loaded program to which freplace, fentry and fexit programs attach: its id, its name, or the path of its pin"},
    {.name = "pin",
     .kind = OptionKind::directory,
     .argument = "DIR",
     .help = "pin every program as DIR/NAME and every map as DIR/maps/NAME, so that they stay when the command ends; rawbpf "
             "makes DIR, in a bpf file system",
     .section = "What to do with it"},
    {.name = "stats",
     .help = "also show what verifying each program took: instructions, states, stack depth, time; JSON always has it"},
    kAttachOption,
    kAttachDurationOption,
    kAttachInterfaceOption,
    kAttachEgressOption,
    kAttachCgroupOption,
    kAttachNetnsOption,
    kAttachPidOption,
    kAttachFreqOption,
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    verbose_option("show the verifier's whole log; in JSON also the hash of a refused program"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf load tool.bpf.o", "load it, say what was loaded, unload it"},
    {"sudo rawbpf load prog.asm", "assemble it and load it: does the verifier accept it?"},
    {"sudo rawbpf load --each --json tool.bpf.o", "which programs load on this kernel, and why not the others"},
    {"sudo rawbpf load --prog on_exec --pin /sys/fs/bpf/tool tool.bpf.o", "one program, to stay"},
    {"sudo rawbpf load --attach -d 5 tool.bpf.o", "attach it for five seconds, then show what its maps hold"},
    {"sudo rawbpf load --attach -i eth0 --json filter.bpf.o",
     "an XDP or tc program on an interface until Ctrl-C; maps as JSON lines"},
    {"sudo rawbpf load --attach --target xdp_main patch.bpf.o", "functions of a running program, replaced until Ctrl-C"},
    {"sudo rawbpf load --btf 5.10.btf tool.bpf.o", "on a kernel that has no BTF itself"},
    {"sudo rawbpf load --set wanted_pid=1234 --map counts:entries=1024 tool.bpf.o", "set what the tool's own loader would set"},
};

struct Outcome {
    const ProgramSpec *program = nullptr;
    bool loaded = false;
    std::optional<LoadAttempt> attempt;
    Error error = {};
    std::optional<load_tool::VerifierFigures> verifier = {};
    Refusal refusal = {};       ///< its sentence is empty where the error isn't about an instruction
    std::string explained = {}; ///< refused: the cause, the path, the remedy, in lines
};

// The cause, the path and the remedy, from the log: what rawbpf explain begins with. Empty where the log doesn't tell, or is of
// other instructions than the object's: those that relocations made.
std::string explained(const ObjectSpec &spec, const ProgramSpec *program, const Error &error) {
    if (!has(Part::verifier) || !program || error.log.empty()) return {};
    Result<explain::Trace> trace = explain::trace_of_log(error.log, *program);
    if (!trace) return {};
    return explain::short_text(explain::explain(spec, *program, std::move(*trace), nullptr), false);
}

class Report {
  public:
    Report(const Arguments &a, Output &output)
        : json_(a.text(option("format")) == "json"), verbose_(a.has(option("verbose"))), stats_(json_ || a.has(option("stats"))),
          out_(output) {}

    [[nodiscard]] bool json() const { return json_; }
    [[nodiscard]] bool verbose() const { return verbose_; }
    [[nodiscard]] render::Writer &writer() { return out_.writer(); }
    void header(const Arguments &a) {
        if (json_) append_json_header(out_.writer().text(), a);
    }
    void program(std::string_view object, const Outcome &outcome) {
        ++programs_;
        loaded_ += outcome.loaded;
        json_ ? program_json(object, outcome) : program_text(outcome);
    }
    /// `defined`: as the object and the command line have it. A ring buffer has whole pages, a power of two of them, and at least
    /// one.
    void map(const Map &map, const MapSpec &defined) {
        const bool ring = is_ring_buffer(map.type());
        if (json_) {
            render::JsonLine out(text(), "map");
            out.text("map", map.name())
                .text("map_type", sys::map_type_name(map.type()))
                .number("key_size", map.key_size())
                .number("value_size", map.value_size())
                .number("max_entries", map.max_entries());
            if (ring) out.number("defined_entries", defined.max_entries);
            return;
        }
        std::string rounded;
        if (ring && map.max_entries() != defined.max_entries)
            rounded = format(" (defined with {}; --map {}:entries=N says another size)", defined.max_entries, map.name());
        line(format("map {}: {}, key {} bytes, value {} bytes, {} {}{}", map.name(), sys::map_type_name(map.type()),
                    map.key_size(), map.value_size(), map.max_entries(), ring ? "bytes" : "entries", rounded));
    }
    /// An object that couldn't even be read.
    void unreadable(std::string_view object, const Error &error) {
        if (json_) render::JsonLine(text(), "object").text("object", object).truth("read", false).text("reason", error.message());
    }
    void summary() {
        if (json_) render::JsonLine(text(), "summary").number("programs", programs_).number("loaded", loaded_);
    }
    [[nodiscard]] bool all_loaded() const { return loaded_ == programs_; }
    [[nodiscard]] bool only_kernel_refused() const { return only_kernel_; }

  private:
    [[nodiscard]] std::string &text() { return out_.writer().text(); }
    void write(std::string_view text) { out_.writer().write(text); }
    void line(std::string_view text) {
        std::string clean;
        render::append_line(clean, text);
        write(clean);
    }
    void program_json(std::string_view object, const Outcome &outcome) {
        const ProgramSpec &p = *outcome.program;
        if (!outcome.loaded) only_kernel_ &= status_of(outcome.error) == 3;
        render::JsonLine out(text(), "program");
        out.text("object", object)
            .text("program", p.name)
            .text("section", p.section)
            .text("prog_type", program_type_word(p.type));
        out.truth("loaded", outcome.loaded);
        outcome.error.os ? out.signed_number("errno", outcome.error.os) : out.null("errno");
        const Refusal &refusal = outcome.refusal;
        outcome.loaded             ? out.null("reason")
        : refusal.sentence.empty() ? out.text("reason", outcome.error.message())
                                   : out.text("reason", format("{}: {}", object, refusal.sentence));
        if (!outcome.loaded) refusal_json(out, outcome);
        outcome.attempt ? out.number("insns", outcome.attempt->insns) : out.null("insns");
        const std::string hash = outcome.attempt ? format("{:016x}", outcome.attempt->insn_hash) : std::string();
        outcome.loaded ? out.text("insn_hash", hash) : out.null("insn_hash");
        load_tool::append_verifier_json(out, outcome.verifier);
        if (verbose_) {
            hash.empty() ? out.null("tried_hash") : out.text("tried_hash", hash);
            if (!outcome.error.log.empty()) out.text("log", outcome.error.log);
        }
    }
    // What `reason` says in one sentence, for scripts: what sort of mistake, where, and what helps.
    static void refusal_json(render::JsonLine &out, const Outcome &outcome) {
        out.text_or_null("hint", outcome.error.hint);
        const Refusal &r = outcome.refusal;
        if (r.sentence.empty()) return;
        out.text("class", r.kind).text("verifier", r.reason).text_or_null("registers", r.registers);
        place_json(out, r.at);
        out.text_or_null("function", r.function);
        std::string &notes = out.raw("notes");
        notes += '[';
        for (const RefusalNote &note : r.notes) {
            if (&note != r.notes.data()) notes += ',';
            render::JsonObject one(notes);
            one.text("text", note.text);
            place_json(one, note.at);
        }
        notes += ']';
    }
    static void place_json(render::JsonObject &out, const ProgramPlace &at) {
        at.insn < 0 ? out.null("insn") : out.number("insn", static_cast<uint64_t>(at.insn));
        out.text_or_null("instruction", at.instruction).text_or_null("file", at.file);
        at.line == 0 ? out.null("line") : out.number("line", at.line);
        at.column == 0 ? out.null("column") : out.number("column", at.column);
        out.text_or_null("source", at.source);
    }
    void program_text(const Outcome &outcome) {
        const ProgramSpec &p = *outcome.program;
        if (!outcome.loaded) only_kernel_ &= status_of(outcome.error) == 3;
        if (outcome.loaded) {
            line(format("{} {} ({}): loaded, {} instructions", p.name, p.section, program_type_word(p.type),
                        outcome.attempt ? outcome.attempt->insns : 0));
            if (stats_ && outcome.verifier) line(format("  {}", load_tool::verifier_text(*outcome.verifier)));
            return;
        }
        if (verbose_ && !outcome.error.log.empty()) write(printable_lines(outcome.error.log) + "\n");
        if (outcome.refusal.sentence.empty()) {
            line(format("{} {} ({}): {}", p.name, p.section, program_type_word(p.type), outcome.error.message()));
        } else {
            line(format("{} {} ({}): refused", p.name, p.section, program_type_word(p.type)));
            write(printable_lines(print_refusal(outcome.refusal)));
        }
        for (std::string_view hint = outcome.error.hint; !hint.empty();) {
            const size_t end = std::min(hint.find('\n'), hint.size());
            line(format("  hint: {}", hint.substr(0, end)));
            hint.remove_prefix(std::min(end + 1, hint.size()));
        }
        write(printable_lines(outcome.explained));
    }

    bool json_, verbose_, stats_;
    Output &out_;
    size_t programs_ = 0, loaded_ = 0;
    bool only_kernel_ = true;
};

const ProgramSpec *find(const ObjectSpec &spec, std::string_view name) {
    for (const ProgramSpec &program : spec.programs)
        if (program.name == name) return &program;
    return nullptr;
}

std::optional<load_tool::VerifierFigures> figures_of(LoadedObject &object, std::string_view name) {
    const Program *program = object.find_program(name);
    return program ? load_tool::verifier_figures(program->log) : std::nullopt;
}

Result<void> load_each(const ObjectSpec &spec, std::string_view object, const Arguments &a, LoadOptions options, Report &report) {
    const std::vector<std::string_view> only = a.all(option("prog"));
    options.pin_by_name = false;
    for (std::string_view name : only) {
        if (find(spec, name)) continue;
        options.programs = {std::string(name)};
        if (Result<LoadedObject> none = load(spec, options); !none) return Unexpected(std::move(none).error());
    }
    for (const ProgramSpec &program : spec.programs) {
        if (!only.empty() && std::find(only.begin(), only.end(), program.name) == only.end()) continue;
        std::vector<LoadAttempt> attempts;
        options.attempts = &attempts;
        options.programs = {program.name};
        Refusal refusal;
        const KeepRefusal keep(refusal);
        Result<LoadedObject> loaded = load(spec, options);
        Outcome outcome{&program, loaded.has_value(), {}, {}, {}, std::move(refusal)};
        if (loaded) outcome.verifier = figures_of(*loaded, program.name);
        if (!attempts.empty()) outcome.attempt = attempts.back();
        if (!loaded) outcome.error = std::move(loaded).error();
        outcome.explained = explained(spec, &program, outcome.error);
        report.program(object, outcome);
    }
    return {};
}

/// The program that ended the load; nullptr: none did.
const ProgramSpec *refused_program(const ObjectSpec &spec, const std::vector<LoadAttempt> &attempts, const Refusal &refusal) {
    if (!refusal.program.empty()) return find(spec, refusal.program);
    return attempts.empty() ? nullptr : find(spec, attempts.back().program);
}

std::optional<LoadAttempt> attempt_of(const std::vector<LoadAttempt> &attempts, std::string_view program) {
    for (const LoadAttempt &attempt : attempts)
        if (attempt.program == program) return attempt;
    return {};
}

/// Returns the error that ended it, already shown for its program; `why`: what explains it further. What is pinned is added to
/// `stays`.
Result<void> load_whole(const ObjectSpec &spec, std::string_view object, const Arguments &a, LoadOptions options,
                        const AttachRequest &attach, Report &report, Pins &stays, std::string &why) {
    std::vector<LoadAttempt> attempts;
    Refusal refusal;
    options.attempts = &attempts;
    const KeepRefusal keep(refusal);
    for (std::string_view name : a.all(option("prog"))) options.programs.emplace_back(name);
    Result<LoadedObject> loaded = load(spec, options);
    if (!loaded) {
        if (report.json()) // what was tried before went with it
            if (const ProgramSpec *last = refused_program(spec, attempts, refusal))
                report.program(object, Outcome{last, false, attempt_of(attempts, last->name), loaded.error(), {}, refusal});
        why = explained(spec, refused_program(spec, attempts, refusal), loaded.error());
        return Unexpected(std::move(loaded).error());
    }
    if (report.verbose())
        for (const std::string &note : loaded->notes) say(format("{}: {}\n", kWho, note));
    for (const LoadAttempt &attempt : attempts)
        report.program(object, Outcome{find(spec, attempt.program), true, attempt, {}, figures_of(*loaded, attempt.program), {}});
    for (size_t i = 0; i < loaded->maps.size(); ++i) report.map(loaded->maps[i], spec.maps[i]);
    Pins pins;
    for (const std::string &path : loaded->pinned_by_name) pins.add(path);
    if (a.has(option("pin"))) TRY(pin_object(*loaded, std::string(a.text(option("pin"))), pins));
    if (attach.wanted) TRY(run_attached(kWho, spec, *loaded, attach, pins, report.writer(), report.json(), report.verbose()));
    stays.add(std::move(pins));
    return {};
}

/// What the command line decides about the object, and whether there is anything in it to load.
Result<void> prepare(ObjectSpec &spec, const Arguments &a) {
    for (std::string_view setting : a.all(option("set"))) TRY_IN(load_tool::set_variable(spec, setting), "--set");
    for (std::string_view setting : a.all(option("map"))) TRY_IN(load_tool::set_map(spec, setting), "--map");
    if (!spec.programs.empty() || (!spec.maps.empty() && !spec.only_functions)) return {};
    if (spec.only_functions)
        return Unexpected(
            make_error(Errc::bad_input, format("{}: there is no program in it, only functions for programs to call", spec.name),
                       "a program stands in a section that says its type, such as SEC(\"xdp\"); a static one that others "
                       "call is no program; `rawbpf link` joins this object with one that has programs"));
    return fail(Errc::bad_input, "{}: there is no program and no map in it", spec.name);
}

int run_load(const Arguments &a) {
    if (a.has(option("each")) && a.has(option("pin")))
        return complain(
            kWho, make_error(Errc::invalid_argument, "--each lets go of each program at once; there is nothing to --pin"), 2);
    if (a.has(option("each")) && a.has(option("attach")))
        return complain(
            kWho, make_error(Errc::invalid_argument, "--each lets go of each program at once; there is nothing to --attach"), 2);
    if (a.has(option("attach")) && a.operands().size() > 1)
        return complain(kWho, make_error(Errc::invalid_argument, "--attach takes one object at a time"), 2);
    Result<AttachRequest> attach = attach_request(a, attach_ids(kOptions));
    if (!attach) return complain(kWho, attach.error(), attach.error().kind == Errc::invalid_argument ? 2 : 1);
    if (attach->wanted && a.has(option("pin"))) attach->pin_directory = a.text(option("pin"));
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);

    LoadOptions options;
    Fd target;
    if (a.has(option("target"))) {
        Result<Fd> found = find_loaded_program(std::string(a.text(option("target"))));
        if (!found) return complain(kWho, found.error());
        target = std::move(*found);
        options.target_program = target.get();
    }
    options.btf_path = a.text(option("btf"));
    options.single_probes = attach->wanted;
    if (a.has(option("stats")) || a.text(option("format")) == "json") options.log_level = uapi::BPF_LOG_STATS;
    std::shared_ptr<const btf::Btf> types; // held, so that it isn't opened anew for each program
    if (Result<std::shared_ptr<const btf::Btf>> opened = kernel_btf(options.btf_path))
        types = std::move(*opened);
    else if (!options.btf_path.empty())
        return complain(kWho, opened.error());
    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();

    Report report(a, *output);
    report.header(a);
    int status = 0;
    Pins pins; // they stay when all that there is to say about them has been written
    for (std::string_view operand : a.operands()) {
        const std::string path(operand);
        Result<ObjectFile> object = open_object_or_assembly(operand);
        if (!object) {
            report.unreadable(path, object.error());
            status = std::max(status, complain(kWho, object.error()));
            continue;
        }
        if (Result<void> ready = prepare(object->spec, a); !ready) {
            report.unreadable(path, ready.error());
            status = std::max(status, complain(kWho, ready.error()));
            continue;
        }
        if (a.has(option("each"))) {
            if (Result<void> done = load_each(object->spec, path, a, options, report); !done)
                status = std::max(status, complain(kWho, done.error()));
        } else {
            std::string why;
            if (Result<void> done = load_whole(object->spec, path, a, options, *attach, report, pins, why); !done) {
                if (!report.verbose()) done.error().log.clear();
                status = std::max(status, complain(kWho, done.error()));
                say(why);
            }
        }
    }
    report.summary();
    if (a.has(option("each")) && !report.all_loaded() && status == 0) status = report.only_kernel_refused() ? 3 : 1;
    Result<void> written = output->writer().flush();
    if (!written && !reader_gone(written.error())) return complain(kWho, written.error(), 1);
    pins.keep();
    return written ? status : 0;
}

} // namespace

const Command kLoad{
    .name = "load",
    .summary = "load a BPF object file, whole or program by program",
    .description =
        "Loads BPF programs into the kernel. OBJECT is compiled (an ELF object of clang or gcc) or source text for "
        "the assembler (rawbpf asm). rawbpf makes the maps, relocates accesses to the kernel's types (CO-RE), and has "
        "the kernel verify each program. When the command ends, the kernel frees everything, unless --pin is given; "
        "maps whose definition says that they are pinned by name stay in /sys/fs/bpf.\n\n"
        "With --attach, rawbpf attaches programs where their sections say, or where -i, --cgroup, --netns and -F say, "
        "for the duration or until Ctrl-C. Then it shows what iterators print and what the maps hold, with the "
        "object's types. If a program for many functions skips some of them, rawbpf says so on standard error. With "
        "--pin as well, rawbpf pins links as DIR/links/NAME, and waits only if -d is given.\n\n"
        "If the kernel refuses a program, the message names the instruction, its source line, the reason and what "
        "would help, and where the bad value came from (all of that: rawbpf explain); -v adds the verifier's whole log.\n\n"
        "JSON output has one object per program. Its insn_hash is FNV-1a 64 over the final instructions, in which a "
        "map's descriptor is replaced by the map's position in the object, other descriptors by 0. Equal hashes mean "
        "equal programs, whichever tool loaded them.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = SIZE_MAX,
    .operand_is_file = true,
    .run = run_load,
};

} // namespace rawbpf::inline v0::cli
