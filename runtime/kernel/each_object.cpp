// The kernel gives every object a number, which only grows: one series for each kind. BPF_*_GET_NEXT_ID finds the next number,
// and BPF_*_GET_FD_BY_ID opens it; in between it may have gone.
#include "runtime/kernel/each_object.h"

#include <cerrno>
#include <utility>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {

Result<void> each_id(sys::ObjectKind kind, const std::function<Result<bool>(uint32_t id)> &see) {
    for (uint32_t id = 0;;) {
        Result<uint32_t> next = sys::next_id(kind, id);
        if (!next && next.error().os == ENOENT) return {};
        if (!next && next.error().os == EINVAL) {
            next.error().kind = Errc::unsupported;
            next.error().hint = "this kernel can't list them: programs and maps need Linux 4.13, BTF needs 5.4, links need 5.8";
        }
        id = TRY(std::move(next));
        if (!TRY(see(id))) return {};
    }
}

Result<void> each_object(sys::ObjectKind kind, const std::function<Result<bool>(uint32_t id, Fd object)> &see) {
    return each_id(kind, [&](uint32_t id) -> Result<bool> {
        Result<Fd> object = sys::fd_by_id(kind, id);
        if (!object && object.error().os == ENOENT) return true;
        return see(id, TRY(std::move(object)));
    });
}

} // namespace rawbpf::inline v0
