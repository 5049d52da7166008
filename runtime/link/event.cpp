// Since 5.15 a perf event takes a BPF link, which can be pinned and queried and can carry a cookie. Before, an ioctl ties the
// program to the event itself. EEXIST means that another program is attached already (the ioctl allows one per perf event).
#include "runtime/link/event.h"

#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {

Result<Fd> run_on_event(int event_fd, int program_fd, uint64_t cookie) {
    if (known_feature(Feature::perf_link).value_or(true)) {
        sys::Because why("run this program each time the event fires");
        sys::LinkCreateAttr attr;
        attr.prog_fd = static_cast<uint32_t>(program_fd);
        attr.target_fd = static_cast<uint32_t>(event_fd);
        attr.attach_type = BPF_PERF_EVENT;
        attr.perf_event.bpf_cookie = cookie;
        Result<Fd> link = sys::link_create(attr);
        if (link) note_feature(Feature::perf_link, true);
        if (link || known_feature(Feature::perf_link).value_or(false) ||
            (link.error().os != EINVAL && link.error().os != ENOSYS && link.error().os != EOPNOTSUPP))
            return link;
    }
    if (cookie != 0 && !has_feature(Feature::perf_link))
        return Unexpected(make_error(Errc::unsupported, format("a cookie needs {}", feature_name(Feature::perf_link)),
                                     "use a separate program for each place, or bpf_get_func_ip() to tell the places apart"));
    sys::Because why("run this program each time the event fires; before 5.15 there is no link for it");
    TRY(sys::perf_set_bpf(event_fd, program_fd));
    note_feature(Feature::perf_link, false);
    return Fd();
}

} // namespace rawbpf::inline v0
