// Text to keys and values of a map that is there already. Types come from the map's own BTF; without it the size alone says what
// a number is. Numbers are written as they are read: in the order of bytes of this machine.
#include "programs/running/entry.h"

#include <algorithm>
#include <cstring>

#include <linux/bpf.h>

#include "programs/exec/input.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/btf/parse_value.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::running {
namespace {

constexpr std::string_view kHex = "hex:";

Result<void> by_size(std::string_view what, std::string_view text, std::span<std::byte> bytes) {
    const bool forced = text.starts_with(kHex);
    const bool number_like = bytes.size() == 1 || bytes.size() == 2 || bytes.size() == 4 || bytes.size() == 8;
    if (!forced && number_like) {
        const bool negative = text.starts_with('-');
        std::string_view digits = text.substr(negative ? 1 : 0);
        const bool hex = digits.starts_with("0x");
        if (hex) digits.remove_prefix(2);
        uint64_t number = 0;
        if (parse_whole(digits, number, hex ? 16 : 10)) {
            const auto bits = static_cast<uint32_t>(bytes.size() * 8);
            const uint64_t most = negative ? uint64_t{1} << (bits - 1) : ~uint64_t{0} >> (64 - bits);
            if (number > most) return fail(Errc::invalid_argument, "{}: {} doesn't fit in {} bytes", what, text, bytes.size());
            const uint64_t value = negative ? 0 - number : number;
            const size_t skip = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof value - bytes.size();
            std::memcpy(bytes.data(), reinterpret_cast<const char *>(&value) + skip, bytes.size());
            return {};
        }
    }
    const Result<std::vector<std::byte>> read = exec::parse_hex(forced ? text.substr(kHex.size()) : text, what);
    if (!read)
        return Unexpected(make_error(
            Errc::invalid_argument, format("{}: \"{}\" is neither a number nor bytes in hexadecimal", what, text.substr(0, 64)),
            format("it has {} bytes, and the map has no types; hex:0a00... gives them one by one", bytes.size())));
    if (read->size() != bytes.size())
        return fail(Errc::invalid_argument, "{}: \"{}\" is {} bytes, and the map's are {}", what, text.substr(0, 64),
                    read->size(), bytes.size());
    std::copy(read->begin(), read->end(), bytes.begin());
    return {};
}

Result<void> parse_into(std::string_view what, const btf::Btf *types, btf::TypeId type, std::string_view text,
                        std::span<std::byte> bytes) {
    if (types && type != 0 && !text.starts_with(kHex)) {
        const Result<uint64_t> size = types->size_of(type);
        if (size && *size == bytes.size()) {
            TRY_IN(btf::parse_value(*types, type, text, bytes), "{}", what);
            return {};
        }
    }
    return by_size(what, text, bytes);
}

} // namespace

Result<std::vector<std::byte>> parse_key(const Map &map, Names &names, std::string_view text) {
    const sys::MapInfo info = TRY_IN(sys::map_info(map.fd()), "asking what the map is");
    if (map.key_size() == 0) return fail(Errc::invalid_argument, "map {} has no keys", labelled(info.id, name_text(info.name)));
    std::vector<std::byte> out(map.key_size());
    TRY(parse_into("the key", names.btf_of(info), info.btf_key_type_id, text, out));
    return out;
}

Result<EntryValue> EntryValue::parse(const Map &map, Names &names, std::string_view text) {
    const sys::MapInfo info = TRY_IN(sys::map_info(map.fd()), "asking what the map is");
    EntryValue out;
    out.bytes_.resize(map.lookup_size());
    const bool programs = info.type == BPF_MAP_TYPE_PROG_ARRAY;
    if (programs || info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS || info.type == BPF_MAP_TYPE_HASH_OF_MAPS) {
        out.held_ = TRY(find_object(programs ? sys::ObjectKind::program : sys::ObjectKind::map, std::string(text)));
        const int fd = out.held_.get();
        std::memcpy(out.bytes_.data(), &fd, sizeof fd);
        return out;
    }
    std::vector<std::byte> one(map.value_size());
    TRY(parse_into("the value", names.btf_of(info), info.btf_value_type_id, text, one));
    const size_t stride = map.per_cpu() ? (one.size() + 7) / 8 * 8 : one.size();
    for (size_t at = 0; at + stride <= out.bytes_.size(); at += stride)
        std::copy(one.begin(), one.end(), out.bytes_.begin() + static_cast<ptrdiff_t>(at));
    return out;
}

} // namespace rawbpf::inline v0::running
