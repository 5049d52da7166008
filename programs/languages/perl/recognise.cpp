#include "programs/languages/perl/recognise.h"

#include "programs/languages/exports.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::perl {
namespace {

// Three bytes of constants: PL_revision, PL_version, PL_subversion.
uint32_t version_of(const elf::Elf &file, Bytes bytes, const Interpreter &of) {
    uint32_t version = 0;
    for (const char *part : {"PL_revision", "PL_version", "PL_subversion"}) {
        const auto at = file.file_offset(of.address(part));
        if (of.address(part) == 0 || !at || *at >= bytes.size()) return 0;
        version = version << 8 | static_cast<uint8_t>(bytes[*at]);
    }
    return version;
}

} // namespace

std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes) {
    if (!may_export(file, "Perl_runops_standard").value_or(true)) return std::nullopt;
    Interpreter out = exported(file, bytes,
                               {"PL_thr_key", "PL_curinterp", "PL_interp_size", "PL_block_type", "PL_op_name", "PL_ppaddr",
                                "PL_revision", "PL_version", "PL_subversion"},
                               "Perl_runops_standard");
    if (out.evaluates.empty() || out.address("PL_revision") == 0) return std::nullopt;
    out.version = version_of(file, bytes, out);
    out.functions = all_functions(file);
    if (out.address("PL_thr_key") == 0)
        out.why_not = "it is a build without threads, where the interpreter's variables lie in another way";
    for (const char *name : {"PL_interp_size", "PL_block_type", "PL_op_name", "PL_ppaddr"})
        if (out.why_not.empty() && out.address(name) == 0)
            out.why_not = format("it doesn't export {}, by which its frames are understood", name);
    return out;
}

} // namespace rawbpf::inline v0::languages::perl
