// TCP for peers that aren't trusted: no call here waits for a peer. The only call that waits is ppoll(2), and its caller says
// how long.
//
//      begin_connect -> POLLOUT -> connect_outcome        listen_at -> POLLIN -> accept_next
//                          send_some / receive until EAGAIN, then poll_files again
//
// MSG_NOSIGNAL: without it, SIGPIPE would end this process when a peer closes the connection during a write.
#include "runtime/sys/stream.h"

#include <cerrno>
#include <cstring>
#include <ctime>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr int kWaiting = 64; // connections that the kernel keeps until they are accepted

uint64_t file(int fd) { return static_cast<uint64_t>(fd); }

Result<Fd> new_socket(int family) {
    const long fd = invoke(__NR_socket, static_cast<uint64_t>(family), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail_os(static_cast<int>(-fd), "socket");
    return Fd(static_cast<int>(fd));
}

Result<void> set_on(int socket, int level, int option) {
    const int on = 1;
    const long r =
        invoke(__NR_setsockopt, file(socket), static_cast<uint64_t>(level), static_cast<uint64_t>(option), reg(&on), sizeof on);
    if (r < 0) return fail_os(static_cast<int>(-r), "setsockopt");
    return {};
}

bool is_for_later(long result) { return result == -EAGAIN || result == -EWOULDBLOCK || result == -EINTR; }

} // namespace

Result<Fd> listen_at(const SocketAddress &address) {
    Fd socket = TRY(new_socket(address.bytes.ss_family));
    // Without it the port stays taken for a minute after a connection; SO_REUSEPORT would let two processes share it.
    TRY(set_on(socket.get(), SOL_SOCKET, SO_REUSEADDR));
    if (const long r = invoke(__NR_bind, file(socket.get()), reg(&address.bytes), address.size); r < 0)
        return fail_os(static_cast<int>(-r), "bind");
    if (const long r = invoke(__NR_listen, file(socket.get()), kWaiting); r < 0) return fail_os(static_cast<int>(-r), "listen");
    return socket;
}

Result<SocketAddress> local_address(int socket) {
    SocketAddress out;
    out.size = sizeof out.bytes;
    const long r = invoke(__NR_getsockname, file(socket), reg(&out.bytes), reg(&out.size));
    if (r < 0) return fail_os(static_cast<int>(-r), "getsockname");
    return out;
}

Result<std::optional<Fd>> accept_next(int listener) {
    const long fd = invoke(__NR_accept4, file(listener), 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (is_for_later(fd)) return std::optional<Fd>();
    if (fd < 0) return fail_os(static_cast<int>(-fd), "accept4");
    return std::optional<Fd>(Fd(static_cast<int>(fd)));
}

Result<Fd> begin_connect(const SocketAddress &address) {
    Fd socket = TRY(new_socket(address.bytes.ss_family));
    (void)set_on(socket.get(), IPPROTO_TCP, TCP_NODELAY); // slower without it, not wrong
    const long r = invoke(__NR_connect, file(socket.get()), reg(&address.bytes), address.size);
    if (r < 0 && r != -EINPROGRESS && r != -EINTR) return fail_os(static_cast<int>(-r), "connect");
    return socket;
}

Result<void> connect_outcome(int socket) {
    int error = 0;
    socklen_t size = sizeof error;
    const long r = invoke(__NR_getsockopt, file(socket), SOL_SOCKET, SO_ERROR, reg(&error), reg(&size));
    if (r < 0) error = static_cast<int>(-r);
    if (error != 0) return fail_os(error, "connect");
    return {};
}

Result<std::optional<size_t>> receive(int socket, std::span<char> into) {
    const long n = invoke(__NR_recvfrom, file(socket), reg(into.data()), into.size(), 0, 0, 0);
    if (is_for_later(n)) return std::optional<size_t>();
    if (n < 0) return fail_os(static_cast<int>(-n), "recv");
    return std::optional<size_t>(static_cast<size_t>(n));
}

Result<size_t> send_some(int socket, std::string_view bytes) {
    const long n = invoke(__NR_sendto, file(socket), reg(bytes.data()), bytes.size(), MSG_NOSIGNAL, 0, 0);
    if (is_for_later(n)) return size_t{0};
    if (n < 0) return fail_os(static_cast<int>(-n), "send");
    return static_cast<size_t>(n);
}

void end_sending(int socket) { (void)invoke(__NR_shutdown, file(socket), SHUT_WR); } // who has gone needs no end

Result<Fd> wake_event() {
    const long fd = invoke(__NR_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return fail_os(static_cast<int>(-fd), "eventfd2");
    return Fd(static_cast<int>(fd));
}

void wake(int event) {
    const uint64_t one = 1;
    (void)invoke(__NR_write, file(event), reg(&one), sizeof one); // EAGAIN: it is readable already
}

void settle(int event) {
    uint64_t count = 0;
    (void)invoke(__NR_read, file(event), reg(&count), sizeof count); // EAGAIN: nobody woke it
}

Result<void> poll_files(std::span<pollfd> files, uint64_t timeout_ns) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    const long r = invoke(__NR_ppoll, reg(files.data()), files.size(), reg(&timeout), 0, 0);
    if (r < 0 && r != -EINTR) return fail_os(static_cast<int>(-r), "ppoll");
    return {};
}

} // namespace rawbpf::inline v0::sys
