// One request of a scraper (RFC 9112), as far as an endpoint with one page needs it: GET or HEAD of /metrics. A body isn't read,
// and the connection ends with the answer; so Content-Length and Transfer-Encoding, about which two readers can disagree, mean
// nothing here.
//
//      GET /metrics HTTP/1.1        method, target, version: one space between them
//      Host: 127.0.0.1:9464         one, and one of ours
//      Accept: ...                  passed over, but it has to be a header
//      (empty line)
#include "programs/export/scrape_request.h"

#include <algorithm>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "programs/export/field.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {
namespace {

// An address in 16 bytes, IPv4 as ::ffff:a.b.c.d; empty: it is a name.
std::string address_of(const std::string &host) {
    std::string out(16, '\0');
    if (inet_pton(AF_INET6, host.c_str(), out.data()) == 1) return out;
    out = std::string(10, '\0') + "\xff\xff" + std::string(4, '\0');
    return inet_pton(AF_INET, host.c_str(), out.data() + 12) == 1 ? out : std::string();
}
bool is_loopback(const std::string &address) {
    return address == address_of("::1") || (address.substr(0, 12) == address_of("127.0.0.0").substr(0, 12) && address[12] == 127);
}

// "HOST:PORT" without its port, which a tunnel may have changed. nullopt: it is neither a name nor an address with one.
std::optional<std::string> without_port(std::string_view host) {
    std::string_view name = host, port;
    if (host.substr(0, 1) == "[") {
        const size_t close = host.find(']');
        if (close == std::string_view::npos) return std::nullopt;
        name = host.substr(1, close - 1);
        port = host.substr(close + 1);
        if (!port.empty() && port[0] != ':') return std::nullopt;
        if (!port.empty()) port.remove_prefix(1);
    } else if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
        name = host.substr(0, colon);
        port = host.substr(colon + 1);
    }
    if (!std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
    if (!name.empty() && name.back() == '.') name.remove_suffix(1);
    if (name.empty()) return std::nullopt;
    return std::string(name);
}

// The next line, without its end (CR LF, or LF alone), and `rest` behind it.
std::string_view next_line(std::string_view &rest) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
}

struct Reason {
    int status;
    std::string_view name, sentence;
};
constexpr Reason kReasons[] = {
    {200, "OK", ""},
    {400, "Bad Request", "This is no HTTP request.\n"},
    {404, "Not Found", "The metrics are at /metrics.\n"},
    {405, "Method Not Allowed", "Only GET and HEAD are answered.\n"},
    {421, "Misdirected Request",
     "The name in the header Host isn't one of this endpoint. Ask by its address, or start rawbpf with --prometheus "
     "NAME:PORT.\n"},
    {431, "Request Header Fields Too Large", "The request is too long.\n"},
    {505, "HTTP Version Not Supported", "Only HTTP/1.0 and HTTP/1.1 are answered.\n"},
};
const Reason &reason_of(int status) {
    for (const Reason &one : kReasons)
        if (one.status == status) return one;
    return kReasons[1];
}

} // namespace

bool is_own_host(std::string_view host, const OwnNames &own) {
    const auto name = without_port(host);
    if (!name) return false;
    if (const std::string address = address_of(*name); !address.empty())
        return own.everywhere || is_loopback(address) || address == address_of(own.address);
    return same(*name, "localhost") || same(*name, own.listen) || (!own.hostname.empty() && same(*name, own.hostname));
}

std::optional<size_t> end_of_head(std::string_view received) {
    for (size_t at = received.find('\n'); at != std::string_view::npos; at = received.find('\n', at + 1)) {
        const std::string_view next = received.substr(at + 1, 2);
        if (next.substr(0, 1) == "\n") return at + 2;
        if (next == "\r\n") return at + 3;
    }
    return std::nullopt;
}

Verdict judge_request(std::string_view head, const OwnNames &own) {
    Verdict out;
    const std::string_view line = next_line(head);
    const size_t first = line.find(' '), last = line.rfind(' ');
    if (first == std::string_view::npos || last == first || has_control(line)) return out;
    const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
    std::string_view target = line.substr(first + 1, last - first - 1);
    if (method.empty() || target.empty() || target.find(' ') != std::string_view::npos || version.substr(0, 5) != "HTTP/")
        return out;

    std::optional<std::string_view> host;
    for (std::string_view header = next_line(head); !header.empty(); header = next_line(head)) {
        const size_t colon = header.find(':');
        if (colon == std::string_view::npos || colon == 0 || has_control(header)) return out;
        const std::string_view name = header.substr(0, colon);
        if (name.find_first_of(" \t") != std::string_view::npos)
            return out; // a folded line, or a name that two readers take for two
        if (!same(name, "Host")) continue;
        if (host) return out;
        host = trim(header.substr(colon + 1));
    }

    const auto verdict = [&](int status) { return Verdict{status, method == "HEAD"}; };
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return verdict(505);
    if (!host && version == "HTTP/1.1") return out;
    if (same(target.substr(0, 7), "http://")) { // as to a proxy; its host is the one that counts
        target.remove_prefix(7);
        const size_t slash = std::min(target.find('/'), target.size());
        host = target.substr(0, slash);
        target.remove_prefix(slash);
    }
    if (host && !is_own_host(*host, own)) return verdict(421);
    if (method != "GET" && method != "HEAD") return verdict(405);
    return verdict(target.substr(0, target.find('?')) == "/metrics" ? 200 : 404);
}

std::string answer_head(int status, size_t body_size) {
    return format("HTTP/1.1 {} {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n{}"
                  "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                  status, reason_of(status).name, body_size, status == 405 ? "Allow: GET, HEAD\r\n" : "");
}

std::string_view explanation(int status) { return reason_of(status).sentence; }

} // namespace rawbpf::inline v0::telemetry
