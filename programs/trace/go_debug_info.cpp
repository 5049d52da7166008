// A reader of DWARF 4 and 5 for exactly one question: the parameters and results of some Go functions.
//
//      unit      | length | version ... | entry, entry ...                      Go: a unit a package
//      entry     | code | values as .debug_abbrev says for that code | children, if it has any ... 0
//
//      subprogram  low_pc 0x48f2c0, name "main.(*srv).Handle"
//        formal_parameter  name "s", type ->                                    in the order of the source
//        formal_parameter  name "~r0", variable_parameter 1, type ->            a result
//
// A function that was inlined somewhere has its names in an entry of its own, which the one with the address refers to
// (abstract_origin). Types of strings, slices and interfaces are structures; DW_AT_go_kind says what they are in Go.
//
// The whole of .debug_info is walked once, value by value: nothing in it says where a function's entry is. All offsets come from
// the file and are checked; what a value by itself can nest in is bounded.
//
// Source: DWARF 4 and 5, 7.5; Go's cmd/internal/dwarf and cmd/link/internal/ld/dwarf.go (attributes from 0x2900 on).
#include "programs/trace/go_debug_info.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "programs/trace/dwarf_numbers.h"
#include "programs/trace/go_location.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/elf/compressed.h"

namespace rawbpf::inline v0::trace {
namespace {

using Kind = GoType::Kind;

constexpr size_t kMostBytes = size_t{1} << 30;
constexpr int kDeepest = 12;
constexpr size_t kMostFields = 256, kMostParameters = 64;
constexpr uint64_t kMostCode = 1 << 16;

enum Tag : uint16_t { array = 0x01, formal_parameter = 0x05, member = 0x0d, subrange = 0x21, subprogram = 0x2e };
enum At : uint16_t {
    at_location = 0x02,
    at_name = 0x03,
    at_byte_size = 0x0b,
    at_low_pc = 0x11,
    at_upper_bound = 0x2f,
    at_abstract_origin = 0x31,
    at_count = 0x37,
    at_data_member_location = 0x38,
    at_type = 0x49,
    at_variable_parameter = 0x4b,
    at_str_offsets_base = 0x72,
    at_addr_base = 0x73,
    at_go_kind = 0x2900,
    at_go_elem = 0x2902,
};
// reflect.Kind
enum GoKindNumber : uint8_t {
    go_bool = 1,
    go_int = 2,
    go_int64 = 6,
    go_uint64 = 11,
    go_uintptr = 12,
    go_float64 = 14,
    go_complex64 = 15,
    go_complex128 = 16,
    go_array = 17,
    go_interface = 20,
    go_slice = 23,
    go_string = 24,
    go_struct = 25,
    go_unsafe_pointer = 26,
};

struct Attribute {
    uint16_t name, form;
    int64_t implicit;
};
struct Abbreviation {
    uint16_t tag = 0; // 0: there is none of that code
    bool children = false;
    std::vector<Attribute> attributes;
};
using Abbreviations = std::vector<Abbreviation>; // by code

struct Unit {
    uint64_t begin = 0, entries = 0, end = 0; // offsets in .debug_info
    uint16_t version = 4;
    uint8_t address_size = 8, offset_size = 4;
    uint64_t string_base = 0, address_base = 0, address = 0;
    const Abbreviations *abbreviations = nullptr;
};

// The values of an entry that are of use here.
struct Entry {
    uint16_t tag = 0; // 0: the end of a list of children
    bool children = false, is_result = false, has_address = false;
    std::string_view name;
    uint64_t address = 0, size = 0, count = 0, offset = 0, kind = 0; // offset: of a member, in its structure
    uint64_t begin = 0;                                              // itself
    uint64_t type = 0, origin = 0, element = 0;                      // entries, by offset in .debug_info; 0: none
    uint64_t location = 0;                                           // in a list of locations; with `expression` not
    Bytes expression;
    bool has_location = false;
    uint64_t next = 0; // the entry behind it, or its first child
};

class Reader {
  public:
    explicit Reader(const elf::Elf &elf) : elf_(elf) {}

    Result<std::unordered_map<uint64_t, GoSignature>> read(std::vector<uint64_t> addresses) {
        std::sort(addresses.begin(), addresses.end());
        TRY(load_sections());
        TRY(read_units());
        std::unordered_map<uint64_t, GoSignature> out;
        for (const Unit &unit : units_) {
            for (uint64_t at = unit.entries; at < unit.end;) {
                const Entry entry = TRY(read_entry(unit, at));
                at = entry.next;
                if (entry.tag != subprogram || !entry.has_address) continue;
                if (!std::binary_search(addresses.begin(), addresses.end(), entry.address)) continue;
                // One function whose entry can't be read doesn't hide the others.
                if (Result<GoSignature> signature = read_signature(unit, entry))
                    out.emplace(entry.address, std::move(*signature));
            }
            if (out.size() == addresses.size()) break;
        }
        return out;
    }

  private:
    // --- Sections

    Result<Bytes> section(std::string_view name) {
        const elf::Section *found = elf_.find_section("." + std::string(name));
        if (!found) found = elf_.find_section(".z" + std::string(name));
        if (!found) return Bytes{};
        std::optional<std::string> unpacked = TRY(elf::decompressed(elf_, *found, kMostBytes));
        if (!unpacked) return elf_.contents(*found);
        kept_.push_back(std::make_unique<std::string>(std::move(*unpacked)));
        return bytes_of(*kept_.back());
    }
    Result<void> load_sections() {
        if (!elf_.is_64() || elf_.big_endian()) return fail(Errc::unsupported, "{}: its DWARF isn't read", elf_.name());
        info_ = TRY(section("debug_info"));
        abbrev_ = TRY(section("debug_abbrev"));
        if (info_.empty() || abbrev_.empty()) return fail(Errc::not_found, "{} has no DWARF", elf_.name());
        str_ = TRY(section("debug_str"));
        line_str_ = TRY(section("debug_line_str"));
        addr_ = TRY(section("debug_addr"));
        str_offsets_ = TRY(section("debug_str_offsets"));
        loc_ = TRY(section("debug_loc"));
        loclists_ = TRY(section("debug_loclists"));
        return {};
    }

    // --- Numbers and texts

    [[nodiscard]] Error broken(uint64_t at) const {
        return make_error(Errc::bad_input, format("{}: .debug_info: offset {:#x}: not what DWARF has there", elf_.name(), at));
    }
    static std::string_view text(Bytes from, uint64_t at) {
        if (at >= from.size()) return {};
        const char *begin = reinterpret_cast<const char *>(from.data()) + at;
        return {begin, strnlen(begin, from.size() - at)};
    }

    // --- Units and abbreviations

    Result<void> read_units() {
        for (uint64_t at = 0; at < info_.size();) {
            Unit unit;
            unit.begin = at;
            uint64_t length = 0, value = 0, abbreviations = 0;
            if (!read_number(info_, at, 4, length)) return Unexpected(broken(at));
            if (length == 0xffffffff) {
                unit.offset_size = 8;
                if (!read_number(info_, at, 8, length)) return Unexpected(broken(at));
            }
            if (length > info_.size() - at) return Unexpected(broken(unit.begin));
            unit.end = at + length;
            bool good = read_number(info_, at, 2, value);
            unit.version = static_cast<uint16_t>(value);
            uint64_t kind = 1; // DW_UT_compile
            if (unit.version >= 5) {
                good = good && read_number(info_, at, 1, kind) && read_number(info_, at, 1, value);
                unit.address_size = static_cast<uint8_t>(value);
                good = good && read_number(info_, at, unit.offset_size, abbreviations);
            } else {
                good = good && read_number(info_, at, unit.offset_size, abbreviations) && read_number(info_, at, 1, value);
                unit.address_size = static_cast<uint8_t>(value);
            }
            if (!good || at > unit.end) return Unexpected(broken(unit.begin));
            unit.entries = at;
            at = unit.end;
            if (unit.version < 2 || unit.version > 5 || kind != 1 || unit.address_size > 8) continue; // nothing of Go's
            unit.abbreviations = TRY(abbreviations_at(abbreviations));
            TRY(read_bases(unit));
            units_.push_back(unit);
        }
        return {};
    }

    Result<const Abbreviations *> abbreviations_at(uint64_t offset) {
        const auto [found, is_new] = abbreviations_.try_emplace(offset);
        Abbreviations &out = found->second;
        if (!is_new) return &out;
        for (uint64_t at = offset;;) {
            uint64_t code = 0, tag = 0, children = 0;
            if (!read_leb(abbrev_, at, code)) return Unexpected(broken(offset));
            if (code == 0) return &out;
            if (code > kMostCode || !read_leb(abbrev_, at, tag) || !read_number(abbrev_, at, 1, children))
                return Unexpected(broken(offset));
            if (out.size() <= code) out.resize(code + 1);
            Abbreviation &one = out[code];
            one.tag = static_cast<uint16_t>(tag);
            one.children = children != 0;
            one.attributes.clear();
            for (;;) {
                uint64_t name = 0, form = 0, implicit = 0;
                if (!read_leb(abbrev_, at, name) || !read_leb(abbrev_, at, form)) return Unexpected(broken(offset));
                if (form == 0x21 && !read_leb(abbrev_, at, implicit, true))
                    return Unexpected(broken(offset)); // DW_FORM_implicit_const
                if (name == 0 && form == 0) break;
                one.attributes.push_back(
                    {static_cast<uint16_t>(name), static_cast<uint16_t>(form), static_cast<int64_t>(implicit)});
            }
        }
    }

    // What indexes of the unit count from: its first entry says so.
    Result<void> read_bases(Unit &unit) {
        uint64_t at = unit.entries, code = 0;
        if (at >= unit.end || !read_leb(info_, at, code) || code >= unit.abbreviations->size()) return {};
        for (const Attribute &attribute : (*unit.abbreviations)[code].attributes) {
            const Value value = TRY(read_value(unit, attribute.form, attribute.implicit, at));
            if (attribute.name == at_str_offsets_base) unit.string_base = value.number;
            if (attribute.name == at_addr_base) unit.address_base = value.number;
            if (attribute.name == at_low_pc) unit.address = value.number;
        }
        return {};
    }

    const Unit *unit_of(uint64_t offset) const {
        auto behind =
            std::upper_bound(units_.begin(), units_.end(), offset, [](uint64_t at, const Unit &unit) { return at < unit.begin; });
        if (behind == units_.begin()) return nullptr;
        --behind;
        return offset >= behind->entries && offset < behind->end ? &*behind : nullptr;
    }

    // --- Entries

    struct Value {
        uint64_t number = 0;
        std::string_view text;
        Bytes block;
    };
    // Forms, as DWARF 5, 7.5.6 numbers them.
    Result<Value> read_value(const Unit &unit, uint64_t form, int64_t implicit, uint64_t &at) const {
        Value out;
        uint64_t size = 0;
        const uint64_t begin = at;
        bool good = true;
        const auto fixed = [&](size_t bytes) { good = read_number(info_, at, bytes, out.number); };
        const auto skip = [&](uint64_t bytes) {
            good = good && bytes <= info_.size() - at;
            if (!good) return;
            out.block = info_.subspan(at, bytes);
            at += bytes;
        };
        // A number in so many bytes, or in as many as it needs, and what the table has at it.
        const auto indexed = [&](bool by_leb, size_t bytes, Bytes table, uint64_t base, size_t width) {
            good = by_leb ? read_leb(info_, at, out.number) : read_number(info_, at, bytes, out.number);
            uint64_t place = base + out.number * width, value = 0;
            if (good && read_number(table, place, width, value))
                out.number = value;
            else
                out.number = UINT64_MAX;
        };
        switch (form) {
        case 0x01: fixed(unit.address_size); break;                           // addr
        case 0x03: good = read_number(info_, at, 2, size), skip(size); break; // block2
        case 0x04: good = read_number(info_, at, 4, size), skip(size); break; // block4
        case 0x05: fixed(2); break;                                           // data2
        case 0x06: fixed(4); break;                                           // data4
        case 0x07: fixed(8); break;                                           // data8
        case 0x08:                                                            // string
            out.text = text(info_, at);
            skip(out.text.size() + 1);
            break;
        case 0x09:
        case 0x18: good = read_leb(info_, at, size), skip(size); break;       // block, exprloc
        case 0x0a: good = read_number(info_, at, 1, size), skip(size); break; // block1
        case 0x0b:
        case 0x0c: fixed(1); break;                                     // data1, flag
        case 0x0d: good = read_leb(info_, at, out.number, true); break; // sdata
        case 0x0e:                                                      // strp
            fixed(unit.offset_size);
            out.text = text(str_, out.number);
            break;
        case 0x0f:
        case 0x22:
        case 0x23: good = read_leb(info_, at, out.number); break;                          // udata, loclistx, rnglistx
        case 0x10: fixed(unit.version == 2 ? unit.address_size : unit.offset_size); break; // ref_addr
        case 0x11: fixed(1), out.number += unit.begin; break;                              // ref1 to ref8, ref_udata
        case 0x12: fixed(2), out.number += unit.begin; break;
        case 0x13: fixed(4), out.number += unit.begin; break;
        case 0x14: fixed(8), out.number += unit.begin; break;
        case 0x15: good = read_leb(info_, at, out.number), out.number += unit.begin; break;
        case 0x16: { // indirect
            uint64_t other = 0;
            if (!read_leb(info_, at, other) || other == 0x16 || other == 0x21) return Unexpected(broken(begin));
            return read_value(unit, other, 0, at);
        }
        case 0x17:
        case 0x1d: fixed(unit.offset_size); break; // sec_offset, strp_sup
        case 0x19: out.number = 1; break;          // flag_present
        case 0x1a:
        case 0x25:
        case 0x26:
        case 0x27:
        case 0x28: // strx, strx1 to strx4
            indexed(form == 0x1a, form - 0x24, str_offsets_, unit.string_base, unit.offset_size);
            out.text = text(str_, out.number);
            break;
        case 0x1b:
        case 0x29:
        case 0x2a:
        case 0x2b:
        case 0x2c: // addrx, addrx1 to addrx4
            indexed(form == 0x1b, form - 0x28, addr_, unit.address_base, unit.address_size);
            break;
        case 0x1c: fixed(4); break; // ref_sup4
        case 0x1e: skip(16); break; // data16
        case 0x1f:                  // line_strp
            fixed(unit.offset_size);
            out.text = text(line_str_, out.number);
            break;
        case 0x20:
        case 0x24: fixed(8); break; // ref_sig8, ref_sup8
        case 0x21: out.number = static_cast<uint64_t>(implicit); break;
        default: good = false;
        }
        if (!good || at > unit.end) return Unexpected(broken(begin));
        return out;
    }

    Result<Entry> read_entry(const Unit &unit, uint64_t at) const {
        Entry out;
        const uint64_t begin = out.begin = at;
        uint64_t code = 0;
        if (!read_leb(info_, at, code) || at > unit.end) return Unexpected(broken(begin));
        out.next = at;
        if (code == 0) return out;
        if (code >= unit.abbreviations->size() || (*unit.abbreviations)[code].tag == 0) return Unexpected(broken(begin));
        const Abbreviation &how = (*unit.abbreviations)[code];
        out.tag = how.tag;
        out.children = how.children;
        for (const Attribute &attribute : how.attributes) {
            const Value value = TRY(read_value(unit, attribute.form, attribute.implicit, at));
            switch (attribute.name) {
            case at_name: out.name = value.text; break;
            case at_location:
                out.has_location = attribute.form != 0x22; // an index: Go has none
                out.location = value.number;
                out.expression = value.block;
                break;
            case at_byte_size: out.size = value.number; break;
            case at_low_pc:
                out.address = value.number;
                out.has_address = true;
                break;
            case at_upper_bound: out.count = value.number + 1; break;
            case at_count: out.count = value.number; break;
            case at_data_member_location: out.offset = value.number; break;
            case at_type: out.type = value.number; break;
            case at_variable_parameter: out.is_result = value.number != 0; break;
            case at_abstract_origin: out.origin = value.number; break;
            case at_go_kind: out.kind = value.number; break;
            case at_go_elem: out.element = value.number; break;
            default: break;
            }
        }
        out.next = at;
        return out;
    }
    Result<Entry> entry_at(uint64_t offset) const {
        const Unit *unit = unit_of(offset);
        if (!unit) return Unexpected(broken(offset));
        Entry out = TRY(read_entry(*unit, offset));
        if (out.tag == 0) return Unexpected(broken(offset));
        return out;
    }

    // see(child) for each of an entry's own children; false: enough.
    template <class See> Result<void> each_child(const Unit &unit, const Entry &parent, See &&see) const {
        if (!parent.children) return {};
        int depth = 1;
        for (uint64_t at = parent.next; at < unit.end;) {
            const Entry child = TRY(read_entry(unit, at));
            at = child.next;
            if (child.tag == 0) {
                if (--depth == 0) return {};
                continue;
            }
            if (depth == 1 && !see(child)) return {};
            depth += child.children;
        }
        return {};
    }

    // --- Functions

    Result<GoSignature> read_signature(const Unit &unit, const Entry &function) {
        const Unit *where = &unit;
        Entry from = function;
        if (function.origin != 0) { // it has the names, and those parameters that nobody reads as well
            where = unit_of(function.origin);
            if (!where) return Unexpected(broken(function.origin));
            from = TRY(entry_at(function.origin));
        }
        std::vector<Entry> found;
        TRY(each_child(*where, from, [&](const Entry &child) {
            if (child.tag == formal_parameter) found.push_back(child);
            return found.size() < kMostParameters;
        }));
        std::unordered_map<uint64_t, GoVariable::Known> known; // by the entry that has the name
        TRY(each_child(unit, function, [&](const Entry &child) {
            if (child.tag == formal_parameter)
                if (const std::optional<GoVariable::Known> word = known_at(unit, child, function.address))
                    known.emplace(child.origin ? child.origin : child.begin, *word);
            return true;
        }));
        GoSignature out;
        for (Entry &entry : found) {
            const auto place = known.find(entry.begin);
            if (entry.type == 0 && entry.origin != 0) {
                const bool is_result = entry.is_result;
                entry = TRY(entry_at(entry.origin));
                entry.is_result |= is_result;
            }
            GoVariable variable;
            variable.name = std::string(entry.name);
            if (place != known.end() && !entry.is_result) variable.known = place->second;
            variable.type = TRY(type_at(entry.type, 0));
            if (variable.type.kind == Kind::unknown) return Unexpected(broken(entry.type));
            (entry.is_result ? out.results : out.parameters).push_back(std::move(variable));
        }
        return out;
    }

    [[nodiscard]] std::optional<GoVariable::Known> known_at(const Unit &unit, const Entry &parameter, uint64_t address) const {
        if (!parameter.has_location) return std::nullopt;
        Bytes expression = parameter.expression;
        const bool always = expression.data() != nullptr;
        if (!always)
            expression =
                location_at(unit.version >= 5 ? loclists_ : loc_, parameter.location, address, unit.address, unit.version >= 5);
        if (const std::optional<uint32_t> at = place_on_stack(expression, elf_.machine()))
            return GoVariable::Known{{GoWord::In::stack, 8, *at}, 0, always};
        return first_register(expression, elf_.machine());
    }

    // --- Types

    Result<GoType> type_at(uint64_t offset, int depth) {
        if (depth > kDeepest) return Unexpected(broken(offset));
        const Unit *unit = unit_of(offset);
        if (!unit) return Unexpected(broken(offset));
        const Entry entry = TRY(entry_at(offset));
        GoType out;
        out.name = std::string(entry.name);
        out.size = entry.size ? entry.size : 8;
        switch (entry.kind) {
        case 0:
            if (entry.type != 0 && entry.tag != 0x0f) { // a name for another
                GoType inner = TRY(type_at(entry.type, depth + 1));
                inner.name = out.name;
                return inner;
            }
            out.kind = Kind::address; // pointers; C's types, of cgo, as their first word
            out.size = 8;
            return out;
        case go_bool: out.kind = Kind::boolean; return out;
        case go_uintptr:
        case go_unsafe_pointer: out.kind = Kind::address; return out;
        case go_array: {
            out.kind = Kind::array;
            TRY(each_child(*unit, entry, [&](const Entry &child) {
                if (child.tag == subrange) out.count = child.count;
                return true;
            }));
            out.element = std::make_shared<GoType>(TRY(type_at(entry.type, depth + 1)));
            out.size = entry.size;
            if (out.count != 0 && out.element->size > UINT32_MAX / out.count) return Unexpected(broken(offset));
            return out;
        }
        case go_interface: {
            out.kind = Kind::interface;
            out.size = 16;
            out.has_methods = !is_empty_interface(entry.type);
            return out;
        }
        case go_slice:
            out.kind = Kind::slice;
            out.size = 24;
            out.element = std::make_shared<GoType>(element_at(entry.element));
            return out;
        case go_string:
            out.kind = Kind::text;
            out.size = 16;
            return out;
        case go_struct: return structure(*unit, entry, std::move(out), depth);
        default: break;
        }
        if (entry.kind >= go_int && entry.kind <= go_uint64) {
            out.kind = Kind::integer;
            out.is_signed = entry.kind <= go_int64;
        } else if (entry.kind <= go_float64) {
            out.kind = Kind::real;
        } else if (entry.kind == go_complex64 || entry.kind == go_complex128) {
            out.kind = Kind::complex;
        } else { // channels, functions, maps, pointers
            out.kind = Kind::address;
            out.size = 8;
        }
        if (out.size > 16) return Unexpected(broken(offset));
        return out;
    }

    Result<GoType> structure(const Unit &unit, const Entry &entry, GoType out, int depth) {
        out.kind = Kind::structure;
        out.size = entry.size;
        std::vector<Entry> members;
        TRY(each_child(unit, entry, [&](const Entry &child) {
            if (child.tag == member) members.push_back(child);
            return members.size() <= kMostFields;
        }));
        if (members.size() > kMostFields) return Unexpected(broken(entry.type));
        for (const Entry &one : members)
            out.fields.push_back({std::string(one.name), TRY(type_at(one.type, depth + 1)), one.offset});
        return out;
    }

    // Of a slice: enough to show plain ones. Structures, which may have slices of themselves, stay unknown.
    GoType element_at(uint64_t offset) {
        GoType unknown;
        uint64_t at = offset;
        for (int i = 0; i < kDeepest; ++i) {
            const Result<Entry> entry = unit_of(at) ? entry_at(at) : Result<Entry>(Unexpected(broken(at)));
            if (!entry) return unknown;
            if (entry->kind == go_struct || entry->kind == go_array || entry->kind == go_slice || entry->kind == go_interface)
                return unknown;
            if (entry->kind != 0 || entry->type == 0 || entry->tag == 0x0f) {
                Result<GoType> type = type_at(at, kDeepest - 1);
                return type ? std::move(*type) : unknown;
            }
            at = entry->type;
        }
        return unknown;
    }

    [[nodiscard]] bool is_empty_interface(uint64_t offset) const {
        for (int i = 0; i < kDeepest && offset != 0; ++i) {
            const Result<Entry> entry = entry_at(offset);
            if (!entry) return false;
            if (entry->name == "runtime.eface") return true;
            if (entry->name == "runtime.iface") return false;
            offset = entry->type;
        }
        return false;
    }

    const elf::Elf &elf_;
    std::vector<std::unique_ptr<std::string>> kept_; // what was compressed
    Bytes info_, abbrev_, str_, line_str_, addr_, str_offsets_, loc_, loclists_;
    std::vector<Unit> units_;
    std::map<uint64_t, Abbreviations> abbreviations_; // by offset
};

} // namespace

Result<std::unordered_map<uint64_t, GoSignature>> read_go_signatures(const elf::Elf &elf,
                                                                     const std::vector<uint64_t> &addresses) {
    return Reader(elf).read(addresses);
}

} // namespace rawbpf::inline v0::trace
