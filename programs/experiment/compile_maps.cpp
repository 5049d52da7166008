// Elements of maps. A map that nobody declared is made where it is first used, and what it is used for says what it is:
//
//      @start[tid] = nsecs            a hash map of numbers; without a key an array of one
//      @reads[comm] = count()         the same with a value for each CPU, which user space adds up
//      @us[comm] = hist(us)           a count for each CPU, key and power of two: the bucket is the key's last part
//
// An element appears when it is first written. Where the map is full, that is counted, and the experiment says so.
#include <algorithm>

#include "asm/map_types.h"
#include "programs/experiment/compiling.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

namespace {

constexpr uint32_t kMostKeyBytes = 256;
constexpr uint32_t kLiteralKeyBytes = 32;
constexpr uint32_t kStatsBytes = 32; // count, sum, least, most

std::string column_name(const Expr &e, size_t number) {
    if (e.kind == Expr::Kind::name) return e.steps.empty() || e.steps.back().member.empty() ? e.text : e.steps.back().member;
    if (e.kind == Expr::Kind::call) {
        if (!e.steps.empty() && !e.steps.back().member.empty()) return e.steps.back().member;
        Show show;
        if (show_named(e.text, show) && show != Show::ip && show != Show::ip6) return e.text;
        if (!e.args.empty()) return column_name(e.args[0], number);
    }
    return format("key{}", number + 1);
}

} // namespace

bool ProbeCode::use_map(const Expr &element, UsedMap *&out) {
    UsedMap &map = all_.map_named(element.text);
    out = &map;
    const bool first = map.first.line == 0;
    if (first) {
        map.first = element.at;
        map.keyed = element.keyed;
    } else if (map.keyed != element.keyed && !map.declared) {
        return fail(element.at, format("@{} has {} here, and {} in line {}", map.name, element.keyed ? "a key" : "no key",
                                       map.keyed ? "one" : "none", map.first.line));
    }
    if (map.declared) {
        if (!all_.make_map(map, element.at)) return false;
        if (element.args.size() > 1)
            return fail(element.at, format("a key of {} is one number here: it was declared by `map`", map.name),
                        "maps that nobody declares take keys of several parts");
        return true;
    }
    uint32_t offset = 0;
    for (size_t i = 0; i < element.args.size(); ++i) {
        const Expr &part = element.args[i];
        Typed type;
        if (!infer(part, type)) return false;
        type.pointee = 0;
        if (part.kind == Expr::Kind::text)
            type.size = i < map.key.size() && map.key[i].text ? std::max(type.size, map.key[i].size)
                                                              : std::max(type.size, kLiteralKeyBytes);
        if (first) {
            map.key.push_back(type);
            map.view.key.push_back({column_name(part, i), type.show, offset, type.size, 0});
        } else if (i >= map.key.size() || map.key[i].text != type.text || map.key[i].size != type.size) {
            break;
        }
        offset += type.size;
    }
    if (!first && map.keyed && (element.args.size() != map.key.size() || offset != map.key_size))
        return fail(element.at, format("the key of @{} has other parts here than in line {}", map.name, map.first.line),
                    "texts of one place have one size: str(x, 64)");
    if (offset > kMostKeyBytes)
        return fail(element.at, format("a key has at most {} bytes, this one has {}", kMostKeyBytes, offset));
    if (first) map.key_size = offset;
    return true;
}

bool ProbeCode::put(const Typed &type, const Expr &expr, Slot into, uint32_t offset) {
    if (type.text) return text_into(expr, type, into + runtime(offset));
    if (!value(expr)) return false;
    f_.store<uint64_t>(into + runtime(offset), r0);
    return true;
}

bool ProbeCode::make_key(const Expr &element, UsedMap &map, Slot key) {
    if (!element.keyed) {
        f_.store<uint32_t>(key, 0);
        return true;
    }
    if (map.declared) {
        if (!value(element.args[0])) return false;
        switch (map.key_size) {
        case 1: f_.store<uint8_t>(key, r0); break;
        case 2: f_.store<uint16_t>(key, r0); break;
        case 4: f_.store<uint32_t>(key, r0); break;
        default: f_.store<uint64_t>(key, r0); break;
        }
        return true;
    }
    uint32_t offset = 0;
    for (size_t i = 0; i < element.args.size(); ++i) {
        if (!put(map.key[i], element.args[i], key, offset)) return false;
        offset += map.key[i].size;
    }
    return true;
}

void ProbeCode::count_full() {
    const Space key(*this, 4);
    f_.store<uint32_t>(key.slot(), 1);
    f_.lookup(all_.lost(), key.slot(), [&] {
        f_.mov(r1, 1);
        f_.atomic_add<uint64_t>(r0, r1);
    });
}

bool ProbeCode::upsert(UsedMap &map, Slot key, TextPlace at) {
    if (map.value_size > 64)
        return fail(at, format("a value of {} has {} bytes, which is more than a probe writes", map.name, map.value_size));
    const Label found = f_.label("found");
    f_.call(helper::map_lookup_elem, *map.ref, key);
    f_.jump_if(r0 != 0, found);
    {
        const Space initial(*this, (map.value_size + 7) / 8 * 8);
        f_.mov(r1, 0);
        for (uint32_t byte = 0; byte < map.value_size; byte += 8) f_.store<uint64_t>(initial.slot() + runtime(byte), r1);
        f_.call(helper::map_update_elem, *map.ref, key, initial.slot(), 1); // BPF_NOEXIST: another CPU may have been faster
    }
    f_.call(helper::map_lookup_elem, *map.ref, key);
    f_.bind(found);
    return true;
}

bool ProbeCode::load_element(const Expr &element) {
    UsedMap *map = nullptr;
    if (!use_map(element, map)) return false;
    if (!map->known) {
        map->value = {};
        if (!all_.make_map(*map, element.at)) return false;
    }
    const Space key(*this, std::max<uint32_t>(map->key_size, 8));
    if (!make_key(element, *map, key.slot())) return false;
    const Label none = f_.label("none");
    f_.call(helper::map_lookup_elem, *map->ref, key.slot());
    f_.jump_if(r0 == 0, none); // and 0 it is
    switch (map->value_size) {
    case 1: f_.load<uint8_t>(r0, r0 + 0); break;
    case 2: f_.load<uint16_t>(r0, r0 + 0); break;
    case 4: f_.load<uint32_t>(r0, r0 + 0); break;
    case 8: f_.load<uint64_t>(r0, r0 + 0); break;
    default: return fail(element.at, format("a value of {} has {} bytes: a probe reads numbers", map->name, map->value_size));
    }
    f_.bind(none);
    return true;
}

bool ProbeCode::remove(const Statement &statement) {
    UsedMap *map = nullptr;
    if (!use_map(statement.target, map)) return false;
    if (!map->known && !all_.make_map(*map, statement.at)) return false;
    if (!map->keyed && !map->declared) { // an array's only element stays, as 0
        const Space key(*this, 8), zero(*this, 8);
        f_.store<uint32_t>(key.slot(), 0);
        f_.store<uint64_t>(zero.slot(), 0);
        f_.call(helper::map_update_elem, *map->ref, key.slot(), zero.slot(), 0);
        return true;
    }
    const Space key(*this, std::max<uint32_t>(map->key_size, 8));
    if (!make_key(statement.target, *map, key.slot())) return false;
    f_.call(helper::map_delete_elem, *map->ref, key.slot());
    return true;
}

bool ProbeCode::assign(const Statement &statement) {
    if (is_aggregate(statement.value)) return assign_aggregate(statement, statement.value);
    UsedMap *map = nullptr;
    Typed type;
    if (!use_map(statement.target, map) || !infer(statement.value, type)) return false;
    map->written = true;
    if (!map->known) {
        map->value = type;
        map->value.pointee = type.pointee;
        if (!all_.make_map(*map, statement.at)) return false;
    }
    if (map->view.figures != Figures::plain)
        return fail(statement.at, format("@{} is an aggregate: line {} says what it counts", map->name, map->first.line));
    if (map->value.text != type.text)
        return fail(statement.value.at, format("@{} holds {}, this is {}", map->name, map->value.text ? "a text" : "a number",
                                               type.text ? "a text" : "a number"));
    if (type.text && statement.op != "=") return fail(statement.at, "texts are only set: =");
    const Space key(*this, std::max<uint32_t>(map->key_size, 8)), space(*this, std::max<uint32_t>(map->value.size, 8));
    if (!put(map->value, statement.value, space.slot(), 0) || !make_key(statement.target, *map, key.slot())) return false;
    const Label end = f_.label("assigned");
    if (statement.op == "=" && (map->value_size == 8 || map->value.text)) {
        f_.call(helper::map_update_elem, *map->ref, key.slot(), space.slot(), 0);
        f_.jump_if(r0 == 0, end);
        count_full();
        f_.bind(end);
        return true;
    }
    const Label full = f_.label("full");
    if (!upsert(*map, key.slot(), statement.at)) return false;
    f_.jump_if(r0 == 0, full);
    f_.load<uint64_t>(r1, space.slot());
    if (map->value_size == 8 || map->value_size == 4) {
        if (statement.op == "=") {
            f_.store<uint32_t>(r0, r1);
        } else if (statement.op == "|=") { // as one step only since 5.12
            if (map->value_size == 8) {
                f_.load<uint64_t>(r2, r0 + 0);
                f_.or_(r2, r1);
                f_.store<uint64_t>(r0, r2);
            } else {
                f_.load<uint32_t>(r2, r0 + 0);
                f_.or_(r2, r1);
                f_.store<uint32_t>(r0, r2);
            }
        } else {
            if (statement.op == "-=") f_.neg(r1);
            map->value_size == 8 ? f_.atomic_add<uint64_t>(r0, r1) : f_.atomic_add<uint32_t>(r0, r1);
        }
    } else if (map->value_size <= 2) {
        f_.load<uint8_t>(r2, r0 + 0);
        if (map->value_size == 2) f_.load<uint16_t>(r2, r0 + 0);
        if (statement.op == "=")
            f_.mov(r2, r1);
        else if (statement.op == "|=")
            f_.or_(r2, r1);
        else if (statement.op == "+=")
            f_.add(r2, r1);
        else
            f_.sub(r2, r1);
        map->value_size == 1 ? f_.store<uint8_t>(r0, r2) : f_.store<uint16_t>(r0, r2);
    } else {
        return fail(statement.at,
                    format("a value of {} has {} bytes: a probe writes numbers of 1, 2, 4 or 8", map->name, map->value_size));
    }
    f_.jump(end);
    f_.bind(full);
    count_full();
    f_.bind(end);
    return true;
}

// ---- aggregates ------------------------------------------------------------------------------------------------------------

// r0 = 0 for 0 and less, else one more than the power of two.
bool ProbeCode::bucket_log2(Slot value, bool is_signed) {
    const Label end = f_.label("bucket");
    f_.load<uint64_t>(r1, value);
    f_.mov(r0, 0);
    f_.jump_if(r1 == 0, end);
    if (is_signed) f_.jump_if(as_signed(r1) < 0, end);
    f_.mov(r0, 1);
    for (int shift : {32, 16, 8, 4, 2, 1}) {
        const Label less = f_.label("less");
        f_.mov(r2, r1);
        f_.rsh(r2, runtime(shift));
        f_.jump_if(r2 == 0, less);
        f_.mov(r1, r2);
        f_.add(r0, runtime(shift));
        f_.bind(less);
    }
    f_.bind(end);
    return true;
}

// r0 = 0 below `from`, the last one from `to` on.
bool ProbeCode::bucket_linear(Slot value, int64_t from, int64_t to, int64_t step) {
    const Label end = f_.label("bucket"), more = f_.label("more");
    const int64_t last = (to - from + step - 1) / step + 1;
    f_.load<uint64_t>(r1, value);
    f_.mov(r0, 0);
    f_.jump_if(as_signed(r1) < runtime(from), end);
    f_.mov(r0, runtime(last));
    f_.jump_if(as_signed(r1) >= runtime(to), end);
    f_.bind(more);
    f_.mov(r0, r1);
    f_.sub(r0, runtime(from));
    f_.div(r0, runtime(step));
    f_.add(r0, 1);
    f_.bind(end);
    return true;
}

bool ProbeCode::assign_aggregate(const Statement &statement, const Expr &call) {
    if (statement.op != "=")
        return fail(statement.at, format("an aggregate is set: @{} = {}(...)", statement.target.text, call.text));
    const bool counts = call.text == "count", log2 = call.text == "hist", linear = call.text == "lhist",
               sums = call.text == "sum";
    const size_t wanted = counts ? 0 : linear ? 4 : 1;
    if (call.args.size() != wanted)
        return fail(call.at, counts   ? std::string("count takes nothing")
                             : linear ? std::string("lhist takes a value, from, to and step: lhist(x, 0, 100, 10)")
                                      : format("{} takes one value", call.text));
    UsedMap *map = nullptr;
    if (!use_map(statement.target, map)) return false;
    map->written = true;
    if (map->declared)
        return fail(statement.at, format("{} was declared by `map`: aggregates are kept in maps of their own", map->name));
    Typed type;
    if (wanted != 0) {
        if (!infer(call.args[0], type)) return false;
        if (type.text) return fail(call.args[0].at, "a text isn't a number");
    }
    int64_t bounds[3] = {0, 0, 1};
    for (size_t i = 1; i < call.args.size(); ++i) {
        const std::optional<int64_t> number = constant(call.args[i]);
        if (!number || *number < INT32_MIN || *number > INT32_MAX)
            return fail(call.args[i].at, "the bounds of a histogram are numbers of 32 bits");
        bounds[i - 1] = *number;
    }
    if (linear && (bounds[2] <= 0 || bounds[1] <= bounds[0] || (bounds[1] - bounds[0]) / bounds[2] > 1000))
        return fail(call.at, "a histogram goes from a number to a larger one in at most 1000 steps");
    const Figures figures = log2 ? Figures::log2 : linear ? Figures::linear : counts || sums ? Figures::sum : Figures::stats;
    if (!map->known) {
        map->view.figures = figures;
        map->view.figure = call.text;
        map->view.from = bounds[0];
        map->view.to = bounds[1];
        map->view.step = bounds[2];
        map->view.is_signed = type.is_signed;
        map->view.buckets = linear ? static_cast<uint32_t>((bounds[1] - bounds[0] + bounds[2] - 1) / bounds[2]) + 2 : 0;
        map->value.is_signed = type.is_signed;
        if (!all_.make_map(*map, statement.at)) return false;
    } else if (map->view.figures != figures || map->view.figure != call.text || map->view.from != bounds[0] ||
               map->view.step != bounds[2]) {
        return fail(call.at, format("@{} was something else in line {}", map->name, map->first.line));
    }
    const Space key(*this, std::max<uint32_t>(map->key_size + (log2 || linear ? 8 : 0), 8)), space(*this, 8);
    if (wanted != 0) {
        if (!value(call.args[0])) return false;
        f_.store<uint64_t>(space.slot(), r0);
    }
    if (log2 || linear) {
        if (map->keyed && !make_key(statement.target, *map, key.slot())) return false;
        if (!(log2 ? bucket_log2(space.slot(), type.is_signed) : bucket_linear(space.slot(), bounds[0], bounds[1], bounds[2])))
            return false;
        if (map->keyed)
            f_.store<uint64_t>(key.slot() + runtime(map->key_size), r0);
        else
            f_.store<uint32_t>(key.slot(), r0);
    } else if (!make_key(statement.target, *map, key.slot())) {
        return false;
    }
    const Label full = f_.label("full"), end = f_.label("counted");
    if (!upsert(*map, key.slot(), statement.at)) return false;
    f_.jump_if(r0 == 0, full);
    if (figures == Figures::stats) {
        // Nobody else writes this CPU's; a nested probe of this CPU loses an update at most.
        const Label smaller = f_.label("smaller"), larger = f_.label("larger"), begun = f_.label("begun");
        f_.load<uint64_t>(r1, space.slot());
        f_.load<uint64_t>(r2, r0 + 0);
        f_.jump_if(r2 != 0, begun);
        f_.store<uint64_t>(r0 + 16, r1);
        f_.store<uint64_t>(r0 + 24, r1);
        f_.bind(begun);
        f_.add(r2, 1);
        f_.store<uint64_t>(r0, r2);
        f_.load<uint64_t>(r2, r0 + 8);
        f_.add(r2, r1);
        f_.store<uint64_t>(r0 + 8, r2);
        f_.load<uint64_t>(r2, r0 + 16);
        type.is_signed ? f_.jump_if(as_signed(r2) <= r1, smaller) : f_.jump_if(r2 <= r1, smaller);
        f_.store<uint64_t>(r0 + 16, r1);
        f_.bind(smaller);
        f_.load<uint64_t>(r2, r0 + 24);
        type.is_signed ? f_.jump_if(as_signed(r2) >= r1, larger) : f_.jump_if(r2 >= r1, larger);
        f_.store<uint64_t>(r0 + 24, r1);
        f_.bind(larger);
    } else {
        if (sums)
            f_.load<uint64_t>(r1, space.slot());
        else
            f_.mov(r1, 1);
        f_.atomic_add<uint64_t>(r0, r1);
    }
    f_.jump(end);
    f_.bind(full);
    count_full();
    f_.bind(end);
    return true;
}

// ---- making them -----------------------------------------------------------------------------------------------------------

bool Compiler::make_map(UsedMap &map, TextPlace at) {
    if (map.ref) return true;
    constexpr uint32_t kHash = 1, kArray = 2, kCpuHash = 5, kCpuArray = 6, kEntries = 10240;
    for (const MapDef &def : assembly_.maps)
        if (def.name == map.name) {
            map.declared = map.known = true;
            map.ref = declared(def);
            map.key_size = def.key_size;
            map.value_size = def.value_size;
            map.keyed = true;
            const bool plain =
                map_type_row(def.type).contents == MapContents::entries && map_type_row(def.type).values != MapValues::reference;
            const bool number = def.key_size == 1 || def.key_size == 2 || def.key_size == 4 || def.key_size == 8;
            if (!plain || !number)
                return fail(at, format("{} is no map of numbers by a number, which is what a probe can use", map.name));
            return true;
        }
    const bool per_cpu = map.view.figures != Figures::plain,
               bucket = map.view.figures == Figures::log2 || map.view.figures == Figures::linear;
    MapDef def;
    def.name = map.name;
    map.known = true;
    map.value_size = map.view.figures == Figures::stats ? kStatsBytes : per_cpu ? 8 : map.value.size;
    if (map.keyed) {
        def.type = per_cpu ? kCpuHash : kHash;
        def.key_size = map.key_size + (bucket ? 8 : 0);
        def.max_entries = kEntries;
    } else {
        def.type = per_cpu ? kCpuArray : kArray;
        def.key_size = 4;
        map.key_size = 4;
        def.max_entries = map.view.figures == Figures::log2 ? 65 : bucket ? map.view.buckets : 1;
        def.key_type = "u32";
    }
    def.value_size = map.value_size;
    const auto type_name = [](const Typed &type) {
        return type.text ? format("char[{}]", type.size) : std::string(type.is_signed ? "s64" : "u64");
    };
    if (map.keyed) {
        if (map.key.size() == 1 && !bucket) {
            def.key_type = type_name(map.key[0]);
        } else {
            StructDef key;
            key.name = map.name + "_key";
            key.size = def.key_size;
            key.alignment = 8;
            for (size_t i = 0; i < map.key.size(); ++i) {
                std::string name = map.view.key[i].name;
                for (size_t j = 0; j < i; ++j)
                    if (map.view.key[j].name == name) name += format("_{}", i + 1);
                map.view.key[i].name = name;
                key.fields.push_back({name,
                                      map.key[i].text        ? "char"
                                      : map.key[i].is_signed ? "s64"
                                                             : "u64",
                                      map.key[i].text ? map.key[i].size : 0, map.view.key[i].offset});
            }
            if (bucket) key.fields.push_back({"bucket", "u64", 0, map.key_size});
            def.key_type = key.name;
            types_.push_back(std::move(key));
        }
    }
    if (map.view.figures == Figures::stats) {
        StructDef value;
        value.name = map.name + "_value";
        value.size = kStatsBytes;
        value.alignment = 8;
        const char *signed_type = map.value.is_signed ? "s64" : "u64";
        value.fields = {
            {"count", "u64", 0, 0}, {"sum", signed_type, 0, 8}, {"min", signed_type, 0, 16}, {"max", signed_type, 0, 24}};
        def.value_type = value.name;
        types_.push_back(std::move(value));
    } else {
        def.value_type = per_cpu ? (map.value.is_signed ? "s64" : "u64") : type_name(map.value);
    }
    map.view.map = map.name;
    const Show show =
        per_cpu ? (map.value.is_signed && map.view.figure == "sum" ? Show::signed_number : Show::number) : map.value.show;
    map.view.value = {
        {per_cpu && map.view.figures == Figures::sum ? map.view.figure : "value", show, 0, per_cpu ? 8 : map.value.size, 0}};
    map.ref = builder_.map(std::move(def));
    return true;
}

} // namespace rawbpf::inline v0::experiment
