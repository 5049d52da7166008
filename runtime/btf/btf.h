// SPDX-License-Identifier: MIT
// BTF, read where it lies.
//
//      +--------+-------------------------------+-----------------------+
//      | header | types, one after another      | strings, NUL-ended    |
//      +--------+-------------------------------+-----------------------+
//                 id 1, id 2, ... of varying size
//
// The running kernel has some 130,000 types in 5.5 MB. Decoding them all into objects costs tens of megabytes; an offset for
// each costs half a megabyte. So a Btf is an index over bytes that somebody mapped: every so many types one offset is kept,
// and what lies between is walked. It owns no bytes and makes no system calls (PURE). The bytes must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::btf {

/// Type ids. 0 is void. A split BTF (a module's) continues its base's numbering.
using TypeId = uint32_t;

/// BTF_KIND_*, as in Documentation/bpf/btf.rst.
enum class Kind : uint8_t {
    void_ = 0,
    int_ = 1,
    ptr = 2,
    array = 3,
    struct_ = 4,
    union_ = 5,
    enum_ = 6,
    fwd = 7,
    typedef_ = 8,
    volatile_ = 9,
    const_ = 10,
    restrict_ = 11,
    func = 12,
    func_proto = 13,
    var = 14,
    datasec = 15,
    float_ = 16,
    decl_tag = 17,
    type_tag = 18,
    enum64 = 19,
};

/// "struct", "typedef", "enum64" ... as C or the BTF documentation calls it; "kind 23" is named "unknown".
[[nodiscard]] std::string_view kind_name(Kind kind);

/// The name up to its CO-RE flavour: "task_struct" for "task_struct___old". A flavour follows exactly three underscores.
[[nodiscard]] std::string_view essential_name(std::string_view name);

/// One type's fixed part, decoded. It views the BTF's bytes, which must outlive it.
struct Type {
    TypeId id = 0;                    ///< as given to Btf::type()
    std::string_view name;            ///< empty: anonymous
    Kind kind = Kind::void_;          ///< may be a number without an enumerator, if the BTF describes the kind's layout
    bool kind_flag = false;           ///< struct, union: members may be bitfields; enum, enum64: signed; fwd: of a union
    uint32_t vlen = 0;                ///< members, values, parameters, variables, or FUNC linkage
    uint32_t size_or_type = 0;        ///< size for int, enum, struct, union, datasec, float, enum64; a TypeId for the rest
    const std::byte *extra = nullptr; ///< what follows the fixed 12 bytes, bounds checked
};

/// A member of a struct or union. Its name views the BTF's bytes, as do those of EnumValue and Param.
struct Member {
    std::string_view name;   ///< empty: an anonymous struct or union
    TypeId type = 0;         ///< the member's type
    uint32_t bit_offset = 0; ///< from the start of the struct
    uint32_t bit_size = 0;   ///< 0: not a bitfield, or an old-style one, whose size is IntEncoding::bits of its type
};
/// An enumerator of an ENUM or ENUM64.
struct EnumValue {
    std::string_view name; ///< the enumerator's
    uint64_t value = 0;    ///< sign-extended when the enum is signed
};
/// A parameter of a FUNC_PROTO.
struct Param {
    std::string_view name; ///< often empty: a prototype needs no names
    TypeId type = 0;       ///< 0 for the last one: variable arguments ("...")
};
/// A variable in a DATASEC.
struct VarSecinfo {
    TypeId type = 0;     ///< a VAR; for an extern function, a FUNC
    uint32_t offset = 0; ///< in bytes, from the section's start
    uint32_t size = 0;   ///< in bytes
};
/// What an ARRAY consists of.
struct Array {
    TypeId element = 0; ///< the type of one element
    TypeId index = 0;   ///< the type of an index, an int
    uint32_t count = 0; ///< elements; 0 for a flexible array
};
/// How an INT's bits are to be read (Documentation/bpf/btf.rst, BTF_KIND_INT).
struct IntEncoding {
    uint8_t bits = 0,       ///< how many of the type's bits hold the value
        bit_offset = 0;     ///< of an old-style bitfield: added to the member's bit_offset; else 0
    bool is_signed = false, ///< BTF_INT_SIGNED
        is_char = false,    ///< BTF_INT_CHAR; compilers rarely set it
        is_bool = false;    ///< BTF_INT_BOOL
};
/// The word behind an INT: | 27..24 encoding | 23..16 offset | 7..0 bits |
[[nodiscard]] IntEncoding decode_int(uint32_t word);

/// One BTF, indexed. Copies are cheap and share the index. The bytes given to parse() must outlive it and everything it returns.
class Btf {
  public:
    /// Checks the header and every type's bounds in one pass and keeps a sparse index (heap: under 40 KiB, whatever the size).
    /// `base`: the BTF that a split BTF builds on; its bytes must outlive this. Either byte order. A kind unknown here is
    /// passed over where the BTF describes its layout (Linux 7.2 and newer), else it is an error that names it.
    [[nodiscard]] static Result<Btf> parse(Bytes bytes, std::string_view name, const Btf *base = nullptr);

    [[nodiscard]] TypeId first_id() const; ///< 1, or the base's end for a split BTF
    [[nodiscard]] TypeId end_id() const;   ///< one past the last id
    /// As given to parse(); messages begin with it.
    [[nodiscard]] const std::string &name() const;
    [[nodiscard]] Bytes bytes() const; ///< as given to parse()

    /// The type with that id (also the base's); id 0 is void. Errors: bad_input when it doesn't exist or its name is outside the
    /// strings.
    [[nodiscard]] Result<Type> type(TypeId id) const;
    /// The string at that offset (also the base's), a view of the bytes; offset 0 is "". Errors: bad_input past strings_end().
    [[nodiscard]] Result<std::string_view> string(uint32_t offset) const;
    [[nodiscard]] uint32_t strings_end() const; ///< one past the last string offset, the base's included

    /// The first type of that name and one of these kinds (Kind::void_: any), base first; nullopt when there is none.
    /// Binary search where the types are sorted by name, else one scan (0.3 ms in a kernel's).
    [[nodiscard]] std::optional<TypeId> find(std::string_view name, Kind kind = Kind::void_) const;
    /// All types of that name, in id order (candidates for CO-RE); base not included.
    [[nodiscard]] std::vector<TypeId> find_all(std::string_view name) const;
    /// All types whose name, up to a "___flavour" suffix, is `essential`.
    [[nodiscard]] std::vector<TypeId> find_flavours(std::string_view essential) const;
    /// The same for many names in one scan (0.5 ms in a kernel's BTF, however many); results in the names' order.
    [[nodiscard]] std::vector<std::vector<TypeId>> find_flavours(std::span<const std::string_view> essentials) const;

    /// One part of a type, by its number from 0 to Type::vlen - 1: a struct's or union's member, an enum's or enum64's value, a
    /// func_proto's parameter, a datasec's variable. The Type must come from this Btf (or its base). Errors: bad_input when the
    /// type is of another kind, has no such part, or the part's name is outside the strings.
    ///@{
    [[nodiscard]] Result<Member> member(const Type &type, uint32_t index) const;
    [[nodiscard]] Result<EnumValue> enum_value(const Type &type, uint32_t index) const;
    [[nodiscard]] Result<Param> param(const Type &type, uint32_t index) const;
    [[nodiscard]] Result<VarSecinfo> secinfo(const Type &type, uint32_t index) const;
    ///@}
    [[nodiscard]] Array array(const Type &type) const;              ///< all zeros for a type that is no array
    [[nodiscard]] IntEncoding int_encoding(const Type &type) const; ///< all zeros for a type that is no int
    [[nodiscard]] uint32_t var_linkage(const Type &type) const;     ///< BTF_VAR_*; 0 (static) for a type that is no var
    /// The member or parameter that a decl_tag is about, from 0; -1: the whole type, or the type is no decl_tag.
    [[nodiscard]] int32_t decl_tag_component(const Type &type) const;

    /// Whether the types are sorted by name, as Linux 7.0 and newer keep theirs, so that find() is a matter of microseconds.
    [[nodiscard]] bool sorted() const;
    /// Bytes of heap that the index takes.
    [[nodiscard]] size_t heap_size() const;

    /// Skips const, volatile, restrict, typedef and type tags. Bounded: a cycle is an error.
    [[nodiscard]] Result<Type> resolve(TypeId id) const;
    /// Size in bytes of what the id denotes (arrays multiplied out, pointers 8). Overflow and cycles are errors.
    [[nodiscard]] Result<uint64_t> size_of(TypeId id) const;

    struct State; ///< private to the room
  private:
    friend class Flat;
    explicit Btf(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_; // index and header; shared so that copies are cheap
};

/// Writes BTF: types in the order added, strings deduplicated, host byte order. For specs made by the DSL, for sanitising and for
/// tests.
class Writer {
  public:
    Writer() = default;
    /// A split BTF: ids and string offsets go on where `base` ends.
    explicit Writer(const Btf &base);
    [[nodiscard]] uint32_t string(std::string_view text); ///< adds a string once; returns its offset, 0 for an empty one

    /// Adds one type and returns its id. Sizes are in bytes. An id of another type may be one that is added later (see
    /// next_id()). Nothing is checked.
    ///@{
    TypeId add_int(std::string_view name, uint32_t size, bool is_signed);
    TypeId add_int(std::string_view name, uint32_t size, const IntEncoding &encoding);
    TypeId add_ptr(TypeId to);
    TypeId add_array(TypeId element, TypeId index, uint32_t count);
    /// A member for add_struct().
    struct Field {
        std::string_view name; ///< copied by add_struct(); empty: anonymous
        TypeId type;           ///< may be the id of a type that is added later
        uint32_t bit_offset;   ///< from the start of the struct; below 2^24 when any field of the struct is a bitfield
        uint32_t bit_size = 0; ///< up to 255; 0: not a bitfield
    };
    TypeId add_struct(std::string_view name, uint32_t size, const std::vector<Field> &fields, bool is_union = false);
    /// An ENUM64 when `size` is 8, else an ENUM, which keeps the low 32 bits of each value.
    TypeId add_enum(std::string_view name, uint32_t size, const std::vector<std::pair<std::string_view, int64_t>> &values,
                    bool is_signed = false);
    TypeId add_fwd(std::string_view name, bool is_union = false);
    TypeId add_typedef(std::string_view name, TypeId of);
    TypeId add_modifier(Kind kind, TypeId of); ///< const_, volatile_, restrict_
    TypeId add_func_proto(TypeId returns, const std::vector<std::pair<std::string_view, TypeId>> &params);
    TypeId add_func(std::string_view name, TypeId proto, uint32_t linkage); ///< linkage: BTF_FUNC_*, 0 to 2
    TypeId add_var(std::string_view name, TypeId type, uint32_t linkage);   ///< linkage: BTF_VAR_*, 0 to 2
    TypeId add_datasec(std::string_view name, uint32_t size, const std::vector<VarSecinfo> &vars);
    TypeId add_float(std::string_view name, uint32_t size);
    TypeId add_decl_tag(std::string_view text, TypeId of, int32_t component); ///< component -1: `of` as a whole
    TypeId add_type_tag(std::string_view text, TypeId of);
    ///@}
    /// One type given as raw parts (kinds newer than this list, sanitising).
    TypeId add_raw(uint32_t name_offset, uint32_t info, uint32_t size_or_type, Bytes extra);
    /// The id that the next type gets: 1 at first, or the base's end for a split BTF.
    [[nodiscard]] TypeId next_id() const;
    /// The whole BTF so far, header included. More can be added afterwards.
    [[nodiscard]] std::vector<std::byte> finish() const;

  private:
    TypeId add(std::string_view name, Kind kind, bool kind_flag, uint32_t vlen, uint32_t size_or_type);
    void put(uint32_t word);
    [[nodiscard]] size_t slot_of(std::string_view text) const;

    std::vector<std::byte> types_;
    std::string strings_ = std::string(1, '\0');
    std::vector<uint32_t> slots_; // open addressing: offsets in strings_ plus 1; 0 is free
    size_t used_ = 0;
    TypeId next_ = 1;
    uint32_t strings_start_ = 0; // of a split BTF: the base's length
};

} // namespace rawbpf::inline v0::btf
