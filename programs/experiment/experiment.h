// An experiment as a value: what a text in the laboratory's language says, before anything of it is made. PURE.
//
//      text --parse.h--> Experiment --plan.h--> objects to load, views of their maps --run.h--> steps, numbers, expectations
//
// cli/README.md and `man rawbpf-experiment` describe the language.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "asm/assemble.h"
#include "programs/trace/expression.h"
#include "runtime/base/error.h"

namespace rawbpf::inline v0::experiment {

/// Where something stands in the text; both count from 1, 0: nowhere.
struct TextPlace {
    uint32_t line = 0, column = 0;
};

/// One value, in a probe's block or in an expectation.
struct Expr {
    enum class Kind : uint8_t { number, text, name, map, call, unary, binary };
    Kind kind = Kind::number;
    trace::Operator op = trace::Operator::add; ///< of unary and binary ones
    TextPlace at;
    uint64_t number = 0;            ///< durations in nanoseconds
    std::string text;               ///< a text without its quotes; the name of a name, a map, a function
    std::vector<trace::Step> steps; ///< `->member`, `[n]` behind a name, a call or an element
    std::vector<Expr> args;         ///< of a map its key, of a call its arguments; else the operands
    bool keyed = false;             ///< of a map: it has a key
};

/// One statement of a probe's block.
struct Statement {
    enum class Kind : uint8_t { assign, remove, local, branch, emit, leave };
    Kind kind = Kind::leave;
    TextPlace at;
    Expr target;           ///< assign, remove: the map's element
    std::string op;        ///< assign: "=", "+=", "-=", "|="
    std::string name;      ///< local: of the variable; emit: of the event
    bool declares = false; ///< local: by `let`
    Expr value;            ///< assign, local; branch: the condition
    struct Field {
        std::string name;
        Expr value;
    };
    std::vector<Field> fields; ///< emit
    std::vector<Statement> then, otherwise;
};

/// `on PROBE | PROBE, PROBE if CONDITION { ... }`
struct Probe {
    struct Name {
        std::string text; ///< "tracepoint:sched:sched_switch"
        TextPlace at;
    };
    TextPlace at;
    std::vector<std::vector<Name>> names; ///< each is a list of alternatives: the first that this kernel has
    std::optional<Expr> condition;
    std::vector<Statement> body;
};

/// A piece of a line that is printed: words, and behind them a value.
struct Piece {
    std::string words;
    bool has_value = false;
    std::string field; ///< of an event
    Expr value;        ///< of a message
    TextPlace at;
    uint32_t width = 0;
    bool right = false; ///< numbers stand at the right of their column
};

/// `format EVENT "..."`, `format RING as STRUCT "..."`
struct Format {
    TextPlace at;
    std::string event, ring; ///< ring: empty for events that probes emit
    std::vector<Piece> pieces;
};

/// `object FILE`, `c FILE`, `c { ... }`
struct Source {
    TextPlace at;
    bool is_c = false;
    std::string path; ///< empty: `text`
    std::string text; ///< as many lines in front as in the experiment, so that the compiler names the right one
};

/// `attach PROGRAM PROBE`: where a program goes whose section doesn't say it, or not there.
struct Attach {
    TextPlace at;
    std::string program;
    std::string way;    ///< "section", "interface", "cgroup", "netns", "every", "nowhere"
    std::string target; ///< a section, an interface, a path, a frequency
    bool egress = false;
};

enum class Style : uint8_t { table, hist, log2, json };

/// What is done, line by line.
struct Step {
    enum class Kind : uint8_t {
        workload,
        wait,
        events,
        print,
        say,
        clear,
        set,
        trigger,
        packet,
        run,
        expect,
        rejected,
        measure,
        every,
    };
    Kind kind = Kind::wait;
    TextPlace at;
    std::string source;               ///< the line, as it stands there
    std::vector<std::string> command; ///< workload; trigger: what follows FILE:FUNCTION
    std::string name;                 ///< of a map, a variable, a number, a program; trigger: the file
    std::string text;                 ///< rejected, packet, run: what; set: the value; trigger: the function
    double seconds = 0;               ///< wait, events, every; 0: not said
    uint64_t count = 0;               ///< events until, top, times of packet and run, every's rounds; 0: not said
    bool for_workload = false;        ///< wait workload
    Style style = Style::table;
    std::optional<Expr> key;   ///< set MAP[KEY]
    Expr value;                ///< expect, measure
    std::vector<Piece> pieces; ///< say
    std::vector<Step> body;    ///< every
};

/// `param NAME = VALUE # help`
struct Param {
    TextPlace at;
    std::string name, value, help;
};

struct Experiment {
    std::string name;               ///< of the file, for messages
    std::string title;              ///< its first comment
    std::vector<std::string> lines; ///< with the parameters' values in place
    std::vector<Param> params;      ///< with the values that count
    std::string assembly;           ///< text for the assembler, each line where it stands in the experiment; empty: none
    std::string license = "Dual MIT/GPL";
    std::vector<Source> sources;
    std::vector<Attach> attachments;
    std::vector<Probe> probes;
    std::vector<Format> formats;
    std::vector<Step> steps;
    /// Whether it says that the kernel refuses it.
    [[nodiscard]] const Step *rejection() const {
        for (const Step &step : steps)
            if (step.kind == Step::Kind::rejected) return &step;
        return nullptr;
    }
};

/// Mistakes in a text, each with its place; at most 20 are kept.
class Mistakes {
  public:
    Mistakes() = default;
    explicit Mistakes(std::string file) : file_(std::move(file)) {}
    void add(const std::vector<std::string> &lines, TextPlace at, std::string message, std::string hint = {});
    void add(Complaint complaint);
    [[nodiscard]] bool any() const { return !complaints_.empty(); }
    [[nodiscard]] size_t count() const { return complaints_.size(); }
    [[nodiscard]] const std::vector<Complaint> &all() const { return complaints_; }
    /// As the assembler prints them: place, message, the line, a caret, a hint.
    [[nodiscard]] std::string report() const;
    /// The last one is none of the text's: this kernel or these privileges lack what it asks for.
    void last_is(Errc kind) { kind_ = kind; }
    /// Of the only one what last_is() said, bad_input otherwise.
    [[nodiscard]] Errc kind() const { return complaints_.size() == 1 ? kind_ : Errc::bad_input; }

  private:
    std::string file_;
    std::vector<Complaint> complaints_;
    Errc kind_ = Errc::bad_input;
};

} // namespace rawbpf::inline v0::experiment
