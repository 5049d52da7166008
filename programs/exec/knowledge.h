// What rawbpf's verifier knows at each step of a run. It is a separate file, so that builds without the verifier don't link it.
#pragma once

#include <memory>

#include "programs/exec/stepper.h"
#include "runtime/object/spec.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::exec {

/// The verifier's options for a program as it is run: with so many bytes of memory, or with its own context. Its answer takes
/// some milliseconds at most.
[[nodiscard]] inline verifier::VerifyOptions options_as_run(bool packet, size_t memory) {
    verifier::VerifyOptions out;
    out.most_steps = 100'000;
    if (!packet && memory != 0) out.memory = static_cast<uint32_t>(memory);
    return out;
}

/// Verifies the program as it is run: with memory (options.memory) or its own context. The spec must outlive what is returned.
[[nodiscard]] std::unique_ptr<Knowledge> knowledge_of(const ObjectSpec &spec, size_t program,
                                                      const verifier::VerifyOptions &options);

} // namespace rawbpf::inline v0::exec
