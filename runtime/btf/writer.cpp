// Writing BTF: types one after another, strings once each.
//
// Strings are deduplicated by a hash table of offsets into the string section itself, so a string is stored once and the table
// costs four bytes a slot.
//
// Source: Documentation/bpf/btf.rst; the bytes are drawn in btf.cpp.
#include <algorithm>

#include "runtime/btf/state.h"

namespace rawbpf::inline v0::btf {

namespace {

uint32_t hash_of(std::string_view text) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    return hash;
}

} // namespace

Writer::Writer(const Btf &base) : next_(base.end_id()), strings_start_(base.strings_end()) {
    strings_.clear(); // offset 0 is the base's empty string
}

size_t Writer::slot_of(std::string_view text) const {
    size_t mask = slots_.size() - 1;
    size_t slot = hash_of(text) & mask;
    while (slots_[slot] != 0 && text != strings_.c_str() + (slots_[slot] - 1)) slot = (slot + 1) & mask;
    return slot;
}

uint32_t Writer::string(std::string_view text) {
    if (text.empty()) return 0;
    if ((used_ + 1) * 4 > slots_.size() * 3) {
        std::vector<uint32_t> old(std::max<size_t>(64, slots_.size() * 2));
        old.swap(slots_);
        for (uint32_t offset : old)
            if (offset != 0) slots_[slot_of(strings_.c_str() + (offset - 1))] = offset;
    }
    size_t slot = slot_of(text);
    if (slots_[slot] == 0) {
        slots_[slot] = static_cast<uint32_t>(strings_.size()) + 1;
        strings_.append(text);
        strings_.push_back('\0');
        ++used_;
    }
    return strings_start_ + slots_[slot] - 1;
}

void Writer::put(uint32_t word) {
    Bytes raw = bytes_of_object(word);
    types_.insert(types_.end(), raw.begin(), raw.end());
}

TypeId Writer::add(std::string_view name, Kind kind, bool kind_flag, uint32_t vlen, uint32_t size_or_type) {
    return add_raw(string(name), uint32_t{kind_flag} << 31 | uint32_t{static_cast<uint8_t>(kind)} << 24 | vlen, size_or_type, {});
}

TypeId Writer::add_raw(uint32_t name_offset, uint32_t info, uint32_t size_or_type, Bytes extra) {
    put(name_offset);
    put(info);
    put(size_or_type);
    types_.insert(types_.end(), extra.begin(), extra.end());
    return next_++;
}

TypeId Writer::add_int(std::string_view name, uint32_t size, bool is_signed) {
    return add_int(name, size, IntEncoding{.bits = static_cast<uint8_t>(size * 8), .is_signed = is_signed});
}

TypeId Writer::add_int(std::string_view name, uint32_t size, const IntEncoding &encoding) {
    TypeId id = add(name, Kind::int_, false, 0, size);
    put(uint32_t{encoding.is_signed} << 24 | uint32_t{encoding.is_char} << 25 | uint32_t{encoding.is_bool} << 26 |
        uint32_t{encoding.bit_offset} << 16 | encoding.bits);
    return id;
}

TypeId Writer::add_ptr(TypeId to) { return add({}, Kind::ptr, false, 0, to); }

TypeId Writer::add_array(TypeId element, TypeId index, uint32_t count) {
    TypeId id = add({}, Kind::array, false, 0, 0);
    put(element);
    put(index);
    put(count);
    return id;
}

TypeId Writer::add_struct(std::string_view name, uint32_t size, const std::vector<Field> &fields, bool is_union) {
    bool bitfields = std::any_of(fields.begin(), fields.end(), [](const Field &f) { return f.bit_size != 0; });
    TypeId id = add(name, is_union ? Kind::union_ : Kind::struct_, bitfields, static_cast<uint32_t>(fields.size()), size);
    for (const Field &f : fields) {
        put(string(f.name));
        put(f.type);
        put(bitfields ? f.bit_size << 24 | f.bit_offset : f.bit_offset);
    }
    return id;
}

TypeId Writer::add_enum(std::string_view name, uint32_t size, const std::vector<std::pair<std::string_view, int64_t>> &values,
                        bool is_signed) {
    TypeId id = add(name, size == 8 ? Kind::enum64 : Kind::enum_, is_signed, static_cast<uint32_t>(values.size()), size);
    for (const auto &[value_name, value] : values) {
        put(string(value_name));
        put(static_cast<uint32_t>(value));
        if (size == 8) put(static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32));
    }
    return id;
}

TypeId Writer::add_fwd(std::string_view name, bool is_union) { return add(name, Kind::fwd, is_union, 0, 0); }
TypeId Writer::add_typedef(std::string_view name, TypeId of) { return add(name, Kind::typedef_, false, 0, of); }
TypeId Writer::add_modifier(Kind kind, TypeId of) { return add({}, kind, false, 0, of); }

TypeId Writer::add_func_proto(TypeId returns, const std::vector<std::pair<std::string_view, TypeId>> &params) {
    TypeId id = add({}, Kind::func_proto, false, static_cast<uint32_t>(params.size()), returns);
    for (const auto &[name, type] : params) {
        put(string(name));
        put(type);
    }
    return id;
}

TypeId Writer::add_func(std::string_view name, TypeId proto, uint32_t linkage) {
    return add(name, Kind::func, false, linkage, proto);
}

TypeId Writer::add_var(std::string_view name, TypeId type, uint32_t linkage) {
    TypeId id = add(name, Kind::var, false, 0, type);
    put(linkage);
    return id;
}

TypeId Writer::add_datasec(std::string_view name, uint32_t size, const std::vector<VarSecinfo> &vars) {
    TypeId id = add(name, Kind::datasec, false, static_cast<uint32_t>(vars.size()), size);
    for (const VarSecinfo &v : vars) {
        put(v.type);
        put(v.offset);
        put(v.size);
    }
    return id;
}

TypeId Writer::add_float(std::string_view name, uint32_t size) { return add(name, Kind::float_, false, 0, size); }

TypeId Writer::add_decl_tag(std::string_view text, TypeId of, int32_t component) {
    TypeId id = add(text, Kind::decl_tag, false, 0, of);
    put(static_cast<uint32_t>(component));
    return id;
}

TypeId Writer::add_type_tag(std::string_view text, TypeId of) { return add(text, Kind::type_tag, false, 0, of); }

TypeId Writer::next_id() const { return next_; }

std::vector<std::byte> Writer::finish() const {
    const uint32_t types = static_cast<uint32_t>(types_.size()), strings = static_cast<uint32_t>(strings_.size());
    const uint32_t header[] = {0x0001eb9f, 24, 0, types, types, strings}; // magic and version 1, then the lengths
    std::vector<std::byte> out(sizeof header + types + strings);
    std::memcpy(out.data(), header, sizeof header);
    if (types) std::memcpy(out.data() + sizeof header, types_.data(), types);
    std::memcpy(out.data() + sizeof header + types, strings_.data(), strings);
    return out;
}

} // namespace rawbpf::inline v0::btf
