// Interfaces, socket options and rtnetlink.
//
//      sendto(socket, [ nlmsghdr | request's struct | attributes ])
//      recvfrom  ->   [ nlmsghdr | echo of what was made ]*  [ NLMSG_ERROR | errno, 0 = done | the request's header | TLVs ]
//
// The TLVs behind an error (NETLINK_EXT_ACK) hold a sentence by the kernel: "Exclusivity flag on, cannot modify".
#include "runtime/sys/net.h"

#include <cerrno>
#include <cstring>

#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {

Result<Fd> open_socket(int domain, int type, int protocol) {
    long fd = invoke(__NR_socket, static_cast<uint64_t>(domain), static_cast<uint64_t>(type | SOCK_CLOEXEC),
                     static_cast<uint64_t>(protocol));
    if (fd < 0) return fail_os(-static_cast<int>(fd), "socket");
    return Fd(static_cast<int>(fd));
}

// The sentence among the TLVs of an NLMSG_ERROR, or empty.
std::string words_of(const std::byte *message, size_t size) {
    nlmsghdr header = load<nlmsghdr>(message);
    size_t at = sizeof(nlmsghdr) + sizeof(nlmsgerr);
    if (!(header.nlmsg_flags & NLM_F_CAPPED) && size >= at) {
        auto error = load<nlmsgerr>(message + sizeof(nlmsghdr));
        if (error.error != 0 && error.msg.nlmsg_len > sizeof(nlmsghdr)) at += NLMSG_ALIGN(error.msg.nlmsg_len - sizeof(nlmsghdr));
    }
    while (at + sizeof(nlattr) <= size) {
        auto attribute = load<nlattr>(message + at);
        if (attribute.nla_len < sizeof(nlattr) || attribute.nla_len > size - at) break;
        if (attribute.nla_type == NLMSGERR_ATTR_MSG) {
            const char *text = reinterpret_cast<const char *>(message + at + sizeof(nlattr));
            return {text, strnlen(text, attribute.nla_len - sizeof(nlattr))};
        }
        at += NLA_ALIGN(attribute.nla_len);
    }
    return {};
}

} // namespace

Result<uint32_t> interface_index(const std::string &name) {
    ifreq request{};
    if (name.empty() || name.size() >= sizeof request.ifr_name)
        return fail(Errc::invalid_argument, "\"{}\" is no interface's name: 1 to 15 characters", name);
    std::memcpy(request.ifr_name, name.data(), name.size());
    Fd socket = TRY(open_socket(AF_UNIX, SOCK_DGRAM, 0));
    long r = invoke(__NR_ioctl, socket.get(), SIOCGIFINDEX, reg(&request));
    if (r == -ENODEV) return fail(Errc::not_found, "network interface {}: not there (in this network namespace)", name);
    if (r < 0) return fail_os(-static_cast<int>(r), "network interface {}", name);
    return static_cast<uint32_t>(request.ifr_ifindex);
}

Result<std::string> interface_name(uint32_t index) {
    ifreq request{};
    request.ifr_ifindex = static_cast<int>(index);
    Fd socket = TRY(open_socket(AF_UNIX, SOCK_DGRAM, 0));
    long r = invoke(__NR_ioctl, socket.get(), SIOCGIFNAME, reg(&request));
    if (r == -ENODEV) return fail(Errc::not_found, "network interface number {}: not there", index);
    if (r < 0) return fail_os(-static_cast<int>(r), "network interface number {}", index);
    return std::string(request.ifr_name, strnlen(request.ifr_name, sizeof request.ifr_name));
}

Result<void> set_socket_option(int socket, int option, int value) {
    long r = invoke(__NR_setsockopt, static_cast<uint64_t>(socket), SOL_SOCKET, static_cast<uint64_t>(option), reg(&value),
                    sizeof value);
    if (r < 0) return fail_os(-static_cast<int>(r), "setsockopt");
    return {};
}

Result<std::vector<std::byte>> netlink(std::vector<std::byte> message) {
    constexpr uint32_t kSequence = 1; // a socket of its own for each request: nothing to mix up
    if (message.size() < sizeof(nlmsghdr)) return fail(Errc::internal, "netlink: a message of {} bytes", message.size());
    Fd socket = TRY(open_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
    int on = 1;
    (void)invoke(__NR_setsockopt, socket.get(), 270 /* SOL_NETLINK */, NETLINK_EXT_ACK, reg(&on), sizeof on); // words are a bonus
    auto header = load<nlmsghdr>(message.data());
    header.nlmsg_len = static_cast<uint32_t>(message.size());
    header.nlmsg_seq = kSequence;
    header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    std::memcpy(message.data(), &header, sizeof header);
    long sent;
    do {
        sent = invoke(__NR_sendto, socket.get(), reg(message.data()), message.size(), 0, 0, 0);
    } while (sent == -EINTR);
    if (sent < 0) return fail_os(-static_cast<int>(sent), "netlink");

    std::vector<std::byte> answer;
    std::vector<std::byte> buffer(32 << 10);
    for (;;) {
        long n = invoke(__NR_recvfrom, socket.get(), reg(buffer.data()), buffer.size(), 0, 0, 0);
        if (n == -EINTR) continue;
        if (n < 0) return fail_os(-static_cast<int>(n), "netlink");
        if (n == 0) return fail(Errc::io, "netlink: no answer");
        for (size_t at = 0, end = static_cast<size_t>(n); at + sizeof(nlmsghdr) <= end;) {
            auto one = load<nlmsghdr>(buffer.data() + at);
            if (one.nlmsg_len < sizeof(nlmsghdr) || one.nlmsg_len > end - at)
                return fail(Errc::bad_input, "netlink: a message of {} bytes in {}", one.nlmsg_len, end - at);
            if (one.nlmsg_type == NLMSG_DONE) { // of a dump, in place of the acknowledgement
                const int error =
                    one.nlmsg_len < sizeof(nlmsghdr) + sizeof(int) ? 0 : load<int>(buffer.data() + at + sizeof(nlmsghdr));
                if (error < 0) return fail_os(-error, "netlink");
                return answer;
            }
            if (one.nlmsg_type == NLMSG_ERROR) {
                if (one.nlmsg_len < sizeof(nlmsghdr) + sizeof(int))
                    return fail(Errc::bad_input, "netlink: a short acknowledgement");
                int error = load<int>(buffer.data() + at + sizeof(nlmsghdr));
                if (error == 0) return answer;
                std::string words = words_of(buffer.data() + at, one.nlmsg_len);
                return Unexpected(os_error(-error, words.empty() ? "netlink" : "netlink: \"" + words + "\""));
            }
            answer.insert(answer.end(), buffer.begin() + static_cast<std::ptrdiff_t>(at),
                          buffer.begin() + static_cast<std::ptrdiff_t>(at + one.nlmsg_len));
            at += NLMSG_ALIGN(one.nlmsg_len);
        }
    }
}

} // namespace rawbpf::inline v0::sys
