// A register has 64 bits, an argument often fewer: what lies above them is left over from earlier work and has to go before a
// value is shown. Then its type says what it is.
#include "programs/trace/decode.h"

#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/trace/address.h"
#include "programs/trace/path.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kExact = uint64_t{1} << 53;

uint64_t cut(uint64_t raw, uint8_t size) { return size >= 8 ? raw : raw & ((uint64_t{1} << size * 8) - 1); }
int64_t extend(uint64_t raw, uint8_t size) {
    if (size >= 8) return static_cast<int64_t>(raw);
    const int bits = 64 - size * 8;
    return static_cast<int64_t>(raw << bits) >> bits;
}

void append_quoted(std::string &out, std::string_view text, bool json) {
    if (json) return render::append_json(out, text);
    out += '"';
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            append(out, "\\{}", c);
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (byte < 0x20 || byte == 0x7f)
            append(out, "\\x{:02x}", byte);
        else
            out += c;
    }
    out += '"';
}

void append_number(std::string &out, bool negative, uint64_t magnitude, bool json) {
    const char *quote = json && magnitude > kExact ? "\"" : "";
    append(out, "{}{}{}{}", quote, negative ? "-" : "", magnitude, quote);
}

bool append_enumerator(std::string &out, const Type &type, uint64_t value, const btf::Btf *kernel, bool json) {
    if (!kernel || type.id == 0) return false;
    const Result<btf::Type> resolved = kernel->resolve(type.id);
    if (!resolved || (resolved->kind != btf::Kind::enum_ && resolved->kind != btf::Kind::enum64)) return false;
    for (uint32_t i = 0; i < resolved->vlen; ++i) {
        const Result<btf::EnumValue> one = kernel->enum_value(*resolved, i);
        if (!one || cut(one->value, type.size) != cut(value, type.size)) continue;
        const char *quote = json ? "\"" : "";
        append(out, "{}{}{}", quote, one->name, quote);
        return true;
    }
    return false;
}

void append_sockaddr(std::string &out, Bytes bytes, bool json) {
    const auto family = load<uint16_t>(bytes.data());
    std::string text;
    switch (family) {
    case AF_INET: {
        const auto in = load<sockaddr_in>(bytes.data());
        append_ipv4(text, reinterpret_cast<const uint8_t *>(&in.sin_addr));
        append(text, ":{}", ntohs(in.sin_port));
        break;
    }
    case AF_INET6: {
        const auto in = load<sockaddr_in6>(bytes.data());
        text += '[';
        append_ipv6(text, reinterpret_cast<const uint8_t *>(&in.sin6_addr));
        append(text, "]:{}", ntohs(in.sin6_port));
        break;
    }
    case AF_UNIX: {
        std::string_view path(reinterpret_cast<const char *>(bytes.data()) + 2, bytes.size() - 2);
        const bool abstract = path.starts_with('\0');
        if (abstract) path.remove_prefix(1);
        append(text, "unix:{}{}", abstract ? "@" : "", path.substr(0, path.find('\0')));
        break;
    }
    case AF_UNSPEC: text = "AF_UNSPEC"; break;
    case AF_NETLINK: text = "AF_NETLINK"; break;
    case AF_PACKET: text = "AF_PACKET"; break;
    default: append(text, "family {}", family);
    }
    if (json)
        render::append_json(out, text);
    else
        out += text;
}

} // namespace

int error_of(const Type &type, uint64_t raw) {
    if (type.show == Show::nothing || type.show == Show::boolean || type.show == Show::character) return 0;
    const bool pointer = type.size == 8;
    if (!type.is_signed && !pointer) return 0;
    const int64_t value = extend(raw, type.size);
    return value < 0 && value >= -4095 ? static_cast<int>(-value) : 0;
}

std::string descriptor_target(const Blob *blob, Bytes record) {
    if (!blob || blob->show != Show::descriptor) return {};
    const auto length = load<int32_t>(record.data() + blob->offset);
    return length > 0 ? path_text(record.subspan(blob->offset + 4, blob->capacity), length) : std::string();
}

void append_value(std::string &out, const Type &type, uint64_t raw, const Blob *blob, Bytes record, const btf::Btf *kernel,
                  bool json, bool &unreadable) {
    const uint64_t value = cut(raw, type.size);
    const auto unread = [&] {
        unreadable = true;
        if (json)
            out += "null";
        else
            append(out, "<fault>{:#x}", raw);
    };
    switch (type.show) {
    case Show::integer: {
        const int64_t number = extend(raw, type.size);
        const bool negative = type.is_signed && number < 0;
        return append_number(out, negative, negative ? -static_cast<uint64_t>(number) : value, json);
    }
    case Show::boolean: out += value & 0xff ? "true" : "false"; return;
    case Show::character: {
        const char c = static_cast<char>(value);
        if (json) return append_number(out, false, value, true);
        if (c >= 0x20 && c < 0x7f)
            append(out, "'{}'", c);
        else
            append(out, "{}", value);
        return;
    }
    case Show::enumeration:
        if (append_enumerator(out, type, value, kernel, json)) return;
        return append_number(
            out, type.is_signed && extend(raw, type.size) < 0,
            type.is_signed && extend(raw, type.size) < 0 ? -static_cast<uint64_t>(extend(raw, type.size)) : value, json);
    case Show::text:
    case Show::characters:
    case Show::data_text: {
        if (type.show == Show::text && raw == 0) {
            out += json ? "null" : "NULL";
            return;
        }
        if (!blob) break;
        const auto length = load<int32_t>(record.data() + blob->offset);
        if (length <= 0 || length > blob->capacity) return unread();
        std::string_view text(reinterpret_cast<const char *>(record.data()) + blob->offset + 4, static_cast<size_t>(length));
        text = text.substr(0, text.find('\0'));
        append_quoted(out, text, json);
        if (!json && length == blob->capacity && type.show == Show::text) out += "...";
        return;
    }
    case Show::descriptor: { // with what it leads to: 3</etc/passwd>
        const int64_t number = type.is_signed || type.size == 4 ? extend(raw, type.size) : static_cast<int64_t>(value);
        append_number(out, number < 0, number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number), json);
        if (json) return;
        const std::string target = descriptor_target(blob, record);
        if (target.empty()) return;
        out += '<';
        render::append_printable(out, target);
        out += '>';
        return;
    }
    case Show::sockaddr: {
        if (!blob || raw == 0) break;
        if (load<int32_t>(record.data() + blob->offset) < 0) return unread();
        return append_sockaddr(out, record.subspan(blob->offset + 4, blob->capacity), json);
    }
    case Show::file:
    case Show::path:
    case Show::dentry: {
        if (!blob || raw == 0) break;
        const auto length = load<int32_t>(record.data() + blob->offset);
        if (length < 0) return unread();
        if (length == 0) break; // none yet: a file that is being opened
        const std::string path = path_text(record.subspan(blob->offset + 4, blob->capacity), length);
        if (json)
            render::append_json(out, path);
        else
            render::append_printable(out, path);
        return;
    }
    default: break;
    }
    const char *quote = json ? "\"" : "";
    append(out, "{}{:#x}{}", quote, value, quote);
}

void append_result(std::string &out, const Type &type, uint64_t raw, const btf::Btf *kernel, bool json, bool errors) {
    if (const int error = errors ? error_of(type, raw) : 0; error != 0) {
        const char *name = strerrorname_np(error);
        append(out, "-{}", error);
        if (!json && name) append(out, " ({})", name);
        return;
    }
    if (type.show == Show::nothing) {
        if (json) out += "null";
        return;
    }
    Type plain = type;
    if (plain.show == Show::text || plain.show == Show::sockaddr) plain.show = Show::address;
    bool unreadable = false;
    append_value(out, plain, raw, nullptr, {}, kernel, json, unreadable);
}

std::string parameter_name(const Signature &signature, uint32_t index) {
    if (index < signature.parameters.size() && !signature.parameters[index].name.empty()) return signature.parameters[index].name;
    return format("arg{}", index);
}

Type parameter_type(const Signature &signature, uint32_t index) {
    if (index < signature.parameters.size()) return signature.parameters[index].type;
    return {"unsigned long", Show::address, 8, false};
}

} // namespace rawbpf::inline v0::trace
