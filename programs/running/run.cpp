// What each type of program is run with:
//
//      skb and xdp programs        a packet of 14 bytes at least, and a context that says more of it
//      raw tracepoints (5.10)      arguments, 8 bytes each; once a call
//      syscall programs (5.14)     their context is their own; once a call
//
// The kernel writes the packet and the context back. Room for them is asked for twice: a program may make a packet longer.
#include "programs/running/run.h"

#include <algorithm>
#include <cerrno>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::running {
namespace {

constexpr size_t kLeastPacket = 14, kUsualPacket = 64, kRoom = 4096;
constexpr int kNotSupported = 524; // ENOTSUPP, which user space has no name for

} // namespace

Result<LoadedRun> run_loaded(int fd, const LoadedRunOptions &options) {
    const sys::ProgInfo info = TRY_IN(sys::prog_info(fd), "asking what the program is");
    const auto type = static_cast<ProgramType>(info.type);
    const ProgramRun runs = program_type_row(info.type).run;
    const bool packetless = runs == ProgramRun::arguments || runs == ProgramRun::as_raw_tracepoint;
    if (packetless && !options.packet.empty())
        return fail(Errc::invalid_argument, "programs of type {} take no packet, but a context", program_type_word(info.type));
    if (packetless && options.repeat > 1)
        return fail(Errc::invalid_argument, "the kernel runs programs of type {} once a call: no --repeat",
                    program_type_word(info.type));
    std::vector<std::byte> packet = options.packet;
    if (!packetless && packet.empty()) packet.resize(kUsualPacket);
    if (!packetless && packet.size() < kLeastPacket)
        return fail(Errc::invalid_argument, "a packet of {} bytes: it has an Ethernet header, {} bytes at least", packet.size(),
                    kLeastPacket);

    LoadedRun out;
    std::vector<std::byte> context = options.context;
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(fd);
    if (!packetless) {
        out.packet.resize(packet.size() + kRoom);
        attr.data_in = sys::reg(packet.data());
        attr.data_size_in = static_cast<uint32_t>(packet.size());
        attr.data_out = sys::reg(out.packet.data());
        attr.data_size_out = static_cast<uint32_t>(out.packet.size());
        attr.repeat = options.repeat;
    }
    if (!context.empty()) {
        attr.ctx_in = sys::reg(context.data());
        attr.ctx_size_in = static_cast<uint32_t>(context.size());
        if (!packetless) { // raw tracepoints refuse it, syscall programs write into ctx_in
            out.context.resize(std::max(context.size(), size_t{256}));
            attr.ctx_out = sys::reg(out.context.data());
            attr.ctx_size_out = static_cast<uint32_t>(out.context.size());
        }
    }
    sys::Because why("run the program once, as the kernel would");
    if (Result<void> ran = sys::prog_test_run(attr); !ran) {
        Error error = std::move(ran).error();
        if (error.os == kNotSupported || error.os == EOPNOTSUPP) {
            error.kind = Errc::unsupported;
            error.hint = "the kernel runs socket, XDP, tc, cgroup, flow dissector, lwt, sk_lookup, tracing, raw tracepoint "
                         "(5.10) and syscall (5.14) programs on request";
        } else if (error.os == EINVAL) {
            error.hint = "raw tracepoints want an argument of 8 bytes for each that the program reads; struct __sk_buff and "
                         "xdp_md only some fields";
        }
        return Unexpected(in_context(std::move(error), format("running program {}", info.id)));
    }
    out.result = attr.retval;
    out.ns = attr.duration;
    out.packet.resize(std::min<size_t>(attr.data_size_out, out.packet.size()));
    if (type == ProgramType::SYSCALL)
        out.context = std::move(context);
    else
        out.context.resize(std::min<size_t>(attr.ctx_size_out, out.context.size()));
    return out;
}

} // namespace rawbpf::inline v0::running
