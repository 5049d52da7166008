// BTF names every kernel function's parameters; for user space a person says what DWARF alone would know. Both become the same
// Signature.
//
// Whether a char * is a text is a guess that C can't spare us: the kernel's `const char *` are nearly all names and paths, its
// `char *` nearly all buffers. A few parameter names (`buf` in vfs_write, which is const) say otherwise and are believed.
#include "programs/trace/signature.h"

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/btf/print_c.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr std::string_view kBufferNames[] = {"buf", "ubuf", "kbuf", "buffer", "data", "src", "from", "to", "dst"};
constexpr uint32_t kMostParameters = 12;

struct PointerRow {
    std::string_view target;
    Show show;
};
constexpr PointerRow kPointers[] = {
    {"file", Show::file},
    {"path", Show::path},
    {"dentry", Show::dentry},
    {"sockaddr", Show::sockaddr},
    {"sockaddr_unsized", Show::sockaddr}, // the kernel's own signatures since 6.19
};

// Integers of these names are file descriptors.
constexpr std::string_view kDescriptorNames[] = {"fd",     "ufd",    "fildes", "fildes2", "oldfd",  "newfd",  "dfd",
                                                 "olddfd", "newdfd", "dirfd",  "in_fd",   "out_fd", "fd_in",  "fd_out",
                                                 "epfd",   "fdin",   "fdout",  "infd",    "outfd",  "sockfd", "mapfd"};

// An integer, which may be a descriptor.
void name_integer(Type &type, std::string_view parameter) {
    if (type.show == Show::integer && type.size >= 4 &&
        std::find(std::begin(kDescriptorNames), std::end(kDescriptorNames), parameter) != std::end(kDescriptorNames))
        type.show = Show::descriptor;
}

bool is_buffer_name(std::string_view name) {
    return std::find(std::begin(kBufferNames), std::end(kBufferNames), name) != std::end(kBufferNames);
}

Result<Type> describe_pointer(const btf::Btf &btf, const btf::Type &pointer, Type out, std::string_view parameter) {
    out.show = Show::address;
    out.size = 8;
    bool is_const = false;
    btf::TypeId id = pointer.size_or_type;
    // Not resolve(): it would lose the const, which decides.
    for (int i = 0; i < 32 && id != 0; ++i) {
        btf::Type type = TRY(btf.type(id));
        switch (type.kind) {
        case btf::Kind::const_: is_const = true; [[fallthrough]];
        case btf::Kind::volatile_:
        case btf::Kind::restrict_:
        case btf::Kind::typedef_:
        case btf::Kind::type_tag: id = type.size_or_type; continue;
        case btf::Kind::int_:
            if (type.size_or_type == 1 && is_const && type.name == "char" && !is_buffer_name(parameter)) out.show = Show::text;
            return out;
        case btf::Kind::struct_:
        case btf::Kind::fwd:
            for (const PointerRow &row : kPointers)
                if (row.target == btf::essential_name(type.name)) out.show = row.show;
            return out;
        default: return out;
        }
    }
    return out;
}

} // namespace

Result<Type> describe_type(const btf::Btf &btf, btf::TypeId id, std::string_view parameter) {
    Type out;
    out.id = id;
    out.name = btf::describe(btf, id);
    const btf::Type type = TRY(btf.resolve(id));
    switch (type.kind) {
    case btf::Kind::void_: out.show = Show::nothing; return out;
    case btf::Kind::int_: {
        const btf::IntEncoding encoding = btf.int_encoding(type);
        out.size = static_cast<uint8_t>(std::min<uint32_t>(type.size_or_type, 8));
        out.is_signed = encoding.is_signed;
        out.show = encoding.is_bool ? Show::boolean : Show::integer;
        if (type.size_or_type == 1 && type.name == "char") out.show = Show::character;
        name_integer(out, parameter);
        return out;
    }
    case btf::Kind::enum_:
    case btf::Kind::enum64:
        out.show = Show::enumeration;
        out.size = static_cast<uint8_t>(std::min<uint32_t>(type.size_or_type, 8));
        out.is_signed = type.kind_flag;
        return out;
    case btf::Kind::ptr: return describe_pointer(btf, type, std::move(out), parameter);
    case btf::Kind::array: {
        const btf::Array array = btf.array(type);
        const btf::Type element = TRY(btf.resolve(array.element));
        if (element.kind == btf::Kind::int_ && element.size_or_type == 1) {
            out.show = Show::characters;
            out.length = array.count;
        }
        return out;
    }
    default: // a struct by value: it travels in registers or on the stack; its address or first word is shown
        out.size = static_cast<uint8_t>(std::min<uint64_t>(btf.size_of(id).value_or(8), 8));
        return out;
    }
}

Result<Signature> signature_of(const btf::Btf &btf, btf::TypeId id) {
    btf::Type proto = TRY(btf.resolve(id));
    if (proto.kind == btf::Kind::func) proto = TRY(btf.resolve(proto.size_or_type));
    if (proto.kind != btf::Kind::func_proto)
        return fail(Errc::bad_input, "{}: type {} is a {}, not a function", btf.name(), id, btf::kind_name(proto.kind));
    Signature out;
    out.known = true;
    out.returns = TRY(describe_type(btf, proto.size_or_type));
    for (uint32_t i = 0; i < proto.vlen; ++i) {
        const btf::Param param = TRY(btf.param(proto, i));
        if (param.type == 0 && param.name.empty()) { // "..."
            out.variadic = true;
            break;
        }
        if (out.parameters.size() == kMostParameters) break;
        out.parameters.push_back({std::string(param.name), TRY(describe_type(btf, param.type, param.name))});
    }
    return out;
}

// --- What a person wrote -----------------------------------------------------------------------------------------------------

namespace {

struct ShortType {
    std::string_view name;
    Show show;
    uint8_t size;
    bool is_signed;
};
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_letter_or_digit(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

// What one word (or words in any order, as C allows) stands for.
constexpr ShortType kTypes[] = {
    {"char", Show::character, 1, true},
    {"signed char", Show::integer, 1, true},
    {"unsigned char", Show::integer, 1, false},
    {"short", Show::integer, 2, true},
    {"unsigned short", Show::integer, 2, false},
    {"int", Show::integer, 4, true},
    {"unsigned int", Show::integer, 4, false},
    {"unsigned", Show::integer, 4, false},
    {"long", Show::integer, 8, true},
    {"unsigned long", Show::integer, 8, false},
    {"long long", Show::integer, 8, true},
    {"unsigned long long", Show::integer, 8, false},
    {"bool", Show::boolean, 1, false},
    {"_Bool", Show::boolean, 1, false},
    {"void", Show::nothing, 8, false},
    {"size_t", Show::integer, 8, false},
    {"ssize_t", Show::integer, 8, true},
    {"off_t", Show::integer, 8, true},
    {"loff_t", Show::integer, 8, true},
    {"pid_t", Show::integer, 4, true},
    {"uid_t", Show::integer, 4, false},
    {"mode_t", Show::integer, 4, false},
    {"time_t", Show::integer, 8, true},
    {"intptr_t", Show::integer, 8, true},
    {"uintptr_t", Show::address, 8, false},
    {"int8_t", Show::integer, 1, true},
    {"int16_t", Show::integer, 2, true},
    {"int32_t", Show::integer, 4, true},
    {"int64_t", Show::integer, 8, true},
    {"uint8_t", Show::integer, 1, false},
    {"uint16_t", Show::integer, 2, false},
    {"uint32_t", Show::integer, 4, false},
    {"uint64_t", Show::integer, 8, false},
    {"s8", Show::integer, 1, true},
    {"s16", Show::integer, 2, true},
    {"s32", Show::integer, 4, true},
    {"s64", Show::integer, 8, true},
    {"u8", Show::integer, 1, false},
    {"u16", Show::integer, 2, false},
    {"u32", Show::integer, 4, false},
    {"u64", Show::integer, 8, false},
    {"__s8", Show::integer, 1, true},
    {"__s16", Show::integer, 2, true},
    {"__s32", Show::integer, 4, true},
    {"__s64", Show::integer, 8, true},
    {"__u8", Show::integer, 1, false},
    {"__u16", Show::integer, 2, false},
    {"__u32", Show::integer, 4, false},
    {"__u64", Show::integer, 8, false},
    {"uchar", Show::integer, 1, false},
    {"ushort", Show::integer, 2, false},
    {"uint", Show::integer, 4, false},
    {"ulong", Show::integer, 8, false},
    {"gid_t", Show::integer, 4, false},
    {"socklen_t", Show::integer, 4, false},
    {"ptrdiff_t", Show::integer, 8, true},
    {"ino_t", Show::integer, 8, false},
    {"dev_t", Show::integer, 8, false},
    {"ptr", Show::address, 8, false},
    {"str", Show::text, 8, false},
};

bool is_tag(std::string_view word) { return word == "struct" || word == "union" || word == "enum" || word == "class"; }

class SignatureParser {
  public:
    explicit SignatureParser(std::string_view text) : text_(text) {}

    Result<Parameter> declaration() { return one(0, text_.size()); }

    Result<Signature> parse() {
        Signature out;
        out.known = true;
        out.returns = {"long", Show::integer, 8, true};
        const size_t open = text_.find('(');
        if (open != std::string_view::npos) {
            size_t end = open;
            while (end > 0 && is_space(text_[end - 1])) --end;
            // "long (int fd)", or as in a header "long name(int fd)": a last word behind a whole type is the function's name
            Parameter returns = TRY(one(0, end));
            out.returns = std::move(returns.type);
            const size_t close = text_.rfind(')');
            if (close == std::string_view::npos || close < open) return Unexpected(wrong(open, "this `(` is never closed"));
            for (size_t i = close + 1; i < text_.size(); ++i)
                if (!is_space(text_[i]) && text_[i] != ';') return Unexpected(wrong(i, "nothing is expected behind the `)`"));
            TRY(list(out, open + 1, close));
        } else {
            TRY(list(out, 0, text_.size()));
        }
        return out;
    }

  private:
    [[nodiscard]] Error wrong(size_t at, std::string_view message, std::string hint = {}) const {
        return signature_error(text_, at, message, std::move(hint));
    }
    [[nodiscard]] bool blank(size_t begin, size_t end) const {
        for (; begin < end; ++begin)
            if (!is_space(text_[begin])) return false;
        return true;
    }

    Result<void> list(Signature &out, size_t begin, size_t end) {
        if (blank(begin, end)) return {};
        for (size_t at = begin; at <= end;) {
            const size_t comma = std::min(text_.find(',', at), end);
            std::string_view word = text_.substr(at, comma - at);
            if (word.find("...") != std::string_view::npos) {
                out.variadic = true;
            } else {
                Parameter one_more = TRY(one(at, comma));
                if (one_more.type.show == Show::nothing) {
                    if (!out.parameters.empty() || comma != end) return Unexpected(wrong(at, "an argument can't be void"));
                    return {};
                }
                if (out.parameters.size() == kMostParameters)
                    return Unexpected(wrong(at, format("more than {} arguments", kMostParameters)));
                out.parameters.push_back(std::move(one_more));
            }
            at = comma + 1;
        }
        return {};
    }

    // One declaration: words, stars, and perhaps a name.
    Result<Parameter> one(size_t begin, size_t end) {
        std::vector<std::pair<std::string, size_t>> words;
        int stars = 0;
        bool is_const = false;
        std::string name;
        for (size_t i = begin; i < end;) {
            const char c = text_[i];
            if (is_space(c)) {
                ++i;
            } else if (c == '*') {
                ++stars, ++i;
            } else if (c == '[') {
                const size_t close = text_.find(']', i);
                if (close == std::string_view::npos || close >= end) return Unexpected(wrong(i, "this `[` is never closed"));
                ++stars, i = close + 1;
            } else if (c == '_' || is_letter(c)) {
                const size_t at = i;
                while (i < end && (text_[i] == '_' || text_[i] == ':' || is_letter_or_digit(text_[i]))) ++i;
                std::string word(text_.substr(at, i - at));
                if (word == "const") {
                    is_const |= stars == 0;
                } else if (word == "volatile" || word == "restrict" || word == "register") {
                    continue;
                } else if (stars > 0) {
                    name = word;
                } else {
                    words.emplace_back(word, at);
                }
            } else {
                return Unexpected(wrong(i, format("`{}` isn't expected in a type", c)));
            }
        }
        if (words.empty()) return Unexpected(wrong(begin, "a type is expected"));
        return combine(std::move(words), stars, is_const, std::move(name));
    }

    Result<Parameter> combine(std::vector<std::pair<std::string, size_t>> words, int stars, bool is_const, std::string name) {
        const bool tagged = is_tag(words[0].first);
        const ShortType *row = tagged ? nullptr : find_row(words, words.size());
        if (!row && !tagged && words.size() > 1) { // the last word is the name
            row = find_row(words, words.size() - 1);
            if (row || stars > 0) {
                if (name.empty()) name = words.back().first;
                words.pop_back();
            }
        } else if (tagged && words.size() == 3) {
            name = words.back().first;
            words.pop_back();
        }
        Parameter out;
        out.name = std::move(name);
        std::string text = is_const ? "const " : "";
        for (size_t i = 0; i < words.size(); ++i) append(text, "{}{}", i ? " " : "", words[i].first);
        Type &type = out.type;
        type.name = stars > 0 ? text + " " + std::string(static_cast<size_t>(stars), '*') : text;
        if (stars > 0) {
            type.show = Show::address;
            const std::string &target = words.back().first;
            if (stars == 1 && row && row->name == "char" && !is_buffer_name(out.name)) type.show = Show::text;
            if (stars == 1 && tagged && words[0].first == "struct" && target == "sockaddr") type.show = Show::sockaddr;
            return out;
        }
        if (tagged && words[0].first == "enum") {
            type.show = Show::integer;
            type.size = 4;
            type.is_signed = true;
            return out;
        }
        if (!row) {
            if (words.size() > 1) text.erase(text.rfind(' ')); // the parameter's name
            std::string known;
            for (std::string_view usual : {"int", "long", "u8 to u64", "s8 to s64", "size_t", "const char *", "void *"})
                append(known, "{}{}", known.empty() ? "" : ", ", usual);
            return Unexpected(
                wrong(words[0].second, format("type `{}` isn't known", text), "known are " + known + " and pointers"));
        }
        type.show = row->show;
        type.size = row->size;
        type.is_signed = row->is_signed;
        name_integer(type, out.name);
        return out;
    }

    // C lets the words stand in any order: "long unsigned int" is "unsigned long".
    [[nodiscard]] static const ShortType *find_row(const std::vector<std::pair<std::string, size_t>> &words, size_t count) {
        std::string text;
        if (count == 1) {
            text = words[0].first;
        } else {
            int longs = 0, shorts = 0, unsigneds = 0, signeds = 0, chars = 0, ints = 0;
            for (size_t i = 0; i < count; ++i) {
                const std::string &word = words[i].first;
                int *counter = word == "long"       ? &longs
                               : word == "short"    ? &shorts
                               : word == "unsigned" ? &unsigneds
                               : word == "signed"   ? &signeds
                               : word == "char"     ? &chars
                               : word == "int"      ? &ints
                                                    : nullptr;
                if (!counter) return nullptr;
                ++*counter;
            }
            if (unsigneds + signeds > 1 || ints > 1 || chars > 1 || longs > 2 || shorts > 1 || (shorts && longs) ||
                (chars && (ints || longs || shorts)))
                return nullptr;
            text = unsigneds ? "unsigned " : chars && signeds ? "signed " : "";
            text += chars ? "char" : shorts ? "short" : longs == 2 ? "long long" : longs ? "long" : "int";
        }
        if (text == "signed") text = "int";
        for (const ShortType &row : kTypes)
            if (row.name == text) return &row;
        return nullptr;
    }

    std::string_view text_;
};

} // namespace

Error signature_error(std::string_view text, size_t at, std::string_view message, std::string hint) {
    return make_error(Errc::invalid_argument, format("{}\n  {}\n  {}^", message, text, std::string(at, ' ')), std::move(hint));
}

Parameter parse_field(std::string_view declaration, uint32_t size, bool is_signed) {
    constexpr std::string_view kDataLoc = "__data_loc ";
    // The name is the last word, before an array's brackets.
    std::string_view head = declaration.substr(0, declaration.ends_with(']') ? declaration.rfind('[') : declaration.size());
    const size_t space = head.find_last_of(" *");
    Parameter out;
    out.name = std::string(space == std::string_view::npos ? head : head.substr(space + 1));
    out.type.name = std::string(declaration);
    out.type.size = static_cast<uint8_t>(std::min<uint32_t>(size, 8));
    out.type.is_signed = is_signed;
    out.type.show = Show::integer;
    if (declaration.starts_with(kDataLoc)) {
        out.type.show = declaration.find("char[]") != std::string_view::npos ? Show::data_text : Show::address;
        out.type.name = std::string(declaration.substr(kDataLoc.size(), space - kDataLoc.size()));
        return out;
    }
    if (declaration.ends_with(']')) {
        out.type.show = declaration.starts_with("char ") ? Show::characters : Show::address;
        out.type.length = size;
        return out;
    }
    if (Result<Parameter> known = SignatureParser(declaration).declaration(); known && known->name == out.name) {
        out.type = std::move(known->type);
        return out;
    }
    if (space != std::string_view::npos) {
        std::string_view type = head.substr(0, space + 1);
        while (type.ends_with(' ')) type.remove_suffix(1);
        out.type.name = std::string(type);
        if (type.ends_with('*')) out.type.show = Show::address;
    }
    return out;
}

Result<Signature> parse_signature(std::string_view text) {
    Signature out = TRY(SignatureParser(text).parse());
    for (size_t i = 1; i < out.parameters.size(); ++i) {
        Parameter &text_of = out.parameters[i - 1], &length = out.parameters[i];
        if (text_of.type.show != Show::text || text_of.name.empty() || length.name != text_of.name + "_len") continue;
        if (length.type.show != Show::integer) continue;
        text_of.type.show = Show::counted;
        length.is_length = true;
    }
    return out;
}

} // namespace rawbpf::inline v0::trace
