// Maps, from the three ways in which an object file defines them.
//
// .maps: the definition is a C struct whose bytes are all zero; what it says is in its type. Numbers are array lengths, types
// are pointers' targets, so that the compiler carries both into BTF:
//
//      struct {
//          int (*type)[BPF_MAP_TYPE_HASH];          // PTR -> ARRAY nelems = 1
//          __u32 *key;                              // PTR -> the key's type
//          __u64 *value;
//          int (*max_entries)[1024];
//          struct inner (*values[]);                // PTR elements; relocations in .rel.maps fill the slots
//      } counts SEC(".maps");
//
// maps: the older `struct bpf_map_def` of five or more u32; no types. libbpf 1.0 dropped it; it costs few lines to keep.
// .rodata .data .bss and their named variants (.rodata.str1.1, .data.foo): one array map of one entry each, which is the section.
// .addr_space.1 has no map of its own: its variables live in the object's arena.
#include <elf.h>
#include <linux/bpf.h>

#include <algorithm>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/image.h"

namespace rawbpf::inline v0::object {

namespace {

constexpr uint32_t kReadOnlyProg = 1u << 7; // BPF_F_RDONLY_PROG, 5.2
constexpr uint32_t kMmapable = 1u << 10;    // BPF_F_MMAPABLE, 5.5
constexpr uint32_t kExtern = 2;             // BTF_VAR_GLOBAL_EXTERN
constexpr uint32_t kMostMembers = 32;       // there are 13 to set
constexpr uint64_t kLargestArena = 8 << 20; // of initialised variables; the arena itself may have 4 GiB
constexpr uint32_t kPinByName = 1;          // libbpf's LIBBPF_PIN_BY_NAME

constexpr uint32_t number(MapType type) { return static_cast<uint32_t>(type); }

/// Reads one map definition from its struct type.
class Definition {
  public:
    Definition(const Image &image, std::string_view map) : image_(image), types_(*image.types), map_(map) {}

    /// `values_at`: the offset of the `values` member, or 0. `inner`: this is an inner map's definition.
    Result<MapSpec> read(btf::TypeId id, uint32_t &values_at, bool inner = false) {
        const btf::Type type = TRY(types_.resolve(id));
        if (type.kind != btf::Kind::struct_) return bad("its definition isn't a struct");
        if (type.vlen > kMostMembers) return bad("its definition has {} members, and {} are the most", type.vlen, kMostMembers);
        size_ = type.size_or_type;
        MapSpec map;
        map.name = inner ? format("{}.inner", map_) : std::string(map_);
        for (uint32_t i = 0; i < type.vlen; ++i) {
            const btf::Member member = TRY(types_.member(type, i));
            TRY(field(map, member, inner));
            if (member.name != "values") continue;
            if (i + 1 != type.vlen) return bad("`values` isn't the last member");
            values_at = member.bit_offset / 8;
        }
        if (map.type == 0) return bad("it has no type");
        return map;
    }

    [[nodiscard]] uint32_t size() const { return size_; }

  private:
    template <class... Args> Unexpected bad(fmt::format_string<Args...> text, Args &&...args) const {
        std::string problem;
        vformat_to(problem, text, fmt::make_format_args(args...));
        return fail(Errc::bad_input, "{}: .maps: map {}: {}", image_.name, map_, problem);
    }

    /// A number said as the length of an array behind a pointer, or (__ulong, for 64 bits) as the value of an enum.
    Result<uint64_t> number_of(const btf::Member &member) const {
        const btf::Type type = TRY(types_.resolve(member.type));
        if (type.kind == btf::Kind::ptr) {
            const btf::Type target = TRY(types_.type(type.size_or_type));
            if (target.kind == btf::Kind::array) return types_.array(target).count;
        } else if ((type.kind == btf::Kind::enum_ || type.kind == btf::Kind::enum64) && type.vlen == 1) {
            return TRY(types_.enum_value(type, 0)).value;
        }
        return bad("member {} doesn't hold a number", member.name);
    }
    Result<uint32_t> word_of(const btf::Member &member) const {
        const uint64_t value = TRY(number_of(member));
        if (value > UINT32_MAX) return bad("member {} is {}, which doesn't fit in 32 bits", member.name, value);
        return static_cast<uint32_t>(value);
    }
    /// Sets a size that may be given twice, as a number and by a type, if both agree.
    Result<void> set_size(uint32_t &size, uint64_t to, std::string_view what) const {
        if (to > UINT32_MAX || (size && size != to)) return bad("its {} sizes {} and {} contradict each other", what, size, to);
        size = static_cast<uint32_t>(to);
        return {};
    }
    Result<void> set_type(btf::TypeId &type, uint32_t &size, const btf::Member &member) const {
        const btf::Type pointer = TRY(types_.type(member.type));
        if (pointer.kind != btf::Kind::ptr) return bad("member {} isn't a pointer to a type", member.name);
        type = pointer.size_or_type;
        return set_size(size, TRY_IN(types_.size_of(type), "{}: .maps: map {}: {}", image_.name, map_, member.name), member.name);
    }

    Result<void> field(MapSpec &map, const btf::Member &member, bool inner) const {
        const std::string_view name = member.name;
        if (name == "type") {
            map.type = TRY(word_of(member));
        } else if (name == "max_entries") {
            map.max_entries = TRY(word_of(member));
        } else if (name == "map_flags") {
            map.flags = TRY(word_of(member));
        } else if (name == "numa_node") {
            map.numa_node = TRY(word_of(member));
        } else if (name == "map_extra") {
            map.map_extra = TRY(number_of(member));
        } else if (name == "key_size") {
            TRY(set_size(map.key_size, TRY(word_of(member)), "key"));
        } else if (name == "value_size") {
            TRY(set_size(map.value_size, TRY(word_of(member)), "value"));
        } else if (name == "key") {
            TRY(set_type(map.key_type, map.key_size, member));
        } else if (name == "value") {
            TRY(set_type(map.value_type, map.value_size, member));
        } else if (name == "pinning") {
            const uint32_t pinning = TRY(word_of(member));
            if (inner || pinning > kPinByName)
                return bad("its member pinning can't be {}{}", pinning, inner ? " in an inner map" : "");
            map.pin_by_name = pinning == kPinByName;
        } else if (name == "values") {
            TRY(read_values(map, member, inner));
        } else {
            return bad("rawbpf doesn't know its member {}", name);
        }
        return {};
    }

    /// `values`: an array of pointers, to inner maps' definitions or to programs.
    Result<void> read_values(MapSpec &map, const btf::Member &member, bool inner) const {
        const bool of_maps = map.type == number(MapType::ARRAY_OF_MAPS) || map.type == number(MapType::HASH_OF_MAPS);
        if (inner) return bad("the maps in a map of maps can't hold maps");
        if (!of_maps && map.type != number(MapType::PROG_ARRAY))
            return bad("it has `values`, and holds neither maps nor programs");
        TRY(set_size(map.value_size, 4, "value"));
        const btf::Type array = TRY(types_.resolve(member.type));
        if (array.kind != btf::Kind::array) return bad("`values` isn't an array");
        const btf::Type pointer = TRY(types_.resolve(types_.array(array).element));
        if (pointer.kind != btf::Kind::ptr) return bad("`values` isn't an array of pointers");
        if (!of_maps) return {};
        uint32_t ignored = 0;
        Definition definition(image_, map_);
        map.inner = std::make_shared<MapSpec>(TRY(definition.read(pointer.size_or_type, ignored, true)));
        return {};
    }

    const Image &image_;
    const btf::Btf &types_;
    std::string_view map_;
    uint32_t size_ = 0;
};

Result<void> read_typed_maps(Image &image, ObjectSpec &spec) {
    const elf::Section &section = *image.maps;
    const Image::Datasec *datasec = image.find_datasec(".maps");
    if (!datasec) return image.bad(section, 0, "the section has no types in .BTF; was the object compiled with -g?");
    const btf::Type types = TRY(image.types->type(datasec->id));
    for (uint32_t i = 0; i < types.vlen; ++i) {
        const btf::VarSecinfo place = TRY(image.types->secinfo(types, i));
        const btf::Type variable = TRY(image.types->type(place.type));
        if (variable.kind != btf::Kind::var || variable.name.empty() || variable.name.size() > Image::kLongestName)
            return image.bad(section, place.offset, "the name of a map has {} characters, and 1 to {} are possible",
                             variable.name.size(), Image::kLongestName);
        if (image.types->var_linkage(variable) == kExtern)
            return image.bad(section, place.offset,
                             "map {} is defined in another object; link the two objects first (rawbpf link)", variable.name);
        if (uint64_t(place.offset) + place.size > section.size)
            return image.bad(section, place.offset, "map {} of {} bytes is past the section's end", variable.name, place.size);
        if (!image.map_places.empty() && place.offset < image.map_places.back().offset + image.map_places.back().size)
            return image.bad(section, place.offset, "map {} overlaps another", variable.name);
        Image::MapPlace where{place.offset, place.size, static_cast<uint32_t>(spec.maps.size())};
        Definition definition(image, variable.name);
        spec.maps.push_back(TRY(definition.read(variable.size_or_type, where.values)));
        if (definition.size() > place.size)
            return image.bad(section, place.offset, "map {}: it has {} bytes, but its definition has {}", variable.name,
                             place.size, definition.size());
        image.map_places.push_back(where);
    }
    return {};
}

/// struct bpf_map_def { u32 type, key_size, value_size, max_entries, map_flags, ...; }: all of one size, which the file doesn't
/// say. Nine words are iproute2's bpf_elf_map, with id, pinning, inner_id and inner_idx behind; of those only pinning is served
/// (one name space, whichever of tc's two is asked for).
Result<void> read_legacy_maps(Image &image, ObjectSpec &spec) {
    constexpr uint64_t kFields = 5, kWord = 4, kElfMapWords = 9, kId = 5, kPinning = 6;
    const elf::Section &section = *image.legacy_maps;
    std::vector<std::pair<uint64_t, std::string_view>> found;
    for (const elf::Symbol &symbol : image.symbols)
        if (symbol.section == section.index && symbol.type != STT_SECTION && !symbol.name.empty())
            found.emplace_back(symbol.value, symbol.name);
    if (found.empty()) return {};
    stable_sort(found);
    const uint64_t size = section.size / found.size();
    if (size < kFields * kWord || section.size % found.size())
        return image.bad(section, 0, "{} maps in {} bytes can't be definitions of one size", found.size(), section.size);
    const Bytes bytes = image.elf.contents(section);
    for (size_t i = 0; i < found.size(); ++i) {
        const uint64_t offset = found[i].first; // no structured binding: clang 14 can't capture one
        const std::string_view name = found[i].second;
        if (offset != i * size) return image.bad(section, offset, "map {} isn't where definition {} starts", name, i);
        auto word = [&](uint64_t index) { return load<uint32_t>(bytes.data() + offset + index * kWord); };
        const bool iproute2 = size == kElfMapWords * kWord;
        for (uint64_t extra = kFields; extra < size / kWord; ++extra)
            if (word(extra) != 0 && !(iproute2 && (extra == kId || extra == kPinning)))
                return image.bad(section, offset + extra * kWord,
                                 "map {} uses a field beyond map_flags (loaders disagree on what it means); define it in .maps",
                                 name);
        MapSpec map;
        map.name = name;
        map.type = word(0);
        map.key_size = word(1);
        map.value_size = word(2);
        map.max_entries = word(3);
        map.flags = word(4);
        map.pin_by_name = iproute2 && word(kPinning) != 0;
        image.map_places.push_back({offset, size, static_cast<uint32_t>(spec.maps.size())});
        spec.maps.push_back(std::move(map));
    }
    return {};
}

void add_data_map(const Image &image, ObjectSpec &spec, std::string_view section, uint64_t size, Bytes contents, bool read_only) {
    MapSpec map;
    map.name = data_map_name(spec.name, section);
    map.type = number(MapType::ARRAY);
    map.key_size = 4;
    map.value_size = static_cast<uint32_t>(size);
    map.max_entries = 1;
    const Image::Datasec *datasec = image.find_datasec(section); // .rodata.str1.1 has none
    map.value_type = datasec ? datasec->id : 0;
    map.flags = (read_only ? kReadOnlyProg : 0) | (datasec && datasec->has_global ? kMmapable : 0);
    map.contents.assign(contents.begin(), contents.end());
    map.freeze = read_only;
    map.data_section = section;
    spec.maps.push_back(std::move(map));
}

/// The arena, and the initial values of the variables in it.
Result<void> read_arena(Image &image, ObjectSpec &spec) {
    for (uint32_t i = 0; i < spec.maps.size(); ++i) {
        if (spec.maps[i].type != number(MapType::ARENA)) continue;
        if (image.arena_map != Image::kNone)
            return fail(Errc::bad_input, "{}: maps {} and {} are both arenas; an object can have one", image.name,
                        spec.maps[image.arena_map].name, spec.maps[i].name);
        image.arena_map = i;
    }
    if (!image.arena) return {};
    if (image.arena_map == Image::kNone)
        return image.bad(*image.arena, 0, "the object has variables in an arena, but no map of that type");
    if (image.arena->size > kLargestArena)
        return image.bad(*image.arena, 0, "the variables in an arena have {:#x} bytes, and {:#x} are the most", image.arena->size,
                         kLargestArena);
    MapSpec &map = spec.maps[image.arena_map];
    const Bytes bytes = image.elf.contents(*image.arena);
    map.contents.assign(bytes.begin(), bytes.end());
    map.contents.resize(std::min<uint64_t>(image.arena->size, kLargestArena));
    return {};
}

Result<void> read_data_maps(Image &image, ObjectSpec &spec) {
    image.map_of_section.assign(image.roles.size(), Image::kNone);
    for (const elf::Section &section : image.elf.sections()) {
        const Role role = image.roles[section.index];
        if (role != Role::rodata && role != Role::data && role != Role::bss) continue;
        if (section.size > INT32_MAX) return image.bad(section, 0, "a data section of {:#x} bytes can't be a map", section.size);
        image.map_of_section[section.index] = static_cast<uint32_t>(spec.maps.size());
        add_data_map(image, spec, section.name, section.size, image.elf.contents(section), role == Role::rodata);
    }
    for (const ExternSpec &external : spec.externs) {
        if (external.section != ".kconfig") continue;
        const btf::Type section = TRY(image.types->type(image.find_datasec(".kconfig")->id));
        image.kconfig_map = static_cast<uint32_t>(spec.maps.size());
        add_data_map(image, spec, ".kconfig", section.size_or_type, {}, true);
        break;
    }
    return {};
}

} // namespace

Result<void> read_maps(Image &image, ObjectSpec &spec) {
    if (image.maps && image.legacy_maps)
        return image.bad(*image.legacy_maps, 0, "the object has a section .maps and a section maps; define all maps in .maps");
    if (image.maps && image.maps->size > 0) TRY(read_typed_maps(image, spec));
    if (image.legacy_maps) TRY(read_legacy_maps(image, spec));
    TRY(read_arena(image, spec));
    return read_data_maps(image, spec);
}

Result<void> read_map_slots(Image &image, ObjectSpec &spec) {
    constexpr uint64_t kPointer = 8; // in BPF, whatever the host
    if (!image.maps) return {};
    for (const elf::Section *relocations : image.relocations) {
        if (relocations->info != image.maps->index) continue;
        for (const elf::Relocation &relocation : TRY(image.elf.relocations(*relocations))) {
            const Image::MapPlace *place = image.find_map(relocation.offset, true);
            if (!place || relocation.symbol >= image.symbols.size())
                return image.bad(*image.maps, relocation.offset, "a relocation is outside of all maps, or has no symbol");
            const elf::Symbol &symbol = image.symbols[relocation.symbol];
            MapSpec &map = spec.maps[place->map];
            const uint64_t in_values = relocation.offset - place->offset - place->values;
            if (place->values == 0 || relocation.offset - place->offset < place->values || in_values % kPointer)
                return image.bad(*image.maps, relocation.offset, "map {}: a relocation isn't at a slot of `values`", map.name);

            MapSpec::Slot slot{static_cast<uint32_t>(in_values / kPointer), {}};
            if (map.type == number(MapType::PROG_ARRAY)) {
                const Code *code = find_code(image.functions, symbol.section, symbol.value / sizeof(Insn));
                if (!code || code->start * sizeof(Insn) != symbol.value ||
                    image.uses[code - image.functions.data()] == Image::Use::callable)
                    return image.bad(*image.maps, relocation.offset, "map {}: slot {}: {} isn't a program", map.name, slot.index,
                                     symbol.name);
                slot.target = code->name;
            } else {
                const Image::MapPlace *target = symbol.section == image.maps->index ? image.find_map(symbol.value) : nullptr;
                if (!target)
                    return image.bad(*image.maps, relocation.offset, "map {}: slot {}: {} isn't a map", map.name, slot.index,
                                     symbol.name);
                slot.target = spec.maps[target->map].name;
            }
            map.slots.push_back(std::move(slot));
        }
    }
    for (MapSpec &map : spec.maps)
        stable_sort(map.slots, [](const MapSpec::Slot &a, const MapSpec::Slot &b) { return a.index < b.index; });
    return {};
}

} // namespace rawbpf::inline v0::object
