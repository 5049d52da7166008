// What receivers of spans answer and what scrapers ask, as HTTP: from whoever is at the other end.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "programs/export/http_answer.h"
#include "programs/export/scrape_request.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

using State = AnswerReader::State;

AnswerReader read_in(std::string_view text, size_t piece) {
    AnswerReader out;
    for (size_t at = 0; at < text.size() && out.state() == State::more; at += piece) out.feed(text.substr(at, piece));
    out.end();
    return out;
}

// However an answer is divided, it says the same; but what comes behind it may not be there yet.
void answers(std::string_view text) {
    AnswerReader whole = read_in(text, text.size() + 1), pieces = read_in(text, 1);
    if (whole.state() == State::more || whole.state() != pieces.state()) std::abort();
    if (whole.state() == State::failed) {
        if (whole.problem().empty()) std::abort();
        return;
    }
    const HttpAnswer &a = whole.answer(), &b = pieces.answer();
    if (a.status != b.status || a.body != b.body || a.content_type != b.content_type || a.retry_after != b.retry_after)
        std::abort();
    if (a.status < 200 || a.status > 999 || a.body.size() > kMostAnswer || (a.keeps_open && !b.keeps_open)) std::abort();
}

void requests(std::string_view text) {
    const OwnNames own{"metrics.example", "10.0.0.5", "db1", false};
    const auto end = end_of_head(text);
    if (end && (*end > text.size() || end_of_head(text.substr(0, *end - 1)))) std::abort();
    const Verdict verdict = judge_request(text, own);
    if (answer_head(verdict.status, text.size()).find("\r\n\r\n") == std::string::npos) std::abort();
    if (verdict.status != 200 && explanation(verdict.status).empty()) std::abort();
    if (verdict.status == 200 && text.find("/metrics") == std::string_view::npos) std::abort();
    // A name of somebody else's stays one, whatever stands around it.
    if (is_own_host(text, own) && text.find("evil") != std::string_view::npos) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    answers(text);
    requests(text);
    return 0;
}
