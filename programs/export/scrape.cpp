// The scrape endpoint, by cpp-httplib's server: one thread that accepts, two that answer, so that a slow scraper doesn't keep the
// next one waiting. Counters are under one lock, which a scrape holds for as long as it takes to write its text.
//
// The library would share the port with any other socket that wants to (SO_REUSEPORT): two rawbpf would then get half of the
// scrapes each, and nobody would know. So it is asked for SO_REUSEADDR only, and a port that is taken is an error. It also
// ignores SIGPIPE for the whole process, which what we start would inherit: that is put back.
#define CPPHTTPLIB_NO_EXCEPTIONS 1
#include <httplib.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "programs/export/outlets.h"
#include "programs/export/prometheus.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {
namespace {

constexpr auto kSlowest = std::chrono::seconds(2); // of a scraper, between two pieces of its request

// SIGPIPE as it was before.
class KeepSigpipe {
  public:
    KeepSigpipe() { sigaction(SIGPIPE, nullptr, &before_); }
    KeepSigpipe(const KeepSigpipe &) = delete;
    KeepSigpipe &operator=(const KeepSigpipe &) = delete;
    ~KeepSigpipe() { sigaction(SIGPIPE, &before_, nullptr); }

  private:
    struct sigaction before_ {};
};

class Scrapes final : public ScrapePoint {
  public:
    Scrapes() {
        server_.new_task_queue = [] { return new httplib::ThreadPool(2); };
        server_.set_socket_options([](socket_t socket) {
            const int yes = 1;
            setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        });
        server_.set_read_timeout(kSlowest);
        server_.set_write_timeout(kSlowest);
        server_.set_keep_alive_timeout(1);
        server_.set_payload_max_length(64 << 10);
        server_.Get("/metrics", [this](const httplib::Request &, httplib::Response &response) {
            const std::lock_guard lock(mutex_);
            response.set_content(prometheus_text(metrics_, lost_), "text/plain; version=0.0.4; charset=utf-8");
        });
    }
    Scrapes(const Scrapes &) = delete;
    Scrapes &operator=(const Scrapes &) = delete;
    ~Scrapes() override {
        if (!thread_.joinable()) return;
        server_.stop();
        thread_.join();
    }

    Result<void> listen(const ListenAddress &at) {
        ListenAddress real = at;
        errno = 0;
        if (at.port == 0) {
            const int port = server_.bind_to_any_port(at.host);
            if (port <= 0) return cannot(at);
            real.port = static_cast<uint16_t>(port);
        } else if (!server_.bind_to_port(at.host, at.port)) {
            return cannot(at);
        }
        url_ = Endpoint{false, real.host, real.port, "/metrics"}.url();
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); // a new thread inherits the mask: signals are the poll loop's
        thread_ = std::thread([this] { server_.listen_after_bind(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        // stop() does nothing before that.
        for (int i = 0; i < 1000 && !server_.is_running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
    static Unexpected cannot(const ListenAddress &at) {
        const int os = errno; // of the library's last call, where that was the one that failed
        const std::string where = Endpoint{false, at.host, at.port, {}}.url().substr(7);
        if (os == EADDRINUSE || os == EACCES || os == EADDRNOTAVAIL) return fail_os(os, "listening at {}", where);
        return fail(Errc::not_found, "listening at {}: the port is taken, or the address isn't one of this machine's", where);
    }

    std::mutex mutex_;
    Metrics metrics_;
    std::map<std::string, uint64_t> lost_;
    httplib::Server server_;
    std::string url_;
    std::thread thread_;
};

} // namespace

Result<std::unique_ptr<ScrapePoint>> open_scrape_point(const ListenAddress &at) {
    std::unique_ptr<Scrapes> out;
    {
        const KeepSigpipe keep;
        out = std::make_unique<Scrapes>();
    }
    TRY(out->listen(at));
    return std::unique_ptr<ScrapePoint>(std::move(out));
}

} // namespace rawbpf::inline v0::telemetry
