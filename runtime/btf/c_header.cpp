// BTF as a header of C.
//
// BTF is a graph; C wants a list in which everything stands before it is used. So types are written in the order of their ids,
// but each drags what it needs in front of itself (depth first):
//
//      needs what           a member, an element, a typedef's struct   the definition: a C compiler must know the size
//                           what a pointer or a prototype names        for structs `struct x;` does, and breaks the circles;
//                                                                      typedefs and enums have to be there in full
//
// Anonymous structs, unions and enums are written in the place that uses them, so what they need is needed by the type around
// them. An anonymous enum that several places share would define its enumerators twice: it gets a tag. A member without a name
// and with a named struct as its type (-fms-extensions, Linux 6.19 and newer) is written out as an anonymous one, which plain C
// understands.
//
// A declaration is written from left to right in two halves around its name: `int (*` name `)(struct pt_regs *)`. Where members
// lie is c_layout.cpp's matter, what things are called c_names.cpp's, and c_header_text.cpp has what depends on nothing around
// it.
//
// Bounds: a BTF from a file may nest without end, contain itself, or unfold to more text than there are atoms. Depth, steps and
// text are counted; all else follows from the one pass of checks in flat.cpp.
//
// Measured (Linux 6.18, 126,585 types, 2.8 MB of header): 37 ms, where bpftool needs 130; see README.md.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // all of a kernel's types pass here; -Os, as releases are built, takes half as long again
#endif

#include "runtime/btf/c_header.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/btf/c_header_text.h"
#include "runtime/btf/c_layout.h"

namespace rawbpf::inline v0::btf {

namespace {

constexpr int kMaxDepth = 512;             // of definitions that need each other; the kernel's deepest chain has 30
constexpr int kMaxNesting = 64;            // of pointers, arrays and anonymous types inside one declaration
constexpr uint64_t kMaxSteps = 50'000'000; // a kernel's header is 3 MB
constexpr size_t kMaxText = size_t{64} << 20;

class HeaderWriter {
  public:
    HeaderWriter(const Flat &types, bool cplusplus)
        : types_(types), cplusplus_(cplusplus), names_(types, cplusplus), layout_(types), state_(types.end_id()),
          uses_(types.end_id()), plain_(types.end_id()) {}

    Result<std::string> write(const HeaderOptions &options) {
        out_.reserve(options.roots.empty() ? size_t{types_.end_id()} * 28 : 4096);
        if (!cplusplus_) out_ = kHeaderBegin;
        for (TypeId id = 1; id < types_.end_id() && !error_; ++id) count_uses(id);
        if (options.roots.empty())
            write_all(options.kfuncs);
        else
            for (TypeId id : options.roots) write_root(id);
        if (!cplusplus_) out_ += kHeaderEnd;
        if (error_) return Unexpected(std::move(*error_));
        return std::move(out_);
    }

  private:
    enum State : uint8_t { kDeclared = 1, kBusy = 2, kDone = 4, kShared = 8 };

    // ---- errors -----------------------------------------------------------------------------------------------------------

    void stop(TypeId id, std::string_view problem) {
        if (!error_)
            error_ = make_error(Errc::bad_input,
                                format("{}: BTF type {} ({}): {}", types_.name(), id, kind_name(types_.kind(id)), problem));
    }
    /// Every recursion asks this first.
    bool go_on(TypeId id, int depth) {
        if (error_) return false;
        if (depth <= 0) stop(id, "it is nested too deeply");
        if (++steps_ > kMaxSteps || out_.size() > kMaxText) stop(id, "its C declaration has no end");
        return !error_;
    }

    // ---- what is written ------------------------------------------------------------------------------------------------------

    void write_all(bool kfuncs) {
        const TypeId first = types_.first_id(), end = types_.end_id();
        for (TypeId id = first; id < end && !error_; ++id) {
            switch (types_.kind(id)) {
            case Kind::struct_:
            case Kind::union_:
            case Kind::enum_:
            case Kind::enum64:
                if (!types_.anonymous(id)) need(id, true, kMaxDepth);
                break;
            case Kind::fwd: need(id, false, kMaxDepth); break;
            case Kind::typedef_: need(id, true, kMaxDepth); break;
            default: break;
            }
        }
        // Constants without a type of their own: `enum { A, B };`.
        for (TypeId id = first; id < end && !error_; ++id)
            if (is_enumeration(types_.kind(id)) && types_.anonymous(id) && !(state_[id] & kDone)) define_enum(id);
        if (kfuncs) write_kfuncs(first, end);
    }

    void write_kfuncs(TypeId first, TypeId end) {
        bool any = false;
        for (TypeId id = first; id < end && !error_; ++id) {
            if (types_.kind(id) != Kind::decl_tag || types_.type_name(id) != "bpf_kfunc") continue;
            const TypeId func = types_.target(id);
            if (types_.kind(func) != Kind::func || !names_.claim(func)) continue;
            if (!any)
                out_ += "\n#ifndef BPF_NO_KFUNC_PROTOTYPES\n#ifndef __ksym\n#define __ksym __attribute__((section(\".ksyms\")))\n"
                        "#endif\n#ifndef __weak\n#define __weak __attribute__((weak))\n#endif\n\n";
            any = true;
            need(types_.target(func), false, kMaxDepth);
            out_ += "extern ";
            declare(types_.target(func), types_.type_name(func), 0, kMaxNesting);
            out_ += " __weak __ksym;\n";
        }
        if (any) out_ += "#endif\n";
    }

    void write_root(TypeId id) {
        if (id == 0 || id >= types_.end_id()) return stop(0, format("there is no type {}", id));
        const Kind kind = types_.kind(id);
        if (kind != Kind::func && kind != Kind::var) {
            if (is_enumeration(kind) && types_.anonymous(id)) return define_enum(id);
            if (kind == Kind::decl_tag || kind == Kind::datasec) return need(types_.target(id), true, kMaxDepth);
            return need(id, true, kMaxDepth);
        }
        const TypeId of = types_.target(id);
        need(of, kind == Kind::var, kMaxDepth);
        if (!names_.claim(id)) return;
        out_ += "extern ";
        declare(of, types_.type_name(id), 0, kMaxNesting);
        out_ += ";\n";
    }

    // ---- anonymous enums -------------------------------------------------------------------------------------------------

    /// Counts in how many places each anonymous enum would be written out below this definition.
    void count_uses(TypeId id) {
        switch (types_.kind(id)) {
        case Kind::struct_:
        case Kind::union_:
            if (!types_.anonymous(id)) count_members(id, kMaxNesting);
            break;
        case Kind::typedef_: count_below(types_.target(id), kMaxNesting); break;
        default: break;
        }
    }
    bool count_members(TypeId id, int depth) {
        bool found = false;
        for (uint32_t i = 0; i < types_.vlen(id) && !error_; ++i) {
            const Member m = types_.member(id, i);
            found |= count_below(m.type, depth - 1);
            if (m.name.empty())
                if (TypeId body = named_body(m.type); body && go_on(body, depth - 1)) found |= count_members(body, depth - 1);
        }
        return found;
    }
    /// Whether there is such an enum in what is written for a declaration of that type.
    bool count_below(TypeId id, int depth) {
        if (plain_[id] || !go_on(id, depth)) return false;
        bool found = false;
        switch (types_.kind(id)) {
        case Kind::enum_:
        case Kind::enum64:
            if (!types_.anonymous(id)) break;
            if (uses_[id] < 2 && ++uses_[id] == 2) state_[id] |= kShared;
            return true;
        case Kind::struct_:
        case Kind::union_:
            if (types_.anonymous(id)) found = count_members(id, depth);
            break;
        case Kind::array: found = count_below(types_.array(id).element, depth - 1); break;
        case Kind::func_proto:
            for (uint32_t i = 0; i < types_.vlen(id); ++i) found |= count_below(types_.param(id, i).type, depth - 1);
            found |= count_below(types_.target(id), depth - 1);
            break;
        case Kind::ptr:
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::type_tag: found = count_below(types_.target(id), depth - 1); break;
        default: break;
        }
        if (!found) plain_[id] = true;
        return found;
    }

    /// The named struct or union that an unnamed member is of; 0 for an anonymous one, and for everything else.
    TypeId named_body(TypeId id) const {
        bool named = false;
        for (int depth = kMaxNesting; depth > 0; --depth) {
            const Kind kind = types_.kind(id);
            if (is_composite(kind)) return named || !types_.anonymous(id) ? id : 0;
            if (kind == Kind::typedef_)
                named = true;
            else if (!is_modifier(kind))
                return 0;
            id = types_.target(id);
        }
        return 0;
    }

    // ---- order ---------------------------------------------------------------------------------------------------------------

    /// Writes what has to stand before a use of that type; `whole`: before one that must know its size.
    void need(TypeId id, bool whole, int depth) {
        if (!go_on(id, depth)) return;
        const Kind kind = types_.kind(id);
        switch (kind) {
        case Kind::ptr: return need(types_.target(id), false, depth - 1);
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::type_tag: return need(types_.target(id), whole, depth - 1);
        case Kind::array: return need(types_.array(id).element, true, depth - 1); // behind a pointer, too
        case Kind::func_proto:
            for (uint32_t i = 0; i < types_.vlen(id); ++i) need(types_.param(id, i).type, false, depth - 1);
            return need(types_.target(id), false, depth - 1);
        case Kind::typedef_:
            if (!(state_[id] & kDone)) {
                if (state_[id] & kBusy) return stop(id, "the typedef refers to itself");
                state_[id] |= kBusy;
                need(types_.target(id), false, depth - 1);
                state_[id] = static_cast<uint8_t>((state_[id] & ~kBusy) | kDone);
                if (error_) return;
                if (cplusplus_ && types_.type_name(id) == "bool") return;
                out_ += "typedef ";
                declare(types_.target(id), names_.of(id), 0, kMaxNesting);
                out_ += ";\n";
            }
            if (whole) need(types_.target(id), true, depth - 1);
            return;
        case Kind::int_:
        case Kind::float_: return define_base(id);
        case Kind::enum_:
        case Kind::enum64:
            if (!types_.anonymous(id) || state_[id] & kShared) define_enum(id);
            return;
        case Kind::fwd: return forward(id);
        case Kind::struct_:
        case Kind::union_:
            if (types_.anonymous(id)) return need_members(id, depth);
            if (!whole) return forward(id);
            return define(id, depth);
        default: return;
        }
    }
    void need_members(TypeId id, int depth) {
        for (uint32_t i = 0; i < types_.vlen(id) && !error_; ++i) {
            const Member m = types_.member(id, i);
            const TypeId body = m.name.empty() ? named_body(m.type) : 0;
            if (!body) {
                need(m.type, true, depth - 1);
            } else if (go_on(body, depth - 1)) {
                need_members(body, depth - 1);
            }
        }
    }

    void forward(TypeId id) {
        if (state_[id] & (kDeclared | kDone) || id == inside_) return;
        state_[id] |= kDeclared;
        out_ += is_union(id) ? "union " : "struct ";
        out_ += names_.of(id);
        out_ += ";\n";
    }
    bool is_union(TypeId id) const {
        return types_.kind(id) == Kind::union_ || (types_.kind(id) == Kind::fwd && types_.kind_flag(id));
    }

    void define(TypeId id, int depth) {
        if (state_[id] & kDone) return;
        if (state_[id] & kBusy) return stop(id, "it contains itself");
        state_[id] |= kBusy;
        // While its own members are looked through, pointers to it need no declaration: they will stand inside it. What is
        // defined before it does need one.
        const TypeId outer = std::exchange(inside_, 0);
        for (uint32_t i = 0; i < types_.vlen(id) && !error_; ++i) {
            const Member m = types_.member(id, i);
            inside_ = points_straight_to(m.type, id) ? id : 0;
            const TypeId body = m.name.empty() ? named_body(m.type) : 0;
            if (body)
                need_members(body, depth - 1);
            else
                need(m.type, true, depth - 1);
        }
        inside_ = outer;
        state_[id] = static_cast<uint8_t>((state_[id] & ~kBusy) | kDone);
        if (error_) return;
        out_ += '\n';
        body(id, 0, kMaxNesting, names_.of(id));
        out_ += ";\n";
    }
    /// A chain of pointers and modifiers from `id` to struct `to`.
    bool points_straight_to(TypeId id, TypeId to) const {
        for (int depth = 8; depth > 0; --depth) {
            if (id == to) return true;
            if (types_.kind(id) != Kind::ptr && !is_modifier(types_.kind(id))) return false;
            id = types_.target(id);
        }
        return false;
    }

    void define_base(TypeId id) {
        if (state_[id] & kDone) return;
        state_[id] |= kDone;
        const CBase base = c_base(types_, id);
        if (!base.word.empty() || (cplusplus_ && base.alias == "_Bool")) return;
        out_ += "typedef ";
        if (!base.alias.empty()) {
            out_ += base.alias;
        } else {
            out_ += "struct { unsigned char bytes[";
            append_number(out_, types_.size(id));
            out_ += "]; }";
        }
        out_ += ' ';
        out_ += names_.of(id);
        out_ += ";\n";
    }

    void define_enum(TypeId id) {
        if (state_[id] & kDone) return;
        if (types_.vlen(id) == 0) return;
        state_[id] |= kDone;
        out_ += '\n';
        enumeration(id, 0);
        out_ += ";\n";
    }

    // ---- text ---------------------------------------------------------------------------------------------------------------

    void name(std::string_view text) {
        if (names_.legal(text)) [[likely]]
            out_ += text;
        else
            out_ += names_.legalised(text);
    }

    void declare(TypeId id, std::string_view as, int indent, int depth) {
        left(id, indent, depth);
        if (!as.empty()) {
            if (out_.back() != '*') out_ += ' ';
            name(as);
        }
        right(id, indent, depth);
    }

    bool binds_behind(TypeId id) const {
        for (int depth = kMaxNesting; depth > 0 && is_modifier(types_.kind(id)); --depth) id = types_.target(id);
        return types_.kind(id) == Kind::array || types_.kind(id) == Kind::func_proto;
    }

    void left(TypeId id, int indent, int depth) {
        if (!go_on(id, depth)) return;
        const Kind kind = types_.kind(id);
        switch (kind) {
        case Kind::ptr:
            left(types_.target(id), indent, depth - 1);
            out_ += binds_behind(types_.target(id)) ? " (*" : out_.back() == '*' ? "*" : " *";
            return;
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::type_tag: return qualified(id, indent, depth);
        case Kind::array: return left(types_.array(id).element, indent, depth - 1);
        case Kind::func_proto: return left(types_.target(id), indent, depth - 1);
        default: return base(id, indent, depth - 1);
        }
    }
    void qualified(TypeId id, int indent, int depth) {
        bool is_const = false, is_volatile = false, is_restrict = false;
        for (; depth > 0; --depth) { // a qualified array has qualified elements, and those may say so themselves
            const Kind kind = types_.kind(id);
            if (kind != Kind::array && !is_modifier(kind)) break;
            is_const |= kind == Kind::const_;
            is_volatile |= kind == Kind::volatile_;
            is_restrict |= kind == Kind::restrict_;
            id = kind == Kind::array ? types_.array(id).element : types_.target(id);
        }
        const Kind kind = types_.kind(id);
        if (kind == Kind::ptr) { // what qualifies a pointer stands behind its star
            left(id, indent, depth);
            if (is_const) out_ += " const";
            if (is_volatile) out_ += " volatile";
            if (is_restrict) out_ += " __restrict";
            return;
        }
        if (kind != Kind::func_proto) {
            if (is_const) out_ += "const ";
            if (is_volatile) out_ += "volatile ";
        }
        left(id, indent, depth);
    }
    void right(TypeId id, int indent, int depth) {
        if (!go_on(id, depth)) return;
        switch (types_.kind(id)) {
        case Kind::ptr:
            if (binds_behind(types_.target(id))) out_ += ')';
            return right(types_.target(id), indent, depth - 1);
        case Kind::const_:
        case Kind::volatile_:
        case Kind::restrict_:
        case Kind::type_tag: return right(types_.target(id), indent, depth - 1);
        case Kind::array:
            out_ += '[';
            append_number(out_, types_.array(id).count);
            out_ += ']';
            return right(types_.array(id).element, indent, depth - 1);
        case Kind::func_proto: parameters(id, indent, depth); return right(types_.target(id), indent, depth - 1);
        default: return;
        }
    }
    void parameters(TypeId id, int indent, int depth) {
        const uint32_t count = types_.vlen(id);
        if (count == 0) {
            out_ += "(void)";
            return;
        }
        out_ += '(';
        for (uint32_t i = 0; i < count && !error_; ++i) {
            const Param p = types_.param(id, i);
            if (i > 0) out_ += ", ";
            if (p.type == 0 && i + 1 == count && count > 1)
                out_ += "...";
            else
                declare(p.type, p.name, indent, depth - 1);
        }
        out_ += ')';
    }

    /// What stands in front of all stars and names.
    void base(TypeId id, int indent, int depth) {
        switch (types_.kind(id)) {
        case Kind::int_:
        case Kind::float_: {
            const CBase base = c_base(types_, id);
            if (cplusplus_ && (base.word == "_Bool" || base.alias == "_Bool"))
                out_ += "bool";
            else
                out_ += base.word.empty() ? names_.of(id) : base.word;
            return;
        }
        case Kind::typedef_: out_ += cplusplus_ && types_.type_name(id) == "bool" ? "bool" : names_.of(id); return;
        case Kind::fwd:
            out_ += is_union(id) ? "union " : "struct ";
            out_ += names_.of(id);
            return;
        case Kind::enum_:
        case Kind::enum64:
            if (types_.vlen(id) == 0) { // declared, never defined: only its size is known
                out_ += types_.size(id) == 8 ? "unsigned long long" : types_.size(id) == 1 ? "unsigned char" : "unsigned int";
            } else if (types_.anonymous(id) && !(state_[id] & kShared)) {
                state_[id] |= kDone;
                enumeration(id, indent);
            } else {
                enum_tag(id);
            }
            return;
        case Kind::struct_:
        case Kind::union_:
            if (types_.anonymous(id)) return body(id, indent, depth, {});
            out_ += is_union(id) ? "union " : "struct ";
            out_ += names_.of(id);
            return;
        default: out_ += "void"; return; // void itself, and what can't be a type at all
        }
    }

    void enum_tag(TypeId id) {
        out_ += "enum ";
        if (!types_.anonymous(id)) {
            out_ += names_.of(id);
        } else {
            out_ += "__anonymous_enum_";
            append_number(out_, id);
        }
    }
    void enumeration(TypeId id, int indent) {
        if (types_.anonymous(id) && !(state_[id] & kShared))
            out_ += "enum";
        else
            enum_tag(id);
        const bool is_signed = types_.kind_flag(id);
        if (cplusplus_) append_enum_base(out_, types_.size(id), is_signed);
        out_ += " {";
        bool wide = false; // C gives it 64 bits by itself
        for (uint32_t i = 0; i < types_.vlen(id); ++i) {
            const EnumValue v = types_.enum_value(id, i);
            wide |= is_signed ? static_cast<int64_t>(v.value) != static_cast<int32_t>(v.value) : v.value > UINT32_MAX;
            append_line(out_, indent + 1);
            out_ += names_.enumerator(id, i, v.name);
            out_ += " = ";
            append_literal(out_, v.value, is_signed);
            out_ += ',';
            if (out_.size() > kMaxText) return stop(id, "its C declaration is too long");
        }
        append_line(out_, indent);
        out_ += '}';
        if (!cplusplus_) append_enum_mode(out_, types_.size(id), wide);
    }

    // ---- members ------------------------------------------------------------------------------------------------------------

    void body(TypeId id, int indent, int depth, std::string_view tag) {
        if (!go_on(id, depth)) return;
        out_ += is_union(id) ? "union" : "struct";
        if (!tag.empty()) {
            out_ += ' ';
            out_ += tag;
        }
        out_ += " {";
        const bool packed = layout_.is_packed(id);
        const uint64_t align = packed ? 8 : uint64_t{layout_.align_of(id)} * 8;
        is_union(id) ? union_members(id, indent + 1, depth, align) : struct_members(id, indent + 1, depth, align, packed);
        append_line(out_, indent);
        out_ += '}';
        if (packed) out_ += " __attribute__((packed))";
    }

    void member(const CMember &m, int indent, int depth) {
        append_line(out_, indent);
        const TypeId whole = m.name.empty() && !m.unit ? named_body(m.type) : 0;
        if (whole)
            body(whole, indent, depth - 1, {});
        else
            declare(m.type, m.name, indent, depth - 1);
        if (m.unit) {
            out_ += ": ";
            append_number(out_, m.size);
        }
        out_ += ';';
    }
    void struct_members(TypeId id, int indent, int depth, uint64_t align, bool packed) {
        uint64_t at = 0; // where C is
        for (uint32_t i = 0; i < types_.vlen(id) && !error_; ++i) {
            const CMember m = layout_.member(id, i);
            if (!m.written) {
                append_impossible(out_, names_.legalised(m.name), m.at, indent, "its type has no size");
                continue;
            }
            uint64_t natural = at;
            if (m.unit) {
                if (!packed && at % m.unit + m.size > m.unit) natural = round_up(at, m.unit);
            } else {
                natural = round_up(at, packed ? 8 : m.align);
            }
            if (m.at < natural) {
                append_impossible(out_, names_.legalised(m.name), m.at, indent, "begins before the end of the member above");
                continue;
            }
            if (m.at > natural) append_pads(out_, at, m.at, indent, align, packed);
            member(m, indent, depth);
            at = m.at + m.size;
        }
        const uint64_t end = uint64_t{types_.size(id)} * 8;
        if (round_up(at, align) < end) append_pads(out_, at, end, indent, align, packed);
    }

    void union_members(TypeId id, int indent, int depth, uint64_t align) {
        uint64_t most = 0;
        for (uint32_t i = 0; i < types_.vlen(id) && !error_; ++i) {
            const CMember m = layout_.member(id, i);
            if (!m.written || m.at != 0) {
                append_impossible(out_, names_.legalised(m.name), m.at, indent,
                                  m.written ? "doesn't begin at bit 0" : "its type has no size");
                continue;
            }
            member(m, indent, depth);
            most = std::max(most, m.size);
        }
        if (round_up(most, align) < uint64_t{types_.size(id)} * 8) append_pad_array(out_, 0, types_.size(id), indent);
    }

    const Flat &types_;
    bool cplusplus_;
    CNames names_;
    CLayout layout_;
    std::vector<uint8_t> state_, uses_;
    std::vector<bool> plain_; // no anonymous enum below
    std::string out_;
    std::optional<Error> error_;
    TypeId inside_ = 0;
    uint64_t steps_ = 0;
};

} // namespace

Result<std::string> c_header(const Btf &btf, const HeaderOptions &options) {
    const Flat types = TRY(Flat::make(btf));
    return HeaderWriter(types, options.cplusplus).write(options);
}

} // namespace rawbpf::inline v0::btf
