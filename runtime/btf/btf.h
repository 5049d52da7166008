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

/// One type's fixed part, decoded.
struct Type {
    TypeId id = 0;
    std::string_view name;
    Kind kind = Kind::void_;
    bool kind_flag = false;
    uint32_t vlen = 0;                ///< members, values, parameters, or FUNC linkage
    uint32_t size_or_type = 0;        ///< size for int, enum, struct, union, datasec, float, enum64; a TypeId for the rest
    const std::byte *extra = nullptr; ///< what follows the fixed 12 bytes, bounds checked
};

struct Member {
    std::string_view name;
    TypeId type = 0;
    uint32_t bit_offset = 0;
    uint32_t bit_size = 0; /* 0: not a bitfield */
};
struct EnumValue {
    std::string_view name;
    uint64_t value = 0; /* sign-extended when the enum is signed */
};
struct Param {
    std::string_view name;
    TypeId type = 0;
};
struct VarSecinfo {
    TypeId type = 0;
    uint32_t offset = 0;
    uint32_t size = 0;
};
struct Array {
    TypeId element = 0;
    TypeId index = 0;
    uint32_t count = 0;
};
struct IntEncoding {
    uint8_t bits = 0, bit_offset = 0;
    bool is_signed = false, is_char = false, is_bool = false;
};

class Btf {
  public:
    /// Checks the header and every type's bounds in one pass and keeps a sparse index (heap: under 40 KiB, whatever the size).
    /// `base`: the BTF that a split BTF builds on; its bytes must outlive this. Either byte order. A kind unknown here is
    /// passed over where the BTF describes its layout (Linux 7.2 and newer), else it is an error that names it.
    [[nodiscard]] static Result<Btf> parse(Bytes bytes, std::string_view name, const Btf *base = nullptr);

    [[nodiscard]] TypeId first_id() const; ///< 1, or the base's end for a split BTF
    [[nodiscard]] TypeId end_id() const;   ///< one past the last id
    [[nodiscard]] const std::string &name() const;
    [[nodiscard]] Bytes bytes() const; ///< as given to parse()

    /// The type with that id (also the base's); id 0 is void. Errors: bad_input when it doesn't exist.
    [[nodiscard]] Result<Type> type(TypeId id) const;
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

    // Parts of a type; the Type must be of the right kind and come from this Btf (or its base).
    [[nodiscard]] Result<Member> member(const Type &type, uint32_t index) const;
    [[nodiscard]] Result<EnumValue> enum_value(const Type &type, uint32_t index) const; ///< ENUM and ENUM64
    [[nodiscard]] Result<Param> param(const Type &type, uint32_t index) const;
    [[nodiscard]] Result<VarSecinfo> secinfo(const Type &type, uint32_t index) const;
    [[nodiscard]] Array array(const Type &type) const;
    [[nodiscard]] IntEncoding int_encoding(const Type &type) const;
    [[nodiscard]] uint32_t var_linkage(const Type &type) const; ///< BTF_VAR_*
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
    [[nodiscard]] uint32_t string(std::string_view text); ///< its offset
    TypeId add_int(std::string_view name, uint32_t size, bool is_signed);
    TypeId add_int(std::string_view name, uint32_t size, const IntEncoding &encoding);
    TypeId add_ptr(TypeId to);
    TypeId add_array(TypeId element, TypeId index, uint32_t count);
    struct Field {
        std::string_view name;
        TypeId type;
        uint32_t bit_offset;
        uint32_t bit_size = 0;
    };
    TypeId add_struct(std::string_view name, uint32_t size, const std::vector<Field> &fields, bool is_union = false);
    TypeId add_enum(std::string_view name, uint32_t size, const std::vector<std::pair<std::string_view, int64_t>> &values,
                    bool is_signed = false);
    TypeId add_fwd(std::string_view name, bool is_union = false);
    TypeId add_typedef(std::string_view name, TypeId of);
    TypeId add_modifier(Kind kind, TypeId of); ///< const_, volatile_, restrict_
    TypeId add_func_proto(TypeId returns, const std::vector<std::pair<std::string_view, TypeId>> &params);
    TypeId add_func(std::string_view name, TypeId proto, uint32_t linkage);
    TypeId add_var(std::string_view name, TypeId type, uint32_t linkage);
    TypeId add_datasec(std::string_view name, uint32_t size, const std::vector<VarSecinfo> &vars);
    TypeId add_float(std::string_view name, uint32_t size);
    TypeId add_decl_tag(std::string_view text, TypeId of, int32_t component);
    TypeId add_type_tag(std::string_view text, TypeId of);
    /// One type given as raw parts (kinds newer than this list, sanitising).
    TypeId add_raw(uint32_t name_offset, uint32_t info, uint32_t size_or_type, Bytes extra);
    [[nodiscard]] TypeId next_id() const;
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
