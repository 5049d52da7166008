// What all labs have in common: bytes of maps become rows, values become bytes of elements and variables, records wait to be
// shown. What waits here is bounded.
#include "programs/experiment/lab.h"

#include <algorithm>
#include <cstring>

#include "asm/map_types.h"
#include "programs/exec/input.h"
#include "programs/experiment/tape.h"
#include "programs/load/settings.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/btf/parse_value.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostPending = 256 << 20; // bytes

uint64_t first_word(Bytes bytes, size_t at) {
    uint64_t out = 0;
    if (at + 8 <= bytes.size()) std::memcpy(&out, bytes.data() + at, 8);
    return out;
}
bool is_array(const MapSpec &map) { return map.type == 2 || map.type == 6; } // BPF_MAP_TYPE_ARRAY, _PERCPU_ARRAY

} // namespace

Result<void> Lab::load() {
    for (const ObjectSpec &spec : plan_.specs) {
        std::optional<btf::Btf> types;
        if (!spec.btf.empty())
            if (Result<btf::Btf> parsed = btf::Btf::parse(spec.btf, spec.name)) types = std::move(*parsed);
        types_.push_back(std::move(types));
    }
    TRY(load_objects());
    loaded_ = true;
    return {};
}

// ---- recording ---------------------------------------------------------------------------------------------------------

void Lab::set_number(const std::string &name, Number value) {
    numbers_[name] = value;
    if (moments_) moments_->push_back({Moment::Kind::number, name, value});
}

void Lab::begin_step(const std::string &source) {
    if (moments_) moments_->push_back({Moment::Kind::step, source});
}

Result<Lab::Contents> Lab::look(size_t spec, const MapSpec &map) {
    Result<Contents> contents = read(spec, map);
    if (!contents || !moments_) return contents;
    Moment &moment = moments_->emplace_back();
    moment.kind = Moment::Kind::reading, moment.name = map.name, moment.spec = static_cast<uint32_t>(spec);
    moment.keys.assign(reinterpret_cast<const char *>(contents->keys.data()), contents->keys.size());
    moment.values.assign(reinterpret_cast<const char *>(contents->values.data()), contents->values.size());
    moment.count = contents->count, moment.cpus = contents->shape.cpus;
    return contents;
}

void Lab::record_maps() {
    moments_->push_back({});                                                    // a step without words: the end
    for (const Plan::MapPlace &place : plan_.maps) (void)table(place.view.map); // of what has no entries there is nothing
    for (size_t i = 0; i < plan_.specs.size(); ++i)
        for (const MapSpec &map : plan_.specs[i].maps)
            if (!map.data_section.empty()) (void)look(i, map);
}

// ---- events ----------------------------------------------------------------------------------------------------------------

void Lab::record(size_t spec, const std::string &ring, Bytes bytes) {
    if (moments_) {
        Moment &moment = moments_->emplace_back();
        moment.kind = Moment::Kind::record, moment.name = ring, moment.spec = static_cast<uint32_t>(spec);
        moment.values.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    }
    if (pending_.empty()) pending_bytes_ = 0;
    for (size_t i = 0; i < plan_.events.size(); ++i) {
        const EventView &view = plan_.events[i].view;
        if (plan_.events[i].spec != spec || view.ring != ring) continue;
        if (view.numbered && first_word(bytes, 8) != view.number) continue;
        ++counts_[view.event];
        if (pending_bytes_ > kMostPending) {
            ++refused_;
            return;
        }
        pending_bytes_ += bytes.size() + sizeof(Record);
        pending_.push_back({i, std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size())});
        return;
    }
}

Result<uint64_t> Lab::lost(uint32_t which) {
    const MapSpec *map = plan_.specs.empty() ? nullptr : plan_.specs[0].find_map(kLostMap);
    if (!map || !loaded_) return uint64_t{0};
    const Contents contents = TRY(look(0, *map));
    return first_word(contents.values, size_t{which} * 8);
}

// ---- maps and variables ----------------------------------------------------------------------------------------------------

const MapSpec *Lab::map_named(const std::string &name, size_t &spec) const {
    const Plan::MapPlace *place = plan_.find_map(name);
    if (!place || !loaded_) return nullptr;
    spec = place->spec;
    return plan_.specs[spec].find_map(name);
}

Result<FigureTable> Lab::table(const std::string &name) {
    size_t spec = 0;
    const MapSpec *map = map_named(name, spec);
    if (!map) return fail(Errc::not_found, "there is no map {}", name);
    if (map_type_row(map->type).contents != MapContents::entries)
        return fail(Errc::unsupported, "{}: maps of its kind have no entries to read", name);
    const MapView &view = plan_.find_map(name)->view;
    const Contents contents = TRY_IN(look(spec, *map), "reading the map {}", name);
    const bool skip_zero = is_array(*map) && !view.key.empty() && view.figures == Figures::plain;
    return figures_of(view, contents.shape, contents.keys, contents.values, skip_zero);
}

Result<void> Lab::clear(const std::string &name) {
    size_t spec = 0;
    const MapSpec *map = map_named(name, spec);
    if (!map) return fail(Errc::not_found, "there is no map {}", name);
    const Contents contents = TRY_IN(look(spec, *map), "reading the map {}", name);
    const std::vector<std::byte> zero(contents.shape.value_size);
    for (size_t i = 0; i < contents.count; ++i) {
        const std::byte *key = contents.keys.data() + i * contents.shape.key_size;
        Result<void> done = is_array(*map) ? write(spec, *map, key, zero) : erase(spec, *map, key);
        if (!done && done.error().kind != Errc::not_found) return std::move(done).failure();
    }
    return {};
}

Result<void> Lab::set_element(const Expr &element, const std::string &value) {
    size_t at_spec = 0;
    const MapSpec *map = map_named(element.text, at_spec);
    if (!map) return fail(Errc::not_found, "there is no map {}", element.text);
    const MapView &view = plan_.find_map(element.text)->view;
    std::vector<std::byte> key(map->key_size), bytes(map->value_size);
    size_t at = 0;
    for (size_t i = 0; i < element.args.size(); ++i) {
        const Expr &part = element.args[i];
        const size_t size = i < view.key.size() ? view.key[i].size : key.size() - std::min(at, key.size());
        if (at + size > key.size()) return fail(Errc::invalid_argument, "a key of {} has {} bytes", element.text, key.size());
        if (part.kind == Expr::Kind::text) {
            if (part.text.size() > size)
                return fail(Errc::invalid_argument, "\"{}\" has more than the {} bytes of that part of the key", part.text, size);
            std::memcpy(key.data() + at, part.text.data(), part.text.size());
        } else {
            const Number number = TRY(evaluate(part, *this));
            const uint64_t word =
                number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number)) : static_cast<uint64_t>(number);
            std::memcpy(key.data() + at, &word, std::min<size_t>(size, 8));
        }
        at += size;
    }
    if (const btf::Btf *types = types_of(at_spec); types && map->value_type != 0) {
        TRY_IN(btf::parse_value(*types, map->value_type, value, bytes), "set {}", text_of(element));
    } else {
        int64_t number = 0;
        if (!parse_whole(value, number) || bytes.size() > 8)
            return fail(Errc::invalid_argument, "set {} = {}: a value is a whole number here", text_of(element), value);
        std::memcpy(bytes.data(), &number, bytes.size());
    }
    return write(at_spec, *map, key.data(), bytes);
}

Result<void> Lab::set_variable(const std::string &path, const std::string &value) {
    const std::string name = path.substr(0, path.find_first_of(".["));
    for (size_t i = 0; i < plan_.specs.size(); ++i) {
        ObjectSpec &spec = plan_.specs[i];
        const ObjectSpec::Global variable = spec.find_variable(name);
        if (variable.bytes.empty()) continue;
        TRY(load_tool::set_variable(spec, format("{}={}", path, value)));
        if (!loaded_) return {};
        // The whole section is written: what the programs have changed in it is read first.
        MapSpec *section = spec.find_map(variable.map);
        if (!section || section->freeze)
            return fail(Errc::invalid_argument, "{} is a constant: it is set before anything else is done", name);
        const auto offset = static_cast<size_t>(variable.bytes.data() - section->contents.data());
        Contents now = TRY(look(i, *section));
        if (offset + variable.bytes.size() > now.values.size()) return fail(Errc::internal, "{} lies outside of its map", name);
        std::copy(variable.bytes.begin(), variable.bytes.end(), now.values.begin() + static_cast<ptrdiff_t>(offset));
        const std::byte key[4] = {};
        return write(i, *section, key, std::span(now.values).first(now.shape.value_size));
    }
    return fail(Errc::not_found, "there is no variable {}", name);
}

Result<void> Lab::run_program(const Step &step, const std::vector<std::byte> &bytes, uint32_t times) {
    const std::string what = step.kind == Step::Kind::packet ? "packet" : "run";
    for (size_t i = 0; i < plan_.specs.size(); ++i)
        for (size_t j = 0; j < plan_.specs[i].programs.size(); ++j) {
            const ProgramSpec &program = plan_.specs[i].programs[j];
            if (!step.name.empty() && program.name != step.name) continue;
            const bool packet = step.kind == Step::Kind::packet || exec::takes_packet(program);
            const Ran ran = TRY_IN(run_once(i, j, bytes, packet, times), "{} bytes to {}", bytes.size(), program.name);
            set_number(what + ".result", ran.result);
            set_number(what + ".ns", static_cast<Number>(ran.ns));
            set_number(what + ".instructions", static_cast<Number>(ran.instructions));
            return {};
        }
    return fail(Errc::not_found, "there is no program {}", step.name);
}

// ---- facts -----------------------------------------------------------------------------------------------------------------

Result<const FigureTable *> Lab::map(const std::string &name) {
    if (!plan_.find_map(name)) return static_cast<const FigureTable *>(nullptr);
    table_ = TRY(table(name));
    return static_cast<const FigureTable *>(&table_);
}

std::optional<Number> Lab::number(const std::string &name) {
    if (name == "events.lost" || name == "maps.full") {
        const Result<uint64_t> counted = lost(name == "maps.full");
        return static_cast<Number>(counted.value_or(0) + (name == "events.lost" ? refused_ : 0));
    }
    if (name.starts_with("events.")) {
        (void)take_records();
        uint64_t sum = 0;
        for (const auto &[event, count] : counts_)
            if (name == "events.count" || name == "events." + event) sum += count;
        return static_cast<Number>(sum);
    }
    if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
    for (size_t i = 0; i < plan_.specs.size(); ++i) {
        const ObjectSpec::Global variable = plan_.specs[i].find_variable(name);
        const MapSpec *section = variable.bytes.empty() ? nullptr : plan_.specs[i].find_map(variable.map);
        if (!section || !loaded_ || variable.bytes.size() > 8 || !types_of(i)) continue;
        const auto offset = static_cast<uint32_t>(variable.bytes.data() - section->contents.data());
        const Result<Contents> now = look(i, *section);
        if (!now) continue;
        Result<std::vector<Column>> columns =
            columns_of(*types_of(i), variable.type, static_cast<uint32_t>(variable.bytes.size()), name);
        if (!columns) continue;
        Column column = (*columns)[0];
        column.offset += offset;
        if (const std::optional<int64_t> whole = integer(column, now->values))
            return column.show == Show::signed_number ? static_cast<Number>(*whole)
                                                      : static_cast<Number>(static_cast<uint64_t>(*whole));
    }
    return {};
}

const btf::Btf *Lab::types(const std::string &map) {
    const Plan::MapPlace *place = plan_.find_map(map);
    return place ? types_of(place->spec) : nullptr;
}

void Lab::look_up(std::vector<uint64_t> addresses) {
    addresses.erase(std::remove_if(addresses.begin(), addresses.end(), [&](uint64_t a) { return symbols_.contains(a); }),
                    addresses.end());
    if (addresses.empty()) return;
    for (uint64_t address : addresses) symbols_[address];
    for (auto &named : name_addresses(std::move(addresses))) {
        if (moments_) {
            Moment &moment = moments_->emplace_back();
            moment.kind = Moment::Kind::symbol, moment.name = named.second, moment.count = named.first;
        }
        symbols_[named.first] = std::move(named.second);
    }
}
void Lab::prepare_symbols(const FigureTable &table) {
    std::vector<uint64_t> addresses;
    for (const FigureRow &row : table.rows) {
        for (const Column &column : table.view.key)
            if (column.show == Show::symbol)
                addresses.push_back(static_cast<uint64_t>(integer(column, bytes_of(row.key)).value_or(0)));
        for (const Column &column : table.view.value)
            if (column.show == Show::symbol && table.view.figures == Figures::plain)
                addresses.push_back(static_cast<uint64_t>(integer(column, bytes_of(row.value)).value_or(0)));
    }
    look_up(std::move(addresses));
}
void Lab::prepare_symbols(const EventView &view, Bytes record) {
    std::vector<uint64_t> addresses;
    for (const Column &column : view.fields)
        if (column.show == Show::symbol) addresses.push_back(static_cast<uint64_t>(integer(column, record).value_or(0)));
    look_up(std::move(addresses));
}
std::string Lab::symbol(uint64_t address) {
    const auto found = symbols_.find(address);
    return found == symbols_.end() ? std::string() : found->second;
}

} // namespace rawbpf::inline v0::experiment
