// The inputs file. Everything in it is checked here, so that nobody has to later: a text is one line, because the database's
// protocol is lines, and waiting is short, because the service has few threads.
#include "inputs.h"

#include <fstream>

#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
constexpr long kLongestWait = 5000; // ms
constexpr size_t kLongestText = 4000;

bool number_of(const json &from, const char *name, long most, long &out) {
    const auto at = from.find(name);
    if (at == from.end()) return true;
    if (!at->is_number_integer() || at->get<double>() < 0 || at->get<double>() > double(most)) return false;
    out = at->get<long>();
    return true;
}
bool is_line(const json &text) {
    if (!text.is_string()) return false;
    const auto &line = text.get_ref<const std::string &>();
    return !line.empty() && line.size() <= kLongestText && line.find_first_of(std::string("\r\n\0", 3)) == std::string::npos;
}

} // namespace

std::optional<Inputs> read_inputs(const std::string &path, std::string &problem) {
    std::ifstream file(path);
    if (!file) {
        problem = path + ": can't be opened";
        return {};
    }
    const json all = json::parse(file, nullptr, false);
    const auto wrong = [&](const std::string &what) {
        problem = path + ": " + what;
        return std::nullopt;
    };
    if (all.is_discarded()) return wrong("isn't JSON");
    if (!all.is_object() || !all.contains("requests") || !all["requests"].is_array() || all["requests"].empty())
        return wrong("needs \"requests\", a list");
    Inputs out;
    out.database = "database";
    if (all.contains("database")) {
        if (!is_line(all["database"])) return wrong("\"database\" isn't a name");
        out.database = all["database"];
    }
    for (const json &request : all["requests"]) {
        const std::string where = "request " + std::to_string(out.requests.size() + 1);
        if (!request.is_object() || !request.contains("queries") || !request["queries"].is_array())
            return wrong(where + " needs \"queries\", a list");
        Input input;
        for (const json &one : request["queries"]) {
            Query query;
            const std::string which = where + ", query " + std::to_string(input.queries.size() + 1);
            if (!one.is_object() || !one.contains("text") || !is_line(one["text"]))
                return wrong(which + " needs \"text\", one line of at most 4000 bytes");
            query.text = one["text"];
            if (!number_of(one, "rows", 1'000'000'000, query.rows) || !number_of(one, "error", 1'000'000, query.error) ||
                !number_of(one, "milliseconds", kLongestWait, query.milliseconds))
                return wrong(which + ": \"rows\", \"error\" and \"milliseconds\" (5000 at most) are whole numbers");
            input.queries.push_back(std::move(query));
        }
        out.requests.push_back(std::move(input));
    }
    return out;
}
