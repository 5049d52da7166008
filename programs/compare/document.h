// What a file of rawbpf's JSON lines says in figures: of `run --json`, with --repeat or without, `bench --json`, `load --json`.
// PURE.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::compare {

/// One figure of one thing that was measured.
struct Figure {
    std::string kernel;  ///< of the header in front of it: "6.12.9-amd64"
    std::string file;    ///< an object's or a variant's, without its folder where that leaves it distinct; of experiments empty
    std::string subject; ///< a program; the values of an experiment's parameters: "block=4k"
    std::string name;    ///< "reads", "verified_insns", "kernel ns"
    bool exact = false;  ///< counted, not timed: measured again, it is the same
    std::vector<double> values{}; ///< in the order in which they came
    std::string word;             ///< in place of values: "loaded", a hash
};

/// What a header says of the machine: "kernel" -> "6.12.9", "governor" -> "performance", "mitigations.mds" -> "Mitigation: ...".
struct Machine {
    std::vector<std::pair<std::string, std::string>> facts;
    double load = -1; ///< of the last minute; below 0: not known
    [[nodiscard]] std::string_view fact(std::string_view name) const;
};

struct Document {
    std::string name;              ///< of its file
    std::vector<Machine> machines; ///< a kernel once, in the order of the headers
    std::vector<Figure> figures;
};

/// Its figures aren't all of the same kernel (&Figure::kernel), file or subject. PURE.
[[nodiscard]] bool several(const Document &document, std::string Figure::*what);

/// Lines of types that hold no figures are passed over. What is said twice of the same (a file of several runs) is one figure of
/// several values. Errors: bad_input, with the line, for what isn't JSON, for schemas but 1, and for a file without any figure.
[[nodiscard]] Result<Document> read_document(std::string_view text, std::string_view name);

} // namespace rawbpf::inline v0::compare
