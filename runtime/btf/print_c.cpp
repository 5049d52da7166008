// Types as C.
//
// BTF says "pointer to function returning int"; C writes it inside out, around the name. So a declaration grows from the name
// outwards while the chain of types is followed: a pointer puts a star in front of what is there, an array and a function put
// something behind it, with parentheses wherever a star would bind to the wrong side.
//
//      array of 3 -> pointer -> func_proto(int) -> int      h     h[3]     *h[3]     (*h[3])(int)     int (*h[3])(int)
//
// Names come from the BTF, which may be anybody's: what isn't printable ASCII is escaped. A hostile BTF can make structs whose
// anonymous members unfold to more text than there are atoms, or pointers to themselves; depth and length are limited.
//
// Sources: Documentation/bpf/btf.rst; C17 6.7.6. The look is that of the kernel's own headers.
#include "runtime/btf/print_c.h"

#include <algorithm>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::btf {

namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxText = 4 << 20;
constexpr uint32_t kMaxLayoutSteps = 100'000;

std::string printable(std::string_view name) {
    std::string out;
    for (char c : name)
        if (c >= 0x20 && c < 0x7f)
            out += c;
        else
            append(out, "\\x{:02x}", static_cast<unsigned char>(c));
    return out;
}

class Printer {
  public:
    Printer(const Btf &btf, PrintOptions options, bool unfold) : btf_(btf), options_(options), unfold_(unfold) {}

    /// `declarator` with the type `id`; `indent` is that of the line it will stand on.
    Result<std::string> declaration(TypeId id, std::string declarator, int indent, int depth) {
        std::string qualifiers;
        auto qualify = [&](std::string_view word) {
            if (!qualifiers.empty()) qualifiers += ' ';
            qualifiers += word;
        };
        for (; depth > 0; --depth) {
            Type t = TRY(btf_.type(id));
            switch (t.kind) {
            case Kind::const_: qualify("const"); break;
            case Kind::volatile_: qualify("volatile"); break;
            case Kind::restrict_: qualify("restrict"); break;
            case Kind::type_tag:
                if (options_.tags) qualify(format("__attribute__((btf_type_tag(\"{}\")))", printable(t.name)));
                break;
            case Kind::ptr: {
                // Qualifiers seen so far are the pointer's own.
                std::string star = "*" + qualifiers;
                if (!qualifiers.empty() && !declarator.empty()) star += ' ';
                qualifiers.clear();
                declarator.insert(0, star);
                if (TRY(binds_behind(t.size_or_type))) {
                    declarator.insert(0, 1, '(');
                    declarator += ')';
                }
                break;
            }
            case Kind::array: {
                Array a = btf_.array(t);
                append(declarator, "[{}]", a.count);
                id = a.element;
                if (declarator.size() > kMaxText) return too_long();
                continue;
            }
            case Kind::func_proto:
                declarator += TRY(parameters(t, indent, depth - 1));
                qualifiers.clear();
                break;
            default: {
                std::string out = std::move(qualifiers);
                if (!out.empty()) out += ' ';
                out += TRY(base(t, indent, depth - 1));
                if (!declarator.empty()) out += ' ';
                out += declarator;
                if ((written_ += out.size()) > kMaxText) return too_long();
                return out;
            }
            }
            id = t.size_or_type;
        }
        return fail(Errc::bad_input, "{}: BTF type {}: it is nested more than {} deep", btf_.name(), id, kMaxDepth);
    }

    /// "struct NAME {...}" with its members, without a semicolon.
    Result<std::string> composite(const Type &t, int indent, int depth) {
        std::string out = keyword(t) + " {\n";
        const std::string inner(static_cast<size_t>(indent + 1) * 4, ' ');
        for (uint32_t i = 0; i < t.vlen; ++i) {
            Member m = TRY(btf_.member(t, i));
            out += inner;
            out += TRY(declaration(m.type, printable(m.name), indent + 1, depth - 1));
            if (m.bit_size) append(out, ": {}", m.bit_size);
            out += ';';
            if (options_.offsets) {
                append(out, " /* {}", m.bit_offset / 8);
                if (m.bit_size || m.bit_offset % 8) append(out, ":{}", m.bit_offset % 8);
                out += " */";
            }
            out += '\n';
            if (out.size() > kMaxText) return too_long();
        }
        out.append(static_cast<size_t>(indent) * 4, ' ');
        out += '}';
        if (layout(t, kMaxDepth).packed) out += " __attribute__((packed))";
        return out;
    }

    Result<std::string> enumeration(const Type &t, int indent) {
        std::string out = keyword(t) + " {\n";
        const std::string inner(static_cast<size_t>(indent + 1) * 4, ' ');
        for (uint32_t i = 0; i < t.vlen; ++i) {
            EnumValue v = TRY(btf_.enum_value(t, i));
            append(out, "{}{} = ", inner, printable(v.name));
            t.kind_flag ? append(out, "{},\n", static_cast<int64_t>(v.value)) : append(out, "{},\n", v.value);
            if (out.size() > kMaxText) return too_long();
        }
        out.append(static_cast<size_t>(indent) * 4, ' ');
        return out + '}';
    }

    Result<std::string> section(const Type &t) {
        std::string out = format("/* {}: {} bytes */\n", printable(t.name), t.size_or_type);
        for (uint32_t i = 0; i < t.vlen; ++i) {
            VarSecinfo v = TRY(btf_.secinfo(t, i));
            Type var = TRY(btf_.type(v.type));
            out += TRY(variable(var));
            if (options_.offsets) append(out, " /* {}, {} bytes */", v.offset, v.size);
            out += '\n';
            if (out.size() > kMaxText) return too_long();
        }
        return out;
    }

    /// "static int counter;", also of a FUNC in a section of externals.
    Result<std::string> variable(const Type &t) {
        constexpr std::string_view kLinkage[] = {"static ", "", "extern "}; // BTF_VAR_* and BTF_FUNC_* agree
        uint32_t linkage = t.kind == Kind::var ? btf_.var_linkage(t) : t.vlen;
        std::string out(linkage < std::size(kLinkage) ? kLinkage[linkage] : "");
        out += TRY(declaration(t.size_or_type, printable(t.name), 0, kMaxDepth));
        return out + ';';
    }

    static std::string keyword(const Type &t) {
        std::string_view word = t.kind == Kind::union_ || (t.kind == Kind::fwd && t.kind_flag) ? "union"
                                : t.kind == Kind::struct_ || t.kind == Kind::fwd               ? "struct"
                                                                                               : "enum";
        return t.name.empty() ? std::string(word) : format("{} {}", word, printable(t.name));
    }

  private:
    Unexpected too_long() const {
        return fail(Errc::bad_input, "{}: BTF: the C text of a type has more than {} bytes", btf_.name(), kMaxText);
    }

    /// Whether that type is written behind the name: then a star in front of it needs parentheses.
    Result<bool> binds_behind(TypeId id) const {
        for (int depth = 0; depth < kMaxDepth; ++depth) {
            Type t = TRY(btf_.type(id));
            if (t.kind == Kind::array || t.kind == Kind::func_proto) return true;
            if (t.kind != Kind::const_ && t.kind != Kind::volatile_ && t.kind != Kind::restrict_ && t.kind != Kind::type_tag)
                return false;
            id = t.size_or_type;
        }
        return false;
    }

    Result<std::string> parameters(const Type &proto, int indent, int depth) {
        if (proto.vlen == 0) return std::string("(void)");
        std::string out = "(";
        for (uint32_t i = 0; i < proto.vlen; ++i) {
            Param p = TRY(btf_.param(proto, i));
            if (i > 0) out += ", ";
            if (i + 1 == proto.vlen && p.type == 0 && p.name.empty())
                out += "...";
            else
                out += TRY(declaration(p.type, printable(p.name), indent, depth));
            if (out.size() > kMaxText) return too_long();
        }
        return out + ")";
    }

    /// What stands in front of all stars and names.
    Result<std::string> base(const Type &t, int indent, int depth) {
        switch (t.kind) {
        case Kind::void_: return std::string("void");
        case Kind::int_:
        case Kind::float_:
        case Kind::typedef_: return printable(t.name);
        case Kind::fwd: return keyword(t);
        case Kind::struct_:
        case Kind::union_:
        case Kind::enum_:
        case Kind::enum64:
            if (!t.name.empty()) return keyword(t);
            if (!unfold_) return keyword(t) + " {...}";
            return t.kind == Kind::struct_ || t.kind == Kind::union_ ? composite(t, indent, depth) : enumeration(t, indent);
        default:
            return fail(Errc::bad_input, "{}: BTF type {} ({}) can't be the type of a declaration", btf_.name(), t.id,
                        kind_name(t.kind));
        }
    }

    struct Layout {
        uint64_t alignment = 1;
        bool packed = false;
    };
    /// A struct is packed when a member lies where its type's alignment wouldn't let it, or the end does.
    Layout layout(const Type &t, int depth) {
        Layout out;
        if (depth <= 0) return out;
        for (uint32_t i = 0; i < t.vlen; ++i) {
            if (++layout_steps_ > kMaxLayoutSteps) return {};
            Result<Member> m = btf_.member(t, i);
            if (!m) return {};
            if (m->bit_size) continue;
            uint64_t alignment = alignment_of(m->type, depth - 1);
            if (m->bit_offset % (8 * alignment) != 0) out.packed = true;
            out.alignment = std::max(out.alignment, alignment);
        }
        if (t.size_or_type % out.alignment != 0) out.packed = true;
        if (out.packed) out.alignment = 1;
        return out;
    }
    uint64_t alignment_of(TypeId id, int depth) {
        for (; depth > 0; --depth) {
            Result<Type> t = btf_.resolve(id);
            if (!t) return 1;
            switch (t->kind) {
            case Kind::int_:
            case Kind::enum_:
            case Kind::enum64:
            case Kind::float_: // 12 bytes of long double and other oddities align as they like
                return t->size_or_type && (t->size_or_type & (t->size_or_type - 1)) == 0 ? std::min(t->size_or_type, 16u) : 1;
            case Kind::ptr: return 8;
            case Kind::array: id = btf_.array(*t).element; break;
            case Kind::struct_:
            case Kind::union_: return layout(*t, depth - 1).alignment;
            default: return 1;
            }
        }
        return 1;
    }

    const Btf &btf_;
    PrintOptions options_;
    bool unfold_;
    size_t written_ = 0;
    uint32_t layout_steps_ = 0;
};

} // namespace

Result<std::string> declare(const Btf &btf, TypeId id, std::string_view name, PrintOptions options) {
    return Printer(btf, options, false).declaration(id, printable(name), 0, kMaxDepth);
}

std::string describe(const Btf &btf, TypeId id) {
    if (Result<std::string> text = declare(btf, id)) return *text;
    if (Result<Type> t = btf.type(id); t && !t->name.empty()) return format("{} {}", kind_name(t->kind), printable(t->name));
    return format("type {}", id);
}

Result<std::string> print_c(const Btf &btf, TypeId id, PrintOptions options) {
    Printer p(btf, options, true);
    Type t = TRY(btf.type(id));
    switch (t.kind) {
    case Kind::struct_:
    case Kind::union_: return TRY(p.composite(t, 0, kMaxDepth)) + ";\n";
    case Kind::enum_:
    case Kind::enum64: return TRY(p.enumeration(t, 0)) + ";\n";
    case Kind::fwd: return Printer::keyword(t) + ";\n";
    case Kind::typedef_: return "typedef " + TRY(p.declaration(t.size_or_type, printable(t.name), 0, kMaxDepth)) + ";\n";
    case Kind::func:
    case Kind::var: return TRY(p.variable(t)) + "\n";
    case Kind::datasec: return p.section(t);
    case Kind::decl_tag: return format("/* tag \"{}\" on {} */\n", printable(t.name), describe(btf, t.size_or_type));
    default: break;
    }
    std::string text = TRY(p.declaration(id, {}, 0, kMaxDepth));
    if (Result<uint64_t> size = btf.size_of(id)) return format("/* {}: {} bytes */\n", text, *size);
    return format("/* {} */\n", text);
}

} // namespace rawbpf::inline v0::btf
