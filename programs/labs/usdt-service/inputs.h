// What the service is asked to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

struct Query {
    std::string text;
    long rows = 1, milliseconds = 0;
    long error = 0; ///< what the database answers instead of rows; 0: nothing went wrong
};
/// What one request of /load does.
struct Input {
    std::vector<Query> queries;
};
struct Inputs {
    std::string database; ///< the name that it is greeted by
    std::vector<Input> requests;
};

/// Reads the file, {"database", "requests": [{"queries": [{"text", "rows", "milliseconds", "error"}]}]}. On a mistake nothing,
/// and `problem` says which.
std::optional<Inputs> read_inputs(const std::string &path, std::string &problem);
