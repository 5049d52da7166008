// Reading what a receiver answers in JSON: the one place where JSON is read, by nlohmann-json. A number may be a string there:
// rejectedSpans is an int64. What isn't as it should be is an error, never a guess.
//
//      {"partialSuccess": {"rejectedSpans": "3", "errorMessage": "..."}}
#ifndef JSON_NOEXCEPTION
#define JSON_NOEXCEPTION 1
#endif

#include <nlohmann/json.hpp>

#include "programs/export/otlp.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::telemetry {

Result<std::optional<PartialSuccess>> read_response_json(std::string_view body) {
    if (body.empty()) return std::optional<PartialSuccess>(); // not JSON, but what is meant is clear
    constexpr bool kThrow = false;
    const nlohmann::json whole = nlohmann::json::parse(body, nullptr, kThrow);
    if (whole.is_discarded() || !whole.is_object()) return fail(Errc::bad_input, "the receiver's answer is no JSON object");
    const auto partial = whole.find("partialSuccess");
    if (partial == whole.end() || partial->is_null()) return std::optional<PartialSuccess>();
    if (!partial->is_object()) return fail(Errc::bad_input, "the receiver's answer: partialSuccess is no object");
    PartialSuccess out;
    if (const auto rejected = partial->find("rejectedSpans"); rejected != partial->end() && !rejected->is_null()) {
        int64_t number = 0;
        if (rejected->is_number_integer()) {
            number = rejected->get<int64_t>();
        } else {
            const auto *text = rejected->get_ptr<const std::string *>();
            if (!text || !parse_whole(*text, number))
                return fail(Errc::bad_input, "the receiver's answer: rejectedSpans is no number");
        }
        out.rejected = number < 0 ? 0 : static_cast<uint64_t>(number);
    }
    if (const auto message = partial->find("errorMessage"); message != partial->end() && !message->is_null()) {
        const auto *text = message->get_ptr<const std::string *>();
        if (!text) return fail(Errc::bad_input, "the receiver's answer: errorMessage is no text");
        out.message = *text;
    }
    if (out.rejected == 0 && out.message.empty()) return std::optional<PartialSuccess>();
    return std::optional(std::move(out));
}

} // namespace rawbpf::inline v0::telemetry
