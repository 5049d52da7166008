// Parses answers by RFC 9112. The sender may be hostile: there is a limit for all lines together and one for the body. A
// longer body is truncated, since the status is known by then.
//
//      HTTP/1.1 200 OK            HTTP/1.1 100 Continue (any number of them, within the bound)
//      Content-Length: 2          | Transfer-Encoding: chunked        | neither
//                                 |                                   |
//      {}                         | 2        (hexadecimal)            | {}   until the connection ends
//                                 | {}
//                                 | 0
//                                 |          (trailers, empty line)
#include "programs/export/http_answer.h"

#include <algorithm>
#include <cstdint>

#include "programs/export/field.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::telemetry {
namespace {

// Whether a list such as "gzip, chunked" has this word.
bool has_word(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        if (same(trim(list.substr(0, comma)), word)) return true;
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return false;
}

} // namespace

AnswerReader::State AnswerReader::feed(std::string_view rest) {
    began_ = began_ || !rest.empty();
    while (!rest.empty() && state_ == State::more) {
        if (part_ == Part::length || part_ == Part::to_the_end || part_ == Part::chunk) {
            body(rest);
            continue;
        }
        const size_t end = rest.find('\n');
        const size_t taken = end == std::string_view::npos ? rest.size() : end + 1;
        if (taken > kMostHead - lines_) {
            fail("with more than 32 KB of headers");
            break;
        }
        lines_ += taken;
        line_ += rest.substr(0, std::min(end, rest.size()));
        rest.remove_prefix(taken);
        if (end == std::string_view::npos) break;
        if (!line_.empty() && line_.back() == '\r') line_.pop_back();
        line(line_);
        line_.clear();
    }
    if (state_ == State::done && !rest.empty()) answer_.keeps_open = false; // what comes unasked is no answer to the next one
    return state_;
}

AnswerReader::State AnswerReader::end() {
    if (state_ != State::more) return state_;
    if (part_ == Part::to_the_end)
        done(false);
    else
        fail("that isn't complete");
    return state_;
}

void AnswerReader::line(std::string_view text) {
    switch (part_) {
    case Part::status: return status_line(text);
    case Part::headers: return text.empty() ? end_of_headers() : header(text);
    case Part::chunk_size:
        if (!parse_whole(trim(text.substr(0, text.find(';'))), left_, 16)) return fail("with a chunk that has no size");
        part_ = left_ == 0 ? Part::trailers : Part::chunk;
        return;
    case Part::chunk_end:
        if (!text.empty()) return fail("with a chunk that has another size");
        part_ = Part::chunk_size;
        return;
    case Part::trailers:
        if (text.empty()) done(true);
        return;
    default: return;
    }
}

// "HTTP/1.1 200 OK"
void AnswerReader::status_line(std::string_view text) {
    uint64_t status = 0;
    if (text.substr(0, 7) != "HTTP/1." || text.size() < 12 || text[8] != ' ' || !parse_whole(text.substr(9, 3), status) ||
        status < 100 || (text.size() > 12 && text[12] != ' '))
        return fail("that isn't HTTP/1");
    answer_ = {};
    answer_.status = static_cast<int>(status);
    has_length_ = chunked_ = encoded_ = false;
    closes_ = text[7] == '0';
    part_ = Part::headers;
}

void AnswerReader::header(std::string_view text) {
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return; // nothing that matters here
    const std::string_view name = text.substr(0, colon), value = trim(text.substr(colon + 1));
    if (same(name, "Content-Type")) answer_.content_type = value;
    if (same(name, "Retry-After")) answer_.retry_after = value;
    if (same(name, "Connection") && has_word(value, "close")) closes_ = true;
    if (same(name, "Transfer-Encoding")) chunked_ = chunked_ || has_word(value, "chunked");
    if (same(name, "Content-Encoding") && !same(value, "identity")) encoded_ = true;
    if (!same(name, "Content-Length")) return;
    uint64_t length = 0;
    if (!parse_whole(value, length) || (has_length_ && length != left_)) return fail("with a wrong length");
    has_length_ = true;
    left_ = length;
}

void AnswerReader::end_of_headers() {
    const int status = answer_.status;
    if (status < 200) {
        part_ = Part::status; // the answer itself follows
        return;
    }
    if (status == 204 || status == 304) return done(true);
    if (chunked_) {
        closes_ = closes_ || has_length_; // two lengths: whoever stands between may have believed the other one
        part_ = Part::chunk_size;
    } else if (has_length_) {
        part_ = Part::length;
        if (left_ == 0) done(true);
    } else {
        part_ = Part::to_the_end;
    }
}

void AnswerReader::body(std::string_view &rest) {
    const size_t wanted = part_ == Part::to_the_end ? rest.size() : static_cast<size_t>(std::min<uint64_t>(left_, rest.size()));
    const size_t room = kMostAnswer - answer_.body.size();
    answer_.body += rest.substr(0, std::min(wanted, room));
    rest.remove_prefix(wanted);
    if (wanted > room) return done(false);
    if (part_ == Part::to_the_end) return;
    left_ -= wanted;
    if (left_ > 0) return;
    if (part_ == Part::length)
        done(true);
    else
        part_ = Part::chunk_end;
}

void AnswerReader::fail(std::string_view problem) {
    problem_ = problem;
    state_ = State::failed;
}

void AnswerReader::done(bool keeps_open) {
    answer_.keeps_open = keeps_open && !closes_;
    if (encoded_) answer_.body.clear();
    state_ = State::done;
}

} // namespace rawbpf::inline v0::telemetry
