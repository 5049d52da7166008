// Verdicts on one program: the kernel's and that of runtime/verifier.
#pragma once

#include <cstdio>
#include <sys/utsname.h>

#include <optional>
#include <string>

#include "programs/exec/input.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/verifier_log.h"
#include "runtime/verifier/verify.h"
#include "tests/support/random_spec.h"

namespace rawbpf::test {

enum class Said : uint8_t { accepted, refused, neither };

/// What both said of one program.
struct Verdicts {
    Said kernel = Said::neither, ours = Said::neither; ///< neither: refused for something else than safety; not decided
    std::string kernel_reason, our_reason;
    int64_t kernel_insn = -1, our_insn = -1;
    [[nodiscard]] bool decided() const { return kernel != Said::neither && ours != Said::neither; }
    [[nodiscard]] bool agree() const { return kernel == ours; }
    /// What must never be.
    [[nodiscard]] bool wrongly_accepted() const { return kernel == Said::refused && ours == Said::accepted; }
};

/// The running kernel's version.
inline KernelVersion running_kernel() {
    utsname name{};
    unsigned major = 0, minor = 0;
    if (uname(&name) != 0 || std::sscanf(name.release, "%u.%u", &major, &minor) != 2) return {};
    return {static_cast<uint8_t>(major), static_cast<uint8_t>(minor)};
}
/// Whether it is the one that the model was last compared with.
inline bool is_modelled_kernel() { return running_kernel() == verifier::kModelled; }

/// `spec` is relocated. Ours judges as the running kernel would.
inline Verdicts verdicts_on(const ObjectSpec &spec, size_t number, verifier::VerifyOptions our_options = {}) {
    Verdicts out;
    our_options.kernel = running_kernel();
    const verifier::Verdict ours = verifier::verify(spec, number, our_options);
    out.ours = ours.outcome == verifier::Outcome::accepted  ? Said::accepted
               : ours.outcome == verifier::Outcome::refused ? Said::refused
                                                            : Said::neither;
    out.our_reason = ours.reason;
    if (ours.placed) out.our_insn = ours.insn;
    LoadOptions options;
    options.programs = {spec.programs[number].name};
    options.pin_by_name = false;
    Result<LoadedObject> loaded = load(spec, options);
    if (loaded) {
        out.kernel = Said::accepted;
        return out;
    }
    const VerifierReport report = read_verifier_log(loaded.error().log);
    out.kernel_reason = report.reason.empty() ? loaded.error().message() : report.reason;
    out.kernel_insn = report.insn;
    if (loaded.error().kind == Errc::rejected) out.kernel = Said::refused;
    return out;
}

} // namespace rawbpf::test
