// `rawbpf check`: on which kernels do an object's CO-RE relocations resolve? Needs their BTF, not the kernels.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "programs/inspect/core_view.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf check";

constexpr Option kOptions[] = {
    {.name = "btf",
     .letter = 'b',
     .kind = Kind::file,
     .repeatable = true,
     .argument = "FILE",
     .help = "a kernel's types, as BTF or a vmlinux, instead of the running kernel's",
     .section = "What"},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    verbose_option("text: show what is missing but guarded, too"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf check prog.bpf.o", "will its types be found on this kernel"},
    {"rawbpf check prog.bpf.o --btf 5.10.btf --btf 6.1.btf --btf 6.12.btf", "on which of these kernels; status 1 if not on all"},
};

/// One kernel's answer, added to `text`; whether everything resolves there.
Result<bool> check_one(const ObjectFile &object, const std::string &path, bool json, bool all, std::string &text) {
    KernelTypes kernel = TRY(KernelTypes::open(path));
    Result<inspect::CoreView> view = inspect::view_core(object.spec, kernel.targets(), kernel.name());
    if (view) {
        json ? append_check_json(text, *view, object.file.name()) : append_check_text(text, *view, all);
        return view->unresolved == 0;
    }
    // Types that disagree are this kernel's answer; a broken object is nobody's.
    if (view.error().kind != Errc::unsupported) return Unexpected(std::move(view).error());
    if (json)
        render::JsonLine(text, "check")
            .text("object", object.file.name())
            .text("btf", kernel.name())
            .truth("ok", false)
            .text("reason", view.error().message());
    else
        append(text, "{}: no: {}\n", kernel.name(), view.error().message());
    return false;
}

int run_check(const Arguments &a) {
    Result<ObjectFile> object = open_object(a.operands()[0]);
    if (!object) return complain(kWho, object.error(), 1);
    const bool json = a.text(option("format")) == "json";
    std::string text;
    if (json) append_json_header(text, a);
    std::vector<std::string_view> files = a.all(option("btf"));
    if (files.empty()) files.emplace_back();
    bool ok = true;
    for (std::string_view file : files) {
        Result<bool> here = check_one(*object, std::string(file), json, a.has(option("verbose")), text);
        if (!here) return complain(kWho, here.error());
        ok &= *here;
    }
    const int status = write_result(kWho, a.text(option("output")), text);
    return status ? status : ok ? 0 : 1;
}

} // namespace

const Command kCheck{
    .name = "check",
    .summary = "tell on which kernels an object's relocations resolve",
    .description = "Relocates an object to each of the kernels whose types are given, and lists the CO-RE relocations for which "
                   "something is missing there. If a program first asks whether a field, type or value exists, and uses it only "
                   "then, the access is guarded: that is no error. The exit status is 1 if on some kernel something is missing "
                   "in code that the verifier reaches.\n\n"
                   "Code that depends on numbers which are only known when the object is loaded (constants in .rodata, .kconfig) "
                   "counts as reachable. The command loads nothing and needs no privileges.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_check,
};

} // namespace rawbpf::inline v0::cli
