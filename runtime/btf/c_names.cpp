// Names of C.
//
// C has two sets of global names: tags (struct, union, enum) and everything else (typedefs, enumerators, functions). A kernel is
// a thousand C files, and BTF has the types of them all: five different `struct bucket`, enumerators that two drivers both
// define. The first by id keeps its name, later ones become bucket___2, bucket___3: three underscores begin a flavour, which
// CO-RE cuts off again when it looks for the type in the running kernel.
//
// Names may be illegal in C: those of Rust and C++ types, keywords, or whatever somebody wrote into a file. What isn't a letter,
// a digit or an underscore becomes an underscore, so that nothing in a BTF can end a declaration and begin another.
//
// An INT has a name of its own choosing, too: "unsigned __int128" and "short int" are C, "u32" (Rust) and "bool" (C23) are not,
// nor is "long int" when it has four bytes. Those get a typedef to something of that size.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // all of a kernel's types pass here; -Os, as releases are built, takes half as long again
#endif

#include "runtime/btf/c_names.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/format.h"
#include "runtime/btf/c_header.h"

namespace rawbpf::inline v0::btf {

namespace {

// Words that can't be names, and typedefs that compilers have built in. C23's newer keywords aren't among them: a kernel's
// `typedef _Bool bool` is what programs compiled as C17 or older expect.
constexpr std::string_view kReserved[] = {
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Bool",
    "_Complex",
    "_Generic",
    "_Imaginary",
    "_Noreturn",
    "_Static_assert",
    "_Thread_local",
    "asm",
    "typeof",
    "__asm__",
    "__attribute__",
    "__typeof__",
    "__int128",
    "__builtin_va_list",
    "__builtin_ms_va_list",
};

// What C++ keeps for itself besides. `bool` isn't there: a typedef of that name is left out.
constexpr std::string_view kReservedInCxx[] = {
    "alignas",
    "alignof",
    "and",
    "bitand",
    "bitor",
    "bool",
    "catch",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "compl",
    "concept",
    "consteval",
    "constexpr",
    "constinit",
    "const_cast",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "false",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_assert",
    "static_cast",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    "rawbpf",
    "std",
};

/// Whether a name may be one of the list: most are told apart by two letters and their length.
class Filter {
  public:
    template <size_t N> explicit constexpr Filter(const std::string_view (&words)[N]) {
        for (std::string_view word : words) bits_[place(word) / 64] |= uint64_t{1} << place(word) % 64;
    }
    [[nodiscard]] constexpr bool may_have(std::string_view name) const { return bits_[place(name) / 64] >> place(name) % 64 & 1; }

  private:
    static constexpr unsigned place(std::string_view name) {
        const unsigned second = name.size() > 1 ? static_cast<unsigned char>(name[1]) : 0;
        return (static_cast<unsigned char>(name[0]) * 31u + second * 7u + static_cast<unsigned>(name.size())) & 511;
    }
    uint64_t bits_[8] = {};
};
constexpr Filter kMayBeReserved(kReserved), kMayBeReservedInCxx(kReservedInCxx);

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

uint32_t hash_of(std::string_view text) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    return hash;
}

struct CInt {
    std::string_view name;
    uint32_t size;
};
// As gcc and clang write them into DWARF, from which pahole takes them.
constexpr CInt kInts[] = {
    {"char", 1},
    {"signed char", 1},
    {"unsigned char", 1},
    {"short", 2},
    {"short int", 2},
    {"unsigned short", 2},
    {"short unsigned int", 2},
    {"int", 4},
    {"unsigned int", 4},
    {"unsigned", 4},
    {"long", 8},
    {"long int", 8},
    {"unsigned long", 8},
    {"long unsigned int", 8},
    {"long long", 8},
    {"long long int", 8},
    {"unsigned long long", 8},
    {"long long unsigned int", 8},
    {"__int128", 16},
    {"unsigned __int128", 16},
    {"__int128 unsigned", 16},
    {"_Bool", 1},
};

} // namespace

CBase c_base(const Flat &types, TypeId id) {
    const std::string_view name = types.type_name(id);
    const uint32_t size = types.size(id);
    if (types.kind(id) == Kind::float_) {
        if ((name == "float" && size == 4) || (name == "double" && size == 8)) return {name, {}};
        return {{}, size == 4 ? "float" : size == 8 ? "double" : std::string_view()};
    }
    for (const CInt &known : kInts)
        if (known.size == size && known.name == name) return {known.name, {}};
    const IntEncoding encoding = types.int_encoding(id);
    if (encoding.is_bool && size == 1) return {{}, "_Bool"};
    const bool is_signed = encoding.is_signed;
    switch (size) {
    case 1: return {{}, is_signed ? "signed char" : "unsigned char"};
    case 2: return {{}, is_signed ? "short" : "unsigned short"};
    case 4: return {{}, is_signed ? "int" : "unsigned int"};
    case 8: return {{}, is_signed ? "long long" : "unsigned long long"};
    case 16: return {{}, is_signed ? "__int128" : "unsigned __int128"};
    default: return {};
    }
}

bool CNames::legal(std::string_view name) const {
    if (name.empty() || digit(name[0])) return false;
    for (char c : name)
        if (!letter(c) && !digit(c)) return false;
    if (name.size() > 20) return true;
    if (kMayBeReserved.may_have(name))
        for (std::string_view word : kReserved)
            if (word[0] == name[0] && word == name) return false;
    if (cplusplus_ && kMayBeReservedInCxx.may_have(name))
        for (std::string_view word : kReservedInCxx)
            if (word[0] == name[0] && word == name) return false;
    return true;
}

std::string CNames::legalised(std::string_view name) const {
    std::string out;
    if (name.empty() || digit(name[0])) out = '_';
    for (char c : name) out += letter(c) || digit(c) ? c : '_';
    if (!legal(out)) out += '_';
    return out;
}

void CNames::Used::grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot &slot : old) {
        if (!slot.text) continue;
        size_t at = slot.hash & (slots_.size() - 1);
        while (slots_[at].text) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = slot;
    }
}

uint32_t CNames::Used::add(std::string_view text, TypeId id, TypeId *owner) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    const uint32_t hash = hash_of(text);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].text; at = (at + 1) & (slots_.size() - 1)) {
        Slot &slot = slots_[at];
        if (slot.hash != hash || std::string_view(slot.text, slot.length) != text) continue;
        if (owner) *owner = slot.owner;
        return slot.count++;
    }
    slots_[at] = {text.data(), static_cast<uint32_t>(text.size()), hash, 1, id};
    ++used_;
    return 0;
}

void CNames::set(TypeId id, uint32_t index, std::string text) {
    renamed_.insert_or_assign(key(id, index), std::move(text));
    (index == kItself ? changed_ : changed_values_)[id] = true;
}

void CNames::rename(Used &used, TypeId id, uint32_t index, const std::string &wanted, uint32_t count) {
    // The new name may be somebody's own, or look so only because it stands here for the first time.
    for (;; ++count) {
        set(id, index, count == 0 ? wanted : format("{}___{}", wanted, count + 1));
        const std::string &text = renamed_.at(key(id, index)); // nodes of the map stay where they are
        if (used.add(text, id) == 0) return;
    }
}

void CNames::name(Used &used, TypeId id, uint32_t index, std::string_view wanted) {
    if (!legal(wanted)) return rename(used, id, index, legalised(wanted), 0);
    if (uint32_t before = used.add(wanted, id)) rename(used, id, index, std::string(wanted), before);
}

CNames::CNames(const Flat &types, bool cplusplus)
    : types_(types), cplusplus_(cplusplus), tags_(cplusplus ? all_ : c_tags_), changed_(types.end_id()),
      changed_values_(types.end_id()) {
    const TypeId end = types.end_id();
    for (TypeId id = 1; id < end; ++id) {
        const Kind kind = types.kind(id);
        if (kind == Kind::func || kind == Kind::func_proto || kind == Kind::ptr) continue; // two types out of three
        const std::string_view text = types.type_name(id);
        switch (kind) {
        case Kind::struct_:
        case Kind::union_:
            if (!text.empty()) name(tags_, id, kItself, text);
            break;
        case Kind::enum_:
        case Kind::enum64:
            if (!text.empty()) name(tags_, id, kItself, text);
            for (uint32_t i = 0; i < types.vlen(id); ++i) name(ordinary_, id, i, types.enum_value(id, i).name);
            break;
        case Kind::typedef_: name(ordinary_, id, kItself, text); break;
        case Kind::int_:
        case Kind::float_:
            if (const CBase base = c_base(types, id); base.word.empty()) name(ordinary_, id, kItself, text);
            break;
        default: break;
        }
    }
    // A declaration without a definition is the same type as a definition of that name.
    for (TypeId id = 1; id < end; ++id) {
        if (types.kind(id) != Kind::fwd) continue;
        const std::string_view text = types.type_name(id);
        if (!legal(text)) {
            rename(tags_, id, kItself, legalised(text), 0);
            continue;
        }
        TypeId owner = 0;
        if (uint32_t before = tags_.add(text, id, &owner)) {
            const Kind of = types.kind(owner);
            const bool is_union = of == Kind::union_ || (of == Kind::fwd && types.kind_flag(owner));
            if (is_enumeration(of) || is_union != types.kind_flag(id)) rename(tags_, id, kItself, std::string(text), before);
        }
    }
}

bool CNames::claim(TypeId id) {
    const std::string_view text = types_.type_name(id);
    return legal(text) && ordinary_.add(text, id) == 0;
}

bool is_keyword(std::string_view word) {
    return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved) ||
           std::find(std::begin(kReservedInCxx), std::end(kReservedInCxx), word) != std::end(kReservedInCxx);
}

} // namespace rawbpf::inline v0::btf
