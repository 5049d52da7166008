// The lab that replays a recorded run. For each step of the experiment it looks up the recorded step with the same text, and
// returns the recorded numbers, records and contents of maps. If the experiment was edited and a step wasn't recorded, that step
// sees the maps as they were at the last recorded step before it; after the last step, as they were at the end.
#include <deque>
#include <map>

#include "programs/experiment/lab.h"
#include "programs/experiment/tape.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

class ReplayedLab final : public Lab {
  public:
    ReplayedLab(const Experiment &experiment, Plan &plan, const Tape &tape) : Lab(experiment, plan), tape_(tape) {
        for (const Moment &moment : tape.moments)
            if (moment.kind == Moment::Kind::symbol) names_[moment.count] = moment.name;
    }

    Result<void> attach() override { return {}; }
    std::vector<std::string> attached() const override { return tape_.attached; }
    bool take_records() override { return false; } // begin_step() has brought them

    void begin_step(const std::string &source) override {
        const size_t found = step_at_or_behind(at_, source);
        if (found == tape_.moments.size()) return;
        const size_t end = next_step(found + 1);
        for (; at_ < end; ++at_) play(tape_.moments[at_]);
    }
    bool next_step_is(const std::string &source) const override {
        const size_t next = next_step(at_);
        return next < tape_.moments.size() && tape_.moments[next].name == source;
    }

  protected:
    Result<void> load_objects() override {
        if (!tape_.refused) return {};
        Error error(Errc::rejected, 0, tape_.reason);
        error.log = tape_.log;
        return Unexpected(std::move(error));
    }
    Result<Contents> read(size_t spec, const MapSpec &map) override {
        const NamedMap place(spec, map.name);
        if (std::deque<const Moment *> &now = now_[place]; !now.empty()) {
            last_[place] = now.front();
            now.pop_front();
        }
        const Moment *found = last_[place];
        const bool over = next_step(at_) == tape_.moments.size();
        for (size_t i = at_; i < tape_.moments.size() && (!found || over); ++i)
            if (is_reading(tape_.moments[i], place)) found = &tape_.moments[i];
        if (!found) return fail(Errc::not_found, "the recording doesn't say what {} held", map.name);
        Contents out;
        out.shape = {map.key_size, map.value_size, static_cast<size_t>(found->cpus)};
        const Bytes keys = bytes_of(found->keys), values = bytes_of(found->values);
        out.keys.assign(keys.begin(), keys.end());
        out.values.assign(values.begin(), values.end());
        out.count = found->count;
        return out;
    }
    Result<void> write(size_t, const MapSpec &, const std::byte *, std::span<const std::byte>) override { return {}; }
    Result<void> erase(size_t, const MapSpec &, const std::byte *) override { return {}; }
    Result<Ran> run_once(size_t, size_t, const std::vector<std::byte> &, bool, uint32_t) override { return Ran(); }
    std::map<uint64_t, std::string> name_addresses(std::vector<uint64_t> addresses) override {
        std::map<uint64_t, std::string> out;
        for (const uint64_t address : addresses)
            if (const auto found = names_.find(address); found != names_.end()) out.insert(*found);
        return out;
    }

  private:
    using NamedMap = std::pair<size_t, std::string>; // a map's object and name

    static bool is_reading(const Moment &moment, const NamedMap &place) {
        return moment.kind == Moment::Kind::reading && moment.spec == place.first && moment.name == place.second;
    }
    [[nodiscard]] size_t next_step(size_t from) const {
        while (from < tape_.moments.size() &&
               (tape_.moments[from].kind != Moment::Kind::step || tape_.moments[from].name.empty()))
            ++from;
        return from;
    }
    [[nodiscard]] size_t step_at_or_behind(size_t from, const std::string &source) const {
        for (from = next_step(from); from < tape_.moments.size() && tape_.moments[from].name != source;)
            from = next_step(from + 1);
        return from;
    }
    void play(const Moment &moment) {
        switch (moment.kind) {
        case Moment::Kind::step:
            for (auto &[place, readings] : now_)
                if (!readings.empty()) last_[place] = readings.back();
            return now_.clear();
        case Moment::Kind::number: return set_number(moment.name, moment.number);
        case Moment::Kind::reading: return now_[{moment.spec, moment.name}].push_back(&moment);
        case Moment::Kind::record: return record(moment.spec, moment.name, bytes_of(moment.values));
        case Moment::Kind::symbol: return;
        }
    }

    const Tape &tape_;
    size_t at_ = 0; ///< what comes next
    std::map<NamedMap, std::deque<const Moment *>> now_;
    std::map<NamedMap, const Moment *> last_;
    std::map<uint64_t, std::string> names_;
};

} // namespace

std::unique_ptr<Lab> replayed_lab(const Experiment &experiment, Plan &plan, const Tape &tape) {
    return std::make_unique<ReplayedLab>(experiment, plan, tape);
}

} // namespace rawbpf::inline v0::experiment
