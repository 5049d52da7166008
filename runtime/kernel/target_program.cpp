// Another program as the target: finds it, and a function in it. A loaded program has types of its own: BPF_PROG_LOAD was
// given them, and the kernel keeps them under an id.
//
//      program fd -> bpf_prog_info.btf_id -> BPF_BTF_GET_FD_BY_ID -> bpf_btf_info.btf: the bytes -> FUNC by name
//
// attach_prog_fd is the program, attach_btf_id the FUNC in its types (kernel/bpf/verifier.c, bpf_check_attach_target; 5.6).
#include "runtime/kernel/target_program.h"

#include <vector>

#include "runtime/base/fail.h"
#include "runtime/btf/btf.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {

Result<uint32_t> function_in_program(int program_fd, std::string_view name) {
    sys::Because why("the types of the program that another one is verified against");
    const sys::ProgInfo program = TRY_IN(sys::prog_info(program_fd), "the target program");
    if (program.btf_id == 0)
        return fail(Errc::unsupported, "the target program {} was loaded without types", std::string_view(program.name));
    Fd types =
        TRY_IN(sys::fd_by_id(sys::ObjectKind::btf, program.btf_id), "the types of program {}", std::string_view(program.name));
    sys::BtfInfo info;
    TRY(sys::obj_get_info(types.get(), &info, sizeof info));
    std::vector<std::byte> bytes(info.btf_size);
    info = {};
    info.btf = sys::reg(bytes.data());
    info.btf_size = static_cast<uint32_t>(bytes.size());
    TRY(sys::obj_get_info(types.get(), &info, sizeof info));
    btf::Btf btf = TRY(btf::Btf::parse(bytes, program.name));
    if (std::optional<btf::TypeId> id = btf.find(name, btf::Kind::func)) return *id;
    std::string there;
    for (btf::TypeId id = btf.first_id(); id < btf.end_id() && there.size() < 200; ++id) {
        const btf::Type type = TRY(btf.type(id));
        if (type.kind == btf::Kind::func) append(there, "{}{}", there.empty() ? "" : ", ", type.name);
    }
    return Unexpected(make_error(Errc::not_found, format("program {} has no function {}", std::string_view(program.name), name),
                                 format("it has {}", there)));
}

Result<Fd> find_loaded_program(const std::string &which) {
    sys::Because why("the program that others are verified against");
    return find_object(sys::ObjectKind::program, which);
}

} // namespace rawbpf::inline v0
