// The assembly and the compiled probes become one object, so that they share maps; each file is one more. Then everything is
// looked up that steps and formats name: a wrong name in the last line is told before the first program is loaded.
#include "programs/experiment/plan.h"

#include <algorithm>

#include "asm/map_types.h"
#include "asm/nearest.h"
#include "programs/experiment/assembly.h"
#include "programs/experiment/parse.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr uint32_t kRing = 27; // BPF_MAP_TYPE_RINGBUF

std::vector<std::string> variables_of(const ObjectSpec &spec) {
    std::vector<std::string> out;
    const Result<btf::Btf> types =
        spec.btf.empty() ? Result<btf::Btf>(fail(Errc::not_found, "no types")) : btf::Btf::parse(spec.btf, spec.name);
    if (!types) return out;
    for (const MapSpec &map : spec.maps) {
        if (map.value_type == 0 || map.data_section.empty()) continue;
        const Result<btf::Type> section = types->type(map.value_type);
        if (!section || section->kind != btf::Kind::datasec) continue;
        for (uint32_t i = 0; i < section->vlen; ++i) {
            const auto place = types->secinfo(*section, i);
            if (!place) continue;
            if (const Result<btf::Type> variable = types->type(place->type)) out.emplace_back(variable->name);
        }
    }
    return out;
}

class Planner {
  public:
    Planner(const Experiment &e, Mistakes &mistakes) : e_(e), mistakes_(mistakes) {}
    Plan plan;

    void check_steps() { check(); }
    Result<void> build(std::string_view folder, const Surroundings &surroundings) {
        Unit unit = assemble_text(e_, mistakes_);
        if (mistakes_.any()) return {};
        Compiled compiled = compile(e_, std::move(unit), surroundings, mistakes_);
        if (mistakes_.any()) return {};
        plan.notes = std::move(compiled.notes);
        plan.places = std::move(compiled.places);
        if (!compiled.unit.functions.empty() || !compiled.unit.maps.empty()) {
            compiled.unit.name = e_.name;
            plan.specs.push_back(RAWBPF_TRY(object_of(compiled.unit)));
        }
        for (const Source &source : e_.sources) TRY(read(source, folder, surroundings));
        if (mistakes_.any()) return {};
        for (MapView &view : compiled.maps) plan.maps.push_back({std::move(view), 0});
        for (EventView &view : compiled.events) plan.events.push_back({std::move(view), 0});
        for (size_t i = 0; i < plan.specs.size(); ++i) {
            for (std::string &name : variables_of(plan.specs[i])) plan.variables.push_back(std::move(name));
            for (const MapSpec &map : plan.specs[i].maps)
                if (map.data_section.empty() && map.type != kRing && !is_own_map(map.name) && !plan.find_map(map.name))
                    plan.maps.push_back({view_of(plan.specs[i], map), i});
        }
        formats();
        check();
        return {};
    }

  private:
    void fail_at(TextPlace at, std::string message, std::string hint = {}) {
        mistakes_.add(e_.lines, at, std::move(message), std::move(hint));
    }

    Result<void> read(const Source &source, std::string_view folder, const Surroundings &surroundings) {
        const std::string path =
            source.path.empty() || source.path.starts_with('/') ? source.path : std::string(folder) + source.path;
        Result<std::string> bytes =
            !source.is_c ? sys::read_file(path) : surroundings.compile_c(source.text, path.empty() ? e_.name : path);
        if (!bytes) {
            const std::string_view hint = bytes.error().hint;
            fail_at(source.at, bytes.error().message(),
                    hint.empty() && !source.is_c ? "paths count from the folder of the experiment" : std::string(hint));
            return {};
        }
        Result<ObjectSpec> spec = parse_object(bytes_of(*bytes), path.empty() ? e_.name : path);
        if (!spec) {
            fail_at(source.at, spec.error().message(), spec.error().hint);
            return {};
        }
        plan.specs.push_back(std::move(*spec));
        return {};
    }

    // `format RING as STRUCT`, and a plain view for the rings that no format is about.
    void formats() {
        for (const Format &format : e_.formats) {
            if (!format.ring.empty()) {
                ring_format(format);
                continue;
            }
            const auto same = [&](const Plan::EventPlace &each) { return each.view.event == format.event; };
            const auto found = std::find_if(plan.events.begin(), plan.events.end(), same);
            if (found == plan.events.end()) {
                Nearest near(format.event);
                for (const Plan::EventPlace &each : plan.events) near.offer(each.view.event);
                fail_at(format.at, rawbpf::format("no probe emits an event {}", format.event), near.hint());
                continue;
            }
            fields(format, found->view);
        }
        for (size_t i = 0; i < plan.specs.size(); ++i)
            for (const MapSpec &map : plan.specs[i].maps) {
                if (map.type != kRing || map.name == kEventRing) continue;
                const auto known = [&](const Plan::EventPlace &each) { return each.view.ring == map.name && each.spec == i; };
                if (std::any_of(plan.events.begin(), plan.events.end(), known)) continue;
                EventView view;
                view.event = view.ring = map.name;
                view.fields.push_back({"bytes", Show::typed, 0, UINT32_MAX, 0});
                plan.events.push_back({std::move(view), i});
            }
    }
    void ring_format(const Format &format) {
        for (size_t i = 0; i < plan.specs.size(); ++i) {
            const MapSpec *map = plan.specs[i].find_map(format.ring);
            if (!map) continue;
            if (map->type != kRing) return fail_at(format.at, rawbpf::format("{} is no ring buffer", format.ring));
            const Result<btf::Btf> types = btf::Btf::parse(plan.specs[i].btf, plan.specs[i].name);
            const std::optional<btf::TypeId> type =
                types ? types->find(format.event, btf::Kind::struct_) : std::optional<btf::TypeId>();
            const Result<uint64_t> size = type ? types->size_of(*type) : Result<uint64_t>(uint64_t{0});
            if (!type || !size) return fail_at(format.at, rawbpf::format("there is no struct {}", format.event));
            Result<std::vector<Column>> columns = columns_of(*types, *type, static_cast<uint32_t>(*size), format.event);
            if (!columns) return fail_at(format.at, columns.error().message());
            EventView view;
            view.event = format.event;
            view.ring = format.ring;
            view.size = static_cast<uint32_t>(*size);
            view.fields = std::move(*columns);
            fields(format, view);
            plan.events.push_back({std::move(view), i});
            return;
        }
        fail_at(format.at, rawbpf::format("there is no ring buffer {}", format.ring));
    }
    void fields(const Format &format, const EventView &view) {
        for (const Piece &piece : format.pieces) {
            if (!piece.has_value) continue;
            Nearest near(piece.field);
            bool known = false;
            for (const Column &column : view.fields) {
                known |= column.name == piece.field;
                near.offer(column.name);
            }
            if (!known)
                fail_at({piece.at.line, piece.at.column + 1},
                        rawbpf::format("the event {} has no field {}", view.event, piece.field), near.hint());
        }
    }

    void check() {
        for (const Attach &attach : e_.attachments) program(attach.at, attach.program);
        known_.names = {"events.count",        "events.lost",      "maps.full",     "seconds",
                        "workload.status",     "workload.seconds", "packet.result", "packet.ns",
                        "packet.instructions", "run.result",       "run.ns",        "run.instructions",
                        "trigger.result"};
        for (const Plan::EventPlace &each : plan.events) known_.names.push_back("events." + each.view.event);
        for (const std::string &name : plan.variables) known_.names.push_back(name);
        for (const Plan::MapPlace &each : plan.maps) known_.maps.push_back(&each.view);
        for (const Step &step : e_.steps) check(step);
    }
    void program(TextPlace at, const std::string &name) {
        if (plan.find_program(name)) return;
        Nearest near(name);
        std::string all;
        for (const ObjectSpec &spec : plan.specs)
            for (const ProgramSpec &each : spec.programs) {
                near.offer(each.name);
                append(all, "{}{}", all.empty() ? "there are " : ", ", each.name);
            }
        fail_at(at, format("there is no program {}", name), near.hint().empty() ? all : near.hint());
    }
    void map(const Step &step) {
        if (plan.find_map(step.name)) return;
        Nearest near(step.name);
        std::string all;
        for (const Plan::MapPlace &each : plan.maps) {
            near.offer(each.view.map);
            append(all, "{}{}", all.empty() ? "there are " : ", ", each.view.map);
        }
        TextPlace at = step.at;
        if (const size_t found = e_.lines[at.line - 1].find(step.name, at.column + 4); found != std::string::npos)
            at.column = static_cast<uint32_t>(found) + 1;
        fail_at(at, format("there is no map {}", step.name), near.hint().empty() ? all : near.hint());
    }
    void check(const Step &step) {
        switch (step.kind) {
        case Step::Kind::print:
        case Step::Kind::clear: return map(step);
        case Step::Kind::say:
            for (const Piece &piece : step.pieces)
                if (piece.has_value) check_value(piece.value, known_, e_.lines, mistakes_);
            return;
        case Step::Kind::expect: return check_value(step.value, known_, e_.lines, mistakes_);
        case Step::Kind::measure:
            check_value(step.value, known_, e_.lines, mistakes_);
            if (plan.find_map(step.name) ||
                std::find(plan.variables.begin(), plan.variables.end(), step.name) != plan.variables.end())
                return fail_at(step.at, format("{} is a {} already: a measure has a name of its own", step.name,
                                               plan.find_map(step.name) ? "map" : "variable"));
            known_.names.push_back(step.name);
            return;
        case Step::Kind::every:
            for (const Step &each : step.body) check(each);
            return;
        case Step::Kind::set:
            if (step.key) return map(step);
            if (std::find(plan.variables.begin(), plan.variables.end(), step.name) == plan.variables.end()) {
                Nearest near(step.name);
                for (const std::string &each : plan.variables) near.offer(each);
                fail_at(step.at, format("there is no variable {}", step.name),
                        near.hint().empty() ? "of a map an element is set: set MAP[KEY] = VALUE" : near.hint());
            }
            return;
        case Step::Kind::run: return program(step.at, step.name);
        case Step::Kind::packet:
            if (!step.name.empty()) return program(step.at, step.name);
            if (size_t programs = 0; true) {
                for (const ObjectSpec &spec : plan.specs) programs += spec.programs.size();
                if (programs != 1)
                    fail_at(step.at, format("there are {} programs: which of them gets the packet?", programs),
                            "packet FILE to PROGRAM");
            }
            return;
        case Step::Kind::events:
            if (plan.events.empty())
                fail_at(step.at, "nothing emits events here",
                        "emit NAME FIELD, ... in a probe's block, or a ring buffer in assembly");
            return;
        default: return;
        }
    }

    const Experiment &e_;
    Mistakes &mistakes_;
    KnownNames known_;
};

} // namespace

const Plan::MapPlace *Plan::find_map(std::string_view name) const {
    for (const MapPlace &each : maps)
        if (each.view.map == name) return &each;
    return nullptr;
}
const ProgramSpec *Plan::find_program(std::string_view name) const {
    for (const ObjectSpec &spec : specs)
        for (const ProgramSpec &program : spec.programs)
            if (program.name == name) return &program;
    return nullptr;
}

void check_steps(const Experiment &experiment, const Plan &plan, Mistakes &mistakes) {
    Planner planner(experiment, mistakes);
    planner.plan = plan;
    planner.check_steps();
}

Result<Plan> make_plan(const Experiment &experiment, std::string_view folder, const Surroundings &surroundings,
                       Mistakes &mistakes) {
    Planner planner(experiment, mistakes);
    TRY(planner.build(folder, surroundings));
    return std::move(planner.plan);
}

} // namespace rawbpf::inline v0::experiment
