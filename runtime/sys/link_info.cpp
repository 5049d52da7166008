// Asks for a link's details, as often as it takes: the kernel says how long a name or a list is only when there is no buffer for
// it (and ENOSPC or a cut name when one is too short).
//
//      1st time   no buffers                    type, name_len (perf events say 0: their names are asked for with a buffer at
//                                               once), count
//      2nd time   buffers of those sizes        the name, the addresses
#include "runtime/sys/link_info.h"

#include <algorithm>
#include <cstring>

#include "asm/link_types.h"
#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr uint32_t kNameSize = 4096, kMostPlaces = 1 << 20;

std::string text_of(const std::vector<char> &buffer) { return std::string(buffer.data(), strnlen(buffer.data(), buffer.size())); }

} // namespace

Result<LinkDetails> link_details(int fd) {
    LinkDetails out;
    TRY(obj_get_info(fd, &out.info, sizeof out.info));
    std::vector<char> name(kNameSize);
    LinkInfoTail with = out.info;
    bool again = true;
    switch (LinkType{out.info.type}) {
    case LinkType::RAW_TRACEPOINT:
        with.raw_tracepoint.name = reg(name.data());
        with.raw_tracepoint.name_len = kNameSize;
        break;
    case LinkType::ITER:
        with.iter.name = reg(name.data());
        with.iter.name_len = kNameSize;
        break;
    case LinkType::PERF_EVENT:
        switch (PerfLink{out.info.perf_event.type}) {
        case PerfLink::uprobe:
        case PerfLink::uretprobe:
            with.perf_event.uprobe.file = reg(name.data());
            with.perf_event.uprobe.name_len = kNameSize;
            break;
        case PerfLink::kprobe:
        case PerfLink::kretprobe:
            with.perf_event.kprobe.function = reg(name.data());
            with.perf_event.kprobe.name_len = kNameSize;
            break;
        case PerfLink::tracepoint:
            with.perf_event.tracepoint.name = reg(name.data());
            with.perf_event.tracepoint.name_len = kNameSize;
            break;
        default: again = false;
        }
        break;
    case LinkType::KPROBE_MULTI:
        out.places.resize(std::min(out.info.kprobe_multi.count, kMostPlaces));
        out.cookies.resize(out.places.size());
        with.kprobe_multi.count = static_cast<uint32_t>(out.places.size());
        with.kprobe_multi.addrs = out.places.empty() ? 0 : reg(out.places.data());
        with.kprobe_multi.cookies = out.cookies.empty() ? 0 : reg(out.cookies.data());
        break;
    case LinkType::UPROBE_MULTI:
        out.places.resize(std::min(out.info.uprobe_multi.count, kMostPlaces));
        out.cookies.resize(out.places.size());
        out.semaphores.resize(out.places.size());
        with.uprobe_multi.path = reg(name.data());
        with.uprobe_multi.path_size = kNameSize;
        with.uprobe_multi.count = static_cast<uint32_t>(out.places.size());
        with.uprobe_multi.offsets = out.places.empty() ? 0 : reg(out.places.data());
        with.uprobe_multi.cookies = out.cookies.empty() ? 0 : reg(out.cookies.data());
        with.uprobe_multi.ref_ctr_offsets = out.semaphores.empty() ? 0 : reg(out.semaphores.data());
        break;
    default: again = false;
    }
    if (!again) return out;
    Because why("now with room for its name and its places");
    TRY(obj_get_info(fd, &with, sizeof with));
    out.info = with;
    out.name = text_of(name);
    return out;
}

} // namespace rawbpf::inline v0::sys
