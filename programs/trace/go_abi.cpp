// Each variable is taken as a whole: its words go into the next registers, or, where they don't all fit, it lies on the stack,
// and those behind it are tried again. Strings, slices and interfaces are structures of two, three and two words; an array of
// more than one element never is in registers, as nothing could index it there.
//
//      func(a [2]int, b string, c float64, d int8)    stack +0: a    rax, rbx: b    xmm0: c    rcx: d
//
// On the stack parameters stand one behind the other, aligned, and behind them, from a multiple of eight on, the results. The
// first of them is behind the return address, on arm64 behind the place that the callee may save it in: 8 bytes either way.
//
// Source: Go's src/cmd/compile/abi-internal.md ("Function call argument and result passing").
#include "programs/trace/go_abi.h"

#include <algorithm>

#include "asm/builder.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

using Kind = GoType::Kind;
using Part = GoLeaf::Part;

constexpr size_t kMoreThanRegisters = 64;

uint64_t align_up(uint64_t value, uint64_t to) { return to <= 1 ? value : (value + to - 1) / to * to; }

class Leaves {
  public:
    Leaves(std::vector<GoLeaf> &out, size_t most) : out_(out), most_(most) {}

    void add(const GoType &type, const std::string &path, uint64_t offset) {
        if (out_.size() >= most_) return;
        const auto word = [&](Part part, uint64_t at, uint64_t size = 8, bool is_float = false) {
            if (out_.size() < most_) out_.push_back({part, &type, path, offset + at, static_cast<uint8_t>(size), is_float});
        };
        switch (type.kind) {
        case Kind::text: word(Part::data, 0), word(Part::length, 8); break;
        case Kind::slice: word(Part::data, 0), word(Part::length, 8), word(Part::capacity, 16); break;
        case Kind::interface: word(Part::type, 0), word(Part::data, 8); break;
        case Kind::real: word(Part::whole, 0, type.size, true); break;
        case Kind::complex:
            word(Part::real, 0, type.size / 2, true), word(Part::imaginary, type.size / 2, type.size / 2, true);
            break;
        case Kind::structure:
            for (const GoVariable &field : type.fields) {
                if (out_.size() >= most_) return;
                add(field.type, path + "." + field.name, offset + field.offset);
            }
            break;
        case Kind::array:
            for (uint64_t i = 0; type.element && type.element->size > 0 && i < type.count && out_.size() < most_; ++i)
                add(*type.element, format("{}[{}]", path, i), offset + i * type.element->size);
            break;
        default: word(Part::whole, 0, std::clamp<uint64_t>(type.size, 1, 8));
        }
    }

  private:
    std::vector<GoLeaf> &out_;
    size_t most_;
};

bool has_long_array(const GoType &type) {
    if (type.kind == Kind::array) return type.count > 1 || (type.count == 1 && type.element && has_long_array(*type.element));
    return type.kind == Kind::structure && std::any_of(type.fields.begin(), type.fields.end(),
                                                       [](const GoVariable &field) { return has_long_array(field.type); });
}

// Gives one variable after the other its place.
class Assigner {
  public:
    explicit Assigner(const GoAbi &abi) : abi_(abi) {}

    GoAssigned one(const GoVariable &variable) {
        GoAssigned out;
        out.variable = &variable;
        out.leaves = go_leaves(variable.type, kMoreThanRegisters);
        uint32_t floats = 0;
        for (const GoLeaf &leaf : out.leaves) floats += leaf.is_float;
        const auto integers = static_cast<uint32_t>(out.leaves.size()) - floats;
        if (variable.known) pass_over_hidden(*variable.known, out.leaves);
        const bool found = variable.known && variable.known->word.in == GoWord::In::stack;
        if (!(found && !variable.known->whole) && integer_ + integers <= abi_.integers && float_ + floats <= abi_.floats &&
            !has_long_array(variable.type)) {
            for (const GoLeaf &leaf : out.leaves)
                out.words.push_back({leaf.is_float ? GoWord::In::float_register : GoWord::In::integer_register, leaf.size,
                                     leaf.is_float ? float_++ : integer_++});
            return out;
        }
        stack_ = align_up(stack_, go_alignment(variable.type));
        const bool there = !found || pass_over_hidden_on_stack(*variable.known, out.leaves);
        for (const GoLeaf &leaf : out.leaves)
            out.words.push_back(
                {there ? GoWord::In::stack : GoWord::In::unknown, leaf.size, static_cast<uint32_t>(stack_ + leaf.offset)});
        stack_ += variable.type.size;
        return out;
    }
    // The results have all registers again.
    void now_results() {
        integer_ = float_ = 0;
        stack_ = align_up(stack_, 8);
    }

  private:
    // Registers before those that this variable is known to begin with are somebody's who has no name.
    void pass_over_hidden(const GoVariable::Known &known, const std::vector<GoLeaf> &leaves) {
        if (known.word.in == GoWord::In::stack || (known.whole && leaves.size() != 1)) return;
        const bool is_float = known.word.in == GoWord::In::float_register;
        uint32_t before = 0;
        for (const GoLeaf &leaf : leaves) {
            if (leaf.offset >= known.offset) {
                if (leaf.offset == known.offset && leaf.is_float == is_float && known.word.at >= before) {
                    uint32_t &next = is_float ? float_ : integer_;
                    next = std::max(next, known.word.at - before);
                }
                return;
            }
            before += leaf.is_float == is_float;
        }
    }

    // The same of what lies on the stack. False: it is not known which of its words was found.
    bool pass_over_hidden_on_stack(const GoVariable::Known &known, const std::vector<GoLeaf> &leaves) {
        const uint64_t at = known.word.at;
        const auto begins = [&](const GoLeaf &leaf) { return stack_ + leaf.offset == at; };
        if (!known.whole && std::any_of(leaves.begin(), leaves.end(), begins)) return true;
        stack_ = std::max(stack_, at);
        return known.whole || leaves.size() == 1;
    }

    GoAbi abi_;
    uint32_t integer_ = 0, float_ = 0;
    uint64_t stack_ = 0;
};

// One word as a parameter of a Signature. Names: "key" and "key_len", "item.S".
Parameter readable(const GoLeaf &leaf, const GoWord &word, const std::string &variable);
Parameter parameter_of(const GoLeaf &leaf, const GoWord &word, const std::string &variable) {
    Parameter out = readable(leaf, word, variable);
    if (word.in == GoWord::In::unknown) out.type.show = Show::unavailable;
    return out;
}

Parameter readable(const GoLeaf &leaf, const GoWord &word, const std::string &variable) {
    const GoType &type = *leaf.type;
    Parameter out;
    out.name = variable + leaf.path;
    out.type = {type.name, Show::integer, leaf.size, type.is_signed};
    switch (leaf.part) {
    case Part::length:
    case Part::capacity:
        out.name += leaf.part == Part::length ? "_len" : "_cap";
        out.type = {"int", Show::integer, 8, true};
        out.is_length = true;
        return out;
    case Part::type: out.type.show = type.has_methods ? Show::go_interface : Show::go_any; return out;
    case Part::real:
    case Part::imaginary:
        out.name += leaf.part == Part::real ? ".real" : ".imag";
        out.type.show = Show::real;
        break;
    case Part::data:
        if (type.kind == Kind::interface) {
            out.name += "_data";
            out.type = {"unsafe.Pointer", Show::address, 8, false};
            out.is_length = true;
            return out;
        }
        out.type.show = Show::counted;
        if (type.kind == Kind::slice) {
            const GoType *element = type.element.get();
            const bool bytes = element && element->kind == Kind::integer && element->size == 1 && !element->is_signed;
            if (bytes) return out;
            out.type.show = Show::go_slice;
            if (element && element->kind == Kind::text) {
                out.type.element = Show::counted;
            } else if (element && element->size <= 8 && element->size > 0)
                switch (element->kind) {
                case Kind::boolean: out.type.element = Show::boolean; break;
                case Kind::integer: out.type.element = Show::integer; break;
                case Kind::real: out.type.element = Show::real; break;
                case Kind::address: out.type.element = Show::address; break;
                default: break;
                }
            if (out.type.element != Show::nothing) out.type.length = static_cast<uint32_t>(element->size);
            out.type.is_signed = element && element->is_signed;
        }
        return out;
    case Part::whole:
        switch (type.kind) {
        case Kind::boolean: out.type.show = Show::boolean; break;
        case Kind::address: out.type.show = Show::address; break;
        case Kind::real: out.type.show = Show::real; break;
        default: break;
        }
    }
    // No BPF program sees those registers.
    if (word.in == GoWord::In::float_register) out.type.show = Show::unavailable;
    return out;
}

void add_words(const std::vector<GoAssigned> &variables, std::string_view unnamed, std::vector<Parameter> &parameters,
               std::vector<GoWord> &words) {
    for (size_t i = 0; i < variables.size(); ++i) {
        const GoAssigned &one = variables[i];
        const std::string &own = one.variable->name;
        if (own.starts_with('.'))
            continue; // the compiler's own: .dict, what a generic function's types are (Go 1.18 passes it, 1.25 says so)
        const std::string name = own.empty() || own == "_" || own.starts_with('~') ? format("{}{}", unnamed, i) : own;
        for (size_t leaf = 0; leaf < one.leaves.size(); ++leaf) {
            parameters.push_back(parameter_of(one.leaves[leaf], one.words[leaf], name));
            words.push_back(one.words[leaf]);
        }
    }
    if (words.size() <= kMostGoWords) return;
    size_t most = kMostGoWords;
    while (most > 0 && parameters[most].is_length) --most;
    parameters.resize(most);
    words.resize(most);
}

} // namespace

uint64_t go_alignment(const GoType &type) {
    switch (type.kind) {
    case Kind::structure: {
        uint64_t out = 1;
        for (const GoVariable &field : type.fields) out = std::max(out, go_alignment(field.type));
        return out;
    }
    case Kind::array: return type.element ? go_alignment(*type.element) : 1;
    case Kind::complex: return std::max<uint64_t>(1, type.size / 2);
    default: return std::clamp<uint64_t>(type.size, 1, 8);
    }
}

void lay_out_go_structure(GoType &type) {
    type.size = 0;
    for (GoVariable &field : type.fields) {
        field.offset = align_up(type.size, go_alignment(field.type));
        type.size = field.offset + field.type.size;
    }
    // Lest a pointer to it point behind the structure.
    if (!type.fields.empty() && type.fields.back().type.size == 0 && type.size > 0) ++type.size;
    type.size = align_up(type.size, go_alignment(type));
}

GoAbi go_register_abi(Arch arch) {
    switch (arch) {
    case Arch::x86_64: return {9, 15}; // rax rbx rcx rdi rsi r8 r9 r10 r11; xmm0 to xmm14
    case Arch::arm64: return {16, 16}; // x0 to x15; d0 to d15
    default: return {};
    }
}

bool go_passes_in_registers(std::string_view version, Arch arch) {
    if (version.find("noregabi") != std::string_view::npos) return false; // GOEXPERIMENT, until 1.18
    const size_t at = version.find("go1.");
    if (at == std::string_view::npos) return true; // nothing of the old ones lacks it
    uint32_t minor = 0;
    for (size_t i = at + 4; i < version.size() && version[i] >= '0' && version[i] <= '9' && minor < 10000; ++i)
        minor = minor * 10 + static_cast<uint32_t>(version[i] - '0');
    return minor >= (arch == Arch::arm64 ? 18u : 17u);
}

std::vector<GoLeaf> go_leaves(const GoType &type, size_t most) {
    std::vector<GoLeaf> out;
    Leaves(out, most).add(type, {}, 0);
    return out;
}

GoCallPlaces assign_go(const GoSignature &signature, const GoAbi &abi) {
    GoCallPlaces out;
    Assigner assigner(abi);
    for (const GoVariable &parameter : signature.parameters) out.parameters.push_back(assigner.one(parameter));
    assigner.now_results();
    for (const GoVariable &result : signature.results) out.results.push_back(assigner.one(result));
    return out;
}

GoCall describe_go_call(const GoSignature &signature, const GoAbi &abi, Signature &out) {
    GoCall call;
    const GoCallPlaces places = assign_go(signature, abi);
    out = {};
    out.known = true;
    add_words(places.parameters, "arg", out.parameters, call.arguments);
    if (!signature.results_known) { // as for C: the first register, as a number
        out.returns = {"int", Show::integer, 8, true};
        call.returned.push_back({{}, out.returns});
        call.results.push_back({abi.integers ? GoWord::In::integer_register : GoWord::In::stack, 8, 0});
        return call;
    }
    add_words(places.results, "ret", call.returned, call.results);
    out.returns = call.returned.empty() ? Type{"", Show::nothing} : call.returned.front().type;
    return call;
}

GoCall describe_go_call(const Signature &signature, const GoAbi &abi) {
    GoCall call;
    const auto word = [&](uint32_t i) -> GoWord {
        if (i < abi.integers) return {GoWord::In::integer_register, 8, i};
        return {GoWord::In::stack, 8, (i - abi.integers) * 8};
    };
    const auto count = signature.known ? static_cast<uint32_t>(signature.parameters.size()) : kRawArguments;
    for (uint32_t i = 0; i < count; ++i) call.arguments.push_back(word(i));
    if (signature.known && signature.returns.show == Show::nothing) return call;
    const Type raw{"long", Show::integer, 8, true};
    call.returned.push_back({{}, signature.known ? signature.returns : raw});
    if (abi.integers)
        call.results.push_back({GoWord::In::integer_register, 8, 0});
    else
        call.results.push_back({GoWord::In::stack, 8, count * 8});
    return call;
}

} // namespace rawbpf::inline v0::trace
