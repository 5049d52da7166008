//      {"type":"header","kernel":"6.12.9","environment":{...}}               the machine, of all lines up to the next header
//      {"type":"figure","variant":"n=1","figure":"ns","values":[3,4,3]}      run --repeat, --set a,b
//      {"type":"measure","name":"ns","value":3}                              run
//      {"type":"variant","file":"a.asm","program":"main","insns":7, ...}     bench
//      {"type":"program","object":"a.bpf.o","program":"parse", ...}          load
#include "programs/compare/document.h"

#include <algorithm>
#include <map>

#include "programs/compare/json_tree.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::compare {
namespace {

constexpr std::string_view kExact[] = {"insns",        "bytes_xlated", "bytes_jited",        "verified_insns",
                                       "total_states", "peak_states",  "max_states_per_insn"};

std::string value_text(const Json &value) {
    switch (value.kind) {
    case Json::Kind::text: return value.text;
    case Json::Kind::number: return format("{}", value.number);
    case Json::Kind::truth: return value.truth ? "yes" : "no";
    default: return {};
    }
}

/// "16+8": what all functions take together; false: it isn't said.
bool stack_bytes(std::string_view text, double &out) {
    out = 0;
    double one = 0;
    for (const char c : text) {
        if (c == '+')
            out += one, one = 0;
        else if (c >= '0' && c <= '9')
            one = one * 10 + (c - '0');
        else
            return false;
    }
    out += one;
    return !text.empty();
}

class Reading {
  public:
    explicit Reading(std::string_view name) { out_.name = std::string(name); }

    Result<Document> read(std::string_view text) {
        size_t number = 0;
        while (!text.empty()) {
            const size_t end = std::min(text.find('\n'), text.size());
            const std::string_view one = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            ++number;
            if (one.find_first_not_of(" \t\r") == one.npos) continue;
            Result<Json> parsed = parse_json(one);
            if (!parsed)
                return Unexpected(
                    make_error(Errc::bad_input, format("{}:{}: no JSON: {}", out_.name, number, parsed.error().message()),
                               "compared are lines that `rawbpf run --json`, `bench --json` and `load --json` wrote"));
            TRY_IN(line(*parsed), "{}:{}", out_.name, number);
        }
        if (out_.figures.empty())
            return Unexpected(
                make_error(Errc::bad_input, format("{} has no figures", out_.name),
                           "an experiment names them in lines `measure NAME = VALUE`; bench --json and load --json have "
                           "them always"));
        shorten();
        return std::move(out_);
    }

  private:
    Result<void> line(const Json &line) {
        if (!line.is(Json::Kind::object)) return fail(Errc::bad_input, "no object");
        const std::string_view type = line.text_of("type");
        if (type == "header") return header(line);
        if (type == "figure") series(line);
        if (type == "measure") numbers("", line.text_of("name"), "value", line, false);
        if (type == "variant") benched(line);
        if (type == "program") loaded(line);
        return {};
    }

    Result<void> header(const Json &line) {
        const Json *schema = line.member("schema");
        if (!schema || schema->number != 1)
            return fail(Errc::bad_input, "its schema is {}, and this rawbpf reads schema 1",
                        schema ? value_text(*schema) : "missing");
        Machine machine;
        for (const char *name : {"kernel", "arch", "cpus", "version"}) add(machine, name, line.member(name));
        if (const Json *environment = line.member("environment")) {
            for (size_t i = 0; i < environment->names.size(); ++i) {
                const std::string &name = environment->names[i];
                const Json &value = environment->items[i];
                if (name == "load" && !value.items.empty()) machine.load = value.items[0].number;
                if (name == "load" || name == "unread") continue;
                for (size_t j = 0; j < value.names.size(); ++j)
                    add(machine, format("{}.{}", name, value.names[j]), &value.items[j]);
                add(machine, name, &value);
            }
        }
        kernel_ = std::string(line.text_of("kernel"));
        const auto same = [&](const Machine &one) { return one.fact("kernel") == kernel_; };
        if (std::none_of(out_.machines.begin(), out_.machines.end(), same)) out_.machines.push_back(std::move(machine));
        return {};
    }
    static void add(Machine &machine, std::string name, const Json *value) {
        if (!value) return;
        if (std::string text = value_text(*value); !text.empty()) machine.facts.emplace_back(std::move(name), std::move(text));
    }

    Figure &figure(std::string_view file, std::string_view subject, std::string_view name, bool exact) {
        const auto [found, is_new] =
            known_.try_emplace(format("{}\n{}\n{}\n{}", kernel_, file, subject, name), out_.figures.size());
        if (!is_new) return out_.figures[found->second];
        Figure &one = out_.figures.emplace_back();
        one.kernel = kernel_, one.file = std::string(file), one.subject = std::string(subject), one.name = std::string(name);
        one.exact = exact;
        return one;
    }
    void add_number(std::string_view subject, std::string_view name, const Json *value, bool exact) {
        if (value && value->is(Json::Kind::number)) figure(file_, subject, name, exact).values.push_back(value->number);
    }
    void numbers(std::string_view subject, std::string_view name, std::string_view member, const Json &line, bool exact) {
        file_.clear();
        add_number(subject, name, line.member(member), exact);
    }

    void series(const Json &line) {
        file_.clear();
        if (const Json *values = line.member("values"))
            for (const Json &value : values->items) add_number(line.text_of("variant"), line.text_of("figure"), &value, false);
    }

    void verifier(const Json &line, std::string_view program) {
        for (const std::string_view name : kExact) add_number(program, name, line.member(name), true);
        double bytes = 0;
        if (stack_bytes(line.text_of("stack_depth"), bytes)) figure(file_, program, "stack_depth", true).values.push_back(bytes);
        add_number(program, "verification_time_us", line.member("verification_time_us"), false);
    }
    void loaded(const Json &line) {
        file_ = std::string(line.text_of("object"));
        const std::string_view program = line.text_of("program");
        const Json *loaded = line.member("loaded");
        figure(file_, program, "verdict", true).word = loaded && loaded->truth ? "loaded" : "refused";
        if (const std::string_view hash = line.text_of("insn_hash"); !hash.empty())
            figure(file_, program, "insn_hash", true).word = std::string(hash);
        verifier(line, program);
    }

    // A run's time without what the empty program took in the same round, where that is known.
    void rounds(std::string_view program, const std::string &name, const Json &engine) {
        const Json *rounds = engine.member("rounds_ns"), *empty = engine.member("empty_rounds_ns");
        if (!rounds) return;
        const bool subtracts = empty && empty->items.size() == rounds->items.size();
        for (size_t i = 0; i < rounds->items.size(); ++i) {
            Json own = rounds->items[i];
            if (subtracts) own.number -= empty->items[i].number;
            add_number(program, name, &own, false);
        }
    }
    void benched(const Json &line) {
        file_ = std::string(line.text_of("file"));
        const std::string_view program = line.text_of("program");
        for (const std::string engine : {"kernel", "emulator"}) {
            const Json *figures = line.member(engine);
            if (!figures || !figures->is(Json::Kind::object)) continue;
            rounds(program, engine + " ns", *figures);
            if (const std::string_view r0 = figures->text_of("r0"); !r0.empty())
                figure(file_, program, engine + " r0", true).word = std::string(r0);
            add_number(program, "executed", figures->member("instructions"), true);
        }
        verifier(line, program);
    }

    // Paths say where somebody keeps the files; compared are files of the same name in two folders.
    void shorten() {
        const auto name_of = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
        std::map<std::string_view, std::string_view> paths;
        for (const Figure &one : out_.figures)
            if (paths.try_emplace(name_of(one.file), one.file).first->second != one.file) return;
        for (Figure &one : out_.figures) one.file = std::string(name_of(one.file));
    }

    Document out_;
    std::map<std::string, size_t> known_; ///< which figure is which
    std::string kernel_, file_;
};

} // namespace

std::string_view Machine::fact(std::string_view name) const {
    for (const auto &[known, text] : facts)
        if (known == name) return text;
    return {};
}

bool several(const Document &document, std::string Figure::*what) {
    for (const Figure &figure : document.figures)
        if (figure.*what != document.figures.front().*what) return true;
    return false;
}

Result<Document> read_document(std::string_view text, std::string_view name) { return Reading(name).read(text); }

} // namespace rawbpf::inline v0::compare
