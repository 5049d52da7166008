// Program types.
//
// The kernel looks a program's type up before it looks at the program (kernel/bpf/syscall.c, find_prog_type(); bpf_check() comes
// later). So a type is known exactly when the verifier has been reached: when the program was loaded, or when there is
// something in the log. That also answers for types that can't be loaded without a target (TRACING, LSM, EXT, STRUCT_OPS):
//
//      EINVAL, log empty                                          no such type
//      EINVAL, log "Tracing programs must provide btf_id"         known
//      EPERM,  log empty                                          not with these privileges, or a policy
#include "runtime/kernel/probe_load.h"

#include <cerrno>
#include <linux/bpf.h>
#include <memory>

#include "runtime/kernel/loader.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
Support support_from(int os) {
    switch (os) {
    case EPERM:
    case EACCES: return Support::refused;
    case EAGAIN:
    case EBUSY:
    case EDQUOT:
    case EINTR:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC: return Support::unasked; // the machine's answer, not the kernel's
    default: return Support::no;
    }
}

Attempt try_load(const TinyProgram &program) {
    const Insn value_only[] = {{0xb7, 0, 0, 0, program_type_row(static_cast<uint32_t>(program.type)).value},
                               {0x95, 0, 0, 0, 0}}; // r0 = value; exit
    std::span<const Insn> insns = program.insns.empty() ? std::span<const Insn>(value_only) : program.insns;
    sys::ProgLoadAttr attr;
    attr.prog_type = static_cast<uint32_t>(program.type);
    attr.expected_attach_type = static_cast<uint32_t>(program.attach);
    attr.attach_btf_id = program.btf_id;
    attr.prog_flags = program.sleepable ? BPF_F_SLEEPABLE : 0;
    attr.insns = sys::reg(insns.data());
    attr.insn_cnt = static_cast<uint32_t>(insns.size());
    attr.license = sys::reg("GPL");
    Attempt out;
    Result<Fd> fd = sys::prog_load(attr, uapi::BPF_LOG_LEVEL1, out.log);
    if (fd)
        out.fd = std::move(*fd);
    else
        out.os = fd.error().os;
    return out;
}

TinyProgram usual_program(uint32_t type) {
    // The kernel checks these before the verifier (bpf_prog_load_check_attach()); SYSCALL programs always may sleep.
    return {.type = ProgramType{type},
            .attach = usual_attach_type(ProgramType{type}),
            .sleepable = ProgramType{type} == ProgramType::SYSCALL};
}

uint32_t kernel_type_id(std::string_view name) {
    // Cheap for a caller that holds the BTF while it probes; else it is read anew for each name.
    Result<std::shared_ptr<const btf::Btf>> btf = kernel_btf();
    if (!btf) return 0;
    for (btf::Kind kind : {btf::Kind::func, btf::Kind::typedef_, btf::Kind::struct_})
        if (std::optional<btf::TypeId> id = (*btf)->find(name, kind)) return *id;
    return 0;
}

std::string kernel_btf_problem() {
    const Result<std::shared_ptr<const btf::Btf>> btf = kernel_btf();
    return btf ? std::string() : btf.error().message();
}

Probed probe_program_type(uint32_t type) {
    if (type == 0 || type >= kProgramTypeCount) return {Support::no, "not a type that rawbpf knows"};
    sys::Because why("a probe: does this kernel have this type of program?");
    Attempt attempt = try_load(usual_program(type));
    if (attempt.heard()) return {Support::yes, attempt.fd ? "" : "the verifier knows it; it loads only with its target"};
    return {support_from(attempt.os), errno_name(attempt.os)};
}

bool has_program_type(uint32_t type) { return probe_program_type(type).support == Support::yes; }

} // namespace rawbpf::inline v0
