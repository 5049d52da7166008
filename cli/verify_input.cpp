// Opens what is to be verified. An object with CO-RE relocations is relocated as for loading it, since a verdict depends on the
// offsets; types come from a file, or from the running kernel, which shows them to everybody.
#include "cli/verify_input.h"

#include "cli/asm_file.h"
#include "programs/exec/input.h"
#include "runtime/base/fail.h"
#include "runtime/object/core.h"

namespace rawbpf::inline v0::cli {

namespace {

Result<KernelVersion> version_of(std::string_view text) {
    unsigned part[2] = {0, 0};
    size_t at = 0;
    bool good = !text.empty();
    for (int n = 0; n < 2 && good; ++n) {
        const size_t from = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9' && part[n] < 100)
            part[n] = part[n] * 10 + static_cast<unsigned>(text[at++] - '0');
        good = at > from && (n == 0 ? at < text.size() && text[at++] == '.' : at == text.size() || text[at] == '.');
    }
    if (!good || part[0] > 99 || part[1] > 99)
        return fail(Errc::invalid_argument, "--kernel {}: that is no version, such as 6.1", text);
    const KernelVersion version{static_cast<uint8_t>(part[0]), static_cast<uint8_t>(part[1])};
    if (version.major < 5 || (version.major == 5 && version.minor < 10) || version.major > 7)
        return fail(Errc::invalid_argument, "--kernel {}: the model is of 5.10 to 7.9", text);
    return version;
}

} // namespace

Result<VerifyInput> verify_input(std::string_view path, const Arguments &a, const VerifyIds &ids) {
    VerifyInput out;
    out.options.kernel = TRY(version_of(a.text(ids.kernel)));
    const InputFile file = TRY(InputFile::open(path));
    out.spec =
        kind_of(file.bytes()) == InputKind::text ? TRY(open_assembly(file)) : TRY(exec::read_program(file.bytes(), file.name()));
    if (a.has(ids.program)) {
        out.programs.push_back(TRY(exec::choose_program(out.spec, a.text(ids.program))));
    } else {
        for (size_t i = 0; i < out.spec.programs.size(); ++i) out.programs.push_back(i);
    }
    if (out.programs.empty()) return fail(Errc::bad_input, "{}: there is no program in it", out.spec.name);
    if (a.has(ids.btf) || needs_core(out.spec)) {
        out.types = TRY(KernelTypes::open(std::string(a.text(ids.btf))));
        TRY(relocate_core(out.spec, out.types->targets()));
    } else if (Result<KernelTypes> types = KernelTypes::open({})) {
        out.types = std::move(*types); // for names of kernel functions; without it, they are not decided
    }
    if (out.types) out.options.kernel_types = out.types->targets().kernel;
    return out;
}

} // namespace rawbpf::inline v0::cli
