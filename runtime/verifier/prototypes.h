// What the verifier knows of helpers, from prototypes.def. PURE.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rawbpf::inline v0::verifier {

/// What an argument has to be; prototypes.def says what each word means.
enum class Argument : uint8_t {
    none,
    any,
    context,
    map,
    key,
    value,
    space,
    bytes,
    bytes0,
    bytes0_or_null,
    room,
    room0,
    size,
    fixed,
    record,
    long_out,
    int_out,
    lock,
};
/// What r0 is afterwards.
enum class Answer : uint8_t { number, nothing, value, record, error, processor };
/// What else a call does.
enum class Trait : uint8_t { plain, moves, packet, sleeps, releases };

/// One row.
struct Prototype {
    std::string_view name; ///< without "bpf_"
    std::string_view sets; ///< "all", or letters
    Answer answer;
    Trait trait;
    std::array<Argument, 5> arguments;
};

/// How a helper is called by programs of a set (helper_set()); nullptr: there is no row for its name and that letter.
[[nodiscard]] const Prototype *find_prototype(std::string_view name, char set);
/// Whether there is a row for the name at all.
[[nodiscard]] bool has_prototype(std::string_view name);

} // namespace rawbpf::inline v0::verifier
