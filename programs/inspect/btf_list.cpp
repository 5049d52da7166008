// Types as JSON: every field of the BTF, with nothing resolved, so that a script sees what the kernel would see.
#include "programs/inspect/btf_list.h"

#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::inspect {

using render::append_json;
using render::JsonLine;

namespace {

constexpr std::string_view kLinkages[] = {"static", "global", "extern"}; // BTF_VAR_* and BTF_FUNC_* agree
constexpr int64_t kExact = int64_t{1} << 53;                             // a JSON number's integers end here in many readers

void linkage(render::JsonObject &line, uint32_t number) {
    if (number < std::size(kLinkages))
        line.text("linkage", kLinkages[number]);
    else
        line.number("linkage", number);
}

/// "[{...},{...}]": begins and ends one part.
class Parts {
  public:
    explicit Parts(std::string &out) : out_(out) { out_ += '['; }
    ~Parts() { out_ += ']'; }
    void next(std::string_view name) {
        out_ += first_ ? "{\"name\":" : ",{\"name\":";
        first_ = false;
        if (name.empty())
            out_ += "null";
        else
            append_json(out_, name);
    }

  private:
    std::string &out_;
    bool first_ = true;
};

} // namespace

Result<void> append_type_json(std::string &out, const btf::Btf &btf, btf::TypeId id) {
    using btf::Kind;
    const btf::Type t = TRY(btf.type(id));
    std::string text; // a line that turns out broken leaves nothing behind
    {
        JsonLine line(text, "btf");
        line.number("id", id).text("kind", kind_name(t.kind)).text_or_null("name", t.name);
        switch (t.kind) {
        case Kind::int_: {
            const btf::IntEncoding e = btf.int_encoding(t);
            line.number("size", t.size_or_type).number("bits", e.bits).number("bit_offset", e.bit_offset);
            line.truth("signed", e.is_signed).truth("char", e.is_char).truth("bool", e.is_bool);
            break;
        }
        case Kind::ptr:
        case Kind::typedef_:
        case Kind::volatile_:
        case Kind::const_:
        case Kind::restrict_:
        case Kind::type_tag: line.number("type_id", t.size_or_type).truth("kind_flag", t.kind_flag); break;
        case Kind::array: {
            const btf::Array a = btf.array(t);
            line.number("type_id", a.element).number("index_type_id", a.index).number("elements", a.count);
            break;
        }
        case Kind::struct_:
        case Kind::union_: {
            line.number("size", t.size_or_type);
            std::string &list = line.raw("members");
            Parts parts(list);
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::Member m = TRY(btf.member(t, i));
                parts.next(m.name);
                append(list, ",\"type_id\":{},\"bit_offset\":{},\"bit_size\":{}}}", m.type, m.bit_offset, m.bit_size);
            }
            break;
        }
        case Kind::enum_:
        case Kind::enum64: {
            line.number("size", t.size_or_type).truth("signed", t.kind_flag);
            std::string &list = line.raw("values");
            Parts parts(list);
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::EnumValue v = TRY(btf.enum_value(t, i));
                parts.next(v.name);
                const int64_t number = static_cast<int64_t>(v.value);
                const bool exact = (t.kind_flag || number >= 0) && number > -kExact && number < kExact;
                const std::string_view quote = exact ? "" : "\"";
                t.kind_flag ? append(list, ",\"value\":{}{}{}}}", quote, number, quote)
                            : append(list, ",\"value\":{}{}{}}}", quote, v.value, quote);
            }
            break;
        }
        case Kind::fwd: line.text("fwd_kind", t.kind_flag ? "union" : "struct"); break;
        case Kind::func:
            line.number("type_id", t.size_or_type);
            linkage(line, t.vlen);
            break;
        case Kind::func_proto: {
            line.number("return_type_id", t.size_or_type);
            std::string &list = line.raw("params");
            Parts parts(list);
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::Param p = TRY(btf.param(t, i));
                parts.next(p.name);
                append(list, ",\"type_id\":{}}}", p.type);
            }
            break;
        }
        case Kind::var:
            line.number("type_id", t.size_or_type);
            linkage(line, btf.var_linkage(t));
            break;
        case Kind::datasec: {
            line.number("size", t.size_or_type);
            std::string &list = line.raw("variables");
            Parts parts(list);
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::VarSecinfo v = TRY(btf.secinfo(t, i));
                parts.next(TRY(btf.type(v.type)).name);
                append(list, ",\"type_id\":{},\"offset\":{},\"size\":{}}}", v.type, v.offset, v.size);
            }
            break;
        }
        case Kind::float_: line.number("size", t.size_or_type); break;
        case Kind::decl_tag: line.number("type_id", t.size_or_type).signed_number("component", btf.decl_tag_component(t)); break;
        default: break;
        }
    }
    out += text;
    return {};
}

} // namespace rawbpf::inline v0::inspect
