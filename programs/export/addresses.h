// Looks up a host's addresses without waiting for the name server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/sys/stream.h"

namespace rawbpf::inline v0::telemetry {

/// Of a name or an address, in the resolver's order; never empty. Blocks for as long as the system's resolver does, half a minute
/// where nobody answers it. `listen`: to listen at. Errors: not_found, with the resolver's words.
[[nodiscard]] Result<std::vector<sys::SocketAddress>> addresses_of(const std::string &host, uint16_t port, bool listen = false);
/// Of an address in digits: the same, without asking anybody. Errors: not_found: it is a name.
[[nodiscard]] Result<std::vector<sys::SocketAddress>> address_in_digits(const std::string &host, uint16_t port);

/// An address in digits, without its port.
[[nodiscard]] std::string host_of(const sys::SocketAddress &address);
[[nodiscard]] uint16_t port_of(const sys::SocketAddress &address);

/// addresses_of() in a thread of its own, for which nobody has to wait: it ends by itself.
class Lookup {
  public:
    /// Errors: the errno of eventfd2(2).
    [[nodiscard]] static Result<Lookup> begin(const std::string &host, uint16_t port);
    /// Readable when result() is there.
    [[nodiscard]] int event() const;
    [[nodiscard]] bool done() const;
    /// Once, when done().
    [[nodiscard]] Result<std::vector<sys::SocketAddress>> result();

  private:
    struct State;
    explicit Lookup(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_; ///< the thread's, too
};

} // namespace rawbpf::inline v0::telemetry
