// TLS as a filter between a socket's bytes and HTTP's: it sends and waits for nothing itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::telemetry {

/// Whether this build speaks TLS.
[[nodiscard]] bool has_tls();

class Tls {
  public:
    virtual ~Tls() = default;
    /// To be sent, encrypted; before the handshake is over it waits for that.
    virtual void write(std::string_view plain) = 0;
    /// Takes what came from the socket, and appends what it says to `plain`. Errors: io, in words: the handshake failed, the
    /// certificate isn't trusted, or the bytes aren't TLS.
    [[nodiscard]] virtual Result<void> received(std::string_view bytes, std::string &plain) = 0;
    /// What is to be sent to the socket now.
    [[nodiscard]] virtual std::string to_send() = 0;
};

/// A client's, for a server with that name or address, whose certificate has to be of one that this system trusts. Errors:
/// unsupported (without OpenSSL), io: the system's certificates can't be read.
[[nodiscard]] Result<std::unique_ptr<Tls>> tls_client(const std::string &host);

} // namespace rawbpf::inline v0::telemetry
