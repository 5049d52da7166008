// An event's group, found and added to, by instructions made for exactly what was asked.
//
//      key on the stack     comm, arg0 ...
//      r9 = its value       trace_groups[key]; where there is none yet: a blank one, put there first
//                           none left: ++lost
//      count, sums          += , atomically where somebody may come in between
//      min, max             kept as the most of ~X and of X, with the sign bit turned over where X has one: so both begin at 0
//      hist                 the bucket's number is the position of the highest bit: halved six times, without a jump, so that
//                           the verifier goes one way and the CPU guesses nothing
//
// Each CPU has its own values: nobody waits for a cache line of another one. They are shared where they would take too much
// memory. Programs at uprobes (and at system calls, by number) may be preempted in the middle by one of the same CPU, so
// they add atomically even then, and compare and exchange what is least and most where the kernel can (5.12).
#include <algorithm>

#include <linux/bpf.h>

#include "programs/trace/emit.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kMemory = 64 << 20;      // of all groups, where the user didn't say how many
constexpr uint64_t kMostMemory = 512 << 20; // before CPUs share them
constexpr uint32_t kUsualKeys = 16384, kFewestKeys = 256;
constexpr uint32_t kEntryBytes = 64; // that the kernel has around a key and a value, about
constexpr uint32_t kAttempts = 4;    // to exchange

bool is_name(const Expression &expression) { return expression.nodes[expression.root].kind == Node::Kind::name; }

Result<GroupLayout::Part> part_of(const GroupKey &key, const ProbeSite &place, const AggregateOptions &o,
                                  const btf::Btf *kernel) {
    GroupLayout::Part out;
    out.kind = key.kind;
    if (key.kind != GroupKey::Kind::value) return out;
    const Expression &x = key.expression;
    if (!is_name(x)) {
        const bool is_signed = TRY(has_signed_value(x, x.root, place, kernel));
        out.type = {is_signed ? "long" : "unsigned long", Show::integer, 8, is_signed};
        return out;
    }
    const Node &name = x.nodes[x.root];
    const Value value = TRY(resolve_value(x, name, place, kernel));
    out.type = value.type;
    out.text = value.from == Value::From::comm || value.is_text();
    if (value.from == Value::From::comm)
        out.bytes = 16;
    else if (value.type.show == Show::characters)
        out.bytes = std::clamp<uint32_t>((value.type.length + 7) / 8 * 8, 8, o.text_bytes);
    else if (out.text)
        out.bytes = o.text_bytes;
    constexpr Show kNoKeys[] = {Show::counted, Show::real, Show::unavailable, Show::go_slice, Show::go_interface, Show::go_any};
    if (std::find(std::begin(kNoKeys), std::end(kNoKeys), value.type.show) != std::end(kNoKeys))
        return Unexpected(x.complaint(name.column, format("{} is neither a number nor a text", name.text),
                                      "events are put into groups by numbers and texts that end in a zero"));
    return out;
}

// What is summed up is a number: an address of a text is none to anybody.
Result<bool> sign_of(const Measure &m, const ProbeSite &place, const btf::Btf *kernel) {
    const Expression &x = m.value;
    const Node &root = x.nodes[x.root];
    if (root.kind == Node::Kind::text)
        return Unexpected(x.complaint(root.column, "a text isn't a number", "texts are keys: --by comm --count"));
    if (root.kind == Node::Kind::name)
        if (const Value value = TRY(resolve_value(x, root, place, kernel));
            value.from == Value::From::comm || value.is_text() || value.type.show == Show::counted)
            return Unexpected(x.complaint(root.column, format("{} is a text, not a number", root.text),
                                          format("texts are keys: --by {} --count", root.text)));
    return has_signed_value(x, x.root, place, kernel);
}

// Of different sizes there can't be one map.
Result<void> agree(const GroupKey &key, const ProbeSite &place, GroupLayout::Part &known, const GroupLayout::Part &other) {
    if (known.text != other.text)
        return Unexpected(key.expression.complaint(
            0, format("it is {} at {}, and not at other probes", other.text ? "a text" : "a number", place.describe()),
            "trace them one after the other"));
    known.bytes = std::max(known.bytes, other.bytes);
    known.type.is_signed |= other.type.is_signed;
    if (known.type.name != other.type.name && known.type.show != other.type.show)
        known.type = {"unsigned long", Show::integer, 8, known.type.is_signed};
    return {};
}

class Groups {
  public:
    explicit Groups(Emitting &e)
        : e_(e), f_(e.f), o_(*e.shared.options.aggregate), layout_(*e.shared.group_layout),
          atomic_(!layout_.per_cpu || is_user_function(e.place.kind) || e.place.by_number()) {}

    Result<void> emit(Label out) {
        const Label full = f_.label("no room for one more group");
        const Slot key = f_.stack(std::max<uint32_t>(layout_.key_bytes, 8), 8, "group");
        if (o_.by.empty()) {
            f_.store<uint64_t>(key, 0);
            f_.call(helper::map_lookup_elem, *e_.shared.groups, key);
            f_.jump_if(r0 == 0, out);
        } else {
            for (size_t i = 0; i < o_.by.size(); ++i) TRY_IN(fill(o_.by[i], layout_.parts[i], key), "--by");
            find(key, full);
        }
        f_.mov(r9, r0);
        if (layout_.counted) {
            f_.mov(r1, 1);
            add(r9 + 0);
        }
        for (size_t i = 0; i < o_.measures.size(); ++i) TRY(measure(i));
        if (o_.by.empty()) return {};
        f_.jump(out);
        f_.bind(full);
        bump(e_, offsetof(Counts, lost));
        return {};
    }

  private:
    Result<void> fill(const GroupKey &key, const GroupLayout::Part &part, Slot group) {
        const Mem at = group + runtime(part.offset);
        if (key.kind == GroupKey::Kind::function) {
            f_.store<uint64_t>(at, r7);
            return {};
        }
        if (key.kind == GroupKey::Kind::stack) {
            f_.load<uint64_t>(r1, *e_.stack_hash);
            f_.store<uint64_t>(at, r1);
            return {};
        }
        const Expression &x = key.expression;
        if (!part.text) {
            TRY(compile_value(e_, x));
            f_.store<uint64_t>(at, r0);
            return {};
        }
        const Value value = TRY(resolve_value(x, x.nodes[x.root], e_.place, e_.shared.kernel));
        if (value.from == Value::From::comm) {
            f_.call(helper::get_current_comm, at, 16);
            return {};
        }
        if (value.from == Value::From::argument && !has_arguments(e_)) {
            TRY(compile_value(e_, x)); // it says why
            return {};
        }
        for (uint32_t i = 0; i < part.bytes; i += 8) f_.store<uint64_t>(at + runtime(i), 0);
        read_text(e_, value, at, part.bytes);
        f_.if_(as_signed(static_cast<Reg>(r0)) < 0, [&] {
            f_.mov(r1, kUnreadableText);
            f_.store<uint8_t>(at, r1);
        });
        return {};
    }

    // r0 = the group's value.
    void find(Slot key, Label full) {
        const Slot zero = f_.stack<uint32_t>("zero");
        f_.call(helper::map_lookup_elem, *e_.shared.groups, key);
        f_.if_(r0 == 0, [&] {
            f_.store<uint32_t>(zero, 0);
            f_.call(helper::map_lookup_elem, *e_.shared.blank_group, zero);
            f_.jump_if(r0 == 0, full);
            f_.mov(r3, r0);
            f_.call(helper::map_update_elem, *e_.shared.groups, key, r3, BPF_NOEXIST); // another CPU may have come first
            f_.call(helper::map_lookup_elem, *e_.shared.groups, key);
            f_.jump_if(r0 == 0, full);
        });
    }

    // += r1. r2 is gone.
    void add(Mem at) {
        if (atomic_) return f_.atomic_add<uint64_t>(at, r1);
        f_.load<uint64_t>(r2, at);
        f_.add(r2, r1);
        f_.store<uint64_t>(at, r2);
    }

    Result<void> measure(size_t index) {
        const Measure &m = o_.measures[index];
        const GroupLayout::Cell &cell = layout_.cells[index];
        TRY_IN(load(m.value, index), "--{}", m.word());
        const Mem at = r9 + runtime(cell.offset);
        switch (m.kind) {
        case Measure::Kind::sum:
        case Measure::Kind::average:
            f_.mov(r1, r0);
            add(at);
            return {};
        case Measure::Kind::least:
        case Measure::Kind::most:
            f_.mov(r1, r0);
            if (cell.is_signed) {
                f_.load_imm64(r2, uint64_t{1} << 63);
                f_.xor_(r1, r2);
            }
            if (m.kind == Measure::Kind::least) f_.xor_(r1, -1);
            keep_most(at);
            return {};
        case Measure::Kind::log2: log2(cell.is_signed); break;
        case Measure::Kind::linear: linear(m, cell.is_signed); break;
        }
        f_.lsh(r1, 3);
        f_.mov(r3, r9);
        f_.add(r3, r1);
        f_.mov(r1, 1);
        add(r3 + runtime(cell.offset));
        return {};
    }

    // r0 = X: worked out once where several measures are of the same.
    Result<void> load(const Expression &x, size_t index) {
        const auto same = [&](const Measure &m) { return m.value.source == x.source; };
        const auto begin = o_.measures.begin();
        const bool known = std::any_of(begin, begin + static_cast<ptrdiff_t>(index), same);
        const bool again = std::any_of(begin + static_cast<ptrdiff_t>(index) + 1, o_.measures.end(), same);
        if (known) {
            for (const auto &[source, slot] : values_)
                if (source == x.source) f_.load<uint64_t>(r0, slot);
            return {};
        }
        TRY(compile_value(e_, x));
        if (!again) return {};
        values_.emplace_back(x.source, f_.stack<uint64_t>("x"));
        f_.store<uint64_t>(values_.back().second, r0);
        return {};
    }

    // The larger one of what is there and r1. r0, r2 are gone.
    void keep_most(Mem at) {
        const Label done = f_.label("most");
        const uint32_t attempts = atomic_ && o_.exchanges ? kAttempts : 0;
        for (uint32_t i = 0; i < attempts; ++i) {
            f_.load<uint64_t>(r0, at);
            f_.jump_if(r0 >= r1, done);
            f_.mov(r2, r0);
            f_.compare_exchange<uint64_t>(at, r1);
            f_.jump_if(r0 == r2, done);
        }
        f_.load<uint64_t>(r0, at);
        f_.jump_if(r0 >= r1, done);
        f_.store<uint64_t>(at, r1);
        f_.bind(done);
    }

    // r1 = the bucket of r0: 0 for less than 0, 1 for 0, then the position of the highest bit.
    void log2(bool is_signed) {
        const Label found = f_.label("bucket");
        if (is_signed) {
            f_.mov(r1, 0);
            f_.jump_if(as_signed(static_cast<Reg>(r0)) < 0, found);
        }
        f_.mov(r1, 1);
        f_.jump_if(r0 == 0, found);
        f_.mov(r1, 2);
        for (int bits = 32, shift = 5; bits > 0; bits /= 2, --shift) {
            f_.mov(r2, r0);
            f_.rsh(r2, runtime(bits));
            f_.neg(r2);
            f_.rsh(r2, 63); // 1 where there was a bit above
            if (shift > 0) f_.lsh(r2, runtime(shift));
            f_.rsh(r0, r2);
            f_.add(r1, r2);
        }
        f_.bind(found);
    }

    void linear(const Measure &m, bool is_signed) {
        const Label found = f_.label("bucket");
        const int64_t last = m.words() - 1;
        const auto from = static_cast<uint64_t>(m.from), to = static_cast<uint64_t>(m.to);
        const bool below = is_signed || m.from > 0;
        if (below) {
            f_.mov(r1, 0);
            f_.load_imm64(r2, from);
            f_.jump_if(is_signed ? as_signed(static_cast<Reg>(r0)) < r2 : r0 < r2, found);
        }
        if (is_signed || m.to > 0) {
            f_.mov(r1, runtime(last));
            f_.load_imm64(r2, to);
            f_.jump_if(is_signed ? as_signed(static_cast<Reg>(r0)) >= r2 : r0 >= r2, found);
        }
        f_.mov(r1, r0);
        f_.load_imm64(r2, from);
        f_.sub(r1, r2);
        if (m.step > 1) {
            f_.load_imm64(r2, m.step);
            f_.div(r1, r2);
        }
        f_.add(r1, 1);
        f_.if_(r1 > runtime(last - 1), [&] { f_.mov(r1, runtime(last - 1)); }); // the verifier doesn't divide
        f_.bind(found);
    }

    Emitting &e_;
    Code &f_;
    const AggregateOptions &o_;
    const GroupLayout &layout_;
    bool atomic_;
    std::vector<std::pair<std::string, Slot>> values_;
};

} // namespace

Result<GroupLayout> group_layout(const std::vector<const ProbeSite *> &places, const AggregateOptions &o,
                                 const btf::Btf *kernel) {
    GroupLayout out;
    for (const GroupKey &key : o.by) {
        std::optional<GroupLayout::Part> part;
        for (const ProbeSite *place : places) {
            const GroupLayout::Part here = TRY_IN(part_of(key, *place, o, kernel), "--by");
            if (part)
                TRY_IN(agree(key, *place, *part, here), "--by");
            else
                part = here;
        }
        part->offset = out.key_bytes;
        out.key_bytes += part->bytes;
        out.parts.push_back(std::move(*part));
    }
    if (out.key_bytes > kMostGroupKey)
        return Unexpected(
            make_error(Errc::invalid_argument,
                       format("--by: the keys have {} bytes together, and there is room for {}", out.key_bytes, kMostGroupKey),
                       format("a text takes {}: --string BYTES makes it shorter", o.text_bytes)));
    out.counted = std::none_of(o.measures.begin(), o.measures.end(), [](const Measure &m) { return m.is_histogram(); });
    out.value_bytes = out.counted ? 8 : 0;
    for (const Measure &m : o.measures) {
        GroupLayout::Cell cell;
        cell.offset = out.value_bytes;
        for (const ProbeSite *place : places) cell.is_signed |= TRY_IN(sign_of(m, *place, kernel), "--{}", m.word());
        out.value_bytes += 8 * m.words();
        out.cells.push_back(cell);
    }
    if (out.value_bytes > kMostGroupValue)
        return fail(Errc::invalid_argument, "the histograms have {} bytes together, and there is room for {}", out.value_bytes,
                    kMostGroupValue);
    const uint64_t entry = out.key_bytes + kEntryBytes + uint64_t{out.value_bytes} * o.cpus;
    out.keys = o.keys;
    if (out.keys == 0) out.keys = static_cast<uint32_t>(std::clamp<uint64_t>(kMemory / entry, kFewestKeys, kUsualKeys));
    out.per_cpu = entry * out.keys <= kMostMemory;
    if (o.by.empty()) out.key_bytes = 4, out.keys = 1, out.per_cpu = true;
    return out;
}

void make_group_maps(Shared &s) {
    const GroupLayout &layout = *s.group_layout;
    const bool hashed = !layout.parts.empty();
    MapDef groups;
    groups.name = "trace_groups";
    if (hashed)
        groups.type = layout.per_cpu ? BPF_MAP_TYPE_PERCPU_HASH : BPF_MAP_TYPE_HASH;
    else
        groups.type = BPF_MAP_TYPE_PERCPU_ARRAY;
    groups.key_size = layout.key_bytes;
    groups.value_size = layout.value_bytes;
    groups.max_entries = layout.keys;
    s.groups = s.b.map(std::move(groups));
    if (!hashed) return;
    MapDef blank;
    blank.name = "trace_blank_group";
    blank.type = BPF_MAP_TYPE_ARRAY;
    blank.key_size = 4;
    blank.value_size = layout.value_bytes;
    blank.max_entries = 1;
    s.blank_group = s.b.map(std::move(blank));
}

Result<void> emit_group(Emitting &e, Label out) { return Groups(e).emit(out); }

} // namespace rawbpf::inline v0::trace
