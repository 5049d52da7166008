// Stands in for tls.cpp in a build without OpenSSL.
#include "programs/export/tls.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::telemetry {

bool has_tls() { return false; }

Result<std::unique_ptr<Tls>> tls_client(const std::string &) {
    return fail(Errc::unsupported, "this build speaks no TLS: it was made without OpenSSL");
}

} // namespace rawbpf::inline v0::telemetry
