// Bytes to cells. What a probe wrote has columns that say what they mean; of other maps the object's types say it: a struct's
// members are columns, integers are numbers, arrays of char are texts, everything else is printed by its type.
#include "programs/experiment/views.h"

#include <algorithm>
#include <cstring>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/trace/address.h"
#include "programs/trace/constants.h"
#include "programs/trace/system_calls.h"
#include "runtime/base/fail.h"
#include "runtime/btf/print_value.h"

namespace rawbpf::inline v0::experiment {
namespace {

struct ShowRow {
    std::string_view name;
    Show show;
};
constexpr ShowRow kShows[] = {
    {"hex", Show::hex},     {"ip", Show::ip},       {"syscall", Show::call},
    {"ksym", Show::symbol}, {"errno", Show::error}, {"signal", Show::signal},
};

uint64_t word(Bytes bytes) {
    uint64_t out = 0;
    std::memcpy(&out, bytes.data(), std::min<size_t>(bytes.size(), 8));
    return out;
}
int64_t signed_word(Bytes bytes) {
    const uint64_t value = word(bytes);
    if (bytes.size() >= 8) return static_cast<int64_t>(value);
    const auto shift = static_cast<unsigned>(64 - 8 * bytes.size());
    return static_cast<int64_t>(value << shift) >> shift;
}
Bytes part(const Column &column, Bytes bytes) {
    if (column.offset >= bytes.size()) return {};
    return bytes.subspan(column.offset, std::min<size_t>(column.size, bytes.size() - column.offset));
}
std::string_view text_of(Bytes bytes) {
    const std::string_view all(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return all.substr(0, all.find('\0'));
}
/// "ls\0-l\0\0\0": `ls -l`.
std::string words_of(Bytes bytes) {
    std::string out(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    out.resize(out.find_last_not_of('\0') + 1);
    std::replace(out.begin(), out.end(), '\0', ' ');
    return out;
}
bool is_text(Show show) {
    return show == Show::text || show == Show::words || show == Show::ip || show == Show::ip6 || show == Show::call ||
           show == Show::symbol || show == Show::error || show == Show::signal || show == Show::hex;
}

std::string ip_text(const uint8_t *b) {
    std::string out;
    trace::append_ipv4(out, b);
    return out;
}

std::string ip6_text(const uint8_t *b) {
    constexpr uint8_t kOfIpv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}; // such an address is written as itself
    if (std::equal(kOfIpv4, kOfIpv4 + 12, b)) return ip_text(b + 12);
    std::string out;
    trace::append_ipv6(out, b);
    return out;
}

} // namespace

bool show_named(std::string_view function, Show &show) {
    for (const ShowRow &row : kShows)
        if (row.name == function) return show = row.show, true;
    return false;
}
std::vector<std::string_view> show_names() {
    std::vector<std::string_view> out = {"ip6"};
    for (const ShowRow &row : kShows) out.push_back(row.name);
    return out;
}

std::optional<int64_t> integer(const Column &column, Bytes bytes) {
    const Bytes own = part(column, bytes);
    switch (column.show) {
    case Show::text:
    case Show::words:
    case Show::ip6:
    case Show::typed: return {};
    case Show::signed_number:
    case Show::error: return own.size() > 8 || own.empty() ? std::optional<int64_t>() : signed_word(own);
    default: return own.size() > 8 || own.empty() ? std::optional<int64_t>() : static_cast<int64_t>(word(own));
    }
}

std::string cell(const Column &column, Bytes bytes, const btf::Btf *types, Names *names) {
    const Bytes own = part(column, bytes);
    if (own.empty()) return "?";
    switch (column.show) {
    case Show::number: return own.size() > 8 ? btf::print_untyped(own) : format("{}", word(own));
    case Show::signed_number: return format("{}", signed_word(own));
    case Show::hex: return format("{:#x}", word(own));
    case Show::flag: return word(own) ? "yes" : "no";
    case Show::text: return std::string(text_of(own));
    case Show::words: return words_of(own);
    case Show::ip: {
        uint8_t b[8] = {};
        std::memcpy(b, own.data(), std::min<size_t>(own.size(), 8));
        return ip_text(b);
    }
    case Show::ip6: {
        uint8_t b[16] = {};
        std::memcpy(b, own.data(), std::min<size_t>(own.size(), 16));
        return ip6_text(b);
    }
    case Show::call: {
        const std::string_view name = trace::system_call_name(static_cast<int32_t>(word(own)));
        return name.empty() ? format("{}", word(own)) : std::string(name);
    }
    case Show::symbol: {
        const std::string name = names ? names->symbol(word(own)) : std::string();
        return name.empty() ? format("{:#x}", word(own)) : name;
    }
    case Show::error: {
        const int64_t value = signed_word(own);
        const std::string name = value < 0 && value >= -4095  ? errno_name(static_cast<int>(-value))
                                 : value > 0 && value <= 4095 ? errno_name(static_cast<int>(value))
                                                              : std::string();
        return value == 0 ? "0" : name.empty() ? format("{}", value) : name;
    }
    case Show::signal: {
        const std::string name = trace::constant_name("kill", "sig", word(own));
        return name.empty() ? format("{}", word(own)) : name;
    }
    case Show::typed: break;
    }
    if (types && column.type != 0)
        if (Result<std::string> text = btf::print_value(*types, column.type, own)) return std::move(*text);
    return btf::print_untyped(own);
}

std::string json_cell(const Column &column, Bytes bytes, const btf::Btf *types, Names *names) {
    const Bytes own = part(column, bytes);
    if (own.empty()) return "null";
    if (column.show == Show::typed) {
        if (types && column.type != 0)
            if (Result<std::string> text = btf::print_value(*types, column.type, own, btf::ValueStyle::json))
                return std::move(*text);
        return btf::print_untyped(own, btf::ValueStyle::json);
    }
    if (column.show == Show::flag) return word(own) ? "true" : "false";
    if (!is_text(column.show) && own.size() <= 8) {
        constexpr uint64_t kExact = uint64_t{1} << 53; // as a double has it
        const bool is_signed = column.show == Show::signed_number;
        const uint64_t magnitude =
            is_signed ? static_cast<uint64_t>(signed_word(own) < 0 ? -signed_word(own) : signed_word(own)) : word(own);
        if (magnitude <= kExact) return is_signed ? format("{}", signed_word(own)) : format("{}", word(own));
    }
    std::string out;
    render::append_json(out, cell(column, bytes, types, names));
    return out;
}

// ---- from types ------------------------------------------------------------------------------------------------------------

namespace {

Result<Column> column_of(const btf::Btf &types, btf::TypeId id, uint32_t offset, uint32_t size, std::string_view name) {
    Column out{std::string(name), Show::typed, offset, size, id};
    const btf::Type type = TRY(types.resolve(id));
    if (type.kind == btf::Kind::int_) {
        const btf::IntEncoding encoding = types.int_encoding(type);
        if (encoding.is_bool)
            out.show = Show::flag;
        else if (type.size_or_type <= 8)
            out.show = encoding.is_signed ? Show::signed_number : Show::number;
    } else if (type.kind == btf::Kind::ptr) {
        out.show = Show::hex;
    } else if (type.kind == btf::Kind::array) {
        const btf::Type element = TRY(types.resolve(types.array(type).element));
        if (element.kind == btf::Kind::int_ && element.size_or_type == 1 &&
            (types.int_encoding(element).is_char || element.name == "char"))
            out.show = Show::text;
    }
    return out;
}

} // namespace

Result<std::vector<Column>> columns_of(const btf::Btf &types, btf::TypeId id, uint32_t size, std::string_view name) {
    std::vector<Column> out;
    const btf::Type type = TRY(types.resolve(id));
    if (type.kind == btf::Kind::struct_) {
        for (uint32_t i = 0; i < type.vlen; ++i) {
            const btf::Member member = TRY(types.member(type, i));
            if (member.name.empty() || member.bit_size != 0 || member.bit_offset % 8 != 0) { // as a whole then
                out.clear();
                break;
            }
            out.push_back(TRY(column_of(types, member.type, member.bit_offset / 8,
                                        static_cast<uint32_t>(TRY(types.size_of(member.type))), member.name)));
        }
        if (!out.empty()) return out;
    }
    out.push_back(TRY(column_of(types, id, 0, size, name)));
    return out;
}

MapView view_of(const ObjectSpec &spec, const MapSpec &map) {
    MapView out;
    out.map = map.name;
    const auto columns = [&](btf::TypeId id, uint32_t size, std::string_view name) {
        if (!spec.btf.empty() && id != 0)
            if (const Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name))
                if (Result<std::vector<Column>> found = columns_of(*types, id, size, name)) return std::move(*found);
        const bool number = size == 1 || size == 2 || size == 4 || size == 8;
        return std::vector<Column>{{std::string(name), number ? Show::number : Show::typed, 0, size, 0}};
    };
    if (map.key_size != 0) out.key = columns(map.key_type, map.key_size, "key");
    if (map.value_size != 0) out.value = columns(map.value_type, map.value_size, "value");
    return out;
}

} // namespace rawbpf::inline v0::experiment
