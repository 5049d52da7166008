// Events and ids for the tests of spans.
#pragma once

#include <vector>

#include "programs/export/pairing.h"

namespace rawbpf::test {

/// 1, 2, 3 ...
class CountingIds final : public telemetry::IdSource {
  public:
    uint64_t next() override { return ++last_; }

  private:
    uint64_t last_ = 0;
};

/// An event of thread 7 in process 5.
inline telemetry::ProbeEvent event(std::string_view provider, std::string_view name, uint64_t time,
                                   std::span<const telemetry::Argument> arguments = {}) {
    telemetry::ProbeEvent out;
    out.provider = provider;
    out.name = name;
    out.pid = 5;
    out.tid = 7;
    out.time = time;
    out.arguments = arguments;
    return out;
}

inline std::string text_of(const telemetry::Span &span, std::string_view key) {
    const telemetry::Value *value = span.find(key);
    const auto *text = value ? std::get_if<std::string>(value) : nullptr;
    return text ? *text : value ? "(not a text)" : "(none)";
}
inline int64_t number_of(const telemetry::Span &span, std::string_view key) {
    const telemetry::Value *value = span.find(key);
    const auto *number = value ? std::get_if<int64_t>(value) : nullptr;
    return number ? *number : -4711;
}

} // namespace rawbpf::test
