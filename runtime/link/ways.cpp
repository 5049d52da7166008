// Which function attaches a program of which kind. The core has a table in place of this switch, of what its program was linked
// with (core/ways.cpp).
#include "runtime/base/fail.h"
#include "runtime/link/attaching.h"

namespace rawbpf::inline v0 {

Result<Link> attach_by_kind(const Attaching &a) {
    switch (a.kind.attachment) {
    case Attachment::kprobe:
    case Attachment::kretprobe: return attach_kprobe(a);
    case Attachment::ksyscall:
    case Attachment::kretsyscall: return attach_ksyscall(a);
    case Attachment::kprobe_multi:
    case Attachment::kretprobe_multi:
    case Attachment::kprobe_session: return attach_kprobe_multi(a);
    case Attachment::uprobe:
    case Attachment::uretprobe: return attach_uprobe(a);
    case Attachment::uprobe_multi:
    case Attachment::uretprobe_multi:
    case Attachment::uprobe_session: return attach_uprobe_multi(a);
    case Attachment::tracepoint: return attach_tracepoint(a);
    case Attachment::raw_tracepoint: return attach_raw_tracepoint(a);
    case Attachment::trampoline:
    case Attachment::replace: return attach_trampoline(a);
    case Attachment::trampoline_multi: return attach_trampoline_multi(a);
    case Attachment::usdt: return attach_usdt(a);
    case Attachment::iterator: return attach_iterator(a);
    case Attachment::perf_event: return attach_perf_event(a);
    case Attachment::xdp:
    case Attachment::tcx:
    case Attachment::tc:
    case Attachment::netkit: return attach_interface(a);
    case Attachment::cgroup: return attach_cgroup(a);
    case Attachment::network_namespace: return attach_network_namespace(a);
    case Attachment::socket_map: return attach_socket_map(a);
    case Attachment::netfilter: return attach_netfilter(a);
    case Attachment::lirc: return attach_lirc(a);
    case Attachment::socket:
    case Attachment::reuseport: return attach_socket(a);
    default: return fail(Errc::internal, "section {}: no way to attach it", a.program.section);
    }
}

} // namespace rawbpf::inline v0
