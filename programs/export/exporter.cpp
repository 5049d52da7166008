// The exporter's rules, which are OTLP's (https://opentelemetry.io/docs/specs/otlp/#otlphttp-response): 429, 502, 503 and 504 are
// tried again, with the receiver's Retry-After or else after 1 s, 2 s, 4 s ... less a random part, so that a fleet doesn't come
// back in step; every other status is final. A request that nobody answered is tried again, too. A partial success is never.
//
// A batch is encoded once and kept as bytes until it is answered. Meanwhile the queue fills, and when it is full, new spans
// are dropped: the old ones explain why. So the queue and one request limit the memory.
//
// A receiver that takes batch after batch may still be slower than a burst. Code that adds spans asks worth_waiting() and lets
// the burst wait where it came from, which has a limit of its own; it never waits for a receiver that is down or stuck.
#include "programs/export/exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "programs/render/text.h"
#include "runtime/base/calendar.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::telemetry {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kLively = kSecond / 5;

bool worth_another_try(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

} // namespace

uint64_t ExportReport::lost() const {
    uint64_t out = rejected + dropped;
    for (const auto &[reason, n] : failed) out += n;
    return out;
}

std::string ExportReport::text() const {
    using render::grouped;
    std::string out = format("{} sent in {} request{}", grouped(sent), grouped(requests), requests == 1 ? "" : "s");
    if (lost() == 0) return out;
    append(out, "; {} lost:", grouped(lost()));
    std::string_view comma = " ";
    const auto add = [&](uint64_t n, std::string_view why) {
        if (n) append(out, "{}{} {}", std::exchange(comma, ", "), grouped(n), why);
    };
    add(dropped, "as the queue was full");
    add(rejected, "refused by the receiver");
    for (const auto &[reason, n] : failed) add(n, reason);
    return out;
}

std::optional<uint64_t> retry_after_seconds(std::string_view value, uint64_t unix_now) {
    if (const auto seconds = whole_number<uint64_t>(value)) return std::min<uint64_t>(*seconds, 86400);
    // "Fri, 20 Nov 2026 20:20:00 GMT", the one form that RFC 9110 lets a sender use.
    static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (value.size() != 29 || value.substr(25) != " GMT" || value[19] != ':' || value[22] != ':') return std::nullopt;
    const auto day = whole_number<uint64_t>(value.substr(5, 2)), year = whole_number<uint64_t>(value.substr(12, 4)),
               hour = whole_number<uint64_t>(value.substr(17, 2)), minute = whole_number<uint64_t>(value.substr(20, 2)),
               second = whole_number<uint64_t>(value.substr(23, 2));
    const size_t month = kMonths.find(value.substr(8, 3));
    if (!day || !year || !hour || !minute || !second || month == std::string_view::npos || month % 3 != 0) return std::nullopt;
    if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    const auto days =
        days_since_1970({static_cast<int64_t>(*year), static_cast<unsigned>(month / 3 + 1), static_cast<unsigned>(*day)});
    if (!days) return std::nullopt;
    const int64_t then = *days * 86400 + static_cast<int64_t>(*hour * 3600 + *minute * 60 + *second);
    const int64_t wait = then - static_cast<int64_t>(unix_now);
    return wait <= 0 ? 0 : std::min<uint64_t>(static_cast<uint64_t>(wait), 86400);
}

bool Exporter::add(Span span) {
    const std::lock_guard lock(mutex_);
    ++report_.added;
    if (queue_.size() >= options_.queue) {
        ++report_.dropped;
        return false;
    }
    if (queue_.empty()) oldest_ = clock_();
    queue_.push_back(std::move(span));
    ++report_.waiting;
    return true;
}

bool Exporter::worth_waiting() const {
    const std::lock_guard lock(mutex_);
    return queue_.size() >= options_.queue && clock_() < lively_until_;
}

bool Exporter::has_batch() const {
    const std::lock_guard lock(mutex_);
    return queue_.size() >= options_.batch;
}

ExportReport Exporter::report() const {
    const std::lock_guard lock(mutex_);
    return report_;
}

void Exporter::stop_by(uint64_t deadline) {
    {
        const std::lock_guard lock(mutex_);
        deadline_ = std::min(deadline_, deadline);
    }
    transport_.end_by(deadline);
}

// Makes the next batch, when it is due; or says how long that will be.
std::optional<uint64_t> Exporter::poll_queue(uint64_t now) {
    std::vector<Span> spans;
    {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) return std::nullopt;
        const bool due = queue_.size() >= options_.batch || deadline_ != UINT64_MAX || now - oldest_ >= options_.batch_ns;
        if (!due) return options_.batch_ns - (now - oldest_);
        const size_t n = std::min(queue_.size(), std::max<size_t>(options_.batch, 1));
        spans.assign(std::make_move_iterator(queue_.begin()),
                     std::make_move_iterator(queue_.begin() + static_cast<std::ptrdiff_t>(n)));
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(n));
        oldest_ = now;
    }
    batch_ = Batch{otlp_request(options_.encoding, resource_, spans), spans.size(), now, now, 0};
    return 0;
}

std::optional<uint64_t> Exporter::poll() {
    uint64_t now = clock_();
    if (!batch_)
        if (const auto wait = poll_queue(now); !wait || *wait != 0) return wait;
    uint64_t deadline;
    {
        const std::lock_guard lock(mutex_);
        deadline = deadline_;
        if (now >= deadline) { // all that is left
            if (!queue_.empty()) report_.failed["not sent before the end"] += queue_.size();
            report_.waiting -= queue_.size();
            queue_.clear();
        }
    }
    if (now >= deadline) {
        give_up("not sent before the end");
        return std::nullopt;
    }
    if (now < batch_->next_try) return std::min(batch_->next_try, deadline) - now;
    {
        const std::lock_guard lock(mutex_);
        if (report_.requests == 0) lively_until_ = now + kLively;
        ++report_.requests;
        if (batch_->tries > 0) ++report_.retries;
    }
    ++batch_->tries;
    judge(transport_.post(batch_->body, content_type(options_.encoding), std::min(options_.timeout_ns, deadline - now)));
    now = clock_();
    if (batch_) return batch_->next_try > now ? std::min(batch_->next_try, std::max(deadline, now)) - now : 0;
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return std::nullopt;
    if (queue_.size() >= options_.batch || deadline_ != UINT64_MAX || now - oldest_ >= options_.batch_ns) return 0;
    return options_.batch_ns - (now - oldest_);
}

void Exporter::judge(const Answer &answer) {
    switch (answer.what) {
    case Answer::What::refused:
        remember(answer.detail);
        try_again("connection refused", {});
        return;
    case Answer::What::timed_out:
        remember(answer.detail);
        try_again("timed out", {});
        return;
    case Answer::What::failed:
        remember(answer.detail);
        give_up("not sendable");
        return;
    case Answer::What::answered: break;
    }
    if (answer.status < 200 || answer.status > 299) {
        const std::string reason = format("HTTP {}", answer.status);
        std::string told = format("the receiver answered {}", reason);
        if (answer.status >= 300 && answer.status <= 399)
            told += ", and redirects aren't followed: name the place that it points to";
        remember(told + (answer.body.empty() ? "" : ": ") + answer.body.substr(0, 200));
        if (worth_another_try(answer.status))
            try_again(reason, answer.retry_after);
        else
            give_up(reason);
        return;
    }
    // Receivers answer in the request's encoding; one that says otherwise is believed.
    const bool json = answer.content_type.find("json") != std::string::npos ||
                      (options_.encoding == Encoding::json && answer.content_type.find("protobuf") == std::string::npos);
    const auto partial = json ? read_response_json(answer.body) : read_response_protobuf(answer.body);
    uint64_t rejected = 0;
    if (!partial)
        remember(partial.error().message()); // the status says that it was taken
    else if (*partial) {
        rejected = std::min((*partial)->rejected, batch_->spans);
        remember((*partial)->message);
    }
    const std::lock_guard lock(mutex_);
    lively_until_ = clock_() + kLively;
    report_.sent += batch_->spans - rejected;
    report_.rejected += rejected;
    report_.waiting -= batch_->spans;
    batch_.reset();
}

void Exporter::try_again(const std::string &reason, std::string_view retry_after) {
    const uint64_t now = clock_();
    uint64_t wait = options_.first_retry_ns;
    for (uint32_t i = 1; i < batch_->tries && wait < options_.longest_retry_ns; ++i) wait *= 2;
    wait = std::min(wait, options_.longest_retry_ns);
    wait -= wait < 2 ? 0 : random_.next() % (wait / 2 + 1);
    if (const auto seconds = retry_after_seconds(retry_after, sys::realtime_ns() / kSecond)) wait = *seconds * kSecond;
    if (now + wait - batch_->first_try > options_.give_up_ns) return give_up(reason);
    batch_->next_try = now + wait;
}

void Exporter::give_up(const std::string &reason) {
    const std::lock_guard lock(mutex_);
    report_.failed[reason] += batch_->spans;
    report_.waiting -= batch_->spans;
    batch_.reset();
}

void Exporter::remember(std::string problem) {
    if (problem.empty()) return;
    const std::lock_guard lock(mutex_);
    report_.last_problem = std::move(problem);
}

} // namespace rawbpf::inline v0::telemetry
