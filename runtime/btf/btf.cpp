// Reading BTF where it lies.
//
//      struct btf_header             a type: 12 bytes and what its kind adds
//      +-------+---+---+--------+    +----------+------+-----------+----------------------------+
//      | eB9F  | 1 | 0 | hdrlen |    | name_off | info | size/type | vlen members, values ...   |
//      +-------+---+---+--------+    +----------+------+-----------+----------------------------+
//      | type_off    | type_len |               info: | kind_flag | kind (7 bits) | vlen (24) |
//      +-------------+----------+
//      | str_off     | str_len  |    Linux 7.2 adds layout_off, layout_len: for each kind that its writer knew, how many bytes
//      +-------------+----------+    it adds once and for each of vlen. So a reader can step over a kind younger than itself.
//
// Ids aren't written down: type 1 comes first, type 2 begins where it ends. To find type 70,000 one must have walked over all
// before it, so parse() walks once, checks that each type ends inside the section, and keeps the offset of every 16th (more
// apart in larger ones: never more than 8,192 offsets, 32 KB). Going to a type is then a short walk from its signpost.
// Everything else about a type, its names and the ids in it, is checked when it is used: a kernel has 126,000 types and a tool
// looks at twenty.
//
// All fields of types are 32 bits wide, so BTF of the other byte order costs one conditional swap a field.
//
// Sources: Documentation/bpf/btf.rst; include/uapi/linux/btf.h (6.18 for the kinds, 7.2 for the layout and the wider info).
#include "runtime/btf/btf.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/btf/state.h"

namespace rawbpf::inline v0::btf {

namespace {

constexpr uint16_t kMagic = 0xeb9f;
constexpr uint32_t kHeaderSize = 24;       // without the layout's two fields
constexpr uint32_t kHeaderWithLayout = 32; // Linux 7.2
constexpr size_t kMaxSignposts = 8192;     // 32 KB
constexpr uint32_t kFirstShift = 2;        // small BTFs: every 4th
constexpr TypeId kMaxTypeId = 0x7fffffff;  // as bpf(2) takes them in an int
constexpr int kMaxDepth = 64;              // the kernel itself resolves 32 deep
constexpr uint64_t kPointerSize = 8;       // eBPF is a 64-bit machine

struct KindRow {
    std::string_view name;
    Kind kind;
    uint8_t fixed, each;
};
// In the order of their numbers.
constexpr KindRow kKinds[] = {
    {"void", Kind::void_, 0, 0},        {"int", Kind::int_, 4, 0},
    {"ptr", Kind::ptr, 0, 0},           {"array", Kind::array, 12, 0},
    {"struct", Kind::struct_, 0, 12},   {"union", Kind::union_, 0, 12},
    {"enum", Kind::enum_, 0, 8},        {"fwd", Kind::fwd, 0, 0},
    {"typedef", Kind::typedef_, 0, 0},  {"volatile", Kind::volatile_, 0, 0},
    {"const", Kind::const_, 0, 0},      {"restrict", Kind::restrict_, 0, 0},
    {"func", Kind::func, 0, 0},         {"func_proto", Kind::func_proto, 0, 8},
    {"var", Kind::var, 4, 0},           {"datasec", Kind::datasec, 0, 12},
    {"float", Kind::float_, 0, 0},      {"decl_tag", Kind::decl_tag, 4, 0},
    {"type_tag", Kind::type_tag, 0, 0}, {"enum64", Kind::enum64, 0, 12},
};

bool inside(uint64_t offset, uint64_t size, uint64_t total) { return offset <= total && size <= total - offset; }

/// The kinds' sizes: those known here, then those that the BTF itself describes.
Result<void> fill_sizes(Btf::State &s, const ByteReader &reader, Bytes layout) {
    s.sizes.fill({kUnknownSize, 0});
    for (const KindRow &row : kKinds)
        if (row.kind != Kind::void_) s.sizes[static_cast<size_t>(row.kind)] = {row.fixed, row.each};
    // struct btf_layout { u8 info_sz, elem_sz; u16 flags; }, one for each kind from 0.
    for (size_t kind = std::size(kKinds); kind < s.sizes.size() && (kind + 1) * 4 <= layout.size(); ++kind) {
        uint8_t fixed = static_cast<uint8_t>(layout[kind * 4]), each = static_cast<uint8_t>(layout[kind * 4 + 1]);
        if ((fixed | each) % 4 != 0)
            return Unexpected(
                reader.error_at(static_cast<size_t>(layout.data() - s.bytes.data()) + kind * 4,
                                format("layout of kind {}: sizes {} and {} aren't multiples of 4", kind, fixed, each)));
        s.sizes[kind] = {fixed, each};
    }
    return {};
}

Result<void> build_index(Btf::State &s) {
    const uint32_t total = s.types_size;
    uint32_t shift = kFirstShift;
    uint32_t count = 0;
    std::vector<uint32_t> index;
    index.reserve(std::min<size_t>(kMaxSignposts, (total / kTypeHeader >> shift) + 1));
    for (uint32_t at = 0; at < total;) {
        __builtin_prefetch(s.types + at + kAhead);
        uint32_t left = total - at;
        uint64_t size = kTypeHeader;
        uint32_t info = 0;
        if (left >= kTypeHeader) {
            info = s.word(s.types + at + 4);
            KindSize kind = s.sizes[kind_in(info)];
            size += kind.fixed + uint64_t{kind.each} * vlen_in(info);
        }
        if (size > left) [[unlikely]] {
            std::string where = format("{}: BTF type {}: offset {:#x}", s.name, s.first + count, s.types_at + at);
            if (left >= kTypeHeader && s.sizes[kind_in(info)].fixed == kUnknownSize)
                return fail(Errc::bad_input, "{}: unknown kind {}", where, kind_in(info));
            return fail(Errc::bad_input, "{}: needs {} bytes, and {} are left", where, size, left);
        }
        if ((count & ((1u << shift) - 1)) == 0) {
            if (index.size() == kMaxSignposts) {
                // Every other signpost goes; this one has an even number and stays.
                for (size_t i = 0; i < kMaxSignposts / 2; ++i) index[i] = index[2 * i];
                index.resize(kMaxSignposts / 2);
                ++shift;
            }
            index.push_back(at);
        }
        at += static_cast<uint32_t>(size);
        ++count;
    }
    if (count > kMaxTypeId - s.first)
        return fail(Errc::bad_input, "{}: BTF: there are {} types, and {} are the most", s.name, count, kMaxTypeId);
    s.end = s.first + count;
    s.shift = shift;
    s.index = std::move(index);
    return {};
}

/// Whether a sample of the names is in order, the empty ones of anonymous types first. Unsorted BTF is found out after two or
/// three; what looks sorted is never taken at its word (see find.cpp).
bool looks_sorted(const Btf::State &s) {
    constexpr size_t kSamples = 256;
    if (s.index.size() < 2) return false;
    std::string_view before;
    for (size_t i = 0, step = std::max<size_t>(1, s.index.size() / kSamples); i < s.index.size(); i += step) {
        std::string_view name = s.name_at(s.types + s.index[i]);
        if (name < before) return false;
        before = name;
    }
    return !before.empty();
}

} // namespace

std::string_view kind_name(Kind kind) {
    size_t number = static_cast<size_t>(kind);
    return number < std::size(kKinds) ? kKinds[number].name : "unknown";
}

Result<Btf> Btf::parse(Bytes bytes, std::string_view name, const Btf *base) {
    auto state = std::make_shared<State>();
    State &s = *state;
    s.name = name;
    s.bytes = bytes;
    ByteReader r(bytes, format("{}: BTF", name));
    if (bytes.size() < kHeaderSize)
        return Unexpected(r.error_at(0, format("a header needs {} bytes, and there are {}", kHeaderSize, bytes.size())));
    uint16_t magic = load<uint16_t>(bytes.data());
    if (magic != kMagic && magic != byte_swap(kMagic)) return Unexpected(r.error_at(0, "not BTF: the magic number is missing"));
    s.swap = magic != kMagic;
    uint8_t version = static_cast<uint8_t>(bytes[2]);
    if (version != 1) return Unexpected(r.error_at(2, format("rawbpf doesn't know version {}", version)));
    auto field = [&](size_t number) { return s.word(bytes.data() + 4 + 4 * number); };
    const uint32_t header = field(0);
    if (header < kHeaderSize || header > bytes.size())
        return Unexpected(
            r.error_at(4, format("the header's length is {}, and must be {} to {}", header, kHeaderSize, bytes.size())));

    struct Part {
        std::string_view name;
        size_t number;
        uint64_t offset = 0;
        uint32_t size = 0;
    } types{"types", 1}, strings{"strings", 3}, layout{"layout", 5};
    for (Part *part : {&types, &strings, &layout}) {
        if (part == &layout && header < kHeaderWithLayout) break;
        part->offset = uint64_t{header} + field(part->number);
        part->size = field(part->number + 1);
        if (!inside(part->offset, part->size, bytes.size()))
            return Unexpected(r.error_at(4 + 4 * part->number, format("{}: {} bytes at {:#x} go past the end ({:#x})", part->name,
                                                                      part->size, part->offset, bytes.size())));
    }
    s.types = bytes.data() + types.offset;
    s.types_size = types.size;
    s.types_at = types.offset;
    s.strings = bytes.subspan(strings.offset, strings.size);
    if (!s.strings.empty() && s.strings.back() != std::byte{0})
        return Unexpected(r.error_at(strings.offset + strings.size - 1, "no zero byte ends the last string"));
    if (base) {
        s.base = base->state_;
        if (s.base->swap != s.swap)
            return fail(Errc::bad_input, "{}: BTF: its base {} has the other byte order", name, s.base->name);
        s.first = s.base->end;
        s.strings_start = s.base->strings_end();
        if (uint64_t{s.strings_start} + strings.size > UINT32_MAX)
            return fail(Errc::bad_input, "{}: BTF: its strings and its base's are larger than 4 GB", name);
    } else if (s.strings.empty() ? s.types_size != 0 : s.strings.front() != std::byte{0}) {
        return Unexpected(r.error_at(strings.offset, "the strings don't begin with an empty one"));
    }
    TRY(fill_sizes(s, r, layout.size ? bytes.subspan(layout.offset, layout.size) : Bytes()));
    TRY(build_index(s));
    s.sorted = looks_sorted(s);
    return Btf(std::move(state));
}

TypeId Btf::first_id() const { return state_->first; }
TypeId Btf::end_id() const { return state_->end; }
const std::string &Btf::name() const { return state_->name; }
Bytes Btf::bytes() const { return state_->bytes; }
bool Btf::sorted() const { return state_->sorted; }
uint32_t Btf::strings_end() const { return state_->strings_end(); }
size_t Btf::heap_size() const { return sizeof(State) + state_->index.capacity() * sizeof(uint32_t); }

Result<std::string_view> Btf::string(uint32_t offset) const {
    std::optional<std::string_view> text = state_->string_at(offset);
    if (!text)
        return fail(Errc::bad_input, "{}: BTF strings: offset {:#x} is past the end ({:#x})", name(), offset,
                    state_->strings_end());
    return *text;
}

Result<Type> Btf::type(TypeId id) const {
    Type t;
    if (id == 0) return t;
    if (id >= state_->end)
        return fail(Errc::bad_input, "{}: BTF: there is no type {}; the last is {}", name(), id, state_->end - 1);
    const State *owner = state_.get();
    while (id < owner->first) owner = owner->base.get();
    const std::byte *at = owner->locate(id);
    uint32_t info = owner->word(at + 4);
    t.id = id;
    t.name = TRY_IN(string(owner->word(at)), "{}: BTF type {}", name(), id);
    t.kind = static_cast<Kind>(kind_in(info));
    t.kind_flag = info >> 31;
    t.vlen = vlen_in(info);
    t.size_or_type = owner->word(at + 8);
    t.extra = at + kTypeHeader;
    return t;
}

/// An error unless the type is of one of two kinds and has a part of that number.
static Result<void> check_part(const Btf &btf, const Type &type, uint32_t index, Kind kind, Kind other) {
    if (type.kind != kind && type.kind != other)
        return fail(Errc::bad_input, "{}: BTF type {} is of kind {}, not {}", btf.name(), type.id, kind_name(type.kind),
                    kind_name(kind));
    if (index >= type.vlen)
        return fail(Errc::bad_input, "{}: BTF type {} ({} {}): there is no part {}; it has {}", btf.name(), type.id,
                    kind_name(type.kind), type.name, index, type.vlen);
    return {};
}

Result<Member> Btf::member(const Type &type, uint32_t index) const {
    TRY(check_part(*this, type, index, Kind::struct_, Kind::union_));
    const std::byte *at = type.extra + size_t{index} * 12;
    Member m;
    m.name = TRY_IN(string(state_->word(at)), "BTF type {}: member {}", type.id, index);
    m.type = state_->word(at + 4);
    uint32_t offset = state_->word(at + 8);
    m.bit_offset = type.kind_flag ? offset & 0xffffff : offset;
    m.bit_size = type.kind_flag ? offset >> 24 : 0;
    return m;
}

Result<EnumValue> Btf::enum_value(const Type &type, uint32_t index) const {
    TRY(check_part(*this, type, index, Kind::enum_, Kind::enum64));
    const std::byte *at = type.extra + size_t{index} * (type.kind == Kind::enum64 ? 12 : 8);
    EnumValue v;
    v.name = TRY_IN(string(state_->word(at)), "BTF type {}: value {}", type.id, index);
    uint32_t low = state_->word(at + 4);
    if (type.kind == Kind::enum64)
        v.value = uint64_t{state_->word(at + 8)} << 32 | low;
    else
        v.value = type.kind_flag ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)}) : low;
    return v;
}

Result<Param> Btf::param(const Type &type, uint32_t index) const {
    TRY(check_part(*this, type, index, Kind::func_proto, Kind::func_proto));
    const std::byte *at = type.extra + size_t{index} * 8;
    Param p;
    p.name = TRY_IN(string(state_->word(at)), "BTF type {}: parameter {}", type.id, index);
    p.type = state_->word(at + 4);
    return p;
}

Result<VarSecinfo> Btf::secinfo(const Type &type, uint32_t index) const {
    TRY(check_part(*this, type, index, Kind::datasec, Kind::datasec));
    const std::byte *at = type.extra + size_t{index} * 12;
    return VarSecinfo{state_->word(at), state_->word(at + 4), state_->word(at + 8)};
}

Array Btf::array(const Type &type) const {
    if (type.kind != Kind::array) return {};
    return {state_->word(type.extra), state_->word(type.extra + 4), state_->word(type.extra + 8)};
}

IntEncoding decode_int(uint32_t word) {
    IntEncoding out;
    out.bits = word & 0xff;
    out.bit_offset = word >> 16 & 0xff;
    out.is_signed = word & 1u << 24;
    out.is_char = word & 1u << 25;
    out.is_bool = word & 1u << 26;
    return out;
}

IntEncoding Btf::int_encoding(const Type &type) const {
    return type.kind == Kind::int_ ? decode_int(state_->word(type.extra)) : IntEncoding{};
}

uint32_t Btf::var_linkage(const Type &type) const { return type.kind == Kind::var ? state_->word(type.extra) : 0; }

int32_t Btf::decl_tag_component(const Type &type) const {
    return type.kind == Kind::decl_tag ? static_cast<int32_t>(state_->word(type.extra)) : -1;
}

Result<Type> Btf::resolve(TypeId id) const {
    TypeId at = id;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
        Type t = TRY(type(at));
        switch (t.kind) {
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::typedef_:
        case Kind::type_tag: at = t.size_or_type; break;
        default: return t;
        }
    }
    return fail(Errc::bad_input, "{}: BTF type {}: the types that it refers to have no end after {} steps", name(), id,
                kMaxDepth);
}

Result<uint64_t> Btf::size_of(TypeId id) const {
    uint64_t elements = 1;
    TypeId at = id;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
        Type t = TRY(type(at));
        uint64_t size = 0;
        switch (t.kind) {
        case Kind::int_:
        case Kind::struct_:
        case Kind::union_:
        case Kind::enum_:
        case Kind::enum64:
        case Kind::float_:
        case Kind::datasec: size = t.size_or_type; break;
        case Kind::ptr: size = kPointerSize; break;
        case Kind::array: {
            Array a = array(t);
            if (__builtin_mul_overflow(elements, uint64_t{a.count}, &elements))
                return fail(Errc::bad_input, "{}: BTF type {}: its size has more than 64 bits", name(), id);
            at = a.element;
            continue;
        }
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::typedef_:
        case Kind::type_tag:
        case Kind::decl_tag:
        case Kind::var: at = t.size_or_type; continue;
        default: return fail(Errc::bad_input, "{}: BTF type {} ({}) has no size", name(), t.id, kind_name(t.kind));
        }
        if (__builtin_mul_overflow(elements, size, &size))
            return fail(Errc::bad_input, "{}: BTF type {}: its size has more than 64 bits", name(), id);
        return size;
    }
    return fail(Errc::bad_input, "{}: BTF type {}: the types that it refers to have no end after {} steps", name(), id,
                kMaxDepth);
}

} // namespace rawbpf::inline v0::btf
