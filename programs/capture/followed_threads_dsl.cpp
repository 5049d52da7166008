// The programs of followed_threads_dsl.h.
#include "programs/capture/followed_threads_dsl.h"

#include <string>

#include <linux/bpf.h>

#include "programs/identity_dsl.h"

namespace rawbpf::inline v0 {

void is_in_followed(Code &f, const MapRef &followed, const Slot &thread, const Label &out) {
    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(thread, r0);
    f.call(helper::map_lookup_elem, followed, thread);
    f.jump_if(r0 == 0, out);
}

void is_of_family(Code &f, const std::optional<sys::Namespace> &ns, const Slot &thread, const IsRoot &is_root,
                  const std::optional<MapRef> &followed, const Label &out) {
    const Label started = followed ? f.label("perhaps started by a root") : out;
    load_process(f, ns, thread, started);
    is_root(f, started);
    if (!followed) return;
    const Label yes = f.label("of the family");
    f.jump(yes);
    f.bind(started);
    f.call(helper::map_lookup_elem, *followed, thread);
    f.jump_if(r0 == 0, out);
    f.bind(yes);
}

void follow_threads(Builder &b, std::string_view tool, const MapRef &followed, uint16_t child_at, const IsFollowed &is_followed) {
    {
        Code &f = b.program("tracepoint/sched/sched_process_fork", std::string(tool) + "_fork");
        const Slot thread = f.stack<uint32_t>("thread"), child = f.stack<uint32_t>("child"), one = f.stack<uint8_t>("one");
        const Label out = f.label("out");
        f.mov(r6, r1);
        is_followed(f, thread, out);
        f.load<uint32_t>(r1, r6 + runtime(child_at));
        f.store<uint32_t>(child, r1);
        f.store<uint8_t>(one, 1);
        f.call(helper::map_update_elem, followed, child, one, BPF_ANY);
        f.bind(out);
        f.ret(0);
    }
    Code &f = b.program("tracepoint/sched/sched_process_exit", std::string(tool) + "_exit");
    const Slot thread = f.stack<uint32_t>("thread");
    f.call(helper::get_current_pid_tgid);
    f.store<uint32_t>(thread, r0);
    f.call(helper::map_delete_elem, followed, thread);
    f.ret(0);
}

} // namespace rawbpf::inline v0
