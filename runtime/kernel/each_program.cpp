// The kernel gives every program a number, which only grows. BPF_PROG_GET_NEXT_ID finds the next one, and BPF_PROG_GET_FD_BY_ID
// opens it; in between it may have gone.
#include "runtime/kernel/each_program.h"

#include <cerrno>
#include <utility>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {

Result<void> each_program(const std::function<bool(uint32_t id, Fd program, const sys::ProgInfo &info)> &see) {
    for (uint32_t id = 0;;) {
        Result<uint32_t> next = sys::next_id(sys::ObjectKind::program, id);
        if (!next && next.error().os == ENOENT) return {};
        id = TRY(std::move(next));
        Result<Fd> program = sys::fd_by_id(sys::ObjectKind::program, id);
        if (!program && program.error().os == ENOENT) continue;
        Fd fd = TRY(std::move(program));
        const sys::ProgInfo info = TRY(sys::prog_info(fd.get()));
        if (!see(id, std::move(fd), info)) return {};
    }
}

} // namespace rawbpf::inline v0
