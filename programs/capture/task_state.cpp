#include "programs/capture/task_state.h"

#include <cstdint>
#include <memory>

#include "runtime/base/fail.h"
#include "runtime/btf/btf.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0 {

// `long state` became `unsigned __state` with 5.14.
Result<bool> has_wide_state() {
    const std::shared_ptr<const btf::Btf> types = TRY(kernel_btf());
    const auto id = types->find("task_struct", btf::Kind::struct_);
    if (!id) return fail(Errc::unsupported, "the kernel's BTF has no task_struct");
    const btf::Type task = TRY(types->type(*id));
    for (uint32_t i = 0; i < task.vlen; ++i) {
        const btf::Member member = TRY(types->member(task, i));
        if (member.name == "state") return true;
    }
    return false;
}

void read_state(Code &f, WritableReg to, Reg task, bool wide) {
    if (wide)
        f.read_field<uint64_t>(to, task, "task_struct.state");
    else
        f.read_field<uint32_t>(to, task, "task_struct.__state");
}

} // namespace rawbpf::inline v0
