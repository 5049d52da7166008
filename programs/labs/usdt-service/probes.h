// The probes of this service: eight, with the names and the arguments that the Go fork's documents promise.
//
//      go:http_server_request_start   method, path, timestamp          go:http_server_request_end   method, path, status, duration
//      go:sql_query_start             query, timestamp                 go:sql_query_end             query, duration, error
//      go:tls_handshake_start         server_name, timestamp           go:tls_handshake_end         server_name, duration, error
//      go:net_dial_start              network, address, timestamp      go:net_dial_end              network, address, duration, error
//
// A text is two arguments, as in Go: where it begins and how long it is. So nothing has to be copied for a zero at its end.
// Everything is LAZY: while nobody looks, a probe is a load and a branch, and the clock isn't read.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include <rawbpf/usdt.h>

namespace probes {

using std::string_view;

/// ns of Unix time
inline uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

inline void http_server_request_start(string_view method, string_view path) {
    RAWBPF_USDT_LAZY(go, http_server_request_start, method.data(), method.size(), path.data(), path.size(), now());
}
inline void http_server_request_end(string_view method, string_view path, int status, uint64_t began) {
    RAWBPF_USDT_LAZY(go, http_server_request_end, method.data(), method.size(), path.data(), path.size(), status, now() - began);
}

inline void sql_query_start(string_view query) { RAWBPF_USDT_LAZY(go, sql_query_start, query.data(), query.size(), now()); }
inline void sql_query_end(string_view query, uint64_t began, long error) {
    RAWBPF_USDT_LAZY(go, sql_query_end, query.data(), query.size(), now() - began, error);
}

inline void tls_handshake_start(string_view server_name) {
    RAWBPF_USDT_LAZY(go, tls_handshake_start, server_name.data(), server_name.size(), now());
}
inline void tls_handshake_end(string_view server_name, uint64_t began, long error) {
    RAWBPF_USDT_LAZY(go, tls_handshake_end, server_name.data(), server_name.size(), now() - began, error);
}

inline void net_dial_start(string_view network, string_view address) {
    RAWBPF_USDT_LAZY(go, net_dial_start, network.data(), network.size(), address.data(), address.size(), now());
}
inline void net_dial_end(string_view network, string_view address, uint64_t began, long error) {
    RAWBPF_USDT_LAZY(go, net_dial_end, network.data(), network.size(), address.data(), address.size(), now() - began, error);
}

constexpr int kAll = 8;
/// How many of them somebody looks at just now.
inline int looked_at() {
    return (RAWBPF_USDT_ENABLED(go, http_server_request_start) != 0) + (RAWBPF_USDT_ENABLED(go, http_server_request_end) != 0) +
           (RAWBPF_USDT_ENABLED(go, sql_query_start) != 0) + (RAWBPF_USDT_ENABLED(go, sql_query_end) != 0) +
           (RAWBPF_USDT_ENABLED(go, tls_handshake_start) != 0) + (RAWBPF_USDT_ENABLED(go, tls_handshake_end) != 0) +
           (RAWBPF_USDT_ENABLED(go, net_dial_start) != 0) + (RAWBPF_USDT_ENABLED(go, net_dial_end) != 0);
}

} // namespace probes
