// Checks which programs may jump to each other.
//
//      jumper --bpf_tail_call(ctx, array, slot)--> program          one context, one stack frame: so both must be of a kind
//
// The first program that uses an array or is put into it decides what the array accepts (bpf_prog_map_compatible,
// kernel/bpf/core.c). From then on all programs must agree in type, in being jited, in XDP's fragments, in the prototype of
// the function that they trace, and since Linux 6.18 in the expected attach type, so that a uprobe and a uprobe.multi program
// don't fit together. If they disagree, the kernel only says EINVAL. /proc/self/fdinfo describes the array (owner_prog_type,
// owner_jited; 4.3), BPF_OBJ_GET_INFO_BY_FD the program. Neither tells the attach type, so the code that loaded the programs
// has to know it.
#include "runtime/kernel/tail_call.h"

#include <cerrno>
#include <optional>
#include <string>

#include <linux/bpf.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0 {
namespace {

// 0 is what a program says that has none.
std::string attach_type(const Program &program) {
    return program.expected_attach_type == 0 ? "none" : sys::attach_type_name(program.expected_attach_type);
}

// In which property they differ, or empty.
std::string difference(const Map &array, const sys::ProgInfo &program, const Program *jumper, const Program *jumped_to) {
    if (const Result<std::string> info = sys::read_file(format("/proc/self/fdinfo/{}", array.fd()))) {
        const std::optional<uint64_t> type = fdinfo_number(*info, "owner_prog_type"), jited = fdinfo_number(*info, "owner_jited");
        if (type && *type != program.type)
            return format("the array is for programs of type {}, this one is of type {}",
                          sys::prog_type_name(static_cast<uint32_t>(*type)), sys::prog_type_name(program.type));
        if (jited && (*jited != 0) != (program.jited_prog_len != 0))
            return format("the array is for programs that are {}, this one is {}",
                          *jited ? "compiled to machine code (jited)" : "interpreted",
                          *jited ? "interpreted" : "compiled (net.core.bpf_jit_enable was switched on meanwhile)");
    }
    if (jumper && jumper->type != program.type)
        return format("{} jumps through the array and is of type {}, this one is of type {}", jumper->name,
                      sys::prog_type_name(jumper->type), sys::prog_type_name(program.type));
    if (jumper && jumped_to && jumper->expected_attach_type != jumped_to->expected_attach_type)
        return format("{} ({}) jumps through the array and has the expected attach type {}, {} ({}) has {}", jumper->name,
                      jumper->section, attach_type(*jumper), jumped_to->name, jumped_to->section, attach_type(*jumped_to));
    return {};
}

} // namespace

Result<void> put_program(const Map &array, uint32_t slot, int program_fd, const Program *jumper, const Program *jumped_to) {
    if (array.type() != BPF_MAP_TYPE_PROG_ARRAY)
        return fail(Errc::invalid_argument, "map {} isn't a prog array, but {}", array.name(), sys::map_type_name(array.type()));
    if (slot >= array.max_entries())
        return fail(Errc::invalid_argument, "map {}: there is no slot {}, it has {}", array.name(), slot, array.max_entries());
    const uint32_t fd = static_cast<uint32_t>(program_fd);
    Result<void> done = sys::map_update_elem(array.fd(), &slot, &fd);
    if (done) return done;
    Error error = std::move(done).error();
    if (error.os == EINVAL || error.os == EBADF) {
        error.kind = Errc::invalid_argument;
        const Result<sys::ProgInfo> program = sys::prog_info(program_fd);
        if (!program) {
            error.hint = format("descriptor {} isn't a BPF program", program_fd);
        } else if (std::string words = difference(array, *program, jumper, jumped_to); !words.empty()) {
            error.hint = std::move(words);
        } else {
            error.hint = "its type fits, so it differs in something else: the expected attach type, XDP fragments, the prototype "
                         "of the traced function, a call of bpf_override_return, or the device that it is for. All programs of "
                         "one array must agree in these";
        }
    }
    return Unexpected(in_context(std::move(error), format("map {}: putting a program into slot {}", array.name(), slot)));
}

} // namespace rawbpf::inline v0
