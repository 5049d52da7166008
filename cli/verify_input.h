// What `verify`, `explain` and `asm --verify` share: operands, and the road from there to programs that can be verified.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/object_file.h"
#include "cli/options.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kVerifiedProgramOption{
    .name = "prog", .kind = OptionKind::text, .argument = "NAME", .help = "only this program of the object", .section = "What"};
inline constexpr Option kVerifiedBtfOption{.name = "btf",
                                           .letter = 'b',
                                           .kind = OptionKind::file,
                                           .argument = "FILE",
                                           .help =
                                               "a kernel's types to relocate against (CO-RE), instead of the running kernel's"};
inline constexpr Option kVerifiedKernelOption{
    .name = "kernel",
    .kind = OptionKind::text,
    .argument = "VERSION",
    .help = "as a kernel of this version would: 5.10 to 7.9. The differences are in runtime/verifier/rules.h",
    .fallback = "6.18"};

/// Objects that are ready to be verified.
struct VerifyInput {
    /// One of the programs.
    struct Which {
        size_t spec, program;
    };
    std::vector<ObjectSpec> specs; ///< relocated; an experiment may have several
    std::optional<KernelTypes> types;
    std::vector<Which> programs; ///< those that are asked for
    verifier::VerifyOptions options;
};
/// Where a command's table has these rows.
struct VerifyIds {
    Id program, btf, kernel;
};
template <size_t N> consteval VerifyIds verify_ids(const Option (&table)[N]) {
    return {find(table, "prog"), find(table, "btf"), find(table, "kernel")};
}
/// Operand: an object file, source text, an experiment (FILE.exp), instructions in hex, or "-" for standard input. Errors: what
/// is wrong with it; unsupported when it needs a kernel's types and there are none.
[[nodiscard]] Result<VerifyInput> verify_input(std::string_view path, const Arguments &a, const VerifyIds &ids);
/// The same from objects that are at hand. `program`: its name; empty: all. `btf`: a file; empty: the running kernel's types.
[[nodiscard]] Result<VerifyInput> ready_to_verify(std::vector<ObjectSpec> specs, std::string_view program, std::string_view btf,
                                                  KernelVersion kernel = verifier::kModelled);

/// How verdicts are shown.
struct VerdictStyle {
    std::string_view who; ///< in front of messages: "rawbpf verify"
    bool json = false, verbose = false;
};
/// Verifies one of them, and shows the verdict: `text` gets a line, standard error what there is to say of a refusal. 0:
/// accepted, 1: refused, 3: not decided.
[[nodiscard]] int show_verdict(const VerifyInput &input, VerifyInput::Which which, const VerdictStyle &style, std::string &text);
/// All of them: 0, or 1 if one is refused, else 3 if one is not decided.
[[nodiscard]] int show_verdicts(const VerifyInput &input, const VerdictStyle &style, std::string &text);
/// "at instruction 5 (r0 = *(u64 *)(r2 +0)), p.asm:6: R2 !read_ok", where the verifier refuses a program; empty: it doesn't, or
/// that isn't decided.
[[nodiscard]] std::string refusal_in_short(const ObjectSpec &spec, size_t program, const verifier::VerifyOptions &options);

} // namespace rawbpf::inline v0::cli
