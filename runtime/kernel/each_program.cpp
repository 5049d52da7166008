// Programs are one of the kinds that each_object() lists; what a program is stands in its information.
#include "runtime/kernel/each_program.h"

#include <utility>

#include "runtime/base/fail.h"
#include "runtime/kernel/each_object.h"

namespace rawbpf::inline v0 {

Result<void> each_program(const std::function<bool(uint32_t id, Fd program, const sys::ProgInfo &info)> &see) {
    return each_object(sys::ObjectKind::program, [&](uint32_t id, Fd program) -> Result<bool> {
        const sys::ProgInfo info = TRY(sys::prog_info(program.get()));
        return see(id, std::move(program), info);
    });
}

} // namespace rawbpf::inline v0
