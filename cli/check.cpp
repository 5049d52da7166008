// `rawbpf check`: tells on which kernels an object's CO-RE relocations resolve. It needs the BTF of these kernels, not the
// kernels.
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
     .kind = OptionKind::file,
     .repeatable = true,
     .argument = "FILE",
     .help = "a kernel's types (a BTF file or a vmlinux), instead of the running kernel's",
     .section = "What"},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    verbose_option("text: also show what is missing but guarded"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf check prog.bpf.o", "whether the object's relocations resolve on this kernel"},
    {"rawbpf check prog.bpf.o --btf 5.10.btf --btf 6.1.btf --btf 6.12.btf",
     "on which of these kernels they resolve; status 1 if not on all"},
};

/// One kernel's answer, added to `text`; whether everything resolves there.
Result<bool> check_one(const ObjectFile &object, const std::string &path, bool json, bool all, std::string &text) {
    KernelTypes kernel = TRY(KernelTypes::open(path));
    Result<inspect::CoreView> view = inspect::view_core(object.spec, kernel.targets(), kernel.name());
    if (view) {
        json ? append_check_json(text, *view, object.file.name()) : append_check_text(text, *view, all);
        return view->unresolved == 0;
    }
    // A kernel whose types don't fit gets the answer "no"; a damaged object is an error.
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
    .description =
        "Relocates an object for each kernel whose types are given, and lists the CO-RE relocations that need something that "
        "this kernel doesn't have. If a program asks first whether a field, type or value exists, and uses it only if it does, "
        "the access is guarded: that is no error. The exit status is 1 if a kernel lacks something that unguarded code needs.\n\n"
        "Code that depends on values that are only known at load time (constants in .rodata, .kconfig) counts as reachable. The "
        "command loads nothing and needs no privileges.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_check,
};

} // namespace rawbpf::inline v0::cli
