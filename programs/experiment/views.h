// How what the kernel collected is shown: which bytes of a key, a value or a record are which column, and what a column means.
// PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::experiment {

/// What the bytes of a column mean.
enum class Show : uint8_t {
    number,
    signed_number,
    hex,
    text,   ///< up to a zero
    words,  ///< with zeroes between them
    ip,     ///< 4 bytes of IPv4
    ip6,    ///< 16 bytes of IPv6, or of IPv4 in it
    call,   ///< the number of a system call
    symbol, ///< an address of the kernel's
    error,  ///< an errno, negative or not
    signal, ///< its number
    flag,   ///< yes or no
    typed,  ///< by its BTF type alone
};

/// A part of a key, a value or a record.
struct Column {
    std::string name;
    Show show = Show::number;
    uint32_t offset = 0, size = 8;
    btf::TypeId type = 0; ///< of Show::typed, in the object's BTF
};

/// What a map's values are to who prints them.
enum class Figures : uint8_t {
    plain, ///< one value, or a struct
    sum,   ///< a number a CPU: their sum
    stats, ///< count, sum, least and most a CPU
    log2,  ///< the key's last part is a power of two, the value a number a CPU
    linear,
};

struct MapView {
    std::string map; ///< as the object has it
    std::vector<Column> key, value;
    Figures figures = Figures::plain;
    std::string figure;                 ///< stats: the one that was asked for: "avg"; "stats": all
    bool is_signed = false;             ///< of what was added up or compared
    int64_t from = 0, to = 0, step = 1; ///< linear: where the second bucket begins, and how wide each is
    uint32_t buckets = 0;               ///< linear: how many, with those for less and for more
};

/// A record of a ring buffer.
struct EventView {
    std::string event, ring;
    uint32_t number = 0;   ///< of the event, where several share a ring
    bool numbered = false; ///< records begin with the time and that number
    uint32_t size = 0;
    std::vector<Column> fields;
};

/// The columns of a type: of a struct its members, else the whole. Errors: broken BTF.
[[nodiscard]] Result<std::vector<Column>> columns_of(const btf::Btf &types, btf::TypeId type, uint32_t size,
                                                     std::string_view name);
/// How a map looks of which only the object's types say what is in it.
[[nodiscard]] MapView view_of(const ObjectSpec &spec, const MapSpec &map);

/// Asked for what only a machine knows; may be null.
struct Names {
    virtual ~Names() = default;
    /// "vfs_read", "" where it isn't known.
    virtual std::string symbol(uint64_t address) = 0;
};

/// A column as text, without quotes; of what can't be read "?". `types`: of Show::typed; nullptr: bytes in hex.
[[nodiscard]] std::string cell(const Column &column, Bytes bytes, const btf::Btf *types, Names *names);
/// The same as a JSON value.
[[nodiscard]] std::string json_cell(const Column &column, Bytes bytes, const btf::Btf *types, Names *names);
/// An integer's value. nullopt: the column is none.
[[nodiscard]] std::optional<int64_t> integer(const Column &column, Bytes bytes);
/// "number", "text" ... of columns that people may name by a function in a probe: ip(x), syscall(x). False: no such function.
[[nodiscard]] bool show_named(std::string_view function, Show &show);
[[nodiscard]] std::vector<std::string_view> show_names();

} // namespace rawbpf::inline v0::experiment
