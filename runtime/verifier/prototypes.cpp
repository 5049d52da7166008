// Finds a helper's row. The rows stand in prototypes.def.
#include "runtime/verifier/prototypes.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr std::array<Argument, 5> list(Argument a, Argument b = Argument::none, Argument c = Argument::none,
                                       Argument d = Argument::none, Argument e = Argument::none) {
    return {a, b, c, d, e};
}

constexpr auto rows() {
    using enum Argument;
    return std::to_array<Prototype>({
#define RAWBPF_PROTOTYPE(name, sets, answer, trait, arguments) {#name, #sets, Answer::answer, Trait::trait, list arguments},
#include "runtime/verifier/prototypes.def"
#undef RAWBPF_PROTOTYPE
    });
}
constexpr auto kRows = rows();

} // namespace

const Prototype *find_prototype(std::string_view name, char set) {
    for (const Prototype &row : kRows)
        if (row.name == name && (row.sets == "all" || row.sets.find(set) != std::string_view::npos)) return &row;
    return nullptr;
}

bool has_prototype(std::string_view name) {
    for (const Prototype &row : kRows)
        if (row.name == name) return true;
    return false;
}

} // namespace rawbpf::inline v0::verifier
