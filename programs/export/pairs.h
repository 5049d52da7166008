// Which probes begin and end a span, and what the span says. A table for those that are known, a rule for the others' names.
// PURE.
//
//      postgresql:query__start   begins   "postgresql:query"   name "SELECT", db.query.text ...
//      postgresql:query__done    ends     "postgresql:query"
//      zlib:inflate__entry       begins   "zlib:inflate"       by the rule for X__entry, X__return
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "programs/export/span.h"

namespace rawbpf::inline v0::telemetry {

/// One argument of a probe, decoded. std::monostate: it couldn't be read.
struct Argument {
    std::string_view name; ///< as known_probes has it ("query", "status"); empty: nobody knows
    std::variant<std::monostate, int64_t, double, bool, std::string_view> value;
};

enum class Phase : uint8_t {
    by_name, ///< what the probe's name says: USDT probes
    start,   ///< begins a span named after the probe: a function's entry
    end,     ///< ends it: the function's return
    whole,   ///< both in one event, which took `duration`: where the kernel has paired them
    point,   ///< a span without a length: a tracepoint
};

/// A probe that fired. The texts it refers to have to last for the call only.
struct ProbeEvent {
    std::string_view provider; ///< "postgresql"; of a function: its module, or empty
    std::string_view name;     ///< "query__start"; of a function: its name
    Phase phase = Phase::by_name;
    uint32_t pid = 0, tid = 0;
    uint64_t goroutine = 0; ///< of Go (r14, x28): pairs are looked for in it, not in the thread. 0: none
    uint64_t time = 0;      ///< ns of Unix time; of Phase::whole its end
    uint64_t duration = 0;  ///< ns, of Phase::whole
    std::string_view comm;
    std::span<const Argument> arguments;
    std::variant<std::monostate, int64_t, double, bool, std::string_view> result = {}; ///< what a function returned
    std::string_view error = {};                                                       ///< of a function that failed: "ENOENT"

    /// nullptr when there is none of that name.
    [[nodiscard]] const Argument *find(std::string_view argument) const;
    /// The number of that name; `otherwise` when it isn't there, isn't one, or couldn't be read.
    [[nodiscard]] int64_t number(std::string_view argument, int64_t otherwise) const;
    /// The text of that name, or empty.
    [[nodiscard]] std::string_view text(std::string_view argument) const;
};

struct Conventions {
    bool keep_literals = false; ///< SQL's literals and URLs' queries are sent as they are
    size_t longest_text = 4096; ///< bytes of an attribute; longer ones are cut
};

struct Pair; // a row of the table

enum class Role : uint8_t { none, start, end, failed_end, point, whole };

/// What an event is to spans.
struct Meaning {
    Role role = Role::none;
    std::string_view family; ///< of the probe's name, what start and end have in common: "query"
    const Pair *pair = nullptr;
};

/// Role::none: a probe that neither begins nor ends anything. `family` points into the event's name or into the table.
[[nodiscard]] Meaning meaning_of(const ProbeEvent &event);
/// Sets name, kind and attributes from the event that begins the span.
void describe_start(Span &span, const Meaning &meaning, const ProbeEvent &event, const Conventions &conventions);
/// Adds what is known at its end: status codes, what was returned, errors.
void describe_end(Span &span, const Meaning &meaning, const ProbeEvent &event, const Conventions &conventions);

} // namespace rawbpf::inline v0::telemetry
