// A scanner for SQL that knows no grammar, only where literals begin and end:
//
//      '..' with '' inside    E'..' with \' too    B'' X'' N'' U&''    $tag$..$tag$    12  1.5e-3  0x1f    -- and /* nested */
//
// It errs to the safe side: what has no end (probes cut long texts) is replaced up to the end, and in an unknown dialect so is
// all that follows an ambiguous quote. https://www.postgresql.org/docs/current/sql-syntax-lexical.html,
// https://opentelemetry.io/docs/specs/semconv/database/database-spans/#sanitization-of-dbquerytext
#include "programs/export/redact.h"

#include <algorithm>

#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::telemetry {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { // bytes above ASCII are letters to all databases
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

// The place behind a comment that starts at `at`, or `at` when none does.
size_t past_comment(std::string_view sql, size_t at) {
    if (sql.substr(at, 2) == "--") return std::min(sql.find('\n', at), sql.size());
    if (sql.substr(at, 2) != "/*") return at;
    int depth = 0;
    while (at < sql.size()) {
        const std::string_view two = sql.substr(at, 2);
        if (two == "/*")
            ++depth, at += 2;
        else if (two == "*/") {
            at += 2;
            if (--depth == 0) return at;
        } else
            ++at;
    }
    return at;
}

struct Quoted {
    size_t end; ///< behind it
    bool ambiguous = false;
};
// `at` is its opening quote.
Quoted past_quoted(std::string_view sql, size_t at, bool escapes) {
    const char quote = sql[at];
    bool ambiguous = false;
    for (size_t i = at + 1; i < sql.size(); ++i) {
        if (sql[i] == '\\') {
            if (escapes)
                ++i;
            else if (i + 1 < sql.size() && sql[i + 1] == quote)
                ambiguous = true;
        } else if (sql[i] == quote) {
            if (i + 1 < sql.size() && sql[i + 1] == quote)
                ++i;
            else
                return {i + 1, ambiguous};
        }
    }
    return {sql.size(), ambiguous};
}

// "$$" or "$tag$" at `at`: its length, or 0.
size_t dollar_tag(std::string_view sql, size_t at) {
    size_t i = at + 1;
    if (i < sql.size() && is_digit(sql[i])) return 0; // a parameter
    while (i < sql.size() && is_word(sql[i])) ++i;
    return i < sql.size() && sql[i] == '$' ? i + 1 - at : 0;
}

size_t past_number(std::string_view sql, size_t at) {
    while (at < sql.size()) {
        const char c = sql[at];
        const bool sign = (c == '+' || c == '-') && upper(sql[at - 1]) == 'E' && at + 1 < sql.size() && is_digit(sql[at + 1]);
        if (!is_word(c) && c != '.' && !sign) break;
        ++at;
    }
    return at;
}

bool is_prefix(std::string_view word) { // of a literal: B'1', x'1f', N'text', E'\n', U&'..', _utf8'text'
    return (word.size() == 1 && std::string_view("BXNERbxner").find(word[0]) != std::string_view::npos) || word[0] == '_';
}

} // namespace

std::string redact_sql(std::string_view sql, bool postgres) {
    std::string out;
    out.reserve(sql.size());
    for (size_t at = 0; at < sql.size();) {
        const char c = sql[at];
        if (const size_t end = past_comment(sql, at); end != at) {
            if (!out.empty() && !is_space(out.back())) out += ' ';
            at = end;
            if (at < sql.size() && is_space(sql[at])) ++at;
            continue;
        }
        if (c == '#' && !postgres && (at == 0 || is_space(sql[at - 1]))) { // MySQL's comment
            at = std::min(sql.find('\n', at), sql.size());
            continue;
        }
        if (c == '\'' || (c == '"' && !postgres)) {
            const Quoted quoted = past_quoted(sql, at, false);
            out += '?';
            if (quoted.ambiguous && !postgres) return out;
            at = quoted.end;
            continue;
        }
        if (c == '"' || c == '`') { // an identifier
            const size_t end = past_quoted(sql, at, false).end;
            out += sql.substr(at, end - at);
            at = end;
            continue;
        }
        if (c == '$')
            if (const size_t tag = dollar_tag(sql, at); tag != 0) {
                const size_t close = sql.find(sql.substr(at, tag), at + tag);
                out += '?';
                at = close == std::string_view::npos ? sql.size() : close + tag;
                continue;
            }
        if (is_digit(c) || (c == '.' && at + 1 < sql.size() && is_digit(sql[at + 1]))) {
            out += '?';
            at = past_number(sql, at + 1);
            continue;
        }
        if (is_word(c) || c == '$' || (!postgres && (c == ':' || c == '@'))) { // a word, or a parameter with its number: $1, :2
            size_t end = at + 1;
            while (end < sql.size() && (is_word(sql[end]) || sql[end] == '$')) ++end;
            const std::string_view word = sql.substr(at, end - at);
            const bool unicode = (word == "U" || word == "u") && sql.substr(end, 2) == "&'";
            if (unicode || (end < sql.size() && sql[end] == '\'' && is_prefix(word))) {
                const Quoted quoted = past_quoted(sql, end + (unicode ? 1 : 0), upper(word[0]) == 'E');
                out += '?';
                if (quoted.ambiguous && !postgres) return out;
                end = quoted.end;
            } else
                out += word;
            at = end;
            continue;
        }
        out += c;
        ++at;
    }
    return out;
}

std::string sql_operation(std::string_view sql) {
    static constexpr std::string_view kWords[] = {
        "ALTER",    "ANALYZE",  "BEGIN",      "CALL",      "CHECKPOINT", "CLOSE",   "CLUSTER", "COMMENT", "COMMIT",
        "COPY",     "CREATE",   "DEALLOCATE", "DECLARE",   "DELETE",     "DISCARD", "DO",      "DROP",    "END",
        "EXECUTE",  "EXPLAIN",  "FETCH",      "GRANT",     "IMPORT",     "INSERT",  "LISTEN",  "LOAD",    "LOCK",
        "MERGE",    "MOVE",     "NOTIFY",     "PREPARE",   "REASSIGN",   "REFRESH", "REINDEX", "RELEASE", "REPLACE",
        "RESET",    "REVOKE",   "ROLLBACK",   "SAVEPOINT", "SELECT",     "SET",     "SHOW",    "START",   "TABLE",
        "TRUNCATE", "UNLISTEN", "UPDATE",     "USE",       "VACUUM",     "VALUES",  "WITH",
    };
    size_t at = 0;
    while (at < sql.size()) {
        if (const size_t end = past_comment(sql, at); end != at)
            at = end;
        else if (is_space(sql[at]) || sql[at] == '(')
            ++at;
        else
            break;
    }
    std::string word;
    while (at < sql.size() && is_word(sql[at]) && word.size() < 16) word += upper(sql[at++]);
    return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords) ? word : std::string();
}

UrlParts split_url(std::string_view url) {
    UrlParts parts;
    url = url.substr(0, url.find('#'));
    if (const size_t question = url.find('?'); question != std::string_view::npos) {
        parts.query = url.substr(question + 1);
        url = url.substr(0, question);
    }
    const size_t colon = url.find("://");
    if (colon == std::string_view::npos) {
        parts.path = url;
        return parts;
    }
    parts.scheme = url.substr(0, colon);
    url.remove_prefix(colon + 3);
    const size_t slash = std::min(url.find('/'), url.size());
    std::string_view authority = url.substr(0, slash);
    parts.path = url.substr(slash);
    if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
        parts.credentials = true;
        authority.remove_prefix(at + 1);
    }
    std::string_view port;
    if (authority.substr(0, 1) == "[") {
        const size_t close = std::min(authority.find(']'), authority.size());
        parts.host = authority.substr(1, close - 1);
        if (authority.substr(std::min(close + 1, authority.size()), 1) == ":") port = authority.substr(close + 2);
    } else {
        const size_t last = authority.rfind(':');
        parts.host = authority.substr(0, last);
        if (last != std::string_view::npos) port = authority.substr(last + 1);
    }
    uint32_t number = 0;
    if (parse_whole(port, number) && number <= 65535) parts.port = number;
    return parts;
}

std::string redact_url(std::string_view url, bool keep_query) {
    const UrlParts parts = split_url(url);
    std::string out;
    if (parts.scheme.data()) {
        out.append(parts.scheme).append("://");
        if (parts.credentials) out += "REDACTED:REDACTED@";
        const bool bare = parts.host.find(':') != std::string_view::npos;
        out.append(bare ? "[" : "").append(parts.host).append(bare ? "]" : "");
        if (parts.port) out.append(":").append(std::to_string(parts.port));
    }
    out += parts.path;
    if (keep_query && parts.query.data()) out.append("?").append(parts.query);
    return out;
}

} // namespace rawbpf::inline v0::telemetry
