// The values in a record: numbers, texts, paths, addresses, and what they stand for. PURE.
//
//      decode        ->  Decoded {number 577, name "O_WRONLY|O_CREAT|O_TRUNC"}
//      append_text   ->  O_WRONLY|O_CREAT|O_TRUNC                              as people read it
//      append_json   ->  577                                                   the number; its name is a field of its own
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "programs/trace/constants.h"
#include "programs/trace/tracer.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

/// One value, read.
struct Decoded {
    enum class Kind : uint8_t {
        nothing,    ///< void
        null,       ///< a text at address 0
        unreadable, ///< what lies behind the address couldn't be read
        truth,
        character,
        number,
        address,
        text,        ///< a string of the program's, any bytes
        words,       ///< a path, a socket's address: readable as it is
        real,        ///< `real`
        unavailable, ///< no program can fetch it: some arguments of USDT probes, Go's floats
        nil,         ///< Go's, of an interface
        list,        ///< Go's slice: `parts` are its first elements; without them it is at `number`
        tuple,       ///< several results: `parts`
    };
    Kind kind = Kind::nothing;
    bool negative = false;
    bool cut = false; ///< text: there was more of it
    double real = 0;
    uint64_t number = 0; ///< magnitude; of everything but nothing, text and words
    std::string text;    ///< of text and words
    std::string name;    ///< what a number or address stands for: an enumerator, flags, an error, a symbol; empty: nothing known
    std::string target;  ///< the file that a descriptor leads to
    uint64_t length = 0; ///< of a list: elements
    std::vector<Decoded> parts = {};
};

/// Who knows what addresses are (names.h, or nobody).
class AddressNames {
  public:
    virtual ~AddressNames() = default;
    /// "vfs_read", "main+0x12"; empty where no function was known there at that time. Good until the next call.
    [[nodiscard]] virtual std::string_view symbol(uint32_t pid, uint64_t address, uint64_t t_ns) = 0;
};

struct Decoding {
    const btf::Btf *kernel = nullptr;
    AddressNames *addresses = nullptr;
};

/// What is known of a column before any record comes.
struct ColumnPlan {
    std::string name;
    Type type;
    std::optional<Constants> constants = {}; ///< what its values may be called
    bool addresses = false;                  ///< an unsigned long that tracefs has for an address
    /// Values whose text is made of digits alone, or of one look at AddressNames: the most frequent ones.
    enum class Plain : uint8_t { no, number, address } plain = Plain::no;
};
[[nodiscard]] ColumnPlan plan_column(const ProbeSite &place, const Layout &layout, size_t column);

/// append_text(decode()), or append_json() of it with its "text" behind. False: it isn't that plain, and nothing was appended.
[[nodiscard]] bool append_plain_text(std::string &out, const Event &event, size_t column, const ColumnPlan &plan,
                                     const Decoding &with);
[[nodiscard]] bool append_plain_json(std::string &out, const Event &event, size_t column, const ColumnPlan &plan,
                                     const Decoding &with);

/// A column of a record.
[[nodiscard]] Decoded decode(const Event &event, size_t column, const ColumnPlan &plan, const Decoding &with);
/// The same for one value only.
[[nodiscard]] Decoded decode(const Event &event, size_t column, const Decoding &with);
/// What a result's call returned.
[[nodiscard]] Decoded decode_result(const Event &event, const Decoding &with);

/// As people read it: "O_RDONLY", 3</etc/passwd>, "text", <fault>0x10.
void append_text(std::string &out, const Decoded &value);
/// The same of a result, errors with their number: "-2 (ENOENT)".
void append_result_text(std::string &out, const Decoded &value);
/// As a JSON value: numbers up to 2^53 bare, larger ones, addresses and texts in quotes, null where there is nothing to read.
void append_json(std::string &out, const Decoded &value);

/// Whether decode() may ask AddressNames about a value of that type; what it then asks about.
///@{
[[nodiscard]] bool may_be_address(const Type &type);
[[nodiscard]] uint64_t as_address(const Type &type, uint64_t raw);
///@}
/// The same for what a call returned.
[[nodiscard]] bool may_return_address(const Type &type);

/// What a Go interface holds: where the description of its type is in the file, and what that is called. Empty: nobody knows.
struct GoTypeName {
    uint64_t address = 0;
    std::string name;
};
[[nodiscard]] GoTypeName go_type_name(const Event &event, size_t column);

/// How many bytes of a blob mean something, of those behind its length.
[[nodiscard]] size_t used_bytes(const Blob &blob, Bytes record);

/// decode() and its text (or JSON value) in one. Sets `unreadable` where the memory behind it couldn't be read.
void append_value(std::string &out, const Type &type, uint64_t raw, const Blob *blob, Bytes record, const btf::Btf *kernel,
                  bool json, bool &unreadable);
/// What a call returned: the kernel's errors by name ("-2 (ENOENT)"). `errors`: it returns them so, as the kernel's functions do.
void append_result(std::string &out, const Type &type, uint64_t raw, const btf::Btf *kernel, bool json, bool errors);

/// The parameter's name, or "argN".
[[nodiscard]] std::string parameter_name(const Signature &signature, uint32_t index);

/// The type of argument `index`: of the signature, else a raw register.
[[nodiscard]] Type parameter_type(const Signature &signature, uint32_t index);

/// The value's error, 1 to 4095, if it is one as the kernel returns them; else 0.
[[nodiscard]] int error_of(const Type &type, uint64_t raw);

} // namespace rawbpf::inline v0::trace
