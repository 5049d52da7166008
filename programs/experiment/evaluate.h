// Values of expectations, measures and messages: worked out in user space, from what maps hold and what has happened. PURE.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "programs/experiment/experiment.h"
#include "programs/experiment/figures.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::experiment {

/// Whole numbers of 64 bits are exact in it.
using Number = long double;

/// What values are worked out from.
struct Facts {
    virtual ~Facts() = default;
    /// A map's rows; nullptr: there is no such map. Good until the next call. Errors: it can't be read.
    virtual Result<const FigureTable *> map(const std::string &name) = 0;
    /// "events.lost", "workload.status", a variable, what was measured before. nullopt: there is no such name.
    virtual std::optional<Number> number(const std::string &name) = 0;
    virtual const btf::Btf *types(const std::string &map) = 0;
};

/// The value; a comparison is 1 or 0. What there isn't (an element, a division by 0) is 0. `parts` gets names and elements with
/// their values, in the order in which they stand there. Errors: a map can't be read.
[[nodiscard]] Result<Number> evaluate(const Expr &expr, Facts &facts,
                                      std::vector<std::pair<std::string, Number>> *parts = nullptr);

/// What there is to be named.
struct KnownNames {
    std::vector<const MapView *> maps;
    std::vector<std::string> names;
};
/// Adds a mistake for each name, key and function of the value that means nothing.
void check_value(const Expr &expr, const KnownNames &known, const std::vector<std::string> &lines, Mistakes &mistakes);

/// A name or an element as it is written: counts["cat"].
[[nodiscard]] std::string text_of(const Expr &expr);
/// Whole numbers without a fraction.
[[nodiscard]] std::string number_text(Number value);

} // namespace rawbpf::inline v0::experiment
