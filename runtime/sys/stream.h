// TCP sockets, and local ones to connect to, that never block: the caller waits in poll_files(), with a deadline, and can be
// woken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// An address with its family and port, as the kernel has it.
struct SocketAddress {
    sockaddr_storage bytes{};
    socklen_t size = 0;
};

/// A listening socket. Another process can't share the port. Errors: the errno of socket(2), bind(2), listen(2).
[[nodiscard]] Result<Fd> listen_at(const SocketAddress &address);
/// The address that the socket has on this side. Errors: the errno of getsockname(2).
[[nodiscard]] Result<SocketAddress> local_address(int socket);
/// The next connection; nullopt: none waits. Errors: the errno of accept4(2), which may be about that connection only.
[[nodiscard]] Result<std::optional<Fd>> accept_next(int listener);

/// Begins to connect. Once the socket is writable, connect_outcome() says what came of it. Errors: the errno of connect(2).
[[nodiscard]] Result<Fd> begin_connect(const SocketAddress &address);
[[nodiscard]] Result<void> connect_outcome(int socket);

/// How many bytes were received; 0: the peer sends no more; nullopt: none are there yet.
[[nodiscard]] Result<std::optional<size_t>> receive(int socket, std::span<char> into);
/// How many bytes were taken, 0 where there is no room now. A peer that has gone is EPIPE, never SIGPIPE.
[[nodiscard]] Result<size_t> send_some(int socket, std::string_view bytes);
/// Nothing more is sent; the peer reads to the end.
void end_sending(int socket);

/// An eventfd(2): wake() makes it readable, until settle().
[[nodiscard]] Result<Fd> wake_event();
void wake(int event);
void settle(int event);

/// ppoll(2): returns when one of them is ready, at the latest after so long. Errors: ENOMEM.
[[nodiscard]] Result<void> poll_files(std::span<pollfd> files, uint64_t timeout_ns);

} // namespace rawbpf::inline v0::sys
