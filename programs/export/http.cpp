// The one file that includes cpp-httplib, which brings TLS, keep-alive, time-outs and proxies' manners along; a client of our own
// would be 300 lines of them. It is a shared library on Debian and throws inside only: CPPHTTPLIB_NO_EXCEPTIONS is about its
// header.
//
// A connection that the receiver closed while it was idle looks like a request that nobody answered: cpp-httplib opens another
// one by itself when it finds it closed before it writes.
#include "programs/export/http.h"

#define CPPHTTPLIB_NO_EXCEPTIONS 1
#include <algorithm>
#include <chrono>

#include <httplib.h>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {
namespace {

class Http final : public Transport {
  public:
    Http(const Endpoint &endpoint, const std::vector<Header> &headers, std::string_view version)
        : url_(endpoint.url()), path_(endpoint.path), client_(base_of(endpoint)) {
        client_.set_keep_alive(true);
        client_.set_tcp_nodelay(true);
        client_.set_follow_location(false); // headers with credentials go nowhere else
        headers_.emplace("User-Agent", format("rawbpf/{}", version));
        for (const auto &[name, value] : headers) headers_.emplace(name, value);
    }

    Answer post(std::string_view body, std::string_view content_type, uint64_t timeout_ns) override {
        const auto timeout = std::chrono::microseconds(std::max<uint64_t>(timeout_ns / 1000, 1));
        client_.set_connection_timeout(timeout);
        client_.set_read_timeout(timeout);
        client_.set_write_timeout(timeout);
        Answer answer;
        httplib::Request request;
        request.method = "POST";
        request.path = path_;
        request.headers = headers_;
        request.set_header("Content-Type", std::string(content_type));
        request.body = body;
        request.content_receiver = [&](const char *data, size_t size, uint64_t,
                                       uint64_t) { // a hostile receiver could go on for ever
            answer.body.append(data, std::min(size, kMostAnswer - answer.body.size()));
            return answer.body.size() < kMostAnswer;
        };
        const httplib::Result result = client_.send(request);
        if (!result) return unanswered(result.error(), std::move(answer));
        answer.what = Answer::What::answered;
        answer.status = result->status;
        answer.content_type = result->get_header_value("Content-Type");
        answer.retry_after = result->get_header_value("Retry-After");
        return answer;
    }

  private:
    static std::string base_of(const Endpoint &endpoint) {
        Endpoint base = endpoint;
        base.path.clear();
        return base.url();
    }
    Answer unanswered(httplib::Error error, Answer answer) const {
        using httplib::Error;
        const auto is = [&](Answer::What what, std::string_view why) {
            answer.what = what;
            answer.detail = format("{}: {}", url_, why);
            return std::move(answer);
        };
        switch (error) {
        case Error::Connection: return is(Answer::What::refused, "nobody listens there, or the name isn't known");
        case Error::ConnectionTimeout: return is(Answer::What::timed_out, "no connection in time");
        case Error::Read: return is(Answer::What::timed_out, "no answer in time");
        case Error::Write: return is(Answer::What::timed_out, "the connection broke");
        case Error::SSLConnection: return is(Answer::What::failed, "no TLS connection");
        case Error::SSLLoadingCerts: return is(Answer::What::failed, "the system's certificates can't be read");
        case Error::SSLServerVerification: return is(Answer::What::failed, "its certificate isn't one that this system trusts");
        case Error::Canceled: return is(Answer::What::failed, format("an answer of more than {} bytes", kMostAnswer));
        default: return is(Answer::What::failed, httplib::to_string(error));
        }
    }
    std::string url_, path_;
    httplib::Client client_;
    httplib::Headers headers_;
};

} // namespace

bool has_https() {
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
    return true;
#else
    return false;
#endif
}

Result<std::unique_ptr<Transport>> http_transport(const Endpoint &endpoint, const std::vector<Header> &headers,
                                                  std::string_view version) {
    if (endpoint.tls && !has_https())
        return Unexpected(make_error(Errc::unsupported, format("{}: this build speaks no TLS", endpoint.url()),
                                     "send to a collector on this machine by http://, and let it send on"));
    return std::unique_ptr<Transport>(std::make_unique<Http>(endpoint, headers, version));
}

} // namespace rawbpf::inline v0::telemetry
