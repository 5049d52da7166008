// Shared by the probes: loads the smallest program of each type, and reads the answer. Private to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "asm/insn.h"
#include "asm/kinds.h"
#include "runtime/base/fd.h"
#include "runtime/kernel/probes.h"

namespace rawbpf::inline v0 {

/// A program to try: `insns` empty means "return the least harmful value of its type".
struct TinyProgram {
    ProgramType type = ProgramType::SOCKET_FILTER;
    AttachType attach = AttachType{0}; ///< expected_attach_type
    uint32_t btf_id = 0;               ///< attach_btf_id
    bool sleepable = false;
    std::span<const Insn> insns = {};
};

struct Attempt {
    Fd fd;           ///< valid when it was loaded
    int os = 0;      ///< else errno
    std::string log; ///< what the verifier said; empty: it was never asked
    /// The verifier was reached: the type is known and these privileges are enough, whatever it thinks of the program.
    [[nodiscard]] bool heard() const { return fd || !log.empty(); }
};
[[nodiscard]] Attempt try_load(const TinyProgram &program);

/// The program as its type wants it: expected attach type, sleepable; for the tracing types without a target.
[[nodiscard]] TinyProgram usual_program(uint32_t type);

/// The id in the kernel's BTF of the function, typedef or struct called `name`; 0: there is none, or no BTF.
[[nodiscard]] uint32_t kernel_type_id(std::string_view name);

/// Why the kernel's BTF can't be looked at; empty: it can.
[[nodiscard]] std::string kernel_btf_problem();

/// What an errno says of something that the kernel didn't do. A shortage (ENOMEM, EMFILE ...) says nothing: unasked.
[[nodiscard]] Support support_from(int os);

void forget_attach_types();

} // namespace rawbpf::inline v0
