// What the verifier of our own knows beside a walk. By itself, so that builds without the verifier don't link it.
#pragma once

#include <memory>

#include "programs/exec/walk.h"
#include "runtime/object/spec.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::exec {

/// Verifies the program as it is run: with memory (options.memory) or its own context. The spec must outlive what is returned.
[[nodiscard]] std::unique_ptr<Knowledge> knowledge_of(const ObjectSpec &spec, size_t program,
                                                      const verifier::VerifyOptions &options);

} // namespace rawbpf::inline v0::exec
