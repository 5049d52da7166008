// A recording's bytes. Numbers are little-endian; a text is its length, 4 bytes, and its bytes; a list its length, 4 bytes, and
// its items.
//
//      "RBPFEXP\1"   name, text, settings, kernel, when   the plan   attached, refused, reason, log   moments
//
// For each type, one function lists its fields in order; the Writer and the Reader both use it, so they can't disagree. The
// reader checks everything: a length against the bytes that are left, an enumerator against the last one.
#include "programs/experiment/tape.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr std::string_view kMagic = "RBPFEXP\1";

class Writer {
  public:
    std::string out;

    void text(const std::string &text) {
        whole(static_cast<uint32_t>(text.size()));
        out += text;
    }
    void bytes(const std::vector<std::byte> &bytes) {
        text(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
    }
    template <class T> void whole(const T &value) {
        for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(static_cast<uint64_t>(value) >> 8 * i);
    }
    template <class E> void one_of(const E &value, E) { whole(static_cast<uint8_t>(value)); }
    template <class T, class Each> void list(const std::vector<T> &items, Each each) {
        whole(static_cast<uint32_t>(items.size()));
        for (const T &item : items) each(*this, item);
    }
    // What doubles can't say of whole numbers of 64 bits is said by those.
    void number(const Number &value) {
        const bool negative = value < 0;
        const Number size = negative ? -value : value;
        const bool is_whole_number = size < 18446744073709551616.0L && static_cast<Number>(static_cast<uint64_t>(size)) == size;
        whole(static_cast<uint8_t>((is_whole_number ? 1 : 0) | (negative ? 2 : 0)));
        const auto real = static_cast<double>(size);
        uint64_t word = 0;
        std::memcpy(&word, &real, sizeof word);
        whole(is_whole_number ? static_cast<uint64_t>(size) : word);
    }
};

class Reader {
  public:
    Reader(Bytes bytes, std::string_view name) : reader_(bytes, name) {}
    [[nodiscard]] bool good() const { return !error_; }
    [[nodiscard]] ByteReader &bytes_left() { return reader_; }
    [[nodiscard]] Unexpected failure() { return Unexpected(std::move(*error_)); }

    void text(std::string &text) {
        uint32_t size = 0;
        whole(size);
        if (const std::optional<Bytes> part = take(size)) text.assign(reinterpret_cast<const char *>(part->data()), part->size());
    }
    void bytes(std::vector<std::byte> &bytes) {
        uint32_t size = 0;
        whole(size);
        if (const std::optional<Bytes> part = take(size)) bytes.assign(part->begin(), part->end());
    }
    template <class T> void whole(T &value) {
        const std::optional<Bytes> part = take(sizeof(T));
        if (!part) return;
        uint64_t word = 0;
        for (size_t i = 0; i < sizeof(T); ++i) word |= std::to_integer<uint64_t>((*part)[i]) << 8 * i;
        value = static_cast<T>(word);
    }
    template <class E> void one_of(E &value, E last) {
        uint8_t word = 0;
        const size_t at = reader_.offset();
        whole(word);
        if (word <= static_cast<uint8_t>(last))
            value = static_cast<E>(word);
        else
            wrong(at, format("{} is no value of its kind", word));
    }
    template <class T, class Each> void list(std::vector<T> &items, Each each) {
        uint32_t size = 0;
        const size_t at = reader_.offset();
        whole(size);
        if (size > reader_.left()) return wrong(at, format("a list of {} items doesn't fit", size)); // each has a byte or more
        for (uint32_t i = 0; i < size && good(); ++i) each(*this, items.emplace_back());
    }
    void number(Number &value) {
        uint8_t flags = 0;
        uint64_t word = 0;
        whole(flags), whole(word);
        double real = 0;
        std::memcpy(&real, &word, sizeof real);
        if (real != real && (flags & 1) == 0) real = 0;
        value = flags & 1 ? static_cast<Number>(word) : static_cast<Number>(real);
        if (flags & 2) value = -value;
    }
    void wrong(size_t at, std::string_view what) {
        if (!error_) error_ = make_error(Errc::bad_input, format("{}: offset {}: {}", name(), at, what));
    }

  private:
    [[nodiscard]] std::string name() const { return "the recording"; }
    std::optional<Bytes> take(uint64_t size) {
        if (error_) return {};
        Result<Bytes> part = reader_.take(size);
        if (part) return *part;
        error_ = std::move(part).error();
        return {};
    }
    ByteReader reader_;
    std::optional<Error> error_;
};

/// const in a Writer's hands.
template <class A, class T> using Of = std::conditional_t<std::is_same_v<A, Writer>, const T, T>;

template <class A> void column(A &a, Of<A, Column> &c) {
    a.text(c.name), a.one_of(c.show, Show::typed), a.whole(c.offset), a.whole(c.size), a.whole(c.type);
}
constexpr auto kColumn = [](auto &a, auto &item) { column(a, item); };
constexpr auto kText = [](auto &a, auto &item) { a.text(item); };

template <class A> void map_place(A &a, Of<A, Plan::MapPlace> &place) {
    auto &view = place.view;
    a.text(view.map), a.list(view.key, kColumn), a.list(view.value, kColumn), a.one_of(view.figures, Figures::linear);
    a.text(view.figure), a.whole(view.is_signed), a.whole(view.from), a.whole(view.to), a.whole(view.step), a.whole(view.buckets);
    a.whole(place.spec);
}
template <class A> void event_place(A &a, Of<A, Plan::EventPlace> &place) {
    auto &view = place.view;
    a.text(view.event), a.text(view.ring), a.whole(view.number), a.whole(view.numbered), a.whole(view.size);
    a.list(view.fields, kColumn), a.whole(place.spec);
}
template <class A> void map_spec(A &a, Of<A, MapSpec> &map) {
    a.text(map.name), a.whole(map.type), a.whole(map.key_size), a.whole(map.value_size), a.whole(map.max_entries);
    a.whole(map.key_type), a.whole(map.value_type), a.bytes(map.contents), a.whole(map.freeze), a.text(map.data_section);
}
template <class A> void program_spec(A &a, Of<A, ProgramSpec> &program) { a.text(program.name), a.whole(program.type); }
template <class A> void object_spec(A &a, Of<A, ObjectSpec> &spec) {
    a.text(spec.name), a.bytes(spec.btf);
    a.list(spec.maps, [](auto &b, auto &item) { map_spec(b, item); });
    a.list(spec.programs, [](auto &b, auto &item) { program_spec(b, item); });
}
template <class A> void moment(A &a, Of<A, Moment> &m) {
    a.one_of(m.kind, Moment::Kind::symbol), a.text(m.name);
    if (m.kind == Moment::Kind::number) a.number(m.number);
    if (m.kind == Moment::Kind::reading || m.kind == Moment::Kind::record) a.whole(m.spec), a.text(m.keys), a.text(m.values);
    if (m.kind == Moment::Kind::reading || m.kind == Moment::Kind::symbol) a.whole(m.count), a.whole(m.cpus);
}
template <class A> void tape(A &a, Of<A, Tape> &t) {
    a.text(t.name), a.text(t.text), a.text(t.kernel), a.text(t.when);
    a.list(t.settings, [](auto &b, auto &item) { b.text(item.name), b.text(item.value); });
    a.list(t.plan.specs, [](auto &b, auto &item) { object_spec(b, item); });
    a.list(t.plan.maps, [](auto &b, auto &item) { map_place(b, item); });
    a.list(t.plan.events, [](auto &b, auto &item) { event_place(b, item); });
    a.list(t.plan.notes, kText), a.list(t.plan.variables, kText), a.list(t.attached, kText);
    a.whole(t.refused), a.text(t.reason), a.text(t.log);
    a.list(t.moments, [](auto &b, auto &item) { moment(b, item); });
}

/// What the rest of the program relies on: specs that there are, columns within what they are columns of, maps with their bytes.
Result<void> check(const Tape &tape) {
    const auto bad = [](std::string_view what) { return fail(Errc::bad_input, "the recording is damaged: {}", what); };
    for (const Plan::MapPlace &place : tape.plan.maps) {
        if (place.spec >= tape.plan.specs.size()) return bad("a map of an object that isn't there");
        bool found = false;
        for (const MapSpec &map : tape.plan.specs[place.spec].maps) found |= map.name == place.view.map;
        if (!found) return bad("a map that its object doesn't have");
        if (place.view.figures == Figures::linear && (place.view.step <= 0 || place.view.buckets == 0))
            return bad("a histogram without steps");
    }
    for (const Plan::EventPlace &place : tape.plan.events)
        if (place.spec >= tape.plan.specs.size()) return bad("events of an object that isn't there");
    for (const ObjectSpec &spec : tape.plan.specs)
        for (const MapSpec &map : spec.maps)
            if (map.contents.size() > map.value_size && !map.data_section.empty()) return bad("a variable outside of its map");
    for (const Moment &moment : tape.moments) {
        if (moment.kind != Moment::Kind::reading) continue;
        if (moment.spec >= tape.plan.specs.size()) return bad("a reading of an object that isn't there");
        const MapSpec *map = nullptr;
        for (const MapSpec &each : tape.plan.specs[moment.spec].maps)
            if (each.name == moment.name) map = &each;
        if (!map) return bad("a reading of a map that isn't there");
        const uint64_t stride = moment.cpus == 0 ? map->value_size : (uint64_t{map->value_size} + 7) / 8 * 8;
        const uint64_t copies = moment.cpus == 0 ? 1 : moment.cpus;
        if (moment.count > moment.keys.size() + moment.values.size() || copies > moment.values.size() + 1 ||
            moment.keys.size() != moment.count * map->key_size || moment.values.size() != moment.count * stride * copies)
            return bad("a reading of another size than its map's");
    }
    return {};
}

} // namespace

std::string write_tape(const Tape &recorded) {
    Writer out;
    out.out = kMagic;
    tape(out, recorded);
    return std::move(out.out);
}

Result<Tape> read_tape(Bytes bytes, std::string_view name) {
    const std::string_view head(reinterpret_cast<const char *>(bytes.data()), std::min(bytes.size(), kMagic.size()));
    if (head != kMagic) {
        if (head.size() == kMagic.size() && head.substr(0, 7) == kMagic.substr(0, 7))
            return fail(Errc::bad_input, "{} is a recording of another version of rawbpf", name);
        return Unexpected(make_error(Errc::bad_input, format("{} is no recording", name), "rawbpf run --record FILE makes one"));
    }
    Reader in(bytes, name);
    (void)in.bytes_left().skip(kMagic.size());
    Tape out;
    tape(in, out);
    if (!in.good()) return in.failure();
    if (!in.bytes_left().done()) return fail(Errc::bad_input, "{}: offset {}: expected its end", name, in.bytes_left().offset());
    TRY_IN(check(out), "{}", name);
    return out;
}

} // namespace rawbpf::inline v0::experiment
