// A bare glob names functions of the kernel, and this kernel's best way to them is chosen here:
//
//      fentry          a few functions, where BTF knows them and the kernel has trampolines: the cheapest, with typed arguments
//      kprobe.multi    many, since 5.18; kprobe where there is neither
//
// Return probes replace return addresses, and some programs look at those. What the kernel can't know is seen to here: functions
// of programs made by Go get probes at their return instructions instead (go_place.cpp), and, unless the user takes the risk,
// functions of programs that unwind their stacks for C++ exceptions.
#include "programs/trace/match.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include <elf.h>
#include <linux/bpf.h>

#include "programs/trace/format_file.h"
#include "programs/trace/go_place.h"
#include "programs/trace/system_calls.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/elf/elf.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/kernel_functions.h"
#include "runtime/link/names.h"
#include "runtime/link/return_instructions.h"
#include "runtime/link/tracefs.h"
#include "runtime/link/user_functions.h"
#include "runtime/sys/file.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kMostTrampolines = 16; // a program each
constexpr size_t kFormatBytes = 64 << 10;

// --- Places inside of functions

// What is wanted of it that it doesn't have.
Result<void> check_offset(const ProbeSpec &spec, const MatchOptions &options) {
    if (spec.offset == 0 || !options.results) return {};
    return Unexpected(make_error(Errc::invalid_argument,
                                 format("{}: a place inside a function has no return, and no duration", spec.text),
                                 "without --returns, --graph, --latency, --min-duration, --errors and -f folded"));
}

std::string name_inside(const std::string &function, uint64_t offset) { return format("{}+{:#x}", function, offset); }

// The kernel looks at a kprobe's place itself; a uprobe it puts where it is told to, and what is inside of an instruction then is
// another instruction. Returns what is to be told, or nothing.
Result<std::string> check_instruction(const ProbeSpec &spec, const UserFunctions &file, const UserFunction &function) {
    if (function.size != 0 && spec.offset >= function.size)
        return fail(Errc::invalid_argument, "{}: {} has {} bytes", spec.text, function.name, function.size);
    const Bytes image = file.image();
    if (function.offset >= image.size()) return std::string();
    const size_t there = image.size() - function.offset;
    const Bytes code = image.subspan(function.offset, function.size == 0 ? there : std::min<size_t>(there, function.size));
    const std::optional<uint64_t> begins = instruction_with(code, spec.offset, file.elf().machine());
    if (!begins)
        return format("{}: rawbpf can't tell whether an instruction begins there; if none does, the probe breaks the program",
                      spec.text);
    if (*begins == spec.offset) return std::string();
    uint64_t next = spec.offset + 1;
    while (next < code.size() && instruction_with(code, next, file.elf().machine()) == begins) ++next;
    return Unexpected(make_error(Errc::invalid_argument, format("{}: no instruction begins there", spec.text),
                                 format("the one that is there begins at {}, the next at {}", name_inside(function.name, *begins),
                                        name_inside(function.name, next))));
}

// --- Kernel functions

// The signatures of all of them in one pass over the kernel's types.
Result<void> add_signatures(std::vector<ProbeSite> &places, const btf::Btf &btf) {
    std::map<std::string_view, std::vector<ProbeSite *>> wanted;
    for (ProbeSite &place : places)
        if (place.module.empty()) wanted[place.function].push_back(&place);
    const auto take = [&](btf::TypeId id, const std::vector<ProbeSite *> &who) -> Result<void> {
        Signature signature = TRY(signature_of(btf, id));
        for (ProbeSite *place : who) place->signature = signature;
        return {};
    };
    if (btf.sorted() || wanted.size() <= 2) {
        for (const auto &[name, who] : wanted)
            if (auto id = btf.find(name, btf::Kind::func)) TRY(take(*id, who));
        return {};
    }
    for (btf::TypeId id = btf.first_id(); id < btf.end_id(); ++id) {
        const btf::Type type = TRY(btf.type(id));
        if (type.kind != btf::Kind::func) continue;
        if (auto at = wanted.find(type.name); at != wanted.end()) TRY(take(id, at->second));
    }
    return {};
}

Result<Matched> match_kernel(const ProbeSpec &spec, const MatchOptions &options) {
    Matched out;
    TRY(check_offset(spec, options));
    MatchedFunctions found;
    if (is_pattern(spec.pattern) || spec.kind != ProbeKind::kprobe) {
        found = TRY(match_kernel_functions(spec.pattern));
    } else {
        found.functions = TRY(find_kernel_functions(spec.pattern)); // a kprobe needs no ftrace
    }
    if (found.hidden > 0) {
        std::string note =
            format("{}: skipped {} of {} functions, which can't be traced (notrace, inlined elsewhere): ", spec.text,
                   found.hidden, found.hidden + found.functions.size());
        for (size_t i = 0; i < found.hidden_names.size(); ++i) append(note, "{}{}", i ? ", " : "", found.hidden_names[i]);
        if (found.hidden > found.hidden_names.size()) note += " ...";
        out.notes.push_back(std::move(note));
    }
    for (KernelFunction &function : found.functions) {
        ProbeSite place;
        place.kind = spec.kind;
        place.function = std::move(function.name);
        place.module = std::move(function.module);
        place.address = function.address;
        out.places.push_back(std::move(place));
    }
    if (spec.offset != 0) { // arguments were what the function began with
        if (out.places.size() > 1)
            return fail(Errc::invalid_argument, "{}: {} functions have that name, so an offset from it is ambiguous", spec.text,
                        out.places.size());
        ProbeSite &place = out.places.front();
        place.function = name_inside(place.function, spec.offset);
        place.offset = spec.offset;
        if (place.address) place.address += spec.offset;
        return out;
    }
    bool typed = false;
    const bool trampolines = spec.kind == ProbeKind::fentry || spec.kind == ProbeKind::fexit;
    const bool few = spec.kind == ProbeKind::function && out.places.size() <= kMostTrampolines;
    if (options.signatures || trampolines || few) {
        if (Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf()) {
            TRY(add_signatures(out.places, **kernel));
            typed = true;
        } else if (trampolines) {
            return Unexpected(in_context(std::move(kernel).error(), format("{} needs the kernel's BTF", spec.text)));
        }
    }
    if (spec.kind == ProbeKind::function) {
        const auto known = [](const ProbeSite &place) { return place.signature.known && place.module.empty(); };
        const bool fentry = few && typed && std::all_of(out.places.begin(), out.places.end(), known) &&
                            probe_attach_type(BPF_TRACE_FENTRY).support == Support::yes;
        for (ProbeSite &place : out.places) place.kind = fentry ? ProbeKind::fentry : ProbeKind::kprobe;
        out.notes.push_back(format("{}: {} function{}, by {}", spec.text, out.places.size(), out.places.size() == 1 ? "" : "s",
                                   fentry                                                              ? "fentry"
                                   : probe_attach_type(BPF_TRACE_KPROBE_MULTI).support == Support::yes ? "kprobe.multi"
                                                                                                       : "kprobe"));
    } else if (trampolines) {
        std::erase_if(out.places, [&](const ProbeSite &place) {
            if (place.signature.known) return false;
            out.notes.push_back(format("skipped {}: it isn't in the kernel's BTF", place.describe()));
            return true;
        });
        if (out.places.empty()) return fail(Errc::not_found, "{}: the kernel's BTF knows none of these functions", spec.text);
    }
    return out;
}

// --- Functions of programs

// What it imports, or what it brings along, that a return probe doesn't survive: the kernel's return address, in place of the
// function's own, is found by who looks for a handler of an exception; and it is taken for one that was left behind as soon as
// the stack pointer is another stack's (arch_uretprobe_is_alive() compares them). nullptr: nothing.
const char *return_risk(const std::string &path) {
    Result<sys::Mapping> image = sys::map_file(path);
    if (!image) return nullptr;
    Result<elf::Elf> elf = elf::Elf::parse(image->bytes(), path);
    if (!elf) return nullptr;
    for (const elf::Section &section : elf->sections()) {
        if (section.type != 11) continue; // SHT_DYNSYM
        Result<elf::SymbolTable> symbols = elf->symbol_table(section);
        for (size_t i = 0; symbols && i < symbols->size(); ++i) {
            Result<std::string_view> name = symbols->name(i);
            if (name && (name->starts_with("_Unwind_RaiseException") || name->starts_with("__cxa_throw") ||
                         name->starts_with("_Unwind_Resume")))
                return "it unwinds its stack (C++ exceptions), and an exception that meets a return probe ends it";
            if (name && (*name == "swapcontext" || *name == "setcontext") && symbols->at(i).section == SHN_UNDEF)
                return "it changes stacks (swapcontext(3)), and a return on another stack than the last call's ends it";
        }
    }
    return nullptr;
}

Result<Matched> match_user(const ProbeSpec &spec, const MatchOptions &options) {
    Matched out;
    TRY(check_offset(spec, options));
    const std::string path = TRY(find_binary(spec.file, options.pid));
    const UserFunctions file = TRY_IN(UserFunctions::open(path), "{}", spec.text);
    const bool returns = options.results || spec.kind == ProbeKind::uretprobe;
    if (const char *risk = returns && !file.is_go() && !options.allow_unwind_risk ? return_risk(path) : nullptr)
        return Unexpected(
            make_error(Errc::unsupported, format("{}: {}", path, risk), "--allow-unwind-risk traces the returns nevertheless"));
    std::vector<UserFunction> functions;
    if (spec.pattern.starts_with("0x")) {
        uint64_t offset = 0;
        for (char c : std::string_view(spec.pattern).substr(2)) {
            const int digit = hex_digit(c);
            if (digit < 0 || offset >> 60) return fail(Errc::invalid_argument, "{}: {} is no offset", spec.text, spec.pattern);
            offset = offset << 4 | static_cast<unsigned>(digit);
        }
        functions.push_back({spec.pattern, offset, 0});
    } else if (is_pattern(spec.pattern)) {
        functions = TRY_IN(file.match(spec.pattern), "{}", spec.text);
    } else {
        functions.push_back(TRY_IN(file.find(spec.pattern), "{}", spec.text));
    }
    if (spec.offset != 0)
        if (std::string note = TRY(check_instruction(spec, file, functions.front())); !note.empty())
            out.notes.push_back(std::move(note));
    Signature signature;
    std::optional<GoProgram> go;
    if (file.is_go() && spec.offset != 0)
        signature.known = true; // of no arguments: their registers have other values by then, or none that is known
    else if (file.is_go())
        go = TRY(GoProgram::open(file, options.signature));
    else if (!options.signature.empty())
        signature = TRY_IN(parse_signature(options.signature), "--sig");
    if (go && options.signatures)
        if (std::string note = go->read_types(functions); !note.empty()) out.notes.push_back(std::move(note));
    size_t passed = 0, passed_go = 0, copies = 0;
    std::string names, suffixes;
    for (UserFunction &function : functions) {
        if (!function.suffix.empty() && copies++ < 8 && suffixes.find(function.suffix) == std::string::npos)
            append(suffixes, "{}{}", suffixes.empty() ? "" : ", ", function.suffix);
        if (!go && returns && returns_to_nobody(function.symbol)) {
            if (passed++ < 8) append(names, "{}{}", names.empty() ? "" : ", ", function.name);
            continue;
        }
        ProbeSite place;
        place.kind = spec.kind;
        place.file = path;
        place.address = function.offset + spec.offset;
        place.offset = spec.offset;
        place.signature = signature;
        if (go && !go->describe(function, returns, place)) {
            if (passed_go++ < 8) append(names, "{}{}", names.empty() ? "" : ", ", function.name);
            continue;
        }
        place.function = spec.offset ? name_inside(function.name, spec.offset) : std::move(function.name);
        out.places.push_back(std::move(place));
    }
    if (copies)
        out.notes.push_back(
            format("{}: {} of {} are copies or parts that the compiler made ({}); their arguments may differ from the "
                   "source's",
                   spec.text, copies, functions.size(), suffixes));
    if (passed_go)
        out.notes.push_back(format("{}: skipped {} functions, because rawbpf couldn't find their return instructions: {}{}",
                                   spec.text, passed_go, names, passed_go > 8 ? " ..." : ""));
    if (passed)
        out.notes.push_back(format("{}: skipped {} functions, which have no return address of their own: {}{}", spec.text, passed,
                                   names, passed > 8 ? " ..." : ""));
    if (out.places.empty()) return fail(Errc::not_found, "{}: none of the functions can have a probe at its return", spec.text);
    return out;
}

// --- Tracepoints and system calls

Result<Fields> read_fields(const std::string &category, const std::string &name) {
    const std::string path = format("{}/events/{}/{}/format", TRY(tracefs()), category, name);
    return parse_format(TRY(sys::read_file(path, kFormatBytes)), format("{}:{}", category, name));
}

// The call that sys_enter_NAME or sys_exit_NAME is about.
std::string_view call_of(std::string_view event) {
    for (const std::string_view end : {"sys_enter_", "sys_exit_"})
        if (event.starts_with(end)) return event.substr(end.size());
    return {};
}

// Whether the record has what the registers have, in their order, a word each: then it needn't be made.
bool fields_are_arguments(const ProbeSite &place) {
    constexpr size_t kFirst = 16, kMost = 6;
    for (size_t i = 0; i < place.offsets.size(); ++i)
        if (place.offsets[i] != kFirst + 8 * i) return false;
    return place.offsets.size() <= kMost;
}

Result<ProbeSite> tracepoint_place(ProbeKind kind, const std::string &category, const std::string &event, std::string function) {
    ProbeSite place;
    place.kind = kind;
    place.category = category;
    place.function = std::move(function);
    Fields fields = TRY(read_fields(category, event));
    place.signature.known = true;
    place.signature.parameters = std::move(fields.fields);
    place.signature.returns = {"long", Show::integer, 8, true};
    place.offsets = std::move(fields.offsets);
    // Copies that ftrace makes of the texts (since 7.0). A BPF program gets the arguments alone, and is refused if it reads on.
    if (category == "syscalls") {
        std::vector<Parameter> &all = place.signature.parameters;
        while (!all.empty() && all.back().type.show == Show::data_text) {
            all.pop_back();
            place.offsets.pop_back();
        }
        if (fields_are_arguments(place)) place.number = system_call_number(call_of(event));
    }
    return place;
}

Result<Matched> match_tracepoints(const ProbeSpec &spec) {
    Matched out;
    const std::string events = TRY(tracefs()) + "/events";
    // The usual case, without a look at two thousand others.
    if (!is_pattern(spec.category) && !is_pattern(spec.pattern) &&
        sys::exists(format("{}/{}/{}/id", events, spec.category, spec.pattern))) {
        out.places.push_back(TRY(tracepoint_place(ProbeKind::tracepoint, spec.category, spec.pattern, spec.pattern)));
        return out;
    }
    NearestNames near(spec.category + ":" + spec.pattern);
    for (const std::string &category : TRY(sys::list_directory(events))) {
        const bool wanted = matches_pattern(spec.category, category);
        Result<std::vector<std::string>> names = sys::list_directory(events + "/" + category);
        if (!names && wanted && sys::is_unread(names.error())) return Unexpected(in_context(std::move(names).error(), spec.text));
        if (!names) continue; // a file, or a category that went with its module
        for (const std::string &name : *names) {
            if (!sys::exists(format("{}/{}/{}/id", events, category, name))) continue;
            if (wanted && matches_pattern(spec.pattern, name))
                out.places.push_back(TRY(tracepoint_place(ProbeKind::tracepoint, category, name, name)));
            else
                near.see(category + ":" + name);
        }
    }
    if (out.places.empty())
        return Unexpected(make_error(Errc::not_found, format("{}: no such tracepoint in this kernel", spec.text), near.hint()));
    std::sort(out.places.begin(), out.places.end(),
              [](const ProbeSite &a, const ProbeSite &b) { return a.describe() < b.describe(); });
    return out;
}

Result<Matched> match_syscalls(const ProbeSpec &spec) {
    Matched out;
    const std::string folder = TRY(tracefs()) + "/events/syscalls";
    Result<std::vector<std::string>> names = sys::list_directory(folder);
    if (!names) {
        if (names.error().os != ENOENT) return Unexpected(in_context(std::move(names).error(), spec.text));
        return Unexpected(make_error(Errc::unsupported, format("{}: this kernel has no tracepoints for system calls", spec.text),
                                     format("there is no {} (CONFIG_FTRACE_SYSCALLS)", folder)));
    }
    constexpr std::string_view kEnter = "sys_enter_";
    NearestNames near(spec.pattern);
    std::sort(names->begin(), names->end());
    for (const std::string &name : *names) {
        if (!name.starts_with(kEnter)) continue;
        std::string call = name.substr(kEnter.size());
        if (!matches_pattern(spec.pattern, call)) {
            near.see(call);
            continue;
        }
        out.places.push_back(TRY(tracepoint_place(ProbeKind::syscall, "syscalls", name, std::move(call))));
    }
    if (out.places.empty())
        return Unexpected(make_error(Errc::not_found, format("{}: no such system call in this kernel", spec.text), near.hint()));
    return out;
}

Result<Matched> match_raw(const ProbeSpec &spec) {
    if (is_pattern(spec.pattern))
        return Unexpected(make_error(Errc::invalid_argument, format("{}: raw tracepoints are named one by one", spec.text),
                                     "tracepoint:CATEGORY:GLOB takes patterns"));
    Matched out;
    ProbeSite place;
    place.kind = ProbeKind::raw_tp;
    place.function = spec.pattern;
    // BTF has each one's prototype, behind the private pointer that comes first.
    if (Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf()) {
        if (auto id = (*kernel)->find("btf_trace_" + spec.pattern, btf::Kind::typedef_)) {
            btf::Type type = TRY((*kernel)->resolve(*id));
            if (type.kind == btf::Kind::ptr) {
                place.signature = TRY(signature_of(**kernel, type.size_or_type));
                if (!place.signature.parameters.empty()) place.signature.parameters.erase(place.signature.parameters.begin());
            }
        }
    }
    out.places.push_back(std::move(place));
    return out;
}

} // namespace

Result<Matched> match_probe(const ProbeSpec &spec, const MatchOptions &options) {
    switch (spec.kind) {
    case ProbeKind::uprobe:
    case ProbeKind::uretprobe: return match_user(spec, options);
    case ProbeKind::tracepoint: return match_tracepoints(spec);
    case ProbeKind::syscall: return match_syscalls(spec);
    case ProbeKind::usdt: return match_usdt(spec, options);
    case ProbeKind::raw_tp: return match_raw(spec);
    default: return match_kernel(spec, options);
    }
}

} // namespace rawbpf::inline v0::trace
