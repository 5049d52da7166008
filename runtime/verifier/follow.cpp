// The follower does the engine's work (engine.cpp) along one run: at a branch it takes only the side that the run took.
//
// A step back costs nothing until a caller asks what the verifier knows there. Then the follower takes the nearest earlier state
// that it kept, and follows the path from there again, along the recorded branches.
#include "runtime/verifier/follow.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr size_t kBetween = 512; // steps from one kept state to the next

// Whether these registers may be what the state says.
bool may_hold(const State &state, const uint64_t (&registers)[11]) {
    for (unsigned n = 0; n < 11; ++n)
        if (state.reg(n).is_number() && !state.reg(n).bounds.holds(registers[n])) return false;
    return true;
}

} // namespace

struct Follower::Inside {
    const ObjectSpec &spec;
    const ProgramSpec &program;
    VerifyOptions options;
    Types types;
    Flow flow;
    Verdict verdict;
    Engine engine;

    struct Went {
        uint32_t insn, depth;
        bool second; ///< of two states that lead there, the one that waited
    };
    struct Kept {
        State state;
        size_t steps, nodes;
        uint32_t changes;
        ValueId last_id;
    };
    std::vector<Went> trail;
    std::vector<Kept> kept;           ///< number n is in front of step n * kBetween
    size_t position = 0, at = 0;      ///< where the run is, and where the engine is
    size_t end = SIZE_MAX;            ///< behind this step nothing is known
    Standing why = Standing::follows; ///< and why
    bool begun = false;               ///< false: nothing is known anywhere
    std::string reason;

    Inside(const ObjectSpec &spec_, size_t number, const VerifyOptions &options_, std::vector<uint32_t> entries, Types types_)
        : spec(spec_), program(spec_.programs[number]), options(options_), types(std::move(types_)),
          flow(flow_of(program.insns, entries, options.kernel)), engine(spec, program, options, types, flow, verdict) {}

    void stop(size_t behind, Standing standing, std::string words) {
        end = behind;
        why = standing;
        reason = std::move(words);
    }

    void keep() {
        if (at % kBetween == 0 && kept.size() == at / kBetween)
            kept.push_back({engine.state_, verdict.walk.steps.size(), verdict.walk.nodes.size(), verdict.walk.change_end(),
                            engine.last_id_});
    }

    // To where the run is, which must be known.
    void settle() {
        if (at == position) return;
        if (at > position || position - at > kBetween) {
            const size_t nearest = std::min(position / kBetween, kept.size() - 1);
            if (at > position || nearest * kBetween > at) {
                const Kept &from = kept[nearest];
                engine.state_ = from.state;
                engine.last_id_ = from.last_id;
                verdict.walk.steps.resize(from.steps, Step{0, 0});
                verdict.walk.nodes.resize(from.nodes, Node{0});
                verdict.walk.drop_changes(from.changes);
                at = nearest * kBetween;
            }
        }
        while (at < position) {
            (void)step();
            if (trail[at].second) engine.state_ = std::move(engine.pending_.back());
            engine.pending_.clear();
            ++at;
        }
    }

    // One instruction. False: it wasn't gone through, or the program ended by it.
    bool step() {
        engine.pending_.clear();
        engine.step_ = engine.state_.step;
        engine.begin_step();
        bool ended = false;
        return engine.one(ended) && !ended;
    }
};

Follower::Follower(const ObjectSpec &spec, size_t number, const VerifyOptions &options) {
    Types types = types_of(spec, spec.programs[number]);
    std::vector<uint32_t> entries;
    for (const GlobalFunction &function : types.global) entries.push_back(function.insn);
    inside_ = std::make_unique<Inside>(spec, number, options, std::move(entries), std::move(types));
    Inside &in = *inside_;
    in.verdict.walk.visits.assign(in.program.insns.size(), 0);
    in.begun = !in.program.insns.empty() && check_whole(in.spec, in.program, in.types, in.flow, in.verdict);
    if (!in.begun) {
        in.stop(0, in.verdict.outcome == Outcome::refused ? Standing::refused : Standing::undecided, in.verdict.reason);
        return;
    }
    in.engine.state_ = entry_of_program(in.options);
    in.keep();
}

Follower::~Follower() = default;
Follower::Follower(Follower &&) noexcept = default;
Follower &Follower::operator=(Follower &&) noexcept = default;

void Follower::advance(uint32_t next, uint32_t depth, const uint64_t (&registers)[11], bool elsewhere) {
    Inside &in = *inside_;
    ++in.position;
    if (in.position <= in.trail.size() || in.position > in.end || !in.begun) return;
    --in.position;
    in.settle();
    ++in.position;
    const size_t here = in.position - 1;
    if (elsewhere) return in.stop(here, Standing::elsewhere, "the run has left this program");
    if (here >= kMostSteps) return in.stop(here, Standing::too_far, format("it was followed for {} steps", kMostSteps));
    const Insn insn = in.program.insns[in.engine.state_.insn];
    if (!in.step()) {
        in.at = SIZE_MAX; // the state is no longer that of a place
        if (in.verdict.reason.empty()) return in.stop(here, Standing::elsewhere, "the program has ended");
        const bool refused = in.verdict.outcome == Outcome::refused;
        return in.stop(here, refused ? Standing::refused : Standing::undecided, in.verdict.reason);
    }
    in.at = in.position;
    State &state = in.engine.state_;
    auto leads_there = [&](const State &s) { return s.insn == next && s.frames.size() == depth + 1; };
    bool second = false;
    if (!in.engine.pending_.empty()) {
        const State &other = in.engine.pending_.back();
        second = leads_there(other) && (!leads_there(state) || (!may_hold(state, registers) && may_hold(other, registers)));
    }
    if (second) state = std::move(in.engine.pending_.back());
    in.engine.pending_.clear();
    if (!leads_there(state)) {
        in.at = SIZE_MAX;
        const unsigned kind = insn.code & 7u, operation = insn.code & 0xf0u;
        const bool calls = (kind == 5 || kind == 6) && (operation == 0x80 || operation == 0x90);
        if (calls) return in.stop(here, Standing::elsewhere, "what a helper calls isn't followed");
        return in.stop(here, Standing::impossible, "the run went where the verifier saw no way");
    }
    in.trail.push_back({next, depth, second});
    in.keep();
}

void Follower::back() {
    if (inside_->position > 0) --inside_->position;
}

Follower::Standing Follower::standing() {
    return inside_->position > inside_->end || !inside_->begun ? inside_->why : Standing::follows;
}

const std::string &Follower::reason() const { return inside_->reason; }

const State *Follower::state() {
    if (standing() != Standing::follows) return nullptr;
    inside_->settle();
    return &inside_->engine.state_;
}

} // namespace rawbpf::inline v0::verifier
