// What receivers answer, what environment variables and addresses hold, and the texts of SQL and URLs that are redacted: all of
// it is somebody else's.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "programs/export/exporter.h"
#include "programs/export/redact.h"
#include "programs/export/settings.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

// No literal is left but in names in quotes, which stay.
void redact(std::string_view text, bool postgres) {
    const std::string once = redact_sql(text, postgres);
    if (text.find_first_of("\"`") == std::string_view::npos) {
        if (once.find('\'') != std::string::npos) std::abort();
        if (redact_sql(once, postgres) != once) std::abort();
    }
    if (sql_operation(text).size() > 32) std::abort();
}

void addresses(std::string_view text) {
    if (const auto endpoint = parse_endpoint(text)) {
        if (endpoint->host.empty() || endpoint->port == 0) std::abort();
        const auto again = parse_endpoint(endpoint->url());
        if (!again || again->url() != endpoint->url()) std::abort();
    }
    (void)traces_endpoint(text);
    if (const auto at = parse_listen(text); at && at->host.empty()) std::abort();
    const UrlParts parts = split_url(text);
    if (parts.path.size() + parts.query.size() + parts.host.size() + parts.scheme.size() > text.size()) std::abort();
    (void)redact_url(text, true);
    (void)redact_url(text, false);
}

void variables(std::string_view text) {
    const Environment all = [&](std::string_view) { return std::optional<std::string>(text); };
    if (const auto settings = settings_from(all))
        for (const Header &header : settings->headers)
            if (header.first.find_first_of("\r\n :") != std::string::npos ||
                header.second.find_first_of("\r\n") != std::string::npos)
                std::abort();
    const Environment lists = [&](std::string_view name) {
        return name.ends_with("HEADERS") || name.ends_with("ATTRIBUTES") ? std::optional<std::string>(text) : std::nullopt;
    };
    if (!settings_from(lists)) std::abort(); // mistakes in lists are warnings
    (void)parse_pairs(text);
    if (const auto decoded = percent_decode(text); decoded && decoded->size() > text.size()) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    (void)read_response_protobuf(text);
    (void)read_response_json(text);
    if (const auto wait = retry_after_seconds(text, 1'700'000'000); wait && *wait > 86400) std::abort();
    redact(text, true);
    redact(text, false);
    addresses(text);
    variables(text);
    return 0;
}
