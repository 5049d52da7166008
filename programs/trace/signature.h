// What a function takes and returns: names and types of its arguments, from BTF, from the user's --sig, or unknown.
//
//      BTF     FUNC vfs_read -> FUNC_PROTO (file: struct file *, buf: char *, count: size_t, pos: loff_t *) -> ssize_t
//      --sig   'int,const char*'   'long (int fd, const char *path)'   'u32 flags, struct sockaddr *addr'
//
// A type says three things: how many bytes a value of it has, what else is worth copying while the probe runs (the text behind a
// char *, the path of a struct file *), and how the value is shown. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "asm/machines.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

/// How a value is shown, and what is copied for it.
enum class Show : uint8_t {
    integer,      ///< in its signedness
    boolean,      ///< true, false
    character,    ///< 'a'
    enumeration,  ///< by name
    address,      ///< 0x..., a symbol where it is one's
    text,         ///< a char *: what it points at, up to a zero
    file,         ///< a struct file *: the path
    path,         ///< a const struct path *: the path
    dentry,       ///< a struct dentry *: the path below its mount
    sockaddr,     ///< a struct sockaddr *: family and address
    characters,   ///< an array of char inside of a record or struct
    data_text,    ///< a tracepoint's __data_loc: a text somewhere in its record
    nothing,      ///< void
    counted,      ///< a char * without a zero at the end: the next argument, its name with _len, says how many bytes
    real,         ///< the bits of a float or a double
    unavailable,  ///< a USDT argument that no program can fetch
    descriptor,   ///< an int that is a file descriptor: the number, and what it leads to
    go_slice,     ///< Go's: where the elements are; the next argument says how many
    go_interface, ///< Go's: a table with the type; the next argument is the value
    go_any,       ///< the same of interface{}: the type itself
};

struct Type {
    std::string name; ///< as C has it: "struct file *", "unsigned int"
    Show show = Show::address;
    uint8_t size = 8; ///< bytes, 1 to 8; of Show::characters: see `length`
    bool is_signed = false;
    btf::TypeId id = 0;           ///< in the BTF it comes from; 0: none
    uint32_t length = 0;          ///< Show::characters: bytes; Show::go_slice: of one element
    Show element = Show::nothing; ///< Show::go_slice: its elements, where they are shown
};

struct Parameter {
    std::string name; ///< may be empty: then it goes by its number
    Type type;
    bool is_length = false; ///< of the value before it (its length, capacity, data), and not shown by itself
};

struct Signature {
    bool known = false; ///< false: raw registers
    bool variadic = false;
    std::vector<Parameter> parameters;
    Type returns;
};

/// Arguments that are shown where nothing is known of a function.
inline constexpr uint32_t kRawArguments = kHost.arguments == 0 || kHost.arguments > 6 ? 6 : kHost.arguments;
/// Arguments of a user's function that are shown: those behind the registers lie on the stack.
inline constexpr uint32_t kMostArguments = 12;

/// How a type of a BTF is shown. Pointers to char that aren't const, or whose parameter is called buf, data ..., are addresses:
/// such are filled, or hold no text. Errors: broken BTF.
/// Integers that are called fd, dirfd ... are descriptors.
[[nodiscard]] Result<Type> describe_type(const btf::Btf &btf, btf::TypeId id, std::string_view parameter = {});

/// The signature of a FUNC or FUNC_PROTO. Errors: bad_input.
[[nodiscard]] Result<Signature> signature_of(const btf::Btf &btf, btf::TypeId id);

/// Reads what a person wrote: C's types and the short ones (u8 to u64, s8 to s64, ptr, str), names optional, a return type
/// optional in front of parentheses. Errors: invalid_argument with a caret.
[[nodiscard]] Result<Signature> parse_signature(std::string_view text);

/// What is wrong at a place of a signature, with a caret: invalid_argument.
[[nodiscard]] Error signature_error(std::string_view text, size_t at, std::string_view message, std::string hint = {});

/// One declaration of a tracepoint's format file: "const char * filename", "char comm[16]", "__data_loc char[] name". `size` and
/// `is_signed` are what the file says of it; they decide where the type's name isn't known here.
[[nodiscard]] Parameter parse_field(std::string_view declaration, uint32_t size, bool is_signed);

} // namespace rawbpf::inline v0::trace
