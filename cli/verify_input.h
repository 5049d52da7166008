// What `verify` and `explain` share: their operands, and the road from there to programs that can be verified.
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
    .name = "prog", .kind = Kind::text, .argument = "NAME", .help = "only this program of the object", .section = "What"};
inline constexpr Option kVerifiedBtfOption{.name = "btf",
                                           .kind = Kind::file,
                                           .argument = "FILE",
                                           .help =
                                               "a kernel's types to relocate against (CO-RE), instead of the running kernel's"};
inline constexpr Option kVerifiedKernelOption{
    .name = "kernel",
    .kind = Kind::text,
    .argument = "VERSION",
    .help = "as a kernel of this version would: 5.10 to 7.9. The differences are in runtime/verifier/rules.h",
    .fallback = "6.18"};

/// An object that is ready to be verified.
struct VerifyInput {
    ObjectSpec spec; ///< relocated
    std::optional<KernelTypes> types;
    std::vector<size_t> programs; ///< which of the spec's
    verifier::VerifyOptions options;
};
/// Where a command's table has these rows.
struct VerifyIds {
    Id program, btf, kernel;
};
template <size_t N> consteval VerifyIds verify_ids(const Option (&table)[N]) {
    return {find(table, "prog"), find(table, "btf"), find(table, "kernel")};
}
/// Operand: an object file, source text, instructions in hex, or "-" for standard input. Errors: what is wrong with it;
/// unsupported when it needs a kernel's types and there are none.
[[nodiscard]] Result<VerifyInput> verify_input(std::string_view path, const Arguments &a, const VerifyIds &ids);

} // namespace rawbpf::inline v0::cli
