// A pool's threads all wait for the same listener, and for a pipe whose other end is closed when they shall stop: poll(2) says
// "hung up" to every one of them, which no signal could.
#include "net.h"

#include <cerrno>
#include <cstdint>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

constexpr size_t kLongestLine = 8192;

sockaddr_in local(int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(static_cast<uint16_t>(port));
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return out;
}
void set_timeouts(int fd) {
    const timeval longest{5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
}

} // namespace

Socket &Socket::operator=(Socket &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}
Socket::~Socket() {
    if (fd_ >= 0) close(fd_);
}

Socket listen_on(int &port) {
    Socket out(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!out) return out;
    const int yes = 1;
    setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address = local(port);
    socklen_t size = sizeof address;
    if (bind(out.get(), reinterpret_cast<const sockaddr *>(&address), size) != 0 || listen(out.get(), 64) != 0 ||
        getsockname(out.get(), reinterpret_cast<sockaddr *>(&address), &size) != 0) {
        const int why = errno;
        out = Socket();
        errno = why;
        return out;
    }
    port = ntohs(address.sin_port);
    return out;
}

Socket connect_to(int port) {
    Socket out(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!out) return out;
    set_timeouts(out.get());
    const sockaddr_in address = local(port);
    if (connect(out.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
        const int why = errno;
        out = Socket();
        errno = why;
    }
    return out;
}

bool send_all(const Socket &to, const std::string &text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t n = send(to.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
        if (n <= 0) return false;
        done += static_cast<size_t>(n);
    }
    return true;
}

bool Lines::next(std::string &line) {
    for (;;) {
        if (const size_t end = waiting_.find('\n'); end != std::string::npos) {
            line = waiting_.substr(0, end > 0 && waiting_[end - 1] == '\r' ? end - 1 : end);
            waiting_.erase(0, end + 1);
            return true;
        }
        if (waiting_.size() > kLongestLine) return false;
        char part[4096];
        const ssize_t n = recv(from_.get(), part, sizeof part, 0);
        if (n <= 0) return false;
        waiting_.append(part, static_cast<size_t>(n));
    }
}

Pool::Pool(const Socket &listener, int threads, const std::function<void(Socket)> &serve) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    stopped_ = Socket(ends[0]);
    stop_ = Socket(ends[1]);
    for (int i = 0; i < threads; ++i)
        threads_.emplace_back([listener = listener.get(), stopped = ends[0], serve] {
            for (;;) {
                pollfd wait[] = {{listener, POLLIN, 0}, {stopped, POLLIN, 0}};
                if (poll(wait, 2, -1) < 0 && errno != EINTR) return;
                if (wait[1].revents) return;
                const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
                if (fd < 0) continue; // another thread was faster
                set_timeouts(fd);
                serve(Socket(fd));
            }
        });
}

Pool::~Pool() {
    stop_ = Socket(); // swaps: the old one is closed with the temporary
    for (std::thread &one : threads_) one.join();
}
