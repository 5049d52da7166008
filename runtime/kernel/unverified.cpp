// Why a program was not loaded that the verifier never came to look at: its type, its way of attaching, its privileges.
#include <cerrno>
#include <linux/bpf.h>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/permission_error.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/program_error.h"
#include "runtime/sys/names.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {

std::string name_of(const ProgramSpec &program) {
    return program.section.empty() || program.section == program.name ? format("program {}", program.name)
                                                                      : format("program {} ({})", program.name, program.section);
}

// A tracing program for a way of attaching that this kernel hasn't is refused for whatever it stumbles over first.
void name_missing_attach_type(const ProgramSpec &program, const Error &refusal, Error &error) {
    if (program.type != BPF_PROG_TYPE_TRACING || refusal.os != EINVAL ||
        probe_attach_type(program.expected_attach_type).support != Support::no)
        return;
    const std::string_view since = attach_type_since(program.expected_attach_type);
    error.kind = Errc::unsupported;
    error.hint = format("this kernel has no programs of attach type {}{}", attach_type_name(program.expected_attach_type),
                        since.empty() ? "" : format(", which came with Linux {}", since));
}

Error explain_unverified(const ProgramSpec &program, Error refusal, std::string log) {
    Error error = in_context(std::move(refusal), format("loading {}", name_of(program)));
    if (error.os == EINVAL && probe_program_type(program.type).support == Support::no) {
        error.kind = Errc::unsupported;
        error.hint = format("this kernel has no programs of type {}", sys::prog_type_name(program.type));
    }
    name_missing_attach_type(program, error, error);
    if (error.os == EPERM) {
        const uint32_t types[] = {program.type};
        error.hint = missing_privileges(types);
        if (error.hint.empty())
            error.hint =
                format("{}: this kernel's policy refuses such programs (a security module, lockdown, or its build options); "
                       "rawbpf doctor lists what it allows",
                       sys::capabilities() ? "the process has all capabilities that it needs"
                                           : "rawbpf can't tell whether the process has all capabilities; if it has");
    }
    error.log = std::move(log);
    return error;
}

} // namespace rawbpf::inline v0
