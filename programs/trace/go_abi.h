// How Go's compiler passes what a function takes and gives back. PURE.
//
//      func (s *srv) Handle(id int, key string) (int, error)
//
//      x86_64   in    rax: s   rbx: id   rcx, rdi: key (where, how long)
//               out   rax: int   rbx, rcx: error (type, data)
//
// Nothing of it is C's, and it has changed: until Go 1.16 (arm64: 1.17) everything was on the stack.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "programs/trace/signature.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {
enum class Arch : uint8_t; // asm/builder.h
}

namespace rawbpf::inline v0::trace {

struct GoVariable;
class GoTypes;

/// Where one word of a value is: eight bytes at most.
struct GoWord {
    enum class In : uint8_t { integer_register, float_register, stack, unknown };
    In in = In::integer_register;
    uint8_t size = 8;
    uint32_t at = 0; ///< the register, as the convention counts them; on the stack: bytes behind the return address
    [[nodiscard]] bool operator==(const GoWord &) const = default;
};

/// A type of Go's, as far as it says where a value lies and how it is shown.
struct GoType {
    enum class Kind : uint8_t {
        unknown, ///< a name that nothing is known of
        boolean,
        integer,
        address, ///< pointers, maps, channels, functions, uintptr
        real,
        complex,
        text,      ///< string
        slice,     ///< of `element`
        interface, ///< its first word: interface{} has the type there, others a table whose second word is the type
        structure,
        array,
    };
    Kind kind = Kind::unknown;
    std::string name;  ///< "[]byte", "main.item"
    uint64_t size = 8; ///< bytes
    bool is_signed = false;
    bool has_methods = false;             ///< an interface other than interface{}
    std::vector<GoVariable> fields;       ///< of a structure; no `= {}`: clang would want the type complete here
    uint64_t count = 0;                   ///< of an array
    std::shared_ptr<GoType> element = {}; ///< of slices and arrays
};

struct GoVariable {
    std::string name; ///< may be empty
    GoType type;
    uint64_t offset = 0; ///< in a structure, bytes
    /// Where one word of a parameter is, if that is known: there may be parameters before it that nobody named.
    struct Known {
        GoWord word;
        uint64_t offset = 0; ///< of the word in the variable, bytes; on the stack unknown, unless `whole`
        bool whole = false;  ///< all of the variable is there
    };
    std::optional<Known> known = {};
};

/// Of a method the receiver is the first parameter.
struct GoSignature {
    bool results_known = true;
    std::vector<GoVariable> parameters, results;
};

/// Bytes that a value's address is a multiple of.
[[nodiscard]] uint64_t go_alignment(const GoType &type);
/// A structure with its fields' offsets and its size, as Go's compiler lays it out.
void lay_out_go_structure(GoType &type);

/// Reads what Go writes, parameter names optional: "func (s *srv) Handle(id int, key string) (int, error)", "(int, []byte)
/// error", "int, string" (then nothing is known of the results). Errors: invalid_argument with a caret, among them C's
/// declarations.
[[nodiscard]] Result<GoSignature> parse_go_signature(std::string_view text);

/// Registers that a convention uses; none: the stack alone (ABI0).
struct GoAbi {
    uint32_t integers = 0, floats = 0;
};
/// ABIInternal of an architecture. Source: src/cmd/compile/abi-internal.md.
[[nodiscard]] GoAbi go_register_abi(Arch arch);
/// Whether programs of this Go ("go1.19.8", "devel go1.22-...") pass arguments in registers: 1.17, on arm64 1.18.
[[nodiscard]] bool go_passes_in_registers(std::string_view version, Arch arch);

/// A word of a value with what it is of it.
struct GoLeaf {
    enum class Part : uint8_t { whole, data, length, capacity, type, real, imaginary };
    Part part = Part::whole;
    const GoType *type = nullptr; ///< the string, slice or plain value that it belongs to
    std::string path;             ///< from the variable on: ".X[0]"
    uint64_t offset = 0;          ///< in the variable, bytes
    uint8_t size = 8;
    bool is_float = false;
};
/// The words of a value in their order, `most` at most.
[[nodiscard]] std::vector<GoLeaf> go_leaves(const GoType &type, size_t most);

/// The words of a variable, where they are.
struct GoAssigned {
    const GoVariable *variable = nullptr;
    std::vector<GoLeaf> leaves;
    std::vector<GoWord> words; ///< of each leaf
};
struct GoCallPlaces {
    std::vector<GoAssigned> parameters, results;
};
/// Refers to `signature`.
[[nodiscard]] GoCallPlaces assign_go(const GoSignature &signature, const GoAbi &abi);

/// A call of a Go function, as a probe reads it: the words of ProbeSite::signature's parameters.
struct GoCall {
    std::vector<GoWord> arguments, results;
    std::vector<Parameter> returned;           ///< names and types of `results`
    bool goroutine = false;                    ///< which one it is stands in a register
    uint64_t entry = 0;                        ///< offset in the file: behind the stack check, where the function is begun once
    std::vector<uint64_t> returns;             ///< offsets in the file of its return instructions
    std::vector<uint64_t> probed;              ///< addresses of all these, as the file has them
    std::shared_ptr<const GoTypes> types = {}; ///< of the program; may be nullptr
};

/// A GoCall whose parameters, and what is returned, go into `out`.
[[nodiscard]] GoCall describe_go_call(const GoSignature &signature, const GoAbi &abi, Signature &out);
/// The same for what somebody wrote as C: each parameter takes one word.
[[nodiscard]] GoCall describe_go_call(const Signature &signature, const GoAbi &abi);

/// Words of a call, of its results, that are shown.
inline constexpr uint32_t kMostGoWords = 24;

} // namespace rawbpf::inline v0::trace
