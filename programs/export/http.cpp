// OTLP's client: one request after the other over one connection, to a receiver that may be hostile.
//
//      name ... connect ... TLS ... request ... headers ... body
//      '------------- one deadline for all of that ------------'        end_by() may bring it nearer, from another thread
//
// Every wait is in wait(), on one socket and on an event that end_by() signals, so a receiver that sends a byte now and then
// has no more time than one that sends nothing. What it sends has bounds: AnswerReader's for an answer's parts, kMostReceived for
// all bytes together, TLS's included. Redirections aren't followed: headers with credentials go nowhere else.
//
// A connection that the receiver closed while it was idle looks like a request that nobody answered: where not one byte of an
// answer came over a connection that had been used before, the request is sent once more, over a new one.
#include "programs/export/http.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include <sys/socket.h>

#include "programs/export/addresses.h"
#include "programs/export/field.h"
#include "programs/export/http_answer.h"
#include "programs/export/tls.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/stream.h"

namespace rawbpf::inline v0::telemetry {
namespace {

constexpr size_t kMostReceived = 512 << 10; // of one request, and of a connection's beginning; certificates are the most of it

struct Connection {
    Fd socket;
    std::unique_ptr<Tls> tls;
};

// All but Content-Type and Content-Length, which differ from request to request.
std::string request_head(const Endpoint &endpoint, const std::vector<Header> &headers, std::string_view version) {
    const auto given = [&](std::string_view name) {
        return std::any_of(headers.begin(), headers.end(), [&](const Header &one) { return same(one.first, name); });
    };
    const bool bare = endpoint.host.find(':') != std::string::npos;
    std::string out = format("POST {} HTTP/1.1\r\n", endpoint.path.empty() ? "/" : endpoint.path);
    if (!given("Host")) {
        append(out, "Host: {}{}{}", bare ? "[" : "", endpoint.host, bare ? "]" : "");
        if (endpoint.port != (endpoint.tls ? 443 : 80)) append(out, ":{}", endpoint.port);
        out += "\r\n";
    }
    if (!given("User-Agent")) append(out, "User-Agent: rawbpf/{}\r\n", version);
    if (!given("Accept")) out += "Accept: */*\r\n";
    for (const auto &[name, value] : headers) {
        // These say where the request ends and what is in it, which is ours to say.
        if (same(name, "Content-Length") || same(name, "Transfer-Encoding") || same(name, "Connection") ||
            same(name, "Content-Type"))
            continue;
        append(out, "{}: {}\r\n", name, value);
    }
    return out;
}

class Http final : public Transport {
  public:
    Http(const Endpoint &endpoint, const std::vector<Header> &headers, std::string_view version, Fd woken)
        : endpoint_(endpoint), url_(endpoint.url()), head_(request_head(endpoint, headers, version)), woken_(std::move(woken)) {}

    Answer post(std::string_view body, std::string_view content_type, uint64_t timeout_ns) override {
        timeout_ns_ = timeout_ns;
        until_ = sys::monotonic_ns() + timeout_ns;
        std::string request = head_;
        append(request, "Content-Type: {}\r\nContent-Length: {}\r\n\r\n", content_type, body.size());
        request += body;
        for (;;) {
            const bool reused = connection_.has_value();
            if (!reused)
                if (std::optional<Answer> failed = open()) return std::move(*failed);
            bool silent = false;
            Answer answer = exchange(request, silent);
            if (answer.what != Answer::What::answered) connection_.reset();
            if (!reused || !silent) return answer;
        }
    }

    void end_by(uint64_t deadline_ns) override {
        end_by_ = std::min(end_by_.load(), deadline_ns);
        sys::wake(woken_.get());
    }

  private:
    Answer unanswered(Answer::What what, std::string_view why) {
        connection_.reset();
        Answer out;
        out.what = what;
        out.detail = format("{}: {}", url_, why);
        return out;
    }
    Answer late(std::string_view what) {
        if (sys::monotonic_ns() >= end_by_) return unanswered(Answer::What::timed_out, format("{} before the end", what));
        return unanswered(Answer::What::timed_out, format("{} in time ({} ms)", what, timeout_ns_ / 1'000'000));
    }

    [[nodiscard]] uint64_t deadline() const { return std::min(until_, end_by_.load()); }

    // Until one of the events is there, or `until`. False: it is late.
    bool wait(int file, short events, uint64_t until) {
        std::array<pollfd, 2> files{{{file, events, 0}, {woken_.get(), POLLIN, 0}}};
        for (;;) {
            const uint64_t now = sys::monotonic_ns(), end = std::min(until, deadline());
            if (now >= end || !sys::poll_files(files, end - now)) return false;
            if (files[1].revents) sys::settle(woken_.get()); // there may be a new deadline
            if (files[0].revents) return true;
        }
    }

    std::optional<Answer> open() {
        auto addresses = address_in_digits(endpoint_.host, endpoint_.port);
        if (!addresses) {
            if (!lookup_) { // else one is under way since an earlier request
                auto lookup = Lookup::begin(endpoint_.host, endpoint_.port);
                if (!lookup) return unanswered(Answer::What::refused, lookup.error().message());
                lookup_ = std::move(*lookup);
            }
            while (!lookup_->done())
                if (!wait(lookup_->event(), POLLIN, UINT64_MAX)) return late("its name wasn't resolved");
            addresses = lookup_->result();
            lookup_.reset();
            if (!addresses)
                return unanswered(Answer::What::refused, format("the name isn't known: {}", addresses.error().message()));
        }
        Fd socket;
        std::optional<Error> problem;
        for (size_t i = 0; i < addresses->size() && !socket; ++i) {
            // Each of them gets an equal share of the time that is left.
            const uint64_t now = sys::monotonic_ns(), end = deadline();
            const uint64_t until = now + (end > now ? end - now : 0) / (addresses->size() - i);
            auto begun = sys::begin_connect((*addresses)[i]);
            if (begun && !wait(begun->get(), POLLOUT, until)) continue;
            const Result<void> outcome = begun ? sys::connect_outcome(begun->get()) : Result<void>(Unexpected(begun.error()));
            if (outcome)
                socket = std::move(*begun);
            else
                problem = outcome.error();
        }
        if (!socket && !problem) return late("no connection");
        if (!socket) return unanswered(Answer::What::refused, format("nobody listens there: {}", problem->message()));
        connection_.emplace(Connection{std::move(socket), nullptr});
        if (endpoint_.tls) {
            auto tls = tls_client(endpoint_.host);
            if (!tls) return unanswered(Answer::What::failed, tls.error().message());
            connection_->tls = std::move(*tls);
        }
        return std::nullopt;
    }

    // `silent`: the connection ended before anything of an answer came, so that it may have been dead before.
    Answer exchange(const std::string &request, bool &silent) {
        Connection &c = *connection_;
        AnswerReader reader;
        std::string encrypted, plain;
        std::string_view to_send = request;
        if (c.tls) {
            c.tls->write(request);
            to_send = encrypted = c.tls->to_send();
        }
        size_t received = 0;
        std::array<char, 16384> piece;
        while (reader.state() == AnswerReader::State::more) {
            bool broken = false; // whatever it said before that may still be read
            if (!to_send.empty()) {
                const auto sent = sys::send_some(c.socket.get(), to_send);
                broken = !sent;
                if (sent) to_send.remove_prefix(*sent);
            }
            const short events = static_cast<short>(POLLIN | (to_send.empty() || broken ? 0 : POLLOUT));
            if (!wait(c.socket.get(), events, UINT64_MAX)) return late(reader.began() ? "no whole answer" : "no answer");
            const auto n = sys::receive(c.socket.get(), piece);
            if (n && !*n) continue; // there is room to send
            if (!n || **n == 0) {
                silent = !reader.began();
                if (reader.end() == AnswerReader::State::done) break;
                if (!silent) return unanswered(Answer::What::failed, format("an answer {}", reader.problem()));
                return unanswered(Answer::What::timed_out, "the connection broke");
            }
            if ((received += **n) > kMostReceived)
                return unanswered(Answer::What::failed, format("more than {} KB for one answer", kMostReceived >> 10));
            std::string_view bytes(piece.data(), **n);
            if (c.tls) {
                plain.clear();
                if (const auto taken = c.tls->received(bytes, plain); !taken)
                    return unanswered(Answer::What::failed, taken.error().message());
                encrypted = std::string(to_send) + c.tls->to_send();
                to_send = encrypted;
                bytes = plain;
            }
            if (reader.feed(bytes) == AnswerReader::State::failed)
                return unanswered(Answer::What::failed, format("an answer {}", reader.problem()));
        }
        HttpAnswer &got = reader.answer();
        Answer out;
        out.what = Answer::What::answered;
        out.status = got.status;
        out.content_type = std::move(got.content_type);
        out.retry_after = std::move(got.retry_after);
        out.body = std::move(got.body);
        if (!got.keeps_open || !to_send.empty()) connection_.reset();
        return out;
    }

    Endpoint endpoint_;
    std::string url_, head_;
    Fd woken_;
    std::atomic<uint64_t> end_by_{UINT64_MAX};
    uint64_t until_ = 0, timeout_ns_ = 0; ///< of the request under way
    std::optional<Lookup> lookup_;
    std::optional<Connection> connection_;
};

} // namespace

bool has_https() { return has_tls(); }

Result<std::unique_ptr<Transport>> http_transport(const Endpoint &endpoint, const std::vector<Header> &headers,
                                                  std::string_view version) {
    if (endpoint.tls && !has_https())
        return Unexpected(make_error(Errc::unsupported, format("{}: this build speaks no TLS", endpoint.url()),
                                     "send to a collector on this machine by http://, and let it send on"));
    Fd woken = TRY(sys::wake_event());
    return std::unique_ptr<Transport>(std::make_unique<Http>(endpoint, headers, version, std::move(woken)));
}

} // namespace rawbpf::inline v0::telemetry
