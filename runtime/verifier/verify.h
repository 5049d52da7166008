// SPDX-License-Identifier: MIT
// rawbpf's own verifier: tells whether a kernel would accept a program, and why not, without asking a kernel. PURE.
//
//      instructions, maps, types of the object, a kernel's version  ->  a verdict and the walk that led to it
//
// It is a model of the kernel's verifier (kernel/bpf/verifier.c), in the same words, for reading and for explaining. It never
// guesses: if a program uses something that the model lacks, the verdict is "not decided", with its name. The model has all
// privileges: it accepts what the kernel refuses only because privileges are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "asm/opcodes.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"
#include "runtime/verifier/walk.h"

namespace rawbpf::inline v0::verifier {

/// The newest kernel that the model was compared with.
inline constexpr KernelVersion kModelled{6, 18};

/// What the verdict depends on beside the object.
struct VerifyOptions {
    KernelVersion kernel = kModelled;       ///< the kernel whose verdict is asked for
    uint32_t most_steps = 1'000'000;        ///< as in the kernel; less for quick answers, which are "not decided" then
    const btf::Btf *kernel_types = nullptr; ///< for names of kernel functions; nullptr: none are at hand
    uint32_t registers_size = 168;          ///< of struct pt_regs, the context of a probe: x86_64's; arm64 has 336
    /// Instead of a context, r1 points to so many bytes and r2 is their number, as exec and step call programs. Every r0 is good.
    std::optional<uint32_t> memory = {};
    /// Registers that are the number 0 when the program begins, a bit each: to ask what would be if they were.
    uint16_t zeroed = 0;
};

/// The three verdicts.
enum class Outcome : uint8_t { accepted, refused, undecided };

/// What verify() says.
struct Verdict {
    Outcome outcome = Outcome::undecided; ///< what the kernel would say, where it is modelled
    uint32_t insn = 0;                    ///< refused, undecided: where; counted in slots of 8 bytes
    bool placed = false;                  ///< whether `insn` means something
    std::string reason;     ///< refused: in the kernel's words, lines joined by "; ". undecided: what isn't modelled
    uint32_t step = 0;      ///< refused: the last step of the path that leads there; 0: it wasn't walked
    uint32_t processed = 0; ///< instructions looked at, as the kernel counts them
    uint32_t states = 0;    ///< points that were kept to compare with
    Walk walk;              ///< every step, as far as it came
};

/// Verifies one program of an object that is relocated (relocate_core()) where it has to be. `program`: an index.
[[nodiscard]] Verdict verify(const ObjectSpec &spec, size_t program, const VerifyOptions &options = {});

} // namespace rawbpf::inline v0::verifier
