// The scrape endpoint: one thread, which waits for all of its connections at once and for none of them.
//
//      connection   | request ........... | answer ........ | the peer's end |
//                   '--------- one time of two seconds for all of that ------'
//
// A peer can't have more than that, however it divides its bytes. There are at most kMost connections; one more ends the oldest
// of them, so whoever holds them open holds up nobody: a scrape that is in order is answered in the moment in which it came. Few
// answers are kept at a time (kMostSending), since a thousand names make megabytes of text.
//
// A connection ends with its answer. It isn't closed at once: what the peer sent and nobody read would make the kernel throw away
// the answer that is still on its way (RST), so what comes is read, up to a bound, until the peer ends its side.
#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "programs/export/addresses.h"
#include "programs/export/outlets.h"
#include "programs/export/prometheus.h"
#include "programs/export/scrape_request.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/stream.h"

namespace rawbpf::inline v0::telemetry {
namespace {

constexpr uint64_t kPatienceNs = 2'000'000'000; // with a connection, from its first moment to its last
constexpr size_t kMost = 32, kMostSending = 4;  // connections; of them, with an answer that isn't sent yet
constexpr size_t kMostUnread = 64 << 10;        // of what comes behind a request
constexpr uint64_t kPauseNs = 100'000'000;      // before the next try to accept when there are no descriptors left
constexpr uint64_t kForEver = 3600'000'000'000;

struct Connection {
    Fd socket;
    uint64_t deadline = 0;
    std::string received, answer;
    size_t sent = 0, unread = 0;
    bool answered = false; ///< the answer is made
    bool over = false;

    [[nodiscard]] bool sending() const { return answered && sent < answer.size(); }
};

class Scrapes final : public ScrapePoint {
  public:
    Scrapes() = default;
    Scrapes(const Scrapes &) = delete;
    Scrapes &operator=(const Scrapes &) = delete;
    ~Scrapes() override {
        if (!thread_.joinable()) return;
        sys::wake(wake_.get());
        thread_.join();
    }

    Result<void> listen(const ListenAddress &at) {
        const std::string where = Endpoint{false, at.host, at.port, {}}.url().substr(7);
        const auto addresses = TRY_IN(addresses_of(at.host, at.port, true), "listening at {}", where);
        wake_ = TRY(sys::wake_event());
        Result<Fd> listener = sys::listen_at(addresses[0]);
        for (size_t i = 1; i < addresses.size() && !listener; ++i) listener = sys::listen_at(addresses[i]);
        listener_ = TRY_IN(std::move(listener), "listening at {}", where);
        const sys::SocketAddress real = TRY(sys::local_address(listener_.get()));
        url_ = Endpoint{false, at.host, port_of(real), "/metrics"}.url();
        const std::string address = host_of(real);
        own_ = {at.host, address, sys::first_line("/proc/sys/kernel/hostname"), address == "0.0.0.0" || address == "::"};
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); // a new thread inherits the mask: signals are the poll loop's
        thread_ = std::thread([this] { run(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return {};
    }

    void add(const Span &span) override {
        const std::lock_guard lock(mutex_);
        metrics_.add(span);
    }
    void set_lost(std::map<std::string, uint64_t> lost) override {
        const std::lock_guard lock(mutex_);
        lost_ = std::move(lost);
    }
    [[nodiscard]] std::string url() const override { return url_; }

  private:
    // What follows is the thread's.
    void run() {
        for (;;) {
            const uint64_t now = sys::monotonic_ns();
            std::erase_if(connections_, [&](const Connection &c) { return c.over || now >= c.deadline; });
            std::vector<pollfd> files{{wake_.get(), POLLIN, 0}, {now < pause_until_ ? -1 : listener_.get(), POLLIN, 0}};
            uint64_t until = now < pause_until_ ? pause_until_ : now + kForEver;
            for (const Connection &c : connections_) {
                files.push_back({c.socket.get(), static_cast<short>(c.sending() ? POLLOUT : POLLIN), 0});
                until = std::min(until, c.deadline);
            }
            if (!sys::poll_files(files, until - now)) return; // no memory for it: nobody is answered any more
            if (files[0].revents) return;
            const size_t known = files.size() - 2;
            for (size_t i = 0; i < known; ++i)
                if (files[i + 2].revents) go_on(connections_[i]);
            if (files[1].revents) accept();
        }
    }

    void accept() {
        for (size_t i = 0; i < kMost; ++i) { // a flood must not keep the others waiting
            auto next = sys::accept_next(listener_.get());
            if (!next) { // no descriptors or no memory; or its peer has gone, and the next one is tried after the pause
                pause_until_ = sys::monotonic_ns() + kPauseNs;
                return;
            }
            if (!*next) return;
            if (connections_.size() >= kMost) connections_.pop_front();
            Connection &c = connections_.emplace_back();
            c.socket = std::move(**next);
            c.deadline = sys::monotonic_ns() + kPatienceNs;
            go_on(c); // most of them have said it all by now
        }
    }

    void go_on(Connection &c) {
        if (!c.answered) read_request(c);
        if (c.sending()) {
            const auto n = sys::send_some(c.socket.get(), std::string_view(c.answer).substr(c.sent));
            if (!n) {
                c.over = true;
                return;
            }
            c.sent += *n;
            if (c.sending()) return;
            std::string().swap(c.answer);
            c.sent = 0;
            sys::end_sending(c.socket.get());
        }
        if (c.answered) read_to_the_end(c);
    }

    void read_request(Connection &c) {
        char piece[4096];
        const auto n = sys::receive(c.socket.get(), piece);
        if (n && !*n) return;
        if (!n || **n == 0) { // it ended without a request
            c.over = true;
            return;
        }
        c.received.append(piece, **n);
        if (const auto end = end_of_head(c.received))
            answer(c, judge_request(std::string_view(c.received).substr(0, *end), own_));
        else if (c.received.size() > kMostRequest)
            answer(c, {431, false});
    }

    void answer(Connection &c, const Verdict &verdict) {
        std::string text(explanation(verdict.status));
        if (verdict.status == 200) {
            if (std::count_if(connections_.begin(), connections_.end(), [](const Connection &one) { return one.sending(); }) >=
                static_cast<std::ptrdiff_t>(kMostSending)) {
                Connection &oldest =
                    *std::find_if(connections_.begin(), connections_.end(), [](const Connection &one) { return one.sending(); });
                oldest.over = true;
                std::string().swap(oldest.answer);
            }
            const std::lock_guard lock(mutex_);
            text = prometheus_text(metrics_, lost_);
        }
        c.answer = answer_head(verdict.status, text.size());
        if (!verdict.without_body) c.answer += text;
        c.answered = true;
        std::string().swap(c.received);
    }

    static void read_to_the_end(Connection &c) {
        char piece[4096];
        for (;;) {
            const auto n = sys::receive(c.socket.get(), piece);
            if (n && !*n) return;
            if (!n || **n == 0 || (c.unread += **n) > kMostUnread) {
                c.over = true;
                return;
            }
        }
    }

    Fd listener_, wake_;
    std::string url_;
    OwnNames own_;
    std::deque<Connection> connections_; ///< the oldest first
    uint64_t pause_until_ = 0;

    std::mutex mutex_; ///< of what follows
    Metrics metrics_;
    std::map<std::string, uint64_t> lost_;
    std::thread thread_; ///< the last: it uses the others
};

} // namespace

Result<std::unique_ptr<ScrapePoint>> open_scrape_point(const ListenAddress &at) {
    auto out = std::make_unique<Scrapes>();
    TRY(out->listen(at));
    return std::unique_ptr<ScrapePoint>(std::move(out));
}

} // namespace rawbpf::inline v0::telemetry
