// A listing of types by number. The form is bpftool's, because people know it, search it and have scripts for it; so a listing
// can be compared with bpftool's byte by byte (tests/cli does), which says at once that every kind is read as others read it.
//
// Names are anybody's: what isn't printable is escaped, so that a listing can be looked at in a terminal.
#include "runtime/btf/print_raw.h"

#include <charconv>

#include "runtime/base/fail.h"
#include "runtime/btf/flat.h"

namespace rawbpf::inline v0::btf {

namespace {

constexpr std::string_view kKindWords[] = {"VOID", "INT",     "PTR",      "ARRAY",    "STRUCT",   "UNION", "ENUM",
                                           "FWD",  "TYPEDEF", "VOLATILE", "CONST",    "RESTRICT", "FUNC",  "FUNC_PROTO",
                                           "VAR",  "DATASEC", "FLOAT",    "DECL_TAG", "TYPE_TAG", "ENUM64"};
constexpr std::string_view kLinkages[] = {"static", "global", "extern"}; // BTF_VAR_* and BTF_FUNC_* agree

class Line {
  public:
    explicit Line(std::string &out) : out_(out) {}
    Line &operator<<(std::string_view text) {
        out_ += text;
        return *this;
    }
    template <class Int>
    requires std::is_integral_v<Int> Line &operator<<(Int number) {
        char digits[24];
        out_.append(digits, static_cast<size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits));
        return *this;
    }
    Line &quoted(std::string_view name) {
        out_ += '\'';
        if (name.empty()) out_ += "(anon)";
        for (char c : name)
            if (c >= 0x20 && c < 0x7f)
                out_ += c;
            else
                rawbpf::append(out_, "\\x{:02x}", static_cast<unsigned char>(c));
        out_ += '\'';
        return *this;
    }

  private:
    std::string &out_;
};

std::string_view linkage(uint32_t number) { return number < std::size(kLinkages) ? kLinkages[number] : "(unknown)"; }

std::string_view int_kind(const IntEncoding &encoding) {
    const int set = encoding.is_signed + encoding.is_char + encoding.is_bool;
    if (set == 0) return "(none)";
    if (set > 1) return "UNKN";
    return encoding.is_signed ? "SIGNED" : encoding.is_char ? "CHAR" : "BOOL";
}

} // namespace

Result<RawPrinter> RawPrinter::make(const Btf &btf) {
    RawPrinter out;
    out.types_ = std::make_shared<const Flat>(TRY(Flat::make(btf)));
    return out;
}

void RawPrinter::append(std::string &out, TypeId id) const {
    const Flat &types = *types_;
    Line line(out);
    const Kind kind = types.kind(id);
    const size_t number = static_cast<size_t>(kind);
    line << "[" << id << "] " << (number < std::size(kKindWords) ? kKindWords[number] : "UNKNOWN") << " ";
    line.quoted(id == 0 ? "void" : types.type_name(id));
    if (id == 0) {
        line << "\n";
        return;
    }
    const uint32_t count = types.vlen(id);
    switch (kind) {
    case Kind::int_: {
        const IntEncoding encoding = types.int_encoding(id);
        line << " size=" << types.size(id) << " bits_offset=" << encoding.bit_offset << " nr_bits=" << encoding.bits
             << " encoding=" << int_kind(encoding);
        break;
    }
    case Kind::ptr:
    case Kind::const_:
    case Kind::volatile_:
    case Kind::restrict_:
    case Kind::typedef_:
    case Kind::type_tag: line << " type_id=" << types.target(id); break;
    case Kind::array: {
        const Array a = types.array(id);
        line << " type_id=" << a.element << " index_type_id=" << a.index << " nr_elems=" << a.count;
        break;
    }
    case Kind::struct_:
    case Kind::union_:
        line << " size=" << types.size(id) << " vlen=" << count;
        for (uint32_t i = 0; i < count; ++i) {
            const Member m = types.member(id, i);
            (line << "\n\t").quoted(m.name) << " type_id=" << m.type << " bits_offset=" << m.bit_offset;
            if (m.bit_size) line << " bitfield_size=" << m.bit_size;
        }
        break;
    case Kind::enum_:
    case Kind::enum64: {
        const bool is_signed = types.kind_flag(id), wide = kind == Kind::enum64;
        line << " encoding=" << (is_signed ? "SIGNED" : "UNSIGNED") << " size=" << types.size(id) << " vlen=" << count;
        for (uint32_t i = 0; i < count; ++i) {
            const EnumValue v = types.enum_value(id, i);
            (line << "\n\t").quoted(v.name) << " val=";
            is_signed ? line << static_cast<int64_t>(v.value) : line << v.value;
            if (wide) line << (is_signed ? "LL" : "ULL");
        }
        break;
    }
    case Kind::fwd: line << " fwd_kind=" << (types.kind_flag(id) ? "union" : "struct"); break;
    case Kind::func: line << " type_id=" << types.target(id) << " linkage=" << linkage(count); break;
    case Kind::func_proto:
        line << " ret_type_id=" << types.target(id) << " vlen=" << count;
        for (uint32_t i = 0; i < count; ++i) {
            const Param p = types.param(id, i);
            (line << "\n\t").quoted(p.name) << " type_id=" << p.type;
        }
        break;
    case Kind::var: line << " type_id=" << types.target(id) << ", linkage=" << linkage(types.extra_word(id, 0)); break;
    case Kind::datasec:
        line << " size=" << types.size(id) << " vlen=" << count;
        for (uint32_t i = 0; i < count; ++i) {
            const TypeId variable = types.extra_word(id, size_t{i} * 3);
            line << "\n\ttype_id=" << variable << " offset=" << types.extra_word(id, size_t{i} * 3 + 1)
                 << " size=" << types.extra_word(id, size_t{i} * 3 + 2);
            const size_t of = static_cast<size_t>(types.kind(variable));
            line << " (" << (of < std::size(kKindWords) ? kKindWords[of] : "UNKNOWN") << " ";
            line.quoted(types.kind(variable) == Kind::void_ ? std::string_view("void") : types.type_name(variable)) << ")";
        }
        break;
    case Kind::float_: line << " size=" << types.size(id); break;
    case Kind::decl_tag:
        line << " type_id=" << types.target(id) << " component_idx=" << static_cast<int32_t>(types.extra_word(id, 0));
        break;
    default: break;
    }
    line << "\n";
}

} // namespace rawbpf::inline v0::btf
