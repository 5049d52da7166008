// What the parts of the compiler share. Private to the room.
//
//      compile.cpp             probes to places, a program each; what is put together at the end
//      compile_statements.cpp  a program's statements
//      compile_maps.cpp        elements of maps: keys, upserts, aggregates
//      compile_types.cpp       what a value is, before it is worked out
//      compile_values.cpp      numbers
//      compile_texts.cpp       texts, and how they are compared
//      compile_workload.cpp    whether it is the experiment's own commands that run
//
// Values are worked out in r0; what has to wait lies on the stack. r6 is the context, r7 the record that is being filled. Every
// function that returns bool returns false after it reported a mistake.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "asm/builder.h"
#include "programs/experiment/compile.h"
#include "programs/trace/value.h"

namespace rawbpf::inline v0::experiment {

/// What is known of a value before it is worked out.
struct Typed {
    Show show = Show::number;
    bool text = false; ///< bytes, not a number: a text, an IPv6 address
    uint32_t size = 8; ///< bytes that it takes in a key, a value or a record
    bool is_signed = false;
    btf::TypeId pointee = 0; ///< a pointer to that kernel type, or 0
    friend bool operator==(const Typed &, const Typed &) = default;
};

/// Names that every probe has, if its own arguments don't have them.
enum class Builtin : uint8_t { pid, tid, uid, gid, cpu, nsecs, cgroup, ppid, task, random, workload };
struct BuiltinRow {
    std::string_view name;
    Builtin what;
};
[[nodiscard]] const BuiltinRow *find_builtin(std::string_view name);
[[nodiscard]] bool named(const trace::ProbeSite &site, std::string_view name); ///< one of its own arguments

/// A map that probes use, and what they keep in it.
struct UsedMap {
    std::optional<MapRef> ref;
    std::string name;
    bool declared = false; ///< by a line `map`; its sizes are what they are
    bool keyed = false, known = false;
    bool written = false; ///< by a program
    std::vector<Typed> key;
    uint32_t key_size = 0, value_size = 0;
    Typed value;
    MapView view;
    TextPlace first;
};

struct UsedEvent {
    EventView view;
    std::vector<Typed> fields;
    TextPlace first;
};

/// All programs of an experiment together.
class Compiler {
  public:
    Compiler(const Experiment &experiment, Unit assembly, const Surroundings &surroundings, Mistakes &mistakes);
    [[nodiscard]] Compiled run();

    bool fail(TextPlace at, std::string message, std::string hint = {}) {
        mistakes_.add(experiment_.lines, at, std::move(message), std::move(hint));
        return false;
    }
    [[nodiscard]] const Surroundings &surroundings() const { return surroundings_; }
    [[nodiscard]] const std::string &source_line(TextPlace at) const;
    [[nodiscard]] Builder &builder() { return builder_; }
    [[nodiscard]] UsedMap &map_named(const std::string &name);
    /// The map, made where it is used first.
    [[nodiscard]] bool make_map(UsedMap &map, TextPlace at);
    [[nodiscard]] MapRef lost();
    [[nodiscard]] MapRef ring();
    [[nodiscard]] UsedEvent *event(const Statement &statement, const std::vector<Typed> &fields);

    // compile_workload.cpp
    bool follow_workload(TextPlace at); ///< from now on there is something that is_workload() can ask
    void find_root(Code &f, Slot process, Label none);
    void is_workload(Code &f, Slot thread, Slot process, Label out);
    void add_followers();

  private:
    bool probe(const Probe &probe);
    bool place(const Probe &probe, const Probe::Name &name, const trace::ProbeSite &site, std::string section, Placed placed);
    bool clock(const Probe &probe, const Probe::Name &name);
    [[nodiscard]] bool choose(const std::vector<Probe::Name> &alternatives, const Probe &probe);
    [[nodiscard]] std::string program_name(std::string_view site);
    [[nodiscard]] MapRef declared(const MapDef &def);

    const Experiment &experiment_;
    Unit assembly_;
    const Surroundings &surroundings_;
    Mistakes &mistakes_;
    Builder builder_;
    Compiled out_;
    std::map<std::string, UsedMap> maps_;
    std::map<std::string, UsedEvent> events_;
    std::optional<MapRef> lost_, ring_;
    struct Workload {
        MapRef roots, threads;
        Forks forks;
    };
    std::optional<Workload> workload_;
    std::vector<StructDef> types_;
    std::map<std::string, int> names_;
    std::map<std::string, TextPlace> program_places_; ///< of the built programs, for what the builder complains about
};

/// One program.
class ProbeCode {
  public:
    ProbeCode(Compiler &all, Code &code, const trace::ProbeSite &site, std::string_view label)
        : all_(all), f_(code), site_(site), label_(label) {}
    [[nodiscard]] bool run(const Probe &probe);

  private:
    /// Bytes of the stack that are in use as long as this lives.
    class Space {
      public:
        Space(ProbeCode &code, uint32_t size);
        ~Space();
        Space(const Space &) = delete;
        Space &operator=(const Space &) = delete;
        [[nodiscard]] Slot slot() const;

      private:
        ProbeCode &code_;
        size_t index_;
    };
    struct Local {
        Slot slot;
        Typed type;
    };

    bool fail(TextPlace at, std::string message, std::string hint = {}) {
        return all_.fail(at, std::move(message), std::move(hint));
    }

    // compile_statements.cpp
    void find_locals(const std::vector<Statement> &body, std::vector<std::string> &out) const;
    bool statements(const std::vector<Statement> &body);
    bool statement(const Statement &statement);
    bool branch(const Statement &statement);
    bool emit(const Statement &statement);
    bool store_field(const Expr &value, const Typed &type, uint32_t offset);

    // compile_maps.cpp
    bool assign(const Statement &statement);
    bool assign_aggregate(const Statement &statement, const Expr &call);
    bool remove(const Statement &statement);
    bool use_map(const Expr &element, UsedMap *&map);
    bool make_key(const Expr &element, UsedMap &map, Slot key);
    bool upsert(UsedMap &map, Slot key, TextPlace at); ///< r0: the value's address; jumps to `full_` where there is no room
    void count_full();
    bool load_element(const Expr &element); ///< r0 = the number, 0 where there is none
    bool bucket_log2(Slot value, bool is_signed);
    bool bucket_linear(Slot value, int64_t from, int64_t to, int64_t step);
    bool put(const Typed &type, const Expr &value, Slot into, uint32_t offset);

    // compile_types.cpp
    [[nodiscard]] bool infer(const Expr &e, Typed &out, int depth = 0);
    [[nodiscard]] std::optional<int64_t> constant(const Expr &e, int depth = 0) const;
    bool resolve(const Expr &e, trace::Value &out, const trace::ProbeSite &site, std::string_view name, uint32_t column);
    bool resolve_name(const Expr &e, trace::Value &out);
    bool through(const Expr &e, btf::TypeId type, trace::Value &out); ///< members behind a pointer that isn't an argument
    [[nodiscard]] bool cast_type(const Expr &e, btf::TypeId &out);
    [[nodiscard]] static bool is_comparison(trace::Operator op);
    [[nodiscard]] static bool is_truth(const Expr &e);
    [[nodiscard]] static bool is_aggregate(const Expr &value);

    // compile_values.cpp
    bool value(const Expr &e);                          ///< r0 = the number
    bool two_values(const Expr &e);                     ///< r0 and r1 = the numbers of its two sides
    bool condition(const Expr &e, Label to, bool when); ///< jumps where the truth of it is `when`
    bool compare(const Expr &e, Label to, bool when);
    bool operate(const Expr &e);
    bool call(const Expr &e);
    bool argument(const trace::Value &value, TextPlace at); ///< r0 = what the register or the record has
    bool follow(const trace::Value &value);                 ///< r0 = what its pointers lead to
    void extend(uint32_t size, bool is_signed);
    void one_unless(Label no);      ///< r0 = 1, or 0 for what jumps to `no`, which is bound here
    bool in_workload(TextPlace at); ///< r0 = 0 or 1 (compile_workload.cpp)

    // compile_texts.cpp
    bool text_into(const Expr &e, const Typed &type, Mem to);
    bool compare_texts(const Expr &e, Label to, bool when);
    bool words_into(const Expr &e, uint32_t size, Mem to);
    bool read_bytes(const Expr &e, uint32_t size, Mem to); ///< of an address, or of an array in a record
    bool text_type(const Expr &e, Typed &out);
    void write_literal(const std::string &text, uint32_t size, Mem to);

    Compiler &all_;
    Code &f_;
    const trace::ProbeSite &site_;
    std::string label_;
    std::map<std::string, Local> locals_, waiting_; ///< those that the text has come to, and all of them
    struct Piece {
        Slot slot;
        bool used;
    };
    std::vector<Piece> spaces_;
    std::optional<Label> done_;
    friend class Compiler;
};

} // namespace rawbpf::inline v0::experiment
