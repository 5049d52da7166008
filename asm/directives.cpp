// Lines that begin with a dot: everything of a unit that isn't an instruction.
//
//      .license "GPL"
//      .const LIMIT = 4 * 1024
//      .struct event                       laid out as C would: event.pid is 0, event.comm is 4, sizeof(event) is 24
//          pid  u32
//          comm u8[16]
//      .end
//      .map counts hash key u32 value event entries 1024
//      .rodata greeting "hello"            .data total u64 = 1            .bss table u32[256]
//      .program on_tick "perf_event"       .function helper [global 2]    .kfunc bpf_task_release
//      .include "other.asm"                .8byte 0x95
#include <algorithm>

#include "asm/assembling.h"
#include "asm/map_types.h"
#include "asm/nearest.h"
#include "asm/print.h"

namespace rawbpf::inline v0::assembling {

namespace {

constexpr uint64_t kMostBytes = 1u << 24; ///< of a type, and of a section of data
constexpr uint32_t kArrayMap = 2;         // BPF_MAP_TYPE_ARRAY
constexpr size_t kLongestName = 127;

struct Basic {
    std::string_view name;
    uint32_t size;
};
constexpr Basic kBasic[] = {{"u8", 1},  {"u16", 2}, {"u32", 4}, {"u64", 8},  {"s8", 1},
                            {"s16", 2}, {"s32", 4}, {"s64", 8}, {"char", 1}, {"ptr", 8}};

constexpr std::string_view kDirectives[] = {".program", ".function", ".map",     ".data",  ".rodata", ".bss", ".struct",
                                            ".const",   ".license",  ".include", ".kfunc", ".8byte",  ".end"};

} // namespace

bool is_basic_type(std::string_view word) {
    for (const Basic &basic : kBasic)
        if (basic.name == word) return true;
    return false;
}

bool Assembler::new_name(std::string_view name, const char *at, std::string_view what) {
    if (name.empty()) return fail(at, "expected the name of " + std::string(what) + ", found " + found());
    if (name.size() > kLongestName) return fail(at, "a name may have 127 characters");
    auto [old, added] = names_.emplace(name, DefinitionPlace{at, source_});
    if (!added) return fail(at, "there is something called `" + std::string(name) + "` already");
    return true;
}

bool Assembler::constant(std::string_view name, const char *at) {
    Number number = 0;
    if (!this->number(number)) return false;
    if (name.find('.') != std::string_view::npos) return fail(at, "a constant's name has no dot");
    if (!new_name(name, at, "a constant")) return false;
    constants_.emplace(name, number);
    return true;
}

/// u32, u8[16], a struct, a struct[4].
bool Assembler::type(TypeRef &out) {
    skip_space();
    const char *at = p_;
    const std::string_view word = name();
    if (word.empty()) return expected("a type, like u32, u8[16] or a struct");
    out.name = word;
    uint64_t size = 0;
    for (const Basic &basic : kBasic)
        if (basic.name == word) size = out.alignment = basic.size;
    if (size == 0) {
        auto known = types_.find(word);
        if (known == types_.end()) {
            Nearest near(word);
            for (const Basic &basic : kBasic) near.offer(basic.name);
            for (auto &[other, index] : types_) near.offer(other);
            return fail(at, "there is no type `" + std::string(word) + "`", near.hint());
        }
        const StructDef &def = out_.unit.types[known->second];
        size = def.size;
        out.alignment = def.alignment;
    }
    if (eat('[')) {
        int64_t count = 0;
        if (!number(count, 1, static_cast<int64_t>(kMostBytes), "the length of an array") || !need(']')) return false;
        out.count = static_cast<uint32_t>(count);
        size *= static_cast<uint64_t>(count);
    }
    if (size > kMostBytes) return fail(at, "the type has more than 16 MiB");
    out.size = static_cast<uint32_t>(size);
    return true;
}

bool Assembler::struct_directive() {
    skip_space();
    const char *at = p_;
    const std::string_view struct_name = name();
    if (struct_name.find('.') != std::string_view::npos) return fail(at, "a struct's name has no dot");
    for (const Basic &basic : kBasic)
        if (basic.name == struct_name) return fail(at, "`" + std::string(struct_name) + "` is a type already");
    if (!new_name(struct_name, at, "a struct")) return false;
    StructDef def;
    def.name = struct_name;
    out_.unit.types.push_back(std::move(def));
    open_struct_ = &out_.unit.types.back();
    open_at_ = at;
    return true;
}

/// A member, or `.end`.
bool Assembler::struct_line() {
    const char *at = p_;
    StructDef &def = *open_struct_;
    if (*p_ == '.') {
        const std::string_view word = name();
        if (word != ".end") return fail(at, "expected a member of the struct, or .end, found `" + std::string(word) + "`");
        def.size = (def.size + def.alignment - 1) / def.alignment * def.alignment;
        open_struct_ = nullptr;
        if (def.fields.empty()) return fail(at, "the struct has no members");
        types_.emplace(def.name, static_cast<uint32_t>(out_.unit.types.size() - 1));
        return true;
    }
    const std::string_view member = name();
    if (member.empty() || member.find('.') != std::string_view::npos) {
        p_ = at;
        return expected("a member of the struct, `name type`, or .end");
    }
    TypeRef of;
    if (!type(of)) return false;
    if (!constants_.emplace(def.name + "." + std::string(member), 0).second)
        return fail(at, "the struct has a member `" + std::string(member) + "` already");
    const uint64_t place = (uint64_t{def.size} + of.alignment - 1) / of.alignment * of.alignment;
    if (place + of.size > kMostBytes) return fail(at, "the struct has more than 16 MiB");
    constants_[def.name + "." + std::string(member)] = place;
    def.alignment = std::max(def.alignment, of.alignment);
    def.fields.push_back({std::string(member), of.name, of.count, static_cast<uint32_t>(place)});
    def.size = static_cast<uint32_t>(place) + of.size;
    return true;
}

bool Assembler::map_directive() {
    skip_space();
    const char *at = p_;
    const std::string_view map_name = name();
    if (!new_name(map_name, at, "a map")) return false;
    MapDef map;
    map.name = map_name;
    skip_space();
    const char *kind_at = p_;
    if (is_digit(*p_)) {
        int64_t kind;
        if (!number(kind, 0, UINT32_MAX, "a map's type")) return false;
        map.type = static_cast<uint32_t>(kind);
    } else {
        const std::string_view word = name();
        const int kind = find_map_kind(word);
        if (kind <= 0) {
            Nearest near(word);
            for (std::string_view known : map_kind_names().subspan(1)) near.offer(known);
            return fail(kind_at,
                        word.empty() ? "expected the map's type, like hash or ringbuf"
                                     : "there is no type of map `" + std::string(word) + "`",
                        near.hint());
        }
        map.type = static_cast<uint32_t>(kind);
    }
    auto size_of = [&](uint32_t &size, std::string &type_name) {
        skip_space();
        if (is_digit(*p_)) {
            int64_t bytes;
            if (!number(bytes, 0, UINT32_MAX, "a size")) return false;
            size = static_cast<uint32_t>(bytes);
            return true;
        }
        TypeRef of;
        if (!type(of)) return false;
        size = of.size;
        type_name = of.count == 0 ? of.name : of.name + "[" + std::to_string(of.count) + "]";
        return true;
    };
    bool entries_given = false;
    while (!at_end()) {
        const char *word_at = p_;
        const std::string_view word = name();
        eat('=');
        int64_t value = 0;
        if (word == "key") {
            if (!size_of(map.key_size, map.key_type)) return false;
        } else if (word == "value") {
            if (!size_of(map.value_size, map.value_type)) return false;
        } else if (word == "entries") {
            if (!number(value, 0, UINT32_MAX, "the number of entries")) return false;
            map.max_entries = static_cast<uint32_t>(value);
            entries_given = true;
        } else if (word == "flags") {
            if (!number(value, 0, UINT32_MAX, "flags")) return false;
            map.flags = static_cast<uint32_t>(value);
        } else if (word == "read_only") {
            map.read_only = true;
        } else if (word == "contents") {
            std::string text;
            if (!string(text)) return false;
            map.contents.assign(text.begin(), text.end());
        } else {
            Nearest near(word);
            for (std::string_view known : {"key", "value", "entries", "flags", "read_only", "contents"}) near.offer(known);
            p_ = word_at;
            return expected("key, value, entries, flags, read_only or contents", near.hint());
        }
    }
    if (map.contents.size() > map.value_size) return fail(at, "the contents have more bytes than a value");
    const bool sized_by_cpus = map_kind_name(map.type) == "perf_event_array";
    if (!entries_given && !sized_by_cpus && !is_storage(map.type))
        return fail(at, "the map needs a number of entries",
                    map_kind_name(map.type) == "ringbuf" ? "for a ringbuf it is the size in bytes: entries 262144"
                                                         : "entries 1024");
    if (sized_by_cpus && map.key_size == 0) map.key_size = map.value_size = 4;
    maps_.emplace(map.name, static_cast<uint32_t>(out_.unit.maps.size()));
    out_.unit.maps.push_back(std::move(map));
    return true;
}

/// Numbers between commas, or a text, into so many bytes.
bool Assembler::initial(const TypeRef &of, std::vector<uint8_t> &out) {
    uint32_t each = 0;
    for (const Basic &basic : kBasic)
        if (basic.name == of.name) each = basic.size;
    skip_space();
    if (*p_ == '"') {
        const char *at = p_;
        std::string text;
        if (each != 1 || of.count == 0) return fail(at, "a text goes into an array of u8 or char");
        if (!string(text)) return false;
        if (text.size() > of.size)
            return fail(at, "the text has " + std::to_string(text.size()) + " bytes, the variable " + std::to_string(of.size));
        out.assign(text.begin(), text.end());
        out.resize(of.size);
        return true;
    }
    if (each == 0)
        return fail(p_,
                    "a struct can't have a value here, but an array of bytes can: make it u8[" + std::to_string(of.size) + "]");
    const bool is_signed = of.name[0] == 's';
    const Number most = is_signed ? (Number{1} << (each * 8 - 1)) - 1 : (Number{1} << (each * 8)) - 1;
    do {
        skip_space();
        const char *at = p_;
        Number number = 0;
        if (!this->number(number)) return false;
        if (number > most || number < -(Number{1} << (each * 8 - 1))) return fail(at, "the number doesn't fit in " + of.name);
        if (out.size() + each > of.size) return fail(at, "there are more numbers than the variable has room for");
        for (uint32_t i = 0; i < each; ++i) out.push_back(static_cast<uint8_t>(static_cast<uint64_t>(number) >> (i * 8)));
    } while (eat(','));
    out.resize(of.size);
    return true;
}

bool Assembler::variable(std::string_view section) {
    skip_space();
    const char *at = p_;
    const std::string_view variable_name = name();
    if (!new_name(variable_name, at, "a variable")) return false;
    TypeRef of;
    std::vector<uint8_t> bytes;
    skip_space();
    if (*p_ == '"') {
        std::string text;
        if (section == ".bss") return expected("a type");
        if (!string(text)) return false;
        text += '\0';
        of.name = "char";
        of.size = of.count = static_cast<uint32_t>(text.size());
        bytes.assign(text.begin(), text.end());
    } else {
        if (!type(of)) return false;
        if (eat('=')) {
            if (section == ".bss")
                return fail(p_, "variables in .bss are zero at the start; give values to variables in .data or .rodata");
            if (!initial(of, bytes)) return false;
        }
    }
    auto found = maps_.find(section);
    if (found == maps_.end()) {
        MapDef map;
        map.name = section;
        map.type = kArrayMap;
        map.key_size = 4;
        map.max_entries = 1;
        map.read_only = section == ".rodata";
        found = maps_.emplace(std::string(section), static_cast<uint32_t>(out_.unit.maps.size())).first;
        out_.unit.maps.push_back(std::move(map));
    }
    MapDef &map = out_.unit.maps[found->second];
    Variable variable;
    variable.name = variable_name;
    variable.map = section;
    variable.type = of.name;
    variable.count = of.count;
    variable.size = of.size;
    variable.offset = (map.value_size + of.alignment - 1) / of.alignment * of.alignment;
    if (uint64_t{variable.offset} + of.size > kMostBytes) return fail(at, "the section has more than 16 MiB");
    map.value_size = variable.offset + of.size;
    if (section != ".bss") {
        map.contents.resize(map.value_size);
        std::copy(bytes.begin(), bytes.end(), map.contents.begin() + variable.offset);
    }
    variables_.emplace(variable.name, static_cast<uint32_t>(out_.unit.variables.size()));
    out_.unit.variables.push_back(std::move(variable));
    return true;
}

bool Assembler::eight_bytes() {
    do {
        skip_space();
        const char *at = p_;
        Number number = 0;
        if (!this->number(number)) return false;
        if (number < INT64_MIN || number > Number{UINT64_MAX}) return fail(at, "the number has more than 64 bits");
        const uint64_t raw = static_cast<uint64_t>(number);
        (void)function();
        push({static_cast<uint8_t>(raw), static_cast<uint8_t>(raw >> 8 & 15), static_cast<uint8_t>(raw >> 12 & 15),
              static_cast<int16_t>(static_cast<uint16_t>(raw >> 16)), static_cast<int32_t>(static_cast<uint32_t>(raw >> 32))});
    } while (eat(','));
    return true;
}

bool Assembler::directive(const char *at) {
    const std::string_view word = name();
    if (word == ".program" || word == ".function") {
        skip_space();
        const char *name_at = p_;
        const std::string_view function_name = name();
        std::string section;
        int64_t arguments = -1, pointed = 0;
        skip_space();
        if (word == ".program") {
            section = "socket";
            const char *section_at = p_;
            if (*p_ == '"' && !string(section)) return false;
            if (section.empty()) return fail(name_at, "a program's section can't be empty");
            std::string hint;
            if (options_.section != nullptr && !options_.section(section, hint))
                warn(section_at, "no loader knows the section name `" + section + "`", std::move(hint));
        }
        if (word == ".function" && std::string_view(p_).starts_with("global")) {
            (void)name();
            if (!number(arguments, 0, 5, "the number of arguments")) return false;
            skip_space();
            if (arguments > 0 && *p_ >= '0' && *p_ <= '9' &&
                !number(pointed, 1, INT32_MAX, "the number of bytes that the first argument points at"))
                return false;
        }
        if (!new_name(function_name, name_at, "a function")) return false;
        begin_function(function_name, std::move(section));
        if (arguments >= 0) {
            out_.unit.functions.back().global = true;
            out_.unit.functions.back().arguments = static_cast<uint8_t>(arguments);
            out_.unit.functions.back().pointed = static_cast<uint32_t>(pointed);
        }
        return true;
    }
    if (word == ".map") return map_directive();
    if (word == ".data" || word == ".rodata" || word == ".bss") return variable(word);
    if (word == ".struct") return struct_directive();
    if (word == ".8byte") return eight_bytes();
    if (word == ".include") return include(at);
    if (word == ".const") {
        skip_space();
        const char *name_at = p_;
        const std::string_view constant_name = name();
        if (constant_name.empty()) return expected("the name of a constant");
        eat('=');
        return constant(constant_name, name_at);
    }
    if (word == ".license") {
        std::string license;
        if (!string(license)) return false;
        if (license_given_) return fail(at, "the license is given twice");
        if (license.size() > 127 || license.find('\0') != std::string::npos)
            return fail(at, "a license has up to 127 characters");
        license_given_ = true;
        out_.unit.license = std::move(license);
        return true;
    }
    if (word == ".kfunc") {
        skip_space();
        const char *name_at = p_;
        const std::string_view function_name = name();
        if (!new_name(function_name, name_at, "a kernel function")) return false;
        kernel_functions_.emplace_back(function_name);
        return true;
    }
    Nearest near(word);
    for (std::string_view known : kDirectives) near.offer(known);
    return fail(at, "there is no directive `" + std::string(word) + "`", near.hint());
}

} // namespace rawbpf::inline v0::assembling
