// Spans on their way to a receiver: a bounded queue, batches, and retries. The network is behind an interface.
//
//      add(span) --> queue --> batch, encoded once --> Transport::post --> sent
//         |            |             ^      |
//         dropped      bounded       `------' again after a while: 429, 502, 503, 504, refused, timed out
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "programs/export/otlp.h"
#include "programs/export/settings.h"

namespace rawbpf::inline v0::telemetry {

/// What came of one request.
struct Answer {
    enum class What : uint8_t {
        answered, ///< status and body are there
        refused,  ///< nobody listens there, or the name isn't known now: worth another try
        timed_out,
        failed, ///< no other try would help: TLS isn't built in, a certificate is wrong ...
    };
    What what = What::failed;
    int status = 0;           ///< HTTP's
    std::string body;         ///< at most 64 KB of it
    std::string content_type; ///< of it
    std::string retry_after;  ///< the header's value, or empty
    std::string detail;       ///< of what wasn't answered, for people
};

/// Posts requests to one endpoint. Thread-compatible but for end_by().
class Transport {
  public:
    virtual ~Transport() = default;
    /// Blocks until there is a whole answer, or `timeout_ns` have passed, however the receiver divides its bytes.
    [[nodiscard]] virtual Answer post(std::string_view body, std::string_view content_type, uint64_t timeout_ns) = 0;
    /// From any thread: the request under way, too, ends by then (sys::monotonic_ns()). It only comes nearer.
    virtual void end_by(uint64_t deadline_ns) = 0;
};

struct ExporterOptions {
    Encoding encoding = Encoding::protobuf;
    size_t batch = 512;                         ///< spans of a request
    uint64_t batch_ns = 1'000'000'000;          ///< a batch that isn't full goes after so long
    size_t queue = 16384;                       ///< spans that wait, those of the request under way not counted; more are dropped
    uint64_t timeout_ns = 10'000'000'000;       ///< of a request
    uint64_t first_retry_ns = 1'000'000'000;    ///< doubles with each try, and is shortened at random by up to a half
    uint64_t longest_retry_ns = 30'000'000'000; ///< between two tries; a receiver's Retry-After may be longer
    uint64_t give_up_ns = 300'000'000'000;      ///< a batch is given up so long after its first try
};

/// For the ledger: added = sent + rejected + dropped + failed + waiting.
struct ExportReport {
    uint64_t added = 0;
    uint64_t sent = 0;                      ///< taken by the receiver
    uint64_t rejected = 0;                  ///< in a batch that was taken but for these (partialSuccess)
    uint64_t dropped = 0;                   ///< the queue was full
    std::map<std::string, uint64_t> failed; ///< spans by reason: "HTTP 400", "connection refused", "not sent before the end"
    uint64_t waiting = 0;                   ///< in the queue, or in the request under way
    uint64_t requests = 0, retries = 0;     ///< retries: those of them that repeat one
    std::string last_problem;               ///< the receiver's words, or ours: any bytes
    /// Nothing was lost.
    [[nodiscard]] bool complete() const { return rejected == 0 && dropped == 0 && failed.empty() && waiting == 0; }
    [[nodiscard]] uint64_t lost() const;
    /// "12 sent in 1 request; 3 lost: 3 connection refused", without a newline.
    [[nodiscard]] std::string text() const;
};

/// add(), report() and stop_by() are thread-safe; poll() is for one thread, which it blocks while a request is under way.
class Exporter {
  public:
    /// Nanoseconds that only grow: sys::monotonic_ns.
    using Clock = std::function<uint64_t()>;

    Exporter(Resource resource, Transport &transport, IdSource &random, ExporterOptions options, Clock clock)
        : resource_(std::move(resource)), transport_(transport), random_(random), options_(options), clock_(std::move(clock)) {}

    /// False: the queue is full, and the span is dropped and counted.
    bool add(Span span);
    /// Whether add() would drop a span now, while the receiver takes batches: none has been asked for yet, or one was taken in
    /// the last 200 ms. Then there is room in a moment.
    [[nodiscard]] bool worth_waiting() const;
    /// True when a whole batch waits: poll() has something to do before its time.
    [[nodiscard]] bool has_batch() const;

    /// Sends what is due, at most one request. How many nanoseconds from now it wants to be called again: 0 for at once, nullopt
    /// when nothing waits.
    std::optional<uint64_t> poll();
    /// From now on everything is due, nothing waits beyond `deadline` (of the clock), the request under way neither, and what
    /// isn't sent by then fails. A second call may bring it nearer.
    void stop_by(uint64_t deadline);

    [[nodiscard]] ExportReport report() const;

  private:
    struct Batch {
        std::string body;
        uint64_t spans = 0;
        uint64_t first_try = 0, next_try = 0;
        uint32_t tries = 0;
    };
    std::optional<uint64_t> poll_queue(uint64_t now);
    void judge(const Answer &answer);
    void try_again(const std::string &reason, std::string_view retry_after);
    void give_up(const std::string &reason);
    void remember(std::string problem);

    Resource resource_;
    Transport &transport_;
    IdSource &random_; ///< used by poll() only
    ExporterOptions options_;
    Clock clock_;
    std::optional<Batch> batch_; ///< poll()'s own

    mutable std::mutex mutex_; ///< of what follows
    std::deque<Span> queue_;
    uint64_t lively_until_ = UINT64_MAX; ///< worth_waiting(): of the clock; nothing was sent yet
    uint64_t oldest_ = 0;                ///< when the queue's first came into an empty one
    uint64_t deadline_ = UINT64_MAX;
    ExportReport report_;
};

/// Seconds to wait by a Retry-After header: a number, or a date ("Fri, 20 Nov 2026 20:20:00 GMT") minus `unix_now`; 0 for one
/// that has passed. nullopt: neither. PURE.
[[nodiscard]] std::optional<uint64_t> retry_after_seconds(std::string_view value, uint64_t unix_now);

} // namespace rawbpf::inline v0::telemetry
