// A profile's samples as spans, for collectors of spans: a function that stays on a thread's stack from one sample to the next
// is one call (programs/export/flame_chart.h has the picture).
#include "cli/profile_export.h"

#include <algorithm>

#include "programs/export/flame_chart.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr uint64_t kSilentNs = 2'000'000'000; // samples come a fraction of a second late, and nearly in the order of time

class Exported final : public ProfileExport {
  public:
    Exported(OtlpSender sender, std::unique_ptr<telemetry::IdSource> ids, std::string who, uint64_t frequency)
        : sender_(std::move(sender)), ids_(std::move(ids)), who_(std::move(who)),
          chart_(*ids_, 1'000'000'000 / frequency, [this](const telemetry::Span &span) { sender_.add(span); }) {}

    Result<void> start() override { return sender_.start(); }

    void samples(std::span<const NamedSample> samples) override {
        uint64_t latest = 0;
        for (const NamedSample &sample : samples) {
            size_t n = 0;
            frames_.resize(sample.user.size() + sample.kernel.size());
            for (auto at = sample.user.rbegin(); at != sample.user.rend(); ++at) frames_[n++] = name_of(**at);
            for (auto at = sample.kernel.rbegin(); at != sample.kernel.rend(); ++at) frames_[n++] = name_of(**at);
            chart_.sample({sample.pid, sample.tid, sample.comm, sample.wall_ns, frames_});
            latest = std::max(latest, sample.wall_ns);
        }
        if (latest > kSilentNs) chart_.end_silent(latest - kSilentNs);
    }

    std::string finish() override {
        chart_.end();
        report_ = sender_.finish();
        return format("{}: {} span{}; {}\n", who_, render::grouped(chart_.made()), chart_.made() == 1 ? "" : "s", report_.text());
    }

    [[nodiscard]] int status() const override { return lost_spans(who_, report_.lost(), chart_.made(), report_.last_problem); }

  private:
    static std::string name_of(const Frame &frame) {
        std::string out = render::function_label(frame);
        return out.empty() ? "[unknown]" : out;
    }

    OtlpSender sender_;
    std::unique_ptr<telemetry::IdSource> ids_;
    std::string who_;
    telemetry::FlameChart chart_;
    std::vector<std::string> frames_;
    telemetry::ExportReport report_;
};

} // namespace

Result<std::unique_ptr<ProfileExport>> open_profile_export(const Arguments &a, const OtlpIds &ids, std::string who,
                                                           uint64_t frequency) {
    OtlpSender sender = TRY(OtlpSender::prepare(a, ids, who));
    std::unique_ptr<telemetry::IdSource> random = TRY(telemetry::random_ids());
    return std::make_unique<Exported>(std::move(sender), std::move(random), std::move(who), frequency);
}

} // namespace rawbpf::inline v0::cli
