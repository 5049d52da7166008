// getaddrinfo(3) takes no time limit: if a name server doesn't answer, it waits as long as the resolver does, 5 s for each try
// and server. So it runs in a thread of its own. Its result is used when it is there; if it comes too late, it is never used.
#include "programs/export/addresses.h"

#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::telemetry {
namespace {

Result<std::vector<sys::SocketAddress>> look_up(const std::string &host, uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo *found = nullptr;
    if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
        return fail(Errc::not_found, "{}: {}", host, gai_strerror(error));
    std::vector<sys::SocketAddress> out;
    for (const addrinfo *one = found; one; one = one->ai_next) {
        if (one->ai_addrlen > sizeof(sockaddr_storage)) continue;
        sys::SocketAddress &address = out.emplace_back();
        std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
        address.size = one->ai_addrlen;
    }
    freeaddrinfo(found);
    if (out.empty()) return fail(Errc::not_found, "{}: it has no address", host);
    return out;
}

} // namespace

Result<std::vector<sys::SocketAddress>> addresses_of(const std::string &host, uint16_t port, bool listen) {
    return look_up(host, port, listen ? AI_PASSIVE : 0);
}
Result<std::vector<sys::SocketAddress>> address_in_digits(const std::string &host, uint16_t port) {
    return look_up(host, port, AI_NUMERICHOST);
}

std::string host_of(const sys::SocketAddress &address) {
    char out[NI_MAXHOST] = "";
    const int error = getnameinfo(reinterpret_cast<const sockaddr *>(&address.bytes), address.size, out, sizeof out, nullptr, 0,
                                  NI_NUMERICHOST);
    return error == 0 ? out : "";
}

uint16_t port_of(const sys::SocketAddress &address) {
    if (address.bytes.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6 *>(&address.bytes)->sin6_port);
    return ntohs(reinterpret_cast<const sockaddr_in *>(&address.bytes)->sin_port);
}

struct Lookup::State {
    Fd event;
    std::mutex mutex;
    std::optional<Result<std::vector<sys::SocketAddress>>> found; ///< under the mutex
};

Result<Lookup> Lookup::begin(const std::string &host, uint16_t port) {
    auto state = std::make_shared<State>();
    state->event = TRY(sys::wake_event());
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // a new thread inherits the mask: signals are the poll loop's
    std::thread([state, host, port] {
        auto found = addresses_of(host, port);
        const std::lock_guard lock(state->mutex);
        state->found = std::move(found);
        sys::wake(state->event.get());
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return Lookup(std::move(state));
}

int Lookup::event() const { return state_->event.get(); }

bool Lookup::done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->found.has_value();
}

Result<std::vector<sys::SocketAddress>> Lookup::result() {
    const std::lock_guard lock(state_->mutex);
    return std::move(*state_->found);
}

} // namespace rawbpf::inline v0::telemetry
