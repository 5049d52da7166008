// `rawbpf profile --otlp`: spans to an OpenTelemetry receiver, while the profile runs.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cli/otlp.h"
#include "programs/render/frame.h"

namespace rawbpf::inline v0::cli {

class ProfileExport {
  public:
    virtual ~ProfileExport() = default;
    /// To be called when nothing is forked any more.
    [[nodiscard]] virtual Result<void> start() = 0;
    virtual void samples(std::span<const NamedSample> samples) = 0;
    /// No more will come: sends what waits. The line of the ledger for people.
    virtual std::string finish() = 0;
    /// After finish(): 0, or when spans were lost 1, after saying so.
    [[nodiscard]] virtual int status() const = 0;
};

/// `frequency`: Hz. Errors: OtlpSender::prepare()'s.
[[nodiscard]] Result<std::unique_ptr<ProfileExport>> open_profile_export(const Arguments &a, const OtlpIds &ids, std::string who,
                                                                         uint64_t frequency);

} // namespace rawbpf::inline v0::cli
