// What leaves the machine in a span's texts: SQL without its literals, URLs without credentials. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::telemetry {

/// SQL with each literal (texts, numbers, bit strings) replaced by `?`, and without comments: they hold values as well.
/// Parameters
/// ($1, ?, :name) and identifiers stay.
///
/// `postgres`: a double quote makes an identifier, and a backslash means something only in E''. Otherwise nobody knows the
/// dialect: "" is a literal too, and from a literal with a backslash before a quote on, everything is replaced, since where that
/// literal ends depends on the dialect.
[[nodiscard]] std::string redact_sql(std::string_view sql, bool postgres);

/// The statement's first word in upper case ("SELECT") when it is one that SQL knows, or else empty: of a few values only, so
/// that it can be a span's name.
[[nodiscard]] std::string sql_operation(std::string_view sql);

/// A URL's parts, as far as they are there.
struct UrlParts {
    std::string_view scheme, host, path, query; ///< without "://", "?"; host without brackets
    uint32_t port = 0;                          ///< 0: none given
    bool credentials = false;                   ///< it had "user:password@"
};
[[nodiscard]] UrlParts split_url(std::string_view url);

/// The URL without credentials (REDACTED:REDACTED@ stands for them, as the semantic conventions have it); without its query and
/// fragment, too, unless `keep_query`.
[[nodiscard]] std::string redact_url(std::string_view url, bool keep_query);

} // namespace rawbpf::inline v0::telemetry
