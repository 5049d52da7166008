// A register has 64 bits, an argument often fewer: what lies above them is left over from earlier work and has to go before a
// value is shown. Then its type says what it is.
#include "programs/trace/decode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "programs/render/digits.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/trace/address.h"
#include "programs/trace/constants.h"
#include "programs/trace/described.h"
#include "programs/trace/go_values.h"
#include "programs/trace/path.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kExact = uint64_t{1} << 53;

uint64_t cut(uint64_t raw, uint8_t size) { return size >= 8 ? raw : raw & ((uint64_t{1} << size * 8) - 1); }
int64_t extend(uint64_t raw, uint8_t size) {
    if (size == 0 || size >= 8) return static_cast<int64_t>(raw);
    const int bits = 64 - size * 8;
    return static_cast<int64_t>(raw << bits) >> bits;
}

Decoded number_of(const Type &type, uint64_t raw) {
    Decoded out;
    out.kind = Decoded::Kind::number;
    const int64_t number = extend(raw, type.size);
    out.negative = type.is_signed && number < 0;
    out.number = out.negative ? -static_cast<uint64_t>(number) : cut(raw, type.size);
    return out;
}

// The enumerator, or the flags that a value is made of. An enumeration is one of flags when its values are single bits, but for a
// few (masks, combinations): a value that isn't among them is then A|B|0x8.
std::string enumerator(const Type &type, uint64_t value, const btf::Btf *kernel) {
    if (!kernel || type.id == 0) return {};
    const Result<btf::Type> resolved = kernel->resolve(type.id);
    if (!resolved || (resolved->kind != btf::Kind::enum_ && resolved->kind != btf::Kind::enum64)) return {};
    value = cut(value, type.size);
    uint32_t bits = 0, others = 0;
    uint64_t left = value;
    std::string flags;
    for (uint32_t i = 0; i < resolved->vlen; ++i) {
        const Result<btf::EnumValue> one = kernel->enum_value(*resolved, i);
        if (!one) return {};
        const uint64_t its = cut(one->value, type.size);
        if (its == value) return std::string(one->name);
        if (its == 0) continue;
        if (!std::has_single_bit(its)) {
            ++others;
            continue;
        }
        ++bits;
        if (!(left & its)) continue;
        append(flags, "{}{}", flags.empty() ? "" : "|", one->name);
        left &= ~its;
    }
    if (flags.empty() || bits < 2 || others * 4 > bits) return {};
    if (left) append(flags, "|{:#x}", left);
    return flags;
}

// What of it sockaddr_text() reads.
size_t sockaddr_bytes(Bytes bytes) {
    if (bytes.size() < kSockaddrBytes) return bytes.size();
    switch (load<uint16_t>(bytes.data())) {
    case AF_INET: return sizeof(sockaddr_in);
    case AF_INET6: return sizeof(sockaddr_in6);
    case AF_UNIX: {
        const std::string_view path(reinterpret_cast<const char *>(bytes.data()) + 2, bytes.size() - 2);
        return 2 + std::min(path.size(), path.find('\0', 1)); // an abstract one's begins with a zero
    }
    default: return sizeof(uint16_t);
    }
}

std::string sockaddr_text(Bytes bytes) {
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
    return text;
}

std::string descriptor_target(const Blob *blob, Bytes record) {
    if (!blob || blob->show != Show::descriptor) return {};
    const auto length = load<int32_t>(record.data() + blob->offset);
    return length > 0 ? path_text(record.subspan(blob->offset + 4, blob->capacity), length) : std::string();
}

Decoded decode_raw(const Type &type, uint64_t raw, const Blob *blob, Bytes record, const btf::Btf *kernel) {
    using Kind = Decoded::Kind;
    Decoded out;
    out.kind = Kind::address;
    out.number = cut(raw, type.size);
    const auto length = [&] { return load<int32_t>(record.data() + blob->offset); };
    const auto unread = [&] {
        out.kind = Kind::unreadable;
        out.number = raw;
        return std::move(out);
    };
    switch (type.show) {
    case Show::nothing: out.kind = Kind::nothing; break;
    case Show::integer: return number_of(type, raw);
    case Show::boolean:
        out.kind = Kind::truth;
        out.number = (out.number & 0xff) != 0;
        break;
    case Show::character: out.kind = Kind::character; break;
    case Show::enumeration:
        out = number_of(type, raw);
        out.name = enumerator(type, raw, kernel);
        break;
    case Show::descriptor: { // with what it leads to: 3</etc/passwd>
        Type plain = type;   // some system calls are said to take an unsigned long
        plain.is_signed = true;
        plain.size = 4;
        out = number_of(plain, raw);
        out.target = descriptor_target(blob, record);
        break;
    }
    case Show::text:
    case Show::characters:
    case Show::data_text:
        if (type.show == Show::text && raw == 0) {
            out.kind = Kind::null;
        } else if (blob) {
            const int32_t n = length();
            if (n <= 0 || n > blob->capacity) return unread();
            out.kind = Kind::text;
            out.text.assign(reinterpret_cast<const char *>(record.data()) + blob->offset + 4, static_cast<size_t>(n));
            out.text.resize(std::min(out.text.find('\0'), out.text.size()));
            out.cut = n == blob->capacity && type.show == Show::text;
        }
        break;
    case Show::counted:
        if (blob) {
            const int32_t n = length();
            if (n < 0 || n > blob->capacity) return unread();
            out.kind = Kind::text;
            out.text.assign(reinterpret_cast<const char *>(record.data()) + blob->offset + 4, static_cast<size_t>(n));
            out.cut = n == blob->capacity;
        }
        break;
    case Show::real:
        out.kind = Kind::real;
        out.real = type.size == 4 ? double(std::bit_cast<float>(static_cast<uint32_t>(raw))) : std::bit_cast<double>(raw);
        break;
    case Show::unavailable: out.kind = Kind::unavailable; break;
    case Show::sockaddr:
        if (!blob || raw == 0) break;
        if (length() < 0) return unread();
        out.kind = Kind::words;
        out.text = sockaddr_text(record.subspan(blob->offset + 4, blob->capacity));
        break;
    case Show::file:
    case Show::path:
    case Show::dentry: {
        if (!blob || raw == 0) break;
        const int32_t n = length();
        if (n < 0) return unread();
        if (n == 0) break; // none yet: a file that is being opened
        out.kind = Kind::words;
        out.text = path_text(record.subspan(blob->offset + 4, blob->capacity), n);
        break;
    }
    default: break;
    }
    return out;
}

Decoded result_raw(const Type &type, uint64_t raw, const btf::Btf *kernel, bool errors) {
    if (const int error = errors ? error_of(type, raw) : 0; error != 0) {
        Decoded out;
        out.kind = Decoded::Kind::number;
        out.negative = true;
        out.number = static_cast<uint64_t>(error);
        const char *name = strerrorname_np(error);
        out.name = name ? name : "";
        return out;
    }
    Type plain = type;
    if (plain.show == Show::text || plain.show == Show::sockaddr) plain.show = Show::address;
    return decode_raw(plain, raw, nullptr, {}, kernel);
}

// What the type can't say: constants of system calls and addresses of functions.
void name_value(Decoded &value, const Event &event, size_t column, const ColumnPlan &plan, const Decoding &with) {
    using Kind = Decoded::Kind;
    if (value.kind == Kind::number && value.name.empty() && value.target.empty()) {
        if (plan.constants) value.name = constant_name(*plan.constants, event.value(column));
        if (plan.addresses && value.name.empty() && value.number >= 4096) render::append_hex(value.name, value.number);
    } else if (value.kind == Kind::address && value.number != 0 && with.addresses)
        value.name = with.addresses->symbol(event.header.pid, value.number, event.header.time);
}

void append_parts(std::string &out, const Decoded &value, char open, char close) {
    out += open;
    for (size_t i = 0; i < value.parts.size(); ++i) {
        if (i) out += ", ";
        append_text(out, value.parts[i]);
    }
    if (value.cut) out += value.parts.empty() ? "..." : ", ...";
    out += close;
}

// What Go's types are and what is copied for them: of the place's program.
Decoded decode_go(const Event &event, size_t column, const Type &type) {
    const Blob *blob = event.blob(column);
    const uint64_t raw = event.value(column);
    if (type.show == Show::go_slice && raw == 0) return decode_go_slice(type, 0, bytes_of("\0\0\0\0\0\0\0\0"sv));
    const int32_t length = blob ? load<int32_t>(event.record.data() + blob->offset) : -1;
    Decoded out;
    out.kind = Decoded::Kind::unreadable;
    out.number = raw;
    if (length < 0 || length > blob->capacity) return out;
    const Bytes copied = event.record.subspan(blob->offset + 4, static_cast<size_t>(length));
    if (type.show == Show::go_slice) return decode_go_slice(type, raw, copied);
    return decode_go_interface(copied, go_type_name(event, column).name);
}
bool is_go(Show show) { return show == Show::go_slice || show == Show::go_interface || show == Show::go_any; }

Decoded decode_go_results(const Event &event, const Decoding &with) {
    Decoded out;
    for (size_t i = event.layout->arguments(); i < event.layout->columns.size(); ++i) {
        const Type &type = event.layout->columns[i].value.type;
        out.parts.push_back(is_go(type.show) ? decode_go(event, i, type)
                                             : decode_raw(type, event.value(i), event.blob(i), event.record, with.kernel));
    }
    if (out.parts.size() == 1) return Decoded(std::move(out.parts.front()));
    if (!out.parts.empty()) out.kind = Decoded::Kind::tuple;
    return out;
}

} // namespace

GoTypeName go_type_name(const Event &event, size_t column) {
    const Blob *blob = event.blob(column);
    const GoCall *call = event.place->go_call.get();
    const int32_t length = blob ? load<int32_t>(event.record.data() + blob->offset) : -1;
    if (!call || !call->types || length < static_cast<int32_t>(kGoInterfaceText) || length > blob->capacity) return {};
    const std::byte *copied = event.record.data() + blob->offset + 4;
    const auto address = load<uint64_t>(copied), probe = load<uint64_t>(copied + kGoInterfaceProbe);
    GoTypeName out;
    // How far from where the file says it lies: whole pages.
    for (size_t i = 0; i < call->probed.size() && out.name.empty(); ++i)
        if (const uint64_t moved = probe - call->probed[i]; moved % 4096 == 0)
            out = {address - moved, call->types->name(address - moved)};
    return out;
}

bool may_be_address(const Type &type) {
    switch (type.show) {
    case Show::address:
    case Show::file:
    case Show::path:
    case Show::dentry:
    case Show::sockaddr: return true;
    default: return false;
    }
}
uint64_t as_address(const Type &type, uint64_t raw) { return cut(raw, type.size); }
bool may_return_address(const Type &type) { return may_be_address(type) || type.show == Show::text; }

size_t used_bytes(const Blob &blob, Bytes record) {
    const auto length = load<int32_t>(record.data() + blob.offset);
    if (length < 0) return 0;
    size_t used = static_cast<size_t>(length);
    switch (blob.show) {
    case Show::file:
    case Show::path:
    case Show::dentry:
    case Show::descriptor: used = path_bytes(length); break;
    case Show::sockaddr: used = sockaddr_bytes(record.subspan(blob.offset + 4u, blob.capacity)); break;
    default: break;
    }
    return std::min<size_t>(used, blob.capacity);
}

int error_of(const Type &type, uint64_t raw) {
    if (type.show == Show::nothing || type.show == Show::boolean || type.show == Show::character) return 0;
    const bool pointer = type.size == 8;
    if (!type.is_signed && !pointer) return 0;
    const int64_t value = extend(raw, type.size);
    return value < 0 && value >= -4095 ? static_cast<int>(-value) : 0;
}

ColumnPlan plan_column(const ProbeSite &place, const Layout &layout, size_t column) {
    using Plain = ColumnPlan::Plain;
    Event event;
    event.place = &place;
    event.layout = &layout;
    ColumnPlan plan{.name = event.name(column), .type = event.type(column)};
    std::string_view call = place.function;
    if (call.starts_with("sys_enter_")) call.remove_prefix(10); // as a tracepoint
    if (!layout.recorded)
        plan.constants = constants_of(call, plan.name);
    else if (const OwnConstants *own = layout.columns[column].constants.get())
        plan.constants = own->constants();
    // Tracefs has addresses of mmap() and the like as unsigned long.
    plan.addresses = plan.type.size == 8 && (plan.name == "addr" || plan.name == "start");
    if (plan.type.show == Show::integer && !plan.constants && !plan.addresses) plan.plain = Plain::number;
    if (plan.type.show == Show::address) plan.plain = Plain::address;
    return plan;
}

bool append_plain_text(std::string &out, const Event &event, size_t column, const ColumnPlan &plan, const Decoding &with) {
    if (plan.plain == ColumnPlan::Plain::no || event.unreadable(column)) return false;
    const uint64_t raw = event.value(column);
    if (plan.plain == ColumnPlan::Plain::number) {
        const int64_t number = extend(raw, plan.type.size);
        const bool negative = plan.type.is_signed && number < 0;
        if (negative) out += '-';
        render::append_decimal(out, negative ? -static_cast<uint64_t>(number) : cut(raw, plan.type.size));
        return true;
    }
    const uint64_t address = cut(raw, plan.type.size);
    const std::string_view name = address != 0 && with.addresses
                                      ? with.addresses->symbol(event.header.pid, address, event.header.time)
                                      : std::string_view();
    name.empty() ? render::append_hex(out, address) : render::append_printable(out, name);
    return true;
}

bool append_plain_json(std::string &out, const Event &event, size_t column, const ColumnPlan &plan, const Decoding &with) {
    if (plan.plain == ColumnPlan::Plain::no || event.unreadable(column)) return false;
    const uint64_t raw = event.value(column);
    if (plan.plain == ColumnPlan::Plain::number) {
        const int64_t number = extend(raw, plan.type.size);
        const bool negative = plan.type.is_signed && number < 0;
        const uint64_t magnitude = negative ? -static_cast<uint64_t>(number) : cut(raw, plan.type.size);
        if (magnitude > kExact) out += '"';
        if (negative) out += '-';
        render::append_decimal(out, magnitude);
        if (magnitude > kExact) out += '"';
        return true;
    }
    const uint64_t address = cut(raw, plan.type.size);
    out += '"';
    render::append_hex(out, address);
    out += '"';
    if (address == 0 || !with.addresses) return true;
    const std::string_view name = with.addresses->symbol(event.header.pid, address, event.header.time);
    if (name.empty()) return true;
    out += ",\"text\":";
    render::append_json(out, name);
    return true;
}

Decoded decode(const Event &event, size_t column, const ColumnPlan &plan, const Decoding &with) {
    if (event.unreadable(column)) {
        Decoded out;
        out.kind = Decoded::Kind::unreadable;
        return out;
    }
    if (is_go(plan.type.show)) return decode_go(event, column, plan.type);
    Decoded out = decode_raw(plan.type, event.value(column), event.blob(column), event.record, with.kernel);
    name_value(out, event, column, plan, with);
    return out;
}

Decoded decode(const Event &event, size_t column, const Decoding &with) {
    return decode(event, column, plan_column(*event.place, *event.layout, column), with);
}

Decoded decode_result(const Event &event, const Decoding &with) {
    if (event.place->go_call) return decode_go_results(event, with);
    Decoded out = result_raw(event.result_type(), event.result(), with.kernel, !is_user_function(event.place->kind));
    if (out.kind == Decoded::Kind::address && out.number != 0 && with.addresses)
        out.name = with.addresses->symbol(event.header.pid, out.number, event.header.time);
    return out;
}

void append_text(std::string &out, const Decoded &value) {
    using Kind = Decoded::Kind;
    switch (value.kind) {
    case Kind::nothing: return;
    case Kind::null: out += "NULL"; return;
    case Kind::unreadable: append(out, "<fault>{:#x}", value.number); return;
    case Kind::truth: out += value.number ? "true" : "false"; return;
    case Kind::character:
        if (value.number >= 0x20 && value.number < 0x7f)
            append(out, "'{}'", static_cast<char>(value.number));
        else
            append(out, "{}", value.number);
        return;
    case Kind::number:
        if (!value.name.empty()) {
            out += value.name;
            return;
        }
        if (value.negative) out += '-';
        render::append_decimal(out, value.number);
        break;
    case Kind::address:
        if (value.name.empty())
            render::append_hex(out, value.number);
        else
            render::append_printable(out, value.name);
        return;
    case Kind::text:
        render::append_quoted(out, value.text);
        if (value.cut) out += "...";
        return;
    case Kind::words: render::append_printable(out, value.text); return;
    case Kind::real: append(out, "{}", value.real); return;
    case Kind::unavailable: out += '?'; return;
    case Kind::nil: out += "nil"; return;
    case Kind::list:
        append(out, "[{}]", value.length);
        if (value.parts.empty() && value.length != 0) return render::append_hex(out, value.number);
        append_parts(out, value, '{', '}');
        return;
    case Kind::tuple: append_parts(out, value, '(', ')'); return;
    }
    if (value.target.empty()) return;
    out += '<';
    render::append_printable(out, value.target);
    out += '>';
}

void append_json(std::string &out, const Decoded &value) {
    using Kind = Decoded::Kind;
    switch (value.kind) {
    case Kind::nothing:
    case Kind::null:
    case Kind::unavailable:
    case Kind::nil:
    case Kind::unreadable: out += "null"; return;
    case Kind::list:
        if (value.parts.empty() && value.length != 0) {
            append(out, "\"{:#x}\"", value.number);
            return;
        }
        [[fallthrough]];
    case Kind::tuple:
        out += '[';
        for (size_t i = 0; i < value.parts.size(); ++i) {
            if (i) out += ',';
            append_json(out, value.parts[i]);
        }
        out += ']';
        return;
    case Kind::real: {
        const char *quote = std::isfinite(value.real) ? "" : "\"";
        append(out, "{}{}{}", quote, value.real, quote);
        return;
    }
    case Kind::truth: out += value.number ? "true" : "false"; return;
    case Kind::address: append(out, "\"{:#x}\"", value.number); return;
    case Kind::text:
    case Kind::words: render::append_json(out, value.text); return;
    case Kind::character:
    case Kind::number: {
        const char *quote = value.number > kExact ? "\"" : "";
        append(out, "{}{}{}{}", quote, value.negative ? "-" : "", value.number, quote);
    }
    }
}

void append_value(std::string &out, const Type &type, uint64_t raw, const Blob *blob, Bytes record, const btf::Btf *kernel,
                  bool json, bool &unreadable) {
    const Decoded value = decode_raw(type, raw, blob, record, kernel);
    unreadable |= value.kind == Decoded::Kind::unreadable;
    json ? append_json(out, value) : append_text(out, value);
}

void append_result_text(std::string &out, const Decoded &value) {
    if (value.kind == Decoded::Kind::number && value.negative && !value.name.empty())
        append(out, "-{} ({})", value.number, value.name);
    else
        append_text(out, value);
}

void append_result(std::string &out, const Type &type, uint64_t raw, const btf::Btf *kernel, bool json, bool errors) {
    const Decoded value = result_raw(type, raw, kernel, errors);
    json ? append_json(out, value) : append_result_text(out, value);
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
